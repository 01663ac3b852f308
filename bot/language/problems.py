"""What is wrong with a script, where, and the likely mend; nearest names; the excerpt with its carets."""

from __future__ import annotations

import unicodedata
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A replacement that mends a problem: offsets of the mended text, as `Problem`'s."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One cause. `start`, `end`: offsets into `Source.text`. `message` says what is wrong in the script's words
    and stands alone; `mend` advises, where something is likely. `code` names the fault (`window-missing`).
    `also`: further places with a word each ("bound here")."""

    start: int
    end: int
    code: str
    message: str
    mend: str | None = None
    fix: Fix | None = None
    also: tuple[tuple[int, int, str], ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth knowing before a run starts; no refusal."""

    start: int
    end: int
    code: str
    message: str


COMPARISONS = 4_000
"""Names that one script's faults are compared with at most: past that, faults have no likely mend, so that a text
with thousands of them is told about as fast as one with three."""
LONGEST_NAME = 64
_left: ContextVar[list[int] | None] = ContextVar("comparisons left", default=None)


@contextmanager
def bounded(comparisons: int = COMPARISONS) -> Generator[None]:
    """Within it, nearest names are looked for so many times at most."""
    token = _left.set([comparisons])
    try:
        yield
    finally:
        _left.reset(token)


def spent() -> bool:
    """No more nearest names are looked for in this script."""
    left = _left.get()
    return left is not None and left[0] <= 0


def nearest(word: str, known: Iterable[str], most: int = 4) -> list[str]:
    """The known names that `word` was likely meant to be, best first: case, `_` and `-` folded; of up to four letters
    one may be wrong, of up to eight two, of more a third."""
    left = _left.get()
    if len(word) > LONGEST_NAME or (left is not None and left[0] <= 0):
        return []
    scanned = 0
    folded = _fold(word)
    letters = set(folded)
    scored: list[tuple[int, str]] = []
    for name in dict.fromkeys(known):
        scanned += 1
        limit = _limit(folded, name)
        if abs(len(folded) - len(name)) > limit + name.count("_") + name.count("-") or len(name) > LONGEST_NAME:
            continue
        other = _fold(name)
        limit = _limit(folded, other)
        if len(letters.difference(other)) > limit:
            continue
        if left is not None:
            left[0] -= 1 + len(folded) * len(other) // 64
            if left[0] < 0:
                break
        distance = _distance(folded, other, limit)
        if distance <= limit and distance < max(len(folded), len(other)):
            scored.append((distance, name))
    if left is not None:
        left[0] -= 1 + scanned // 20
    scored.sort()
    if scored and scored[0][0] <= 1:
        scored = [pair for pair in scored if pair[0] <= 1]
    return [name for _, name in scored[:most]]


def did_you_mean(names: Sequence[str]) -> str | None:
    """The mend's sentence for the nearest names."""
    if not names:
        return None
    quoted = [f"`{name}`" for name in names]
    return f"did you mean {' or '.join(quoted) if len(quoted) < 3 else ', '.join(quoted[:-1]) + ' or ' + quoted[-1]}?"


def respelling(start: int, end: int, key: str, text: str) -> Fix | None:
    """The replacement of a key that stands from `start` to `end`, with quotes around it or a colon behind it; None
    where it is written in some other way."""
    lead = 1 if end - start == len(key) + 2 else 0
    return Fix(start=start + lead, end=start + lead + len(key), text=text) if end - start <= len(key) + 2 else None


def width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _fold(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")


def _limit(a: str, b: str) -> int:
    """How many letters may be wrong."""
    longer = max(len(a), len(b))
    if len(a) < 2:
        return 0
    return 1 if longer <= 4 else 2 if longer <= 8 else longer // 3


def _distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from a to b; more than `limit` is `limit + 1`."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if older and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, older[j - 2] + 1)
            row.append(best)
        if min(row) > limit:
            return limit + 1
    return row[-1]
