"""One agent on every element of a list: so many at once, answers in order, each one's failure its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.domain.cost import Usage
from bot.domain.values import ErrorValue

ALONE_FIRST_CHARS = 4_000
"""A shared beginning of this length is worth keeping at the provider: the first agent goes alone, so that the others
find it there."""

Ask = Callable[[int], Awaitable[tuple[Any, Usage]]]
"""Puts an agent on the element of this index; its answer or an ErrorValue, and what it used."""


@dataclass(slots=True)
class Fan:
    """The state of one fan-out. `answers` has the element's index; `fresh` are those that nobody has saved yet."""

    size: int
    answers: dict[int, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    stopped: str | None = None
    fresh: list[tuple[int, Any]] = field(default_factory=list)
    unsaved: Usage = field(default_factory=Usage)
    begun: int = 0
    """Answers that were there when this went to work."""
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    @property
    def failed(self) -> int:
        return sum(isinstance(answer, ErrorValue) for answer in self.answers.values())

    def stop(self, why: str) -> None:
        """No further agent begins; those at work end."""
        self.stopped = self.stopped or why
        self._open.set()

    def pause(self, paused: bool) -> None:
        """While it is paused no further agent begins; those at work end."""
        if paused and not self.stopped:
            self._open.clear()
        else:
            self._open.set()

    async def begins(self) -> bool:
        """Waits while it is paused; whether a further agent may begin then."""
        await self._open.wait()
        return self.stopped is None

    def take_fresh(self) -> tuple[list[tuple[int, Any]], Usage]:
        """What has come since it was last asked for."""
        fresh, used = self.fresh, self.unsaved
        self.fresh, self.unsaved = [], Usage()
        return fresh, used

    def values(self) -> list[Any]:
        """Every element's answer, in order."""
        return [self.answers.get(at, ErrorValue(self.stopped or "it was not asked")) for at in range(self.size)]


async def spread(fan: Fan, ask: Ask, at_once: int, *, first_alone: bool = False) -> None:
    """Asks for every element that has no answer yet."""
    fan.begun = len(fan.answers)
    left: Iterator[int] = iter([at for at in range(fan.size) if at not in fan.answers])

    async def one() -> bool:
        if not await fan.begins() or (at := next(left, None)) is None:
            return False
        answer, usage = await ask(at)
        fan.answers[at] = answer
        fan.usage += usage
        fan.unsaved += usage
        fan.fresh.append((at, answer))
        return True

    async def work() -> None:
        while await one():
            pass

    if first_alone:
        await one()
    workers = min(at_once, fan.size - len(fan.answers))
    if workers > 0:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())


def said(done: int, total: int, failed: int, spent: str | None, left_s: float | None) -> str:
    """`137 of 200, 3 failed, $0.41, about 2 min left`."""
    parts = [f"{done:,} of {total:,}"]
    if failed:
        parts.append(f"{failed:,} failed")
    if spent:
        parts.append(spent)
    if left_s is not None and done < total:
        parts.append(f"about {_span(left_s)} left")
    return ", ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 50:
        return f"{max(5, round(seconds / 5) * 5)} s"
    if seconds < 90 * 60:
        return f"{max(1, round(seconds / 60))} min"
    return f"{round(seconds / 3600)} h"
