"""Which chat platforms a process has, by its settings. An SDK is imported only where its platform is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from bot.config import Settings
from channels.base import Channel


def channels_of(settings: Settings, now: Callable[[], datetime]) -> dict[str, Channel]:
    """A channel for each platform whose token is set."""
    return {name: _MAKERS[name](given, settings, now) for name, given in settings.platforms.items()}


Given = Mapping[str, str]
Maker = Callable[[Given, Settings, Callable[[], datetime]], Channel]
_MAKERS: dict[str, Maker] = {}
