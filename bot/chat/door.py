"""Where what comes in is stored, before the platform hears that it came (`channels.base.Door`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from bot.chat import forms, senders, taps, things
from bot.chat.cleaning import cleaned
from bot.chat.proposing import PREFIX, Proposing
from bot.domain.catalog import World
from bot.domain.changes import CARDS
from bot.domain.ids import tapped
from bot.domain.values import normalise
from bot.engine import words
from bot.runtime.clock import Clock
from bot.runtime.desk import Desk
from bot.server import conversation, phrases
from channels import events
from channels.base import Form, Home, Inbound, Sender
from channels.web.render import shown
from store import inbox, outbox, runs
from store.dialect import Transaction

log = structlog.get_logger()
STARTED_SHOWN = 10
KEPT = 512
"""What came lately stays read: a cache, the payload is in the inbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of something that came in. `moved`: where its sender is reached has changed."""

    new: bool
    moved: bool = False


class ChatDoor:
    """A `Door`. `people_changed` is told when somebody is reached elsewhere than before."""

    def __init__(self, desk: Desk, clock: Clock, people_changed: Any, proposing: Proposing) -> None:
        self.desk = desk
        self.proposing = proposing
        self.clock = clock
        self.people_changed = people_changed
        self.read: dict[tuple[str, str], Inbound] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def take(self, channel: str, given: Inbound) -> bool:
        now, given = self.clock.now(), cleaned(given)
        self._remember(channel, given)
        stored = await self.desk.committer.write(lambda tx: self._store(tx, channel, given, now))
        if stored.moved:
            self.people_changed()
        self._soon()
        return stored.new

    async def stop(self) -> None:
        """Returns once nothing that came is being routed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _remember(self, channel: str, given: Inbound) -> None:
        self.read[events.stream(channel, given), given.ident] = given
        while len(self.read) > KEPT:
            self.read.pop(next(iter(self.read)))

    def _soon(self) -> None:
        """Routed after the platform was answered."""
        task = asyncio.create_task(self._route())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _route(self) -> None:
        try:
            await self.desk.inbound.route_all()
        except Exception as fault:  # it stays in the inbox: the next sweep routes it
            log.warning("what came could not be routed, trying again", fault=str(fault))

    def _store(self, tx: Transaction, channel: str, given: Inbound, now: datetime) -> Stored:
        world = self.desk.site.world(now)
        who = senders.who(tx, world, channel, given.sender, now)
        streams, text = [events.stream(channel, given)], None
        if given.kind == "tap":
            found, text = self._tapped(tx, given)
            streams = {"card": [f"{channel}:{events.CARD}"], "sent": [f"{channel}:message", f"{channel}:tap"]}.get(
                found, streams
            )
        body = events.event(given, now, email=who.email, name=senders.named(given, world, who.email), text=text)
        new = False
        for n, stream in enumerate(streams):
            new = (
                inbox.add(
                    tx,
                    stream=stream,
                    ident=given.ident,
                    sender=who.email or given.sender.ref or None,
                    conversation=given.conversation,
                    at=now,
                    body=normalise(body),
                    raw=dict(given.raw) if n == 0 else None,
                )
                or new
            )
        return Stored(new=new, moved=who.moved)

    def _tapped(self, tx: Transaction, given: Inbound) -> tuple[str, str | None]:
        """What a tap is on: a `card` or a pasted script, a message that a script `sent` (and the button's value), or a
        `foreign` button."""
        if given.data.startswith(("s:", PREFIX)):
            return "card", None
        tap = taps.read(given.data)
        number = tapped(self.desk.site.secret, tap.token) if tap else None
        row = outbox.by_seq(tx, number) if number is not None else None
        if tap is None or row is None:
            return "foreign", None
        if row["kind"] in CARDS:
            return "card", None
        parts = shown(row["card"]).parts
        if row["kind"] == "send" and tap.part is not None and tap.part < len(parts) and tap.choice is not None:
            buttons = parts[tap.part].buttons
            if tap.choice < len(buttons):
                return "sent", buttons[tap.choice][1]
        return "foreign", None

    # --- forms ------------------------------------------------------------------------------------------------
    async def form(self, channel: str, given: Inbound) -> Form | None:
        world = self.desk.site.world(self.clock.now())
        if given.data.startswith(PREFIX):
            email = await self.desk.committer.read(senders.known, world, channel, given.sender)
            return await self.proposing.form(given, email)
        return await self.desk.committer.read(forms.of, self.desk.site, world, channel, given)

    async def submitted(self, channel: str, given: Inbound) -> Mapping[str, str]:
        """A form that was sent counts by the commit of what it says: its event is stored with it."""
        now, given = self.clock.now(), cleaned(given)
        stored = await self.desk.committer.write(lambda tx: self._sent(tx, channel, given, now))
        if stored is None:
            await self.take(channel, given)
            return {}
        if given.data.startswith(PREFIX):
            return await self.proposing.submit(given, stored.email)
        return await forms.submit(self.desk, channel, given, stored, now)

    def _sent(self, tx: Transaction, channel: str, given: Inbound, now: datetime) -> senders.Who | None:
        """Who sent the form of a card; None where it is another form (a script), which is stored as what it is."""
        if forms.about(given.data) is None and not given.data.startswith(PREFIX):
            return None
        return senders.who(tx, self.desk.site.world(now), channel, given.sender, now)

    # --- looking ----------------------------------------------------------------------------------------------
    async def home(self, channel: str, sender: Sender) -> Home:
        now = self.clock.now()

        def read(tx: Transaction) -> Home:
            world = self.desk.site.world(now)
            found = senders.known(tx, world, channel, sender)
            return home(tx, self.desk, world, found) if found else Home()

        return await self.desk.committer.read(read)


def home(tx: Transaction, desk: Desk, world: World, email: str) -> Home:
    """What waits on somebody, oldest first, and what they started and has not ended."""
    waiting: list[tuple[str, str]] = []
    for row in conversation.open_cards(tx, email):
        card = things.card(tx, desk.site, world, row)
        if card is not None:
            since = f", since {words.clock(card.since, world, world.now)}" if card.since else ""
            title = phrases.short(card.text or card.title, 80)
            waiting.append((f"{title}{since}", f"{desk.site.url}/a/{card.token}"))
    started = [
        (phrases.of_plan(desk.site.index(tx, run.plan).plan, world), f"{desk.site.url}/runs/{run.id}")
        for run in runs.find(tx, owner=email, state="waiting", limit=STARTED_SHOWN)
    ]
    return Home(waiting=tuple(waiting), started=tuple(started))
