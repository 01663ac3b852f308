"""Sends what is committed: first in first out for each conversation, marked before the socket is touched, tried again
when the platform asks for it, reported back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog

from bot.domain.facts import Delivered
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, take
from bot.runtime.committer import Committer
from channels.base import Channel, Later, Refused, Sent
from store import outbox
from store.dialect import Transaction

log = structlog.get_logger()
LONGEST_PAUSE = timedelta(minutes=5)
TRIES = 12


class Outbox:
    """`channels` by name; `route` gives a delivery's channel and conversation, or why it can reach nobody."""

    def __init__(self, committer: Committer, clock: Clock, channels: Mapping[str, Channel], route: Any) -> None:
        self.committer = committer
        self.clock = clock
        self.channels = channels
        self.route = route
        self._queues: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self._seen: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._again = asyncio.Lock()

    async def start(self) -> None:
        await self.look()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self) -> None:
        """Something was committed that must go out."""
        task = asyncio.create_task(self.look())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def look(self) -> None:
        """Takes up what is queued, and cards that must turn into their outcome."""
        async with self._again:
            for row in await self.committer.read(outbox.queued):
                if row["seq"] not in self._seen:
                    self._seen.add(row["seq"])
                    self._put(row)
            for row in await self.committer.read(outbox.stale):
                await self._settle(row)

    def _put(self, row: dict[str, Any]) -> None:
        found = self.route(row)
        key = found[1] if isinstance(found, tuple) else "nobody"
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = asyncio.Queue()
            task = asyncio.create_task(self._conversation(queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        queue.put_nowait(row)

    async def _conversation(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        while True:
            row = await queue.get()
            await self._send(row)

    async def _send(self, row: dict[str, Any]) -> None:
        found = self.route(row)
        if not isinstance(found, tuple):
            await self._report(row, error=str(found))
            return
        name, conversation = found
        channel = self.channels[name]
        for attempt in range(TRIES):
            await self.committer.insist(lambda tx: outbox.mark_sent(tx, row["seq"], name, conversation))
            answer = await channel.send(row, conversation)
            if isinstance(answer, Sent):
                await self._report(row, ref=answer.ref)
                return
            if isinstance(answer, Refused):
                await self._report(row, error=answer.why)
                return
            pause = min(max(answer.pause, timedelta(seconds=2**attempt)), LONGEST_PAUSE)
            log.info(
                "delivery put off", run=row["run"], path=row["path"], why=answer.why, pause_s=pause.total_seconds()
            )
            await asyncio.sleep(pause.total_seconds())
        await self._report(row, error=f"{name} did not take it after {TRIES} attempts")

    async def _report(self, row: dict[str, Any], *, ref: str | None = None, error: str | None = None) -> None:
        def write(tx: Transaction) -> list[Outcome]:
            now = self.clock.now()
            outbox.mark_done(tx, row["seq"], now, ref=ref, error=error)
            if not row["opens"] and error is None:
                return []
            fact = Delivered(
                at=now,
                path=row["path"],
                kind=row["kind"],
                to=row["to"],
                attempt=row["attempt"],
                error=error,
            )
            return [take(tx, self.committer.site, row["run"], fact)]

        await self.committer.insist(write)
        self._seen.discard(row["seq"])

    async def _settle(self, row: dict[str, Any]) -> None:
        channel = self.channels.get(row["channel"] or "")
        if row["state"] != "delivered" or channel is None:
            if row["state"] == "failed" or row["channel"] == "web":
                await self.committer.write(lambda tx: outbox.mark_shown(tx, row["seq"]))
            return
        answer = await channel.settle(row, row["outcome"])
        if not isinstance(answer, Later):
            await self.committer.write(lambda tx: outbox.mark_shown(tx, row["seq"]))
