"""*Rehearse* in the composer: every branch of a text, walked in virtual time; nothing is stored or sent.

The walk runs on a thread with a loop of its own, so that the room goes on meanwhile, and ends after a bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bot.domain.catalog import World
from bot.domain.ids import place_of
from bot.domain.plan import Plan
from bot.engine import words
from bot.language.write import as_json
from bot.rehearse.rehearse import walked
from bot.rehearse.scenario import Scenario, build, of_workspace
from bot.runtime.desk import Desk
from bot.runtime.files import FolderFiles, ShadowFiles
from bot.server import phrases
from store import history, runs, scripts
from store.dialect import Transaction

PATIENCE_S = 8.0
"""How long one walk may take; what was found by then is shown."""
SHOWN = 4
"""Messages of one outcome that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One way through: what was decided, how it ends, who is told what, what is written, how long it takes."""

    way: Sequence[tuple[str, str]]
    """What is decided about, and how."""
    state: str
    error: str | None
    told: Sequence[tuple[str, str]]
    more: int
    writes: Sequence[str]
    took: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Every ending that was found. `cut`: there are more; `late`: time ran out. `why`: there is nothing to walk."""

    endings: Sequence[Ending] = ()
    cut: bool = False
    late: bool = False
    why: str | None = None

    @property
    def summary(self) -> str:
        count = len(self.endings)
        said = f"{count} way{'' if count == 1 else 's'} through it"
        return said + (
            "; time ran out before the others" if self.late else f"; these are the first {count}" if self.cut else ""
        )


async def rehearsal(
    desk: Desk,
    world: World,
    text: str,
    *,
    by: str,
    job: str | None,
    inputs: Mapping[str, Any] | None,
    turn: asyncio.Semaphore,
) -> Rehearsal:
    """Walks the branches of a text as it would start here. `turn`: one walk at a time has the processor."""
    seen = await desk.check(text, by=by, job=job, inputs=inputs)
    if seen.refused or seen.plan is None:
        return Rehearsal(why="There is something to mend first; nothing was rehearsed.")
    scenario = await desk.committer.read(_scenario, desk, world, by, job, inputs)
    async with turn:
        until = time.monotonic() + PATIENCE_S
        _, found = await asyncio.to_thread(
            lambda: asyncio.run(walked(text, scenario, lambda: time.monotonic() < until))
        )
    if "outcomes" not in found:
        return Rehearsal(why="There is something to mend first; nothing was rehearsed.")
    endings = [_ending(one, seen.plan, desk, world) for one in found["outcomes"]]
    return Rehearsal(endings=endings, cut=found["cut"], late=found["cut"] and time.monotonic() >= until)


def _scenario(
    tx: Transaction, desk: Desk, world: World, by: str, job: str | None, inputs: Mapping[str, Any] | None
) -> Scenario:
    """This workspace, with its people, tools, policy and scripts, and the job with its names and files."""
    kept = runs.get_job(tx, job) if job else None
    saved: dict[str, str] = {}
    for name, _ in scripts.names(tx):
        row = scripts.get(tx, name)
        if row is not None:
            saved[name] = as_json(desk.site.index(tx, row["plan"]).plan)
    told = of_workspace(build({}), world, [spec for spec in desk.catalog.ops.values() if spec.tool])
    return replace(
        told,
        now=world.now,
        owner=by,
        policy=world.policy,
        bindings=history.bindings(tx, job) if job else {},
        customer=kept["customer"] if kept else None,
        inputs=dict(inputs or {}),
        saved=saved,
        files=ShadowFiles(under=FolderFiles(desk.settings.files), job=job or ""),
    )


def _ending(one: Mapping[str, Any], plan: Plan, desk: Desk, world: World) -> Ending:
    called = {name: phrases.phrase(op, world) for op, _ in plan.walk() for name in (op.id, op.place) if name}
    writes = [
        tool for tool in dict.fromkeys(one["calls"]) if (spec := desk.catalog.get(tool)) is None or not spec.read_only
    ]
    told = [(_whom(d["to"], world), phrases.short(d["text"], 90)) for d in one["told"]]
    return Ending(
        way=[_decided(way, called) for way in one["way"]],
        state=one["state"],
        error=one["error"].removesuffix(": rehearsed") if one["error"] else None,
        told=told[:SHOWN],
        more=max(0, len(told) - SHOWN),
        writes=writes,
        took=words.span(timedelta(seconds=one["took_s"])) if one["took_s"] else "at once",
    )


def _decided(way: str, called: Mapping[str, str]) -> tuple[str, str]:
    about, _, pick = way.partition(": ")
    return called.get(place_of(about), about), pick.removeprefix("the agent: ")


def _whom(to: str, world: World) -> str:
    return "everybody" if to == "job" else words.called(to, world)
