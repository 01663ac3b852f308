"""The plan as it stands: what happened, what waits, what can still come."""

from __future__ import annotations

from typing import Any

import pytest

from bot.server.rail import Rail, value_words
from tests.engine.rows import ANA, Drive

ASK: dict[str, Any] = {"op": "ask", "to": "@ana", "choices": ["yes", "no"], "within": "1d"}
SCRIPT: list[dict[str, Any]] = [
    {**ASK, "id": "go", "question": "Go?"},
    {"op": "core.if", "cond": "go == 'yes'",
     "then": [{**ASK, "id": "far", "question": "How far?"}],
     "else": [{**ASK, "id": "why", "question": "Why not?",
               "onMiss": [{"op": "say", "body": "No word."}, {"op": "say", "body": "We stop."}]}]},
]  # fmt: skip


def laid(drive: Drive, whole: bool = False) -> dict[str, str]:
    """The shape of every op of the plan that is shown, by path."""
    rail = Rail(plan=drive.plan, run=drive.run, rows=drive.rows.ops, world=drive.world, catalog=drive.ops, whole=whole)
    return {line.path: line.shape for line in rail.laid() if line.path}


def test_before_the_choice_both_ways_can_come() -> None:
    shapes = laid(Drive(SCRIPT))
    assert (shapes["1"], shapes["2.then.1"], shapes["2.else.1"]) == ("wait", "next", "next")


@pytest.mark.parametrize(
    ("answer", "taken", "other"), [("yes", "2.then.1", "2.else.1"), ("no", "2.else.1", "2.then.1")]
)
def test_the_way_that_an_if_did_not_go_comes_no_more(answer: str, taken: str, other: str) -> None:
    drive = Drive(SCRIPT)
    drive.answer("go", answer, by=ANA)
    assert laid(drive)[taken] == "wait" and other not in laid(drive)
    whole = laid(drive, whole=True)
    assert whole[taken] == "wait" and whole[other] == "off"
    assert whole["2.else.1.onMiss.2"] == ("next" if answer == "no" else "off")


def test_an_ask_that_was_missed_waits_no_more_while_its_branch_is_under_way() -> None:
    drive = Drive([{**ASK, "id": "go", "question": "Go?", "onMiss": [{**ASK, "id": "else_", "question": "And you?"}]}])
    drive.move(days=1)
    rail = Rail(plan=drive.plan, run=drive.run, rows=drive.rows.ops, world=drive.world, catalog=drive.ops)
    line = next(line for line in rail.laid() if line.path == "1")
    assert (line.shape, line.state, line.at, line.since) == ("inside", "missed", drive.rows.ops["1"].ended, None)
    assert line.bad and "missed" in line.bad


def test_a_file_in_a_form_is_told_by_its_name() -> None:
    paper = {"name": "plan.pdf", "type": "application/pdf", "size": 10, "path": "plan.pdf"}
    assert value_words({"paper": paper, "seats": 3}) == "paper plan.pdf, seats 3"


def test_a_map_says_how_far_it_has_come_and_a_repeat_its_round() -> None:
    drive = Drive(
        [
            {"op": "core.map", "over": ["a", "b", "c"], "body": [{**ASK, "id": "go", "question": "$item?"}]},
            {
                "op": "core.repeat",
                "max": 3,
                "until": "again == 'yes'",
                "body": [{**ASK, "id": "again", "question": "?"}],
            },
        ]
    )
    drive.answer("1[1].1", "yes", by=ANA)
    drive.answer("2[0].1", "no", by=ANA)
    rail = Rail(plan=drive.plan, run=drive.run, rows=drive.rows.ops, world=drive.world, catalog=drive.ops)
    said = {line.path: line.sub for line in rail.laid() if line.path}
    assert (said["1"], said["2"]) == (["1 of 3"], ["round 2 of 3 at most"])
