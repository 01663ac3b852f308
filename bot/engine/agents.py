"""Agent calls as the engine sees them: the model and the budgets in force, and what is put on work."""

from __future__ import annotations

from typing import Any

from bot.domain.errors import OpError
from bot.domain.record import OpRow
from bot.engine import scope
from bot.engine.turn import Turn, owner_of


def model(turn: Turn, row: OpRow) -> str | None:
    """The model that the nearest `model` above, in the op's region or those around it, has set."""
    found = [setting for setting in _above(turn, row, "model")]
    return str(found[0].data["name"]) if found else None


def allowance(turn: Turn, row: OpRow, wanted: int) -> int:
    """How many of `wanted` agent calls all budgets in force let through; they are used up by asking."""
    budgets = _above(turn, row, "budget")
    left = min([wanted, *(int(b.data["calls"]) - int(b.data.get("used", 0)) for b in budgets)])
    left = max(left, 0)
    for budget in budgets:
        budget.data["used"] = int(budget.data.get("used", 0)) + left
        turn.touch(budget)
    return left


def ask(turn: Turn, row: OpRow, who: str, *, n: int = 0, said: str | None = None) -> None:
    """One agent is asked; `said` is its last answer, which was none of the choices."""
    if n == 0 and allowance(turn, row, 1) == 0:
        raise OpError("the budget of agent calls is spent")
    body: dict[str, Any] = {"who": who, "model": model(turn, row), "prompt": row.data["question"], "n": n}
    if row.data.get("choices"):
        body["choices"] = [c["label"] for c in row.data["choices"]]
    if said is not None:
        body["said"] = said
    turn.call(row, "agent", body, timeout_s=600, n=n)


def _above(turn: Turn, row: OpRow, op: str) -> list[OpRow]:
    """Settings of one kind that hold at an op, the nearest first: at most one a region for `model`, all for
    `budget`."""
    found: list[OpRow] = []
    region, rank = row.region, row.rank
    while True:
        plan = turn.region_plan(region)
        names = [o for o in plan.ops if o.op == op and o.rank < rank]
        for setting in reversed(names):
            path = f"{region}.{setting.place[len(plan.place) + 1 :]}" if region else setting.place
            stood = turn.op(path)
            if stood is not None and stood.state == "done":
                found.append(stood)
                if op == "model":
                    return found
        owner = owner_of(region)
        if not owner:
            return found
        outer = turn.must(owner)
        region, rank = outer.region, outer.rank


def each_prompt_names(turn: Turn, row: OpRow, prompt: str) -> dict[str, Any]:
    """The values that an `each` prompt fills in besides its element, by name."""
    from bot.language.refs import parse

    found: dict[str, Any] = {}
    for ref in parse(prompt).refs:
        if ref.name in ("it", "item", "index") or ref.name in found:
            continue
        if ref.name == "ops":
            ident = str(ref.steps[0].key) if ref.steps else ""
            found.setdefault("ops", {})[ident] = scope.record_of(turn, row, ident)
            continue
        value = scope.named(turn, row, ref.name)
        if value is scope.MISSING:
            if not ref.optional:
                raise OpError(f"`{ref.name}` has no value")
            value = None
        found[ref.name] = value
    return found
