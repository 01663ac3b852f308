"""Words as Slack takes them: escaped, cut to fit, with links and with instants in the reader's own zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from channels.slack import limits

Block = dict[str, Any]

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ADDRESS = re.compile(r"https?://[^\s<>|`\"']*[^\s<>|`\"'.,;:!?)\]}*_~]")


def escaped(text: str) -> str:
    """A text that mentions nobody: the three characters that Slack reads are written out."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fitting(text: str, most: int, more: str = "…") -> str:
    """As much of a text as fits, unescaped."""
    return text if len(text) <= most else text[: max(0, most - len(more))] + more


def within(text: str, most: int) -> str:
    """The text, escaped, of at most that many characters, no entity cut in two."""
    whole = escaped(text)
    if len(whole) <= most:
        return whole
    out, size = [], 0
    for char in text:
        piece = _ESCAPES.get(char, char)
        if size + len(piece) > most - 1:
            break
        out.append(piece)
        size += len(piece)
    return "".join(out) + "…"


def linked(text: str) -> str:
    """The text escaped, its web addresses made links (Slack does so by itself only where it also reads mentions)."""
    out, at = [], 0
    for found in _ADDRESS.finditer(text):
        out += [escaped(text[at : found.start()]), f"<{escaped(found[0])}>"]
        at = found.end()
    return "".join(out) + escaped(text[at:])


def mrkdwn(text: str) -> dict[str, Any]:
    """A text object of markup that is ready: in it nothing is taken for a mention that is not written as one."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain(text: str, most: int) -> dict[str, Any]:
    """A text object without markup, cut to fit, never empty."""
    return {"type": "plain_text", "text": fitting(text, most) or " ", "emoji": False}


def section(markup: str) -> Block:
    """A block of ready markup."""
    return {"type": "section", "text": mrkdwn(markup)}


def context(*markups: str) -> list[Block]:
    """A small grey line of what is there; none where nothing is."""
    given = " · ".join(markup for markup in markups if markup)
    return [{"type": "context", "elements": [mrkdwn(given[: limits.SECTION])]}] if given else []


def code(text: str) -> Block:
    """A text as it stands, in a box; nothing in it is read as markup."""
    part = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text or " "}]}
    return {"type": "rich_text", "elements": [part]}


def paragraphs(text: str, most: int, *, title: str = "") -> tuple[list[Block], bool]:
    """A text as sections, after a bold title; whether all of it is there. `most`: characters of all together."""
    blocks: list[Block] = []
    lead = f"*{within(title, 300)}*" if title.strip() else ""
    room = most - len(lead)
    whole = True
    for piece in _pieces(text, limits.SECTION - len(lead) - 1):
        markup = linked(piece)
        if len(markup) > room:
            markup, whole = within(piece, max(1, room)), False
        if markup.strip():
            blocks.append(section(f"{lead}\n{markup}" if lead else markup))
            lead = ""
        room -= len(markup)
        if not whole:
            break
    if lead:
        blocks.insert(0, section(lead))
    return blocks, whole


def thread(conversation: str | None) -> tuple[str, str] | None:
    """A thread's words and address: Slack leads from it into the workspace."""
    channel, _, ts = (conversation or "").removeprefix("slack:").partition("/")
    return ("the thread", f"https://slack.com/archives/{channel}/p{ts.replace('.', '')}") if channel and ts else None


def link(place: tuple[str, str] | None) -> str:
    """A place's words as a link."""
    if place is None:
        return ""
    words, address = place
    if not address.startswith(("https://", "http://")) or len(address) > limits.URL:
        return within(words, 300)
    return f"<{escaped(address)}|{within(words, 300).replace('|', '/')}>"


def when(at: datetime, now: datetime) -> str:
    """An instant in the reader's zone: `10:32`; on another day `Mar 2nd at 10:32`. Who cannot show it reads UTC."""
    at = at.astimezone(UTC)
    today = at.date() == now.astimezone(UTC).date() and abs(at - now) < timedelta(hours=12)
    shown = "{time}" if today else "{date_short_pretty} at {time}"
    return f"<!date^{int(at.timestamp())}^{shown}|{said(at, now)}>"


def said(at: datetime, now: datetime) -> str:
    """An instant in words of a text without markup: in UTC."""
    at = at.astimezone(UTC)
    day = "" if at.date() == now.astimezone(UTC).date() else f"{at:%a} {at.day} {at:%b} "
    return f"{day}{at:%H:%M} UTC"


def _pieces(text: str, most: int) -> Iterator[str]:
    """The text in parts of at most that many characters of markup, divided at line ends where there are some."""
    lines: list[str] = []
    size = 0
    for line in _short(text.splitlines() if text.strip() else [], most):
        length = len(linked(line)) + 1
        if lines and size + length > most:
            yield "\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += length
    if lines:
        yield "\n".join(lines)


def _short(lines: Iterable[str], most: int) -> Iterator[str]:
    for line in lines:
        while len(linked(line)) >= most:
            cut = most // 8
            while cut < len(line) and len(linked(line[: cut + most // 8])) < most:
                cut += most // 8
            yield line[:cut]
            line = line[cut:]
        yield line
