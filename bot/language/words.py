"""The words of one markdown item: bare or quoted, each with its place; `{path}` in them as references."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.language import refs
from bot.language.json5 import DOUBLE, SINGLE
from bot.language.tree import Node

_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"""(?:\{[A-Za-z_](?:[\w.?]|\[(?:-?\d+|"[^"\n]*"|'[^'\n]*')\])*\}|\S)+""")
_NAMED = re.compile(r"""@["“”„]([^"“”\n]*)["“”]""")
_ESCAPE = re.compile(r"""\\([\\"'n])""")
_LONE = re.compile(r"\{([^{}]*)\}\Z")
INTEGER = re.compile(r"[+-]?\d{1,15}\Z")


@dataclass(frozen=True, slots=True)
class Word:
    """`raw` is what stands from `start` to `end`, quotes included; `value` what it says, unescaped, with the place
    of each character. `closed` is False where a quote was opened and never closed."""

    raw: str
    start: int
    end: int
    value: str
    offsets: Sequence[int]
    quoted: bool = False
    closed: bool = True

    @property
    def lone(self) -> refs.Ref | None:
        """The reference, where the word is `{path}` and nothing else."""
        found = None if self.quoted else _LONE.match(self.raw)
        return refs.path(found[1]) if found else None


def skip(text: str, at: int, stop: int) -> int:
    """Behind the blanks and line ends at `at`."""
    found = _SPACE.match(text, at, stop)
    return found.end() if found else at


def next_word(text: str, at: int, stop: int) -> Word | None:
    """The word at or behind `at`; a quote opens only at its start."""
    start = skip(text, at, stop)
    if start >= stop:
        return None
    if text[start] in "\"'" or text[start] in DOUBLE + SINGLE:
        if (end := _closing(text, start, stop)) is not None:
            return _quoted(text, start, end)
        line_end = text.find("\n", start, stop)
        end = stop if line_end < 0 else line_end
        raw = text[start:end].rstrip()
        end = start + len(raw)
        return Word(raw, start, end, raw[1:], range(start + 1, end + 1), quoted=True, closed=False)
    if found := _NAMED.match(text, start, stop):
        value = f'@"{found[1]}"'
        return Word(found[0], start, found.end(), value, range(start, found.end() + 1))
    found = _BARE.match(text, start, stop)
    end = found.end() if found else start + 1
    return Word(text[start:end], start, end, text[start:end], range(start, end + 1))


def text_node(value: str, offsets: Sequence[int], start: int, end: int) -> Node:
    """A literal's node: its `{path}`s as references in the JSON form."""
    if "{" not in value and "}" not in value and "$" not in value:
        return Node(kind="text", start=start, end=end, value=value, offsets=offsets, markdown=True)
    braced = refs.brace_parse(value)
    places = [offsets[index] for index in braced.offsets]
    return Node(kind="text", start=start, end=end, value=braced.value, offsets=places, markdown=True)


def literal(word: Word) -> Node:
    """The node of a word in a literal place."""
    return text_node(word.value, word.offsets, word.start, word.end)


def plain(word: Word) -> Node:
    """The node of a word taken as it is, braces and dollars included (expressions, names)."""
    return Node(kind="text", start=word.start, end=word.end, value=word.value, offsets=word.offsets, markdown=True)


def bound(path: str, start: int, end: int, lead: int = 0) -> Node:
    """The node `$path` of a bound name; `lead`: characters before it (a brace)."""
    places = [start, *(min(end - 1, start + lead + k) for k in range(len(path))), end]
    return Node(kind="text", start=start, end=end, value=f"${path}", offsets=places, markdown=True)


def rest(text: str, start: int, stop: int) -> Node | None:
    """Everything from `start` on as one line of plain text, for expressions; None where nothing is left."""
    start = skip(text, start, stop)
    said = text[start:stop].rstrip()
    if not said:
        return None
    end = start + len(said)
    if "\n" not in said:
        return Node(kind="text", start=start, end=end, value=said, offsets=range(start, end + 1), markdown=True)
    out: list[str] = []
    places: list[int] = []
    at = 0
    for number, line in enumerate(said.split("\n")):
        body = line.strip()
        lead = start + at + len(line) - len(line.lstrip())
        at += len(line) + 1
        if body:
            if out:
                out.append(" ")
                places.append(lead - 1 if number else lead)
            out.append(body)
            places.extend(range(lead, lead + len(body)))
    places.append(end)
    return Node(kind="text", start=start, end=end, value="".join(out), offsets=places, markdown=True)


def _closing(text: str, start: int, stop: int) -> int | None:
    """Where the quote at `start` closes: the first that ends a word, else the first at all; on its line."""
    line_end = text.find("\n", start, stop)
    stop = stop if line_end < 0 else line_end
    opener = text[start]
    closers = opener if opener in "\"'" else (DOUBLE + '"' if opener in DOUBLE else SINGLE + "'")
    ends_word = start < _last_end(text, stop, closers)
    at = start + 1
    while at < stop:
        if text[at] == "\\":
            at += 2
            continue
        if text[at] in closers and (not ends_word or at + 1 >= stop or text[at + 1].isspace()):
            return at
        at += 1
    return None


@lru_cache(maxsize=64)
def _last_end(text: str, stop: int, closers: str) -> int:
    """Where the last closing quote of a line stands that ends a word: beyond it none needs to be looked for."""
    at = text.rfind("\n", 0, stop) + 1
    last = -1
    for found in re.finditer(rf"[{re.escape(closers)}](?=\s|\Z)", text[at:stop]):
        last = at + found.start()
    return last


def _quoted(text: str, start: int, end: int) -> Word:
    body = text[start + 1 : end]
    raw = text[start : end + 1]
    if "\\" not in body:
        return Word(raw, start, end + 1, body, range(start + 1, end + 1), quoted=True)
    out: list[str] = []
    places: list[int] = []
    at = 0
    for found in _ESCAPE.finditer(body):
        out.append(body[at : found.start()] + ("\n" if found[1] == "n" else found[1]))
        places.extend(range(start + 1 + at, start + 1 + found.start() + 1))
        at = found.end()
    out.append(body[at:])
    places.extend(range(start + 1 + at, end + 1))
    return Word(raw, start, end + 1, "".join(out), places, quoted=True)
