"""Expectations: what arms them, which one takes an event, verdicts, and claims that turn out true or not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bot.domain.changes import Taken, Wait
from bot.domain.errors import OpError
from bot.domain.facts import Arrived, Returned
from bot.domain.record import OpRow
from bot.domain.values import text
from bot.engine import order, scope, verdicts, waits
from bot.engine.turn import Turn
from bot.language import durations

PASSED_OVER_REASONS = 5


def start(turn: Turn, row: OpRow) -> None:
    """Arms the expectation: its window begins, and evidence that is there already is offered to it."""
    op = turn.plan_op(row)
    streams = scope.filled(turn, row, op.params["evidence"])
    streams = [streams] if isinstance(streams, str) else streams
    if not isinstance(streams, list) or not all(isinstance(s, str) and s for s in streams) or not streams:
        raise OpError(f"`evidence` must name a stream; it is `{text(streams)}`")
    row.data["streams"] = streams
    row.state = "waiting"
    turn.touch(row)
    if streams == ["clock"]:
        _start_clock(turn, row)
        return
    sender = scope.filled(turn, row, op.from_) if op.from_ is not None else None
    if sender is not None and not isinstance(sender, str):
        raise OpError(f"`from` must be a conversation or a sender; it is `{text(sender)}`")
    if sender is None and "where" not in op.params and turn.run.customer is not None:
        spec = turn.world.streams.get(streams[0])
        customer = turn.run.customer.get("id")
        if customer is not None and not any(":" in s for s in streams) and (spec is None or spec.scope == "workspace"):
            sender = str(customer)
    row.data["from"] = sender
    if "check" in op.params:
        row.data["check"] = text(scope.filled(turn, row, op.params["check"]))
    since = counts_from(turn, row)
    row.data["counts_from"] = since.isoformat()
    waits.open_window(turn, row, waits.window(turn, row, turn.now))
    for stream in streams:
        turn.arm(Wait(path=row.path, stream=stream, key=sender, since=since, where=op.params.get("where")))
    early = turn.rows.events(streams, sender, since, turn.now)
    if early:
        row.data["early"] = True
        turn.call(row, "early", {"events": [e["id"] for e in early]})


def _start_clock(turn: Turn, row: OpRow) -> None:
    op = turn.plan_op(row)
    try:
        if "in" in op.params:
            due = durations.due_within(text(scope.filled(turn, row, op.params["in"])), turn.now, turn.world.workspace)
        else:
            due = durations.clock_at(text(scope.filled(turn, row, op.params["at"])), turn.now, turn.world.workspace)
    except durations.PastMoment:
        row.data["reason"] = "the moment was past when it started"
        _clock_done(turn, row, turn.now)
        return
    except ValueError as fault:
        raise OpError(str(fault)) from None
    if due <= turn.now:
        row.data["reason"] = "the moment was past when it started"
        _clock_done(turn, row, turn.now)
        return
    row.due = due
    turn.timer(row.path, "clock", due)


def clock_struck(turn: Turn, row: OpRow, due: datetime) -> None:
    if row.state == "waiting" and row.due is not None:
        _clock_done(turn, row, due)


def _clock_done(turn: Turn, row: OpRow, at: datetime) -> None:
    zone = durations.zone(turn.world.workspace)
    waits.disarm(turn, row)
    row.ended = at
    order.finish(turn, row, {"event": {}, "stream": "clock", "from": None, "at": at.astimezone(zone).isoformat()})


def counts_from(turn: Turn, row: OpRow) -> datetime:
    """From when evidence counts: the start of the op it follows, else of the op above it, else its region's
    opening."""
    op = turn.plan_op(row)
    starts: list[datetime] = []
    for name in op.after:
        for place in turn.index.scopes.follows(row.place, name)[:1]:
            other = turn.at_place(row.path, place)
            if other is not None and other.started is not None:
                starts.append(other.started)
    if starts:
        return min(starts)
    region = turn.region_plan(row.region)
    above = [o for o in region.ops if o.rank < row.rank]
    if above:
        other = turn.at_place(row.path, above[-1].place)
        if other is not None and other.started is not None:
            return other.started
    return turn.region(row.region).opened


# --- events --------------------------------------------------------------------------------------------------------
def arrived(turn: Turn, fact: Arrived) -> None:
    """An event: the first of the run's waiting expectations that it passes takes it, no other does."""
    event = fact.event
    taker = turn.rows.taker(event["id"])
    if fact.only is not None:
        _offer_early(turn, fact, taker)
        return
    if taker is not None:
        return
    paths = sorted(set(turn.rows.expecting(fact.stream)), key=turn.key)
    passing: OpRow | None = None
    for path in paths:
        row = turn.must(path)
        if not _listens(row, fact):
            continue
        verdict = _passes(turn, row, fact)
        if verdict is None:
            continue
        if verdict is True:
            passing = row
            break
        _pass_over(turn, row, verdict)
    if turn.step.where:
        return
    if passing is not None:
        take(turn, passing, dict(event))


def _listens(row: OpRow, fact: Arrived) -> bool:
    if row.state != "waiting" or fact.stream not in row.data.get("streams", ()):
        return False
    if row.due is not None and fact.at >= row.due:
        return False
    if fact.at < datetime.fromisoformat(row.data["counts_from"]):
        return False
    sender = row.data.get("from")
    return sender is None or sender in (fact.event.get("from"), fact.event.get("conversation"))


def _passes(turn: Turn, row: OpRow, fact: Arrived) -> bool | str | None:
    """Whether the event is for this expectation; None where its `where` has not been evaluated for it yet."""
    where = turn.plan_op(row).params.get("where")
    if where is None:
        return True
    if row.path in fact.passes:
        return fact.passes[row.path]
    try:
        names = scope.environment(turn, row, where, {"event": fact.event["event"]})
    except OpError as fault:
        return str(fault)
    turn.step.where[row.path] = (where, names)
    return None


def _pass_over(turn: Turn, row: OpRow, why: bool | str) -> None:
    passed = row.data.setdefault("passed", {})
    reason = "false" if why is False else str(why)
    if reason in passed or len(passed) < PASSED_OVER_REASONS:
        passed[reason] = passed.get(reason, 0) + 1
    else:
        passed["other"] = passed.get("other", 0) + 1
    turn.touch(row)


def take(turn: Turn, row: OpRow, event: dict[str, Any], *, early: bool = False) -> None:
    """The event belongs to this expectation: it settles it, or goes before the judge."""
    turn.step.taken.append(Taken(event=event["id"], path=row.path))
    if "check" not in row.data:
        settle(turn, row, event)
        return
    queue = row.data.setdefault("judging", [])
    queue.append({"event": event, "early": early})
    turn.touch(row)
    if len(queue) == 1:
        _judge(turn, row)


def _judge(turn: Turn, row: OpRow) -> None:
    row.data["judged"] = row.data.get("judged", 0) + 1
    first = row.data["judging"][0]
    turn.call(row, "judge", {"check": row.data["check"], "event": first["event"]}, timeout_s=300, n=row.data["judged"])


def judged(turn: Turn, row: OpRow, fact: Returned) -> None:
    """The judge's verdict on the event that is before it. No verdict to be had is "cannot tell"."""
    queue = row.data.get("judging") or []
    if row.state != "waiting" or not queue:
        return
    first = queue.pop(0)
    verdict, reason = ("unclear", fact.error) if fact.error else (fact.value["verdict"], fact.value.get("reason"))
    row.data["verdict"] = verdict
    row.data["verdict_reason"] = reason
    row.data.setdefault("verdicts", []).append({"event": first["event"]["id"], "verdict": verdict, "reason": reason})
    turn.touch(row)
    turn.record("judged", row, verdict=verdict, reason=reason)
    if verdict == "agrees":
        settle(turn, row, first["event"])
    elif verdict == "disagrees" and not first["early"]:
        contradict(turn, row, first["event"], reason)
    elif queue:
        _judge(turn, row)
    elif row.data.get("overdue"):
        waits.miss(turn, row, "late", at=row.due)
    elif verdict == "unclear" and not first["early"]:
        verdicts.ask_owner(turn, row, first["event"], reason)


def contradict(turn: Turn, row: OpRow, event: dict[str, Any], reason: str | None) -> None:
    """The evidence disagrees: a miss at once, with claim and evidence both on record."""
    _claims(turn, row, "contradicted")
    row.data["contrary"] = event
    row.data["reason"] = reason
    waits.miss(turn, row, "disagreed")


def settle(turn: Turn, row: OpRow, event: dict[str, Any]) -> None:
    """The evidence agrees."""
    if verdicts.is_asked(row):
        turn.settle_cards(row.path, "other evidence agrees")
    _claims(turn, row, "evidenced")
    if row.data.get("verdict_reason"):
        row.data["reason"] = row.data["verdict_reason"]
    waits.disarm(turn, row)
    value = {"event": event["event"], "stream": event["stream"], "from": event.get("from"), "at": event["at"]}
    order.finish(turn, row, value)


def _claims(turn: Turn, row: OpRow, claim: str) -> None:
    """The answers that this expectation judges (`after`) are evidenced, or contradicted."""
    for name in turn.plan_op(row).after:
        for place in turn.index.scopes.follows(row.place, name)[:1]:
            other = turn.at_place(row.path, place)
            if other is not None and other.op == "ask" and other.state == "done":
                if not (claim == "evidenced" and other.data.get("claim") == "contradicted"):
                    other.data["claim"] = claim
                    turn.touch(other)


def _offer_early(turn: Turn, fact: Arrived, taker: str | None) -> None:
    """Evidence from before the expectation's start: the newest that passes can only agree."""
    row = turn.must(fact.only or "")
    if row.state != "waiting" or not row.data.get("early") or taker is not None:
        return
    verdict = _passes(turn, row, fact)
    if verdict is None:
        return
    if verdict is not True:
        _pass_over(turn, row, verdict)
        return
    row.data.pop("early")
    take(turn, row, dict(fact.event), early=True)


def early_over(turn: Turn, row: OpRow) -> None:
    """All early evidence has been looked at."""
    if row.data.pop("early", None):
        turn.touch(row)


def overdue(turn: Turn, row: OpRow, due: datetime) -> None:
    """The deadline is here: a miss, unless a verdict on what came in time is still out."""
    if row.state != "waiting":
        return
    if row.data.get("judging"):
        row.data["overdue"] = True
        turn.touch(row)
        return
    waits.miss(turn, row, "late", at=due)


def alive(row: OpRow, last: datetime | None, now: datetime) -> str | None:
    """Whether the witness of a wait on the world is alive."""
    if last is None or row.op != "expect":
        return None
    return f"last event {durations.spell(max(now - last, timedelta(seconds=1)))} ago"
