"""Agent calls as the engine sees them: the model and the budgets in force, and what is put on work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bot.domain.errors import OpError
from bot.domain.record import OpRow
from bot.domain.values import text
from bot.engine import scope
from bot.engine.turn import Turn, owner_of
from bot.language import provenance, refs


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


def ask(turn: Turn, row: OpRow, who: str, *, said: str | None = None, wrong: str | None = None) -> None:
    """One agent is asked; `said` is its last answer, and `wrong` what is wrong with that."""
    if said is None and allowance(turn, row, 1) == 0:
        raise OpError("the budget of agent calls is spent")
    n = row.data.get("calls", 0)  # several agents may be asked, and one again: each call is another
    row.data["calls"] = n + 1
    body: dict[str, Any] = {"who": who, "model": model(turn, row), "prompt": row.data["question"], "n": n}
    if row.data.get("choices"):
        body["choices"] = [c["label"] for c in row.data["choices"]]
    for key, name in (("fields", "fields"), ("wants_reason", "reason")):
        if row.data.get(key):
            body[name] = row.data[key]
    if said is not None:
        body |= {"said": said, "wrong": wrong}
    if outside := _outside_of_question(turn, row):
        body["outside"] = outside
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


def _outside_of_question(turn: Turn, row: OpRow) -> list[list[int]]:
    """Where in the question words from outside stand, as pairs of offsets; none where it is one value, which the
    script's author means as the task."""
    question = turn.plan_op(row).params.get("question")
    if not isinstance(question, str) or provenance.is_task(question):
        return []
    outside = provenance.outside_names(turn.index.scopes, row.place, question)
    if not outside:
        return []
    return spans(refs.parse(question).parts, outside, scope.lookup(turn, row))[1]


def outside_of_each(turn: Turn, row: OpRow) -> list[str]:
    """The names in an `each` prompt that may hold words from outside."""
    prompt = turn.plan_op(row).params["prompt"]
    if provenance.is_task(prompt):
        return []
    return sorted(provenance.outside_names(turn.index.scopes, row.place, prompt, "prompt"))


def spans(
    parts: tuple[str | refs.Ref, ...], outside: frozenset[str], lookup: Callable[[refs.Ref], Any]
) -> tuple[str, list[list[int]]]:
    """A template filled in, and where in it the values of the names `outside` stand."""
    whole, found = "", []
    for part in parts:
        said = part if isinstance(part, str) else text(lookup(part))
        if isinstance(part, refs.Ref) and part.name in outside and said:
            found.append([len(whole), len(whole) + len(said)])
        whole += said
    return whole, found


def element_prompt(body: dict[str, Any], item: Any, index: int) -> tuple[str, list[list[int]]]:
    """The prompt of one element of an `each`, as its call has it, and where in it words from outside stand."""

    def lookup(ref: refs.Ref) -> Any:
        if ref.name in ("it", "item"):
            return refs.follow(ref, item)
        if ref.name == "index":
            return index
        return refs.follow(ref, body["names"].get(ref.name))

    return spans(refs.parse(body["prompt"]).parts, frozenset(body.get("outside", ())), lookup)


def shared_part(body: dict[str, Any]) -> str:
    """The beginning of the prompt that every element of an `each` has: up to where the element is named."""
    parts: list[str | refs.Ref] = []
    for part in refs.parse(body["prompt"]).parts:
        if isinstance(part, refs.Ref) and part.name in ("it", "item", "index"):
            break
        parts.append(part)
    return spans(tuple(parts), frozenset(), lambda ref: refs.follow(ref, body["names"].get(ref.name)))[0]


def each_prompt_names(turn: Turn, row: OpRow, prompt: str) -> dict[str, Any]:
    """The values that an `each` prompt fills in besides its element, by name."""
    found: dict[str, Any] = {}
    for ref in refs.parse(prompt).refs:
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
