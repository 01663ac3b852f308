"""Keeps what platforms show equal to the rows: cards that have settled first, then the live messages of runs.

Edits are the scarce resource of every platform (one budget a channel): the newest state wins, what is superseded is
never sent, and the last state always lands."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from dataclasses import replace
from typing import Any

import structlog

from bot.domain.changes import Step
from bot.runtime.clock import Clock
from bot.runtime.committer import Committer
from bot.runtime.outbox import Held, Post
from channels.base import Channel, Later, Refused, Sent
from store import outbox, status
from store.dialect import Transaction
from store.status import StatusRow

log = structlog.get_logger()
FLOOR_S = 1.0
"""Between two edits of one message, where nothing else is edited."""
AT_ONCE = 50


class Budget:
    """So many edits a minute, in bursts of up to a quarter of them."""

    def __init__(self, a_minute: int) -> None:
        self.a_minute = a_minute
        self._done: deque[float] = deque()

    def left(self) -> float:
        """Seconds until the next edit may be made."""
        now = time.monotonic()
        while self._done and self._done[0] <= now - 60:
            self._done.popleft()
        return self._done[0] + 60 - now if len(self._done) >= self.a_minute else 0.0

    def spend(self) -> None:
        self._done.append(time.monotonic())


class Displays:
    """One worker a channel. `wake`: a card may have settled; `moved`: a run has."""

    def __init__(self, committer: Committer, clock: Clock, post: Post, held: Held) -> None:
        self.committer = committer
        self.clock = clock
        self.post = post
        self.held = held
        self._wakes: dict[str, asyncio.Event] = {}
        self._dirty: dict[str, dict[str, None]] = {}
        self._edited: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for name, channel in self.post.channels.items():
            self._wakes[name] = asyncio.Event()
            self._dirty[name] = dict.fromkeys(await self.committer.read(status.behind, name))
            self._wakes[name].set()
            self._tasks.append(asyncio.create_task(self._work(name, channel), name=f"displays of {name}"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self) -> None:
        for event in self._wakes.values():
            event.set()

    async def look(self) -> None:
        """What others have written: cards that have settled, runs that have moved."""
        for name, dirty in self._dirty.items():
            dirty.update(dict.fromkeys(await self.committer.read(status.behind, name)))
        self.wake()

    def moved(self, channel: str, run_id: str, step: Step) -> None:
        """A step of a run was committed, in a conversation of this channel."""
        if self._wakes and (step.settled or step.cancelled):
            self.wake()
        self.further(channel, run_id)

    def further(self, channel: str, run_id: str) -> None:
        """An op of a run is further on: its message says so."""
        if channel in self._dirty and self.post.channels[channel].capabilities.edits:
            self._dirty[channel][run_id] = None
            self._wakes[channel].set()

    async def _work(self, name: str, channel: Channel) -> None:
        budget = Budget(channel.capabilities.edits_a_minute)
        while True:
            await self._wakes[name].wait()
            self._wakes[name].clear()
            try:
                while (wait := await self._one(name, channel, budget)) is not None:
                    if wait > 0:
                        # Something newer may come meanwhile: it is looked at afresh.
                        try:
                            await asyncio.wait_for(self._wakes[name].wait(), wait)
                            self._wakes[name].clear()
                        except TimeoutError:
                            pass
            except Exception as fault:
                log.warning("what is shown could not be kept up, trying again", channel=name, fault=str(fault))
                await asyncio.sleep(1.0)
                self._wakes[name].set()

    async def _one(self, name: str, channel: Channel, budget: Budget) -> float | None:
        """One edit; seconds until the next may be made, None where nothing is left to do."""
        if (left := max(self.held.left(name), budget.left())) > 0:
            return left
        rows = await self.committer.read(outbox.stale_of, name, AT_ONCE)
        if rows:
            return await self._cards(channel, budget, rows)
        return await self._status(name, channel, budget)

    async def _cards(self, channel: Channel, budget: Budget, rows: list[dict[str, Any]]) -> float:
        """Cards that have settled, as far as they may be edited now; seconds until the next may be."""
        waits: list[float] = []
        done = 0
        for row in rows:
            if (left := max(self.held.left(channel.name), budget.left())) > 0:
                return left
            if (left := self.held.left(row["conversation"] or "")) > 0:
                waits.append(left)
                continue
            done += await self._card(channel, budget, row)
        return 0.0 if done or not waits else min(waits)

    async def _card(self, channel: Channel, budget: Budget, row: dict[str, Any]) -> bool:
        """Whether it shows what it has turned into, or never will."""
        if row["ref"] is not None and row["state"] == "delivered":
            thing = await self.committer.read(self.post.settled, row)
            budget.spend()
            answer = await channel.edit(row["conversation"], row["ref"], thing)
            if isinstance(answer, Later):
                self.held.hold(channel.name if answer.scope == "channel" else row["conversation"], answer.pause)
                return False
        await self.committer.insist(lambda tx: outbox.mark_shown(tx, row["seq"]))
        return True

    def _floor(self, name: str) -> float:
        """Between two edits of one message: longer the more are alive."""
        now = time.monotonic()
        live = sum(1 for at in self._edited.values() if at > now - 60)
        a_minute = self.post.channels[name].capabilities.edits_a_minute
        return max(FLOOR_S, 60 * live / a_minute)

    async def _status(self, name: str, channel: Channel, budget: Budget) -> float | None:
        dirty, now, floor = self._dirty[name], time.monotonic(), self._floor(name)
        ready = {run: max(0.0, self._edited.get(run, 0.0) + floor - now) for run in dirty}
        if not ready:
            self._edited = {run: at for run, at in self._edited.items() if at > now - 60}
            return None
        run = min(ready, key=lambda r: ready[r])
        if ready[run] > 0:
            return ready[run]
        del dirty[run]
        found = await self.committer.read(self._found, run)
        if found is None:
            return 0.0
        conversation, rev, thing, stood = found
        said = hashlib.sha256(repr(thing).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        row = stood or StatusRow(channel=name, conversation=conversation, ref=None, said=None, rev=0, at=None)
        if row.said != said or row.ref is None:
            self._edited[run] = time.monotonic()
            answer = await self._show(channel, budget, row, thing, run)
            if isinstance(answer, Later):
                dirty[run] = None
                scope = channel.name if answer.scope == "channel" else row.conversation
                self.held.hold(scope, answer.pause)
                return min(answer.pause.total_seconds(), 1.0) if scope != channel.name else 0.0
            if isinstance(answer, Sent):
                at = self.clock.now()
                row = replace(
                    row, ref=answer.ref or row.ref, said=said, at=at, conversation=answer.conversation or conversation
                )
        row = replace(row, rev=rev)
        await self.committer.insist(lambda tx: status.put(tx, run, row))
        return 0.0

    def _found(self, tx: Transaction, run_id: str) -> tuple[str, int, Any, StatusRow | None] | None:
        made = self.post.status(tx, run_id)
        return (*made, status.get(tx, run_id)) if made is not None else None

    async def _show(
        self, channel: Channel, budget: Budget, row: StatusRow, thing: Any, run: str
    ) -> Sent | Later | Refused:
        if row.ref is not None:
            budget.spend()
            answer = await channel.edit(row.conversation, row.ref, thing)
            if not isinstance(answer, Refused):
                return answer
        # It was never there, or is not there any more.
        return await channel.send(row.conversation, thing, ident=f"s/{run}/{row.rev}", again=row.ref is None)
