"""`onMiss: "replan"`: an agent gets the overdue expectation and the rest of the plan, and answers with edits."""

from __future__ import annotations

from typing import Any

from bot.domain.facts import Returned
from bot.domain.record import OpRow
from bot.engine import failure, words
from bot.engine.turn import Turn

REFUSALS = 2
"""How often refused edits go back with the reasons (language.md, section 10)."""
MOST = 5
"""Replans of one run before its owner is asked."""


def ask_agent(turn: Turn, row: OpRow, reasons: list[str] | None = None, tried: list[Any] | None = None) -> None:
    """`reasons`: why the edits that it `tried` were refused."""
    run = turn.run
    if reasons is None:
        run.data["replans"] = run.data.get("replans", 0) + 1
        if run.data["replans"] > MOST:
            ask_owner(turn, row, f"this run has replanned {MOST} times")
            return
    tries = row.data.get("replan_tries", 0)
    row.data["replan_tries"] = tries + 1
    row.data["replanning"] = True
    turn.set_own(row, True)
    body = {"op": row.path, "miss": row.data.get("miss"), "reasons": reasons or [], "tried": tried or []}
    turn.call(row, "replan", body, timeout_s=600, n=tries)


def returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    """The agent's edits were applied, refused (with the reasons), or could not be had."""
    if not row.data.get("replanning"):
        return
    refused: Any = fact.extra.get("refused")
    if fact.error is not None:
        ask_owner(turn, row, fact.error)
    elif refused:
        if row.data["replan_tries"] <= REFUSALS:
            ask_agent(turn, row, [str(r) for r in refused], list(fact.extra.get("tried") or []))
        else:
            ask_owner(turn, row, "its edits were refused three times: " + "; ".join(str(r) for r in refused))
    else:
        _tell(turn, row, fact)
        over(turn, row)


def _tell(turn: Turn, row: OpRow, fact: Returned) -> None:
    """The run's owner sees what the agent changed, before and after."""
    changes: Any = fact.extra.get("changes") or []
    if not changes:
        return
    by = words.called(str(fact.extra.get("by") or "agent"), turn.world)
    why = f": {fact.extra['why']}" if fact.extra.get("why") else ""
    lines = [f"`{row.id or row.path}` was missed, and {by} changed the plan{why}"]
    for change in changes:
        changed = turn.op(str(change["op"]))
        name = (changed.id if changed is not None else None) or change["op"]
        lines.append(f"`{name}` {change['what']}: {_side(change['before'])} → {_side(change['after'])}")
    turn.notice(row, "\n".join(lines), f"replanned/{row.attempt}/{row.data.get('replan_tries', 0)}")


def _side(value: Any) -> str:
    said = words.answer(value) if value not in (None, "", [], {}) else "nothing"
    return said if len(said) <= 300 else said[:299] + "…"


def over(turn: Turn, row: OpRow) -> None:
    """The plan is as the agent wants it: the missed op has ended without a value."""
    from bot.engine import order

    row.data.pop("replanning", None)
    row.data["replanned"] = True
    order.close(turn, row)


def ask_owner(turn: Turn, row: OpRow, why: str) -> None:
    """Nobody could replan: the run's owner decides."""
    row.data.pop("replanning", None)
    row.data["replanned"] = True
    row.data["gate"] = {"kind": "replan", "to": [turn.run.owner], "since": turn.now.isoformat()}
    turn.set_own(row, False)
    from bot.engine import waits

    due = waits.durations.due_within(turn.world.workspace.approval_window, turn.now, turn.world.workspace)
    turn.timer(row.path, "gate", due)
    row.due = due
    turn.deliver(
        row,
        "doubt",
        turn.run.owner,
        {
            "title": f"`{row.id or row.path}` was missed and could not be replanned",
            "text": f"{row.data.get('error', '')}\n{why}".strip(),
            "buttons": ["go on", "stop"],
        },
    )
    turn.record("replan failed", row, why=why)


def answered(turn: Turn, row: OpRow, who: str, choice: Any) -> None:
    """The owner goes on without the value, or lets the miss stand as a failure."""
    from bot.engine import order

    if who.casefold() != turn.run.owner.casefold():
        turn.reply(
            who, f"This question is for {words.called(turn.run.owner, turn.world)}. Nothing changed.", status=403
        )
        return
    word = str(choice).strip().casefold()
    if word not in ("go on", "stop"):
        turn.reply(who, f"`{choice}` is none of the choices: `go on` or `stop`. Nothing changed.", status=422)
        return
    turn.reply(who, f"Your `{word}` is in.", accepted=True)
    turn.settle_cards(row.path, f"{words.called(who, turn.world)} chose `{word}`")
    row.data.pop("gate")
    row.due = None
    turn.timer(row.path, "gate", None)
    if word == "go on":
        order.close(turn, row)
    else:
        failure.apply_rule(turn, row)


def silent(turn: Turn, row: OpRow) -> None:
    turn.settle_cards(row.path, "no answer in time")
    row.data.pop("gate", None)
    failure.apply_rule(turn, row)
