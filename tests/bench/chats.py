"""What chat costs: how long a platform waits for its acknowledgement, and how often a live message is edited."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path

from store import people, runs
from tests.bench.settle import park, percentile
from tests.channels.world import stand
from tests.doubles.slack import SlackStage
from tests.runtime.world import START, until

WAITING, A_SECOND = 1_000, 50
ASK = "- scope = ask @ana approve decline\n  > Number {}?\n- say @bo\n  > It was {{scope}}\n"
LONG = "".join(f"- v{n} = let {n}\n" for n in range(200)) + "- ok = ask @ana yes no\n  > Go on?\n"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Seconds from a tap until Slack was answered, over the socket, in the process of the double too."""

    p50_s: float
    p99_s: float


async def acknowledged(folder: Path, taps: int = 250) -> Acknowledged:
    """Taps at a steady pace, with many runs waiting; each settles an ask, whose card is edited and whose next step
    sends a message."""
    stage = SlackStage()
    async with stand(stage, folder) as at:
        product = at.product
        await product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        await park(product, WAITING)
        await product.committer.write(lambda tx: people.prefer(tx, "ana@acme.de", "slack"))
        product.people_changed()
        for n in range(taps):
            await product.desk.start(ASK.format(n), by="bo@acme.de", job="j")
        await until(lambda: len(stage.seen("ana")) >= taps, 120)
        cards = {int(found[1]): m for m in stage.seen("ana") if (found := re.search(r"Number (\d+)\?", m.text))}
        spans: list[float] = []

        async def tap(n: int) -> None:
            begun = time.perf_counter()
            await stage.tap("ana", cards[n], "approve")
            spans.append(time.perf_counter() - begun)

        tapping: list[asyncio.Task[None]] = []
        for n in range(taps):
            tapping.append(asyncio.create_task(tap(n)))
            await asyncio.sleep(1 / A_SECOND)
        await asyncio.gather(*tapping)
        spans.sort()
        return Acknowledged(p50_s=percentile(spans, 50), p99_s=percentile(spans, 99))


async def edits(folder: Path) -> int:
    """How often the live message of a run is edited while 200 of its ops settle at once and somebody answers."""
    stage = SlackStage()
    async with stand(stage, folder) as at:
        await stage.paste("bo", LONG)
        status = await at.shows("bo", "waiting on Ana")
        await stage.tap("ana", await at.card("ana", "Go on?"), "yes")
        await at.run()
        await until(lambda: any(m.ref == status.ref and "waiting on" not in m.text for m in stage.seen("bo")))
        return next(m.edits for m in stage.seen("bo") if m.ref == status.ref)
