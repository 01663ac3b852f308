"""What the judge cannot tell, the owner is asked: an unsure judge is not a yes, and the wait goes on meanwhile."""

from __future__ import annotations

import json
from typing import Any

from bot.domain.facts import Answered
from bot.domain.record import OpRow
from bot.domain.values import plain
from bot.engine import asks, words
from bot.engine.turn import Turn

CHOICES = [{"label": "it agrees", "value": "agrees"}, {"label": "it does not", "value": "disagrees"}]
SHOWN_CHARS = 1_500


def ask_owner(turn: Turn, row: OpRow, event: dict[str, Any], reason: str | None) -> None:
    """Puts claim and evidence before the owner; a newer event that nobody can judge takes the place of an older."""
    owner = turn.run.owner
    if is_asked(row):
        turn.settle_cards(row.path, "newer evidence came")
    row.data["gate"] = {"kind": "verdict", "to": [owner], "since": turn.now.isoformat(), "event": event}
    shown = json.dumps(plain(event["event"]), ensure_ascii=False, indent=1)
    shown = shown if len(shown) <= SHOWN_CHARS else shown[: SHOWN_CHARS - 1] + "…"
    since = words.clock(row.due, turn.world, turn.now) if row.due else None
    turn.deliver(
        row,
        "doubt",
        owner,
        {
            "title": f"Does this show it: {row.data['check']}",
            "text": f"`{event['stream']}` brought:\n{shown}\nThe judge cannot tell: {reason or 'it gave no reason'}\n"
            f"It goes on waiting{f' until {since}' if since else ''}.",
            "buttons": [c["label"] for c in CHOICES],
        },
        n=row.data.get("judged", 0),
    )
    turn.touch(row)


def is_asked(row: OpRow) -> bool:
    """Whether the owner is asked about evidence now."""
    gate: Any = row.data.get("gate") or {}
    return row.state == "waiting" and gate.get("kind") == "verdict" and "by" not in gate


def answered(turn: Turn, row: OpRow, fact: Answered) -> None:
    """The owner says whether the evidence shows it."""
    from bot.engine import evidence

    gate, who = row.data["gate"], fact.by or fact.conversation or ""
    if who.casefold() not in [w.casefold() for w in gate["to"]]:
        turn.reply(who, f"This question is for {words.names(gate['to'], turn.world)}. Nothing changed.", status=403)
        return
    picked = asks.pick(CHOICES, fact.value)
    if picked is None:
        listed = words.ticked(c["label"] for c in CHOICES)
        turn.reply(who, f"`{fact.value}` is none of the choices: {listed}. Nothing changed.", status=422)
        return
    gate.update({"by": who, "choice": picked["label"]})
    name = words.called(who, turn.world)
    turn.settle_cards(row.path, f"{name} chose `{picked['label']}`")
    turn.reply(who, f"Your `{picked['label']}` is in.", accepted=True)
    reason = fact.reason or f"{name} says so"
    row.data["verdict"], row.data["verdict_reason"] = picked["value"], reason
    event = gate.pop("event")
    entry = {"event": event["id"], "verdict": picked["value"], "reason": reason, "by": who}
    row.data.setdefault("verdicts", []).append(entry)
    turn.record("judged", row, by=who, verdict=picked["value"], reason=reason)
    if picked["value"] == "agrees":
        evidence.settle(turn, row, event)
    else:
        evidence.contradict(turn, row, event, reason)
