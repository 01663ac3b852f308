"""What happened. One transaction applies one fact to one run; a fact applied twice is a fact once.

`at` is when it happened (received at our door), by our clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The run was accepted: its program opens."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A call of an op's ended: with a value, an error, or its answer lost (`lost`: it may have happened).

    `kind` is the call's; what an older attempt gave changes nothing. `extra`: what else that kind tells, such as who
    answered."""

    at: datetime
    path: str
    attempt: int
    kind: str
    value: Any = None
    error: str | None = None
    lost: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


def returned(
    call: Mapping[str, Any],
    at: datetime,
    *,
    value: Any = None,
    error: str | None = None,
    lost: bool = False,
    **extra: Any,
) -> Returned:
    """The end of a call, given as its row."""
    return Returned(
        at=at,
        path=call["path"],
        attempt=call["attempt"],
        kind=call["kind"],
        value=value,
        error=error,
        lost=lost,
        extra=extra,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A platform accepted a delivery, or refused it for good (`error`)."""

    at: datetime
    path: str
    kind: str
    to: str
    attempt: int
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Someone answered an ask, an approval or a doubt. `by` is an email, `conversation` where it came from when
    the giver is known by that alone. `value` as given: a label, a value, typed text or an object of fields. `at`: when
    it was received, which is what the deadline is held against; `now`: when it is applied, where that is later."""

    at: datetime
    path: str
    value: Any
    by: str | None = None
    conversation: str | None = None
    reason: str | None = None
    typed: bool = False
    id: str | None = None
    via: str | None = None
    """The agent that gives it for `by`, as `agent:NAME`."""
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """An event that one of the run's expectations may take. `at`: when it was received, which is what deadlines are
    held against; `now`: when it is applied (early evidence is applied long after). `passes`: what each expectation's
    `where` gave for it (`True`, `False`, or the reason as text), by path. `only`: early evidence offered to one
    expectation."""

    at: datetime
    stream: str
    event: Mapping[str, Any]
    """`{id, stream, from, at, event, conversation?}` as stored."""
    passes: Mapping[str, bool | str] = field(default_factory=dict)
    only: str | None = None
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A due time has come. `kind`: `window`, `delivery`, `retry`, `gate`, `pause`, `remind`, `run`."""

    at: datetime
    path: str
    kind: str
    due: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Someone edits what is pending. `edit` as section 10 of the language gives it; `rev` is what they saw."""

    at: datetime
    by: str
    edit: Mapping[str, Any]
    why: str | None = None
    rev: int | None = None
    plan: Any = None
    """The edited plan, checked by the shell, where the edit changes it; and the ops concerned."""
    problems: tuple[str, ...] = ()
    id: str | None = None
    via: str | None = None
    """The agent that makes it for `by`, as `agent:NAME`: it may do what that person may, and what an agent may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The rest of a step that was too long for one transaction."""

    at: datetime


Fact = Accepted | Returned | Delivered | Answered | Arrived | Overdue | Edited | Continued


def applied(fact: Fact) -> datetime:
    """When a fact is applied: later than it was received where what received it ended in between."""
    return (fact.now or fact.at) if isinstance(fact, Answered | Arrived) else fact.at


Verdict = Literal["agrees", "disagrees", "unclear"]
