"""What the terminal does with saved scripts: keeps, compares, brings back, pauses and starts them."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any

from bot.domain.catalog import World
from bot.domain.errors import WaitonError
from bot.engine import words
from bot.exits import FINE, REFUSED
from bot.listings import told
from bot.terminal import JOB, acting, product, work_here
from bot.wiring import Product
from store import runs
from store.dialect import Transaction


async def list_scripts(find: str, as_json: bool) -> int:
    """The saved scripts: what starts each, when next, how its last run stands."""
    async with product() as one:
        found = await one.desk.saved.find(await acting(one.desk, None), find)
        world, now = await one.desk.world(), one.clock.now()
        none = f"no saved script has `{find}`" if find else "no saved scripts; `waiton scripts save FILE --name NAME`"
        return told([_plain(s) for s in found], as_json, lambda s: _line(s, world, now), none)


def _plain(script: dict[str, Any]) -> dict[str, Any]:
    last = script["last"]
    return {
        **{k: v.isoformat() if isinstance(v, datetime) else v for k, v in script.items()},
        "last": {**last, "at": last["at"].isoformat()} if last else None,
    }


def _line(script: dict[str, Any], world: World, now: datetime) -> str:
    starts = "paused" if script["paused"] else ", ".join(script["on"]).replace("`", "") or "by hand"
    parts = [f"{script['name']:<24} version {script['version']:<3} {starts}"]
    if script["next"]:
        parts.append(f"next {words.clock(datetime.fromisoformat(script['next']), world, now)}")
    if script["last"]:
        at = words.clock(datetime.fromisoformat(script["last"]["at"]), world, now)
        parts.append(f"last {at}, {script['last']['state']}")
    return " · ".join(parts)


async def save(text: bytes, name: str | None, job: str | None, as_: str | None) -> int:
    """Saves a script; refused, its problems are told and nothing is stored."""
    async with product() as one:
        me = await acting(one.desk, as_)
        where = await _job(one, job)
        seen, saved = await one.desk.saved.save(text, by=me, job=where, name=name)
        if saved is None:
            print(seen.rendered(), file=sys.stderr)
            return REFUSED
        return await _saved(one, saved, me)


async def save_run(run_id: str, name: str, as_: str | None) -> int:
    """Saves what a run was started with."""
    async with product() as one:
        me = await acting(one.desk, as_)
        return await _saved(one, await one.desk.saved.save_run(run_id, name, by=me), me)


async def _saved(one: Product, saved: dict[str, Any], me: str) -> int:
    shown = await one.desk.saved.show(saved["name"], me)
    line = f"saved as {saved['name']}, version {saved['version']}"
    if shown["on"]:
        line += f"; starts by {', '.join(shown['on']).replace('`', '')}"
    if shown["next"]:
        line += f", next {words.clock(shown['next'], await one.desk.world(), one.clock.now())}"
    print(line)
    return FINE


async def show(name: str, version: int | None, as_: str | None) -> int:
    """A version's text, as pasted or on a surface; without `as_` how the script stands comes first."""
    async with product() as one:
        shown = await one.desk.saved.show(name, await acting(one.desk, None), version)
        world, now = await one.desk.world(), one.clock.now()
        if as_ is not None:
            print(shown["as_json" if as_ == "json" else "markdown"].rstrip("\n"))
            return FINE
        rows = [
            ("version", f"{shown['version']}, saved by {shown['owner']} {words.clock(shown['saved'], world, now)}"),
            *(("starts", on.replace("`", "")) for on in shown["on"]),
        ]
        if shown["paused"]:
            rows.append(("paused", "nothing but people starts it; `waiton scripts resume` ends that"))
        if shown["next"]:
            rows.append(("next", words.clock(shown["next"], world, now)))
        if shown["told"]:
            rows.append(("stopped", shown["told"].replace("`", "")))
        for given in shown["inputs"] or ():
            default = f" = {json.dumps(given.default, ensure_ascii=False)}" if given.has_default else ""
            rows.append(("input", f"{given.name}: {given.type}{default}" + (f"  {given.description or ''}".rstrip())))
        for start in shown["starts"][:5]:
            at = words.clock(start["at"], world, now)
            rows.append(("started", f"{at}  {start['state']}  {start['run'] or ''}  {start['why'] or ''}".rstrip()))
        print(f"{shown['name']}\n" + "\n".join(f"  {label:<9}{said}" for label, said in rows))
        print(f"\n{shown['text'].rstrip()}")
        return FINE


async def diff(name: str, old: int | None, new: int | None) -> int:
    """What has changed between two versions, as a unified diff."""
    async with product() as one:
        lines = await one.desk.saved.diff(name, old, new)
        print("\n".join(lines) if lines else "the texts of both are the same")
        return FINE


async def rollback(name: str, version: int, as_: str | None) -> int:
    """An old version again, as a new one."""
    async with product() as one:
        me = await acting(one.desk, as_)
        saved = await one.desk.saved.rollback(name, version, by=me)
        print(f"{name}: version {saved['version']} is version {version} again")
        return FINE


async def pause(name: str, paused: bool, as_: str | None) -> int:
    """Nothing but people starts it; or what starts it does so again."""
    async with product() as one:
        me = await acting(one.desk, as_)
        changed = await one.desk.saved.pause(name, paused, by=me)
        stands = "paused" if paused else "started by its triggers"
        print(f"{name} is {'now ' if changed else ''}{stands}" + ("" if changed else " already. Nothing changed"))
        return FINE


async def run(name: str, inputs: dict[str, Any], job: str | None, as_: str | None, *, detach: bool) -> int:
    """Starts a saved script, asking at the prompt what is asked of this person."""
    async with product(here=not detach) as one:
        me = await acting(one.desk, as_)
        where = await _job(one, job)
        problems, run_id = await one.desk.run_saved(name, by=me, job=where, inputs=inputs)
        if run_id is None:
            for problem in problems:
                mend = f"\n  = {problem.mend}" if problem.mend else ""
                print(f"{name}: {problem.message} [{problem.code}]{mend}", file=sys.stderr)
            return REFUSED
        if detach:
            print(run_id)
            return FINE
        return await work_here(one, run_id, me)


async def _job(one: Product, job: str | None) -> str:
    """The job named, else this terminal's."""

    def write(tx: Transaction) -> bool:
        if job is None:
            runs.add_job(tx, JOB, "Terminal", f"web:{JOB}", one.clock.now())
        return job is None or runs.get_job(tx, job) is not None

    if not await one.committer.write(write):
        raise WaitonError(f"there is no job `{job}`; `waiton jobs` lists them")
    return job or JOB
