"""Starts saved scripts: by what arrives, by the clock, by the end of other scripts. The rules are
`bot/engine/triggers.py`; every start is a row, unique by script and event, so the same event starts a script once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog

from bot.domain.catalog import World
from bot.domain.changes import Delivery, Taken
from bot.domain.facts import Edited
from bot.domain.ids import digest
from bot.domain.plan import Plan, Trigger
from bot.domain.record import RunRow
from bot.engine import triggers as rules
from bot.engine import words
from bot.language.check.preflight import writes
from bot.language.check.triggers import said
from bot.language.script import check_plan
from bot.people import directory, policy
from bot.runtime import starting
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, Site, take
from bot.runtime.committer import Committer, database_away
from bot.runtime.crons import next_firing
from store import history, ops, outbox, runs, scripts, triggers
from store.dialect import Transaction

log = structlog.get_logger()
DUE_AT_ONCE = 100
"""Cron lines that one transaction fires."""
HAPPENED = frozenset({"running", "uncertain", "done"})
"""A write in one of these states has happened, or may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One entry of a script's `on` that has come true. `ident`: what the script must not answer twice. `given`: what
    it binds. `chain`: how many scripts have started each other up to it. `due`: of a cron line, its moment."""

    script: str
    ident: str
    trigger: Trigger
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    chain: int = 0
    event: Mapping[str, Any] | None = None
    due: datetime | None = None


class Triggers:
    """`offer` is called in the transaction that routes an event, `sweep` when the clock wakes."""

    def __init__(self, committer: Committer, clock: Clock) -> None:
        self.committer = committer
        self.clock = clock

    @property
    def site(self) -> Site:
        return self.committer.site

    def _world(self, now: datetime) -> World:
        return replace(self.site.world(now), now=now)

    # --- events -----------------------------------------------------------------------------------------------
    def offer(
        self, tx: Transaction, event: Mapping[str, Any], passes: Mapping[str, bool | str]
    ) -> tuple[list[Outcome], dict[str, dict[str, Any]]]:
        """Starts what an event starts. `passes`: what each `where` gives for it; those that are not in it yet are
        given back with the names that they see, and nothing is started before they are."""
        stream = event["stream"]
        command = rules.command_in(stream, event["event"])
        rows = triggers.armed(tx, stream, f"command:{command[0]}" if command else None)
        if not rows and not stream.startswith("script:"):
            return [], {}
        now = self.clock.now()
        found = [(script, _trigger(body)) for script, body in rows]
        wheres = {t.where for _, t in found if t.where is not None and t.where not in passes}
        if wheres:
            names = {"event": event["event"], "now": now.isoformat(), "templates": dict(self._world(now).templates)}
            return [], {where: names for where in wheres}
        ended = self._ended(tx, event) if stream.startswith("script:") else None
        outcomes = self._after(tx, ended.id, now) if ended is not None else []
        if stream.startswith("script:") and (ended is None or ended.data.get("version") is None):
            return outcomes, {}
        chain = ended.data.get("chain", 0) + 1 if ended is not None else 0
        ident = rules.answered(event, chat=rules.is_chat(stream, self._world(now)))
        for script, trigger in found:
            if trigger.where is not None and passes[trigger.where] is not True:
                continue
            rest = command[1] if command and trigger.command is not None else None
            given = {trigger.as_: rules.bound(event, rest)} if trigger.as_ else {}
            firing = Firing(script=script, ident=ident, trigger=trigger, given=given, chain=chain, event=event)
            outcomes += self._apart(tx, script, lambda firing=firing: self._fire(tx, firing, now))
        return outcomes, {}

    def _ended(self, tx: Transaction, event: Mapping[str, Any]) -> RunRow | None:
        """The run whose end this event is."""
        body = event["event"]
        return runs.get(tx, str(body.get("run"))) if isinstance(body, Mapping) else None

    def _after(self, tx: Transaction, run_id: str, now: datetime) -> list[Outcome]:
        """A run of a saved script has ended: what is queued behind it begins."""
        row = triggers.of_run(tx, run_id)
        if row is None or row["state"] != "live":
            return []
        triggers.settle(tx, row, "over", run=run_id, version=row["version"], why=row["why"])
        outcomes: list[Outcome] = []
        while not any(state == "live" for _, state in triggers.open_of(tx, row["script"], row["key"])):
            queued = triggers.next_queued(tx, row["script"], row["key"])
            if queued is None:
                break
            saved = scripts.get(tx, queued["script"])
            if saved is None:
                break
            begun = self._apart(
                tx, saved["name"], lambda queued=queued, saved=saved: self._begin(tx, saved, queued, now)
            )
            if not begun and triggers.next_queued(tx, row["script"], row["key"]) == queued:
                break
            outcomes += begun
        return outcomes

    # --- the clock --------------------------------------------------------------------------------------------
    async def sweep(self) -> None:
        """Fires the cron lines that have come, each once however often it was missed."""
        while due := await self.committer.read(triggers.due, self.clock.now(), DUE_AT_ONCE):
            await self.committer.write(lambda tx, due=due: self._due(tx, due))

    def _due(self, tx: Transaction, due: list[tuple[str, int, dict[str, Any], datetime]]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        now = self.clock.now()
        for script, n, body, at in due:
            trigger = _trigger(body)
            following = next_firing(str(trigger.every), trigger.zone, self._world(now).workspace, now)
            if triggers.move(tx, script, n, at, following):
                ident = f"every {trigger.every} {trigger.zone or ''}/{at.isoformat()}"
                given = {trigger.as_: {"at": at.isoformat()}} if trigger.as_ else {}
                firing = Firing(script=script, ident=ident, trigger=trigger, given=given, due=at)
                outcomes += self._apart(tx, script, lambda firing=firing: self._fire(tx, firing, now))
        return outcomes

    # --- firing -----------------------------------------------------------------------------------------------
    def _apart(self, tx: Transaction, script: str, work: Callable[[], list[Outcome]]) -> list[Outcome]:
        """Work in a savepoint: a script that breaks must not keep the event from the others."""
        tx.savepoint("firing")
        try:
            found = work()
        except Exception as fault:
            if database_away(fault):
                raise
            tx.rollback_to("firing")
            log.exception("a saved script could not start", script=script)
            return []
        tx.release("firing")
        return found

    def _fire(self, tx: Transaction, firing: Firing, now: datetime) -> list[Outcome]:
        """One firing, by the overlap with those before it; a repeat changes nothing."""
        script, event = firing.script, firing.event
        saved = scripts.get(tx, script)
        if saved is None or triggers.known(tx, script, firing.ident):
            return []
        plan = self.site.index(tx, saved["plan"]).plan
        chat = event is not None and rules.is_chat(event["stream"], self._world(now))
        job = self._job(tx, event, saved)
        if job != saved["job"] and not policy.reads_job(tx, job, saved["owner"]):
            return []  # what a saver cannot read starts nothing of theirs
        names = {**({"event": event["event"]} if event else {}), **firing.given}
        key = rules.key_of(plan, names, event["conversation"] if event is not None and chat else None)
        row: dict[str, Any] = {
            "script": script,
            "event": firing.ident,
            "key": key,
            "job": job,
            "chain": firing.chain,
            "names": dict(firing.given),
            "why": said(firing.trigger),
        }
        overlap = rules.overlap_of(plan, chat=chat)
        match rules.decide(overlap, self._others(tx, script, key, judging=overlap == "replace")):
            case rules.Skip(why):
                row["why"] = why
                triggers.add(tx, **row, state="skipped", at=now)
                return []
            case rules.Wait():
                triggers.add(tx, **row, state="queued", at=now)
                return []
            case rules.Begin(cancels):
                triggers.add(tx, **row, state="queued", at=now)
                outcomes: list[Outcome] = []
                for run_id in cancels:
                    why = f"{row['why']} started `{script}` again"
                    fact = Edited(at=now, by=saved["owner"], edit={"run": "cancel"}, why=why)
                    outcomes.append(take(tx, self.site, run_id, fact))
                return outcomes + self._begin(tx, saved, row, now, firing)

    def _others(self, tx: Transaction, script: str, key: str, *, judging: bool) -> list[rules.Other]:
        return [
            rules.Other(run=run_id, wrote=judging and run_id is not None and self._wrote(tx, run_id))
            for run_id, _ in triggers.open_of(tx, script, key)
        ]

    def _wrote(self, tx: Transaction, run_id: str) -> bool:
        """Whether a write of a run has happened, or may have."""
        run = runs.get(tx, run_id)
        if run is None:
            return False
        index = self.site.index(tx, run.plan)
        places = {place for place, op in index.ops.items() if writes(op, index.spec(op.op))}
        return bool(places) and any(
            row.place in places and row.state in HAPPENED for row in ops.StoredRows(tx, run_id, run.job).all()
        )

    def _job(self, tx: Transaction, event: Mapping[str, Any] | None, saved: Mapping[str, Any]) -> str:
        """The job of the event's conversation; without one, the job the script was saved in."""
        conversation = event["conversation"] if event is not None else None
        found = triggers.job_of(tx, conversation) if conversation else None
        return found or saved["job"] or ""

    def _begin(
        self,
        tx: Transaction,
        saved: Mapping[str, Any],
        row: Mapping[str, Any],
        now: datetime,
        firing: Firing | None = None,
    ) -> list[Outcome]:
        """Begins the run of a recorded start, of the version current now; or says why it does not start."""
        plan = self.site.index(tx, saved["plan"]).plan
        given = row["names"]
        why, whom, here = self._against(tx, saved, plan, row, given, now)
        _, told = scripts.stands(tx, saved["name"])
        if why is not None:
            triggers.settle(tx, row, "refused", run=None, version=saved["version"], why=why)
            if told != why:
                scripts.tell(tx, saved["name"], why)
                self._tell(tx, saved, row["event"], why, whom, now)
            return []
        if told is not None:
            scripts.tell(tx, saved["name"], None)
        run_id = "r_" + digest(f"{saved['name']} {row['event']}")[:14]
        triggers.settle(tx, row, "live", run=run_id, version=saved["version"], why=row["why"])
        data = {"on": row["why"], "chain": row["chain"]}
        taken: tuple[Taken, ...] = ()
        if firing is not None and firing.due is not None:
            data["due"] = firing.due.isoformat()
        if firing is not None and firing.event is not None:
            # What started the run is the trigger's: no expectation of the run takes it for evidence.
            taken = (Taken(event=firing.event["id"], path=""),)
        outcome = starting.begin(
            tx,
            self.site,
            saved,
            plan,
            run=run_id,
            job=row["job"],
            owner=saved["owner"],
            at=now,
            given=given,
            data=data,
            world=here,
            taken=taken,
        )
        return [outcome]

    def _against(
        self,
        tx: Transaction,
        saved: Mapping[str, Any],
        plan: Plan,
        row: Mapping[str, Any],
        given: Mapping[str, Any],
        now: datetime,
    ) -> tuple[str | None, str, World]:
        """Why a firing does not start its run, whose matter that is (`saver` or `admins`), and the world that its run
        would see."""
        world, owner = self._world(now), saved["owner"]
        if world.policy.paste != "everyone" and world.person(owner) is None:
            return f"its saver {owner} is not here any more", "admins", world
        if not policy.may_paste(world, owner):
            return f"its saver {world.name_of(owner)} may not start scripts any more", "admins", world
        if not policy.reads_job(tx, row["job"], owner):
            return f"its saver {world.name_of(owner)} cannot read the job it would run in", "admins", world
        if row["chain"] >= rules.CHAIN:
            return (
                f"{rules.CHAIN} scripts have started each other in a row, so this one was not started",
                "saver",
                world,
            )
        missing = [f"`{i.name}`" for i in plan.inputs or () if not i.has_default and i.name not in given]
        if missing:
            return f"nothing gives its input {words.either(missing)}", "saver", world
        held = {h["name"]: h["type"] for h in history.held(tx, row["job"])}
        kept = runs.get_job(tx, row["job"])
        here = directory.for_job(world, owner, held, kept["customer"] if kept else None)
        problems = check_plan(plan, self.site.catalog, here)
        return (problems[0].message if problems else None), "saver", here

    def _tell(self, tx: Transaction, saved: Mapping[str, Any], ident: str, why: str, whom: str, now: datetime) -> None:
        """A notice that a script did not start, to its saver; where they cannot do anything about it, to the admins."""
        world = self._world(now)
        name, owner = saved["name"], saved["owner"]
        people = [world.person(one) for one in (*world.policy.admins, owner)]
        if whom == "saver" and (saver := world.person(owner)) is not None:
            people = [saver]
        to = [person for person in people if person is not None] or list(world.people[:1])
        card = {"title": f"`{name}` did not start", "text": f"{why[:1].upper()}{why[1:]}.", "script": name}
        rows = [
            Delivery(
                n=digest(f"{name} {ident}"),
                path="",
                attempt=0,
                kind="notice",
                to=person.email,
                card=card,
                at=now,
            )
            for person in {person.email: person for person in to}.values()
        ]
        outbox.deliver(tx, "", rows, self.site.here(tx, saved["job"] or ""))


def _trigger(body: Mapping[str, Any]) -> Trigger:
    return Trigger(**{("as_" if key == "as" else key): value for key, value in body.items()})


def entry(trigger: Trigger, world: World, now: datetime) -> tuple[dict[str, Any], str | None, datetime | None]:
    """A trigger as a row that is armed: its entry of `on`, what events find it by, when it is due."""
    fields = ("every", "zone", "event", "where", "as_", "command", "script")
    body = {name.rstrip("_"): value for name in fields if (value := getattr(trigger, name)) is not None}
    due = next_firing(trigger.every, trigger.zone, world.workspace, now) if trigger.every is not None else None
    return body, rules.looked_up_by(trigger), due
