"""What Telegram takes at most, and whether a message fits.

From the Bot API reference and python-telegram-bot 22.8, read 2026-11."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from channels.telegram.words import Rows, Words
from channels.text import units

TEXT = 4096
"""UTF-16 units of a message, after its entities were parsed."""
ENTITIES = 100
"""Of a message; what is beyond stays plain."""
DATA_BYTES = 64
"""UTF-8 bytes that a button brings back, and at least 1."""
BUTTONS = 100
"""Of one keyboard (found by use, in no reference)."""
ROW = 8
"""Buttons in one row (found by use, in no reference)."""
ANSWER = 200
"""Characters told to whoever tapped."""
PLACEHOLDER = 64
"""Characters in the empty field of a reply."""
DOWN_BYTES = 20 * 1024 * 1024
"""Of a file that a bot may fetch."""
UP_BYTES = 50 * 1024 * 1024
"""Of a file that a bot may send."""
SPLIT_FROM = 4000
"""UTF-16 units from which a text may be the first part of one that the client split: it splits at 4,096, at a line
break before it."""
SPLIT_WITHIN = timedelta(seconds=2)
"""Between the parts of a text that the client split."""
EDITS_A_MINUTE = 60
"""One a second: what a chat takes. All chats together take 30 a second, a group 20 a minute; beyond, Telegram says how
long to wait, and that chat waits."""


def faults(words: Words) -> list[str]:
    """Why Telegram would refuse a message; empty where it takes it."""
    found: list[str] = []
    if not words.ink.text.strip():
        found.append("it has no text")
    if units(words.ink.text) > TEXT:
        found.append(f"its text is longer than {TEXT} characters")
    if len(words.ink.spans) > ENTITIES:
        found.append(f"it has more than {ENTITIES} formatted places")
    return found + keyboard_faults(words.rows)


def keyboard_faults(rows: Rows) -> list[str]:
    """Why Telegram would refuse a keyboard."""
    found: list[str] = []
    if sum(map(len, rows)) > BUTTONS:
        found.append(f"it has more than {BUTTONS} buttons")
    if any(len(row) > ROW for row in rows):
        found.append(f"it has more than {ROW} buttons in a row")
    for button in (button for row in rows for button in row):
        if not button.label.strip():
            found.append("a button has no words")
        if button.url is None and not 1 <= len(button.data.encode()) <= DATA_BYTES:
            found.append(f"what `{button.label}` brings back is not 1 to {DATA_BYTES} bytes")
        if button.url is not None and not leads(button.url):
            found.append(f"`{button.label}` leads nowhere that Telegram lets it")
    return found


def leads(url: str) -> bool:
    """Whether Telegram takes an address for a button or a link: on the web, on a host with a name of its own."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and "." in host and not host.startswith("127.")
