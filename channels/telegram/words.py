"""A Telegram message before it is one: text with formatted places, and a keyboard.

Formatting goes beside the text, never into it, so that no text can be taken for markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from channels.text import fitting, pieces, units


@dataclass(frozen=True, slots=True)
class Span:
    """A formatted place of a text, in characters. `kind`: Telegram's name of it; `url`: of a `text_link`."""

    kind: str
    start: int
    end: int
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Inked:
    """A text and its formatted places, in order."""

    text: str
    spans: tuple[Span, ...] = ()

    def part(self, start: int, end: int) -> Inked:
        """A part of it, with what is formatted in it."""
        held = (Span(s.kind, max(s.start, start) - start, min(s.end, end) - start, s.url) for s in self.spans)
        return Inked(self.text[start:end], tuple(span for span in held if span.start < span.end))

    def entities(self) -> list[dict[str, Any]]:
        """As Telegram takes them: places counted in UTF-16 units."""
        return [
            {"type": s.kind, "offset": units(self.text[: s.start]), "length": units(self.text[s.start : s.end])}
            | ({"url": s.url} if s.url is not None else {})
            for s in self.spans
        ]


class Ink:
    """Writes a text piece by piece."""

    def __init__(self) -> None:
        self.text = ""
        self._spans: list[Span] = []

    def put(self, text: str, kind: str = "", url: str | None = None) -> Ink:
        if text and kind:
            self._spans.append(Span(kind, len(self.text), len(self.text) + len(text), url))
        self.text += text
        return self

    def line(self, text: str, kind: str = "", url: str | None = None) -> Ink:
        """On a line of its own, where there is any."""
        if text:
            self.put("\n" if self.text and not self.text.endswith("\n") else "").put(text, kind, url)
        return self

    def block(self, text: str, kind: str = "", url: str | None = None) -> Ink:
        """Below an empty line, where there is any text above."""
        if text:
            above = len(self.text) - len(self.text.rstrip("\n"))
            self.put("\n" * max(0, 2 - above) if self.text else "").put(text, kind, url)
        return self

    def done(self) -> Inked:
        return Inked(self.text, tuple(self._spans))


def cut(ink: Inked, most: int) -> Inked:
    """At most so many UTF-16 units of it; one that was longer ends in `…`."""
    if units(ink.text) <= most:
        return ink
    kept = ink.part(0, fitting(ink.text, most - 1))
    return Inked(kept.text + "…", kept.spans)


def split(ink: Inked, most: int) -> list[Inked]:
    """In parts of at most so many UTF-16 units, at line breaks."""
    return [ink.part(begin, end) for begin, end in pieces(ink.text, most)]


@dataclass(frozen=True, slots=True)
class Button:
    """`data` comes back when it is tapped; one with `url` leads there."""

    label: str
    data: str = ""
    url: str | None = None


Rows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One message. `asks`: a reply to it is opened, with these words in its empty field. `listed`: its choices with
    numbers, for where no buttons can be shown."""

    ink: Inked
    rows: Rows = ()
    asks: str = ""
    listed: str = ""

    @property
    def bare(self) -> Words:
        """The same without buttons: its choices stand last in the text."""
        if not self.listed or self.ink.text.endswith(self.listed):
            return Words(ink=self.ink, asks=self.asks)
        text = f"{self.ink.text}\n\n{self.listed}" if self.ink.text else self.listed
        return Words(ink=Inked(text, self.ink.spans), asks=self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image, by its address."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that is sent."""

    name: str
    content: bytes


Step = Words | Picture | Document
