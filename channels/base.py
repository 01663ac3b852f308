"""What a channel is: how a platform shows things, and what becomes of what is sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do; the contract suite tests the declared way round for what it cannot.

    `edits`: a message can be changed in place. `looks_up`: what was accepted can be found again. `buttons`: choices
    it shows as buttons at most."""

    edits: bool = True
    looks_up: bool = False
    buttons: int = 25
    text_limit: int = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The platform accepted it; `ref` is the platform's name for it."""

    ref: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Not now: the platform is busy or away; try again after `pause`."""

    why: str
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The platform will never take it."""

    why: str


class Channel(Protocol):
    """One platform. `send` puts a delivery out, `settle` turns a card into its outcome; neither raises for what the
    platform says."""

    name: str
    capabilities: Capabilities

    async def send(self, delivery: dict[str, Any], conversation: str) -> Sent | Later | Refused: ...

    async def settle(self, delivery: dict[str, Any], outcome: str) -> Sent | Later | Refused: ...
