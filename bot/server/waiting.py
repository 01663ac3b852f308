"""What a run waits for, as pages and messages show it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from bot.domain.catalog import World
from bot.domain.record import OpRow
from bot.engine import tenses
from bot.server.entries import Wait


def waits_of(rows: Iterable[OpRow], world: World, most: int = 12) -> list[Wait]:
    """What a run waits for, oldest first, the same once."""
    pairs = [(found, row) for row in rows if (found := tenses.waiting_on(row, world, world.now)) is not None]
    seen: dict[str, Wait] = {}
    for found, row in sorted(pairs, key=lambda pair: pair[0])[:most]:
        seen.setdefault(found[1], wait_of(found, row))
    return list(seen.values())


def wait_of(found: tuple[datetime, str], op: OpRow) -> Wait:
    who = found[1].rpartition(" since ")[0] or found[1]
    return Wait(who=who, since=found[0], until=op.due if op.op in ("expect", "core.repeat") else None)
