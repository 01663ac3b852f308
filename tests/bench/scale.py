"""How costs grow: with the map that an answer stands in, with the items of a map, with what is armed for a stream."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path

from bot.runtime.tools import tool
from bot.wiring import Product
from store import outbox
from tests.bench.settle import opened, park, watch
from tests.runtime.world import until

ASKS = (
    '[{op:"core.transform",id:"xs",from:[],jq:"[range(%d)]"},{op:"core.map",id:"out",over:"$xs",'
    'body:[{op:"ask",id:"q",to:"ana@acme.de",question:"$item?",choices:["y","n"]}]}]'
)
NOTHING = (
    '[{op:"core.transform",id:"xs",from:[],jq:"[range(%d)]"},{op:"core.map",id:"out",over:"$xs",body:[{op:"nothing"}]}]'
)
ARMED = '[{op:"expect",id:"seen",evidence:"camera.line_2",from:"%s",within:"3d"},{op:"say",body:"$seen.from"}]'


async def nothing() -> None:
    """A step that returns at once."""


NO_OP = tool("nothing", nothing, destructive=False)


async def _asked(one: Product, run: str, count: int) -> bool:
    return len(await one.committer.read(lambda tx: outbox.find(tx, run_id=run, limit=20_000))) >= count


async def answers_in_a_map(folder: Path, size: int, count: int = 200) -> float:
    """Median seconds of one answer in a map of `size` asks."""
    one = await opened(folder)
    try:
        spans: list[float] = []
        left = count
        while left > 0:
            got = await one.desk.start(ASKS % size, by="bo@acme.de", job="j")
            assert got.run is not None
            run = got.run
            await until(lambda run=run: _asked(one, run, size), 300)
            for index in range(min(size - 1, left)):
                begun = time.perf_counter()
                said = await one.desk.answer(got.run, f"2[{index}].1", "y", by="ana@acme.de")
                spans.append(time.perf_counter() - begun)
                assert said.accepted
            left -= size - 1
        return statistics.median(spans)
    finally:
        await one.stop()


async def items_of_a_map(folder: Path, size: int) -> float:
    """Items of a map of no-op steps a second, from the start of the run to its end."""
    one = await opened(folder, (NO_OP,))
    try:
        runs = watch(one)
        begun = time.perf_counter()
        got = await one.desk.start(NOTHING % size, by="bo@acme.de", job="j")
        assert got.run is not None, got.seen.rendered()
        assert await runs.ended(got.run) == "done"
        return size / (time.perf_counter() - begun)
    finally:
        await one.stop()


async def events_among(few: Path, many: Path, armed: tuple[int, int], rounds: int = 5, each: int = 20) -> list[float]:
    """Median seconds from an event by `from` to its run's end with so few and so many other expectations armed for the
    stream, by turns, so that both see the same machine."""
    products = [await _armed(folder, count, rounds * each) for folder, count in zip((few, many), armed, strict=True)]
    try:
        spans: list[list[float]] = [[], []]
        for n in range(rounds * each):
            if n % each == 0:
                gc.collect()
            for one, told in zip(products, spans, strict=True):
                begun = time.perf_counter()
                await one.desk.event("camera.line_2", {"n": n}, ident=f"e{n}", sender=f"mine-{n}")
                told.append(time.perf_counter() - begun)
        return [statistics.median(told) for told in spans]
    finally:
        for one in products:
            await one.stop()


async def _armed(folder: Path, count: int, mine: int) -> Product:
    one = await opened(folder)
    for n in range(0, count, 1000):
        # One script a thousand runs: what differs is whose event they wait for.
        await park(one, min(1000, count - n), ARMED % f"u-{n}")
    for n in range(mine):
        await park(one, 1, ARMED % f"mine-{n}")
    return one
