"""The one transition function: a fact comes in, out comes what it changes and what must be done outside."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.domain.changes import Step
from bot.domain.errors import OpError
from bot.domain.facts import Accepted, Answered, Arrived, Continued, Delivered, Edited, Fact, Overdue, Returned, applied
from bot.domain.record import OpRow
from bot.engine import (
    asks,
    calls,
    edits,
    evidence,
    failure,
    gates,
    order,
    regions,
    replanning,
    verdicts,
    waits,
)
from bot.engine.turn import Turn
from bot.engine.view import View
from bot.language import durations

FOLLOW_UPS = 500
"""How many follow-ups one transaction takes; the rest is a row `continue` (engine.md, Regions are the unit)."""


def apply(view: View, fact: Fact) -> Step:
    """What the fact does to the run of the view, closed until nothing changes any more.

    The step's `where` is not empty where expressions must be evaluated for the fact first; nothing else of it
    counts then. Facts that are stale or repeated change nothing and get the reply that stands."""
    turn = _begun(view, fact)
    _take(turn, fact)
    if not turn.step.where:
        settle(turn)
    return turn.done()


def apply_results(view: View, facts: Sequence[Returned]) -> tuple[Step, int]:
    """What several results do, one after the other, as one step: what they share is read and written once. The second
    is how many were taken; after one that leaves more to do the others wait for it."""
    turn = _begun(view, facts[0])
    for taken, fact in enumerate(facts, 1):
        turn.now = max(turn.now, fact.at)
        _take(turn, fact)
        settle(turn)
        if turn.step.more:
            return turn.done(), taken
    return turn.done(), len(facts)


def _begun(view: View, fact: Fact) -> Turn:
    turn = Turn(view, applied(fact))
    resume(turn)
    return turn


def _take(turn: Turn, fact: Fact) -> None:
    match fact:
        case Accepted():
            _accept(turn)
        case Returned():
            row = turn.op(fact.path)
            if row is not None:
                calls.returned(turn, row, fact)
        case Delivered():
            _delivered(turn, fact)
        case Answered():
            _answered(turn, fact)
        case Arrived():
            if turn.run.ended is None:
                evidence.arrived(turn, fact)
        case Overdue():
            _overdue(turn, fact)
        case Edited():
            edits.edited(turn, fact)
        case Continued():
            pass


def resume(turn: Turn) -> None:
    """Takes up what the step before could not finish."""
    more = turn.run.data.pop("more", None)
    if more:
        for kind, path in more:
            if kind == "start":
                turn.mark(path)
            else:
                turn.queue.append((kind, path))


def settle(turn: Turn) -> None:
    """To a fixpoint: first what ended, closed or failed; then one start or one region that opens, the first in written
    order; and again."""
    budget = FOLLOW_UPS
    while budget > 0:
        budget -= 1
        if turn.queue:
            kind, path = turn.queue.popleft()
            match kind:
                case "ended":
                    order.ended(turn, turn.must(path))
                case "closed":
                    regions.closed(turn, path)
                case _:
                    _more(turn, turn.must(path))
            continue
        row = order.start_next(turn)
        if row is None:
            path = turn.next_opening()
            if path is None:
                return
            _more(turn, turn.must(path))
            continue
        order.begin(turn, row)
        if not row.active:  # an active one holds up all below it, and above it nothing was ready
            turn.mark(row.region)
    left = turn.left()
    if left:
        turn.run.data["more"] = [list(pair) for pair in left]
        turn.step.more = [path for _, path in left]


def _more(turn: Turn, row: OpRow) -> None:
    """A region op begins further regions."""
    if not row.open or row.data.get("stopped"):
        return
    try:
        turn.index.spec(row.op).step.more(turn, row)
    except OpError as fault:
        failure.fail(turn, row, str(fault), final=True)


def _accept(turn: Turn) -> None:
    run = turn.run
    if turn.find_region("") is not None:
        return
    plan = turn.index.plan
    if plan.within is not None:
        due = durations.due_within(plan.within, turn.now, turn.world.workspace)
        turn.timer("", "run", due)
        run.data["due"] = due.isoformat()
    turn.record("accepted", by=run.owner, script=run.data.get("script"))
    order.open_region(turn, None, "")


def _delivered(turn: Turn, fact: Delivered) -> None:
    row = turn.op(fact.path) if fact.path else None
    if row is None:
        return
    if fact.kind == "send":
        if row.open and row.state == "running" and fact.attempt == row.attempt and not row.data.get("pausing"):
            if fact.error is not None:
                failure.fail(turn, row, f"could not be delivered to {fact.to}: {fact.error}")
            else:
                order.finish(turn, row, {"delivered": [fact.to]})
    elif fact.kind == "card":
        asks.delivered(turn, row, fact)
    elif fact.error is not None and fact.kind == "say":
        row.data.setdefault("undelivered", {})[fact.to] = fact.error
        turn.touch(row)
        turn.notice(row, f"A message could not be delivered to {fact.to}: {fact.error}", f"lost/{fact.to}")


def _answered(turn: Turn, fact: Answered) -> None:
    row = turn.op(fact.path)
    who = fact.by or fact.conversation or ""
    if row is None:
        turn.reply(who, f"There is no open question `{fact.path}` in this run. Nothing changed.", status=404)
    elif row.state in ("gated", "uncertain"):
        gates.answered(turn, row, fact)
    elif row.state == "missed" and (row.data.get("gate") or {}).get("kind") == "replan":
        replanning.answered(turn, row, who, fact.value)
    elif verdicts.is_asked(row):
        verdicts.answered(turn, row, fact)
    elif row.op == "ask":
        asks.answered(turn, row, fact)
    elif row.data.get("gate"):
        given = row.data["gate"]
        if given.get("by", "").casefold() == who.casefold() and given.get("choice") == str(fact.value):
            turn.reply(who, f"Your `{given['choice']}` is in.", accepted=True)
        else:
            by = asks.words.called(given.get("by") or "", turn.world)
            turn.reply(
                who,
                f"{by} chose `{given.get('choice')}` already. Nothing changed."
                if by
                else f"{asks.what_stands(turn, row)} Nothing changed.",
            )
    else:
        turn.reply(who, f"`{fact.path}` asks nobody. Nothing changed.", status=404)


def _overdue(turn: Turn, fact: Overdue) -> None:
    turn.now = max(turn.now, fact.due)
    if fact.path == "":
        if fact.kind == "run" and turn.run.ended is None:
            turn.timer("", "run", None)
            turn.run.data["error"] = f"the run's own window ({turn.index.plan.within}) is over"
            failure.fail_region(turn, "", turn.run.data["error"])
        return
    row = turn.op(fact.path)
    turn.timer(fact.path, fact.kind, None)
    if row is None or (not row.open and not row.data.get("detached")):
        return
    match fact.kind:
        case "window" if row.due == fact.due:
            _window_over(turn, row, fact.due)
        case "clock" if row.due == fact.due:
            evidence.clock_struck(turn, row, fact.due)
        case "delivery" if row.state == "waiting" and "since" not in row.data:
            who = asks.words.names(row.data.get("asked", []), turn.world)
            waits.withdraw(turn, row, "withdrawn")
            failure.fail(turn, row, f"not delivered to {who} within 15 minutes")
        case "retry" if row.data.get("pausing"):
            row.due = None
            if turn.run.state == "paused":
                calls.hold(turn, row)
            else:
                calls.again(turn, row)
        case "gate" if row.due == fact.due and row.data.get("gate"):
            if row.data["gate"]["kind"] == "replan":
                replanning.silent(turn, row)
            else:
                gates.silent(turn, row)
        case "pause" if row.due == fact.due:
            row.due = None
            turn.queue.append(("more", row.path))
        case "remind":
            asks.remind(turn, row, fact.due)
        case _:
            pass


def _window_over(turn: Turn, row: OpRow, due: datetime) -> None:
    if row.state != "waiting":
        return
    if row.op == "expect":
        evidence.overdue(turn, row, due)
        return
    if row.data.get("child"):
        turn.call(row, "stop-run", {"run": row.data.get("child")})
    waits.miss(turn, row, "late", at=due)
