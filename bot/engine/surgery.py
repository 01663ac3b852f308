"""Edits of a plan as a value: one op replaced, removed, or others inserted behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bot.domain.errors import OpError
from bot.domain.plan import RANK_STEP, Op, Plan, Region

Change = Callable[[Region, int], tuple[Op, ...]]


def changed(plan: Plan, place: str, change: Change) -> Plan:
    """The plan with the region that holds `place` changed: `change` gets it and the op's position."""
    program, hit = _region(plan.program, place, change)
    if hit:
        return replace(plan, program=program)
    if plan.on_error is not None:
        on_error, hit = _region(plan.on_error, place, change)
        if hit:
            return replace(plan, on_error=on_error)
    raise KeyError(place)


def replaced(op: Op) -> Change:
    def change(region: Region, at: int) -> tuple[Op, ...]:
        return (*region.ops[:at], op, *region.ops[at + 1 :])

    return change


def removed(region: Region, at: int) -> tuple[Op, ...]:
    return (*region.ops[:at], *region.ops[at + 1 :])


def inserted(ops: tuple[Op, ...]) -> Change:
    """Puts ops behind one: they are called `2+1`, `2+2` …, and rank between their neighbours."""

    def change(region: Region, at: int) -> tuple[Op, ...]:
        anchor = region.ops[at]
        low = anchor.rank
        high = region.ops[at + 1].rank if at + 1 < len(region.ops) else low + RANK_STEP
        step = (high - low) // (len(ops) + 1)
        if step == 0:
            raise OpError(
                f"no further op fits between `{anchor.id or anchor.place}` and the next; insert it after another"
            )
        stem = anchor.place
        taken = [
            int(o.place[len(stem) + 1 :])
            for o in region.ops
            if o.place.startswith(stem + "+") and o.place[len(stem) + 1 :].isdigit()
        ]
        first = max(taken, default=0) + 1
        new = tuple(moved(op, f"{stem}+{first + i}", low + step * (i + 1)) for i, op in enumerate(ops))
        return (*region.ops[: at + 1], *new, *region.ops[at + 1 :])

    return change


def moved(op: Op, place: str, rank: int) -> Op:
    """The op, with everything inside it, at another place."""
    old = op.place

    def region(inner: Region) -> Region:
        return replace(
            inner,
            place=place + inner.place[len(old) :],
            ops=tuple(moved(o, place + o.place[len(old) :], o.rank) for o in inner.ops),
        )

    values: dict[str, Any] = {"place": place, "rank": rank}
    values["regions"] = {name: region(r) for name, r in op.regions.items()}
    if isinstance(op.on_miss, Region):
        values["on_miss"] = region(op.on_miss)
    if isinstance(op.on_error, Region):
        values["on_error"] = region(op.on_error)
    return replace(op, **values)


def _region(region: Region, place: str, change: Change) -> tuple[Region, bool]:
    for at, op in enumerate(region.ops):
        if op.place == place:
            return replace(region, ops=change(region, at)), True
        if not place.startswith(op.place):
            continue
        for name, inner in op.inner():
            found, hit = _region(inner, place, change)
            if hit:
                if name == "onMiss":
                    new = replace(op, on_miss=found)
                elif name == "onError" and isinstance(op.on_error, Region) and inner is op.on_error:
                    new = replace(op, on_error=found)
                else:
                    new = replace(op, regions={**op.regions, name: found})
                return replace(region, ops=(*region.ops[:at], new, *region.ops[at + 1 :])), True
    return region, False
