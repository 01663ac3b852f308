"""What people do on Telegram comes in once, whole, and counts as taken only when it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession

from channels.base import Choice, File, Message, Refused, Sent
from channels.telegram.channel import Telegram
from tests.channels.telegram.world import NOON, made
from tests.doubles.door import MemoryDoor, served, until
from tests.doubles.telegram import PEOPLE, TEAM, TOKEN, BotApi, Refusal, TelegramStage

pytestmark = pytest.mark.anyio
Start = Callable[..., Awaitable[Telegram]]


# --- polling ---------------------------------------------------------------------------------------------------------
async def test_a_message_comes_in_with_its_payload_as_it_came(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    where = await stage.write("ana", "hello 😀")
    (given,) = await door.first()
    assert (given.kind, given.text, given.conversation, given.sender.ref) == ("message", "hello 😀", where, "101")
    assert given.direct and given.raw == stage.api.last
    assert channel.read(given.raw) == given


async def test_the_offset_moves_only_when_every_update_of_a_batch_is_stored(
    start: Start, stage: TelegramStage, door: MemoryDoor
) -> None:
    api = stage.api
    door.shut = 3
    numbers = [1000 + n for n in range(3)]
    api.updates += [{"update_id": n, **api.said("ana", str(n))} for n in numbers]
    for n in numbers:
        api.confirmed[n] = asyncio.Event()
    stored_at_confirm: list[int] = []
    door.acts = lambda _: stored_at_confirm.append(max(api.confirms))
    await start()
    await asyncio.wait_for(api.confirmed[1002].wait(), 5)
    assert [given.text for given in door.taken] == ["1000", "1001", "1002"]
    assert stored_at_confirm == [0, 0, 0]
    assert door.offered == 6


async def test_what_comes_twice_is_handed_over_under_the_same_name(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    await stage.write("ana", "once")
    await stage.again()
    assert (len(door.taken), door.offered) == (1, 2)


async def test_updates_from_before_the_start_are_taken(start: Start, api: BotApi, door: MemoryDoor) -> None:
    api.updates.append({"update_id": 7, **api.said("ana", "while you were away")})
    api.confirmed[7] = asyncio.Event()
    await start()
    assert (await door.first())[0].text == "while you were away"
    assert not [given for method, given in api.calls if given.get("drop_pending_updates")]


async def test_it_starts_at_once_while_telegram_is_away_and_listens_when_it_is_back(
    start: Start, api: BotApi, stage: TelegramStage, door: MemoryDoor
) -> None:
    api.down = True
    channel = await start()
    await until(lambda: len(api.calls) >= 3)
    assert "does not answer" in (await channel.check())[0].what
    api.down = False
    await stage.ready()
    await stage.write("ana", "back")
    assert door.taken[0].text == "back"


async def test_it_asks_by_name_for_the_updates_that_are_left_out_otherwise(channel: Telegram, api: BotApi) -> None:
    asked = next(given["allowed_updates"] for method, given in api.calls if method == "getUpdates")
    assert {"message", "edited_message", "callback_query", "message_reaction", "my_chat_member"} <= set(asked)


async def test_another_poller_is_named_and_waited_out(
    start: Start, api: BotApi, stage: TelegramStage, door: MemoryDoor
) -> None:
    api.inject["getUpdates"] = [Refusal(409, "Conflict: terminated by other getUpdates request")]
    channel = await start(pauses_s=(0.2,))
    await until(lambda: channel._trouble)
    assert "another process polls" in (await channel.check())[0].what
    await stage.ready()
    await stage.write("ana", "still there")
    assert door.taken[0].text == "still there"


async def test_an_update_of_no_known_shape_holds_nothing_back(
    channel: Telegram, api: BotApi, stage: TelegramStage, door: MemoryDoor
) -> None:
    await api.happens(message={"message_id": "?", "text": "odd"})
    await api.happens(callback_query={"id": "1", "data": "w:t:0", "brand": "new"})
    await stage.write("ana", "after it")
    assert [given.text for given in door.taken] == ["after it"]


# --- the webhook -----------------------------------------------------------------------------------------------------
async def test_a_webhook_is_answered_only_after_it_is_stored_and_forgeries_are_refused(
    api: BotApi, stage: TelegramStage, door: MemoryDoor, start: Start
) -> None:
    channel = made(api, public_url="http://127.0.0.1:1", webhook_secret="s3cret")
    async with served(channel.routes()) as address:
        stage.connect(address)
        channel._address = f"{address}/telegram/webhook"
        await channel.start(door)
        await stage.ready()
        door.shut = 2
        await stage.write("ana", "by the webhook")
        assert (door.offered, [given.text for given in door.taken]) == (3, ["by the webhook"])
        await stage.again()
        assert len(door.taken) == 1
        assert not await stage.forged()
        async with ClientSession() as session, session.post(f"{address}/telegram/webhook", json={}) as answer:
            assert answer.status == 401
        assert api.hook is not None and api.hook["secret_token"] == "s3cret"
        await channel.stop()


async def test_where_the_address_is_not_https_telegram_itself_is_polled() -> None:
    one = Telegram(token=TOKEN, now=lambda: NOON, public_url="http://waiton.local")
    assert one.routes() == []
    await one.stop()


# --- what is made of it ----------------------------------------------------------------------------------------------
async def test_a_script_pasted_as_text_code_rich_text_or_a_file_is_the_same_script(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    script = "- files = glob src/**/a/**/*.rs\n- `x` = list __a__ b\n> 🚀 Mail ana@acme.de"
    for form in ("text", "code", "rich"):
        where = await stage.paste("ana", script, form=form)
        given = door.taken[-1]
        assert (given.text, given.mentioned, given.conversation) == (script, True, where), form
    await stage.paste("ana", script, form="file")
    given = door.taken[-1]
    assert given.mentioned and given.text == ""
    assert await channel.fetch(given.files[0]) == script.encode()


async def test_a_text_at_the_limit_says_that_it_may_be_a_part_and_so_does_the_rest_of_it(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor, api: BotApi
) -> None:
    at = 1772442720
    for who, text, date in (
        ("ana", "x" * 4096, at),
        ("bo", "something else", at + 1),
        ("ana", "- a = list x", at + 2),
        ("ana", "- show a", at + 5),
        ("ana", "x" * 3999, at + 60),
        ("ana", "more", at + 60),
    ):
        await api.happens(**api.said(who, text, chat=TEAM, date=date))
    assert [given.values.get("split", False) for given in door.taken] == [True, False, True, False, False, False]
    assert all(channel.read(given.raw) == given for given in door.taken)


async def test_a_deep_link_proves_an_identity_only_where_nobody_else_is(
    channel: Telegram, api: BotApi, stage: TelegramStage, door: MemoryDoor
) -> None:
    await stage.write("mika", "/start tok_en-1")
    await api.happens(
        **api.said("mika", "/start tok", chat=TEAM, entities=[{"type": "bot_command", "offset": 0, "length": 6}])
    )
    assert [(g.kind, g.data) for g in door.taken] == [("linked", "tok_en-1"), ("command", "")]


@pytest.mark.parametrize(
    ("text", "length", "kind", "read"),
    [
        ("/book at noon", 5, "command", "/book at noon"),
        ("/book@Waiton_bot at noon", 16, "command", "/book at noon"),
        ("/book@other_bot", 15, None, None),
    ],
)
async def test_a_command_comes_as_it_was_typed_and_another_bots_not_at_all(
    channel: Telegram, api: BotApi, door: MemoryDoor, text: str, length: int, kind: str | None, read: str | None
) -> None:
    entity = {"type": "bot_command", "offset": 0, "length": length}
    await api.happens(**api.said("ana", text, chat=TEAM, entities=[entity]))
    assert [(given.kind, given.text) for given in door.taken] == ([(kind, read)] if kind else [])


async def test_in_a_group_the_bot_is_meant_by_its_name_and_by_a_reply_to_it(
    channel: Telegram, api: BotApi, stage: TelegramStage, door: MemoryDoor
) -> None:
    await channel.send(f"telegram:{TEAM}/55", Message(text="Who comes?"), ident="1")
    card = Message(text="Go?", choices=(Choice(label="yes", data="w:t:0"),))
    await api.happens(**api.said("bo", "nothing for it", chat=TEAM))
    await stage.reply("bo", stage.seen("bo")[-1], "I do")
    await api.happens(
        **api.said("bo", "@WAITON_bot help", chat=TEAM, entities=[{"type": "mention", "offset": 0, "length": 11}])
    )
    assert door.taken[1].conversation == f"telegram:{TEAM}/55"
    assert door.taken[1].reply_to == stage.seen("bo")[-1].ref
    await channel.send(f"telegram:{TEAM}/55", card, ident="2")
    await stage.reply("bo", stage.seen("bo")[-1], "yes")
    assert [(g.mentioned, g.text) for g in door.taken] == [
        (False, "nothing for it"),
        (True, "I do"),
        (True, "help"),
        (False, "yes"),
    ]


async def test_the_first_message_of_a_topic_is_not_taken_for_what_is_answered(
    channel: Telegram, api: BotApi, door: MemoryDoor
) -> None:
    opening = {"message_id": 55, "date": 1, "chat": {"id": TEAM}, "from": {"id": 123456}, "forum_topic_created": {}}
    await api.happens(
        **api.said("bo", "hi", chat=TEAM, message_thread_id=55, is_topic_message=True, reply_to_message=opening)
    )
    assert (door.taken[0].reply_to, door.taken[0].mentioned) == (None, False)


async def test_edits_reactions_and_who_lets_the_bot_in_are_told_apart(
    channel: Telegram, api: BotApi, door: MemoryDoor
) -> None:
    edited = api.said("ana", "better")["message"]
    await api.happens(edited_message=edited | {"edit_date": 1772442720})
    ana = {"id": PEOPLE["ana"], "is_bot": False, "first_name": "Ana"}
    chat = {"id": PEOPLE["ana"], "type": "private"}
    await api.happens(
        message_reaction={
            "chat": chat,
            "message_id": 3,
            "user": ana,
            "date": 1,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}],
        }
    )
    for before, after in (("member", "kicked"), ("kicked", "member")):
        await api.happens(
            my_chat_member={
                "chat": chat,
                "from": ana,
                "date": 1,
                "old_chat_member": {"status": before, "user": {"id": 123456, "is_bot": True, "first_name": "W"}},
                "new_chat_member": {"status": after, "user": {"id": 123456, "is_bot": True, "first_name": "W"}},
            }
        )
    assert [(g.kind, g.text) for g in door.taken] == [
        ("edited", "better"),
        ("reaction", "👍"),
        ("unfollow", ""),
        ("follow", ""),
    ]


async def test_a_file_over_twenty_megabytes_is_refused_before_it_is_fetched(channel: Telegram, api: BotApi) -> None:
    said = await channel.fetch(File(name="big.md", ref="F1", size=20 * 2**20 + 1))
    assert isinstance(said, Refused) and "20 MB" in said.why
    assert not [method for method, _ in api.calls if method == "getFile"]


# --- taps ------------------------------------------------------------------------------------------------------------
async def asked(channel: Telegram, stage: TelegramStage, *choices: Choice) -> Any:
    sent = await channel.send("telegram:101", Message(text="Extend?", choices=choices), ident="q")
    assert isinstance(sent, Sent)
    return stage.seen("ana")[-1]


async def test_a_tap_brings_its_data_and_whoever_tapped(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    seen = await asked(channel, stage, Choice(label="approve", data="w:tok:0"))
    await stage.tap("ana", seen, "approve")
    (given,) = door.taken
    assert (given.kind, given.data, given.text, given.ref) == ("tap", "w:tok:0", "approve", seen.ref)
    assert given.sender.ref == stage.ref("ana")


async def test_a_tap_that_nobody_speaks_to_is_answered_without_words(
    channel: Telegram, stage: TelegramStage, api: BotApi
) -> None:
    await stage.tap("ana", await asked(channel, stage, Choice(label="yes", data="w:t:0")), "yes")
    async with api.changed:
        await asyncio.wait_for(api.changed.wait_for(lambda: api.answered), 5)
    assert not next(iter(api.answered.values())).get("text")


async def test_a_tap_is_told_once_and_a_refusal_is_to_be_closed_by_hand(
    start: Start, stage: TelegramStage, door: MemoryDoor, api: BotApi
) -> None:
    channel = await start(quiet_s=60.0)
    await stage.ready()
    await stage.tap("ana", await asked(channel, stage, Choice(label="yes", data="w:t:0")), "yes")
    await channel.tell(door.taken[0], "This is Bo's to answer.", alert=True)
    (answer,) = api.answered.values()
    assert (answer["text"], answer["show_alert"]) == ("This is Bo's to answer.", True)
    assert stage.told("ana") == ["This is Bo's to answer."]


async def test_words_to_a_tap_from_before_a_restart_come_as_a_message(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor, api: BotApi
) -> None:
    await stage.tap("ana", await asked(channel, stage, Choice(label="yes", data="w:t:0")), "yes")
    api.answered[api.last["callback_query"]["id"]] = {}
    await channel.tell(door.taken[0], "Ana answered `yes` at 10:41. Nothing changed.")
    assert stage.seen("ana")[-1].text.startswith("Ana answered")


async def test_more_than_fits_a_notice_is_told_in_a_message_as_well(
    start: Start, stage: TelegramStage, door: MemoryDoor, api: BotApi
) -> None:
    channel = await start(quiet_s=60.0)
    await stage.ready()
    await stage.tap("ana", await asked(channel, stage, Choice(label="yes", data="w:t:0")), "yes")
    await channel.tell(door.taken[0], "y" * 201)
    assert len(next(iter(api.answered.values()))["text"]) == 200
    assert stage.seen("ana")[-1].text == "y" * 201


async def test_a_choice_with_consequences_asks_once_more_and_only_then_comes_in(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor, api: BotApi
) -> None:
    seen = await asked(
        channel, stage, Choice(label="deploy", data="w:t:0", sure="Deploy now?"), Choice(label="wait", data="w:t:1")
    )

    async def tapped(label: str) -> tuple[str, ...]:
        now = stage.seen("ana")[-1]
        await stage.tap("ana", now, label)
        async with api.changed:
            await asyncio.wait_for(api.changed.wait_for(lambda: stage.seen("ana")[-1].edits > now.edits), 5)
        return stage.seen("ana")[-1].buttons

    assert seen.buttons == ("deploy", "wait")
    assert await tapped("deploy") == ("yes, deploy", "back", "wait")
    assert stage.told("ana") == ["Deploy now?"]
    assert await tapped("back") == ("deploy", "wait")
    assert await tapped("deploy") == ("yes, deploy", "back", "wait")
    assert door.taken == []
    await stage.tap("ana", stage.seen("ana")[-1], "yes, deploy")
    assert [given.data for given in door.taken] == ["w:t:0"]
