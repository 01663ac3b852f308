"""A channel at a double."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from channels.telegram.channel import Telegram
from tests.doubles.telegram import TOKEN, BotApi

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def made(api: BotApi, **more: Any) -> Telegram:
    """A channel at a double; it tries again at once."""
    settings: dict[str, Any] = {"token": TOKEN, "base_url": f"{api.url}/bot", "now": lambda: NOON}
    return Telegram(**(settings | {"pauses_s": (0.0, 0.01), "quiet_s": 0.0} | more))
