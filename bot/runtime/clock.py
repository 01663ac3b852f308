"""Time at the edge: the clock that everyone is handed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, UTC."""
        ...


def machine_time() -> datetime:
    """What the machine's clock says: the one place that reads it."""
    return datetime.now(UTC)


class SystemClock:
    def now(self) -> datetime:
        return machine_time()


class SetClock:
    """A clock that stands until it is moved."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def move(self, **span: float) -> datetime:
        self.at += timedelta(**span)
        return self.at
