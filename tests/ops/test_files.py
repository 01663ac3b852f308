"""Lists and texts: what each op gives, and what it says of what it cannot take."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.values import ErrorValue
from bot.ops.builtin import BUILTIN
from tests.engine.rows import Drive, always

GIVEN: dict[str, Any] = {
    "words": ["yes", "no", " yes ", ErrorValue("overloaded")],
    "text": "one\r\ntwo\nthree\n",
    "three": [1, "2", None],
    "number": 7,
    "two": 2,
}


@pytest.mark.parametrize(
    ("op", "params", "value"),
    [
        ("list", {"items": ["a", "$number"]}, ["a", "7"]),
        ("lines", {"text": "$text"}, ["one", "two", "three"]),
        ("chunk", {"text": "$text", "n": 2}, ["one\ntwo", "three"]),
        ("chunk", {"text": "$text", "n": "$two"}, ["one\ntwo", "three"]),
        ("keep", {"list": "$words", "text": "yes"}, ["yes", " yes "]),
        ("drop", {"list": "$words", "text": "yes"}, ["no", ErrorValue("overloaded")]),
        ("keep", {"list": "$words", "text": "2", "in": ["1", "2", "2", "1"]}, ["no", " yes "]),
        ("first", {"n": 2, "list": "$words"}, ["yes", "no"]),
        ("first", {"n": 0, "list": "$words"}, []),
        ("first", {"n": 9, "list": "$three"}, [1, "2", None]),
        ("count", {"list": "$three"}, 3),
    ],
)
def test_an_op_on_lists_gives(op: str, params: dict[str, Any], value: Any) -> None:
    drive = Drive([{"op": op, "id": "x", "params": params}], names=GIVEN, check=always)
    assert (drive.state("x"), drive.value("x")) == ("done", value)


@pytest.mark.parametrize(
    ("op", "params", "error"),
    [
        ("count", {"list": "$text"}, "`list` must be a list; it is text"),
        ("lines", {"text": "$three"}, "`text` must be a text; it is list<any>"),
        ("chunk", {"text": "$text", "n": "$words"}, "`n` must be a whole number from 1"),
        ("keep", {"list": "$words", "text": "a", "in": "$three"}, "the lists differ in length: 4 and 3"),
        ("count", {"list": "$three[7]"}, "$three[7]"),
    ],
)
def test_what_an_op_cannot_take_is_its_error(op: str, params: dict[str, Any], error: str) -> None:
    drive = Drive([{"op": op, "id": "x", "params": params}], names=GIVEN, check=always)
    assert drive.state("x") == "failed"
    assert error.strip("$") in str(drive.row("x").error)


def test_what_is_shown_leaves_the_run_and_binds_nothing() -> None:
    drive = Drive([{"op": "show", "id": "x", "params": {"value": "$number"}}], names=GIVEN, check=always)
    assert drive.row("x").data["shown"] == 7
    assert drive.bound == {}


def test_a_budget_lets_so_many_calls_through_by_written_order() -> None:
    ask = {"op": "ask", "question": "?", "onError": "continue"}
    drive = Drive([{"op": "budget", "calls": 1}, {**ask, "id": "a"}, {**ask, "id": "b"}], returns={"agent": "fine"})
    assert (drive.value("a"), drive.row("b").error) == ("fine", "the budget of agent calls is spent")


def test_a_model_holds_in_its_region_and_those_inside() -> None:
    ask = {"op": "ask", "question": "?"}
    inner = {"op": "core.if", "cond": "true", "then": [{"op": "model", "name": "large"}, {**ask, "id": "b"}]}
    drive = Drive([{"op": "model", "name": "small"}, {**ask, "id": "a"}, inner, {**ask, "id": "c"}])
    models = {call.path: call.body["model"] for call in drive.calls.values()}
    assert models == {"2": "small", "3.then.2": "large", "4": "small"}


def test_an_endpoint_is_there_at_once_and_takes_one_event() -> None:
    drive = Drive([{"op": "endpoint", "id": "hook", "within": "1h"},
                   {"op": "expect", "id": "called", "evidence": "$hook.stream", "within": "1h"}], check=always)  # fmt: skip
    assert drive.state("hook") == "done"
    drive.event(drive.value("hook")["stream"], {"n": 1})
    assert drive.value("called")["event"] == {"n": 1}


def test_every_op_says_what_it_does() -> None:
    assert all(spec.step is not None and spec.summary.endswith(".") for spec in BUILTIN)
