"""What the engine may look at: one run's rows around one fact, each look-up by an index, none of the whole plan.

`Rows` is read only; the store gives one over SQL, tests one over dictionaries. Every call returns fresh rows,
which the step may change.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bot.domain.catalog import World
from bot.domain.record import OpRow, RegionRow, RunRow
from bot.engine.index import PlanIndex


class Rows(Protocol):
    def op(self, path: str) -> OpRow | None: ...

    def region(self, path: str) -> RegionRow | None: ...

    def in_region(self, region: str, but: Container[str] = ()) -> list[OpRow]:
        """Every op of one region instance, by rank; those at `but` are known already."""
        ...

    def ready(self, region: str) -> Iterator[OpRow]:
        """Planned ops without an open need, by rank."""
        ...

    def active(self, region: str) -> Iterator[OpRow]:
        """Active ops, by rank."""
        ...

    def planned_at(self, place: str, top: str) -> list[OpRow]:
        """Planned instances of a place below a region instance."""
        ...

    def regions_of(self, owner: str, *, hot: bool = False, still_open: bool = False) -> list[RegionRow]:
        """An op's region instances, by index; only the active or open ones if so asked."""
        ...

    def expecting(self, stream: str) -> list[str]:
        """Paths of this run's ops armed for a stream."""
        ...

    def events(self, streams: Sequence[str], key: str | None, since: datetime, until: datetime) -> list[dict[str, Any]]:
        """Stored events in [since, until], newest first, at most 1,000."""
        ...

    def taker(self, event: str) -> str | None:
        """Which op of this run an event belongs to."""
        ...

    def history(self) -> list[dict[str, Any]]:
        """The job's past ops, as the name `history` gives them."""
        ...

    def instances(self, places: Sequence[str]) -> list[OpRow]:
        """Every instance of these places that has a row."""
        ...

    def pending(self) -> list[OpRow]:
        """Every op that runs, waits, is gated or in doubt."""
        ...

    def open_regions(self) -> list[str]:
        """Paths of every region instance that is open."""
        ...

    def planned_count(self) -> int:
        """How many ops the run has rows of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One fact's neighbourhood and what it may know: the run's row, its plan's index, the workspace.

    `secret` makes tokens unguessable, `url` is the public address."""

    run: RunRow
    rows: Rows
    index: PlanIndex
    world: World
    secret: str = ""
    url: str = "http://127.0.0.1:8484"
