"""`make bench`: each figure beside its limit, medians of three, ratios within one run.

S is the settle transaction by the driver alone, measured in the same minute as what is put against it.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import commands, floor, scale, settle

ROUNDS = 3


def three(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(ROUNDS))


def row(what: str, measured: str, must: str, goal: str, met: bool) -> None:
    print(f"{what:<66} {measured:>22}   must {must:<9} goal {goal:<9} {'met' if met else 'MISSED'}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="waiton-bench-") as name:
        folder = Path(name)
        took = three(lambda: commands.cold_check(_fresh(folder)))
        row("`waiton check` from a cold process", f"{took:.2f} s", "0.5 s", "0.3 s", took <= 0.5)
        took = three(commands.large_check)
        row(
            "check of 2,000 ops, 200 with an expression, inside a process",
            f"{took:.2f} s",
            "0.4 s",
            "0.15 s",
            took <= 0.4,
        )
        took = three(lambda: commands.cold_rehearsal(_fresh(folder)))
        row("a fourteen-day onboarding rehearsed, process start included", f"{took:.2f} s", "1 s", "0.7 s", took <= 1)
        _settling(folder)
        small = three(lambda: asyncio.run(scale.answers_in_a_map(_fresh(folder), 10)))
        large = three(lambda: asyncio.run(scale.answers_in_a_map(_fresh(folder), 10_000)))
        times = large / small
        said = f"{times:.2f} times ({small * 1e3:.1f} ms)"
        row("one answer of a map of 10,000 asks against one of 10", said, "1.5", "1.1", times <= 1.5)


def _settling(folder: Path) -> None:
    """S and the whole path by turns, so that both see the same machine."""
    ratios: list[float] = []
    cpus: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors.append(floor.settle_rate(_fresh(folder)))
        rate, cpu, _ = asyncio.run(settle.settle(_fresh(folder)))
        ratios.append(rate / floors[-1])
        cpus.append(cpu)
    ratio, cpu = statistics.median(ratios), statistics.median(cpus)
    said = f"{ratio:.2f} S (S {statistics.median(floors):.0f}/s)"
    row("answers settled, whole path, 32 in flight, against S", said, "0.25 S", "0.5 S", ratio >= 0.25)
    row("the same: CPU of one", f"{cpu:.2f} ms", "1.1 ms", "0.6 ms", cpu <= 1.1)


def _fresh(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


if __name__ == "__main__":
    main()
