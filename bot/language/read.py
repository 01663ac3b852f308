"""One call from a pasted text to a plan, or to everything that is wrong with how it is written.

Never raises and never hangs, whatever the text. What needs the world is checked in `check/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bot.domain.catalog import Catalog
from bot.domain.plan import Plan
from bot.language import items, json5, markdown
from bot.language.lower import lower
from bot.language.problems import Note, Problem
from bot.language.source import Escaping, Source, mend
from bot.language.tree import Placed

LIMIT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Read:
    """`plan` may stand beside problems, holding what could be read; None where nothing could."""

    source: Source
    plan: Plan | None
    placed: Mapping[str, Placed]
    problems: tuple[Problem, ...]
    surface: Literal["json", "markdown"]
    notes: tuple[Note, ...] = ()


def read(text: str | bytes, catalog: Catalog, escaping: Escaping = "plain") -> Read:
    """Reads a script of either surface. Problems come in order of place."""
    if (size := _size(text)) > LIMIT_BYTES:
        source = mend(text[:200], escaping)
        message = f"a script may have 256 KiB of text; this one has {-(-size // 1024):,} KiB"
        return Read(source, None, {}, (Problem(start=0, end=1, code="limit-text", message=message),), "json")
    source = mend(text, escaping, lambda rest: items.reads_as_command(rest, catalog))
    if markdown.is_json(source.text):
        return _json(source, catalog)
    return _markdown(source, catalog)


def is_script(text: str, catalog: Catalog) -> bool:
    """Whether a text that is addressed to the bot is a script: it begins as JSON or front matter, or at least one
    item reads as a command."""
    if _size(text) > LIMIT_BYTES:
        return True
    mended = mend(text, "plain", lambda rest: items.reads_as_command(rest, catalog)).text
    return markdown.is_json(mended) or markdown.is_markdown(mended, catalog)


def _json(source: Source, catalog: Catalog) -> Read:
    parsed = json5.read(source.text)
    lowered = lower(parsed.roots, catalog) if parsed.roots else None
    further = lowered.problems if lowered else ()
    if parsed.problems:
        further = tuple(p for p in further if p.code not in ("no-command", "op-missing", "parameter-missing"))
    problems = _ordered([*source.problems, *parsed.problems, *further])
    if not problems and lowered is None:
        problems = (Problem(start=0, end=1, code="no-command", message="there is no op in this script"),)
    plan = lowered.plan if lowered else None
    return Read(source, plan, lowered.placed if lowered else {}, problems, "json")


def _markdown(source: Source, catalog: Catalog) -> Read:
    parsed = markdown.read(source.text, catalog)
    lowered = lower(parsed.roots, catalog, parsed.wounded) if parsed.roots else None
    further = lowered.problems if lowered else ()
    if parsed.problems:
        further = tuple(p for p in further if p.code != "no-command")
    problems = _ordered([*source.problems, *parsed.problems, *further])
    return Read(
        source,
        lowered.plan if lowered else None,
        lowered.placed if lowered else {},
        problems,
        "markdown",
        tuple(parsed.notes),
    )


def _ordered(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (p.start, p.end)))


def _size(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return len(text)
    return len(text) if len(text) > LIMIT_BYTES else len(text.encode("utf-8", "surrogatepass"))
