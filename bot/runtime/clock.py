"""Time at the edge: the clock everyone is handed, and the waking of the process for the next due row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

FARTHEST = timedelta(seconds=60)
"""The process looks at its clock at least so often, so that a stepped clock is noticed."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)  # the one place that reads the machine's clock


class SetClock:
    """A clock that stands until it is moved."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def move(self, **span: float) -> datetime:
        self.at += timedelta(**span)
        return self.at


class Waker:
    """Calls `sweep` when the next row is due. APScheduler wakes it; the rows are the only state."""

    def __init__(self, clock: Clock, sweep: Callable[[], Awaitable[datetime | None]]) -> None:
        self._clock = clock
        self._sweep = sweep
        self._scheduler: Any = None
        self._next: datetime | None = None
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()
        await self.fire()

    def due(self, at: datetime) -> None:
        """A row is due at this instant: wake then, unless something is due before."""
        if self._scheduler is not None and (self._next is None or at < self._next):
            self._plan(at)

    def _plan(self, at: datetime | None) -> None:
        from apscheduler.triggers.date import DateTrigger

        now = self._clock.now()
        wake = min(at or now + FARTHEST, now + FARTHEST)
        self._next = wake
        self._scheduler.add_job(
            self.fire,
            # The scheduler reads the machine's clock, whatever clock the rows are due by.
            DateTrigger(datetime.now(UTC) + max(wake - now, timedelta())),
            id="due",
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=4,
        )

    async def fire(self) -> None:
        async with self._busy:
            self._next = None
            at = await self._sweep()
            if self._scheduler is not None and (self._next is None or (at is not None and at < self._next)):
                self._plan(at)

    async def stop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
