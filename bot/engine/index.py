"""A plan, indexed once: ops and regions by place, what each op needs, and who needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.domain.catalog import Catalog, OpSpec
from bot.domain.plan import Op, Plan, Region
from bot.language.scope import Need, Scopes, analyse

FEW = 12
"""Ops of a plan whose rows are read at once."""
MANY = 40
"""Ops of a plan without loops that cannot put more cards to one person than they may have open."""


@dataclass(slots=True)
class PlanIndex:
    """Look-ups by place. `ordinal` gives a region's number among those of its op, in written order."""

    plan: Plan
    catalog: Catalog
    scopes: Scopes
    ops: dict[str, Op] = field(default_factory=dict)
    regions: dict[str, Region] = field(default_factory=dict)
    region_of: dict[str, str] = field(default_factory=dict)
    owner_of: dict[str, str] = field(default_factory=dict)
    ordinal: dict[str, int] = field(default_factory=dict)
    primary: dict[str, tuple[tuple[Need, str], ...]] = field(default_factory=dict)
    dependents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)
    """Places by id."""
    rebinders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of an op with branches: places inside them that bind its name again, in written order."""
    needs_customer: bool = False
    small: bool = False
    """Whether its rows are so few that they are read at once."""
    crowded: bool = False
    """Whether somebody may have more open cards of a run than are put at once: in loops, or with very many asks."""

    def spec(self, name: str) -> OpSpec:
        return self.catalog[name]


def build(plan: Plan, catalog: Catalog) -> PlanIndex:
    """The index of a plan whose checks have passed."""
    index = PlanIndex(plan=plan, catalog=catalog, scopes=analyse(plan, catalog))
    for region, owner in plan.regions():
        index.regions[region.place] = region
        index.owner_of[region.place] = owner.place if owner else ""
        for op in region.ops:
            index.ops[op.place] = op
            if op.id is not None:
                index.named.setdefault(op.id, []).append(op.place)
            index.region_of[op.place] = region.place
            for number, (_, inner) in enumerate(op.inner()):
                index.ordinal[inner.place] = number
    for place, op in index.ops.items():
        if op.id is not None and (again := tuple(_rebinders(op))):
            index.rebinders[place] = again
    loops = any("[]" in place for place in index.ops)
    index.small = len(index.ops) <= FEW and not loops
    index.crowded = len(index.ops) > MANY or loops
    index.ordinal[""] = 0
    index.ordinal["onError"] = 1
    dependents: dict[str, list[str]] = {}
    for place in index.ops:
        firsts: list[tuple[Need, str]] = []
        seen: set[str] = set()
        for need in index.scopes.needs(place):
            first = need.binders[0]
            if _inside_own_branch(place, first):
                continue
            firsts.append((need, first))
            if first not in seen:
                seen.add(first)
                dependents.setdefault(first, []).append(place)
        index.primary[place] = tuple(firsts)
    index.dependents = {place: tuple(readers) for place, readers in dependents.items()}
    return index


def _rebinders(op: Op) -> Iterator[str]:
    for name, region in op.inner():
        if name in ("onMiss", "onError"):
            stack = list(reversed(region.ops))
            while stack:
                inner = stack.pop()
                if inner.id == op.id:
                    yield inner.place
                stack.extend(reversed([o for _, r in inner.inner() for o in r.ops]))


def _inside_own_branch(place: str, binder: str) -> bool:
    """Inside its own `onMiss` or `onError` an op's record is there at the miss: nothing to wait for."""
    return place.startswith((binder + ".onMiss.", binder + ".onError."))
