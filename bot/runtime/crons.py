"""When a cron line comes next. The moments of a wall clock are APScheduler's, what a changed clock does to them ours:

a time of day that the clock leaves out comes at the first instant after the gap, one that it shows twice comes once,
the first time; a line with a free hour (`*/10 * * * *`) goes on by elapsed time through both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any

from bot.domain.catalog import Workspace
from bot.language import cron, durations

MINUTE = timedelta(minutes=1)
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def next_firing(every: str, zone: str | None, workspace: Workspace, after: datetime) -> datetime | None:
    """The first moment of a cron line later than `after`, in UTC; None where there is none any more. `zone`: a name or
    an offset, None for the workspace's."""
    there = replace(workspace, timezone=zone) if zone else workspace
    if cron.read(every).hourly:
        return _elapsed(every, durations.zone(there), after)
    wall = after.astimezone(durations.zone(there)).replace(tzinfo=UTC)
    while (wall := _next_wall(every, wall)) is not None:
        moment = durations.local(wall.date(), wall.time(), there).astimezone(UTC)
        if moment > after:
            return moment
    return None


def _elapsed(every: str, zone: tzinfo, after: datetime) -> datetime | None:
    """Of a line with a free hour: between two changes of the clock its offset stands still."""
    since, offset = after, _offset(zone, after)
    while True:
        fixed = timezone(offset)
        wall = _next_wall(every, after.astimezone(fixed).replace(tzinfo=UTC))
        moment = wall.replace(tzinfo=fixed).astimezone(UTC) if wall is not None else None
        if moment is None or _offset(zone, moment) == offset:
            return moment
        since = _change(zone, since.astimezone(UTC), moment)
        # From just before the change, counted by the offset that holds from it on.
        after, offset = since - MINUTE, _offset(zone, since)


def _offset(zone: tzinfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _change(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """The first minute with another offset than `low` has, not after `high`."""
    offset = _offset(zone, low)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high.replace(second=0, microsecond=0)


def _next_wall(every: str, wall: datetime) -> datetime | None:
    """The first minute of a wall clock later than `wall` that the line names; the clock is written as UTC."""
    after = wall.replace(second=0, microsecond=0) + MINUTE
    found = [t.get_next_fire_time(None, after) for t in _triggers(every)]
    return min((moment for moment in found if moment is not None), default=None)


@lru_cache(maxsize=512)
def _triggers(every: str) -> tuple[Any, ...]:
    """APScheduler's, one or two: where day and weekday are both restricted it wants both, cron either. It counts
    weekdays from Monday, so they are handed over by name."""
    from apscheduler.triggers.cron import CronTrigger

    line = cron.read(every)
    day, weekday = _listed(line.day), ",".join(DAYS[n] for n in line.weekday) if line.weekday is not None else "*"
    kinds = ((day, "*"), ("*", weekday)) if line.either else ((day, weekday),)
    return tuple(
        CronTrigger(
            minute=_listed(line.minute),
            hour=_listed(line.hour),
            month=_listed(line.month),
            day=one,
            day_of_week=two,
            second=0,
            timezone=UTC,
        )
        for one, two in kinds
    )


def _listed(values: Sequence[int] | None) -> str:
    return "*" if values is None else ",".join(map(str, values))
