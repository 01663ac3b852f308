"""A plan as data and as JSON text; `from_program` is the exact way back from data. (Markdown: `write_markdown.py`.)

Canonical data is what the JSON surface takes; what it cannot say (the place and rank of an op that an edit
inserted) stands under the key `at` and is left out of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bot.domain.catalog import Catalog
from bot.domain.plan import RANK_STEP, Default, Input, Op, Plan, Region, Retry, Trigger
from bot.language import program
from bot.language.jsontext import pretty
from bot.language.write_markdown import as_markdown

__all__ = ["as_json", "as_markdown", "from_program", "to_program"]

Data = dict[str, Any]


def to_program(plan: Plan) -> list[Any] | Data:
    """The plan as plain JSON data: a list of ops, or an object where anything stands around them."""
    return _program(plan, exact=True)


def from_program(data: list[Any] | Mapping[str, Any], catalog: Catalog | None = None) -> Plan:
    """The plan that `to_program` gave `data` for. Checks nothing."""
    if isinstance(data, list):
        return Plan(program=_read_region(data, ""))
    inputs = data.get("inputs")
    return Plan(
        program=_read_region(data["program"], ""),
        inputs=None if inputs is None else tuple(_read_input(name, given) for name, given in inputs.items()),
        name=data.get("name"),
        title=data.get("title"),
        within=data.get("within"),
        on=tuple(Trigger(**{("as_" if k == "as" else k): v for k, v in given.items()}) for given in data.get("on", ())),
        overlap=data.get("overlap"),
        key=data.get("key"),
        on_error=_read_region(data["onError"], "onError") if "onError" in data else None,
    )


def as_json(plan: Plan) -> str:
    """The plan as readable JSON; reading it gives an equal plan."""
    return pretty(_program(plan, exact=False)) + "\n"


def _program(plan: Plan, *, exact: bool) -> list[Any] | Data:
    ops = _region(plan.program, exact=exact)
    out = program.head(plan)
    if plan.on_error is not None:
        out["onError"] = _region(plan.on_error, exact=exact)
    if not out:
        return ops
    error = {"onError": out.pop("onError")} if "onError" in out else {}
    return {**out, "program": ops, **error}


def _region(region: Region, *, exact: bool) -> list[Any]:
    return [_op(op, region.place, number, exact=exact) for number, op in enumerate(region.ops, 1)]


def _op(op: Op, region: str, number: int, *, exact: bool) -> Data:
    out: Data = {"op": op.op}
    if op.id is not None:
        out["id"] = op.id
    if exact and (op.place, op.rank) != _regular(region, number):
        out["at"] = [op.place, op.rank]
    for key, value in (("to", op.to), ("from", op.from_), ("within", op.within), ("by", op.by)):
        if value is not None:
            out[key] = value
    if op.after:
        out["after"] = op.after[0] if len(op.after) == 1 else list(op.after)
    if op.params:
        out["params"] = dict(op.params)
    out.update(_regions(op, exact=exact))
    if op.on_miss is not None:
        out["onMiss"] = op.on_miss if isinstance(op.on_miss, str) else _region(op.on_miss, exact=exact)
    match op.on_error:
        case None:
            pass
        case Default(value=value):
            out["onError"] = {"default": value}
        case Region() as inner:
            out["onError"] = _region(inner, exact=exact)
        case word:
            out["onError"] = word
    if op.retry is not None:
        out["retry"] = program.retry(op.retry)
    return out


def _regions(op: Op, *, exact: bool) -> Data:
    if op.op == "flow.parallel":
        if op.branches_listed:
            return {"branches": [_region(region, exact=exact) for region in op.regions.values()]}
        return {"branches": {name: _region(region, exact=exact) for name, region in op.regions.items()}}
    return {name: _region(region, exact=exact) for name, region in op.regions.items()}


def _regular(region: str, number: int) -> tuple[str, int]:
    """Place and rank of an op as read."""
    return f"{region}.{number}" if region else str(number), RANK_STEP * number


def _read_region(ops: Iterable[Data], place: str) -> Region:
    return Region(place=place, ops=tuple(_read_op(given, place, number) for number, given in enumerate(ops, 1)))


def _read_op(given: Data, region: str, number: int) -> Op:
    place, rank = given["at"] if "at" in given else _regular(region, number)
    after = given.get("after", ())
    tries = given.get("retry")
    return Op(
        op=given["op"],
        place=place,
        rank=rank,
        id=given.get("id"),
        params=given.get("params", {}),
        to=given.get("to"),
        from_=given.get("from"),
        after=(after,) if isinstance(after, str) else tuple(after),
        within=given.get("within"),
        by=given.get("by"),
        on_miss=_read_miss(given.get("onMiss"), place),
        on_error=_read_error(given.get("onError"), place),
        retry=Retry(max=tries["max"], backoff=tries["backoff"], max_delay=tries.get("maxDelay")) if tries else None,
        regions=_read_regions(given, place),
        branches_listed=isinstance(given.get("branches"), list),
    )


def _read_miss(given: Any, place: str) -> Any:
    return _read_region(given, f"{place}.onMiss") if isinstance(given, list) else given


def _read_error(given: Any, place: str) -> Any:
    if isinstance(given, list):
        return _read_region(given, f"{place}.onError")
    return Default(value=given["default"]) if isinstance(given, dict) else given


def _read_regions(given: Data, place: str) -> dict[str, Region]:
    found: dict[str, Region] = {}
    for key in ("then", "else"):
        if key in given:
            found[key] = _read_region(given[key], f"{place}.{key}")
    if "body" in given:
        found["body"] = _read_region(given["body"], f"{place}[]")
    branches = given.get("branches", {})
    named = enumerate(branches, 1) if isinstance(branches, list) else branches.items()
    for name, ops in named:
        found[str(name)] = _read_region(ops, f"{place}.{name}")
    return found


def _read_input(name: str, given: Data) -> Input:
    return Input(
        name=name,
        type=given["type"],
        default=given.get("default"),
        has_default="default" in given,
        choices=tuple(given.get("choices", ())),
        of=given.get("of"),
        secret=given.get("secret", False),
        description=given.get("description"),
    )
