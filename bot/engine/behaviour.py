"""What an op does, as four pure functions on the working set of one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.domain.facts import Returned
from bot.domain.record import OpRow, RegionRow

if TYPE_CHECKING:
    from bot.engine.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """`start`: its needs are met and its turn has come. `returned`: a call of its ended well. `closed`: one of its
    own regions has closed (not `onMiss`, `onError`), whatever became of it. `more`: it may begin more regions.
    `reopened`: a retry opened again what halted inside it (`spent`: it had missed).
    Each may raise `OpError`, which is a failed attempt of the op."""

    start: Callable[[Turn, OpRow], None]
    returned: Callable[[Turn, OpRow, Returned], None] | None = None
    closed: Callable[[Turn, OpRow, RegionRow, str], None] | None = None
    more: Callable[[Turn, OpRow], None] | None = None
    reopened: Callable[[Turn, OpRow, bool], None] | None = None
