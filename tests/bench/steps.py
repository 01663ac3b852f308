"""Chains of steps that return at once, and many starts at the same time."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from pathlib import Path

from bot.domain.errors import WaitonError
from tests.bench.scale import NO_OP
from tests.bench.served import pss
from tests.bench.settle import PARKED, opened, park, percentile, starts, watch

WARM = 10
"""Runs before the clock starts: a process that has just begun prepares its statements."""
CHAIN = "[" + ",".join('{op:"nothing"}' for _ in range(10)) + "]"


async def chain(folder: Path, count: int, in_flight: int) -> float:
    """Steps a second of `count` runs of ten no-op steps, so many runs at a time. The script was checked before, as a
    saved one is."""
    one = await opened(folder, (NO_OP,))
    try:
        start = await starts(one, CHAIN)
        left, runs = iter(range(count)), watch(one)

        async def client() -> None:
            for _ in left:
                assert await runs.ended(await start()) == "done"

        for _ in range(WARM):
            assert await runs.ended(await start()) == "done"
        begun = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(in_flight)))
        return count * 10 / (time.perf_counter() - begun)
    finally:
        await one.stop()


@dataclass(frozen=True, slots=True)
class Burst:
    """`lost`: starts that came to nothing; `grown`: resident bytes above idle; seconds of other people's answers."""

    lost: int
    grown: int
    answer_p50_s: float
    answer_worst_s: float
    took_s: float


async def burst(folder: Path, count: int = 20_000) -> Burst:
    """So many starts handed in at once, while somebody answers other runs."""
    one = await opened(folder)
    try:
        others = await park(one, 400)
        gc.collect()
        idle, peak, lost = pss("self"), 0, 0
        spans: list[float] = []
        done = asyncio.Event()

        async def start() -> None:
            nonlocal lost
            try:
                got = await one.desk.start(PARKED, by="bo@acme.de", job="j")
            except WaitonError:
                lost += 1
            else:
                lost += got.run is None

        async def answers() -> None:
            nonlocal peak
            for run_id in others:
                if done.is_set():
                    return
                begun = time.perf_counter()
                said = await one.desk.answer(run_id, "1", "approve", by="ana@acme.de")
                spans.append(time.perf_counter() - begun)
                assert said.accepted
                peak = max(peak, pss("self"))
                await asyncio.sleep(0.1)

        begun = time.perf_counter()
        answering = asyncio.create_task(answers())
        await asyncio.gather(*(start() for _ in range(count)))
        took = time.perf_counter() - begun
        done.set()
        await answering
        spans.sort()
        return Burst(
            lost=lost,
            grown=max(peak, pss("self")) - idle,
            answer_p50_s=percentile(spans, 50),
            answer_worst_s=spans[-1],
            took_s=took,
        )
    finally:
        await one.stop()
