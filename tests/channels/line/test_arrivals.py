"""What people do on LINE comes in once, whole, and counts as taken only when it is stored."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bot.domain.errors import Misconfigured
from channels.base import Choice, File, Later, Message, Sent
from channels.line.channel import Line
from tests.channels.line.world import Hands, made
from tests.doubles.door import MemoryDoor, until
from tests.doubles.line import PEOPLE, TEAM, LineStage, MessagingApi

pytestmark = pytest.mark.anyio


# --- the webhook -----------------------------------------------------------------------------------------------------
async def test_a_message_comes_in_with_its_payload_as_it_came(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    where = await stage.write("mika", "18:00 お願い 😀")
    (given,) = door.taken
    assert (given.kind, given.text, given.conversation, given.sender.ref) == (
        "message",
        "18:00 お願い 😀",
        where,
        PEOPLE["mika"],
    )
    assert given.direct and given.raw == stage.api.last and given.ident == stage.api.last["webhookEventId"]
    assert channel.read(given.raw) == given


async def test_it_answers_only_after_everything_is_stored(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    door.shut = 1
    first, second = stage.api.said("mika", "one"), stage.api.said("mika", "two")
    assert await stage.api.post(first, second) == 500
    assert door.taken == []
    assert await stage.api.post(first, second) == 200
    assert [given.text for given in door.taken] == ["one", "two"]


async def test_a_redelivery_is_handed_over_under_the_same_name(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await stage.write("mika", "once")
    await stage.again()
    assert (len(door.taken), door.offered) == (1, 2)


async def test_a_wrong_signature_is_refused_and_an_empty_call_is_answered(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    assert not await stage.forged()
    assert await stage.api.post(stage.api.said("mika", "x"), secret="é") == 401
    assert await stage.api.post() == 200
    assert door.taken == []


async def test_unknown_events_and_messages_hold_nothing_back(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    api = stage.api
    events = [
        api.event("brandNew2027", "mika", thing={}),
        api.event("message", "mika", message={"type": "hologram2027", "id": "3"}),
        api.event("message", "mika", message={"type": "text"}),
        api.event("unsend", "mika", unsend={"messageId": "1"}),
        api.said("mika", "in a module's shadow") | {"mode": "standby"},
        api.said("mika", "after them"),
    ]
    assert await api.post(*events) == 200
    assert [given.text for given in door.taken] == ["after them"]


# --- what is made of it ----------------------------------------------------------------------------------------------
async def test_taps_menus_follows_and_links_are_told_apart(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    api = stage.api
    await stage.menu("mika", "book")
    picked = {"data": "when", "params": {"datetime": "2026-03-02T18:30"}}
    for event in (
        api.event("postback", "mika", postback=picked),
        api.event("follow", "mika", follow={"isUnblocked": False}),
        api.event("unfollow", "mika"),
        api.event("accountLink", "ana", link={"result": "ok", "nonce": "n1"}),
        api.event("accountLink", "ana", link={"result": "failed", "nonce": "n2"}),
    ):
        await api.happens(event)
    assert [(given.kind, given.data) for given in door.taken] == [
        ("tap", "menu:book"),
        ("tap", "when"),
        ("follow", ""),
        ("unfollow", ""),
        ("linked", "n1"),
    ]
    assert door.taken[1].values == {"datetime": "2026-03-02T18:30"}


async def test_in_a_group_the_bot_is_meant_by_its_name_and_nobody_is_named_for_line(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    where = await stage.paste("ana", "- a = list x\n- show a")
    await stage.api.happens(stage.api.said(None, "who was it?", group=TEAM))
    edited = stage.api.event("messageEdited", "bo", group=TEAM, message={"type": "text", "id": "7", "text": "better"})
    await stage.api.happens(edited)
    meant, unnamed, changed = door.taken
    assert (meant.text, meant.mentioned, meant.direct) == ("- a = list x\n- show a", True, False)
    assert (unnamed.sender.ref, unnamed.mentioned, unnamed.conversation) == ("", False, where)
    assert (changed.kind, changed.ref) == ("edited", "7")


async def test_a_file_is_fetched_by_the_message_that_it_came_in(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await stage.send_file("ana", "plan.md", b"- a = list x\r\n")
    (file,) = door.taken[0].files
    assert (file.name, file.size) == ("plan.md", 14)
    assert await channel.fetch(file) == b"- a = list x\r\n"
    assert not isinstance(await channel.fetch(File(name="gone", ref="1")), bytes | Later)


async def test_a_sticker_a_place_and_a_picture_are_messages(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    for message in (
        {"type": "sticker", "id": "1", "packageId": "1", "stickerId": "1"},
        {"type": "location", "id": "2", "title": "CUBIC", "address": "1-1 Nishi"},
        {"type": "image", "id": "3", "contentProvider": {"type": "line"}},
    ):
        await stage.api.happens(stage.api.event("message", "mika", message=message))
    assert [(given.text, len(given.files)) for given in door.taken] == [("", 0), ("1-1 Nishi", 0), ("", 1)]


async def test_an_answer_to_a_message_names_it(channel: Line, stage: LineStage, door: MemoryDoor) -> None:
    sent = await channel.send(f"line:{PEOPLE['ana']}", Message(text="Which day?"), ident="1")
    assert isinstance(sent, Sent)
    await stage.reply("ana", stage.seen("ana")[-1], "Tuesday")
    assert door.taken[0].reply_to == sent.ref


# --- straight back ---------------------------------------------------------------------------------------------------
def by(api: MessagingApi) -> list[str]:
    return [path.rpartition("/")[2] for method, path, _, _ in api.calls if "/message/" in path]


async def test_words_back_use_the_reply_token_once_and_then_a_push(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await stage.write("mika", "hello")
    for text in ("Hello Mika.", "And again."):
        await channel.tell(door.taken[0], text)
    assert (by(stage.api), stage.told("mika")) == (["reply", "push"], ["Hello Mika.", "And again."])
    replied = next(headers for _, path, _, headers in stage.api.calls if path.endswith("/reply"))
    assert "X-Line-Retry-Key" not in replied


@pytest.mark.parametrize(("seconds", "way"), [(49.0, "reply"), (50.0, "push")])
async def test_a_reply_token_is_used_only_while_it_is_fresh(
    channel: Line, stage: LineStage, door: MemoryDoor, hands: Hands, seconds: float, way: str
) -> None:
    await stage.write("mika", "hello")
    hands.move(seconds)
    await channel.tell(door.taken[0], "Hello.")
    assert by(stage.api) == [way]


async def test_a_reply_token_that_line_no_longer_takes_is_made_up_for_by_a_push(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await stage.write("mika", "hello")
    stage.api.tokens.clear()
    await channel.tell(door.taken[0], "Hello.")
    assert by(stage.api) == ["reply", "push"]


async def test_in_a_group_words_to_one_person_go_to_them_alone(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    await stage.paste("ana", "help")
    await channel.tell(door.taken[0], "This is Bo's to answer.", alert=True)
    assert [one.conversation for one in stage.seen("ana")] == [f"line:{PEOPLE['ana']}"]
    assert stage.seen("bo") == []


# --- taps ------------------------------------------------------------------------------------------------------------
async def test_a_choice_with_consequences_asks_once_more_and_only_then_comes_in(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    choice = Choice(label="deploy", data="w:t:0", sure="Deploy api with no approval?")
    await channel.send(f"line:{PEOPLE['ana']}", Message(text="Go?", choices=(choice,)), ident="1")
    first = stage.seen("ana")[-1]
    await stage.tap("ana", first, "deploy")
    await until(lambda: len(stage.seen("ana")) == 2)
    sure = stage.seen("ana")[-1]
    assert (sure.text, sure.buttons) == ("Deploy api with no approval?", ("yes, deploy", "back"))
    await stage.tap("ana", sure, "back")
    await until(lambda: len(stage.seen("ana")) == 3)
    assert (stage.seen("ana")[-1].text, door.taken) == ("Nothing changed.", [])
    await stage.tap("ana", sure, "yes, deploy")
    assert [given.data for given in door.taken] == ["w:t:0"]


async def test_an_old_card_stays_tappable_and_brings_the_same(
    channel: Line, stage: LineStage, door: MemoryDoor
) -> None:
    where = f"line:{PEOPLE['ana']}"
    sent: Any = await channel.send(where, Message(text="Go?", choices=(Choice(label="yes", data="w:t:0"),)), ident="1")
    assert await channel.edit(where, sent.ref, Message(text="Ana picked yes")) == Sent(ref=sent.ref)
    seen = stage.seen("ana")[-1]
    for _ in range(2):
        await stage.tap("ana", seen, "yes")
    assert [given.data for given in door.taken] == ["w:t:0", "w:t:0"]
    assert len({given.ident for given in door.taken}) == 2


# --- without its library ---------------------------------------------------------------------------------------------
async def test_without_the_extra_it_says_what_to_install(stage: LineStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "linebot", None)
    with pytest.raises(Misconfigured, match=r"pip install 'waiton\[line\]'"):
        made(stage.api)
