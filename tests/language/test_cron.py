"""Cron lines as every cron reads them."""

from __future__ import annotations

import pytest

from bot.language import cron

DAYS = [
    ("*", None), ("0", (0,)), ("7", (0,)), ("sun", (0,)), ("1-5", (1, 2, 3, 4, 5)), ("mon-fri", (1, 2, 3, 4, 5)),
    ("fri-mon", (0, 1, 5, 6)), ("5-7", (0, 5, 6)), ("sat-sun", (0, 6)), ("0-7", None), ("*/2", (0, 2, 4, 6)),
    ("MON,Wed", (1, 3)), ("1-5/2", (1, 3, 5)), ("6,0", (0, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("field", "days"), DAYS)
def test_weekdays_count_from_sunday_by_number_and_by_name(field: str, days: tuple[int, ...] | None) -> None:
    text = f"0 9 * * {field}"
    assert cron.fault(text) is None
    assert cron.read(text).weekday == days


def test_months_have_names_and_steps_start_where_they_say() -> None:
    line = cron.read("5/20 */6 1 jan-mar,dec *")
    assert (line.minute, line.hour, line.month) == ((5, 25, 45), (0, 6, 12, 18), (1, 2, 3, 12))


def test_short_forms_are_their_lines() -> None:
    assert cron.read("@weekly") == cron.read("0 0 * * sun")


def test_a_day_and_a_weekday_are_either_of_them_as_in_every_cron() -> None:
    assert cron.read("0 0 13 * fri").either
    assert not cron.read("0 0 */2 * fri").either
    assert not cron.read("0 0 13 * *").either


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *",
             "*/0 * * * *", "a * * * *", "1-2-3 * * * *", "0 0 30 feb *", "0 0 31 2,4,6 *", "² * * * *"],
)  # fmt: skip
def test_what_is_no_line_or_never_comes_is_told(text: str) -> None:
    assert cron.fault(text)


def test_a_leap_day_comes() -> None:
    assert cron.fault("0 0 29 2 *") is None
