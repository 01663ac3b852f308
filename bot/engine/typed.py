"""Ops that somebody writes into an edit: read as a script is, checked as part of the edited plan, with their places.

What is wrong comes back as `Refused`, every problem with the words at fault and, where the ops were typed as a text,
their line and column in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.plan import Op, Plan
from bot.language.problems import Problem
from bot.language.read import Read, read
from bot.language.script import check_plan
from bot.language.tree import Placed


class Refused(Exception):
    """The edit cannot stand; the message says why, and what is so now. `problems`: what is wrong with the ops typed,
    or with the plan as it would be: `{line, column, length, words, code, message, mend, fix}`."""

    def __init__(self, why: str, problems: tuple[Mapping[str, Any], ...] = ()) -> None:
        super().__init__(why)
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """Ops as they were read. `written`: as a text, so that places lead back to it; else they came as data."""

    ops: tuple[Op, ...]
    read: Read
    written: bool

    def placed(self, moved: Mapping[str, str]) -> Read:
        """The same, with every op known by the place that it has in the edited plan (`moved`: old place → new)."""
        found: dict[str, Placed] = {}
        for place, one in self.read.placed.items():
            top = next((old for old in moved if place == old or place.startswith((old + ".", old + "["))), None)
            if top is not None:
                found[moved[top] + place[len(top) :]] = one
        return replace(self.read, placed=found)


def read_ops(new: Any, catalog: Catalog) -> Typed:
    """The ops of an edit: a text of either surface, one op or a list of ops as data. Refused where none can be read."""
    written = isinstance(new, str)
    got = read(new if isinstance(new, str) else json.dumps(new, ensure_ascii=False), catalog)
    if got.plan is None or not got.plan.program.ops:
        raise _refused(list(got.problems), got, written, "there is no op in it")
    return Typed(ops=got.plan.program.ops, read=got, written=written)


def must_stand(
    plan: Plan, catalog: Catalog, world: World, bound: Mapping[str, str | None], typed: Typed | None, moved: Any = None
) -> None:
    """Refused where an edited plan does not pass the checks of a script, with every problem."""
    found = typed.placed(moved or {}) if typed is not None else None
    problems = check_plan(plan, catalog, world, bound, found=found)
    if problems:
        raise _refused(problems, found, typed is not None and typed.written, "")


def _refused(problems: list[Problem], found: Read | None, written: bool, otherwise: str) -> Refused:
    return Refused(
        "; ".join(p.message for p in problems) or otherwise, tuple(_report(p, found, written) for p in problems)
    )


def _report(problem: Problem, found: Read | None, written: bool) -> dict[str, Any]:
    """A problem as data; it has no place where it is in an op that was not typed, or typed as data."""
    inside = found is not None and (problem.end > 1 or problem in found.problems)
    words = found.source.text[problem.start : problem.end] if inside and found is not None else None
    if found is not None and inside and written:
        return {**found.source.report(problem), "words": words}
    return {
        "line": None, "column": None, "length": None, "words": words, "code": problem.code,
        "message": problem.message, "mend": problem.mend, "fix": None,
    }  # fmt: skip
