"""How far a tool is, as it says: the latest of it is stored, once a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from bot.runtime.clock import Clock
from store.work import Progress

PAUSE_S = 1.0
"""Between two that are stored."""
LONGEST = 80
"""Characters of a tool's own words."""


class Way:
    """One call's. `save` stores what it is given, and tells who shows it."""

    def __init__(self, clock: Clock, save: Callable[[Progress], Awaitable[None]]) -> None:
        self._clock = clock
        self._save = save
        self._since: datetime | None = None
        self._latest: Progress | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        return self._since is not None

    def told(self, done: float, total: float | None, text: str | None) -> None:
        now = self._clock.now()
        self._since = self._since or now
        self._latest = Progress(
            done=int(done), total=int(total or 0), said=said(done, total, text), since=self._since, at=now
        )
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._saving())

    async def end(self) -> None:
        """The call is over: nothing more is stored of it."""
        self._latest = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _saving(self) -> None:
        while (latest := self._latest) is not None:
            self._latest = None
            await self._save(latest)
            await asyncio.sleep(PAUSE_S)


def said(done: float, total: float | None, text: str | None) -> str:
    """`3 of 10, step 3`: what is known of it."""
    count = f"{done:g} of {total:g}" if total else "" if text else f"{done:g}"
    words = " ".join((text or "").split())
    words = words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
    return ", ".join(part for part in (count, words) if part)
