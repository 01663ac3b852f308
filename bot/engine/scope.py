"""Which value a name has at an op: references filled in, and the names that an expression sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bot.domain.errors import OpError
from bot.domain.ids import indexes_of, instance
from bot.domain.record import OpRow
from bot.engine.turn import Turn
from bot.language import cel, jq
from bot.language.refs import Ref, fill, follow


def filled(turn: Turn, row: OpRow, value: Any) -> Any:
    """A field or parameter with its references replaced by their values. Raises OpError."""
    return fill(value, lookup(turn, row))


def lookup(turn: Turn, row: OpRow) -> Callable[[Ref], Any]:
    """What a reference stands for at this op."""

    def value(ref: Ref) -> Any:
        if ref.name == "ops":
            return _ops_path(turn, row, ref)
        found = named(turn, row, ref.name)
        if found is MISSING:
            if ref.optional:
                return None
            raise OpError(f"`{ref.name}` has no value")
        return follow(ref, found)

    return value


MISSING: Any = object()


def named(turn: Turn, row: OpRow, name: str) -> Any:
    """The value of a name at this op, or MISSING where the op that binds it has none."""
    binding = turn.index.scopes.resolve(row.place, name)
    match binding.kind:
        case "op":
            return bound(turn, row.path, binding.places)
        case "item" | "index" | "last":
            return _of_loop(turn, row, binding.owner, binding.kind)
        case "fixed":
            return _fixed(turn, row, name)
        case _:
            return turn.run.names.get(name, MISSING)


def bound(turn: Turn, reader: str, places: Iterable[str]) -> Any:
    """The value of the last written binder that has one, as the reader sees them."""
    for place in reversed(tuple(places)):
        row = turn.at_place(reader, place)
        if row is not None and row.has_value:
            return row.value
    return MISSING


def value_of(turn: Turn, row: OpRow) -> Any:
    """The value that an op gives those below it: its own, or that of the op that bound its name again."""
    if row.has_value or row.id is None:
        return row.value if row.has_value else MISSING
    if row.state not in ("missed", "failed"):
        return MISSING
    for place in reversed(turn.index.rebinders.get(row.place, ())):
        again = turn.op(instance(place, indexes_of(row.path)))
        if again is not None and again.has_value:
            return again.value
    return MISSING


def environment(turn: Turn, row: OpRow, text: str, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that a CEL expression uses, with their values: what the sandbox needs and no more."""
    found: dict[str, Any] = dict(extra or {})
    for name in cel.parse(text).names:
        root = str(name.path[0])
        if root in found and root != "ops":
            continue
        if root == "ops":
            if len(name.path) > 1 and not (extra and "ops" in extra):
                found.setdefault("ops", {})[str(name.path[1])] = record_of(turn, row, str(name.path[1]))
            continue
        found[root] = _present(turn, row, root)
    return found


def jq_variables(turn: Turn, row: OpRow, text: str) -> dict[str, Any]:
    """The bindings that a jq filter names as `$name`, with their values."""
    return {name: _present(turn, row, name) for name, *_ in jq.free_variables(text)}


def _present(turn: Turn, row: OpRow, name: str) -> Any:
    value = named(turn, row, name)
    if value is MISSING:
        raise OpError(f"`{name}` has no value")
    return value


def record_of(turn: Turn, row: OpRow, ident: str) -> dict[str, Any]:
    """`ops.NAME`: an op's record as scripts see it."""
    other = None
    for place in turn.index.scopes.record(row.place, ident)[:1]:
        other = turn.at_place(row.path, place)
    if other is None:
        return {
            "state": "planned",
            "by": None,
            "at": None,
            "error": None,
            "reason": None,
            "miss": None,
            "verdict": None,
            "answers": [],
        }
    return record(other)


def record(row: OpRow) -> dict[str, Any]:
    data = row.data
    return {
        "state": row.state,
        "by": row.by,
        "at": row.ended.isoformat() if row.ended else None,
        "error": data.get("error"),
        "reason": data.get("reason"),
        "miss": data.get("miss"),
        "verdict": data.get("verdict"),
        "claim": data.get("claim"),
        "answers": [
            {k: v for k, v in a.items() if k in ("by", "answer", "at", "reason")} for a in data.get("answers", [])
        ],
    }


def _ops_path(turn: Turn, row: OpRow, ref: Ref) -> Any:
    if not ref.steps:
        raise OpError("`ops` needs the name of an op, as in `ops.scope.state`")
    ident = str(ref.steps[0].key)
    return follow(ref, {ident: record_of(turn, row, ident)})


def _of_loop(turn: Turn, row: OpRow, owner: str | None, kind: str) -> Any:
    """`item`, `index` or `last` of the loop at `owner`, for this instance."""
    assert owner is not None
    indexes = indexes_of(row.path)
    depth = owner.count("[]")
    at = int(indexes[depth])
    if kind == "index":
        return at
    loop = instance(owner, indexes)
    if kind == "item":
        return turn.region(f"{loop}[{at}]").item
    if at == 0:
        return None
    return turn.region(f"{loop}[{at - 1}]").value


def _fixed(turn: Turn, row: OpRow, name: str) -> Any:
    run = turn.run
    match name:
        case "owner":
            return run.owner
        case "job":
            return {"id": run.job}
        case "run":
            return {"id": run.id, "key": run.data.get("key") or f"{run.id}:{row.path}"}
        case "now":
            return (row.started or turn.now).isoformat()
        case "templates":
            return dict(turn.world.templates)
        case "customer":
            return run.customer if run.customer is not None else MISSING
        case "history":
            return turn.rows.history()
        case _:
            return turn.run.names.get(name, MISSING)
