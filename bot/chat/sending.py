"""What is put into a conversation at once, by nobody's row: tried until the platform is back."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta

from channels.base import Answer, Channel, Later, Thing

AT_ONCE = 5
"""Attempts that wait only as long as the platform asks."""
LONGEST_PAUSE = timedelta(minutes=1)
GIVE_UP = timedelta(hours=1)


async def put(channel: Channel, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
    """Sends it, waiting as the platform asks, and longer the longer it is away; after an hour, what it said last.
    `again`: it may have been sent before."""
    lost = again

    async def once() -> Answer:
        nonlocal lost
        answer = await channel.send(conversation, thing, ident=ident, again=lost)
        lost = lost or (isinstance(answer, Later) and answer.lost)
        return answer

    return await _patiently(once)


async def change(channel: Channel, conversation: str, ref: str, thing: Thing) -> Answer:
    """Changes what stands there, as patiently."""
    return await _patiently(lambda: channel.edit(conversation, ref, thing))


async def _patiently(once: Callable[[], Awaitable[Answer]]) -> Answer:
    waited = timedelta(0)
    for attempt in itertools.count():
        answer = await once()
        if not isinstance(answer, Later) or waited > GIVE_UP:
            return answer
        grown = timedelta(seconds=2 ** min(attempt - AT_ONCE, 6)) if attempt >= AT_ONCE else timedelta(0)
        pause = max(answer.pause, min(grown, LONGEST_PAUSE))
        waited += pause
        await asyncio.sleep(pause.total_seconds())
    raise AssertionError("counting has no end")
