"""How the cost of one answer grows with the map it stands in."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bot.wiring import Product
from store import outbox
from tests.bench.settle import opened
from tests.runtime.world import until

ASKS = (
    '[{op:"core.transform",id:"xs",from:[],jq:"[range(%d)]"},{op:"core.map",id:"out",over:"$xs",'
    'body:[{op:"ask",id:"q",to:"ana@acme.de",question:"$item?",choices:["y","n"]}]}]'
)


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
