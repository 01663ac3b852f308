"""When cron lines come, also where the clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.catalog import Workspace
from bot.language import durations
from bot.runtime.crons import next_firing

BERLIN = Workspace(timezone="Europe/Berlin")


def moments(every: str, zone: str, after: str, count: int) -> list[str]:
    """The next firings as that zone's wall shows them."""
    at, found = datetime.fromisoformat(after), []
    there = durations.zone(Workspace(timezone=zone))
    for _ in range(count):
        following = next_firing(every, zone, BERLIN, at)
        assert following is not None and following > at
        at = following
        found.append(at.astimezone(there).strftime("%d %H:%M%z"))
    return found


CASES = [
    # A time that the clock leaves out comes at the first instant after the gap.
    ("30 2 * * *", "Europe/Berlin", "2026-03-27T10:00+00:00", ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00+00:00", ["04 02:30+1100", "05 02:15+1100"]),
    ("0 0 * * *", "America/Santiago", "2026-09-05T10:00+00:00", ["06 01:00-0300", "07 00:00-0300"]),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00+00:00", ["08 03:00-0400", "09 02:30-0400"]),
    # Two of them in the gap are one.
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00+00:00", ["29 03:00+0200", "30 02:00+0200"]),
    # A time that the clock shows twice comes once, the first time.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T10:00+00:00", ["25 02:30+0200", "26 02:30+0100"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00+00:00", ["01 01:30-0400", "02 01:30-0500"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00+00:00", ["05 01:45+1100", "06 01:45+1030"]),
    # A line with a free hour goes on by elapsed time.
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00+00:00", ["29 01:30+0100", "29 03:00+0200", "29 03:30+0200"]),
    ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30+00:00", ["25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
    ("*/20 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00+00:00", ["04 01:40+1030", "04 02:40+1100", "04 03:00+1100"]),
    # An offset has no changes.
    ("30 2 * * *", "+02:00", "2026-03-28T12:00+00:00", ["29 02:30+0200", "30 02:30+0200"]),
]  # fmt: skip


@pytest.mark.parametrize(("every", "zone", "after", "expected"), CASES)
def test_a_changed_clock_leaves_out_no_firing_and_makes_none_twice(
    every: str, zone: str, after: str, expected: list[str]
) -> None:
    assert moments(every, zone, after, len(expected)) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
def test_every_ten_minutes_is_every_ten_minutes_all_year(zone: str) -> None:
    # Around each change of the clock of that zone and hemisphere.
    for start in ("2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31"):
        at = datetime.fromisoformat(f"{start}T00:00:00+00:00")
        for _ in range(6 * 48):
            following = next_firing("*/10 * * * *", zone, BERLIN, at)
            assert following == at + timedelta(minutes=10)
            at = following


def test_weekdays_are_crons_and_not_apschedulers() -> None:
    assert moments("0 9 * * 0", "UTC", "2026-03-02T00:00+00:00", 1) == ["08 09:00+0000"]
    assert moments("0 9 * * fri-mon", "UTC", "2026-03-04T00:00+00:00", 4) == [
        f"{d} 09:00+0000" for d in ("06", "07", "08", "09")
    ]


def test_a_thirteenth_or_a_friday() -> None:
    assert moments("0 0 13 * fri", "UTC", "2026-04-09T00:00+00:00", 3) == [
        f"{d} 00:00+0000" for d in ("10", "13", "17")
    ]


def test_a_leap_day_is_waited_for() -> None:
    assert next_firing("0 0 29 2 *", "UTC", BERLIN, datetime(2026, 3, 2, tzinfo=UTC)) == datetime(
        2028, 2, 29, tzinfo=UTC
    )


def test_without_a_zone_it_is_the_workspaces() -> None:
    assert next_firing("0 9 * * *", None, BERLIN, datetime(2026, 3, 2, 8, tzinfo=UTC)) == datetime(
        2026, 3, 3, 8, tzinfo=UTC
    )
