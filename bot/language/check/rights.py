"""Who may call a tool at all: the policy's `use`."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from bot.domain.catalog import OpSpec, World
from bot.language.check.context import Checking, problem
from bot.language.problems import Problem

ANYONE = ("members", "everyone")


def check(c: Checking) -> Iterator[Problem]:
    """What the script's owner may not call. Whoever starts a script is its owner, whoever wrote or edited it."""
    for place, op, spec in c.ops():
        who = kept_for(c.world, spec)
        if who is not None and not may_call(c.world, c.world.owner, spec):
            names = [c.world.name_of(email) for email in sorted(members(c.world, who))]
            mend = f"{' or '.join(names)} may start it" if 0 < len(names) <= 4 else None
            yield problem(c.name(place), "tool-not-yours", refusal(c.world, op.op, who), mend)


def may_call(world: World, email: str, spec: OpSpec) -> bool:
    """Whether somebody may call it at all."""
    who = kept_for(world, spec)
    return who is None or email.casefold() in members(world, who)


def refusal(world: World, op: str, who: tuple[str, ...]) -> str:
    """Why a run's owner may not call it."""
    told = " and ".join(f"`{one}`" if one.startswith("role:") else world.name_of(one) for one in who)
    return f"`{op}` is for {told}, and {world.name_of(world.owner)} is not among them"


def kept_for(world: World, spec: OpSpec) -> tuple[str, ...] | None:
    """Whom an op is kept for, by its name or the first pattern that fits; None where whoever may paste may call it."""
    use = world.policy.use
    found = use.get(spec.name)
    if found is None and spec.tool:
        found = next((who for pattern, who in use.items() if fnmatch.fnmatchcase(spec.name, pattern)), None)
    if found is None:
        return None
    who = (found,) if isinstance(found, str) else tuple(found)
    return None if any(one in ANYONE for one in who) else who


def members(world: World, who: tuple[str, ...]) -> set[str]:
    """The people that are named, and those who hold the roles, in small letters."""
    found: set[str] = set()
    for one in who:
        found |= {m.casefold() for m in (world.roles.get(one[5:], ()) if one.startswith("role:") else (one,))}
    return found
