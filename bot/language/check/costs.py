"""What agents will cost at least, where it is known before: a script that is over the policy's limit is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.domain import cost
from bot.domain.plan import Op
from bot.language.check.context import Checking, problem
from bot.language.check.preflight import calls_of, total
from bot.language.problems import Problem
from bot.language.refs import has_refs
from bot.language.scope import calls_agent


def check(c: Checking) -> Iterator[Problem]:
    """Policy `max_cost`: a run may cost so much, and every model that it asks must have a known price."""
    most = c.world.policy.max_cost
    if most is None or c.world.model is None:
        return
    asking = [(place, op) for place, op, spec in c.ops() if calls_agent(op, spec)]
    told: set[str] = set()
    for place, op in asking:
        model = model_of(c, op)
        if model is not None and model not in told and cost.price_of(model, c.world.prices) is None:
            told.add(model)
            said = f"a run may cost ${most:,.2f} here, and what `{model}` costs is not in the settings"
            yield problem(c.name(place), "cost-unknown", said, f'an operator adds [models."{model}"] input and output')
    wanted = estimate(c)
    if wanted is not None and asking and wanted > most * cost.MICRO:
        calls = total(c, calls_of) or 0
        what = "an agent call" if calls == 1 else f"{calls:,} agent calls"
        said = f"{what} would cost about {cost.dollars(wanted)}; a run may cost ${most:,.2f} here"
        yield problem(c.name(asking[0][0]), "cost-limit", said, "a cheaper `model`, or fewer calls (`first`, `budget`)")


def estimate(c: Checking) -> int | None:
    """What all agent calls of a run cost at least, in millionths of a dollar; None where it is known only later."""
    each = total(c, _cost)
    calls = total(c, calls_of, capped=False)
    let_through = total(c, calls_of)
    if each is None or calls is None or let_through is None or not calls:
        return None if each is None or calls is None else 0
    return round(each * min(1.0, let_through / calls))


def model_of(c: Checking, op: Op) -> str | None:
    """The model that an op's agents run on; None where a value says it."""
    set_ = [name for place in c.scopes.settings(op.place) if (name := _model(c.scopes.ops[place])) is not None]
    if set_:
        return None if has_refs(set_[-1]) else set_[-1]
    named = op.to.partition(":")[2] if isinstance(op.to, str) and op.to.startswith("agent:") else ""
    found = next((a for a in c.world.agents if a.name == named or (not named and a.default)), None)
    return (found.model if found else None) or c.world.model


def _model(op: Op) -> str | None:
    return str(op.params["name"]) if op.op == "model" and "name" in op.params else None


def _cost(c: Checking, op: Op) -> int | None:
    calls = calls_of(c, op)
    if not calls:
        return calls
    model = model_of(c, op)
    price = cost.price_of(model, c.world.prices) if model else None
    if price is None:
        return None
    prompt: Any = op.params.get("prompt") or op.params.get("question") or ""
    return cost.estimate(price, calls, calls * len(str(prompt)))
