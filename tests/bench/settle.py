"""Answers settled over the whole path: the adapter's function, the commit, the next op started."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bot.domain.plan import Plan
from bot.domain.record import RunRow
from bot.language.script import examine
from bot.people import directory
from bot.runtime.clock import SystemClock
from bot.runtime.commit import accept
from bot.runtime.files import MemoryFiles
from bot.runtime.tools import Tools
from bot.wiring import Product
from store import runs
from tests.runtime.world import START, settings

PARKED = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > {scope}\n"


async def park(one: Product, count: int) -> list[str]:
    """Starts so many runs of one ask and one dependent say, many to a commit."""
    world = await one.desk.world()
    seen = await asyncio.to_thread(examine, PARKED, one.catalog, directory.for_job(world, "bo@acme.de", {}, None))
    assert seen.plan is not None and not seen.problems, seen.rendered()
    plan: Plan = seen.plan
    ids = [f"b{n:07}" for n in range(count)]

    def start(run_id: str) -> RunRow:
        return RunRow(id=run_id, job="j", owner="bo@acme.de", plan="", created=one.clock.now())

    for at in range(0, count, 500):
        await asyncio.gather(*(
            one.committer.write(lambda tx, r=r: accept(tx, one.site, start(r), plan)) for r in ids[at : at + 500]
        ))  # fmt: skip
    return ids


async def opened(folder: Path) -> Product:
    one = Product(settings(folder), clock=SystemClock(), tools=Tools(()), files=MemoryFiles())
    await one.committer.start()
    await one.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
    await one.start()
    return one


async def settle(folder: Path, count: int = 2000, in_flight: int = 32) -> tuple[float, float, list[float]]:
    """Answers a second, CPU milliseconds each, and each answer's own seconds."""
    one = await opened(folder)
    try:
        ids = await park(one, count)
        waiting = iter(ids)
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
        assert (await one.desk.show(ids[-1]))["state"] == "done"
        return count / took, used / count * 1000, spans
    finally:
        await one.stop()
