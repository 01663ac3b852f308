"""What the terminal lists: runs, jobs, events, people and what waits on them; and the record, out and verified."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from bot.domain.catalog import World
from bot.domain.errors import WaitonError
from bot.domain.record import RunRow
from bot.domain.values import plain
from bot.engine import words
from bot.exits import FINE, SURROUNDINGS
from bot.terminal import acting, product, short
from bot.wiring import Product
from store import history, inbox, outbox, runs
from store.dialect import Transaction

MOST = 1000
"""Rows of a list."""


def told(found: list[dict[str, Any]], as_json: bool, line: Callable[[dict[str, Any]], str], none: str) -> int:
    """A list as JSON, or a line each; what to do where there is nothing."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        for one in found:
            print(line(one).rstrip())
        if not found:
            print(none)
    return FINE


def _at(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


class _When:
    """Instants of a list, as people of the workspace read them."""

    def __init__(self, one: Product, world: World) -> None:
        self.now = one.clock.now()
        self.world = world

    def __call__(self, stored: str) -> str:
        return words.clock(datetime.fromisoformat(stored), self.world, self.now)


async def list_runs(state: str | None, as_json: bool) -> int:
    async with product() as one:
        found = [await one.desk.show_short(run) for run in await one.desk.find_runs(state=state)]
        when = _When(one, await one.desk.world())
        return told(
            found,
            as_json,
            lambda r: (
                f"{r['id']}  {when(r['created']):>12}  {r['state']:<9} {r['owner']}  {_of_script(r)}"
                f"{r['line'] or r['error'] or ''}"
            ),
            "no runs yet; `waiton run FILE` starts one",
        )


def _of_script(run: dict[str, Any]) -> str:
    """Which saved script a run is of, and which version of it."""
    return f"{run['script']} version {run['version']}  " if run["version"] is not None else ""


async def list_jobs(as_json: bool) -> int:
    async with product() as one:

        def read(tx: Transaction) -> list[dict[str, Any]]:
            return [
                {
                    "id": job["id"],
                    "title": job["title"],
                    "conversation": job["conversation"],
                    "created": _at(job["created"]),
                    "private": job["private"],
                    "runs": len(runs.find(tx, job_id=job["id"], limit=MOST)),
                    "held": history.held(tx, job["id"]),
                }
                for job in runs.jobs(tx)
            ]

        found = await one.committer.read(read)
        when = _When(one, await one.desk.world())
        return told(
            found,
            as_json,
            lambda j: f"{j['id']:<24} {when(j['created']):>12}  {j['runs']:>4} runs  {j['title']}",
            "no jobs yet; a script that runs makes one",
        )


async def list_events(stream: str | None, as_json: bool) -> int:
    async with product() as one:
        rows = await one.committer.read(lambda tx: inbox.find(tx, stream=stream, limit=MOST))
        found = [
            {
                "stream": e["stream"],
                "id": e["id"].partition("/")[2],
                "from": e["from"],
                "conversation": e["conversation"],
                "at": e["at"],
                "event": plain(e["event"]),
            }
            for e in rows
        ]
        when = _When(one, await one.desk.world())
        return told(
            found,
            as_json,
            lambda e: f"{when(e['at']):>12}  {e['stream']:<24} {e['from'] or ''}  {short(e['event'])}",
            "no events yet; POST /hooks/STREAM sends one",
        )


async def list_people(as_json: bool) -> int:
    async with product() as one:
        world = await one.desk.world()
        found = [
            {
                "email": p.email,
                "name": p.name,
                "timezone": p.timezone,
                "roles": [r for r, members in world.roles.items() if p.email in members],
            }
            for p in world.people
        ]
        return told(found, as_json, lambda p: f"{p['email']:<28} {p['name']:<16} {', '.join(p['roles'])}", "nobody")


async def list_roles(as_json: bool) -> int:
    async with product() as one:
        world = await one.desk.world()
        found = [{"name": name, "members": list(members)} for name, members in sorted(world.roles.items())]
        return told(
            found,
            as_json,
            lambda r: f"{r['name']:<20} {', '.join(r['members'])}",
            "no roles; [roles] in the settings, or `waiton people add EMAIL --role NAME`",
        )


async def list_inbox(as_: str | None, as_json: bool) -> int:
    async with product() as one:
        me = await acting(one.desk, as_)
        rows = await one.committer.read(lambda tx: outbox.find(tx, to=me, open_cards=True, limit=MOST))
        return _cards(rows, as_json, _When(one, await one.desk.world()), "nothing waits on you")


async def list_approvals(as_json: bool) -> int:
    async with product() as one:
        rows = await one.committer.read(lambda tx: outbox.find(tx, open_cards=True, limit=MOST))
        asked = [row for row in rows if row["kind"] == "approval"]
        return _cards(asked, as_json, _When(one, await one.desk.world()), "no approval is open")


def _cards(rows: Iterable[dict[str, Any]], as_json: bool, when: _When, none: str) -> int:
    """Open cards: what is asked, of whom, since when, and what can be answered."""
    found = [
        {
            "run": r["run"],
            "op": r["path"],
            "kind": r["kind"],
            "to": r["to"],
            "since": r["at"].isoformat(),
            "title": r["card"].get("title"),
            "text": r["card"].get("text"),
            "choices": r["card"].get("buttons"),
        }
        for r in rows
    ]

    def line(card: dict[str, Any]) -> str:
        said = ": ".join(part for part in (card["title"], short(card["text"] or "")) if part)
        buttons = "".join(f"  [{label}]" for label in card["choices"] or [])
        return f"{card['run']}  {card['op']:<8} since {when(card['since'])}: {said}{buttons}"

    return told(found, as_json, line, none)


# --- the record -----------------------------------------------------------------------------------------------------
async def export(job: str) -> int:
    """A job's record as JSON lines: every entry of every run's history, oldest run first."""
    async with product() as one:
        for run in await one.committer.read(_runs_of, job):
            for entry in await one.committer.read(history.of_run, run.id):
                row = {"run": run.id, "owner": run.owner, **entry, "at": _at(entry["at"]), "data": plain(entry["data"])}
                print(json.dumps(row, ensure_ascii=False))
        return FINE


async def verify(job: str, as_json: bool) -> int:
    """Whether every entry of a job's record fits the one before it; 3 where one does not."""
    async with product() as one:

        def read(tx: Transaction) -> list[dict[str, Any]]:
            return [{"run": run.id, "entries": run.n, "broken_at": _broken(tx, run)} for run in _runs_of(tx, job)]

        found = await one.committer.read(read)
        broken = [run for run in found if run["broken_at"] is not None]
        if as_json:
            print(json.dumps(found, indent=1))
        for run in broken if not as_json else []:
            print(f"waiton: {run['run']}: entry {run['broken_at']} was changed after it was written", file=sys.stderr)
        if not as_json and not broken:
            print(f"{len(found)} runs, {sum(run['entries'] for run in found)} entries: the chain holds")
        return SURROUNDINGS if broken else FINE


def _broken(tx: Transaction, run: RunRow) -> int | None:
    """The first entry that does not fit; the run's own row says how many there are and the last one's hash."""
    at = history.verify(tx, run.id)
    if at is not None:
        return at
    entries = history.of_run(tx, run.id)
    whole = len(entries) == run.n and (not entries or entries[-1]["hash"] == run.hash)
    return None if whole else len(entries) + 1


def _runs_of(tx: Transaction, job: str) -> list[RunRow]:
    found = runs.find(tx, job_id=job, limit=100_000)
    if not found and runs.get_job(tx, job) is None:
        raise WaitonError(f"there is no job `{job}`; `waiton jobs` lists them")
    return found[::-1]
