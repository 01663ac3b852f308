"""A channel at a double."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from channels.line.channel import Line
from tests.doubles.line import ACCESS, SECRET, MessagingApi

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def made(api: MessagingApi, **more: Any) -> Line:
    settings: dict[str, Any] = {
        "channel_secret": SECRET,
        "access_token": ACCESS,
        "base_url": api.url,
        "now": lambda: NOON,
    }
    return Line(**(settings | more))
