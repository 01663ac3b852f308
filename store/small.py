"""The rows of a short run, read at once: three statements a fact in place of six. The same answers as `StoredRows`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from bot.domain.record import OpRow, RegionRow
from store.dialect import Transaction
from store.ops import StoredRows

Row = tuple[Any, ...]
# Where an op's row has its region, rank, state, open, own, hot and needs; a region's its owner, state and hot.
REGION, RANK, STATE, OPEN, OWN, HOT, NEEDS = 2, 3, 6, 7, 8, 9, 11
OWNER, REGION_STATE, REGION_HOT = 1, 2, 4


class SmallRows(StoredRows):
    """For a plan without loops and of a few ops: nothing is read twice within a fact."""

    def __init__(self, tx: Transaction, run_id: str, job: str) -> None:
        super().__init__(tx, run_id, job)
        self._ops: dict[str, Row] | None = None
        self._regions: dict[str, Row] | None = None
        if (ahead := tx.ahead.pop(self._mine["run"], None)) is not None:
            self._ops, self._regions = ({row[0]: row for row in rows} for rows in ahead)

    def _every_op(self) -> dict[str, Row]:
        if self._ops is None:
            self._ops = {row[0]: row for row in self.raw_ops()}
        return self._ops

    def _every_region(self) -> dict[str, Row]:
        if self._regions is None:
            self._regions = {row[0]: row for row in self.raw_regions()}
        return self._regions

    def op(self, path: str) -> OpRow | None:
        row = self._every_op().get(path)
        return self._op(row) if row is not None else None

    def region(self, path: str) -> RegionRow | None:
        row = self._every_region().get(path)
        return self._region(row) if row is not None else None

    def _of(self, region: str) -> list[Row]:
        return sorted((row for row in self._every_op().values() if row[REGION] == region), key=lambda row: row[RANK])

    def in_region(self, region: str, but: Container[str] = ()) -> list[OpRow]:
        return [self._op(row) for row in self._of(region) if row[0] not in but]

    def ready(self, region: str) -> Iterator[OpRow]:
        return (
            self._op(row) for row in self._of(region) if row[STATE] == "planned" and not row[NEEDS] and row[OPEN] == 1
        )

    def active(self, region: str) -> Iterator[OpRow]:
        return (self._op(row) for row in self._of(region) if row[OWN] or row[HOT])

    def regions_of(self, owner: str, *, hot: bool = False, still_open: bool = False) -> list[RegionRow]:
        return [
            self._region(row)
            for row in self._every_region().values()
            if owner
            and row[OWNER] == owner
            and (not hot or row[REGION_HOT])
            and (not still_open or row[REGION_STATE] != "closed")
        ]

    def instances(self, places: Sequence[str]) -> list[OpRow]:
        return [row for place in places if (row := self.op(place)) is not None]
