"""What is put into a conversation at once, by nobody's row: tried until the platform is back."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

from channels.base import Answer, Channel, Later, Thing

AT_ONCE = 5
"""Attempts that wait only as long as the platform asks."""
LONGEST_PAUSE = timedelta(minutes=1)
GIVE_UP = timedelta(hours=1)


async def put(channel: Channel, conversation: str, thing: Thing, *, ident: str) -> Answer:
    """Sends it, waiting as the platform asks, and longer the longer it is away; after an hour, what it said last."""
    waited, lost = timedelta(0), False
    for attempt in itertools.count():
        answer = await channel.send(conversation, thing, ident=ident, again=lost)
        if not isinstance(answer, Later) or waited > GIVE_UP:
            return answer
        lost = lost or answer.lost
        grown = timedelta(seconds=2 ** min(attempt - AT_ONCE, 6)) if attempt >= AT_ONCE else timedelta(0)
        pause = max(answer.pause, min(grown, LONGEST_PAUSE))
        waited += pause
        await asyncio.sleep(pause.total_seconds())
    raise AssertionError("counting has no end")
