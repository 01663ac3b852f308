"""Which chat platforms a process has, by its settings. An SDK is imported only where its platform is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from bot.config import Settings
from bot.domain.errors import Misconfigured
from bot.language import durations
from channels.base import Channel

Now = Callable[[], datetime]


def channels_of(settings: Settings, now: Now) -> dict[str, Channel]:
    """A channel for each platform whose token is set. Raises Misconfigured where its SDK is not installed, or something
    that goes with the token is not set."""
    return {name: _MAKERS[name](given, settings, now) for name, given in settings.platforms.items()}


def _base(given: Mapping[str, str]) -> dict[str, Any]:
    """Where the platform is, if not where it always is."""
    return {"base_url": given["base_url"]} if "base_url" in given else {}


def _slack(given: Mapping[str, str], settings: Settings, now: Now) -> Channel:
    from channels.slack.channel import Slack

    if "app_token" not in given and "signing_secret" not in given:
        raise Misconfigured("SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP) goes with SLACK_BOT_TOKEN")
    return Slack(
        bot_token=given["bot_token"],
        app_token=given.get("app_token", ""),
        signing_secret=given.get("signing_secret", ""),
        now=now,
        **_base(given),
    )


def _telegram(given: Mapping[str, str], settings: Settings, now: Now) -> Channel:
    from channels.telegram.channel import Telegram

    return Telegram(
        token=given["token"],
        now=now,
        public_url=settings.public_url,
        webhook_secret=given.get("webhook_secret"),
        zone=durations.zone(settings.workspace),
        **_base(given),
    )


def _line(given: Mapping[str, str], settings: Settings, now: Now) -> Channel:
    if "secret" not in given:
        raise Misconfigured("LINE_CHANNEL_SECRET goes with LINE_CHANNEL_ACCESS_TOKEN")
    from channels.line.channel import Line

    return Line(
        channel_secret=given["secret"],
        access_token=given["access_token"],
        now=now,
        public_url=settings.public_url,
        zone=durations.zone(settings.workspace),
        **_base(given),
    )


_MAKERS: Mapping[str, Callable[[Mapping[str, str], Settings, Now], Channel]] = {
    "slack": _slack,
    "telegram": _telegram,
    "line": _line,
}
