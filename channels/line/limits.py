"""What LINE takes at most, and whether a message fits.

From the Messaging API reference and line-bot-sdk 3.27, read 2026-11."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from channels.text import graphemes, units

CALL = 5
"""Messages of one call."""
TEXT = 5000
"""UTF-16 units of a text message."""
QUICK = 13
"""Quick replies of a message."""
LABEL = 20
"""Characters of a label as a reader counts them."""
DATA = 300
"""Characters that a postback brings back."""
DISPLAYED = 300
"""Characters that a tap shows as the person's own message."""
ALT = 1500
"""Characters of what stands in place of a card in a list or a notification."""
URI = 1000
"""Characters of an address."""
BUBBLE_BYTES = 30 * 1024
"""Of one bubble, as JSON."""
BUBBLES = 12
"""Of a carousel."""
CAROUSEL_BYTES = 50 * 1024
FRESH_S = 50.0
"""Seconds for which a reply token is used: it holds for a minute, and the way takes some of it."""
ANSWER_S = 2.0
"""Seconds in which LINE wants its webhook answered."""


def faults(message: Mapping[str, Any]) -> list[str]:
    """Why LINE would refuse a message; empty where it takes it."""
    found: list[str] = []
    if message["type"] == "text" and not 1 <= units(message["text"]) <= TEXT:
        found.append(f"its text has not 1 to {TEXT} characters")
    if message["type"] == "flex":
        found += _flex(message)
    items = (message.get("quickReply") or {}).get("items") or ()
    if len(items) > QUICK:
        found.append(f"it has more than {QUICK} quick replies")
    for action in actions(message):
        found += _action(action)
    return found


def actions(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every button and quick reply of a message, in order."""
    for held in _inside(message):
        if isinstance(held, Mapping) and isinstance(held.get("action"), Mapping):
            yield held["action"]


def leads(uri: str) -> bool:
    """Whether LINE takes an address for a button."""
    return uri.startswith(("https://", "http://", "line://", "tel:")) and len(uri) <= URI


def _flex(message: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    if not 1 <= units(message["altText"]) <= ALT:
        found.append(f"what stands in its place has not 1 to {ALT} characters")
    held = message["contents"]
    bubbles = held["contents"] if held["type"] == "carousel" else [held]
    if len(bubbles) > BUBBLES:
        found.append(f"it has more than {BUBBLES} bubbles")
    if any(_bytes(bubble) > BUBBLE_BYTES for bubble in bubbles) or _bytes(held) > CAROUSEL_BYTES:
        found.append(f"it is larger than {BUBBLE_BYTES // 1024} KB")
    texts = [one for one in _inside(held) if isinstance(one, Mapping) and one.get("type") == "text"]
    if any(not one["text"] for one in texts):
        found.append("a line of it is empty")
    return found


def _action(action: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    label = str(action.get("label") or "")
    if not 1 <= len(graphemes(label)) <= LABEL:
        found.append(f"the label `{label}` has not 1 to {LABEL} characters")
    if action["type"] == "postback":
        if not 1 <= len(action["data"]) <= DATA:
            found.append(f"what `{label}` brings back has not 1 to {DATA} characters")
        if len(action.get("displayText") or "") > DISPLAYED:
            found.append(f"what `{label}` shows has more than {DISPLAYED} characters")
    if action["type"] == "uri" and not leads(action["uri"]):
        found.append(f"`{label}` leads nowhere that LINE lets it")
    return found


def _bytes(held: Any) -> int:
    return len(json.dumps(held, ensure_ascii=False).encode())


def _inside(held: Any) -> Iterator[Any]:
    """Everything in a message, outer before inner."""
    yield held
    parts: Any = held.values() if isinstance(held, Mapping) else held if isinstance(held, list | tuple) else ()
    for part in parts:
        yield from _inside(part)
