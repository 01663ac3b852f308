"""Three tenses: what happened, what is waiting on whom since when, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from bot.domain.catalog import World
from bot.domain.record import PENDING, OpRow
from bot.engine import asks, waits, words

Tense = Literal["happened", "waiting", "next"]
SHOWN = 12
"""Waits that one line names."""


def tense(row: OpRow) -> Tense:
    if row.state in PENDING:
        return "waiting"
    return "next" if row.state == "planned" else "happened"


def line(
    rows: Iterable[OpRow],
    world: World,
    now: datetime,
    *,
    reader: str | None = None,
    ways: Mapping[str, str] | None = None,
) -> str | None:
    """`waiting on Ana since 10:32, Bo since 09:10`, oldest first; None where nothing waits. `reader` reads "you";
    `ways`: how far ops at work are, by path, which comes first: `answers: 137 of 200 · waiting on …`."""
    found: list[tuple[datetime, str]] = []
    at_work: list[str] = []
    for row in rows:
        said = waiting_on(row, world, now, reader=reader)
        if said is not None:
            found.append(said)
        if ways and row.path in ways and row.state in PENDING:
            at_work.append(f"{row.id or row.path}: {ways[row.path]}")
    found.sort()
    shown = [text for _, text in found[:SHOWN]]
    if len(found) > SHOWN:
        shown.append(f"and {len(found) - SHOWN} more")
    waiting = ["waiting on " + ", ".join(dict.fromkeys(shown))] if shown else []
    return " · ".join([*at_work[:SHOWN], *waiting]) or None


def waiting_on(row: OpRow, world: World, now: datetime, *, reader: str | None = None) -> tuple[datetime, str] | None:
    """Since when, and `Ana since 10:32` (the world's: `line:message from Mika since 10:32, until 10:42`)."""
    data: dict[str, Any] = row.data
    gate = data.get("gate")
    if row.state in ("gated", "uncertain") or (row.state == "missed" and gate and "by" not in gate):
        if not gate:
            return None
        since = datetime.fromisoformat(gate["since"])
        to = [gate["named"]] if gate.get("named") and row.state == "gated" and not gate.get("alone") else gate["to"]
        return since, f"{_who(to, world, reader)} since {words.clock(since, world, now)}"
    if row.state != "waiting" or row.started is None:
        return None
    since = waits.since(row)
    if row.op == "ask":
        if "since" not in data and any(not w.startswith("agent") for w in data.get("asked", [])):
            return since, f"{_who(asks.spelt(row), world, reader)} (delivering)"
        given = {a["by"] for a in data.get("answers", [])}
        to = [w for w in asks.spelt(row) if w not in given] or asks.spelt(row)
        return since, f"{_who(to, world, reader)} since {words.clock(since, world, now)}"
    until = f", until {words.clock(row.due, world, now)}" if row.due else ""
    if row.op == "expect":
        sender = data.get("from")
        of = f" from {words.called(sender, world)}" if sender else ""
        return since, f"{words.either(list(data.get('streams', [])))}{of} since {words.clock(since, world, now)}{until}"
    if row.op == "run":
        return since, f"another script since {words.clock(since, world, now)}"
    return since, f"the next round since {words.clock(since, world, now)}{until}"


def _who(to: list[str], world: World, reader: str | None) -> str:
    names = ["you" if reader and who.casefold() == reader.casefold() else words.called(who, world) for who in to]
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
