"""What a script becomes: a tree of ops, a value that never changes. What became of each op is `record.py`.

Strings in `params` and in the other fields are in the JSON surface's form, whatever surface they came from:
`$name`, `${path}`, `$$` for a literal dollar. Expressions (`be`, `cond`, `where`, `until`, `jq`) are as written.

A *place* is an op's path with the indexes of items and rounds left out: `3`, `3.then.1`, `5[].1`, `4.left.1`,
`2.onMiss.2`, `2+1` (inserted after `2`). A *path* names one instance: `5[2].1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RANK_STEP = 1 << 24
"""Distance between neighbouring ops' ranks as read; what is inserted between two takes the middle. A
power of two that the rows of a short script store in few bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """`{ default: value }`: what a failed op, or a failed item of a map, gives instead."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Up to `max` further attempts, after `backoff`, twice that, four times … at most `max_delay`."""

    max: int
    backoff: str = "1s"
    max_delay: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A list of ops that belongs to an op, or the program itself. `place` is `""` for the program, else
    `3.then`, `5[]`, `4.left`, `2.onMiss`, `2.onError`; the program's own error region is `onError`."""

    place: str
    ops: tuple[Op, ...]


OnError = Literal["halt", "continue"] | Default | Region


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One step as written.

    `regions`: `then`, `else`, `body`, or a branch's name (its number from 1 where branches are a list).
    `after`: names, each with its `?` if it has one. `on_error` is None where the op's kind decides.
    `within` and `by` as written (durations, or references to one).
    `settings` of the op's own stand in `params`: `as`, `maxConcurrency`, `onItemError`, `failFast`, `until`,
    `max`, `every`, `evidence`, `where`, `check`, `choices`, `question` …
    """

    op: str
    place: str
    rank: int
    id: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    to: Any = None
    from_: Any = None
    after: tuple[str, ...] = ()
    within: str | None = None
    by: str | None = None
    on_miss: Region | Literal["replan"] | None = None
    on_error: OnError | None = None
    retry: Retry | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)
    branches_listed: bool = False
    """Of `flow.parallel`: branches were written as a list, so the value is a list."""

    def inner(self) -> Iterator[tuple[str, Region]]:
        """The op's regions in written order: its own, then `onMiss`, then `onError`."""
        yield from self.regions.items()
        if isinstance(self.on_miss, Region):
            yield "onMiss", self.on_miss
        if isinstance(self.on_error, Region):
            yield "onError", self.on_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A declared input of a sealed program. `default` counts only where `has_default`."""

    name: str
    type: str = "any"
    default: Any = None
    has_default: bool = False
    choices: tuple[Any, ...] = ()
    of: Any = None
    secret: bool = False
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One entry of `on`: exactly one of `every` (cron), `event` (stream), `command`, `script`."""

    every: str | None = None
    zone: str | None = None
    event: str | None = None
    where: str | None = None
    as_: str | None = None
    command: str | None = None
    script: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole script. `inputs` is None for a bare program, a tuple (perhaps empty) for a sealed one."""

    program: Region
    inputs: tuple[Input, ...] | None = None
    name: str | None = None
    title: str | None = None
    within: str | None = None
    on: tuple[Trigger, ...] = ()
    overlap: str | None = None
    key: str | None = None
    on_error: Region | None = None

    @property
    def sealed(self) -> bool:
        return self.inputs is not None

    def regions(self) -> Iterator[tuple[Region, Op | None]]:
        """Every region with the op it belongs to (None: the program and its `onError`), outer ones first,
        in written order."""
        stack: list[tuple[Region, Op | None]] = []
        if self.on_error is not None:
            stack.append((self.on_error, None))
        stack.append((self.program, None))
        while stack:
            region, owner = stack.pop()
            yield region, owner
            inner = [(r, op) for op in region.ops for _, r in op.inner()]
            stack.extend(reversed(inner))

    def walk(self) -> Iterator[tuple[Op, Region]]:
        """Every op with its region, in written order, depth first."""

        def visit(region: Region) -> Iterator[tuple[Op, Region]]:
            for op in region.ops:
                yield op, region
                for _, inner in op.inner():
                    yield from visit(inner)

        yield from visit(self.program)
        if self.on_error is not None:
            yield from visit(self.on_error)
