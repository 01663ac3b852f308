"""Which names of a plan may hold what somebody outside wrote: people's answers, messages, files, tools' results and
whatever was made of them. An agent gets such values marked as data."""

from __future__ import annotations

from bot.domain.plan import Op
from bot.language.refs import parse
from bot.language.scope import Scopes

OURS = frozenset({"list", "core.let", "core.transform", "keep", "drop", "first", "lines", "chunk"})
"""Ops whose value is made of what they name, and of the script's own words."""
COUNTED = frozenset({"count"})
"""Ops whose value says nothing in anybody's words."""


def outside_names(scopes: Scopes, place: str, text: str, field: str | None = None) -> frozenset[str]:
    """The names in a prompt that may hold words from outside."""
    return frozenset(ref.name for ref in parse(text).refs if _name(scopes, place, ref.name, field, frozenset()))


def is_task(text: str) -> bool:
    """Whether a prompt is one value and nothing else: then the author means its words as the task."""
    return parse(text).whole


def _name(scopes: Scopes, place: str, name: str, field: str | None, seen: frozenset[str]) -> bool:
    binding = scopes.resolve(place, name, field)
    match binding.kind:
        case "op":
            return any(_value(scopes, where, seen) for where in binding.places)
        case "item":
            return _element(scopes, binding.owner, seen)
        case "index":
            return False
        case "fixed":
            return name in ("ops", "history")
        case _:
            return True


def _element(scopes: Scopes, owner: str, seen: frozenset[str]) -> bool:
    """Of the list that a loop or an `each` goes through."""
    return any(
        _name(scopes, owner, use.name, None, seen)
        for use in scopes.uses(owner)
        if use.field in ("over", "list") and use.how != "after"
    )


def _value(scopes: Scopes, place: str, seen: frozenset[str]) -> bool:
    """Whether the value of an op may hold words from outside."""
    if place in seen:
        return False
    seen |= {place}
    op: Op = scopes.ops[place]
    if op.op in COUNTED:
        return False
    if op.op in OURS:
        return any(_name(scopes, place, use.name, use.field, seen) for use in scopes.uses(place) if use.how != "after")
    inner = [o.place for _, region in op.inner() for o in region.ops]
    if inner:
        return any(_value(scopes, where, seen) for where in inner)
    return True
