"""A scenario that cannot be played says which key, what it holds, and what it takes."""

from __future__ import annotations

import pytest

from bot.rehearse.scenario import WrongScenario, load


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("peeple: []", "did you mean `people`?"),
        ("people: [{name: Ana}]", "`email`"),
        ("people: []\npeople: []", "line 2 of the scenario has `people` a second time"),
        ("steps: [{at: +1m, answer: {op: x, by: a@a.de}}]", "`with`"),
        ("steps: [{at: +1m, answer: {op: x, with: y}}]", "`by` or `from`"),
        ("steps: [{at: soon, crash: true}]", "`soon`"),
        ("steps: {}", "`steps` takes a list"),
        ("files: [x]", "`files` takes a mapping"),
        ("inputs: [1]", "`inputs` takes a mapping"),
        ("people: [{email: a@a.de}]\nroles: {leads: a@a.de}", "takes a list of emails"),
        ("people: [{email: a@a.de}]\nroles: {leads: [b@a.de]}", "did you mean `a@a.de`?"),
        ("people: [{email: a@a.de}]\nowner: z@z.de", "the owner `z@z.de`"),
        ("workspace: {timezone: Mars/X}", "no zone `Mars/X`"),
        ("tools: {x: {takes: long}}", "`long` is no span"),
        ("tools: {x: {return: 1}}", "did you mean `returns`?"),
        ("judge: [{verdict: maybe}]", "agrees, disagrees or unclear"),
        ("bindings: {owner: x}", "which the language binds itself"),
        ("now: yesterday", "`yesterday` is no instant"),
        ("[1, 2]", "a scenario is a mapping"),
        ("a: [", "does not read as YAML"),
    ],
)
def test_a_wrong_scenario_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(WrongScenario) as fault:
        load(text)
    assert says in str(fault.value)
