"""The front door of the language: a pasted text in, a plan or every problem out, with notes and the pre-flight."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from bot.domain import cost
from bot.domain.catalog import Catalog, World
from bot.domain.plan import Plan
from bot.language import types
from bot.language.check import (
    choices,
    costs,
    expressions,
    files,
    inputs,
    names,
    people,
    rights,
    streams,
    triggers,
    windows,
)
from bot.language.check import notes as noting
from bot.language.check import preflight as flight
from bot.language.check import types as typing
from bot.language.check.context import Checking
from bot.language.problems import Note, Problem, bounded
from bot.language.read import Read, read
from bot.language.scope import analyse
from bot.language.source import Escaping

CHECKS: tuple[Callable[[Checking], Iterator[Problem]], ...] = (
    names.check,
    expressions.check,
    windows.check,
    people.check,
    rights.check,
    streams.check,
    choices.check,
    inputs.check,
    files.check,
    triggers.check,
    costs.check,
    typing.check,
)
"""Every topic; where two find fault with the same words, the earlier one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A script as read and checked. `plan` is None where nothing could be read; it counts only without `problems`.

    `types`: what each op gives, by its place. `preflight` is empty where there are problems.
    """

    read: Read
    plan: Plan | None
    problems: tuple[Problem, ...]
    notes: tuple[Note, ...]
    preflight: Mapping[str, Any]
    types: Mapping[str, types.Type]

    @property
    def refused(self) -> bool:
        return bool(self.problems)

    def reports(self) -> list[dict[str, Any]]:
        """The problems as `--json` prints them."""
        return [self.read.source.report(problem) for problem in self.problems]

    def rendered(self) -> str:
        """The problems as people read them."""
        return self.read.source.render(self.problems)


def examine(
    text: str | bytes,
    catalog: Catalog,
    world: World,
    *,
    inputs: Mapping[str, Any] | None = None,
    escaping: Escaping = "plain",
    starting: bool = True,
    name: str | None = None,
) -> Examined:
    """Reads a script and checks all of it. `inputs`: what it is started with. `starting`: False where it is only
    looked at or saved, so that inputs may still be missing. `name`: what it is saved under, whatever it says itself."""
    with bounded():
        return _examined(text, catalog, world, inputs, escaping, starting, name)


def _examined(
    text: str | bytes,
    catalog: Catalog,
    world: World,
    inputs: Mapping[str, Any] | None,
    escaping: Escaping,
    starting: bool,
    name: str | None,
) -> Examined:
    found = read(text, catalog, escaping)
    if found.plan is not None and name is not None:
        found = replace(found, plan=replace(found.plan, name=name))
    if found.plan is None:
        return Examined(read=found, plan=None, problems=found.problems, notes=found.notes, preflight={}, types={})
    given = None if not starting or (found.plan.on and inputs is None) else dict(inputs or {})
    checking = _checking(found.plan, catalog, world, found, given)
    problems = _merged(found, checking)
    notes = (*found.notes, *noting.notes(checking)) if not problems else found.notes
    return Examined(
        read=found,
        plan=found.plan,
        problems=tuple(problems),
        notes=_each_once(notes),
        preflight=_flight(checking) if not problems else {},
        types=dict(checking.types),
    )


def check_plan(
    plan: Plan,
    catalog: Catalog,
    world: World,
    bound: Mapping[str, str | None] | None = None,
    given: Mapping[str, Any] | None = None,
    found: Read | None = None,
) -> list[Problem]:
    """What is wrong with a plan whose text is not before us: an edited one, a saved one. `bound`: names it sees from
    outside, with types. `given`: the inputs it is started with, None where it is not started. `found`: the text of the
    ops that an edit brings, known by their places in this plan, with its own problems.

    Places of problems elsewhere mean nothing (they stand at 0); messages and mends do."""
    seen = {name: said or "any" for name, said in (bound or {}).items()}
    world = replace(world, bindings={**world.bindings, **seen})
    checking = _checking(plan, catalog, world, found, given)
    if found is not None:
        return _merged(found, checking)
    return _once([problem for check in CHECKS for problem in check(checking)], placed=False)


def flight_of(plan: Plan, catalog: Catalog, world: World) -> tuple[Mapping[str, Any], list[Note]]:
    """The pre-flight and the notes of a plan whose text is not before us, once its checks have passed."""
    checking = _checking(plan, catalog, world, None, None)
    for _ in typing.check(checking):
        pass
    return _flight(checking), noting.notes(checking)


def _flight(checking: Checking) -> dict[str, Any]:
    """The pre-flight, with what its agents cost at least where that is known."""
    found = flight.preflight(checking)
    usd = costs.estimate(checking) if found["agent_calls"] and checking.world.model is not None else None
    return found | ({"agent_usd": usd / cost.MICRO} if usd else {})


def _checking(
    plan: Plan, catalog: Catalog, world: World, found: Read | None, given: Mapping[str, Any] | None
) -> Checking:
    return Checking(
        plan=plan,
        placed=found.placed if found else {},
        source=found.source if found else None,
        world=world,
        catalog=catalog,
        scopes=analyse(plan, catalog),
        given=given,
        now=world.now,
        surface=found.surface if found else "json",
    )


def _merged(found: Read, checking: Checking) -> list[Problem]:
    """The reader's problems and those of every check: what overlaps a fault that was told before follows from it."""
    told = list(found.problems)
    further = [problem for check in CHECKS for problem in check(checking)]
    if told:
        spans = sorted((p.start, p.end) for p in told)
        starts = [start for start, _ in spans]
        reach = list(accumulate((end for _, end in spans), max))
        # Of the spans that begin before a problem ends, one overlaps it if the farthest reaches past its start.
        further = [p for p in further if not ((at := bisect_left(starts, p.end)) and reach[at - 1] > p.start)]
    return _once([*told, *further], placed=True)


def _each_once(notes: Sequence[Note]) -> tuple[Note, ...]:
    """In order of place, the same words once."""
    said: dict[str, Note] = {}
    for note in sorted(notes, key=lambda n: n.start):
        said.setdefault(note.message, note)
    return tuple(said.values())


def _once(problems: list[Problem], *, placed: bool) -> list[Problem]:
    """One cause, one problem: of several at the same words the first; in order of place."""
    seen: dict[tuple[Any, ...], Problem] = {}
    for problem in problems:
        # Without a place (a program's head, an edit) it is the words that tell causes apart.
        key = (
            (problem.start, problem.end) if placed and problem.start else (problem.code, problem.message, problem.start)
        )
        seen.setdefault(key, problem)
    return sorted(seen.values(), key=lambda p: (p.start, p.end))
