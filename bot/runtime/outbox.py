"""Sends what is committed: first in first out for each conversation, marked before the socket is touched, tried again
when the platform asks for it, reported back. What is there already is kept true by `displays.py`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Protocol

import structlog

from bot.domain.changes import CARDS, Delivery
from bot.domain.errors import Bug
from bot.domain.facts import Delivered
from bot.people.reach import WEB, Way
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, take
from bot.runtime.committer import Committer
from channels.base import Channel, Later, Refused, Sent, Thing
from store import outbox, people, runs
from store.dialect import Transaction

log = structlog.get_logger()
LONGEST_PAUSE = timedelta(minutes=5)
GIVE_UP = timedelta(hours=24)
"""After so long nothing is tried again."""


class Post(Protocol):
    """How rows become what a channel shows, and where they go."""

    channels: Mapping[str, Channel]

    def way(self, tx: Transaction, row: Mapping[str, Any], shut: Collection[str]) -> Way | None: ...

    def thing(self, tx: Transaction, row: Mapping[str, Any]) -> Thing | None:
        """What is put out; None where nothing is to be shown any more."""
        ...

    def settled(self, tx: Transaction, row: Mapping[str, Any]) -> Thing: ...

    def status(self, tx: Transaction, run_id: str) -> tuple[str, int, Thing] | None:
        """A run's message: its conversation, the run's rev, and what it shows; None where it has none."""
        ...


class NoPost:
    """A process without chat platforms."""

    channels: Mapping[str, Channel] = {}

    def way(self, tx: Transaction, row: Mapping[str, Any], shut: Collection[str]) -> Way | None:
        return None

    def thing(self, tx: Transaction, row: Mapping[str, Any]) -> Thing | None:
        return None

    def settled(self, tx: Transaction, row: Mapping[str, Any]) -> Thing:
        raise Bug("nothing is shown on a platform here")

    def status(self, tx: Transaction, run_id: str) -> tuple[str, int, Thing] | None:
        return None


class Held:
    """Which channels and conversations must wait, by the platform's own word."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def hold(self, name: str, pause: timedelta) -> None:
        self._until[name] = max(self._until.get(name, 0.0), time.monotonic() + pause.total_seconds())

    def left(self, *names: str) -> float:
        """Seconds until all of them may go on."""
        now = time.monotonic()
        for name in [name for name in names if self._until.get(name, now) <= now]:
            self._until.pop(name, None)
        return max([0.0, *(self._until[name] - now for name in names if name in self._until)])

    async def over(self, name: str) -> None:
        """Returns once it may go on."""
        left = self.left(name)
        while left > 0:
            await asyncio.sleep(left)
            left = self.left(name)


class Outbox:
    """`post` says where a row goes and what is shown of it; `held` is shared with what edits."""

    def __init__(self, committer: Committer, clock: Clock, post: Post, held: Held) -> None:
        self.committer = committer
        self.clock = clock
        self.post = post
        self.held = held
        self._queues: dict[str, deque[dict[str, Any]]] = {}
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
        self._keep(asyncio.create_task(self.look()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def look(self) -> None:
        """Takes up what is queued, in the order of commit, each conversation by itself."""
        async with self._again:
            # What is on its way now may have arrived by the time that the rows are read.
            on_its_way = set(self._seen)
            rows = [row for row in await self.committer.read(outbox.queued) if row["seq"] not in on_its_way]
            for row in rows:
                way = await self.committer.read(self.post.way, row, ())
                self._seen.add(row["seq"])
                key = f"{way.channel} {way.conversation or way.ref}" if way else f"nobody {row['to']}"
                queue = self._queues.get(key)
                if queue is None:
                    queue = self._queues[key] = deque()
                    self._keep(asyncio.create_task(self._conversation(key, queue)))
                queue.append(row)

    async def _conversation(self, key: str, queue: deque[dict[str, Any]]) -> None:
        """What goes to one conversation, until nothing does."""
        while queue:
            row = queue.popleft()
            try:
                await self._send(row)
            except Exception:
                # It stays queued: whoever looks next tries again.
                log.exception("a delivery broke inside", run=row["run"], path=row["path"])
            self._seen.discard(row["seq"])
        self._queues.pop(key, None)

    async def _send(self, row: dict[str, Any]) -> None:
        shut: dict[str, str] = {}
        attempt, again = 0, row["state"] == "sent"
        while True:
            way = await self.committer.read(self.post.way, row, tuple(shut))
            if way is None:
                why = "; ".join(shut.values()) or f"{row['to']} has no identity that a message can reach"
                await self._report(row, error=why)
                return
            if way.channel == WEB:
                await self._in_room(row, shut)
                return
            answer = await self._put(row, way, again)
            if answer is None:
                return
            if isinstance(answer, Refused):
                shut[way.channel] = answer.why
                if way.ref is not None:
                    await self.committer.insist(
                        lambda tx, way=way, why=answer.why: people.shut(tx, way.channel, way.ref or "", why)
                    )
                attempt, again = 0, False
                continue
            if answer.lost and not self._may_repeat(way.channel, row):
                await self._report(row, error="the platform's answer was lost, so it may have arrived or not")
                return
            again = again or answer.lost
            if self.clock.now() - row["at"] > GIVE_UP:
                await self._report(row, error=f"{way.channel} did not take it: {answer.why}")
                return
            pause = min(max(answer.pause, timedelta(seconds=2**attempt if answer.lost else 0)), LONGEST_PAUSE)
            attempt = min(attempt + 1, 8)
            log.info(
                "delivery put off", run=row["run"], path=row["path"], why=answer.why, pause_s=pause.total_seconds()
            )
            if answer.scope == "channel":
                self.held.hold(way.channel, answer.pause)
            await asyncio.sleep(pause.total_seconds())

    async def _put(self, row: dict[str, Any], way: Way, again: bool) -> Later | Refused | None:
        """One attempt; None where it is done."""
        channel = self.post.channels[way.channel]
        await self.held.over(way.channel)
        conversation = way.conversation
        if conversation is None:
            found = await self._alone(channel, way.ref or "")
            if not isinstance(found, str):
                return found
            conversation = found
        thing = await self.committer.read(self.post.thing, row)
        if thing is None:
            await self._nothing(row)
            return None
        await self.committer.insist(lambda tx: outbox.mark_sent(tx, row["seq"], way.channel, conversation))
        answer = await channel.send(conversation, thing, ident=f"d/{row['seq']}", again=again)
        if not isinstance(answer, Sent):
            return answer
        await self._report(
            row, channel=way.channel, ref=answer.ref, conversation=answer.conversation or conversation, note=answer.note
        )
        return None

    async def _alone(self, channel: Channel, ref: str) -> str | Later | Refused:
        """Where a person is written to alone, asked of the platform once."""
        known = await self.committer.read(people.identity_of, channel.name, ref)
        if known is not None and known["conversation"]:
            return known["conversation"]
        found = await channel.reach(ref)
        if isinstance(found, str):
            await self.committer.insist(lambda tx: people.reached_at(tx, channel.name, ref, found))
        return found

    def _may_repeat(self, channel: str, row: Mapping[str, Any]) -> bool:
        """Whether something whose answer was lost may go out again: the platform lets us find out, or it does no
        harm."""
        can = self.post.channels[channel].capabilities
        return can.looks_up or ("card" if row["kind"] in CARDS else row["kind"]) in can.repeats

    async def _in_room(self, row: dict[str, Any], shut: Mapping[str, str]) -> None:
        """The room takes what no platform does; its owner hears why it is not where it was meant to be."""
        note = None
        if shut:
            reasons = "; ".join(f"{name}: {why}" for name, why in shut.items())
            note = f"It could not be delivered to {row['to']} on {reasons}. It is in the room."
        await self._report(row, channel=WEB, note=note)

    async def _nothing(self, row: dict[str, Any]) -> None:
        """It settled before it went out: there is nothing to show."""
        await self.committer.insist(lambda tx: outbox.mark_done(tx, row["seq"], self.clock.now(), channel=WEB))
        await self.committer.insist(lambda tx: outbox.mark_shown(tx, row["seq"]))

    async def _report(
        self,
        row: dict[str, Any],
        *,
        channel: str | None = None,
        conversation: str | None = None,
        ref: str | None = None,
        error: str | None = None,
        note: str | None = None,
    ) -> None:
        def write(tx: Transaction) -> list[Outcome]:
            now = self.clock.now()
            outbox.mark_done(tx, row["seq"], now, ref=ref, error=error, channel=channel, conversation=conversation)
            if channel == WEB:
                outbox.mark_shown(tx, row["seq"])
            if note is not None:
                self._notice(tx, row, note)
            if not row["run"] or (not row["opens"] and error is None):
                return []
            fact = Delivered(
                at=now, path=row["path"], kind=row["kind"], to=row["to"], attempt=row["attempt"], error=error
            )
            return [take(tx, self.committer.site, row["run"], fact)]

        await self.committer.insist(write)
        if note is not None:
            self.wake()

    def _notice(self, tx: Transaction, row: Mapping[str, Any], text: str) -> None:
        """Tells the run's owner about one of its deliveries."""
        run = runs.get(tx, row["run"]) if row["run"] else None
        if run is None:
            return
        told = Delivery(
            path=row["path"], attempt=0, kind="notice", to=run.owner, card={"text": text}, at=self.clock.now(),
            n=f"delivery/{row['seq']}",
        )  # fmt: skip
        outbox.deliver(tx, run.id, [told], self.committer.site.here(tx, run.job))
