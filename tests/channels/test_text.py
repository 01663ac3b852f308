"""Text as the messengers count it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Line
from channels.text import cut, graphemes, moment, split, stands, units

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@given(st.text(alphabet="ab \n🚀é", max_size=80), st.integers(min_value=2, max_value=20))
def test_a_split_text_fits_and_loses_only_what_it_was_parted_at(text: str, most: int) -> None:
    parts = split(text, most)
    assert all(units(part) <= most for part in parts)
    rest = text
    for part in parts:
        at = 0 if rest.startswith(part) else 1
        assert at == 0 or rest[0] in "\n "
        assert rest[at:].startswith(part)
        rest = rest[at + len(part) :]
    assert rest in ("", "\n", " ")


@given(st.text(max_size=40), st.integers(min_value=1, max_value=20))
def test_a_cut_text_fits_and_begins_as_it_did(text: str, most: int) -> None:
    kept = cut(text, most)
    assert units(kept) <= most
    assert kept == text or (kept.endswith("…") and text.startswith(kept[:-1]))


@pytest.mark.parametrize(
    ("text", "count"),
    [("abc", 3), ("é", 1), ("e\u0301", 1), ("👩‍👩‍👧", 1), ("🇩🇪🇫🇷", 2), ("👍🏽", 1), ("1️⃣", 1), ("", 0)],
)
def test_characters_are_counted_as_a_reader_counts(text: str, count: int) -> None:
    assert len(graphemes(text)) == count


@pytest.mark.parametrize(
    ("apart", "words"),
    [
        ({"hours": -1}, "12:00"),
        ({"days": 1}, "Tue 13:00"),
        ({"days": -6}, "Tue 13:00"),
        ({"days": 10}, "Thu 12 Mar 13:00"),
    ],
)
def test_an_instant_is_told_as_short_as_it_is_clear(apart: dict[str, int], words: str) -> None:
    assert moment(NOON + timedelta(**apart), NOON, ZoneInfo("Europe/Berlin")) == words


def test_a_line_tells_since_when_and_until_when() -> None:
    at, until = NOON - timedelta(hours=1), NOON + timedelta(days=1)
    assert stands(Line(tense="now", text="waiting on Ana", at=at, until=until), NOON, UTC) == (
        "waiting on Ana since 11:00, until Tue 12:00"
    )
    assert stands(Line(tense="past", text="Ana picked approve", at=at), NOON, UTC) == "Ana picked approve, 11:00"
    assert stands(Line(tense="next", text="deploy"), NOON, UTC) == "deploy"
