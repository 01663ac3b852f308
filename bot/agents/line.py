"""The line in front of a model: so many calls at once, first come first served, with its rate limits kept by everyone
and what may help later tried again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import structlog

from bot.agents.model import Model, ModelFailed, Reply, Request
from bot.runtime.clock import Clock

log = structlog.get_logger()
TRIES = 6
"""Attempts of one call before its failure is told."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
PATIENCE_S = 600.0
"""The longest that a call waits for a limit to open: a longer `retry-after` is a failure at once."""

T = TypeVar("T")


class Line:
    """`at_once` agents work at the same time (the setting `fanout`); each holds its place until it has ended.

    `steady`: seconds of a clock that is never set; `sleep`: lets them pass."""

    def __init__(
        self,
        model: Model,
        at_once: int,
        clock: Clock,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.model = model
        self.clock = clock
        self._places = asyncio.Semaphore(at_once)
        self._steady = steady
        self._sleep = sleep
        self._opens = 0.0
        """When the account's limit opens again, by the steady clock."""
        self._refused = 0

    async def hold(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does an agent's work when there is a place for it."""
        async with self._places:
            return await work()

    async def reply(self, request: Request) -> Reply:
        """One call, waited for and tried again where that may help. Raises ModelFailed."""
        tried = 0
        while True:
            await self._open()
            try:
                reply = await self.model.reply(request)
            except ModelFailed as fault:
                tried += 1
                pause = self._pause(fault, tried)
                if pause is None:
                    raise _too_long(fault) from None
                log.info("the model is asked again", why=str(fault), in_s=round(pause, 2), tried=tried)
                if fault.everyone:
                    self._opens = max(self._opens, self._steady() + pause)
                else:
                    await self._sleep(pause)
                continue
            self._heed(reply.limits)
            return reply

    async def _open(self) -> None:
        while (left := self._opens - self._steady()) > 0:
            await self._sleep(left)

    def _pause(self, fault: ModelFailed, tried: int) -> float | None:
        """Seconds until the next attempt; None where there is none."""
        if not fault.again or tried >= TRIES or (fault.after_s or 0) > PATIENCE_S:
            return None
        if fault.after_s is not None:
            return fault.after_s
        # Spread, or all who were refused together would come back together.
        self._refused += 1
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tried - 1)) * (0.75 + 0.5 * (self._refused * 0.618 % 1))

    def _heed(self, limits: Mapping[str, str]) -> None:
        """Where nothing is left of a limit, nobody calls before it opens again."""
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            if limits.get(f"anthropic-ratelimit-{kind}-remaining") != "0":
                continue
            left = self._until(limits.get(f"anthropic-ratelimit-{kind}-reset"))
            if left is not None and left > 0:
                self._opens = max(self._opens, self._steady() + min(left, PATIENCE_S))

    def _until(self, instant: str | None) -> float | None:
        try:
            return (datetime.fromisoformat(instant) - self.clock.now()).total_seconds() if instant else None
        except (ValueError, TypeError):
            return None


def _too_long(fault: ModelFailed) -> ModelFailed:
    """A limit of the account that nobody waits for is everybody's failure, told once."""
    if not fault.everyone or (fault.after_s or 0) <= PATIENCE_S:
        return fault
    return ModelFailed(f"{fault}; it opens again in {round((fault.after_s or 0) / 60)} min", everyone=True)
