"""What the messengers share about plain text: counted as they count, split where it reads well, times in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from channels.base import Line

NOW_SHOWN = 10
"""Lines of a plan that are waited on, at most; the others are counted."""
AROUND_SHOWN = 5
"""Lines just before and just after those."""
MARKS = {"past": "✓", "now": "▸", "next": "·"}


_TICKED = re.compile(r"`([^`\n]+)`")


def quoted(text: str) -> str:
    """Words of our own with what they quote between quotation marks: where backticks would stand as they are."""
    return _TICKED.sub(r"“\1”", text)


def units(text: str) -> int:
    """Its length in UTF-16 units, as Telegram and LINE count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def graphemes(text: str) -> list[str]:
    """What a reader takes for single characters. Nearly the rules of Unicode's annex 29; where it differs it gives
    more, never fewer."""
    found: list[str] = []
    for char in text:
        if found and _joins(found[-1], char):
            found[-1] += char
        else:
            found.append(char)
    return found


def fitting(text: str, most: int) -> int:
    """How many characters of a text fit into so many UTF-16 units."""
    if len(text) * 2 <= most:
        return len(text)
    taken = 0
    for index, char in enumerate(text):
        taken += 2 if ord(char) > 0xFFFF else 1
        if taken > most:
            return index
    return len(text)


def cut(text: str, most: int) -> str:
    """A text of at most so many UTF-16 units; one that was longer ends in `…`."""
    return text if units(text) <= most else text[: fitting(text, most - 1)].rstrip() + "…"


def pieces(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Where a text is parted so that each piece has at most so many UTF-16 units: begin and end of each. At a line
    break, which then falls away; without one at a blank; without one anywhere."""
    begin = 0
    while units(rest := text[begin:]) > most:
        fits = fitting(rest, most)
        end = max(rest.rfind("\n", 1, fits + 1), 0) or max(rest.rfind(" ", 1, fits + 1), 0) or fits
        yield begin, begin + end
        begin += end + (rest[end : end + 1] in ("\n", " "))
    yield begin, len(text)


def split(text: str, most: int) -> list[str]:
    """The text in pieces of at most so many UTF-16 units."""
    return [text[begin:end] for begin, end in pieces(text, most)]


def moment(at: datetime, now: datetime, zone: tzinfo) -> str:
    """An instant for somebody in a zone: `10:32` today, `Mon 10:32` within a week, `Mon 12 Jan 10:32` beyond."""
    there, here = at.astimezone(zone), now.astimezone(zone)
    apart = abs((there.date() - here.date()).days)
    if apart == 0:
        return f"{there:%H:%M}"
    return f"{there:%a %H:%M}" if apart < 7 else f"{there:%a} {there.day} {there:%b %H:%M}"


def stands(line: Line, now: datetime, zone: tzinfo) -> str:
    """A line of a plan with its times: `waiting on Ana since 10:32, until 10:42`, `Ana picked approve, 10:41`."""
    said = quoted(line.text)
    if line.at is not None:
        said += (" since " if line.tense == "now" else ", ") + moment(line.at, now, zone)
    if line.until is not None and line.tense == "now":
        said += f", until {moment(line.until, now, zone)}"
    return said


def around(lines: Sequence[Line]) -> list[Line | str]:
    """Of a long plan the lines that matter: what is waited on, and what is next to it; the others are counted."""
    past = [line for line in lines if line.tense == "past"]
    now = [line for line in lines if line.tense == "now"]
    after = [line for line in lines if line.tense == "next"]
    shown: list[Line | str] = []
    if len(past) > AROUND_SHOWN:
        shown.append(f"… {len(past) - AROUND_SHOWN} more done before")
    shown += past[-AROUND_SHOWN:] + now[:NOW_SHOWN]
    if len(now) > NOW_SHOWN:
        shown.append(f"… {len(now) - NOW_SHOWN} more waited for")
    shown += after[:AROUND_SHOWN]
    if len(after) > AROUND_SHOWN:
        shown.append(f"… {len(after) - AROUND_SHOWN} more after")
    return shown


def _joins(before: str, char: str) -> bool:
    """Whether a character belongs to what stands before it: an accent, a selector, the other half of a joined emoji."""
    if char in "\u200d\ufe0e\ufe0f\u20e3" or unicodedata.category(char).startswith("M"):
        return True
    if before.endswith("\u200d") or 0x1F3FB <= ord(char) <= 0x1F3FF or 0xE0020 <= ord(char) <= 0xE007F:
        return True
    flag = 0x1F1E6 <= ord(char) <= 0x1F1FF
    return flag and len(before) == 1 and 0x1F1E6 <= ord(before) <= 0x1F1FF
