"""Who somebody is on Slack: looked up once, kept for an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from channels.base import Later, Refused, Sender
from channels.slack.calls import Calls

KEPT = timedelta(hours=1)
"""How long what Slack said of somebody is taken as true."""


@dataclass(frozen=True, slots=True)
class _Entry:
    sender: Sender
    at: datetime


class People:
    """People by their id, and the handles of user groups. What is not known is looked up, once however many ask."""

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls = calls
        self._now = now
        self._known: dict[str, _Entry] = {}
        self._asked: dict[str, asyncio.Task[Sender | Later | Refused]] = {}
        self._groups: dict[str, str] = {}
        self.team = ""
        """The workspace's id, once Slack has said it."""

    def known(self, user: str) -> Sender | None:
        """Somebody who was looked up."""
        entry = self._known.get(user)
        return entry.sender if entry else None

    def names(self, kind: str, ident: str) -> str | None:
        """The words that stand for a mention in a script: somebody's address, a group's handle."""
        if kind == "group":
            handle = self._groups.get(ident)
            return f"@{handle}" if handle else None
        sender = self.known(ident)
        if sender is None:
            return None
        return sender.email or (f'@"{sender.name}"' if " " in sender.name else f"@{sender.name}")

    def learn(self, user: Mapping[str, Any]) -> Sender:
        """Keeps what Slack says of somebody."""
        sender = sender_of(user, self.team)
        self._known[sender.ref] = _Entry(sender, self._now())
        return sender

    def learn_groups(self, groups: list[Mapping[str, Any]]) -> None:
        self._groups = {str(one["id"]): str(one["handle"]) for one in groups}

    async def of(self, user: str) -> Sender | Later | Refused:
        """Somebody, looked up where that is an hour ago; as they were last known where Slack does not say."""
        entry = self._known.get(user)
        if entry and self._now() - entry.at < KEPT:
            return entry.sender
        if user not in self._asked:
            self._asked[user] = asyncio.ensure_future(self._ask(user))
        try:
            got = await asyncio.shield(self._asked[user])
        finally:
            if (task := self._asked.get(user)) and task.done():
                self._asked.pop(user, None)
        return entry.sender if entry and not isinstance(got, Sender) else got

    async def _ask(self, user: str) -> Sender | Later | Refused:
        got = await self._calls.call("users.info", user=user)
        return got if isinstance(got, Later | Refused) else self.learn(got["user"])


def sender_of(user: Mapping[str, Any], team: str) -> Sender:
    """Somebody as Slack describes them. `team`: the workspace's own id, if it is known."""
    profile = user.get("profile") or {}
    foreign = bool(team and user.get("team_id") and user["team_id"] != team and not user.get("enterprise_user"))
    guest = any(user.get(key) for key in ("is_restricted", "is_ultra_restricted", "is_stranger", "deleted")) or foreign
    return Sender(
        ref=str(user["id"]),
        name=str(
            profile.get("display_name") or profile.get("real_name") or user.get("real_name") or user.get("name") or ""
        ),
        email=profile.get("email") or None,
        timezone=user.get("tz") or None,
        kind="bot" if user.get("is_bot") else "guest" if guest else "member",
    )
