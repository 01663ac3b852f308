"""Texts of the plan as people write them."""

from typing import Any

import pytest

from bot.server.phrases import plain, taps
from tests.engine.rows import Drive


def test_a_reference_ends_where_its_path_ends():
    assert plain("Seated, frame ${seated.event.frame}.") == "Seated, frame {seated.event.frame}."
    assert plain("See you at $pick.event.text.") == "See you at {pick.event.text}."
    assert plain("It costs $$5, $name?") == "It costs $5, {name}?"


ASK: dict[str, Any] = {"op": "ask", "id": "go", "to": "@ana", "question": "Go?", "choices": ["yes", "no"]}
IF: dict[str, Any] = {"op": "core.if", "cond": "go == 'yes'", "then": [{"op": "say", "body": "On."}]}


@pytest.mark.parametrize(
    ("more", "no"), [([], "nothing more hangs on it"), ([{"op": "say", "body": "It is $go."}], "goes on")]
)
def test_a_choice_without_a_branch_says_whether_something_else_needs_the_answer(more: list[Any], no: str) -> None:
    drive = Drive([ASK, IF, *more])
    ask, readers = drive.index.ops["1"], drive.index.dependents["1"]
    said = taps(drive.plan, ask, ["yes", "no"], drive.world, lambda _: None, readers)
    assert said == {"yes": "say “On.”", "no": no}
