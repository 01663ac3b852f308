"""Forms as modals: what they look like, what comes back, and what happens when there is no time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from channels.base import Form, FormField
from channels.slack import limits, modals
from tests.channels.slack.world import World, card
from tests.doubles.slack import Fault, Slack, actions

pytestmark = pytest.mark.anyio


def sent(form: Form, values: dict[str, Any]) -> dict[str, Any]:
    """What comes back of a form that was filled so."""
    view = modals.modal(form, modals.Origin("d", "slack:C1/1.1", "2.2"))
    assert limits.view_faults(view) == []
    slack = Slack()
    slack.views["UANA"] = view | {"id": "V1"}
    back = slack.submitting("UANA", values)["view"]
    assert modals.origin(back) == modals.Origin("d", "slack:C1/1.1", "2.2")
    return modals.values(back)


def form(*fields: FormField, **values: str) -> Form:
    return Form(title="Visit", text="When?", data="d", fields=fields, values=values)


def test_every_kind_of_field_comes_back_as_what_it_is() -> None:
    fields = (
        FormField(name="why", label="Why"),
        FormField(name="n", label="How many", kind="number", least="1", most="8"),
        FormField(name="day", label="Day", kind="date"),
        FormField(name="at", label="At", kind="time"),
        FormField(name="lunch", label="Lunch", kind="bool"),
        FormField(name="room", label="Room", kind="choice", choices=(("r1", "Red"), ("r2", "Blue"))),
        FormField(name="who", label="Who", kind="person", choices=(("bo@acme.de", "Bo"),)),
        FormField(name="lead", label="Lead", kind="person"),
    )
    given = {"why": "x", "n": "8", "day": "2026-03-04", "at": "10:30", "lunch": "yes", "room": "Blue", "who": "Bo"}
    got = sent(form(*fields), {**given, "lead": "UANA"})
    assert got == {**given, "lunch": True, "room": "r2", "who": "bo@acme.de", "lead": "UANA"}
    assert sent(form(*fields), {}) == {"lunch": False}


def test_a_script_that_is_longer_than_a_field_is_divided_and_comes_back_whole() -> None:
    script = "\n".join(f"- a{n} = list x" for n in range(800))
    got = sent(form(FormField(name="script", label="Script"), script=script), {})
    assert len(script) > 4 * limits.INPUT and got == {"script": script}


def test_what_no_fields_can_hold_is_not_cut_but_sent_as_a_file() -> None:
    for script in ("x" * 3_001, "\n".join(["x" * 2_999] * 13)):
        view = modals.modal(form(FormField(name="script", label="Script"), script=script), modals.Origin())
        assert limits.view_faults(view) == [] and not [b for b in view["blocks"] if b["type"] == "input"]
        assert "as a file" in view["blocks"][-1]["text"]["text"]


def test_values_that_are_too_long_for_a_list_come_back_whole() -> None:
    choices = (("x" * 200, "one"), ("y" * 200, "two"))
    assert sent(form(FormField(name="c", label="C", kind="choice", choices=choices)), {"c": "two"}) == {"c": "y" * 200}


def test_files_go_by_the_link_in_the_card() -> None:
    view = modals.modal(form(FormField(name="f", label="Photo", kind="file")), modals.Origin())
    assert "Photo*: files go by the link in the card" in view["blocks"][-1]["text"]["text"]


def test_problems_stand_as_they_are_beside_what_is_edited() -> None:
    text = "line 1, column 3: what\n1 | - a\n  |   ^"
    view = modals.modal(Form(title="Edit", text=text, data="d"), modals.Origin())
    assert view["blocks"][0]["elements"][0] == {
        "type": "rich_text_preformatted",
        "elements": [{"type": "text", "text": text}],
    }


def test_what_is_wrong_stands_at_its_field_or_at_the_first() -> None:
    view = modals.modal(form(FormField(name="a", label="A"), FormField(name="b", label="B")), modals.Origin())
    errors = {"b": "too many", "a": "it was answered"}
    assert modals.answer(view, {"b": "too many", "": "it was answered"}) == {
        "response_action": "errors",
        "errors": errors,
    }
    assert modals.answer(view, {}) is None
    alone = modals.answer({"blocks": []}, {"b": "it was answered"})
    assert alone and alone["response_action"] == "update" and "it was answered" in str(alone["view"])


@pytest.mark.parametrize("title", ["x" * 24, "x" * 25, "", "x" * 300])
def test_a_title_that_is_too_long_stands_above_the_form(title: str) -> None:
    view = modals.modal(Form(title=title, text="", data="d"), modals.Origin())
    assert limits.view_faults(view) == []
    assert (len(title) > 24) is (f"*{title}*" in str(view["blocks"]))


async def answer(world: World) -> None:
    """Ana taps the button that opens the form."""
    world.door.forms["w:tok"] = form(FormField(name="why", label="Why"))
    await world.channel.send("slack:DANA", card(), ident="d1")
    await world.stage.tap("ana", world.stage.seen("ana")[0], "Answer")


async def test_a_decline_that_wants_a_reason_opens_a_form_and_is_not_yet_counted(one: World) -> None:
    one.door.forms["w:tok:1"] = form(FormField(name="reason", label="Why?"))
    await one.channel.send("slack:DANA", card("approve", "decline"), ident="d1")
    (seen,) = one.stage.seen("ana")
    await one.stage.tap("ana", seen, "decline")
    await one.slack.until(lambda: "UANA" in one.slack.views)
    assert not one.door.taken
    assert await one.stage.fill("ana", seen, {"reason": "too early"}) == {}
    assert dict(one.door.forms_taken[0].values) == {"reason": "too early"}


async def test_a_form_that_takes_its_time_is_opened_bare_and_filled(anyio_backend: str, one: World) -> None:
    one.door.slow = asyncio.Event()
    one.channel._entrance._patience_s = 0.01
    await answer(one)
    bare = await one.slack.until(lambda: one.slack.views.get("UANA"))
    assert bare["title"]["text"] == "One moment" and "submit" not in bare
    one.door.slow.set()
    await one.slack.until(lambda: one.slack.views["UANA"]["title"]["text"] == "Visit")
    assert not one.door.taken


async def test_a_slow_tap_that_opens_nothing_counts(one: World) -> None:
    one.door.slow = asyncio.Event()
    one.channel._entrance._patience_s = 0.01
    await one.channel.send("slack:DANA", card("yes"), ident="d1")
    await one.stage.tap("ana", one.stage.seen("ana")[0], "yes")
    await one.slack.until(lambda: one.slack.views.get("UANA"))
    one.door.slow.set()
    await one.slack.until(lambda: one.slack.views["UANA"]["title"]["text"] == "Done")
    assert [given.data for given in one.door.taken] == ["w:tok:0"]


async def test_a_form_that_came_too_late_gives_the_button_again_to_that_person(one: World) -> None:
    one.slack.faults.append(
        Fault("busy", 1, "views.open", status=200, body={"ok": False, "error": "expired_trigger_id"})
    )
    await answer(one)
    (whisper,) = await one.slack.until(lambda: one.slack.whispers)
    ((label, action),) = actions(whisper)
    assert (whisper["user"], label, action["value"]) == ("UANA", "Answer", "w:tok")
    tap = one.slack.tapping("UANA", "DANA", {"ts": whisper["ts"], "text": "", "blocks": []}, action)
    await one.slack.bring("interactive", tap)
    await one.slack.until(lambda: one.slack.views.get("UANA"))
    assert not one.door.taken


async def test_an_empty_script_is_told_in_the_form(one: World) -> None:
    await one.slack.bring("slash_commands", one.slack.command("UANA", "C1"))
    await one.slack.until(lambda: one.slack.views.get("UANA"))
    answer = await one.slack.bring("interactive", one.slack.submitting("UANA", {"script": "  "}))
    assert answer.body == {"response_action": "errors", "errors": {"script": "there is no script here yet"}}
    one.stage.away(3)
    answer = await one.slack.bring("interactive", one.slack.submitting("UANA", {"script": "- a = list x"}))
    assert "nothing was started" in answer.body["errors"]["script"] and not one.door.taken


async def test_a_person_picked_in_a_form_is_their_address(one: World) -> None:
    one.door.forms["w:tok"] = form(FormField(name="who", label="Who", kind="person"))
    await one.channel.send("slack:DANA", card(), ident="d1")
    assert await one.stage.fill("ana", one.stage.seen("ana")[0], {"who": "UBO"}) == {}
    assert dict(one.door.forms_taken[0].values) == {"who": "bo@acme.de"}


async def test_a_form_that_cannot_be_stored_is_not_acknowledged(one: World) -> None:
    await answer(one)
    await one.slack.until(lambda: one.slack.views.get("UANA"))
    one.door.away = True
    payload = one.slack.submitting("UANA", {"why": "x"})
    assert (await one.slack.bring("interactive", payload, wait_s=0.1)).status is None
