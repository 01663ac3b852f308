"""What the tests of the channel stand on: a door in memory, a channel, the double, a clock that is moved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.runtime.clock import SetClock
from channels.base import Card, Choice, Form, Home, Inbound, Sender
from channels.slack.channel import Slack as Channel
from channels.slack.link import Watching
from tests.doubles.slack import BOT_TOKEN, Slack, SlackStage

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class Door:
    """Keeps what came, each ident once. `away`: storing raises; `forms`: what a tap's data opens; `wrong`: what is
    said to a form that was sent."""

    taken: list[Inbound] = field(default_factory=list)
    forms_taken: list[Inbound] = field(default_factory=list)
    forms: dict[str, Form] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    waiting: tuple[tuple[str, str], ...] = ()
    away: bool = False
    slow: asyncio.Event | None = None
    refused: int = 0

    async def take(self, channel: str, given: Inbound) -> bool:
        if self.away:
            self.refused += 1
            raise ConnectionError("the database is away")
        if any(one.ident == given.ident for one in self.taken):
            return False
        self.taken.append(given)
        return True

    async def form(self, channel: str, given: Inbound) -> Form | None:
        if self.away:
            raise ConnectionError("the database is away")
        if self.slow:
            await self.slow.wait()
        return self.forms.get(given.data)

    async def submitted(self, channel: str, given: Inbound) -> Mapping[str, str]:
        if self.away:
            raise ConnectionError("the database is away")
        if not self.wrong:
            self.forms_taken.append(given)
        return self.wrong

    async def home(self, channel: str, sender: Sender) -> Home:
        return Home(waiting=self.waiting, started=())


@dataclass
class World:
    stage: SlackStage
    slack: Slack
    channel: Channel
    door: Door
    clock: SetClock


def channel(stage: SlackStage, clock: SetClock, **more: Any) -> Channel:
    """The channel as the product makes it of the environment, quick to notice."""
    env = stage.env
    settings: dict[str, Any] = {
        "bot_token": env.get("SLACK_BOT_TOKEN", BOT_TOKEN),
        "app_token": env.get("SLACK_APP_TOKEN", ""),
        "signing_secret": env.get("SLACK_SIGNING_SECRET", ""),
        "base_url": env["SLACK_BASE_URL"],
        "now": clock.now,
        "watching": Watching(ping_s=0.02, silence=timedelta(seconds=40), pauses_s=(0.01,)),
    }
    return Channel(**settings | more)


def card(*labels: str, token: str = "tok", **more: Any) -> Card:
    """A card with these choices."""
    choices = tuple(Choice(label=label, data=f"w:{token}:{n}") for n, label in enumerate(labels))
    return Card(kind="card", token=token, title="", text="Extend the pilot?", choices=choices, **more)
