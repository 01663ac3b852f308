"""What became of a run, of its open regions and of their ops: the rows that are first the plan, then what is
being waited for, then the record.

Rows are plain values that the store reads and writes whole. Instants are aware datetimes in UTC. `data` holds
what only some ops have; its keys are listed where they are used:

    every op    error, reason, by_agent, tolerated (its failure was), skipped_for, notes (deliveries that failed)
    waits       to (addressees), choices, fields, need, question, since, miss, verdict, claim, answers, late, passed
    regions     taken, next (item or round to begin), size, parallel
    gates       gate {to, since, kind}, params (as substituted)
    save        file {path, size}: what was written
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

OpState = Literal[
    "planned", "running", "waiting", "gated", "uncertain", "done", "failed", "missed", "skipped", "cancelled"
]
ENDED: frozenset[str] = frozenset({"done", "failed", "missed", "skipped", "cancelled"})
PENDING: frozenset[str] = frozenset({"running", "waiting", "gated", "uncertain"})

RunState = Literal["running", "paused", "done", "failed", "cancelled"]
RegionState = Literal["ahead", "open", "failing", "stopping", "closed"]
"""`ahead`: an item of a map that waits for its turn."""


@dataclass(slots=True, kw_only=True)
class RunRow:
    """One execution of a plan. `plan` is the plan's hash, `rev` grows with every fact that changed something,
    `names` what it sees from outside (inputs, the job's names as they stood, what its trigger bound)."""

    id: str
    job: str
    owner: str
    plan: str
    created: datetime
    state: RunState = "running"
    rev: int = 0
    n: int = 0
    """Entries of its history so far."""
    hash: str = ""
    ended: datetime | None = None
    names: dict[str, Any] = field(default_factory=dict)
    customer: dict[str, Any] | None = None
    parent: str | None = None
    """The run whose op started this one, and that op's path: `RUN PATH`."""
    told: str | None = None
    """The hash of what whoever started it was told: the pre-flight, the notes, the text as pasted."""
    ends: datetime | None = None
    """The latest instant at which it can end, by its pre-flight."""
    data: dict[str, Any] = field(default_factory=dict)
    """`error`, `author` (an agent), `script`, `version`, `replans`, `stopping`, `held`, `key`, `more`."""


@dataclass(slots=True, kw_only=True)
class RegionRow:
    """An open (or closed) instance of a region. `unended` counts its ops that are not closed, `hot` those that
    are active. `owner` is the path of the op it belongs to ("" for the program and its error region)."""

    path: str
    owner: str
    state: RegionState = "open"
    unended: int = 0
    hot: int = 0
    opened: datetime
    value: Any = None
    has_value: bool = False
    error: str | None = None
    item: Any = None
    """Of a map's: the element."""
    new: bool = False


@dataclass(slots=True, kw_only=True)
class OpRow:
    """One op of an open region.

    `open`: it has not ended for those outside (a missed op whose `onMiss` runs is still open). `own`: it is active
    by itself, `hot`: so many of its regions are. `needs`: what it needs and has not ended. `rev` counts what an
    answer, result or edit must name to be fresh. `unclosed`: its regions that are open.
    """

    path: str
    place: str
    region: str
    rank: int
    op: str
    id: str | None = None
    state: OpState = "planned"
    open: bool = True
    own: bool = False
    hot: int = 0
    unclosed: int = 0
    needs: int = 0
    attempt: int = 0
    rev: int = 0
    started: datetime | None = None
    due: datetime | None = None
    ended: datetime | None = None
    by: str | None = None
    value: Any = None
    has_value: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    new: bool = False

    @property
    def active(self) -> bool:
        return self.own or self.hot > 0

    @property
    def error(self) -> str | None:
        return self.data.get("error")
