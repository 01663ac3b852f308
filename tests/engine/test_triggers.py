"""What a firing does beside others, what a command is, what a trigger binds: tables."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.plan import Plan, Region, Trigger
from bot.engine.triggers import Begin, Other, Skip, Wait, answered, bound, command_in, decide, key_of, looked_up_by

RUNS, WROTE, QUEUED = Other(run="r1"), Other(run="r2", wrote=True), Other(run=None)
OVERLAPS = [
    ("allow", [RUNS, WROTE, QUEUED], Begin()),
    ("skip", [], Begin()),
    ("skip", [RUNS], Skip),
    ("skip", [QUEUED], Skip),
    ("queue", [], Begin()),
    ("queue", [RUNS], Wait()),
    ("queue", [QUEUED], Wait()),
    ("replace", [], Begin()),
    ("replace", [RUNS], Begin(("r1",))),
    ("replace", [RUNS, Other(run="r3")], Begin(("r1", "r3"))),
    ("replace", [QUEUED], Begin()),
    ("replace", [RUNS, WROTE], Skip),
]


@pytest.mark.parametrize(("overlap", "others", "expected"), OVERLAPS)
def test_what_overlaps_begins_waits_or_is_left_out(overlap: str, others: list[Other], expected: Any) -> None:
    found = decide(overlap, others)
    assert isinstance(found, Skip) if expected is Skip else found == expected


COMMANDS = [
    ("book", ("book", "")), ("  BOOK\n", ("book", "")), ("/book", ("book", "")), ("/Book at noon", ("book", "at noon")),
    ("/book@waiton_bot 7", ("book", "7")), ("/book\nline two", ("book", "line two")), ("book a table", None), ("", None),
    ("/", None), ("/ book", None), ("say /book", None), ("straße", ("strasse", "")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMMANDS)
def test_a_command_is_a_slash_and_a_word_or_one_word_alone(text: str, expected: tuple[str, str] | None) -> None:
    assert command_in("web:message", {"text": text, "tap": False}) == expected


def test_what_is_tapped_or_comes_from_a_system_is_no_command() -> None:
    assert command_in("web:message", {"text": "/book", "tap": True}) is None
    assert command_in("web:tap", {"text": "/book"}) is None
    assert command_in("shop.orders", {"text": "/book"}) is None
    assert command_in("shop:message", "/book") is None


EVENT = {"id": "web:tap/7", "stream": "web:tap", "from": "ana@acme.de", "conversation": "web:j", "at": "2026-03-02T09:00:00+00:00"}  # fmt: skip


def test_a_trigger_binds_the_event_and_what_came_around_it_where_the_event_says_nothing_itself() -> None:
    assert bound({**EVENT, "event": {"text": "book", "from": "me"}}) == {
        "text": "book", "from": "me", "stream": "web:tap", "conversation": "web:j", "at": EVENT["at"],
    }  # fmt: skip
    assert bound({**EVENT, "event": 7}) == 7
    assert bound({**EVENT, "event": {"text": "/book at noon"}}, "at noon")["text"] == "at noon"


def plan(key: str | None) -> Plan:
    return Plan(program=Region(place="", ops=()), name="order", key=key)


@pytest.mark.parametrize(
    ("key", "conversation", "expected"),
    [
        (None, None, "order"),
        (None, "web:j", "web:j"),
        ("$event.order", "web:j", "7"),
        ("orders of ${event.user.id}", None, "orders of u"),
        ("$event.none", "web:j", "web:j"),
        ("$event.none?", "web:j", ""),
        ("all", "web:j", "all"),
    ],
)
def test_runs_are_counted_by_the_key_then_the_conversation_then_the_script(
    key: Any, conversation: Any, expected: str
) -> None:
    assert key_of(plan(key), {"event": {"order": 7, "user": {"id": "u"}}}, conversation) == expected


def test_one_tap_on_two_streams_is_answered_once_and_events_of_systems_each() -> None:
    message = {**EVENT, "id": "web:message/7", "stream": "web:message"}
    assert answered(EVENT, chat=True) == answered(message, chat=True) == "web/7"
    assert answered({"id": "shop/orders/7", "stream": "shop/orders"}, chat=False) == "shop/orders/7"


def test_events_are_looked_up_by_stream_command_or_script() -> None:
    found = [
        looked_up_by(t)
        for t in (Trigger(event="a"), Trigger(command="Book"), Trigger(script="b"), Trigger(every="@daily"))
    ]
    assert found == ["a", "command:book", "script:b", None]
