"""The text as pasted, the mending of what chat clients did to it, and the way back to every place in the original.

What a channel knows of its platform (mentions, lists, entities) is undone there; here only what text shows.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from bot.language.problems import Problem, width

Escaping = Literal["plain", "slack", "telegram"]

LINE_COLUMNS = 100
"""Display columns of an excerpt; longer lines are cut around the fault."""
LONG_LINE = 2_000
"""Characters of a line from which only the part around a fault is looked at."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_STARTS = re.compile(r"^[\ufeff\u200b\u2060]+", re.MULTILINE)
_LINKED = re.compile(r"<(?:mailto:|https?://|tel:)([^|<>\s]*)\|([^<>\n]*)>")
_BARE_LINK = re.compile(r"<((?:https?://|mailto:|tel:)[^|<>\s]+)>")
_ENTITY = re.compile(r"&(lt|gt|amp);")
_HTML = re.compile(r"&(lt|gt|amp|quot|apos|#39|#34|#x27|#x22);")
_QUOT = re.compile(r"&(?:quot|#34|#x22);")
_ENTITIES = {
    "lt": "<",
    "gt": ">",
    "amp": "&",
    "quot": '"',
    "apos": "'",
    "#39": "'",
    "#34": '"',
    "#x27": "'",
    "#x22": '"',
}
_JSON = re.compile(r"(?:\s|```\w*|run_program\()*[\[{]")
_FENCE = re.compile(r"`{3,}|^[ \t]*~{3,}", re.MULTILINE)
_LANGUAGE = re.compile(r"[ \t]*(?:[A-Za-z][\w+.-]*)?[ \t]*(?:\n|\Z)|(?:json5?|markdown|md)[ \t]+(?=[\[{])")
_WRAPPER = re.compile(r"\s*(?:await\s+)?run_program\s*\(\s*(?=[\[{])")
_WRAPPER_END = re.compile(r"\s*\)\s*;?\s*\Z")
_ITEM = re.compile(r"^[ \t>]*(?:[-*+•◦▪–]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?`?(?P<rest>\S.*)$", re.MULTILINE)
_PROGRAM = re.compile(r"\s*(?:[\[{]|run_program\b|---[ \t]*\n)")

Origin = Sequence[int]


@dataclass(frozen=True, slots=True)
class Source:
    """`text` is `pasted` mended; `origin[i]` is where its character `i` stood, with one more entry for the end.
    `problems` are those that the pasting itself has (bytes that are no text)."""

    pasted: str
    text: str
    origin: Origin
    escaping: Escaping = "plain"
    problems: tuple[Problem, ...] = ()
    html: bool = False
    """It came HTML-escaped, and was read as what it says."""

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, in the text as pasted."""
        return _place(self.pasted, self._start(offset))

    def length(self, start: int, end: int) -> int:
        """Pasted characters from `start` to `end`: at least 1, never across a line end."""
        first = self._start(start)
        last = min(self._end(start, end), _bounds(self.pasted, _place(self.pasted, first)[0])[1])
        return max(1, last - first)

    def report(self, problem: Problem) -> dict[str, Any]:
        """A problem as `--json` prints it."""
        line, column = self.position(problem.start)
        fix: dict[str, Any] | None = None
        if problem.fix is not None:
            at = self._start(problem.fix.start)
            end = at if problem.fix.end <= problem.fix.start else self._end(problem.fix.start, problem.fix.end)
            fix_line, fix_column = _place(self.pasted, at)
            text = self._escaped(problem.fix.text)
            fix = {"line": fix_line, "column": fix_column, "length": end - at, "text": text}
        return {
            "line": line,
            "column": column,
            "length": self.length(problem.start, problem.end),
            "code": problem.code,
            "message": problem.message,
            "mend": problem.mend,
            "fix": fix,
        }

    def render(self, problems: Iterable[Problem]) -> str:
        """The problems as people read them, one after another."""
        return "\n".join(line for problem in problems for line in self._rendered(problem))

    def _rendered(self, problem: Problem) -> list[str]:
        line, column = self.position(problem.start)
        places = [(problem.start, problem.end, ""), *problem.also]
        placed = [(*self.position(start), self.length(start, end), word) for start, end, word in places]
        placed.sort(key=lambda place: place[0])
        gutter = max(len(str(place[0])) for place in placed)
        out = [f"line {line}, column {column}: {problem.message} [{problem.code}]"]
        shown: tuple[int, int] | None = None
        for number, at, length, word in placed:
            text, base = _around(self.pasted, number, at - 1, length)
            here = at - 1 - base
            from_, to = _window(text, here, here + length, cut=base > 0)
            if shown != (number, base + from_):
                out.append(f"{number:>{gutter}} | {_excerpt(text, from_, to, cut=base > 0)}".rstrip())
                shown = (number, base + from_)
            lead = " " * ((1 if base + from_ else 0) + width(_shown(text[from_:here])))
            carets = "^" * max(1, width(_shown(text[here : min(here + length, to)])))
            out.append(f"{'':>{gutter}} | {lead}{carets} {word}".rstrip())
        if problem.mend:
            out.append(f"{'':>{gutter}} = {problem.mend}")
        return out

    def _start(self, offset: int) -> int:
        return self.origin[max(0, min(offset, len(self.text)))]

    def _end(self, start: int, end: int) -> int:
        end = min(end, len(self.text))
        if end <= start:
            return self._start(start) + 1
        last = self.origin[end - 1]
        entity = (_HTML if self.html else _ENTITY).match(self.pasted, last) if self.text[end - 1] in "<>&\"'" else None
        return entity.end() if entity else last + 1

    def _escaped(self, text: str) -> str:
        if self.html:
            return html.escape(text)
        if self.escaping != "slack":
            return text
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mend(pasted: str | bytes, escaping: Escaping = "plain", is_command: Callable[[str], bool] | None = None) -> Source:
    """Undoes what chats do to a pasted text. `is_command` says whether an item's text reads as a command: a fence
    with one outside is no script's wrapping. Without it every item counts."""
    problems: list[Problem] = []
    text = _decoded(pasted, problems) if isinstance(pasted, bytes) else _whole(pasted, problems)
    original, origin = text, range(len(text) + 1)
    state: tuple[str, Origin] = (text, origin)
    state = _replace(*state, _LINE_END, lambda m: ("\n", 0)) if "\r" in text else state
    state = _replace(*state, _STARTS, lambda m: ("", 0))
    state = (state[0].replace("\u00a0", " "), state[1])
    state = _replace(*state, _LINKED, _label)
    if escaping == "slack":
        state = _replace(*state, _BARE_LINK, _bare)
        state = _replace(*state, _ENTITY, lambda m: (_ENTITIES[m[1]], 0))
    if escaped := _html_escaped(state[0]):
        state = _replace(*state, _HTML, lambda m: (_ENTITIES[m[1]], 0))
    state = _unfenced(*state, is_command or (lambda rest: True))
    state = _unwrapped(*state)
    mended, origin_now = state
    return Source(original, mended, origin_now, escaping, tuple(problems), escaped)


def _decoded(data: bytes, problems: list[Problem]) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _whole(data.decode("utf-16", "replace"), problems)
    try:
        return _whole(data.decode("utf-8"), problems)
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    at = text.find("\ufffd")
    message = "these bytes are no text: the script must be in UTF-8"
    problems.append(Problem(start=at, end=at + 1, code="text-encoding", message=message, mend="save it as UTF-8"))
    return text


def _whole(text: str, problems: list[Problem]) -> str:
    """Text without halves of characters and without NUL, which not every storage takes."""
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        at = fault.start
        problems.append(Problem(start=at, end=at + 1, code="text-encoding", message="here stands half of a character"))
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    if (at := text.find("\0")) >= 0:
        message, mend = "here stands a NUL character, which is no text", "remove it"
        problems.append(Problem(start=at, end=at + 1, code="text-encoding", message=message, mend=mend))
    return text.replace("\0", "\ufffd")


def _replace(
    text: str, origin: Origin, pattern: re.Pattern[str], change: Callable[[re.Match[str]], tuple[str, int]]
) -> tuple[str, Origin]:
    """Every match replaced. `change` gives the new text and where in the match its first character stood;
    characters after it follow one by one."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for found in pattern.finditer(text):
        new, shift = change(found)
        pieces.append(text[at : found.start()])
        places.extend(origin[at : found.start()])
        pieces.append(new)
        places.extend(origin[min(found.start() + shift + k, found.end() - 1)] for k in range(len(new)))
        at = found.end()
    if not at:
        return text, origin
    pieces.append(text[at:])
    places.extend(origin[at:])
    return "".join(pieces), places


def _label(found: re.Match[str]) -> tuple[str, int]:
    """A link's label as it was typed; where it has none, its target."""
    return (found[2], found.start(2) - found.start()) if found[2] else (found[1], found.start(1) - found.start())


def _bare(found: re.Match[str]) -> tuple[str, int]:
    target = found[1]
    skip = len("mailto:") if target.startswith("mailto:") else len("tel:") if target.startswith("tel:") else 0
    return target[skip:], 1 + skip


def _html_escaped(text: str) -> bool:
    """Whether it is a JSON text whose every quote came HTML-escaped."""
    return "&" in text and '"' not in text and bool(_JSON.match(text)) and bool(_QUOT.search(text))


def _unfenced(text: str, origin: Origin, is_command: Callable[[str], bool]) -> tuple[str, Origin]:
    """The content of the text's only fence, if nothing outside it is a command."""
    fences = list(_FENCE.finditer(text))
    if len(fences) > 2:
        outer = [f for f in fences if _column(text, f) == 0 or len(f[0]) > 3]
        longest = max(len(f[0].strip()) for f in fences)
        outer = [f for f in outer if len(f[0].strip()) == longest] if longest > 3 else outer
        if len(outer) != 2 or text[outer[1].end() :].strip() or text[: outer[0].start()].strip():
            return text, origin
        fences = outer
    if not fences or (len(fences) == 1 and text[: fences[0].start()].strip()):
        return text, origin
    opened, closed = fences[0], fences[1] if len(fences) == 2 else None
    before, after = text[: opened.start()], text[closed.end() :] if closed else ""
    if _PROGRAM.match(before) or any(
        is_command(item["rest"]) for part in (before, after) for item in _ITEM.finditer(part)
    ):
        return text, origin
    language = _LANGUAGE.match(text, opened.end(), closed.start() if closed else len(text))
    start, end = language.end() if language else opened.end(), closed.start() if closed else len(text)
    return text[start:end], origin[start : end + 1]


def _column(text: str, found: re.Match[str]) -> int:
    return found.start() - (text.rfind("\n", 0, found.start()) + 1)


def _unwrapped(text: str, origin: Origin) -> tuple[str, Origin]:
    """What `run_program(…)` or a pair of backticks holds."""
    start, end = 0, len(text)
    if found := _WRAPPER.match(text):
        start = found.end()
        closing = _WRAPPER_END.search(text, max(start, len(text.rstrip().rstrip(";")) - 200))
        end = closing.start() if closing else end
    elif re.match(r"\s*`\s*[\[{]", text) and text.rstrip().endswith("`") and text.count("`") == 2:
        start, end = text.index("`") + 1, text.rindex("`")
    return (text[start:end], origin[start : end + 1]) if (start, end) != (0, len(text)) else (text, origin)


@lru_cache(maxsize=16)
def _line_starts(pasted: str) -> tuple[int, ...]:
    return (0, *(found.end() for found in _LINE_END.finditer(pasted)))


def _place(pasted: str, index: int) -> tuple[int, int]:
    starts = _line_starts(pasted)
    line = bisect_right(starts, index)
    return line, index - starts[line - 1] + 1


def _bounds(pasted: str, number: int) -> tuple[int, int]:
    """Where a line begins and ends, its line end left out."""
    starts = _line_starts(pasted)
    end = starts[number] if number < len(starts) else len(pasted)
    while end > starts[number - 1] and pasted[end - 1] in "\r\n":
        end -= 1
    return starts[number - 1], end


def _around(pasted: str, number: int, at: int, length: int) -> tuple[str, int]:
    """A line, or of a very long one as much as can be shown around a fault; and where in the line that begins."""
    start, end = _bounds(pasted, number)
    if end - start <= LONG_LINE:
        return pasted[start:end], 0
    base = max(0, at - LONG_LINE // 2)
    return pasted[start + base : min(end, start + base + LONG_LINE + min(length, LONG_LINE))], base


def _shown(text: str) -> str:
    """What a terminal can show: a tab as one space, what cannot be seen as a dot."""
    if text.isprintable():
        return text
    return "".join(
        " " if c == "\t" or c == "\u00a0" else "·" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in text
    )


def _window(line: str, start: int, end: int, *, cut: bool) -> tuple[int, int]:
    """The part of a line to show, so that the fault is in it and the line is not too wide."""
    if not cut and width(line) <= LINE_COLUMNS:
        return 0, len(line)
    from_, to = start, min(end, start + LINE_COLUMNS - 20)
    room = LINE_COLUMNS - 2 - width(line[from_:to])
    left = min(from_, room // 2)
    right = min(len(line) - to, room - left)
    left = min(from_, room - right)
    return max(0, from_ - left), to + right


def _excerpt(line: str, from_: int, to: int, *, cut: bool) -> str:
    return f"{'…' if from_ or cut else ''}{_shown(line[from_:to])}{'…' if to < len(line) else ''}"
