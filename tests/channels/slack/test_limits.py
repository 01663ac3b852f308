"""Slack's limits, each at its edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from channels.slack import limits


def section(size: int) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * size}}


def button(n: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": f"a{n}", "text": {"type": "plain_text", "text": "go"}, **more}


def row(*elements: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "actions", "elements": list(elements)}]


def labelled(size: int) -> list[dict[str, Any]]:
    return row(button(text={"type": "plain_text", "text": "x" * size}))


def options(count: int, label: int = 3, value: int = 3) -> list[dict[str, Any]]:
    made = [{"text": {"type": "plain_text", "text": "x" * label}, "value": "v" * value} for _ in range(count)]
    return row({"type": "static_select", "action_id": "s", "options": made})


def asked(title: int = 3, text: int = 3, yes: int = 3) -> list[dict[str, Any]]:
    def words(size: int) -> dict[str, Any]:
        return {"type": "plain_text", "text": "x" * size}

    return row(button(confirm={"title": words(title), "text": words(text), "confirm": words(yes), "deny": words(3)}))


def context(count: int) -> list[dict[str, Any]]:
    return [{"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * count}]


EDGES: list[tuple[str, Callable[[int], list[dict[str, Any]]], int]] = [
    ("blocks of a message", lambda n: [section(1)] * n, 50),
    ("characters of a section", lambda n: [section(n)], 3_000),
    ("characters of a header", lambda n: [{"type": "header", "text": {"type": "plain_text", "text": "x" * n}}], 150),
    ("elements of a context", context, 10),
    ("elements of an actions block", lambda n: row(*map(button, range(n))), 25),
    ("characters of a button", labelled, 75),
    ("characters of a button's value", lambda n: row(button(value="x" * n)), 2_000),
    ("characters of an address", lambda n: row(button(url="x" * n)), 3_000),
    ("characters of an action's id", lambda n: row(button(action_id="x" * n)), 255),
    ("characters of a block's id", lambda n: [section(1) | {"block_id": "x" * n}], 255),
    ("options of a list", options, 100),
    ("characters of an option", lambda n: options(1, label=n), 75),
    ("characters of an option's value", lambda n: options(1, value=n), 75),
    ("characters of a confirm's title", lambda n: asked(title=n), 100),
    ("characters of a confirm's text", lambda n: asked(text=n), 300),
    ("characters of a confirm's button", lambda n: asked(yes=n), 30),
]


@pytest.mark.parametrize(("what", "made", "most"), EDGES, ids=[edge[0] for edge in EDGES])
def test_a_limit_holds_at_its_edge(what: str, made: Callable[[int], list[dict[str, Any]]], most: int) -> None:
    assert limits.faults(made(most), text="x") == []
    assert len(limits.faults(made(most + 1), text="x")) == 1


def test_text_and_blocks_have_budgets_of_their_own() -> None:
    assert limits.faults([], text="x" * 40_000) == []
    assert limits.faults([], text="x" * 40_001) and limits.faults([], text="x" * 4_001, edit=True)
    assert limits.faults([], text="x" * 4_000, edit=True) == []
    assert limits.faults([section(2_500)] * 4, text="x") == []
    assert limits.faults([*[section(2_500)] * 4, section(1)], text="x") == [
        "blocks: 10001 characters of text, 10000 fit"
    ]


def test_what_slack_refuses_as_a_whole_is_found_before() -> None:
    text = {"type": "plain_text_input", "action_id": "t"}
    assert "no plain_text_input" in limits.faults(row(text), text="x")[0]
    assert "stands twice" in limits.faults(row(button(), button()), text="x")[0]
    twice = [section(1) | {"block_id": "b"}] * 2
    assert "stands twice" in limits.faults(twice, text="x")[0]
    assert limits.faults([section(1)]) == ["text: missing beside blocks"]
    assert limits.faults([]) == ["text: nothing is said"]
    assert limits.faults([{"type": "section"}], text="x") and limits.faults([{"type": "video"}], text="x")
    field = {"type": "input", "label": {"type": "plain_text", "text": "x"}, "element": text}
    assert "inputs stand in a view" in limits.faults([field], text="x")[0]


def test_a_modals_words_and_memory_have_limits_too() -> None:
    def view(title: int = 3, private: int = 3, count: int = 1) -> dict[str, Any]:
        words = {"type": "plain_text", "text": "x" * title}
        return {"type": "modal", "title": words, "blocks": [section(1)] * count, "private_metadata": "x" * private}

    assert limits.view_faults(view(title=24, private=3_000, count=100)) == []
    for over in (view(title=25), view(private=3_001), view(count=101)):
        assert len(limits.view_faults(over)) == 1
    field = {
        "type": "input",
        "block_id": "b",
        "label": {"type": "plain_text", "text": "x"},
        "element": {"type": "plain_text_input", "action_id": "t", "initial_value": "x" * 3_000},
    }
    fields = view() | {"blocks": [field]}
    assert limits.view_faults(fields) == ["submit: missing beside inputs"]
    fields |= {"submit": {"type": "plain_text", "text": "Send"}}
    assert limits.view_faults(fields) == []
    field["element"]["initial_value"] += "x"
    assert len(limits.view_faults(fields)) == 1
