"""Wakes the process for the next due row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from bot.runtime.clock import Clock, machine_time

log = structlog.get_logger()

FARTHEST = timedelta(seconds=60)
"""The process looks at its clock at least so often, so that a stepped clock is noticed."""
AGAIN = timedelta(seconds=1)
"""After a sweep that failed."""


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
            DateTrigger(machine_time() + max(wake - now, timedelta())),
            id="due",
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=4,
        )

    async def fire(self) -> None:
        async with self._busy:
            self._next = None
            try:
                at = await self._sweep()
            except Exception as fault:  # the rows are still due: whatever it was, the sweep is made again
                log.warning("what is due could not be applied, trying again", fault=str(fault))
                at = self._clock.now() + AGAIN
            if self._scheduler is not None and (self._next is None or (at is not None and at < self._next)):
                self._plan(at)

    async def stop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
