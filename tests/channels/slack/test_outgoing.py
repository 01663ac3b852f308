"""What leaves: one attempt a call, nothing twice that was accepted, and what becomes of what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from channels.base import Attached, Choice, Home, Later, Message, Problems, Refused, Sent, Settled, Status
from tests.channels.slack.world import START, World, card
from tests.doubles.slack import Fault, words

pytestmark = pytest.mark.anyio


def posts(world: World) -> int:
    return sum(method == "chat.postMessage" for method, _, _ in world.slack.calls)


async def test_a_card_turns_into_its_outcome_in_place(one: World) -> None:
    sent = await one.channel.send("slack:DANA", card("approve", "decline"), ident="d1")
    assert isinstance(sent, Sent) and sent.ref and sent.note is None
    settled = Settled(title="", text="Extend?", outcome="Ana picked approve", at=START)
    assert await one.channel.edit("slack:DANA", sent.ref, settled) == Sent(ref=sent.ref)
    (seen,) = one.stage.seen("ana")
    assert seen.buttons == () and "Ana picked approve" in seen.text and seen.edits == 1
    assert one.stage.seen("bo") == []


async def test_a_status_goes_into_the_thread_and_everyone_there_sees_it(one: World) -> None:
    conversation = await one.stage.paste("ana", "- a = list x")
    status = Status(title="run", state="waiting")
    assert isinstance(await one.channel.send(conversation, status, ident="d1"), Sent)
    (seen,) = one.stage.seen("jonas")
    assert seen.conversation == conversation
    (_, _, args) = one.slack.calls[-1]
    assert args["unfurl_links"] is False and args["unfurl_media"] is False and args["text"]


async def test_an_answer_that_was_lost_is_found_again_and_nothing_is_sent_twice(one: World) -> None:
    one.stage.lose(1)
    got = await one.channel.send("slack:DANA", card("yes"), ident="d1")
    assert isinstance(got, Later) and got.lost and posts(one) == 1
    again = await one.channel.send("slack:DANA", card("yes"), ident="d1", again=True)
    (seen,) = one.stage.seen("ana")
    assert again == Sent(ref=seen.ref) and posts(one) == 1


async def test_in_a_thread_it_is_found_among_the_replies(one: World) -> None:
    conversation = await one.stage.paste("ana", "- a = list x")
    one.stage.lose(1)
    await one.channel.send(conversation, Message(text="hello"), ident="d1")
    again = await one.channel.send(conversation, Message(text="hello"), ident="d1", again=True)
    assert isinstance(again, Sent) and posts(one) == 1
    other = await one.channel.send(conversation, Message(text="hello"), ident="d2", again=True)
    assert isinstance(other, Sent) and other.ref != again.ref and posts(one) == 2


async def test_a_request_that_did_not_arrive_is_sent_when_it_is_not_found(one: World) -> None:
    one.stage.away(1)
    assert isinstance(await one.channel.send("slack:DANA", Message(text="hello"), ident="d1"), Later)
    assert isinstance(await one.channel.send("slack:DANA", Message(text="hello"), ident="d1", again=True), Sent)
    assert [seen.text for seen in one.stage.seen("ana")] == ["hello"]


async def test_what_cannot_be_looked_up_is_not_sent_again_but_a_card_is(one: World) -> None:
    one.slack.scopes.discard("channels:history")
    got = await one.channel.send("slack:DANA", Message(text="hello"), ident="d1", again=True)
    assert isinstance(got, Refused) and "whether it arrived cannot be told" in got.why and posts(one) == 0
    again = await one.channel.send("slack:DANA", card("yes"), ident="d2", again=True)
    assert isinstance(again, Sent), "a card stands for the same question however often it is there"


async def test_of_several_messages_only_those_go_again_that_are_not_there(one: World) -> None:
    three = Message(parts=tuple(Message(text=f"part {n}") for n in range(3)))
    one.slack.faults += [Fault("none", 1, "chat.postMessage"), Fault("busy", 1, "chat.postMessage", seconds=3)]
    got = await one.channel.send("slack:DANA", three, ident="d1")
    assert isinstance(got, Later) and got.lost and got.pause == timedelta(seconds=3)
    sent = await one.channel.send("slack:DANA", three, ident="d1", again=True)
    assert [seen.text for seen in one.stage.seen("ana")] == ["part 0", "part 1", "part 2"]
    assert isinstance(sent, Sent) and sent.ref == ",".join(seen.ref for seen in one.stage.seen("ana"))
    settled = Settled(title="", text="part 0", outcome="booked")
    assert isinstance(await one.channel.edit("slack:DANA", sent.ref or "", settled), Sent)
    assert [seen.text for seen in one.stage.seen("ana")] == ["part 0\nbooked", "part 1", "part 2"]
    assert isinstance(await one.channel.edit("slack:DANA", sent.ref or "", three), Sent)
    assert [seen.edits for seen in one.stage.seen("ana")] == [2, 1, 1]


async def test_files_go_beside_their_message_and_once(one: World) -> None:
    given = Message(text="the plan", files=(Attached(name="a.md", content=b"1"), Attached(name="b.md", content=b"2")))
    one.slack.faults += [Fault("none", 1, "files.completeUploadExternal")]
    one.slack.faults += [Fault("busy", 1, "files.completeUploadExternal", seconds=1)]
    got = await one.channel.send("slack:DANA", given, ident="d1")
    assert isinstance(got, Later) and got.lost
    assert isinstance(await one.channel.send("slack:DANA", given, ident="d1", again=True), Sent)
    shown = [m for m in one.slack.messages.values() if m.get("files")]
    assert [m["files"][0]["name"] for m in shown] == ["a.md", "b.md"] and posts(one) == 1
    assert {f["name"]: f["content"] for f in one.slack.files.values()} == {"a.md": b"1", "b.md": b"2"}


async def test_a_file_that_slack_never_takes_is_told_and_the_message_stands(one: World) -> None:
    one.slack.scopes.discard("files:write")
    given = Message(text="the plan", files=(Attached(name="a.md", content=b"1"),))
    got = await one.channel.send("slack:DANA", given, ident="d1")
    assert isinstance(got, Sent) and got.note and "a.md did not arrive" in got.note and "`files:write`" in got.note


async def test_all_problems_arrive_as_a_file_where_they_are_many(one: World) -> None:
    problems = tuple(f"line {n}: nothing" for n in range(24))
    await one.channel.send("slack:DANA", Problems(head="Not run", problems=problems), ident="d1")
    (file,) = one.slack.files.values()
    assert file["name"] == "problems.txt" and b"line 23" in file["content"]


ANSWERS: list[tuple[Fault, dict[str, Any]]] = [
    (Fault("busy", 1, seconds=7), {"pause": timedelta(seconds=7), "lost": False, "scope": "conversation"}),
    (
        Fault("busy", 1, status=200, body={"ok": False, "error": "ratelimited"}, seconds=4),
        {"pause": timedelta(seconds=4)},
    ),
    (Fault("busy", 1, status=503, body={"ok": False}), {"lost": True, "scope": "channel"}),
    (Fault("busy", 1, status=200, body={"ok": False, "error": "fatal_error"}), {"lost": True}),
    (Fault("away", 1), {"lost": True}),
]


@pytest.mark.parametrize(("fault", "says"), ANSWERS, ids=["429", "200 ratelimited", "503", "fatal_error", "broken off"])
async def test_what_may_work_later_is_tried_later(one: World, fault: Fault, says: dict[str, Any]) -> None:
    one.slack.faults.append(replace(fault))
    got = await one.channel.send("slack:DANA", Message(text="hello"), ident="d1")
    assert isinstance(got, Later) and {key: getattr(got, key) for key in says} == says
    assert posts(one) == 1, "the SDK does not try again by itself"


async def test_edits_that_are_too_many_hold_all_of_them_back(one: World) -> None:
    sent = await one.channel.send("slack:DANA", card("yes"), ident="d1")
    assert isinstance(sent, Sent) and sent.ref
    one.stage.busy(1, 9)
    got = await one.channel.edit("slack:DANA", sent.ref, Message(text="x"))
    assert isinstance(got, Later) and (got.pause, got.scope) == (timedelta(seconds=9), "channel")


@pytest.mark.parametrize(
    ("code", "stops"),
    [("channel_not_found", False), ("is_archived", False), ("not_in_channel", False), ("something_new", False),
     ("token_revoked", True), ("account_inactive", True), ("invalid_auth", True)],
)  # fmt: skip
async def test_what_slack_never_takes_is_refused_by_its_word(one: World, code: str, stops: bool) -> None:
    one.slack.faults.append(Fault("busy", 1, status=200, body={"ok": False, "error": code}))
    got = await one.channel.send("slack:DANA", Message(text="hello"), ident="d1")
    assert isinstance(got, Refused) and got.stops is stops and f"({code})" in got.why


async def test_a_message_that_was_deleted_is_not_edited(one: World) -> None:
    got = await one.channel.edit("slack:DANA", "1.1", Message(text="x"))
    assert isinstance(got, Refused) and "not there any more" in got.why and not got.stops


async def test_blocks_that_slack_refuses_go_as_text_with_numbers(one: World) -> None:
    book = Message(text="Book?", image="http://a.example/x.png", choices=(Choice(label="yes", data="d"),))
    got = await one.channel.send("slack:DANA", Message(parts=(book, Message(text="more"))), ident="d1")
    assert isinstance(got, Sent) and got.note and "plain text" in got.note
    seen, more = one.stage.seen("ana")
    assert more.text == "more" and seen.text == "Book?\nAnswer with a number, in this message's thread:\n1. yes"


async def test_somebody_is_reached_in_their_direct_messages_unless_they_cannot_be(one: World) -> None:
    assert await one.channel.reach("UANA") == "slack:DANA"
    assert isinstance(await one.channel.reach("UNOBODY"), Refused)
    one.stage.refuse("bo")
    assert isinstance(await one.channel.reach("UBO"), Refused)
    assert isinstance(await one.channel.send("slack:DBO", card("yes"), ident="d1"), Refused)


async def test_somebody_is_found_by_their_address(one: World) -> None:
    found = await one.channel.find("bo@acme.de")
    assert found and (found.ref, found.name, found.timezone) == ("UBO", "Bo", "Europe/Berlin")
    assert await one.channel.find("mika@example.com") is None


async def test_user_groups_are_roles_and_none_without_the_right(one: World) -> None:
    one.slack.groups = [{"id": "S1", "handle": "oncall", "users": ["UANA", "UBO"]}]
    assert await one.channel.groups() == {"oncall": ("UANA", "UBO")}
    one.slack.scopes.discard("usergroups:read")
    assert await one.channel.groups() == {}


async def test_whoever_tapped_is_told_alone_beside_the_card(one: World) -> None:
    await one.channel.send("slack:C1", card("yes"), ident="d1")
    await one.stage.tap("bo", one.stage.seen("bo")[0], "yes")
    await one.channel.tell(one.door.taken[-1], "That is Ana's. <!here>", alert=True)
    assert one.stage.told("bo") == ["That is Ana's. <!here>"] and one.stage.told("ana") == []
    assert [method for method, _, _ in one.slack.calls][-1] != "chat.postEphemeral"


async def test_where_the_tap_has_no_address_any_more_it_is_whispered_in_the_thread(one: World) -> None:
    conversation = await one.stage.paste("bo", "hello")
    given = one.door.taken[-1]
    await one.channel.tell(given, "That is no script")
    (method, _, args) = one.slack.calls[-1]
    assert (method, args["thread_ts"]) == ("chat.postEphemeral", conversation.partition("/")[2])
    one.slack.members["C1"].discard("UBO")
    await one.channel.tell(given, "Gone?")
    assert (
        one.stage.told("bo") == ["That is no script", "Gone?"] and one.stage.seen("bo")[-1].conversation == "slack:DBO"
    )


async def test_in_direct_messages_words_back_stay(one: World) -> None:
    await one.stage.write("ana", "hello")
    await one.channel.tell(one.door.taken[-1], "That is no script")
    assert one.stage.told("ana") == ["That is no script"] and not one.slack.whispers


async def test_the_home_tab_shows_what_waits_when_it_is_opened(one: World) -> None:
    one.door.waiting = (("Extend the pilot? · since Mon", "https://acme.de/a/1"),)
    event = {"type": "app_home_opened", "user": "UANA", "channel": "DANA", "tab": "home", "event_ts": "1.1"}
    await one.slack.bring("events_api", one.slack.event(event))
    view = await one.slack.until(lambda: one.slack.homes.get("UANA"))
    assert "Extend the pilot? · since Mon" in words(view) and "Nothing of yours" in words(view)
    assert isinstance(await one.channel.home("UANA", Home()), Sent)


async def test_the_right_to_read_files_is_missed_by_name(one: World) -> None:
    await one.stage.paste("ana", "- a", form="file")
    (file,) = one.door.taken[0].files
    one.slack.scopes.discard("files:read")
    got = await one.channel.fetch(file)
    assert isinstance(got, Refused) and "`files:read`" in got.why


async def test_no_other_host_is_shown_the_token(one: World) -> None:
    await one.stage.paste("ana", "- a", form="file")
    (file,) = one.door.taken[0].files
    got = await one.channel.fetch(replace(file, ref="https://drive.example/x"))
    assert isinstance(got, Refused) and "outside Slack" in got.why
    ident = file.ref.rpartition("/")[2]
    assert await one.channel.fetch(replace(file, ref=ident)) == b"- a"
