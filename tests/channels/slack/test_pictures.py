"""What we send, drawn: every kind of block and field has a place, and nothing in it is markup of the page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from channels.base import Choice, Form, FormField, Line, Message, Problems, Settled, Status, Thing
from channels.slack import modals, render
from tests.channels.slack.world import START, card
from tests.doubles import slack_blocks
from tests.doubles import slack_composer as composer

THINGS: list[tuple[Thing, list[str]]] = [
    (
        card("approve", "decline", until=START + timedelta(days=2)),
        ["Extend the pilot?", ">approve<", "until Mar 4 at 09:00"],
    ),
    (card(*map(str, range(30))), ["Pick one…"]),
    (
        card("yes", more=(Choice(label="Not mine", data="a"), Choice(label="Later", data="b"))),
        ["⋯", "Not mine · Later"],
    ),
    (Settled(title="", text="Extend?", outcome="Ana answered `approve`", at=START), ["<code>approve</code>", "09:00"]),
    (
        Status(title="run", state="waiting", lines=(Line(tense="now", text="waiting on Ana", at=START),)),
        ["since 09:00"],
    ),
    (Problems(head="Not run", problems=("1:2 what\n  - a\n    ^",)), ["<pre>1:2 what\n  - a\n    ^</pre>"]),
    (
        Message(text="see https://a.example/?a=1&b=2", image="https://a.example/x.png"),
        ["<a>https://a.example/?a=1&amp;b=2</a>"],
    ),
]


@pytest.mark.parametrize(("thing", "shows"), THINGS)
def test_a_message_is_drawn_with_all_that_it_says(thing: Thing, shows: list[str]) -> None:
    (post,) = render.posts(thing, START)
    page = slack_blocks.page([{"bot_id": "B", "ts": f"{START.timestamp()}", "text": post.text, "blocks": post.blocks}])
    assert all(words in page for words in shows) and ">APP<" in page


def test_somebodys_words_are_no_markup_of_the_page() -> None:
    evil = "<script>alert(1)</script> & <img src=x>"
    made = [post for thing in (Message(text=evil, title=evil), card(evil)) for post in render.posts(thing, START)]
    theirs = {"user": "UANA", "ts": "1.1", "blocks": composer.as_rich(evil)}
    page = slack_blocks.page(
        [{"text": p.text, "blocks": p.blocks} for p in made] + [theirs],
        reader=slack_blocks.Reader(names={"UANA": evil}),
    )
    assert not re.search(r"<script|<img", page) and page.count("&lt;script&gt;") >= 4


def test_a_form_is_drawn_with_its_fields() -> None:
    kinds = ("text", "number", "date", "time", "bool", "choice", "person", "file")
    fields = tuple(FormField(name=kind, label=kind.title(), kind=kind, choices=(("a", "A"),)) for kind in kinds)
    view = modals.modal(Form(title="Answer", text="When?", data="d", fields=fields), modals.Origin())
    page = slack_blocks.modal(view)
    assert all(kind.title() in page for kind in kinds) and ">Send<" in page and "When?" in page
