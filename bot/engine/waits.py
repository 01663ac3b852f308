"""What all waits share: arming, the window, the miss, withdrawing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bot.domain.catalog import Workspace
from bot.domain.errors import OpError
from bot.domain.plan import Op, Region
from bot.domain.record import OpRow
from bot.engine import scope
from bot.engine.turn import Turn
from bot.language import durations
from bot.language.refs import has_refs

LONGEST = timedelta(days=400)


def window(turn: Turn, row: OpRow, start: datetime, default: str | None = None) -> datetime:
    """The deadline of an op's `within` or `by` (else of `default`), counted from `start`."""
    op = turn.plan_op(row)
    edited = row.data.get("edited", {})
    within, by = (edited.get("within"), edited.get("by")) if edited.keys() & {"within", "by"} else (op.within, op.by)
    try:
        if within is not None:
            return _limited(
                durations.due_within(str(scope.filled(turn, row, within)), start, turn.world.workspace), start
            )
        if by is not None:
            return _limited(durations.due_by(str(scope.filled(turn, row, by)), start, turn.world.workspace), start)
        return durations.due_within(default or turn.world.workspace.ask_window, start, turn.world.workspace)
    except ValueError as fault:
        raise OpError(str(fault)) from None


def expected(op: Op, row: OpRow, start: datetime, workspace: Workspace) -> datetime | None:
    """When the window of an op will end if it begins now: before a card is delivered nothing is running yet. None where
    the script names it by a reference."""
    if row.due is not None:
        return row.due
    edited = row.data.get("edited", {})
    within, by = (edited.get("within"), edited.get("by")) if edited.keys() & {"within", "by"} else (op.within, op.by)
    if has_refs(within) or has_refs(by):
        return None
    try:
        if by is not None:
            return durations.due_by(str(by), start, workspace)
        return durations.due_within(str(within or workspace.ask_window), start, workspace)
    except ValueError:
        return None


def _limited(due: datetime, start: datetime) -> datetime:
    if due <= start:
        raise OpError("the window is over before it begins")
    if due - start > LONGEST:
        raise OpError("a window is 400 days at most")
    return due


def open_window(turn: Turn, row: OpRow, due: datetime) -> None:
    row.due = due
    turn.timer(row.path, "window", due)
    turn.touch(row)


def disarm(turn: Turn, row: OpRow) -> None:
    """Nothing wakes or settles this op any more."""
    if row.started is None:
        return
    row.due = None
    turn.disarm(row.path)
    turn.touch(row)


def withdraw(turn: Turn, row: OpRow, outcome: str) -> None:
    turn.settle_cards(row.path, outcome)
    turn.drop_calls(row.path)
    if row.data.get("child"):
        turn.call(row, "stop-run", {"run": row.data.get("child")})
    disarm(turn, row)


def miss(turn: Turn, row: OpRow, why: str, *, at: datetime | None = None, error: str | None = None) -> None:
    """The wait misses: its branch opens, or its `onError` decides as for a failure."""
    from bot.engine import failure, order

    op = turn.plan_op(row)
    row.state = "missed"
    row.data["miss"] = why
    row.data["error"] = error or _because(turn, row, why)
    row.ended = at or turn.now
    row.rev += 1
    turn.settle_cards(
        row.path,
        {
            "late": "no answer in time",
            "disagreed": "the evidence disagrees",
            "out of reach": "no agreement",
            "spent": "gave up",
        }[why],
    )
    disarm(turn, row)
    if row.op == "ask":
        from bot.engine import asks

        asks.call_back(turn, row)
    if isinstance(op.on_miss, Region):
        turn.set_own(row, False)
        turn.record("missed", row, why=why)
        order.open_region(turn, row, f"{row.path}.onMiss")
    elif op.on_miss == "replan" and not row.data.get("replanned"):
        from bot.engine import replanning

        turn.record("missed", row, why=why)
        replanning.ask_agent(turn, row)
    else:
        failure.apply_rule(turn, row)


def _because(turn: Turn, row: OpRow, why: str) -> str:
    name = row.id or row.path
    match why:
        case "disagreed":
            return f"{name} missed: {row.data.get('verdict_reason') or 'the evidence disagrees'}"
        case "out of reach":
            return f"{name} missed: no choice can reach its number any more"
        case "spent":
            return f"{name} missed: its rounds are spent"
        case _:
            return f"{name} missed: nothing came in time"


def since(row: OpRow) -> datetime:
    """Since when an op stands as it does: its card's acceptance, else its start."""
    stamp: Any = row.data.get("since")
    if stamp:
        return datetime.fromisoformat(stamp)
    assert row.started is not None
    return row.started
