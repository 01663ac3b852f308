"""Answers settled over the whole path: the adapter's function, the commit, the next op started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.domain.record import RunRow
from bot.language.script import examine
from bot.people import directory
from bot.runtime.clock import SystemClock
from bot.runtime.commit import Outcome, accept
from bot.runtime.desk import new_run_id
from bot.runtime.files import MemoryFiles
from bot.runtime.starting import keep_told
from bot.runtime.tools import Tool, Tools
from bot.wiring import Product
from store import runs
from store.dialect import Transaction
from tests.runtime.world import START, settings


@dataclass(slots=True)
class Watch:
    """Who waits for which run to end, told by the commit that ends it."""

    ends: dict[str, asyncio.Future[str]]

    async def ended(self, run_id: str) -> str:
        """The state of a run as it ends; of one that has ended already."""
        future = self.ends.setdefault(run_id, asyncio.get_running_loop().create_future())
        return await asyncio.wait_for(future, 300)


def watch(one: Product) -> Watch:
    """Hears of every run that ends from now on."""
    found = Watch(ends={})
    told = one.committer.after

    def after(outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            for run_id, step in outcome.steps():
                if step.ended and step.run is not None:
                    future = found.ends.setdefault(run_id, asyncio.get_running_loop().create_future())
                    if not future.done():
                        future.set_result(step.run.state)
        told(outcomes)

    one.committer.after = after
    return found


PARKED = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > {scope}\n"


@dataclass(frozen=True, slots=True)
class Rate:
    """Settled a second, CPU milliseconds of one, and the seconds that each took, sorted."""

    each_s: float
    cpu_ms: float
    spans: list[float]

    def percentile(self, percent: float) -> float:
        return percentile(self.spans, percent)


def percentile(ordered: list[float], percent: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


async def opened(folder: Path, tools: tuple[Tool, ...] = ()) -> Product:
    """A product on the database of this folder, with a job `j`."""
    one = Product(settings(folder), clock=SystemClock(), tools=Tools(tools), files=MemoryFiles())
    await one.committer.start()
    await one.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
    await one.start()
    return one


async def starts(one: Product, script: str) -> Callable[..., Awaitable[str]]:
    """What starts a run of a script that is checked once, as of `created` (now), and gives its id."""
    world = await one.desk.world()
    seen = await asyncio.to_thread(examine, script, one.catalog, directory.for_job(world, "bo@acme.de", {}, None))
    assert seen.plan is not None and not seen.problems, seen.rendered()
    plan = seen.plan
    told = await one.committer.write(
        lambda tx: keep_told(tx, seen.preflight, seen.notes, source=script, surface="markdown")
    )

    async def start(created: datetime | None = None) -> str:
        run_id = new_run_id(one.clock.now())

        def write(tx: Transaction) -> Outcome:
            row = RunRow(
                id=run_id, job="j", owner="bo@acme.de", plan="", created=created or one.clock.now(), told=told,
                ends=seen.preflight["latest_end"],
            )  # fmt: skip
            return accept(tx, one.site, row, plan)

        await one.committer.write(write)
        return run_id

    return start


async def park(one: Product, count: int, script: str = PARKED) -> list[str]:
    """Starts so many runs of one script, many to a commit."""
    start = await starts(one, script)
    ids: list[str] = []
    for at in range(0, count, 500):
        ids += await asyncio.gather(*(start() for _ in range(min(500, count - at))))
    return ids


async def answered(one: Product, waiting: Iterator[str], in_flight: int) -> Rate:
    """Answers these runs' first ops, so many at a time."""
    spans: list[float] = []

    async def client() -> None:
        for run_id in waiting:
            begun = time.perf_counter()
            said = await one.desk.answer(run_id, "1", "approve", by="ana@acme.de")
            spans.append(time.perf_counter() - begun)
            assert said.accepted, said

    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(in_flight)))
    took, used = time.perf_counter() - start, time.process_time() - cpu
    return Rate(each_s=len(spans) / took, cpu_ms=used / len(spans) * 1000, spans=sorted(spans))


async def settle(folder: Path, count: int = 2000, in_flight: int = 32) -> Rate:
    """Answers `count` runs that a fresh database holds."""
    one = await opened(folder)
    try:
        ids = await park(one, count)
        got = await answered(one, iter(ids), in_flight)
        assert (await one.desk.show(ids[-1]))["state"] == "done"
        return got
    finally:
        await one.stop()
