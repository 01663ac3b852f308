"""What a fact does to rows, and what must be done outside afterwards: the outcome of `apply`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.record import OpRow, RegionRow, RunRow

CARDS = ("card", "approval", "doubt")
"""Kinds of delivery that wait for an answer; the others are said and done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A row of the outbox, one a run, op, kind, attempt, addressee and `n`: a repeat is no second one.

    `to`: an email, a conversation, or `job`. `kind`: card, say, send, approval, doubt, reminder, notice.
    `card`: title, text, choices, fields … as the channel shows it. `opens`: its acceptance is reported back.
    `n`: which of several alike."""

    path: str
    attempt: int
    kind: str
    to: str
    card: Mapping[str, Any]
    at: datetime
    opens: bool = False
    n: str = ""

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """What it is one of within its run."""
        return (self.path, self.kind, self.attempt, self.to, self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The cards of an op turn into their outcome (`answered approve by Ana`), those to `to` alone if it is given."""

    path: str
    outcome: str
    to: str | None = None
    under: bool = False
    """Of every op below `path` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A row of the outbox for work: `tool`, `cel`, `jq`, `file`, `agent`, `each`, `judge`, `replan`, `run`,
    `early`. Idempotent ones are repeated after a crash, others become a doubt."""

    path: str
    attempt: int
    kind: str
    body: Mapping[str, Any]
    at: datetime
    idempotent: bool = True
    timeout_s: float = 60.0
    n: int = 0
    """Which call of this attempt it is."""

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What it is one of within its run."""
        return (self.path, self.attempt, self.kind, self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """The due time of one kind of an op's, or its end (`due` None)."""

    path: str
    kind: str
    due: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An armed expectation, by stream and key (None: any sender)."""

    path: str
    stream: str
    key: str | None
    since: datetime
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disarmed:
    """The expectations of this op are armed no more."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledUnder:
    """Every op below this path that has not ended is cancelled, every region closed, at one instant; but what
    stands below one of `keep`."""

    path: str
    keep: tuple[str, ...]
    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A name of the job's has this value now."""

    name: str
    value: Any
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A minted address."""

    token: str
    path: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An event belongs to this op, in this run."""

    event: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A value left the run."""

    path: str
    order: tuple[int, ...]
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the history: who did what, when, why. `what` a past participle."""

    at: datetime
    what: str
    path: str = ""
    by: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What someone who acted gets back, privately. `accepted`: it settled or changed something. To an edit: `op`, the
    path of what it names, `rev` as it stood before, `problems` of the plan as it would be, as data."""

    to: str
    text: str
    accepted: bool
    status: int = 200
    op: str | None = None
    rev: int | None = None
    problems: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True, kw_only=True)
class Step:
    """The outcome of one fact: rows as they are now, rows to add, and the reply. `where`: expectations whose
    `where` must be evaluated for this event first (path → expression and names); then nothing else counts."""

    run: RunRow | None = None
    ops: list[OpRow] = field(default_factory=list)
    regions: list[RegionRow] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    dropped_calls: list[str] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    disarmed: list[str] = field(default_factory=list)
    cancelled: list[CancelledUnder] = field(default_factory=list)
    bound: list[Bound] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    more: list[str] | None = None
    """What is left of a step too long for one transaction."""
    where: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    begun: frozenset[tuple[str, int, str, int]] = frozenset()
    """Keys of the calls that the commit itself marks as begun: whoever writes the step makes them at once."""
    plan: Any = None
    """The plan as edited, to be stored, where this fact changed it."""
    ended: bool = False
