"""What somebody does by mistake, or to break it: nothing is lost by it, and nobody learns or does what is not theirs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.runtime.tools import tool
from bot.wiring import Product
from channels.base import Answer, Card, Refused, Sender, Thing
from store import people
from tests.channels.world import Stand, playing, stand
from tests.doubles.plain import ROOM, Plain
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import settings, until

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline\n  > Extend the pilot?\n- say\n  > It was {scope}\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Odd(Plain):
    """What people can do to a platform besides what its stage has."""

    async def bring(self, who: str, **given: Any) -> None:
        await self._bring(who, **given)

    def form(self) -> Card | None:
        """The card with a form that stands there."""
        return next((put.thing for put in self.put if isinstance(put.thing, Card) and put.thing.fields), None)


async def answers(at: Stand) -> None:
    """Whatever came before, the next thing is dealt with."""
    await at.stage.write("bo", "examples")
    await at.was_told("bo", "Each is one tap away")


# --- what is mangled ------------------------------------------------------------------------------------------------
MANGLED = ["w:", "w:x:²", "w:1.\ud800:1", "w:1.aaaa:٣", "w:" + "9" * 400, "s:²", "s:1.é:run", "s:1.\ud800:run", "\x00"]


@pytest.mark.parametrize("data", MANGLED, ids=ascii)
async def test_a_mangled_tap_is_taken_once_and_keeps_nothing_behind_it(data: str, tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.bring("mika", kind="tap", data=data, ref="1")
        await stage.bring("bo", kind="tap", data=data, ref="1")
        await answers(at)


@pytest.mark.parametrize("text", ["half \ud83d of it", "a\x00b", "\u202e- say hi", "[" * 5_000, "x" * 300_000], ids=len)
async def test_an_odd_text_keeps_nothing_behind_it(text: str, tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        for who in ("mika", "bo"):
            await stage.write(who, text)
        await stage.paste("bo", text)
        await answers(at)


async def test_half_a_character_in_an_answer_becomes_its_sign(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", "- why = ask @ana\n  > Why?\n- say\n  > Because {why}\n")
        card = await at.alone("ana", "Why?")
        await stage.reply("ana", card, "so \ud83d!")
        assert (await at.run())["ops"][0]["value"] == "so \ufffd!"


async def test_an_event_that_breaks_whatever_looks_at_it_keeps_nothing_behind_it(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        looks = at.product.inbox.doormen["plain"]

        async def stumbles(number: int, event: dict[str, Any]) -> Any:
            if event["event"]["text"] == "stumble":
                raise ValueError("a stone")
            return await looks(number, event)

        at.product.inbox.doormen["plain"] = stumbles
        await stage.write("bo", "stumble")
        await answers(at)


async def test_a_file_of_prose_is_no_script(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", "Dear all, the pilot goes on.", form="file")
        await at.was_told("bo", "There is no command in it. Nothing has started.")


# --- what is no command ---------------------------------------------------------------------------------------------
SENTENCES = [
    "cancel the meeting with Jonas", "check whether the server is up", "again please", "status update", "rehearse it",
    "edit that", "why not", "inbox zero", "help me",
]  # fmt: skip


@pytest.mark.parametrize("text", SENTENCES)
async def test_a_sentence_that_begins_like_a_command_is_none(text: str, tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.write("bo", ASK)
        await at.card("ana", "Extend the pilot?")
        await stage.write("bo", text)
        await at.was_told("bo", "This is no script.")
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"


async def test_a_script_below_a_sentence_with_check_is_checked_and_not_run(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.write("bo", "check this for me\n" + ASK)
        await at.was_told("bo", "it reads well. Nothing has started.")
        assert await at.product.desk.find_runs() == []


async def test_a_run_is_ended_with_a_reason_behind_a_colon(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.write("bo", ASK)
        await at.card("ana", "Extend the pilot?")
        await stage.write("bo", "Cancel: too early")
        await at.run(state="cancelled")


@pytest.mark.parametrize("text", ["status", "cancel", "2", "- say hi"])
async def test_what_answers_a_free_text_by_a_reply_is_its_answer(text: str, tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", "- why = ask @ana\n  > Why?\n")
        card = await at.alone("ana", "Why?")
        await stage.reply("ana", card, text)
        assert (await at.run())["ops"][0]["value"] == text


# --- whose it is ----------------------------------------------------------------------------------------------------
async def test_a_bot_that_speaks_under_a_persons_id_starts_nothing(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        bot = Sender(ref=stage.ref("bo"), name="Bo", kind="bot")
        await stage.bring("bo", kind="message", direct=True, text=ASK, sender=bot)
        await answers(at)
        assert await at.product.desk.find_runs() == []


async def test_words_for_somebody_who_is_gone_link_nobody(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await at.product.committer.write(lambda tx: people.put(tx, "mika@acme.de", "Mika"))
        secret = await at.product.desk.proof("mika@acme.de")
        await at.product.committer.write(lambda tx: people.remove(tx, "mika@acme.de"))
        at.product.people_changed()
        await stage.write("mika", f"link {secret}")
        await at.was_told("mika", "Nothing changed")
        assert await at.product.committer.read(people.identity_of, "plain", stage.ref("mika")) is None


async def test_a_conversation_that_was_somebody_elses_tells_nothing_of_then(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        where = await stage.write("bo", ASK)
        await at.card("ana", "Extend the pilot?")
        for word in ("status", "why", "again", "cancel"):
            await stage.bring("jonas", kind="message", direct=True, conversation=where, text=word)
        await until(lambda: len(stage.told("jonas")) == 4)
        assert stage.told("jonas") == ["Nothing has run here."] * 3 + ["Nothing runs here. Nothing changed."]
        assert (await at.run(state="waiting"))["state"] == "waiting"


async def test_the_address_of_a_card_that_others_read_answers_nothing_for_whoever_is_not_logged_in(
    tmp_path: Path,
) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await until(stage.form)
        assert card.place is not None
        async with httpx2.AsyncClient(headers={"accept": "application/json"}) as client:
            assert (await client.get(card.place[1])).status_code == 401
            said = await client.post(card.place[1], data={"f.day": "Monday", "f.time": "noon"})
        assert said.status_code == 401
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"


async def test_what_waits_on_somebody_is_not_told_where_others_read_it(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", ASK)
        await at.card("ana", "Extend the pilot?")
        await stage.bring("ana", kind="message", conversation=ROOM, mentioned=True, text="inbox")
        told = await at.was_told("ana", "waits on you")
        assert told.startswith("1 waits on you") and "/a/" not in told and "pilot" not in told


FORM = """- when = ask @ana
  > When?
  ```json
  {fields: [{name: "day", type: "text"}, {name: "time", type: "text"}], cards: "thread"}
  ```
"""


async def test_a_form_that_is_asked_in_a_group_takes_only_the_words_of_whom_it_asks(tmp_path: Path) -> None:
    async with stand(stage := TelegramStage(), tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await at.card("ana", "When?")
        await stage.tap("bo", card, "Answer")
        await at.was_told("bo", "This question is for Ana")
        await stage.tap("ana", card, "Answer")
        first = await at.shows("ana", "(1 of 2)")
        await stage.reply("bo", first, "never")
        await stage.reply("ana", first, "Monday")
        second = await at.shows("ana", "(2 of 2)")
        await stage.reply("ana", second, "noon")
        assert (await at.run())["ops"][0]["value"] == {"day": "Monday", "time": "noon"}


# --- what is held ---------------------------------------------------------------------------------------------------
async def deploy() -> str:
    return "ok"


HELD = ASK + "- deploy\n"


async def test_a_held_script_that_its_author_changes_runs_as_changed(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path, (tool("deploy", deploy),)) as at:
        said = {"conversation": ROOM, "mentioned": True, "ref": "m1"}
        await stage.bring("bo", kind="message", text=HELD, **said)
        await at.card("bo", "It has not started")
        await stage.bring("bo", kind="edited", text=HELD + "- say\n  > Changed.\n", **said)
        held = await until(lambda: next((m for m in stage.seen("bo") if m.edits and m.buttons), None))
        await stage.tap("bo", held, "Run as written")
        assert [op["op"] for op in (await at.run(state="waiting"))["ops"]] == ["ask", "say", "deploy", "say"]


async def test_a_script_that_was_discarded_starts_by_no_button_that_still_stands(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path, (tool("deploy", deploy),)) as at:
        await stage.paste("bo", HELD)
        held = await at.card("bo", "It has not started")
        await stage.tap("bo", held, "Discard")
        await at.shows("bo", "Nothing has started")
        await stage.tap("bo", held, "Run as written")
        await at.was_told("bo", "This script was discarded")
        assert await at.product.desk.find_runs() == []


# --- what is cut off ------------------------------------------------------------------------------------------------
async def test_a_process_beside_the_serving_one_leaves_what_came_from_platforms_to_it(tmp_path: Path) -> None:
    stage = Odd()
    async with stage:
        async with playing(stage, tmp_path) as at:
            await stage.paste("bo", ASK)
            card = await at.card("ana", "Extend the pilot?")
            await at.product.inbox.stop()
            await stage.tap("ana", card, "approve")
        guest = Product(settings(tmp_path), guest=True)
        await guest.start()
        await guest.desk.event("auth.first_signin", {"email": "mika@acme.de"}, ident="1")
        await guest.stop()
        async with playing(stage, tmp_path) as at:
            assert (await at.run())["ops"][0]["value"] == "approve"


async def test_what_follows_a_script_at_once_is_dealt_with_after_it(tmp_path: Path) -> None:
    stage = Odd()
    async with stage:
        async with playing(stage, tmp_path) as at:
            await at.product.inbox.stop()
            await stage.write("bo", ASK)
            await stage.write("bo", "cancel")
        async with playing(stage, tmp_path) as at:
            await at.run(state="cancelled")


class Choked(Odd):
    """A platform without forms, on which the second field of one cannot be asked at first."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = replace(self.capabilities, forms=False)
        self.choked = 1

    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        if isinstance(thing, Card) and "(2 of 2)" in thing.text and self.choked:
            self.choked -= 1
            return Refused(why="too long")
        return await super().send(conversation, thing, ident=ident, again=again)


async def test_a_field_that_could_not_be_followed_by_the_next_is_answered_once_more(tmp_path: Path) -> None:
    async with stand(stage := Choked(), tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await until(stage.form)
        await stage.bring("ana", kind="tap", conversation=ROOM, data=f"w:{card.token}")
        first = await at.shows("ana", "(1 of 2)")
        await stage.reply("ana", first, "Monday")
        await at.was_told("ana", "could not be put")
        await stage.reply("ana", first, "Tuesday")
        second = await at.shows("ana", "(2 of 2)")
        await stage.reply("ana", second, "noon")
        assert (await at.run())["ops"][0]["value"] == {"day": "Tuesday", "time": "noon"}


# --- what is shown --------------------------------------------------------------------------------------------------
async def test_a_reason_that_nobody_gave_is_not_shown_as_one(tmp_path: Path) -> None:
    script = "- scope = ask @ana approve decline\n  > Extend?\n  ```json\n  {reason: 'optional'}\n  ```\n"
    async with stand(stage := Odd(), tmp_path) as at:
        await stage.paste("bo", script)
        card = await at.card("ana", "Extend?")
        await stage.tap("ana", card, "approve")
        assert (await at.run())["ops"][0]["reason"] is None
        settled = await at.shows("ana", "Ana answered")
        assert "optional" not in settled.text


async def test_what_is_said_to_a_script_waits_until_the_platform_is_back(tmp_path: Path) -> None:
    async with stand(stage := Odd(), tmp_path) as at:
        stage.away(6)
        await stage.paste("bo", "- files = list a b\n- n = count fils\n")
        await at.shows("bo", "Nothing has started")
