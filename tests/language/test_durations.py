import contextlib
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.catalog import Workspace
from bot.language import durations
from bot.language.durations import BadDuration, NoSuchDate, PastMoment, TooFar

BERLIN = ZoneInfo("Europe/Berlin")
WORK = Workspace(timezone="Europe/Berlin", holidays=frozenset({"2026-06-04"}))
WEDNESDAY = datetime(2026, 6, 3, 16, 0, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10m", 600), ("36h", 129600), ("3d", 259200), ("2w", 1209600), ("1h30m", 5400),
     ("P3D", 259200), ("PT1H30M", 5400), ("P2W", 1209600), ("0s", 0), ("-5m", -300)],
)  # fmt: skip
def test_plain_durations_are_so_many_seconds(text: str, seconds: int) -> None:
    assert durations.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "3", "1.5h", "3 days", "P", "PT", "P1M", "soon", "bd", "2bdx", "d3"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert durations.parse(text) is None
    with pytest.raises(BadDuration):
        durations.due_within(text, WEDNESDAY, WORK)


@pytest.mark.parametrize(
    ("text", "start", "due"),
    [
        ("3d", WEDNESDAY, "2026-06-06T16:00:00+02:00"),
        ("2bd", WEDNESDAY, "2026-06-08T16:00:00+02:00"),
        ("1bd", datetime(2026, 6, 6, 12, tzinfo=BERLIN), "2026-06-09T09:00:00+02:00"),
        ("4bh", WEDNESDAY, "2026-06-05T12:00:00+02:00"),
        ("1d", datetime(2026, 3, 28, 9, tzinfo=BERLIN), "2026-03-29T10:00:00+02:00"),
        ("1bd", datetime(2026, 3, 27, 9, tzinfo=BERLIN), "2026-03-30T09:00:00+02:00"),
    ],
)
def test_a_window_ends_by_the_clock_or_by_working_time(text: str, start: datetime, due: str) -> None:
    assert durations.due_within(text, start, WORK).isoformat() == due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("Fri 17:00", "2026-06-05T17:00:00+02:00"),
        ("wednesday 15:00", "2026-06-10T15:00:00+02:00"),
        ("18:00", "2026-06-03T18:00:00+02:00"),
        ("08:00", "2026-06-04T08:00:00+02:00"),
        ("2026-06-12", "2026-06-13T00:00:00+02:00"),
        ("2026-06-03", "2026-06-04T00:00:00+02:00"),
        ("2026-06-12T09:00:00Z", "2026-06-12T09:00:00+00:00"),
        ("2026-06-12 09:00", "2026-06-12T09:00:00+02:00"),
        ("2026-06-01 + 14d 09:00", "2026-06-15T09:00:00+02:00"),
        ("2026-06-20 - 3bd 09:00", "2026-06-17T09:00:00+02:00"),
        ("2026-06-05T09:00:00+02:00 + 2h", "2026-06-05T11:00:00+02:00"),
    ],
)
def test_by_is_the_next_such_moment(text: str, due: str) -> None:
    assert durations.due_by(text, WEDNESDAY, WORK).isoformat() == due


def test_a_clock_takes_the_first_instant_after_a_gap_and_the_earlier_of_an_overlap() -> None:
    march = datetime(2026, 3, 28, 9, tzinfo=BERLIN)
    assert durations.clock_at("2026-03-29T02:30", march, WORK).isoformat() == "2026-03-29T03:00:00+02:00"
    assert durations.clock_at("2026-10-25 02:30", WEDNESDAY, WORK).isoformat() == "2026-10-25T02:30:00+02:00"


def test_a_clock_may_name_what_is_past_and_a_date_is_its_start() -> None:
    assert durations.clock_at("2026-06-01", WEDNESDAY, WORK).isoformat() == "2026-06-01T00:00:00+02:00"


@pytest.mark.parametrize(
    ("text", "fault"),
    [("2026-02-30", NoSuchDate), ("25:00", NoSuchDate), ("2026-06-02", PastMoment), ("2028-01-01", TooFar),
     ("someday", BadDuration), ("Fri 7", BadDuration), ("9999-12-31", TooFar), ("2026-06-01 + 999999999w", TooFar)],
)  # fmt: skip
def test_what_cannot_be_a_deadline_says_why(text: str, fault: type[ValueError]) -> None:
    with pytest.raises(fault):
        durations.due_by(text, WEDNESDAY, WORK)


def test_a_window_of_more_than_400_days_is_refused() -> None:
    assert durations.due_within("400d", WEDNESDAY, WORK)
    for text in ("401d", "999999999w", "400bd", "99999bh"):
        with pytest.raises(TooFar):
            durations.due_within(text, WEDNESDAY, WORK)


@pytest.mark.parametrize(
    ("span", "text"),
    [(timedelta(days=3), "3d"), (timedelta(hours=1, minutes=30), "1h 30m"), (timedelta(seconds=45), "45s"),
     (timedelta(days=2, minutes=5), "2d"), (timedelta(), "0s"), (timedelta(hours=-1), "-1h")],
)  # fmt: skip
def test_a_span_is_spelt_as_people_write_it(span: timedelta, text: str) -> None:
    assert durations.spell(span) == text


@given(st.text(alphabet="0123456789-:+TZPWDHMSbdh Fri.", max_size=24))
def test_no_text_makes_the_reader_raise_anything_else(text: str) -> None:
    for read in (durations.due_by, durations.clock_at, durations.due_within):
        with contextlib.suppress(BadDuration, NoSuchDate, PastMoment):
            assert read(text, WEDNESDAY, WORK).tzinfo is not None
