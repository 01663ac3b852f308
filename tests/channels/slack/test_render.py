"""What is shown: everything fits, nothing mentions anybody, and what cannot be tapped can be written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.base import Attached, Card, Choice, Home, Line, Message, Problems, Settled, Status
from channels.slack import limits, render
from tests.channels.slack.world import START, card
from tests.doubles.slack import actions, words

EVIL = "<!channel> & <@UBO> <https://evil.example|click> *b* \u202e"


def blocks(thing: Any) -> list[dict[str, Any]]:
    (post,) = render.posts(thing, START)
    assert limits.faults(post.blocks, text=post.text) == []
    return list(post.blocks)


def shown(thing: Any) -> str:
    return words({"blocks": blocks(thing)})


def tapped(thing: Any) -> list[str]:
    return [label for label, _ in actions({"blocks": blocks(thing)})]


def kinds(thing: Any) -> list[str]:
    return [e["type"] for b in blocks(thing) if b["type"] == "actions" for e in b["elements"]]


def labels(count: int, size: int = 3) -> list[str]:
    return [str(n).rjust(size, "x") for n in range(count)]


def test_up_to_25_choices_are_buttons_five_in_a_row() -> None:
    made = blocks(card(*labels(25)))
    rows = [block["elements"] for block in made if block["type"] == "actions"]
    assert [len(row) for row in rows] == [5, 5, 5, 5, 5] and kinds(card(*labels(25))) == ["button"] * 25


def test_up_to_100_choices_are_one_list() -> None:
    assert kinds(card(*labels(26))) == ["static_select"] == kinds(card(*labels(100)))
    assert tapped(card(*labels(100))) == labels(100)


def test_above_100_a_number_is_the_answer() -> None:
    many = card(*labels(101))
    assert kinds(many) == [] and "101. 100" in shown(many) and "Answer with a number" in shown(many)


def test_a_label_that_does_not_fit_makes_all_of_them_numbers() -> None:
    assert tapped(card("x" * 75, "no")) == ["x" * 75, "no"]
    long = card("x" * 76, "no")
    assert tapped(long) == ["1", "2"] and f"1. {'x' * 76}\n2. no" in shown(long)
    many = card("x" * 76, *labels(29))
    assert tapped(many)[:2] == ["1", "2"] and kinds(many) == ["static_select"]


def test_a_choice_that_starts_something_asks_once_more_and_a_harmless_one_does_not() -> None:
    sure = Choice(label="approve", data="w:t:0", sure="deploy api starts at once", tone="first")
    made = blocks(replace(card(), choices=(sure, Choice(label="no", data="w:t:1", tone="danger"))))
    first, second = next(block["elements"] for block in made if block["type"] == "actions")
    assert first["confirm"]["text"]["text"] == "deploy api starts at once" and first["style"] == "primary"
    assert "confirm" not in second and second["style"] == "danger"


def test_in_a_list_only_those_ask_once_more_that_start_something() -> None:
    many = [Choice(label=label, data=f"w:t:{label}") for label in labels(28)]
    many[3] = replace(many[3], sure="it starts at once")
    made = blocks(replace(card(), choices=tuple(many)))
    harmless, asking = next(block["elements"] for block in made if block["type"] == "actions")
    assert len(harmless["options"]) == 27 and "confirm" not in harmless
    assert len(asking["options"]) == 1 and asking["confirm"]["text"]["text"] == "it starts at once"


def test_what_can_be_done_besides_answering_is_one_quiet_menu() -> None:
    more = tuple(Choice(label=label, data=f"m:{label}") for label in ("Not mine", "Hand over", "Later"))
    assert kinds(card("yes", "no", more=more)) == ["button", "button", "overflow"]
    assert tapped(card("yes", "no", more=more)) == ["yes", "no", "Not mine", "Hand over", "Later"]
    assert kinds(card("yes", more=more[:1])) == ["button", "button"]


def test_a_form_and_a_free_text_have_a_button_that_opens_it() -> None:
    (action,) = [action for label, action in actions({"blocks": blocks(card())}) if label == "Answer"]
    assert action["value"] == "w:tok" and "reply in this message's thread" in shown(card())


def test_nobodys_words_mention_anybody_or_link_elsewhere() -> None:
    things = [
        Card(kind="approval", token="t", title=EVIL, text=EVIL, choices=(Choice(label=EVIL, data="d"),), asker=EVIL,
             params=(("x", EVIL),), taps=EVIL, place=(EVIL, "https://a.example/?a=1&b=2")),
        Settled(title=EVIL, text=EVIL, outcome=EVIL, reason=EVIL),
        Status(title=EVIL, state="failed", lines=(Line(tense="now", text=EVIL),), facts=((EVIL, EVIL),), notes=(EVIL,),
               result=EVIL, error=EVIL),
        Problems(head=EVIL, problems=(EVIL,), script=EVIL),
        Message(text=EVIL, title=EVIL),
    ]  # fmt: skip
    for thing in things:
        (post,) = render.posts(thing, START)
        assert "<!channel>" not in post.text and "<@" not in post.text
        for block in post.blocks:
            if block["type"] == "rich_text":
                continue
            held = json.dumps(block)
            bare = held.replace(json.dumps(EVIL)[1:-1], "") if block["type"] == "actions" else held
            assert not re.search(r"<!channel|<@|<https://evil[^>]*\|", bare)
        assert all(b.get("text", {}).get("verbatim") for b in post.blocks if b["type"] == "section")
    home = json.dumps(render.home(Home(waiting=((EVIL, "javascript:alert(1)"),))))
    assert "<!channel>" not in home and "javascript" not in home


def test_addresses_in_a_text_are_links() -> None:
    (section,) = blocks(Message(text="see https://a.example/x?a=1&b=2, now"))
    assert section["text"]["text"] == "see <https://a.example/x?a=1&amp;b=2>, now"


def test_instants_are_in_the_readers_zone() -> None:
    asked = card("yes", since=START - timedelta(minutes=5), until=START + timedelta(days=2))
    context = blocks(asked)[-1]["elements"][0]["text"]
    assert "<!date^1772441700^{time}|08:55 UTC>" in context
    assert "<!date^1772614800^{date_short_pretty} at {time}|Wed 4 Mar 09:00 UTC>" in context


def test_a_settled_card_says_who_when_and_why_and_has_nothing_to_tap() -> None:
    settled = Settled(title="", text="Extend?", outcome="Ana picked approve", at=START, reason="go\nahead")
    assert shown(settled) == "Extend?\nAna picked approve · 09:00 UTC\n> go\n> ahead" and tapped(settled) == []


def test_an_approval_shows_exactly_what_would_run() -> None:
    ask = card("approve", "decline", params=(("service", "<s4> & co"), ("mode", "writes")))
    assert "service: <s4> & co\nmode: writes" in shown(ask)


def test_a_status_has_its_three_tenses_and_local_times() -> None:
    lines = (
        Line(tense="past", text="deploy api", at=START),
        Line(tense="now", text="waiting on Ana", at=START, until=START + timedelta(hours=1)),
        Line(tense="next", text="say"),
    )
    status = Status(title="release", state="waiting", lines=lines, done=1, of=3, facts=(("Writes", "1"),))
    text = shown(status)
    assert "✓ deploy api · 09:00 UTC\n▸ waiting on Ana since 09:00 UTC, until 10:00 UTC\n○ say" in text
    assert "release · waiting · 1 of 3" in text and "Writes: 1" in text


def test_of_a_long_plan_what_waits_is_shown_and_the_rest_is_counted() -> None:
    lines = [Line(tense="past", text=f"did {n}") for n in range(900)]
    lines += [Line(tense="now", text=f"waits {n}") for n in range(12)] + [Line(tense="next", text="x")] * 1_088
    text = shown(Status(title="big", state="waiting", lines=tuple(lines)))
    assert "✓ 896 steps are done" in text and "▸ waits 9" in text and "▸ waits 10" not in text
    assert "▸ and 2 more" in text and "○ and 1084 more steps" in text


def test_ten_problems_are_shown_and_all_of_them_are_in_a_file() -> None:
    problems = tuple(f"line {n}, column 1: nothing here\n  = write `x`" for n in range(24))
    (post,) = render.posts(Problems(head="Not run", problems=problems, script="- a\n- b"), START)
    text = words({"blocks": post.blocks})
    assert "line 9," in text and "line 10," not in text and "and 14 more" in text and "- a\n- b" in text
    assert [file.name for file in post.files] == ["problems.txt"] and b"line 23," in post.files[0].content
    (few,) = render.posts(Problems(head="Not run", problems=problems[:10]), START)
    assert few.files == ()


def test_a_message_that_is_too_long_is_cut_and_the_whole_is_a_file() -> None:
    text = "\n".join(f"line {n} & more" for n in range(2_000))
    (post,) = render.posts(Message(text=text, files=(Attached(name="a.txt", content=b"x"),)), START)
    assert limits.faults(post.blocks, text=post.text) == [] and post.note and "in a file" in post.note
    assert [(file.name, len(file.content)) for file in post.files] == [("a.txt", 1), ("message.txt", len(text))]


def test_parts_are_messages_of_their_own_with_images_and_buttons() -> None:
    one = Message(title="Today", text="09:00", image="https://a.example/x.png", choices=(Choice(label="b", data="d"),))
    posts = render.posts(Message(parts=(one, Message(text="more"))), START)
    assert len(posts) == 2 and [b["type"] for b in posts[0].blocks] == ["section", "image", "actions"]


def test_what_does_not_fit_in_blocks_goes_as_text_with_numbers_and_says_so() -> None:
    far = Choice(label="open", url="https://a.example/" + "x" * 3_000)
    (post,) = render.posts(Message(text="Book?", choices=(Choice(label="yes", data="d"), far)), START)
    assert post.blocks == () and "Book?\nAnswer with a number, in this message's thread:\n1. yes" in post.text
    assert post.note and "plain text" in post.note


def test_a_notification_says_the_question_and_its_choices() -> None:
    (post,) = render.posts(card("approve", "decline"), START)
    assert post.text == "Extend the pilot?\napprove / decline"


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=400) | st.just("&" * 3_500) | st.just(
    "https://a.example/" + "x" * 3_400
)  # fmt: skip


@settings(max_examples=25)
@example(["&" * 3_500] * 30, "&" * 3_500, True)
@example(["&" * 3_500] * 25, "&" * 3_500, True)
@example(["x" * 80] * 5, "&" * 3_500, True)
@example(["&" * 3_500] * 30, "&" * 3_500, False)
@given(st.lists(WORDS, min_size=1, max_size=30), WORDS, st.booleans())
def test_whatever_is_in_it_fits(texts: list[str], text: str, tap: bool) -> None:
    choices = (
        tuple(Choice(label=one or "x", data=f"d{n}", sure=one or None) for n, one in enumerate(texts)) if tap else ()
    )
    lines = tuple(Line(tense="now", text=one, at=START) for one in texts)
    things = [
        Card(kind="card", token="t", title=text, text=text, choices=choices, taps=text, asker=text, params=((text, text),)),
        Settled(title=text, text=text, outcome=text, reason=text),
        Status(title=text, state="waiting", lines=lines, facts=((text, text),), notes=tuple(texts), result=text, error=text),
        Problems(head=text, problems=tuple(texts), script=text),
        Message(title=text, text=text, choices=choices),
    ]  # fmt: skip
    for thing in things:
        for post in render.posts(thing, START):
            assert limits.faults(post.blocks, text=post.text) == [] and len(post.text) <= limits.EDIT_TEXT
            assert not post.note or "plain text" not in post.note
    assert limits.view_faults(render.home(Home(waiting=tuple((one, text) for one in texts)))) == []


@pytest.mark.parametrize("thing", [Message(), Settled(title="", text="", outcome="")])
def test_even_nothing_is_said(thing: Any) -> None:
    for post in render.posts(thing, START):
        assert post.text and limits.faults(post.blocks, text=post.text) == []


def test_a_card_leads_to_the_thread_it_comes_from() -> None:
    made = json.dumps(blocks(replace(card("yes", "no"), origin="slack:C1/1712.003")))
    assert "<https://slack.com/archives/C1/p1712003|the thread>" in made
    assert "the thread" not in json.dumps(blocks(card("yes", "no")))
