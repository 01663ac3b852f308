"""What the record of a run says in tables: every wait with its answers, every approval with its parameters, what agents
cost, what could not be delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.domain import cost
from bot.domain.catalog import World
from bot.domain.plan import Op
from bot.domain.record import OpRow
from bot.domain.values import text
from bot.engine import asks, waits, words
from bot.runtime import report
from bot.server import phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """One wait: on whom, since when, until when at most, how it ended; each answer with its giver, moment, lateness."""

    what: str
    who: str
    since: datetime
    until: datetime | None
    ended: str
    answers: Sequence[tuple[str, datetime, str]] = field(default=())
    """What was answered by whom, when, and how late (empty: in time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """One approval: of exactly these parameters, by whom, when, why."""

    what: str
    params: Sequence[tuple[str, str]]
    asked: str
    asked_at: datetime
    choice: str
    by: str
    at: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What the agents of one step used, in words."""

    what: str
    calls: str
    tokens: str
    sent: str
    cached: str
    answered: str
    usd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What agents cost in a run: in a line, and by step in written order."""

    said: str
    lines: Sequence[CostLine]


def costs(
    spent: Mapping[str, cost.Usage], rows: Mapping[str, OpRow], plan: Mapping[str, Op], world: World
) -> Cost | None:
    """None where no agent was called."""
    whole = sum(spent.values(), cost.Usage())
    if not whole.calls:
        return None
    lines = [_cost(path, spent[path], rows.get(path), plan, world) for path in sorted(spent, key=report.natural)]
    calls = f"{whole.calls:,} agent call{'' if whole.calls == 1 else 's'}"
    return Cost(said=f"{_usd(whole)} for {calls} and {whole.tokens:,} tokens", lines=lines)


def _cost(path: str, usage: cost.Usage, row: OpRow | None, plan: Mapping[str, Op], world: World) -> CostLine:
    op = plan.get(row.place) if row is not None and row.place else None
    name = f"`{row.id}`" if row is not None and row.id else phrases.phrase(op, world) if op is not None else path
    return CostLine(
        what=name,
        calls=f"{usage.calls:,}",
        tokens=f"{usage.tokens:,}",
        sent=f"{usage.input + usage.written:,}",
        cached=f"{usage.cached:,}",
        answered=f"{usage.output:,}",
        usd=_usd(usage),
    )


def _usd(usage: cost.Usage) -> str:
    """An amount; where the price of some calls is not known, it says so."""
    if usage.unpriced == usage.calls:
        return "no known price"
    return cost.dollars(usage.usd) + (f" and {usage.unpriced:,} calls of no known price" if usage.unpriced else "")


def waited(rows: Iterable[OpRow], world: World) -> list[Waited]:
    """Every wait that has begun, in written order."""
    found: list[Waited] = []
    for row in sorted(rows, key=lambda r: report.natural(r.path)):
        if row.op not in ("ask", "expect") or row.started is None:
            continue
        who = asks.spelt(row) if row.op == "ask" else [str(s) for s in row.data.get("streams", [])]
        found.append(
            Waited(
                what=row.id or row.path,
                who=words.names(who, world).replace(" or ", " and ") or "a moment",
                since=waits.since(row),
                until=row.due,
                ended="" if row.state == "waiting" else row.state,
                answers=[*_answers(row, world)],
            )
        )
    return found


def _answers(row: OpRow, world: World) -> Iterable[tuple[str, datetime, str]]:
    for given in row.data.get("answers") or []:
        why = f": {given['reason']}" if given.get("reason") else ""
        yield f"{_given(given, world)}{why}", datetime.fromisoformat(given["at"]), ""
    for given in row.data.get("late") or []:
        late = words.span(timedelta(seconds=given["late_s"]))
        yield _given(given, world), datetime.fromisoformat(given["at"]), f"{late} late"


def _given(given: dict[str, Any], world: World) -> str:
    return f"{words.called(str(given['by']), world)} answered `{phrases.short(words.answer(given['answer']), 80)}`"


def approvals(entries: Iterable[dict[str, Any]], rows: dict[str, OpRow], world: World) -> list[Approved]:
    """Every approval that was asked for, with what it held for and what became of it."""
    entries = list(entries)
    found: list[Approved] = []
    for at, entry in enumerate(entries):
        if entry["what"] != "gated":
            continue
        path, row = entry["path"], rows.get(entry["path"])
        settled = next(
            (e for e in entries[at + 1 :] if e["path"] == path and e["what"] in ("approved", "declined", "gated")), None
        )
        done = settled if settled is not None and settled["what"] != "gated" else None
        waiting = settled is None and row is not None and row.state == "gated"
        found.append(
            Approved(
                what=f"{row.op} {row.id or ''}".strip() if row is not None else path,
                params=[(k, phrases.short(text(v), 200)) for k, v in (entry["data"].get("params") or {}).items()],
                asked=words.names(entry["data"].get("to", []), world),
                asked_at=entry["at"],
                choice=done["what"] if done else "waiting" if waiting else "no answer",
                by=words.called(done["by"], world) if done and done["by"] else "",
                at=done["at"] if done else None,
                why=str(done["data"].get("reason") or "") if done else "",
            )
        )
    return found


def undelivered(deliveries: Iterable[dict[str, Any]], world: World) -> list[tuple[datetime, str, str]]:
    """What could not be delivered: when, to whom what, why."""
    return [
        (d["at"], f"{d['kind']} to {words.called(d['to'], world)}", str(d["error"])) for d in deliveries if d["error"]
    ]
