"""The lines of a markdown script: items by the column of their markers, the quotes and blocks that belong to them.

CommonMark's list rules do not apply. What an item says is read in `markdown.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from bot.domain.catalog import Catalog
from bot.language.addressees import looks_like
from bot.language.lower import COMMANDS
from bot.language.problems import Note, Problem

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+•◦▪–]|\d{1,9}[.)])[ \t]+(?P<box>\[[ xX]\][ \t]+)?(?P<rest>\S.*)\Z"
)
_RULE = re.compile(r"[ \t]*([-*_])([ \t]*\1){2,}[ \t]*\Z")
_HEADING = re.compile(r"[ \t]*(#{1,6}([ \t]|\Z)|<!--)")
_FENCE = re.compile(r"[ \t]*(?P<run>`{3,}|~{3,})[ \t]*(?P<language>[\w+.-]*)[^`]*\Z")
_QUOTE = re.compile(r"[ \t]*>")
IDENT = re.compile(r"""(?P<name>[^\s="'`{}()\[\]:]+)[ \t]*(?P<sign>:?=)(?![=~])[ \t]*(?=\S|\Z)""")
WORD = re.compile(r"\S+")
_QUOTED = re.compile(r"\n(?:[ \t]*\n)*[ \t]*>")
STRUCTURE = ("else", "branch", "miss", "error")

Mode = Literal["start", "item", "quote", "gap", "fence", "text"]


@dataclass(slots=True)
class Item:
    """One item: `start` of its marker, its text from `at` to `end`, and what stands below it."""

    column: int
    start: int
    at: int
    end: int
    children: list[Item] = field(default_factory=list)
    quotes: list[list[tuple[int, int]]] = field(default_factory=list)
    fences: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """Where what belongs to it ends, items below it left out."""
        ends = [self.end, *(block[-1][1] for block in self.quotes), *(end for _, end in self.fences)]
        return max(ends)


@dataclass(slots=True)
class Layout:
    """A script's items as they nest, and what is wrong or worth knowing about its lines."""

    text: str
    catalog: Catalog
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    top: list[Item] = field(default_factory=list)
    stack: list[Item] = field(default_factory=list)
    latest: Item | None = None
    mode: Mode = "start"
    names: set[str] = field(default_factory=set[str])
    """What the items above bind."""

    def problem(self, start: int, end: int, code: str, message: str, mend: str | None = None) -> None:
        self.problems.append(Problem(start=start, end=end, code=code, message=message, mend=mend))


def lay_out(text: str, start: int, catalog: Catalog) -> Layout:
    """The items of `text` from `start` on."""
    layout = Layout(text, catalog)
    _lines(layout, start)
    return layout


def every(items: list[Item]) -> list[Item]:
    """Items with all that stand below them, in written order."""
    found: list[Item] = []
    stack = items[::-1]
    while stack:
        item = stack.pop()
        found.append(item)
        stack.extend(item.children[::-1])
    return found


def rests(text: str) -> list[str]:
    """The text of every item, behind its marker."""
    found = (_ITEM.match(line.rstrip()) for line in text.split("\n"))
    return [item["rest"] for item in found if item]


def reads_as_command(rest: str, catalog: Catalog) -> bool:
    """Whether an item's text (behind its marker) reads as a command: a known word, or `name = word`."""
    rest = rest.strip().strip("`").strip()
    ident = IDENT.match(rest)
    word = WORD.match(rest, ident.end() if ident else 0)
    if word is None:
        return False
    if ident is not None and re.fullmatch(r"[A-Za-z_]\w*", ident["name"]):
        return True
    return op_name(word[0], catalog) is not None or word[0] in STRUCTURE


def op_name(word: str, catalog: Catalog) -> str | None:
    """The op that a command word names, or None."""
    name = COMMANDS.get(word, word)
    return name if catalog.get(name) is not None else None


def _lines(layout: Layout, start: int) -> None:
    text, at = layout.text, start
    while at <= len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        if fence := _FENCE.match(line):
            stop = _fence(layout, fence, at, stop)
        else:
            _line(layout, line, at, stop)
        at = stop + 1


def _line(layout: Layout, line: str, start: int, end: int) -> None:
    if not line.strip():
        layout.mode = "gap" if layout.mode in ("item", "quote", "fence", "gap") else layout.mode
    elif _QUOTE.match(line):
        _quote(layout, line, start, end)
    elif _RULE.match(line) or _HEADING.match(line):
        layout.mode = "text"
    elif item := _ITEM.match(line.rstrip()):
        _item(layout, item, start)
    elif layout.mode == "item" and layout.latest is not None:
        _unmarked(layout, line, start, end)
        layout.latest.end = start + len(line.rstrip())
    elif layout.mode == "quote" and layout.latest is not None:
        lead = len(line) - len(line.lstrip())
        layout.latest.quotes[-1].append((start + lead, end))
        _unmarked(layout, line, start, end)
    else:
        _unmarked(layout, line, start, end)
        layout.mode = "text"


def _unmarked(layout: Layout, line: str, start: int, end: int) -> None:
    """A comment that reads as a command is worth a note."""
    said = line.strip()
    ident = IDENT.match(said)
    word = WORD.match(said, ident.end() if ident else 0)
    if word is None:
        return
    name = op_name(word[0], layout.catalog)
    if name is None and word[0] not in STRUCTURE:
        return
    if ident is None and not _commands(layout, name, word[0], said[word.end() :].split()[:40], end):
        return
    lead = len(line) - len(line.lstrip())
    message = f"`{said[:60]}` reads as a command, but without `- ` before it it is none"
    layout.notes.append(Note(start=start + lead, end=start + len(line.rstrip()), code="no-marker", message=message))


def _commands(layout: Layout, name: str | None, word: str, further: list[str], end: int) -> bool:
    """Whether a line is a command rather than prose that happens to begin with such a word: somebody is addressed, a
    quote follows, a tool has parameters, or a condition compares."""
    if name is None:
        return further in ([], ["replan"]) or (word == "else" and further[0] == "if")
    spec = layout.catalog.get(name)
    if spec is None:
        return False
    if spec.expressions and word not in ("expect", "each", "ask"):
        return any(re.search(r"[=<>!|&]=?|\w\(|\w\.\w", part) for part in further)
    if spec.args and spec.args[0].kind == "addressee" and further and looks_like(further[0]):
        return True
    if spec.quote is not None and _QUOTED.match(layout.text, end):
        return True
    if spec.tool:
        return not further or any(re.fullmatch(r"[A-Za-z_][\w-]*:", part) for part in further)
    return any(part == "within" or re.fullmatch(r"[A-Za-z_]\w*:", part) for part in further[1:-1]) or (
        1 <= len(further) <= max(1, len(spec.args)) and any(part in layout.names for part in further)
    )


def _quote(layout: Layout, line: str, start: int, end: int) -> None:
    item = layout.latest
    lead = line.index(">") + 1
    lead += line[lead : lead + 1] in (" ", "\t")
    if item is None or layout.mode == "text":
        if item is not None and item.quotes:
            at = start + line.index(">")
            message = "a second quote stands below other text, so it belongs to no command"
            layout.problem(at, end, "quote-second", message, "move it up to the first, or take the text between out")
        layout.mode = "text" if item is None or not item.quotes else layout.mode
        return
    if layout.mode == "quote":
        item.quotes[-1].append((start + lead, end))
    else:
        item.quotes.append([(start + lead, end)])
    layout.mode = "quote"


def _item(layout: Layout, found: re.Match[str], start: int) -> None:
    column = sum(4 if c == "\t" else 1 for c in found["indent"])
    at, end = start + found.start("rest"), start + found.end("rest")
    item = Item(column=column, start=start + found.start("marker"), at=at, end=end)
    while layout.stack and layout.stack[-1].column > column - 2:
        layout.stack.pop()
    (layout.stack[-1].children if layout.stack else layout.top).append(item)
    layout.stack.append(item)
    if ident := IDENT.match(found["rest"]):
        layout.names.add(ident["name"])
    layout.latest, layout.mode = item, "item"


def _fence(layout: Layout, opened: re.Match[str], start: int, stop: int) -> int:
    """A fenced block, to the end of its closing line; parameters of the item above, if it is JSON."""
    text, run = layout.text, opened["run"]
    closing = re.compile(rf"^[ \t]*{re.escape(run[0])}{{{len(run)},}}[ \t]*$", re.MULTILINE).search(text, stop)
    body_start = min(stop + 1, len(text))
    body_end, end = (closing.start(), closing.end()) if closing else (len(text), len(text))
    language = opened["language"].lower()
    looks = language in ("json", "json5", "jsonc") or (
        not language and text[body_start:body_end].lstrip().startswith("{")
    )
    if looks and layout.latest is not None and layout.mode in ("item", "quote", "gap", "fence"):
        if closing is None:
            at = start + opened.start("run")
            layout.problem(
                at,
                at + len(run),
                "fence-open",
                "this fence is never closed",
                "end it with a line of its own, as it begins",
            )
        else:
            layout.latest.fences.append((body_start, body_end))
        layout.mode = "fence"
    else:
        layout.mode = "text"
    return end
