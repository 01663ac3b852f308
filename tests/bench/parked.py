"""What a run that waits costs, and what many of them cost the others: bytes, memory, idle CPU, a restart, the clock."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.runtime.commit import Outcome
from bot.wiring import Product
from tests.bench.served import Measured
from tests.bench.settle import Rate, answered, opened, park, percentile, starts

MANY, FEW = 100_000, 1_000
DEADLINES = 5_000
MISSED = (
    "- scope = ask @ana approve decline within 1h\n  > Extend the pilot?\n"
    "  - miss\n    - say\n      > No answer.\n- say\n  > {scope}\n"
)


def size(folder: Path) -> int:
    """Bytes of the database's pages in use."""
    connection = sqlite3.connect(folder / "waiton.db")
    try:
        connection.execute("pragma wal_checkpoint(truncate)")
        pages, free, page = (
            connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * page)
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with parked runs: bytes of one on disk, seconds of starting one, ids of the latest."""

    folder: Path
    bytes_each: float
    start_s: float
    ids: list[str]


def filled(folder: Path, count: int) -> Filled:
    """Parks so many runs."""

    async def fill() -> tuple[float, float, list[str]]:
        one = await opened(folder)
        try:
            await park(one, 200)
            await one.committer.write(lambda tx: None)
            before = size(folder)
            begun = time.perf_counter()
            ids = await park(one, count)
            took = time.perf_counter() - begun
            return (size(folder) - before) / count, took / count, ids
        finally:
            await one.stop()

    each, start_s, ids = asyncio.run(fill())
    return Filled(folder=folder, bytes_each=each, start_s=start_s, ids=ids)


def among(of: Filled, ids: list[str], in_flight: int) -> Rate:
    """Answers some of the parked runs, the others waiting."""

    async def go() -> Rate:
        one = await opened(of.folder)
        try:
            return await answered(one, iter(ids), in_flight)
        finally:
            await one.stop()

    return asyncio.run(go())


@dataclass(frozen=True, slots=True)
class Idle:
    """A process that serves and does nothing: seconds and CPU seconds to ready, resident bytes, CPU of a core."""

    ready_s: float
    ready_cpu_s: float
    rss: int
    idle: float


def idle(folder: Path, seconds: float = 5.0) -> Idle:
    process = Measured(folder)
    try:
        ready_s = process.begin()
        ready_cpu_s, rss = process.cpu_s(), process.rss()
        time.sleep(1.0)
        before = process.cpu_s()
        time.sleep(seconds)
        used = process.cpu_s() - before
        return Idle(ready_s=ready_s, ready_cpu_s=ready_cpu_s, rss=rss, idle=used / seconds)
    finally:
        process.kill()


def restarted(folder: Path, ids: list[str]) -> float:
    """Seconds from the start of a process after a kill -9 until an answer to any of these runs is taken."""
    process = Measured(folder)
    process.make_tokens()
    try:
        process.begin()
        process.kill()
        begun = time.perf_counter()
        process.begin()
        for run_id in (ids[0], ids[len(ids) // 2], ids[-1]):
            process.answer(run_id)
        return time.perf_counter() - begun
    finally:
        process.kill()


@dataclass(frozen=True, slots=True)
class Lateness:
    p50_s: float
    p99_s: float
    early: int
    twice: int


def deadlines(folder: Path, count: int = DEADLINES) -> Lateness:
    """So many windows that end within one second, each with a miss branch that says something: how late the
    commits are, by the machine's clock."""

    async def go() -> Lateness:
        one = await opened(folder)
        late: list[float] = []
        seen: dict[str, int] = {}
        early = 0
        dues: dict[str, float] = {}
        committed, all_seen = one.committer.after, asyncio.Event()

        def after(outcomes: list[Outcome]) -> None:
            nonlocal early
            now = one.clock.now().timestamp()
            for outcome in outcomes:
                for run, step in outcome.steps():
                    if any(d.kind == "say" for d in step.deliveries):
                        seen[run] = seen.get(run, 0) + 1
                        late.append(now - dues[run])
                        early += now < dues[run]
            if len(seen) == count:
                all_seen.set()
            committed(outcomes)

        one.committer.after = after
        try:
            await _windows(one, count, dues)
            await asyncio.wait_for(all_seen.wait(), 120)
            await asyncio.sleep(0.5)  # whatever comes twice
            ordered = sorted(late)
            return Lateness(
                p50_s=percentile(ordered, 50),
                p99_s=percentile(ordered, 99),
                early=early,
                twice=sum(n - 1 for n in seen.values()),
            )
        finally:
            await one.stop()

    return asyncio.run(go())


async def _windows(one: Product, count: int, dues: dict[str, float]) -> None:
    """Parks runs whose windows end evenly over one second, some seconds from now: they are accepted as of an hour
    before that."""
    start = await starts(one, MISSED)
    begun = one.clock.now()
    ahead = timedelta(seconds=2 + count / 500)
    ends = [begun + ahead + timedelta(seconds=n / count) for n in range(count)]
    for at in range(0, count, 500):
        some = ends[at : at + 500]
        ids = await asyncio.gather(*(start(end - timedelta(hours=1)) for end in some))
        dues.update(zip(ids, (end.timestamp() for end in some), strict=True))
    assert one.clock.now() < begun + ahead, "parking took longer than the windows"
