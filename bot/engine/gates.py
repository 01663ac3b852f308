"""Approvals before consequential effects, and doubts about effects that may have happened."""

from __future__ import annotations

import fnmatch
from datetime import datetime
from typing import Any

from bot.domain.errors import OpError
from bot.domain.facts import Answered
from bot.domain.ids import below
from bot.domain.record import OpRow, RunRow
from bot.domain.values import normalise, plain, text
from bot.engine import asks, calls, failure, order, waits, words
from bot.engine.turn import Turn

APPROVAL_CHOICES = [{"label": "approve", "value": "approve"}, {"label": "decline", "value": "decline"}]
DOUBT_CHOICES = [{"label": c, "value": c} for c in ("happened", "retry", "skip")]


def approver(turn: Turn, row: OpRow) -> str | bool | None:
    """Who approves this op by policy: a role or an email, None for nobody named, False where no approval is due."""
    found = approver_of(turn.index.catalog, turn.world, row.op, row.data.get("outside", False))
    if found is False and turn.world.policy.approve is None and by_agent(turn.run, row.place):
        # What an agent wrote sends nothing to customers by itself.
        return None if turn.index.spec(row.op).channel is not None else False
    return found


def by_agent(run: RunRow, place: str) -> bool:
    """Whether an agent wrote the op: the whole script, or what its edits brought."""
    brought: list[str] = run.data.get("brought", [])
    return bool(run.data.get("author")) or any(place == one or below(place, one) for one in brought)


def approver_of(catalog: Any, world: Any, op: str, outside: bool = False) -> str | bool | None:
    policy = world.policy.approve
    spec = catalog[op]
    if policy is not None:
        if op in policy:
            return policy[op]
        for pattern, who in policy.items():
            if fnmatch.fnmatchcase(op, pattern):
                return who
        return False
    if spec.tool and not spec.read_only and spec.destructive is not False:
        return None
    return None if op == "save" and outside else False


def gate(turn: Turn, row: OpRow, params: dict[str, Any]) -> bool:
    """Puts an approval before the effect where policy wants one. True: it waits there."""
    who = approver(turn, row)
    if who is False or row.data.get("approved") == params:
        return False
    people, alone = _approvers(turn, who if isinstance(who, str) else None)
    row.state = "gated"
    row.data["gate"] = {
        "kind": "approval",
        "to": people,
        "since": turn.now.isoformat(),
        "alone": alone,
        "named": who if isinstance(who, str) else None,
    }
    row.due = turn.now
    turn.set_own(row, True)
    due = waits.durations.due_within(turn.world.workspace.approval_window, turn.now, turn.world.workspace)
    row.due = due
    turn.timer(row.path, "gate", due)
    for person in people:
        turn.deliver(row, "approval", person, _card(turn, row))
    turn.record("gated", row, to=people, params=plain(params))
    return True


def _card(turn: Turn, row: OpRow) -> dict[str, Any]:
    """What an approval or a doubt shows."""
    params, named = row.data.get("params", {}), f"`{row.op}`" + (f" ({row.id})" if row.id else "")
    shown = "\n".join(f"{key}: {text(value)}" for key, value in params.items())
    if row.data["gate"]["kind"] == "doubt":
        return {
            "title": f"Did {named} happen?",
            "text": f"{row.data['error']}\n{shown}".strip(),
            "buttons": [c["label"] for c in DOUBT_CHOICES],
        }
    return {
        "title": f"{words.called(turn.run.owner, turn.world)} wants to run {named}",
        "text": shown,
        "params": plain(params),
        "buttons": [c["label"] for c in APPROVAL_CHOICES],
        "reason": ["decline"],
    }


def hand_over(turn: Turn, row: OpRow, people: list[str]) -> list[str]:
    """Puts an approval or a doubt to other people; gives whom it was put to before. OpError where one of them may
    not decide it."""
    data = row.data["gate"]
    if data["kind"] == "approval":
        may, _ = _approvers(turn, data.get("named"))
        wrong = [who for who in people if who.casefold() not in [m.casefold() for m in may]]
        if wrong:
            raise OpError(f"{words.names(wrong, turn.world)} may not approve this; {words.names(may, turn.world)} may")
    before = list(data["to"])
    data["to"], data["round"] = people, data.get("round", 0) + 1
    for who in before:
        if who not in people:
            turn.settle_cards(row.path, f"handed over to {words.names(people, turn.world)}", to=who)
    for who in people:
        if who not in before:
            turn.deliver(row, data["kind"], who, _card(turn, row), n=data["round"])
    row.rev += 1
    turn.touch(row)
    return before


def more_time(turn: Turn, row: OpRow, due: datetime) -> None:
    """Moves the deadline of an approval or a doubt."""
    row.due = due
    row.rev += 1
    turn.timer(row.path, "gate", due)
    turn.touch(row)


def _approvers(turn: Turn, named: str | None) -> tuple[list[str], bool]:
    """Who may decide: not the run's owner, unless nobody else can; and whether it came to that."""
    owner = turn.run.owner
    if named is None:
        found = [p.email for p in turn.world.people]
    elif named.startswith("role:"):
        found = list(turn.world.roles.get(named[5:], ()))
    else:
        found = [named]
    others = [who for who in found if who.casefold() != owner.casefold()]
    if turn.world.policy.owner_may_approve:
        others = found
    if others:
        return others, False
    rest = [p.email for p in turn.world.people if p.email.casefold() != owner.casefold()]
    if rest and named is None:
        return rest, False
    return [owner], True


def doubt(turn: Turn, row: OpRow, why: str) -> None:
    """Nobody can know whether the effect happened: its owner (and its approver) is asked."""
    before = row.data.get("gate") or {}
    people: list[str] = list(dict.fromkeys([turn.run.owner, *([str(before["by"])] if before.get("by") else [])]))
    row.state = "uncertain"
    row.rev += 1
    row.data["error"] = why
    row.data["gate"] = {**before, "kind": "doubt", "to": people, "since": turn.now.isoformat()}
    turn.set_own(row, True)
    due = waits.durations.due_within(turn.world.workspace.approval_window, turn.now, turn.world.workspace)
    row.due = due
    turn.timer(row.path, "gate", due)
    for person in people:
        turn.deliver(row, "doubt", person, _card(turn, row))
    turn.record("uncertain", row, why=why)


def answered(turn: Turn, row: OpRow, fact: Answered) -> None:
    """Someone decides an approval or settles a doubt."""
    gate_data = row.data["gate"]
    who = fact.by or fact.conversation or ""
    allowed = [p for p in gate_data["to"] if p.casefold() == who.casefold()]
    doubtful = gate_data["kind"] == "doubt"
    if not allowed:
        owner = (
            "You started this run, so your word does not count here. " if who == turn.run.owner and not doubtful else ""
        )
        what = "question" if doubtful else "approval"
        turn.reply(
            who, f"{owner}This {what} is for {words.names(gate_data['to'], turn.world)}. Nothing changed.", status=403
        )
        return
    picked = asks.pick(DOUBT_CHOICES if doubtful else APPROVAL_CHOICES, fact.value)
    if picked is None and doubtful and isinstance(fact.value, dict) and "happened" in fact.value:
        _happened(turn, row, allowed[0], normalise(fact.value["happened"]))
        return
    if picked is None:
        choices = DOUBT_CHOICES if doubtful else APPROVAL_CHOICES
        turn.reply(
            who,
            f"`{text(fact.value)}` is none of the choices: {words.ticked(c['label'] for c in choices)}. "
            "Nothing changed.",
            status=422,
        )
        return
    if doubtful:
        _settle_doubt(turn, row, allowed[0], picked["value"], fact.reason)
    else:
        _decide(turn, row, allowed[0], picked["value"], fact.reason)


def _decide(turn: Turn, row: OpRow, who: str, choice: str, reason: str | None) -> None:
    name = words.called(who, turn.world)
    if choice == "decline" and not (reason and reason.strip()):
        turn.reply(
            who, "A decline needs a reason, so that its owner knows what to change. Nothing changed.", status=422
        )
        return
    row.data["gate"].update(
        {"by": who, "choice": choice, "at": turn.now.isoformat(), **({"reason": reason} if reason else {})}
    )
    row.due = None
    turn.timer(row.path, "gate", None)
    turn.touch(row)
    turn.record("approved" if choice == "approve" else "declined", row, by=who, reason=reason)
    turn.settle_cards(row.path, f"{name} chose `{choice}`")
    turn.reply(who, f"Your `{choice}` is in.", accepted=True)
    if choice == "approve":
        row.data["approved"] = row.data["params"]
        calls.go(turn, row)
    else:
        failure.fail(turn, row, f"declined by {name}: {reason}", final=True)


def _settle_doubt(turn: Turn, row: OpRow, who: str, choice: str, reason: str | None) -> None:
    turn.record("doubt settled", row, by=who, choice=choice)
    turn.reply(who, f"Your `{choice}` is in.", accepted=True)
    if choice == "happened":
        _happened(turn, row, who, normalise(reason) if reason else None, replied=True)
        return
    _doubt_over(turn, row, who, choice)
    if choice == "skip":
        row.state = "skipped"
        row.data["meant"] = True
        row.data["error"] = f"skipped by {words.called(who, turn.world)}"
        _close(turn, row)
    elif row.data.get("detached") or row.data.get("stopped"):
        row.state = "cancelled"
        _close(turn, row)
    else:
        row.attempt += 1
        row.rev += 1
        calls.go(turn, row)


def _happened(turn: Turn, row: OpRow, who: str, value: Any, *, replied: bool = False) -> None:
    if not replied:
        turn.reply(who, "Your `happened` is in.", accepted=True)
    _doubt_over(turn, row, who, "happened")
    row.data.pop("error", None)
    if row.data.get("detached"):
        row.state, row.value, row.has_value, row.by = "done", value, True, who
        turn.touch(row)
        return
    order.finish(turn, row, value, by=who)


def _doubt_over(turn: Turn, row: OpRow, who: str, choice: str) -> None:
    row.data["gate"].update({"by": who, "choice": choice})
    row.due = None
    turn.timer(row.path, "gate", None)
    turn.settle_cards(row.path, f"{words.called(who, turn.world)} chose `{choice}`")
    turn.touch(row)


def _close(turn: Turn, row: OpRow) -> None:
    if row.data.get("detached"):
        row.ended = turn.now
        turn.touch(row)
    else:
        order.close(turn, row)


def silent(turn: Turn, row: OpRow) -> None:
    """The window of an approval or a doubt is over."""
    doubtful = row.data["gate"]["kind"] == "doubt"
    turn.settle_cards(row.path, "no answer in time")
    window = turn.world.workspace.approval_window
    if row.data.get("detached"):
        row.state = "failed"
        row.data["error"] = "unknown whether it happened"
        turn.touch(row)
        return
    failure.fail(
        turn, row, "unknown whether it happened" if doubtful else f"declined: no answer within {window}", final=True
    )
