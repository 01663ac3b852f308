"""The exact text that somebody typed, out of what Telegram made of it.

Clients take `**`, `__`, backticks and fences out of a text when it is sent, and say beside it where they stood, counted
in UTF-16 units. Addresses, links and mentions change nothing in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MARKS = {"bold": "**", "italic": "__", "strikethrough": "~~", "spoiler": "||", "code": "`"}


@dataclass(frozen=True, slots=True)
class Pasted:
    """`undone`: marks were put back, or a code block was taken for the whole."""

    text: str
    undone: bool


def pasted(text: str, entities: Sequence[Mapping[str, Any]], aside: str = "") -> Pasted:
    """What was typed. A code block that is all of the message, but for `aside` (the bot's own name), is the text alone.

    Marks inside a code block stay as they came: nothing was taken out of it."""
    raw = text.encode("utf-16-le", "surrogatepass")
    blocks = [entity for entity in entities if entity.get("type") == "pre"]
    if len(blocks) == 1:
        inside = _part(raw, blocks[0])
        around = raw[: 2 * _start(blocks[0])] + raw[2 * _end(blocks[0]) :]
        left = around.decode("utf-16-le", "surrogatepass").strip()
        if not left or left.casefold() == aside.casefold():
            return Pasted(inside, True)
    # Place, whether it opens there, order among those that do, the mark.
    marks: list[tuple[int, bool, int, str]] = []
    for order, entity in enumerate(entities):
        kind = str(entity.get("type"))
        if kind == "pre":
            opening = f"```{entity.get('language') or ''}\n"
            closing = "```" if _part(raw, entity).endswith("\n") else "\n```"
            marks += [(_start(entity), True, order, opening), (_end(entity), False, -order, closing)]
        elif kind in MARKS and not any(_start(b) <= _start(entity) < _end(b) for b in blocks):
            marks += [(_start(entity), True, order, MARKS[kind]), (_end(entity), False, -order, MARKS[kind])]
    if not marks:
        return Pasted(text, False)
    out, last = b"", 0
    # What ends at a place closes before anything opens there, the inner before the outer.
    for at, _, _, mark in sorted(marks):
        out += raw[2 * last : 2 * at] + mark.encode("utf-16-le")
        last = at
    return Pasted((out + raw[2 * last :]).decode("utf-16-le", "surrogatepass"), True)


def _start(entity: Mapping[str, Any]) -> int:
    return int(entity.get("offset") or 0)


def _end(entity: Mapping[str, Any]) -> int:
    return _start(entity) + int(entity.get("length") or 0)


def _part(raw: bytes, entity: Mapping[str, Any]) -> str:
    return raw[2 * _start(entity) : 2 * _end(entity)].decode("utf-16-le", "surrogatepass")
