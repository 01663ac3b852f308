"""Saved scripts: kept by name and version, armed by their `on`, started by hand, looked at.

A version never changes: what is saved again, or brought back, is a new one. What starts them is `triggers.py`."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.config import Settings
from bot.domain.catalog import Catalog, World
from bot.domain.errors import WaitonError
from bot.domain.ids import digest
from bot.domain.plan import Plan
from bot.engine import triggers as rules
from bot.language.check.triggers import SCRIPT_NAME, no_name, said
from bot.language.problems import Problem
from bot.language.script import Examined, check_plan, examine
from bot.language.write import as_json, as_markdown
from bot.people import directory, policy
from bot.runtime import report, starting
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, Site, plan_text
from bot.runtime.committer import Committer
from bot.runtime.triggers import entry
from store import history, runs, scripts, triggers
from store.dialect import Transaction

STARTS_SHOWN = 20


class NoScript(WaitonError):
    """No script is saved under this name, or it has no such version."""


class Saved:
    """What people do with saved scripts. `changed` is called once a script was saved, paused or resumed."""

    def __init__(self, committer: Committer, catalog: Catalog, settings: Settings, clock: Clock) -> None:
        self.committer = committer
        self.catalog = catalog
        self.settings = settings
        self.clock = clock
        self.changed: Callable[[], None] = lambda: None

    @property
    def site(self) -> Site:
        return self.committer.site

    # --- saving -----------------------------------------------------------------------------------------------
    async def save(
        self, text: str | bytes, *, by: str, job: str | None, name: str | None = None, escaping: Any = "plain"
    ) -> tuple[Examined, dict[str, Any] | None]:
        """Checks a text and saves it under `name`, else under the name that it gives itself; refused, nothing is
        stored. Gives what was seen, and `{name, version}`.

        Raises WaitonError where it has no name, one that cannot be, or the person may not save."""
        if name is not None and not SCRIPT_NAME.fullmatch(name):
            raise WaitonError(_no_name(name))
        seen = await self._examined(text, by=by, job=job, name=name, escaping=escaping)
        if seen.refused or seen.plan is None:
            return seen, None
        if seen.plan.name is None:
            raise WaitonError("it has no name to be saved under; give one")
        return seen, await self.keep(seen, by=by, job=job)

    async def keep(self, seen: Examined, *, by: str, job: str | None) -> dict[str, Any]:
        """Saves what was found right, as the next version of its name: `{name, version}`."""
        assert seen.plan is not None
        return await self._keep(seen.plan, seen.read.source.pasted, seen.read.surface, by=by, job=job)

    async def _keep(self, plan: Plan, pasted: str, surface: str | None, *, by: str, job: str | None) -> dict[str, Any]:
        if not SCRIPT_NAME.fullmatch(plan.name or ""):
            raise WaitonError(_no_name(plan.name or ""))

        def write(tx: Transaction) -> int:
            self._may(tx, by)
            return self._write(tx, plan, pasted, surface, by=by, job=job)

        version = await self.committer.write(write)
        self.changed()
        return {"name": plan.name, "version": version}

    async def save_run(self, run_id: str, name: str, *, by: str) -> dict[str, Any]:
        """Saves what a run was started with, or what edits have made of it, under a name: `{name, version}`.

        Raises WaitonError where it cannot be saved so."""

        def read(tx: Transaction) -> tuple[str, Plan, str, bool]:
            run = runs.get(tx, run_id)
            if run is None:
                raise WaitonError(f"there is no run `{run_id}`")
            plan = self.site.index(tx, run.plan).plan
            edited = any(one["what"] == "edited" for one in history.of_run(tx, run_id))
            pasted = runs.told(tx, run)["source"]
            return run.job, plan, pasted or "", edited

        job, plan, pasted, edited = await self.committer.read(read)
        if edited or not pasted:
            seen, saved = await self.save(as_markdown(plan, self.catalog), by=by, job=job, name=name.strip())
            if saved is None:
                raise WaitonError(f"it cannot be saved: {seen.problems[0].message}. Nothing changed")
            return saved
        return await self._again(replace(plan, name=name.strip()), pasted, by=by, job=job)

    async def rollback(self, name: str, version: int, *, by: str) -> dict[str, Any]:
        """A new version that is equal to an old one: `{name, version}`. It is checked again, as the world has moved on.

        Raises WaitonError where it does not stand any more, or is the current one."""

        def read(tx: Transaction) -> tuple[dict[str, Any], Plan, str, int]:
            old = self._get(tx, name, version)
            return old, self.site.index(tx, old["plan"]).plan, self._text(tx, old), self._get(tx, name)["version"]

        old, plan, pasted, current = await self.committer.read(read)
        if version == current:
            raise WaitonError(f"version {version} of `{name}` is the current one. Nothing changed")
        return await self._again(plan, pasted, by=by, job=old["job"])

    async def _again(self, plan: Plan, pasted: str, *, by: str, job: str | None) -> dict[str, Any]:
        """Saves a plan that was right once, if it still is."""
        world = await self.committer.read(self.world_for, by, job)
        problems = check_plan(plan, self.catalog, world)
        if problems:
            raise WaitonError(f"it cannot be saved: {problems[0].message}. Nothing changed")
        return await self._keep(plan, pasted, None, by=by, job=job)

    async def pause(self, name: str, paused: bool, *, by: str) -> bool:
        """Nothing but people starts a paused script; what is missed meanwhile is not made up for. False where it stood
        so before."""

        def write(tx: Transaction) -> bool:
            self._may(tx, by)
            kept = self._get(tx, name)
            if scripts.stands(tx, name)[0] == paused:
                return False
            scripts.pause(tx, name, paused)
            self._arm(tx, self.site.index(tx, kept["plan"]).plan, paused=paused)
            return True

        done = await self.committer.write(write)
        self.changed()
        return done

    def _write(self, tx: Transaction, plan: Plan, pasted: str, surface: str | None, *, by: str, job: str | None) -> int:
        assert plan.name is not None
        now, body = self.clock.now(), plan_text(plan)
        key, source = digest(body), digest(f"pasted {pasted}")
        runs.add_plan(tx, key, body, None, None)
        runs.add_plan(tx, source, "", pasted, surface)
        version = scripts.save(tx, plan.name, key, by, job, now, source=source, head=directory.head_of(plan))
        self._arm(tx, plan, paused=scripts.stands(tx, plan.name)[0])
        return version

    def _arm(self, tx: Transaction, plan: Plan, *, paused: bool) -> None:
        """A cron line that stood before keeps its next moment, so that saving again loses none."""
        assert plan.name is not None
        now = self.clock.now()
        world = self.site.world(now)
        kept = {(body.get("every"), body.get("zone")): due for body, due in triggers.of_script(tx, plan.name)}
        found: list[tuple[dict[str, Any], str | None, datetime | None]] = []
        for trigger in () if paused else plan.on:
            body, stream, due = entry(trigger, world, now)
            found.append((body, stream, kept.get((trigger.every, trigger.zone), due) if trigger.every else None))
        triggers.arm(tx, plan.name, found)

    # --- starting by hand -------------------------------------------------------------------------------------
    async def start(self, name: str, run_id: str, *, by: str, job: str, inputs: Mapping[str, Any]) -> list[Problem]:
        """Starts the current version as this run, with these inputs, as this person; gives what stands against it:
        then nothing has started.

        Raises NoScript; WaitonError where the person may not start scripts."""

        def read(tx: Transaction) -> tuple[dict[str, Any], Plan, World]:
            kept = self._get(tx, name)
            return kept, self.site.index(tx, kept["plan"]).plan, self.world_for(tx, by, job)

        saved, plan, world = await self.committer.read(read)
        if problems := check_plan(plan, self.catalog, world, given=inputs):
            return problems
        now = self.clock.now()

        def write(tx: Transaction) -> Outcome:
            self._may(tx, by)
            why = f"{world.name_of(by)}, by hand"
            triggers.add(
                tx,
                script=name,
                event=f"hand/{run_id}",
                state="live",
                key=rules.key_of(plan, {}, self._conversation(tx, plan, world, job)),
                job=job,
                at=now,
                run=run_id,
                version=saved["version"],
                why=why,
            )
            return starting.begin(
                tx, self.site, saved, plan, run=run_id, job=job, owner=by, at=now, given=inputs, data={}, world=world
            )

        await self.committer.write(write)
        return []

    def _conversation(self, tx: Transaction, plan: Plan, world: World, job: str) -> str | None:
        """The conversation that a run counts by: of a script that chats start, its job's."""
        chats = any(t.command is not None or (t.event and rules.is_chat(t.event, world)) for t in plan.on)
        kept = runs.get_job(tx, job) if chats else None
        return kept["conversation"] if kept else None

    async def _examined(
        self, text: str | bytes, *, by: str, job: str | None, name: str | None, escaping: Any = "plain"
    ) -> Examined:
        world = await self.committer.read(self.world_for, by, job)
        return await asyncio.to_thread(examine, text, self.catalog, world, escaping=escaping, starting=False, name=name)

    def world_for(self, tx: Transaction, by: str, job: str | None) -> World:
        """What a script may name that this person starts or saves in this job."""
        world = directory.read(tx, self.settings, self.clock.now())
        held = {h["name"]: h["type"] for h in history.held(tx, job)} if job else {}
        kept = runs.get_job(tx, job) if job else None
        return directory.for_job(world, by, held, kept["customer"] if kept else None)

    def _may(self, tx: Transaction, by: str) -> None:
        world = self.site.world(self.clock.now())
        if not policy.may_paste(world, by):
            raise WaitonError(f"scripts are saved and started by {policy.who_pastes(world)} here. Nothing changed")

    # --- looking ----------------------------------------------------------------------------------------------
    async def find(self, by: str, words: str = "") -> list[dict[str, Any]]:
        """The saved scripts whose name, title or description of what starts them has these words, by name."""

        def read(tx: Transaction) -> list[dict[str, Any]]:
            found = [self._told(tx, kept, by) for kept in scripts.current(tx)]
            wanted = words.casefold().split()
            return [
                one
                for one in found
                if all(
                    word in f"{one['name']} {one['title'] or ''} {' '.join(one['on'])}".casefold() for word in wanted
                )
            ]

        return await self.committer.read(read)

    async def show(self, name: str, by: str, version: int | None = None) -> dict[str, Any]:
        """One saved script as it stands: also its inputs, text, versions (the current first) and latest starts.

        Raises NoScript."""
        return await self.committer.read(self._shown, name, by, version)

    def _shown(self, tx: Transaction, name: str, by: str, version: int | None) -> dict[str, Any]:
        kept = self._get(tx, name, version)
        plan = self.site.index(tx, kept["plan"]).plan
        return {
            **self._told(tx, kept, by),
            "inputs": plan.inputs,
            "plan": plan,
            "text": self._text(tx, kept),
            "markdown": as_markdown(plan, self.catalog),
            "as_json": as_json(plan),
            "versions": scripts.versions(tx, name),
            "starts": [self._start(tx, row, by) for row in triggers.latest(tx, name, STARTS_SHOWN)],
        }

    async def diff(self, name: str, old: int | None = None, new: int | None = None) -> list[str]:
        """What one version has and another had, as a unified diff of their texts: without numbers, what the current one
        changed; with one, what has changed since."""

        def read(tx: Transaction) -> list[str]:
            current = self._get(tx, name)["version"]
            after = new if new is not None else current
            before = old if old is not None else after - 1
            if before < 1:
                raise NoScript(f"`{name}` has one version; there is nothing to compare it with")
            one, two = (self._text(tx, self._get(tx, name, v)).splitlines() for v in (before, after))
            names = (f"{name}, version {before}", f"{name}, version {after}")
            return list(difflib.unified_diff(one, two, *names, lineterm=""))

        return await self.committer.read(read)

    def _told(self, tx: Transaction, kept: Mapping[str, Any], by: str) -> dict[str, Any]:
        plan = self.site.index(tx, kept["plan"]).plan
        paused, told = scripts.stands(tx, kept["name"])
        due = [at for _, at in triggers.of_script(tx, kept["name"]) if at is not None]
        last = next((row for row in triggers.latest(tx, kept["name"], 5) if row["run"]), None)
        return {
            "name": kept["name"],
            "title": plan.title,
            "version": kept["version"],
            "owner": kept["owner"],
            "job": kept["job"],
            "saved": kept["created"],
            "on": [said(trigger) for trigger in plan.on],
            "next": min(due, default=None),
            "paused": paused,
            "told": told,
            "last": self._start(tx, last, by) if last else None,
        }

    def _start(self, tx: Transaction, row: Mapping[str, Any], by: str) -> dict[str, Any]:
        """A start as somebody may see it: what they cannot read of it is left out."""
        readable = policy.reads_job(tx, row["job"], by) if row["job"] else True
        run = runs.get(tx, row["run"]) if row["run"] and readable else None
        return {
            "at": row["at"],
            "state": report.state_of(run) if run is not None else row["state"],
            "run": run.id if run is not None else None,
            "job": row["job"] if readable else None,
            "version": row["version"],
            "why": row["why"],
        }

    def _get(self, tx: Transaction, name: str, version: int | None = None) -> dict[str, Any]:
        kept = scripts.get(tx, name, version)
        if kept is None and version is not None and scripts.get(tx, name) is not None:
            raise NoScript(f"`{name}` has no version {version}")
        if kept is None:
            raise NoScript(f"no script is saved as `{name}`")
        return kept

    def _text(self, tx: Transaction, kept: Mapping[str, Any]) -> str:
        """A version's text as it was pasted."""
        pasted = runs.plan_source(tx, kept["source"])[0] if kept["source"] else None
        return pasted or as_markdown(self.site.index(tx, kept["plan"]).plan, self.catalog)


def _no_name(name: str) -> str:
    wrong, fits = no_name(name)
    return f"{wrong if name else 'there is no name'}; {fits}"


def starts(plan: Plan, world: World, now: datetime) -> list[dict[str, Any]]:
    """What starts a script, in words (`on`), and when it comes `next` where the clock says so."""
    return [{"on": said(trigger), "next": entry(trigger, world, now)[2]} for trigger in plan.on]
