"""What goes out on Telegram: as it is meant, within its limits, and what becomes of it when Telegram says no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from channels.base import (
    Attached,
    Card,
    Choice,
    FormField,
    Later,
    Line,
    Message,
    Problems,
    Refused,
    Sent,
    Settled,
    Status,
)
from channels.telegram.channel import Telegram
from tests.channels.telegram.world import NOON, made
from tests.doubles.door import MemoryDoor
from tests.doubles.telegram import PEOPLE, TEAM, TOKEN, BotApi, Refusal, TelegramStage, units

pytestmark = pytest.mark.anyio
ANA = "telegram:101"
MORE = (Choice(label="not mine", data="m:0"), Choice(label="hand over", data="m:1"), Choice(label="later", data="m:2"))


def card(*labels: str, **more: object) -> Card:
    choices = tuple(Choice(label=label, data=f"w:tok:{n}") for n, label in enumerate(labels))
    given = {"kind": "card", "token": "tok", "title": "Extend the pilot?", "text": "", "choices": choices}
    return Card(**(given | more))  # type: ignore[arg-type]


async def sent(channel: Telegram, thing: object, ident: str = "d1", where: str = ANA) -> Sent:
    said = await channel.send(where, thing, ident=ident)  # type: ignore[arg-type]
    assert isinstance(said, Sent), said
    return said


# --- cards -----------------------------------------------------------------------------------------------------------
async def test_a_card_has_a_row_for_each_choice_and_one_for_what_else_can_be_done(
    channel: Telegram, stage: TelegramStage
) -> None:
    given = card(
        "approve",
        "decline",
        text="Include S/4 writes?",
        more=MORE,
        params=(("service", "s4"), ("mode", "writes")),
        taps="approve: deploy api · decline: ends",
        asker="Jonas asks",
        since=NOON - timedelta(minutes=30),
        until=NOON + timedelta(days=2),
        place=("Pilot", "https://waiton.acme.de/jobs/7"),
    )
    said = await sent(channel, given)
    seen = stage.seen("ana")[-1]
    assert (said.ref, said.note) == (seen.ref, None)
    assert seen.buttons == ("approve", "decline", "not mine", "hand over", "later")
    assert [len(row) for row in stage.api.messages[101, int(seen.ref)].keyboard] == [1, 1, 3]
    assert seen.text == (
        "Extend the pilot?\n\nInclude S/4 writes?\n\nservice: s4\nmode: writes\n\napprove: deploy api · decline: ends"
        "\n\nJonas asks · since 11:30 · until Wed 12:00\n\nPilot"
    )
    kinds = {entity["type"]: entity.get("url") for entity in stage.api.messages[101, int(seen.ref)].entities}
    assert kinds == {"bold": None, "pre": None, "italic": None, "text_link": "https://waiton.acme.de/jobs/7"}


async def test_many_short_choices_stand_two_in_a_row_and_long_ones_are_numbered(
    channel: Telegram, stage: TelegramStage
) -> None:
    await sent(channel, card(*(f"{n}:00" for n in range(8, 14))))
    assert [len(row) for row in stage.api.messages[101, int(stage.seen("ana")[-1].ref)].keyboard] == [2, 2, 2]
    await sent(channel, card("x" * 41, "no"), "d2")
    seen = stage.seen("ana")[-1]
    assert seen.buttons == ("1", "2")
    assert seen.text.endswith(f"1. {'x' * 41}\n2. no")


async def test_choices_from_twenty_six_on_come_in_pages_that_turn_without_the_door(
    channel: Telegram, stage: TelegramStage, api: BotApi, door: MemoryDoor
) -> None:
    await sent(channel, card(*(f"room {n}" for n in range(25))), "d0")
    assert len(stage.seen("ana")[-1].buttons) == 25
    await sent(channel, card(*(f"room {n}" for n in range(26)), more=MORE))
    seen = stage.seen("ana")[-1]
    assert seen.buttons[:9] == (*(f"room {n}" for n in range(8)), "◀")

    async def turn(label: str) -> tuple[str, ...]:
        now = stage.seen("ana")[-1]
        await stage.tap("ana", now, label)
        async with api.changed:
            await asyncio.wait_for(api.changed.wait_for(lambda: stage.seen("ana")[-1].edits > now.edits), 5)
        return stage.seen("ana")[-1].buttons

    assert await turn("▶") == (
        *(f"room {n}" for n in range(8, 16)),
        "◀",
        "2 / 4",
        "▶",
        "not mine",
        "hand over",
        "later",
    )
    assert await turn("◀") == seen.buttons
    assert (await turn("◀"))[:2] == ("room 24", "room 25")
    assert door.taken == []
    await stage.tap("ana", stage.seen("ana")[-1], "room 25")
    assert [given.data for given in door.taken] == ["w:tok:25"]


async def test_words_and_forms_are_answered_by_a_button_that_opens_them_and_the_card_stays_changeable(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    await sent(channel, card(more=MORE))
    free = stage.seen("ana")[-1]
    assert free.buttons == ("Answer", "not mine", "hand over", "later")
    assert "Reply to this message" in free.text
    await sent(channel, card(fields=(FormField(name="day", label="Which day"),)), "d2")
    form = stage.seen("ana")[-1]
    assert (form.buttons, "Which day" in form.text) == (("Answer",), True)
    await stage.tap("ana", form, "Answer")
    await stage.reply("ana", free, "Tuesday")
    assert [(g.kind, g.data, g.reply_to) for g in door.taken] == [("tap", "w:tok", None), ("message", "", free.ref)]
    assert isinstance(await channel.edit(ANA, free.ref, settled()), Sent)


async def test_one_field_that_is_asked_for_opens_a_reply_and_nothing_else(
    channel: Telegram, stage: TelegramStage
) -> None:
    await sent(channel, card(title="", text="Which day? (1 of 2)"))
    seen = stage.seen("ana")[-1]
    assert (seen.text, seen.buttons) == ("Which day? (1 of 2)", ())
    assert stage.api.messages[101, int(seen.ref)].force is not None
    await sent(channel, card(title="", text="Which day?"), "d2", f"telegram:{TEAM}/9")
    assert stage.api.messages[TEAM, int(stage.seen("ana")[-1].ref)].force is None, "it would open for everybody"


async def test_a_form_is_filled_field_by_field(channel: Telegram, stage: TelegramStage, door: MemoryDoor) -> None:
    said = await sent(channel, card(fields=(FormField(name="day", label="Day"), FormField(name="who", label="Who"))))
    asked = {"tap": "Day?", "Tuesday": "Who?"}
    doing: list[asyncio.Task[object]] = []

    def answer(given: object) -> None:
        text = getattr(given, "text", "")
        if getattr(given, "kind", "") == "tap" or text in asked:
            thing = card(title="", text=asked.get(text, "Day?"))
            doing.append(asyncio.ensure_future(channel.send(ANA, thing, ident=text)))
        else:
            doing.append(asyncio.ensure_future(channel.edit(ANA, str(said.ref), settled())))

    door.acts = answer
    assert await stage.fill("ana", stage.seen("ana")[-1], {"day": "Tuesday", "who": "Bo"}) == {}
    assert [given.text for given in door.taken] == ["Answer", "Tuesday", "Bo"]


def settled(text: str = "") -> Settled:
    return Settled(title="Extend the pilot?", text=text, outcome="Ana picked approve", at=NOON, reason="all green")


async def test_a_settled_card_says_what_came_of_it_and_has_nothing_to_tap(
    channel: Telegram, stage: TelegramStage
) -> None:
    said = await sent(channel, card("approve", "decline"))
    assert await channel.edit(ANA, str(said.ref), settled()) == Sent(ref=said.ref)
    seen = stage.seen("ana")[-1]
    assert seen.buttons == ()
    assert seen.text == "Ana picked approve, 12:00\nall green\n\nExtend the pilot?"


async def test_the_same_edit_twice_counts_as_done(channel: Telegram, stage: TelegramStage) -> None:
    said = await sent(channel, card("approve"))
    for _ in range(2):
        assert await channel.edit(ANA, str(said.ref), settled()) == Sent(ref=said.ref)
    assert stage.seen("ana")[-1].edits == 1


async def test_a_long_outcome_is_cut_in_its_question_never_in_what_came_of_it(
    channel: Telegram, stage: TelegramStage
) -> None:
    said = await sent(channel, card("approve"))
    await channel.edit(ANA, str(said.ref), settled("😀" * 4000))
    text = stage.seen("ana")[-1].text
    assert units(text) <= 4096 and text.startswith("Ana picked approve") and text.endswith("…")


# --- limits ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("length", "parts"), [(4096, 1), (4097, 2), (9000, 3)])
async def test_a_long_message_is_parted_and_its_buttons_stand_below_the_last(
    channel: Telegram, stage: TelegramStage, length: int, parts: int
) -> None:
    said = await sent(channel, Message(text="x" * length, choices=(Choice(label="ok", data="w:t:0"),)))
    seen = stage.seen("ana")
    assert [one.buttons for one in seen] == [()] * (parts - 1) + [("ok",)]
    assert (said.ref, "".join(one.text for one in seen)) == (seen[-1].ref, "x" * length)


async def test_parts_end_at_line_breaks_and_count_as_telegram_counts(channel: Telegram, stage: TelegramStage) -> None:
    lines = ["😀" * 20 for _ in range(120)]
    await sent(channel, Message(text="\n".join(lines)))
    texts = [one.text for one in stage.seen("ana")]
    assert len(texts) == 2 and all(units(text) <= 4096 for text in texts)
    assert "\n".join(texts).split("\n") == lines


@pytest.mark.parametrize(("size", "buttons"), [(64, ("ok",)), (65, ())])
async def test_what_no_button_can_carry_stands_as_a_number_in_the_text_and_the_owner_hears_of_it(
    channel: Telegram, stage: TelegramStage, size: int, buttons: tuple[str, ...]
) -> None:
    said = await sent(
        channel, Message(text="Coming?", choices=(Choice(label="ok", data="é" * (size // 2) + "x" * (size % 2)),))
    )
    seen = stage.seen("ana")[-1]
    assert seen.buttons == buttons
    assert (said.note is None) == bool(buttons)
    if not buttons:
        assert seen.text == "Coming?\n\n1. ok" and "64 bytes" in str(said.note)


async def test_more_buttons_than_a_keyboard_takes_stand_as_numbers(channel: Telegram, stage: TelegramStage) -> None:
    choices = tuple(Choice(label=str(n), data=f"w:t:{n}") for n in range(101))
    said = await sent(channel, Message(text="Which?", choices=choices))
    assert stage.seen("ana")[-1].buttons == () and "100 buttons" in str(said.note)


async def test_a_refusal_of_the_form_is_sent_again_as_plain_text(
    channel: Telegram, api: BotApi, stage: TelegramStage
) -> None:
    api.inject["sendMessage"] = [Refusal(400, "Bad Request: BUTTON_TYPE_INVALID")]
    said = await sent(channel, card("approve", "decline"))
    assert stage.seen("ana")[-1].text.endswith("1. approve\n2. decline")
    assert "plain text" in str(said.note)


async def test_names_and_answers_are_never_taken_for_markup(channel: Telegram, stage: TelegramStage) -> None:
    text = "<b>Bo</b> & [x](tg://user?id=1) *_`~|>#+-=.! @channel"
    await sent(channel, card("approve", title=text, text=text + " again", asker=text))
    assert stage.seen("ana")[-1].text == f"{text}\n\n{text} again\n\n{text}"


async def test_an_address_that_telegram_lets_no_button_lead_to_stands_in_the_text(
    channel: Telegram, stage: TelegramStage
) -> None:
    said = await sent(
        channel,
        Message(
            text="Done.",
            choices=(
                Choice(label="Here", url="http://localhost:8484/runs/1"),
                Choice(label="There", url="https://acme.de"),
            ),
            place=("record", "http://127.0.0.1:8484/runs/1"),
        ),
    )
    seen = stage.seen("ana")[-1]
    assert (seen.buttons, said.note) == (("There",), None)
    assert seen.text == "Done.\nHere: http://localhost:8484/runs/1\n\nrecord: http://127.0.0.1:8484/runs/1"


async def test_files_and_images_go_along_and_the_text_is_what_is_answered(
    channel: Telegram, stage: TelegramStage
) -> None:
    said = await sent(
        channel,
        Message(
            parts=(
                Message(
                    title="Today", image="https://acme.de/cubic.png", choices=(Choice(label="18:00", data="18:00"),)
                ),
                Message(text="See you."),
            ),
            files=(Attached(name="plan.md", content=b"- a\r\n"),),
        ),
    )
    shown = stage.api.of(101)
    assert [one.photo or one.text or one.document for one in shown] == [
        "https://acme.de/cubic.png",
        "Today",
        "See you.",
        ("plan.md", b"- a\r\n"),
    ]
    assert said.ref == str(shown[2].id)


async def test_an_image_that_telegram_cannot_get_stands_as_an_address(channel: Telegram, stage: TelegramStage) -> None:
    said = await sent(channel, Message(text="Look", image="https://acme.de/gone"))
    assert [one.text for one in stage.seen("ana")] == ["https://acme.de/gone", "Look"]
    assert "image" in str(said.note)


# --- status and problems ---------------------------------------------------------------------------------------------
async def test_a_status_tells_past_now_and_next_with_times_in_the_workspaces_zone(
    channel: Telegram, stage: TelegramStage
) -> None:
    lines = (
        Line(tense="past", text="Ana picked approve", at=NOON - timedelta(days=1)),
        Line(tense="now", text="waiting on Bo", at=NOON - timedelta(minutes=28), until=NOON + timedelta(minutes=10)),
        Line(tense="next", text="deploy api"),
    )
    await sent(
        channel,
        Status(title="Pilot", state="waiting", lines=lines, done=1, of=3, notes=("the window ends on a holiday",)),
    )
    assert stage.seen("ana")[-1].text == (
        "Pilot\nwaiting · 1 of 3\n⚠ the window ends on a holiday\n\n✓ Ana picked approve, Sun 12:00\n"
        "▸ waiting on Bo since 11:32, until 12:10\n· deploy api"
    )


async def test_a_plan_of_two_thousand_lines_is_one_message_with_what_is_waited_on(
    channel: Telegram, stage: TelegramStage
) -> None:
    lines = [Line(tense=tense, text=f"{tense} {n}") for tense in ("past", "now", "next") for n in range(700)]  # type: ignore[arg-type]
    said = await sent(channel, Status(title="Big", state="waiting", lines=tuple(lines)))
    text = stage.seen("ana")[-1].text
    assert len(stage.seen("ana")) == 1 and text.count("now ") == 10 and "… 690 more waited for" in text
    assert isinstance(await channel.edit(ANA, str(said.ref), Status(title="Big", state="done")), Sent)


async def test_problems_stand_in_blocks_that_keep_their_carets_and_the_script_as_it_was_read_comes_first(
    channel: Telegram, stage: TelegramStage
) -> None:
    problem = "line 2, column 16: `first` takes the count first\n2 | - some = first files 5\n  |                ^^^^^^^"
    await sent(channel, Problems(head="Nothing runs yet.", problems=(problem,) * 12, script="- a = list x"))
    first, second = stage.seen("ana")
    assert first.text == "As it was read:\n- a = list x"
    assert second.text.count(problem) == 10 and second.text.endswith("and 2 more")
    await sent(channel, Problems(head="No.", problems=(problem,), script="- x\n" * 2000), "d2")
    assert stage.api.of(101)[2].document == ("as-read.md", b"- x\n" * 2000)


# --- what goes wrong -------------------------------------------------------------------------------------------------
async def test_a_busy_telegram_is_left_alone_for_as_long_as_it_asks(channel: Telegram, stage: TelegramStage) -> None:
    stage.busy(1, 126)
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and not said.lost
    assert (said.pause, said.scope) == (timedelta(seconds=126), "conversation")
    await sent(channel, card("approve"))
    assert len(stage.seen("ana")) == 1


async def test_a_group_takes_twenty_a_minute_and_then_says_how_long_to_wait(channel: Telegram, api: BotApi) -> None:
    api.a_minute = 20
    said = await sent(channel, Status(title="0", state="waiting"), where=f"telegram:{TEAM}/9")
    answers = [
        await channel.edit(f"telegram:{TEAM}/9", str(said.ref), Status(title=str(n), state="waiting"))
        for n in range(1, 30)
    ]
    assert [isinstance(one, Sent) for one in answers] == [True] * 19 + [False] * 10
    assert isinstance(answers[-1], Later) and answers[-1].pause == timedelta(seconds=37)


async def test_a_lost_answer_is_told_from_a_request_that_never_left(
    channel: Telegram, api: BotApi, stage: TelegramStage
) -> None:
    stage.lose(1)
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and said.lost and len(stage.seen("ana")) == 1
    api.inject["sendMessage"] = [Refusal(502, "Bad Gateway")]
    said = await channel.send(ANA, card("approve"), ident="d2")
    assert isinstance(said, Later) and said.lost
    nobody = Telegram(token=TOKEN, now=lambda: NOON, base_url="http://127.0.0.1:9/bot")
    said = await nobody.send(ANA, card("approve"), ident="d3")
    await nobody.stop()
    assert isinstance(said, Later) and not said.lost and said.scope == "channel"
    assert channel.capabilities.repeats == {"card"} and not channel.capabilities.looks_up


async def test_a_card_that_went_twice_settles_the_same_ask(
    channel: Telegram, stage: TelegramStage, door: MemoryDoor
) -> None:
    stage.lose(1)
    await channel.send(ANA, card("approve"), ident="d1")
    await channel.send(ANA, card("approve"), ident="d1", again=True)
    for seen in stage.seen("ana"):
        await stage.tap("ana", seen, "approve")
    assert [given.data for given in door.taken] == ["w:tok:0", "w:tok:0"]


async def test_what_was_broken_off_between_its_parts_goes_on_where_it_was(
    channel: Telegram, api: BotApi, stage: TelegramStage
) -> None:
    thing = Message(parts=(Message(text="one"), Message(text="two"), Message(text="three")))
    api.a_minute = 2
    where = f"telegram:{TEAM}/9"
    assert isinstance(await channel.send(where, thing, ident="d1"), Later)
    api.a_minute = None
    await channel.send(where, thing, ident="d1")
    assert [one.text for one in stage.seen("ana")] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("chat", "words"), [(PEOPLE["bo"], "blocked the bot"), (PEOPLE["mika"], "have not written"), (999, "no such chat")]
)
async def test_whoever_cannot_be_written_to_is_named_with_the_reason(
    channel: Telegram, stage: TelegramStage, chat: int, words: str
) -> None:
    stage.refuse("bo")
    said = await channel.send(f"telegram:{chat}", card("approve"), ident="d1")
    assert isinstance(said, Refused) and words in said.why and not said.stops


async def test_a_group_that_moved_is_followed_and_its_new_number_told(
    channel: Telegram, api: BotApi, stage: TelegramStage
) -> None:
    old = -5
    api.groups.add(old)
    said = await sent(channel, card("approve"), where=f"telegram:{old}")
    api.moved[old] = TEAM
    moved = await sent(channel, Message(text="hello"), "d2", f"telegram:{old}")
    assert moved.conversation == f"telegram:{TEAM}"
    edited = await channel.edit(f"telegram:{old}", str(said.ref), settled())
    assert isinstance(edited, Sent) and edited.conversation == f"telegram:{TEAM}"
    assert [one.text.partition(",")[0] for one in api.of(TEAM)] == ["hello", "Ana picked approve"]


async def test_what_is_no_conversation_is_refused(channel: Telegram) -> None:
    for where in ("telegram:@ana", "telegram:", "telegram:1/x"):
        said = await channel.send(where, card("approve"), ident="d1")
        assert isinstance(said, Refused) and where in said.why


async def test_a_message_that_is_gone_is_edited_no_more(channel: Telegram) -> None:
    said = await channel.edit(ANA, "4711", settled())
    assert isinstance(said, Refused) and said.why == "the message is gone"


async def test_a_token_that_was_taken_back_stops_everything(api: BotApi) -> None:
    channel = made(api, token="123456:other")
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Refused) and said.stops and "TELEGRAM_BOT_TOKEN" in said.why
    assert "TELEGRAM_BOT_TOKEN" in (await channel.check())[0].mend
    await channel.stop()


# --- what is checked -------------------------------------------------------------------------------------------------
async def test_a_webhook_of_somebody_elses_is_named_and_privacy_is_a_note(channel: Telegram, api: BotApi) -> None:
    faults = await channel.check()
    assert [fault.note for fault in faults] == [True]
    api.hook, api.sees_all = {"url": "https://else.example/hook"}, True
    faults = await channel.check()
    assert "https://else.example/hook" in " ".join(fault.what for fault in faults) and not any(f.note for f in faults)


async def test_a_person_is_reached_in_their_own_chat_and_nobody_is_found_by_address(channel: Telegram) -> None:
    assert await channel.reach("101") == ANA
    assert isinstance(await channel.reach("@ana"), Refused)
    assert await channel.find("ana@acme.de") is None


async def test_no_log_line_holds_the_token(
    start: Callable[..., Awaitable[Telegram]],
    api: BotApi,
    stage: TelegramStage,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(0)
    channel = await start()
    await stage.ready()
    await channel.send(ANA, card("approve"), ident="d1")
    api.inject["sendMessage"] = [Refusal(502, "Bad Gateway")]
    await channel.send(ANA, card("approve"), ident="d2")
    assert TOKEN not in caplog.text + capsys.readouterr().out


async def test_after_its_stop_nothing_goes_out_and_nothing_counts_as_lost(
    channel: Telegram, stage: TelegramStage
) -> None:
    await channel.stop()
    said = await channel.send(ANA, card("approve"), ident="d1")
    assert isinstance(said, Later) and not said.lost and stage.seen("ana") == []
