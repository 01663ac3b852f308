"""`make bench [what …]`: each figure beside its limit, medians of three, ratios within one run, and how costs grow.

S is the settle transaction by the driver alone, C one durable commit by it; both are measured by turns with what is put
against them. A figure in seconds is the machine's: read it beside S and C.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import chats, commands, fanouts, floor, parked, scale, settle, steps

ROUNDS = 3
BAR = 28


@dataclass(slots=True)
class Table:
    """The rows that are printed as they are measured, and what grows with what."""

    folder: Path
    missed: list[str] = field(default_factory=list)
    growth: list[tuple[str, str, list[tuple[str, float]]]] = field(default_factory=list)

    def fresh(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))

    def row(self, what: str, measured: str, must: str, goal: str, met: bool) -> None:
        print(f"{what:<70} {measured:>26}   must {must:<10} goal {goal:<10} {'met' if met else 'MISSED'}", flush=True)
        if not met:
            self.missed.append(what)

    def grows(self, what: str, unit: str, points: list[tuple[str, float]]) -> None:
        self.growth.append((what, unit, points))

    def chart(self) -> None:
        for what, unit, points in self.growth:
            print(f"\n{what}, {unit}")
            most = max(value for _, value in points) or 1
            for label, value in points:
                print(f"  {label:>9} {'█' * max(1, round(BAR * value / most)):<{BAR}} {value:,.3g}")


def three(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(ROUNDS))


def cold(t: Table) -> None:
    took = three(lambda: commands.cold_check(t.fresh()))
    t.row("`waiton check` from a cold process", f"{took:.2f} s", "0.5 s", "0.3 s", took <= 0.5)
    took = three(commands.large_check)
    what = "check of 2,000 ops, 200 with an expression, inside a process"
    t.row(what, f"{took:.2f} s", "0.4 s", "0.15 s", took <= 0.4)
    took = three(lambda: commands.cold_rehearsal(t.fresh()))
    t.row("a fourteen-day onboarding rehearsed, process start included", f"{took:.2f} s", "1 s", "0.7 s", took <= 1)


def answers(t: Table) -> None:
    """S and the whole path by turns, so that both see the same machine; then one at a time."""
    floors: list[float] = []
    commits: list[float] = []
    rates: list[settle.Rate] = []
    alone: list[settle.Rate] = []
    for _ in range(ROUNDS):
        floors.append(floor.settle_rate(t.fresh()))
        rates.append(asyncio.run(settle.settle(t.fresh())))
        commits.append(floor.commit_s(t.fresh()))
        alone.append(asyncio.run(settle.settle(t.fresh(), 400, 1)))
    ratio = statistics.median(r.each_s / s for r, s in zip(rates, floors, strict=True))
    cpu = statistics.median(r.cpu_ms for r in rates)
    said = f"{ratio:.2f} S (S {statistics.median(floors):,.0f}/s)"
    t.row("answers settled, whole path, 32 in flight, against S", said, "0.25 S", "0.5 S", ratio >= 0.25)
    t.row("the same: CPU of one", f"{cpu:.2f} ms", "1.1 ms", "0.6 ms", cpu <= 1.1)
    half, worst = (statistics.median(r.percentile(p) for r in alone) * 1e3 for p in (50, 99))
    said = f"{half:.1f} / {worst:.1f} ms (C {statistics.median(commits) * 1e3:.2f})"
    what = "answer in to next step, one at a time, p50 / p99"
    t.row(what, said, "5 / 25 ms", "2 / 7 ms", half <= 5 and worst <= 25)


def parking(t: Table) -> None:
    """100,000 runs that wait, beside 1,000."""
    few, many = parked.filled(t.fresh(), parked.FEW), parked.filled(t.fresh(), parked.MANY)
    each = many.bytes_each
    t.row("a parked run on disk", f"{each:,.0f} bytes", "800", "500", each <= 800)
    ratios: list[float] = []
    spans: list[float] = []
    points: list[tuple[str, float]] = [("1,000", 0.0), ("100,000", 0.0)]
    # Both kinds by turns, each with runs of its own to answer.
    for turn in range(ROUNDS):
        small = parked.among(few, few.ids[turn * 300 : turn * 300 + 250], 32)
        large = parked.among(many, many.ids[turn * 2000 : turn * 2000 + 250], 32)
        ratios.append(small.each_s / large.each_s)
        slow, alone = (
            parked.among(of, of.ids[turn * step + 250 : turn * step + 300], 1)
            for of, step in ((few, 300), (many, 2000))
        )
        spans.append(alone.percentile(50) / slow.percentile(50))
        points = [("1,000", small.cpu_ms), ("100,000", large.cpu_ms)]
    grown, later = statistics.median(ratios), statistics.median(spans)
    said = f"{grown:.2f} and {later:.2f} times"
    what = "answers settled, and one at a time: 100,000 waiting against 1,000"
    t.row(what, said, "1.25", "1.10", grown <= 1.25 and later <= 1.25)
    t.grows("CPU of one answer with so many runs waiting", "ms", points)
    empty, full = parked.idle(few.folder), parked.idle(many.folder)
    bytes_each = max(0.0, (full.rss - empty.rss) / (parked.MANY - parked.FEW))
    t.row("a parked run in memory", f"{bytes_each / 1024:.3f} KB", "0.2 KB", "0", bytes_each < 205)
    t.row("idle CPU with 100,000 parked", f"{full.idle:.1%} of a core", "1 %", "0.3 %", full.idle < 0.01)
    said = f"{empty.ready_cpu_s:.2f} s, {empty.rss / 1e6:.0f} MB"
    good = empty.ready_cpu_s <= 1.5 and empty.rss <= 110e6
    t.row("process start to ready: CPU, memory", said, "1.5 s, 110", "0.8 s, 90", good)
    took = three(lambda: parked.restarted(many.folder, many.ids[-3000:]))
    t.row("kill -9, restart with 100,000 parked: answers taken again", f"{took:.2f} s", "2.5 s", "1.0 s", took <= 2.5)


def deadlines(t: Table) -> None:
    found = [parked.deadlines(t.fresh()) for _ in range(ROUNDS)]
    half, worst = (statistics.median(getattr(f, name) for f in found) for name in ("p50_s", "p99_s"))
    odd = sum(f.early + f.twice for f in found)
    said = f"{half:.2f} / {worst:.2f} s, {odd} odd"
    what = "5,000 deadlines in one second: lateness p50 / p99, early or twice"
    t.row(what, said, "1.5 / 4 s", "0.5 / 1.5", half <= 1.5 and worst <= 4 and not odd)


def maps(t: Table) -> None:
    sizes = (1_000, 10_000)
    rates = {size: three(lambda size=size: asyncio.run(scale.items_of_a_map(t.fresh(), size))) for size in sizes}
    rate, times = rates[10_000], rates[1_000] / rates[10_000]
    t.row("a map of 10,000 no-op items", f"{rate:,.0f} items/s", "1,500/s", "4,000/s", rate >= 1500)
    t.row("an item of a map of 10,000 against one of 1,000", f"{times:.2f} times", "1.2", "1.05", times <= 1.2)
    t.grows("one no-op item of a map of so many", "ms", [(f"{n:,}", 1e3 / rates[n]) for n in sizes])
    spans = {
        size: three(lambda size=size: asyncio.run(scale.answers_in_a_map(t.fresh(), size))) * 1e3
        for size in (10, 1_000, 10_000)
    }
    times = spans[10_000] / spans[10]
    said = f"{times:.2f} times ({spans[10]:.1f} ms)"
    t.row("one answer of a map of 10,000 asks against one of 10", said, "1.5", "1.1", times <= 1.5)
    t.grows("one answer of a map of so many asks", "ms", [(f"{n:,}", span) for n, span in spans.items()])
    few, many = (1e3 * span for span in asyncio.run(scale.events_among(t.fresh(), t.fresh(), (10, 100_000))))
    times = many / few
    said = f"{times:.2f} times ({few:.1f} ms)"
    t.row("one event by `from` among 100,000 armed against among 10", said, "1.5", "1.1", times <= 1.5)
    t.grows("one event by `from` among so many armed expectations", "ms", [("10", few), ("100,000", many)])


def chains(t: Table) -> None:
    one = three(lambda: asyncio.run(steps.chain(t.fresh(), 60, 1)))
    many = three(lambda: asyncio.run(steps.chain(t.fresh(), 400, 32)))
    said = f"{one:,.0f} / {many:,.0f} steps/s"
    t.row(
        "a chain of 10 no-op steps: one run / many runs", said, "600/1,200", "1,500/3,000", one >= 600 and many >= 1200
    )


def burst(t: Table) -> None:
    found = asyncio.run(steps.burst(t.fresh()))
    said = f"{found.lost} lost, +{found.grown / 1e6:.0f} MB, {found.answer_worst_s:.2f} s"
    good = not found.lost and found.grown <= 100e6 and found.answer_worst_s <= 5
    t.row("20,000 starts at once: lost, memory, other answers at worst", said, "0, 100, 5", "1 s", good)


def chat(t: Table) -> None:
    found = [asyncio.run(chats.acknowledged(t.fresh())) for _ in range(ROUNDS)]
    half, worst = (statistics.median(getattr(f, name) for f in found) * 1e3 for name in ("p50_s", "p99_s"))
    what = "tap in to Slack acknowledged, 50 a second, 1,000 runs waiting, p50 / p99"
    t.row(what, f"{half:.1f} / {worst:.1f} ms", "50 ms", "", worst < 50)
    count = asyncio.run(chats.edits(t.fresh()))
    t.row("edits of a live message while 200 ops settle", f"{count}", "3", "", count <= 3)


def fanning(t: Table) -> None:
    """The SDK alone and the product by turns, against one server with 100 ms of latency."""
    with fanouts.served() as url:
        found = [asyncio.run(fanouts.spread(t.fresh(), url)) for _ in range(ROUNDS)]
    times = statistics.median(f.whole_s / f.alone_s for f in found)
    alone = statistics.median(f.alone_s for f in found)
    what = "a fan-out of 200 elements, 32 at once, 100 ms each, against the SDK alone"
    t.row(what, f"{times:.2f} times ({alone:.2f} s)", "1.15", "", times <= 1.15)
    own = [fanouts.own(t.fresh()) for _ in range(ROUNDS)]
    cpu, grown = statistics.median(o.cpu_ms for o in own), max(o.grown for o in own)
    t.row("the engine's own cost of an element", f"{cpu:.2f} ms", "0.6 ms", "", cpu < 0.6)
    t.row("memory of 10,000 elements", f"{grown / 2**20:.0f} MiB", "300 MiB", "", grown < 300 * 2**20)


PARTS: dict[str, Callable[[Table], None]] = {
    "cold": cold,
    "answers": answers,
    "chains": chains,
    "maps": maps,
    "deadlines": deadlines,
    "burst": burst,
    "parked": parking,
    "chat": chat,
    "fanout": fanning,
}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="waiton-bench-", dir="/var/tmp") as name:
        table = Table(folder=Path(name))
        for part in chosen:
            PARTS[part](table)
        table.chart()
    print(f"\n{len(table.missed)} missed, in {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
