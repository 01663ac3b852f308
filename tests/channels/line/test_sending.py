"""What goes out on LINE: as it is meant, within its limits, once, and what becomes of it when LINE says no."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta
from typing import Any

import pytest

from channels.base import (
    Attached,
    Card,
    Choice,
    FormField,
    Later,
    Message,
    Problems,
    Refused,
    Sent,
    Settled,
    Status,
)
from channels.base import (
    Line as PlanLine,
)
from channels.line.channel import Line
from channels.line.limits import faults
from channels.line.render import Look
from channels.line.render import shown as rendered
from tests.channels.line.world import NOON, made
from tests.doubles.door import MemoryDoor
from tests.doubles.line import PEOPLE, LineStage, MessagingApi, units

pytestmark = pytest.mark.anyio
ANA = f"line:{PEOPLE['ana']}"
MORE = (Choice(label="not mine", data="m:0"), Choice(label="hand over", data="m:1"), Choice(label="later", data="m:2"))


def card(*labels: str, **more: Any) -> Card:
    choices = tuple(Choice(label=label, data=f"w:tok:{n}") for n, label in enumerate(labels))
    given = {"kind": "card", "token": "tok", "title": "Extend the pilot?", "text": "", "choices": choices}
    return Card(**(given | more))


async def sent(channel: Line, thing: Any, ident: str = "d1", where: str = ANA) -> Sent:
    said = await channel.send(where, thing, ident=ident)
    assert isinstance(said, Sent), said
    return said


def payload(stage: LineStage) -> dict[str, Any]:
    return stage.api.shown[-1].payload


# --- cards -----------------------------------------------------------------------------------------------------------
async def test_a_card_is_a_bubble_with_a_button_for_each_choice(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    given = card(
        "approve",
        "decline",
        text="Include S/4 writes?",
        more=MORE,
        params=(("service", "s4"),),
        taps="approve: deploy api · decline: ends",
        asker="Jonas asks",
        until=NOON + timedelta(days=2),
        place=("Pilot", "https://waiton.acme.de/jobs/7"),
    )
    said = await sent(channel, given)
    seen = stage.seen("ana")[-1]
    assert (said.ref, said.note) == (seen.ref, None)
    assert seen.buttons == ("approve", "decline", "not mine", "hand over", "later", "Pilot")
    assert seen.text == (
        "Extend the pilot?\nInclude S/4 writes?\nservice\ns4\napprove: deploy api · decline: ends\n"
        "Jonas asks · until Wed 12:00"
    )
    assert payload(stage)["altText"] == "Extend the pilot?\nInclude S/4 writes?\napprove · decline"
    first = payload(stage)["contents"]["footer"]["contents"][0]
    assert (first["style"], first["action"]["displayText"]) == ("primary", "approve")
    await stage.tap("ana", seen, "decline")
    assert [(given.data, given.sender.ref) for given in door.taken] == [("w:tok:1", PEOPLE["ana"])]


@pytest.mark.parametrize(
    ("count", "kind", "quick", "bubbles"),
    [(5, "bubble", 0, 0), (6, "bubble", 6, 0), (13, "bubble", 13, 0), (14, "carousel", 0, 4), (25, "carousel", 0, 6)],
)
async def test_choices_are_buttons_then_quick_replies_then_a_row_of_bubbles(
    channel: Line, stage: LineStage, count: int, kind: str, quick: int, bubbles: int
) -> None:
    await sent(channel, card(*(f"room {n}" for n in range(count))))
    made_of = payload(stage)
    assert made_of["contents"]["type"] == kind
    assert len((made_of.get("quickReply") or {}).get("items", [])) == quick
    assert len(made_of["contents"].get("contents", [])) == bubbles
    assert sorted(stage.seen("ana")[-1].buttons) == sorted(f"room {n}" for n in range(count))


async def test_more_choices_than_that_are_answered_with_a_number(channel: Line, stage: LineStage) -> None:
    await sent(channel, card(*(f"room {n}" for n in range(26)), more=MORE))
    seen = stage.seen("ana")[-1]
    assert (seen.buttons, payload(stage)["type"]) == (("not mine", "hand over", "later"), "text")
    assert "\n1. room 0\n" in seen.text and seen.text.endswith("26. room 25\n\nAnswer with a number.")


@pytest.mark.parametrize(
    ("label", "shown"), [("x" * 20, "x" * 20), ("x" * 21, "1"), ("👩‍👩‍👧" * 20, "👩‍👩‍👧" * 20), ("é" * 20, "é" * 20)]
)
async def test_a_label_is_counted_as_a_reader_counts_and_a_longer_one_stands_in_the_text(
    channel: Line, stage: LineStage, label: str, shown: str
) -> None:
    thing = card(label, "no")
    message = rendered(thing, Look(now=NOON, zone=UTC)).messages[-1]
    assert faults(message) == []
    labels = [one["action"]["label"] for one in message["contents"]["footer"]["contents"]]
    assert labels[0] == shown
    if shown == "1":
        await sent(channel, thing)
        assert stage.seen("ana")[-1].text.endswith(f"1. {label}\n2. no")
        assert payload(stage)["contents"]["footer"]["contents"][0]["action"]["displayText"] == label


async def test_words_are_answered_with_a_message_small_forms_in_turn_and_large_ones_on_their_page(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await sent(channel, card(more=MORE))
    assert "Answer with a message." in stage.seen("ana")[-1].text
    fields = tuple(FormField(name=name, label=name.capitalize()) for name in ("day", "who", "where"))
    await sent(channel, card(fields=fields[:2], place=("Pilot", "https://waiton.acme.de/a/1")), "d2")
    await stage.tap("ana", stage.seen("ana")[-1], "Answer")
    assert door.taken[0].data == "w:tok"
    await sent(channel, card(fields=fields, place=("Pilot", "https://waiton.acme.de/a/1")), "d3")
    assert stage.seen("ana")[-1].buttons == ("Fill in the form", "Pilot")
    assert payload(stage)["contents"]["footer"]["contents"][0]["action"]["uri"] == "https://waiton.acme.de/a/1"


async def test_a_small_form_is_filled_field_by_field(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    await sent(channel, card(fields=(FormField(name="day", label="Day"), FormField(name="who", label="Who"))))
    asked = {"": "Day?", "Tuesday": "Who?"}
    doing: list[asyncio.Task[Any]] = []

    def answer(given: Any) -> None:
        if given.text in asked:
            doing.append(
                asyncio.ensure_future(channel.send(ANA, Message(text=asked[given.text]), ident=f"f{given.text}"))
            )

    door.acts = answer
    assert await stage.fill("ana", stage.seen("ana")[-1], {"day": "Tuesday", "who": "Bo"}) == {}
    assert [given.text for given in door.taken] == ["", "Tuesday", "Bo"]


# --- limits ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("length", "parts"), [(5000, 1), (5001, 2)])
async def test_a_long_text_is_parted_as_line_counts(channel: Line, stage: LineStage, length: int, parts: int) -> None:
    text = "😀" * (length // 2) + "x" * (length % 2)
    said = await sent(channel, Message(text=text))
    seen = stage.seen("ana")
    assert ("".join(one.text for one in seen), len(seen), said.ref) == (text, parts, seen[-1].ref)
    assert all(units(one.text) <= 5000 for one in seen)


async def test_more_than_five_messages_go_in_calls_of_five_each_with_its_key(
    channel: Line, stage: LineStage, api: MessagingApi
) -> None:
    thing = Message(parts=tuple(Message(text=str(n)) for n in range(12)))
    await sent(channel, thing)
    pushes = [(len(given["messages"]), headers["X-Line-Retry-Key"]) for _, _, given, headers in api.calls]
    assert [count for count, _ in pushes] == [5, 5, 2] and len({key for _, key in pushes}) == 3
    assert [one.text for one in stage.seen("ana")] == [str(n) for n in range(12)]


async def test_a_long_question_stands_before_its_card_and_a_card_too_large_is_numbered(
    channel: Line, stage: LineStage
) -> None:
    await sent(channel, card("approve", text="x" * 6000))
    assert [len(one.text) for one in stage.seen("ana")] == [5000, 1000, len("Extend the pilot?")]
    said = await sent(channel, card("approve", params=tuple((str(n), "y" * 500) for n in range(70))), "d2")
    assert "30 KB" in str(said.note) and stage.seen("ana")[-1].text.endswith("1. approve\n\nAnswer with a number.")


async def test_what_a_notification_shows_is_cut_at_its_limit(channel: Line, stage: LineStage) -> None:
    await sent(channel, card("approve", title="t" * 900, text="x" * 900))
    assert units(payload(stage)["altText"]) == 1500


async def test_a_card_that_line_refuses_for_its_form_is_sent_as_text(
    channel: Line, stage: LineStage, api: MessagingApi
) -> None:
    wrong = {
        "message": "The request body has 1 error(s)",
        "details": [{"property": "messages[0].contents", "message": "?"}],
    }
    api.inject["/v2/bot/message/push"] = [(400, wrong)]
    said = await sent(channel, card("approve"))
    assert "plain text" in str(said.note) and "1. approve" in stage.seen("ana")[-1].text


async def test_files_are_named_images_shown_and_links_lead(channel: Line, stage: LineStage) -> None:
    said = await sent(
        channel,
        Message(
            title="Today at CUBIC",
            image="https://acme.de/cubic.png",
            choices=(Choice(label="Map", url="https://acme.de/map"), Choice(label="Old", url="ftp://acme.de")),
            files=(Attached(name="plan.md", content=b"x"),),
        ),
    )
    bubble, named = stage.seen("ana")
    assert (bubble.buttons, bubble.text) == (("Map",), "Today at CUBIC\nOld: ftp://acme.de")
    assert stage.api.shown[0].payload["contents"]["hero"]["url"] == "https://acme.de/cubic.png"
    assert named.text == "📎 plan.md" and "no files" in str(said.note)
    await sent(channel, Message(text="Look", image="http://acme.de/plain.png"), "d2")
    assert stage.seen("ana")[-1].text == "Look\n\nhttp://acme.de/plain.png"


async def test_a_run_that_holds_can_be_let_go_by_a_tap(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    choices = (Choice(label="Wait for Ana", data="h:0"), Choice(label="Run as written", data="h:1"))
    await sent(channel, Status(title="Pilot", state="held", choices=choices))
    seen = stage.seen("ana")[-1]
    assert (seen.text, seen.buttons) == ("Pilot\nheld", ("Wait for Ana", "Run as written"))
    await stage.tap("ana", seen, "Wait for Ana")
    assert door.taken[0].data == "h:0"


async def test_status_outcome_and_problems_are_words(channel: Line, stage: LineStage) -> None:
    lines = (PlanLine(tense="now", text="waiting on Bo", at=NOON - timedelta(minutes=28)),)
    await sent(channel, Status(title="Pilot", state="waiting", lines=lines, done=1, of=3), "d1")
    await sent(channel, Settled(title="Extend?", text="", outcome="Ana picked approve", at=NOON, reason="green"), "d2")
    place = ("in the room", "https://waiton.acme.de/jobs/7")
    await sent(channel, Problems(head="Nothing runs yet.", problems=("line 1: …",) * 11, place=place), "d3")
    assert [one.text for one in stage.seen("ana")][:2] == [
        "Pilot\n\nwaiting · 1 of 3\n\n▸ waiting on Bo since 11:32",
        "Ana picked approve, 12:00\n\ngreen\n\nExtend?",
    ]
    assert stage.seen("ana")[2].text.endswith("and 1 more\n\nin the room: https://waiton.acme.de/jobs/7")


# --- what goes wrong -------------------------------------------------------------------------------------------------
async def test_what_was_accepted_and_whose_answer_was_lost_is_not_sent_twice(
    channel: Line, stage: LineStage, api: MessagingApi
) -> None:
    stage.lose(1)
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and said.lost
    again = await channel.send(ANA, card("approve"), ident="d1", again=True)
    assert (again, len(stage.seen("ana"))) == (Sent(ref=stage.seen("ana")[0].ref), 1)
    assert len({headers["X-Line-Retry-Key"] for _, _, _, headers in api.calls}) == 1
    assert channel.capabilities.looks_up


async def test_what_was_broken_off_between_calls_goes_on_where_it_was(channel: Line, stage: LineStage) -> None:
    thing = Message(parts=tuple(Message(text=str(n)) for n in range(6)))
    assert isinstance(await channel.send(ANA, thing, ident="d1"), Sent)
    stage.api.shown.clear()
    stage.api.keys.pop(list(stage.api.keys)[-1])
    assert isinstance(await channel.send(ANA, thing, ident="d1", again=True), Sent)
    assert [one.text for one in stage.seen("ana")] == ["5"]


async def test_a_busy_line_is_left_alone_and_a_used_up_month_is_no_reason_to_wait(
    channel: Line, stage: LineStage, api: MessagingApi
) -> None:
    stage.busy(1, 7)
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and (said.pause, said.scope, said.lost) == (timedelta(seconds=7), "channel", False)
    api.limit, api.used = 200, 200
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Refused) and "this month's messages are used up" in said.why and not said.stops


async def test_a_failing_line_may_have_taken_it_and_one_out_of_reach_has_not(
    channel: Line, stage: LineStage, api: MessagingApi
) -> None:
    api.inject["/v2/bot/message/push"] = [(500, {"message": "Internal server error"})]
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and said.lost
    stage.away(1)
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and said.lost and stage.seen("ana") == []
    nobody = made(api, base_url="http://127.0.0.1:9")
    said = await nobody.send(ANA, card("approve"), ident="d1")
    await nobody.stop()
    assert isinstance(said, Later) and not said.lost and said.scope == "channel"


async def test_whoever_cannot_be_reached_is_refused_with_the_reason(channel: Line, stage: LineStage) -> None:
    stage.refuse("bo")
    said = await channel.send(f"line:{PEOPLE['bo']}", card("approve"), ident="d1")
    assert isinstance(said, Refused) and "no friend" in said.why
    said = await channel.send("line:nobody", card("approve"), ident="d1")
    assert isinstance(said, Refused) and "'to'" in said.why


# --- who somebody is, and what is checked ----------------------------------------------------------------------------
async def test_a_person_links_themselves_by_a_page_and_a_nonce(channel: Line, stage: LineStage) -> None:
    page = await channel.link(PEOPLE["ana"], "https://waiton.acme.de/link/line?job=7")
    assert isinstance(page, str) and page.startswith("https://waiton.acme.de/link/line?job=7&linkToken=LT")
    token = page.rpartition("=")[2]
    assert channel.linked(token, "n+1") == f"{stage.api.url}/dialog/bot/accountLink?linkToken={token}&nonce=n%2B1"
    assert isinstance(await channel.link("nobody", "https://x.de"), Refused)
    assert (await channel.reach(PEOPLE["ana"]), await channel.find("ana@acme.de")) == (ANA, None)
    assert isinstance(await channel.reach("ana"), Refused)


async def test_nothing_is_wrong_where_all_is_set(channel: Line) -> None:
    assert await channel.check() == []


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"token": "other"}, "LINE_CHANNEL_ACCESS_TOKEN"),
        ({"signs_with": "other"}, "LINE_CHANNEL_SECRET"),
        ({"endpoint": ""}, "has no webhook"),
        ({"endpoint": "https://else.example/hook"}, "https://else.example/hook"),
        ({"active": False}, "switched off"),
        ({"address": "http://127.0.0.1:9"}, "COULD_NOT_CONNECT"),
        ({"limit": 200, "used": 180}, "180 of this month's 200"),
    ],
)
async def test_what_keeps_it_from_working_is_named(
    channel: Line, api: MessagingApi, knobs: dict[str, Any], words: str
) -> None:
    for name, value in knobs.items():
        setattr(api, name, value)
    (fault,) = await channel.check()
    assert words in f"{fault.what} / {fault.mend}"


async def test_a_quota_that_is_far_from_used_up_is_not_spoken_of(channel: Line, api: MessagingApi) -> None:
    api.limit, api.used = 200, 179
    assert await channel.check() == []


async def test_after_its_stop_nothing_goes_out_and_nothing_counts_as_lost(channel: Line, stage: LineStage) -> None:
    await channel.stop()
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and not said.lost and stage.seen("ana") == []
