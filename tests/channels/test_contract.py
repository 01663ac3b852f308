"""What a channel must do, told once and played on every platform."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest

from bot.runtime.tools import tool
from bot.wiring import Product
from store import people, runs
from tests.channels.stage import Lacks, Stage
from tests.channels.world import Maker, Stand, playing, stand
from tests.doubles.line import LineStage
from tests.doubles.plain import Plain
from tests.doubles.room import RoomStage
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import START, settings, until

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline\n  > Extend the pilot?\n- say\n  > It was {scope}\n"
STAGES: dict[str, Maker] = {
    "plain": Plain,
    "slack": SlackStage,
    "slack-http": lambda: SlackStage(http=True),
    "telegram": TelegramStage,
    "line": LineStage,
    "web": RoomStage,
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=list(STAGES))
def stage(request: pytest.FixtureRequest) -> Stage:
    return STAGES[request.param]()


async def asked(at: Stand, form: str = "text") -> None:
    await at.stage.paste("bo", ASK, form=form)


def typing(stage: Stage) -> None:
    """What is done by typing in a chat is done by pages in the room (`tests/web`)."""
    if stage.name == "web":
        raise Lacks("the room has pages for it")


# --- a script comes in ----------------------------------------------------------------------------------------------
async def test_a_pasted_script_asks_settles_and_says(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        assert card.buttons[:2] == ("approve", "decline")
        assert "until" in card.text or stage.name in ("plain", "web")  # the window as it will be, 14 days
        await stage.tap("ana", card, "approve")
        told = await at.run()
        first = told["ops"][0]
        assert (first["op"], first["state"], first["value"], first["by"]) == ("ask", "done", "approve", "ana@acme.de")
        await at.shows("bo", "It was approve")
        if stage.capabilities.edits:
            settled = await at.shows("ana", "Ana answered ")
            assert settled.ref == card.ref and not settled.buttons and re.search("answered [`“]approve", settled.text)


@pytest.mark.parametrize("form", ["code", "rich", "file"])
async def test_a_script_reads_the_same_in_whatever_form_it_was_pasted(stage: Stage, tmp_path: Path, form: str) -> None:
    async with stand(stage, tmp_path) as at:
        try:
            await asked(at, form)
        except NotImplementedError:
            pytest.skip(f"{stage.name} has no {form}")
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "decline")
        assert (await at.run())["ops"][0]["value"] == "decline"


async def test_a_wrong_script_is_refused_with_its_place_and_nothing_starts(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", "- files = list a b\n- n = count fils\n")
        reply = await at.shows("bo", "Nothing has started")
        assert re.search(r"2:|line 2", reply.text) and "files" in reply.text
        assert "^" in reply.text or stage.name == "web"
        assert await at.product.desk.find_runs() == []
        if "Mend and run" in reply.buttons:
            await stage.tap("bo", reply, "Mend and run")
            await at.run()


async def test_what_would_overtake_an_ask_is_held_until_its_author_has_chosen(stage: Stage, tmp_path: Path) -> None:
    typing(stage)
    calls: list[str] = []

    async def deploy() -> str:
        calls.append("deploy")
        return "ok"

    async with stand(stage, tmp_path, (tool("deploy", deploy),)) as at:
        await stage.paste("bo", ASK + "- deploy\n")
        held = await at.card("bo", "It has not started")
        assert await at.product.desk.find_runs() == [] and "Run as written" in held.buttons
        await stage.tap("ana", held, "Run as written")
        await at.was_told("ana", "Bo, who pasted it")
        await stage.tap("bo", held, "Wait for the answer")
        card = await at.card("ana", "Extend the pilot?")
        assert calls == []
        await stage.tap("ana", card, "approve")
        await at.run()
        assert calls == ["deploy"]


async def test_somebody_who_is_nobody_here_starts_nothing(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.write("mika", ASK)
        await stage.write("bo", "help")
        await at.was_told("bo", "Paste a script")
        assert await at.product.desk.find_runs() == []


# --- answers --------------------------------------------------------------------------------------------------------
async def test_a_card_is_its_addressees_alone(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path, workspace=_threads()) as at:
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        if at.open("bo", "Extend the pilot?") is None:
            pytest.skip("nobody else sees the card")
        await stage.tap("bo", card, "approve")
        assert "Ana" in await at.was_told("bo", "Nothing changed")
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"
        await stage.tap("ana", card, "approve")
        await at.run()


def _threads() -> object:
    from bot.domain.catalog import Workspace

    return Workspace(cards="thread")


async def test_words_answer_a_card(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", "- why = ask @ana\n  > What happened?\n- say\n  > Because {why}\n")
        card = await at.alone("ana", "What happened?")
        await stage.reply("ana", card, "The disk is full")
        assert (await at.run())["ops"][0]["value"] == "The disk is full"


async def test_a_choice_may_be_typed(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.reply("ana", card, "Approve")
        assert (await at.run())["ops"][0]["value"] == "approve"


async def test_a_choice_may_be_typed_by_its_number_with_a_reason(stage: Stage, tmp_path: Path) -> None:
    typing(stage)
    script = "- scope = ask @ana approve decline\n  > Extend the pilot?\n  ```json\n  {reason: ['decline']}\n  ```\n"
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", script)
        card = await at.card("ana", "Extend the pilot?")
        await stage.reply("ana", card, "2: too early")
        told = (await at.run())["ops"][0]
        assert (told["value"], told["reason"]) == ("decline", "too early")


async def test_a_late_tap_is_told_what_settled_it(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        await at.run()
        await stage.tap("ana", card, "decline")
        assert "approve" in await at.was_told("ana", "Nothing changed")


async def test_what_comes_twice_counts_once(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        await stage.again()
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        await stage.again()
        await at.run()
        assert len(await at.product.desk.find_runs()) == 1
        assert len([m for m in stage.seen("ana") if "It was approve" in m.text]) <= 1


async def test_what_is_forged_is_not_taken(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        await at.card("ana", "Extend the pilot?")
        assert not await stage.forged()
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"


async def test_a_hundred_taps_at_once_settle_once(stage: Stage, tmp_path: Path) -> None:
    calls: list[str] = []

    async def deploy() -> str:
        calls.append("deploy")
        return "ok"

    async with stand(stage, tmp_path, (tool("deploy", deploy),)) as at:
        await stage.paste("bo", ASK + "- deploy after scope\n")
        card = await at.card("ana", "Extend the pilot?")
        await asyncio.gather(*(stage.tap("ana", card, ("approve", "decline")[n % 2]) for n in range(100)))
        told = await at.run()
        assert told["ops"][0]["value"] in ("approve", "decline") and calls == ["deploy"]


FORM = """- when = ask @ana
  > When do you start?
  ```json
  {fields: [{name: "day", type: "date"}, {name: "people", type: "number", min: 1}]}
  ```
"""


async def test_a_form_is_filled_and_what_is_wrong_in_it_is_said_at_its_field(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await at.alone("ana", "When do you start?")
        if not stage.capabilities.forms:
            pytest.skip(f"{stage.name} has no forms")
        wrong = await stage.fill("ana", card, {"day": "2026-03-04", "people": "0"})
        assert "people" in wrong
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"
        assert not await stage.fill("ana", card, {"day": "2026-03-04", "people": "2"})
        assert (await at.run())["ops"][0]["value"] == {"day": "2026-03-04", "people": 2}


async def test_whoever_proves_who_they_are_is_reached_there(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await at.product.committer.write(lambda tx: people.put(tx, "mika@acme.de", "Mika"))
        at.product.people_changed()
        secret = await at.product.desk.proof("mika@acme.de")
        await stage.write("mika", f"link {secret}")
        assert "You are Mika here now" in await at.was_told("mika", "Mika")
        await stage.paste("bo", ASK.replace("@ana", "@mika"))
        card = await at.card("mika", "Extend the pilot?")
        await stage.tap("mika", card, "approve")
        assert (await at.run())["ops"][0]["by"] == "mika@acme.de"


async def test_what_can_be_typed_is_answered(stage: Stage, tmp_path: Path) -> None:
    typing(stage)
    async with stand(stage, tmp_path) as at:
        await asked(at)
        await at.card("ana", "Extend the pilot?")
        await stage.write("ana", "inbox")
        await at.was_told("ana", "/a/")
        await stage.write("bo", "check\n- n = count fils")
        await at.was_told("bo", "count fils")
        await stage.write("bo", "rehearse\n" + ASK)
        assert "nothing was stored or sent" in await at.was_told("bo", "ways through it")
        await stage.write("bo", "why")
        await stage.write("bo", "debug-paste")
        await at.was_told("bo", "This is what arrived")
        await stage.write("bo", "cancel")
        await at.was_told("bo", "Nothing runs here")


# --- what goes wrong -------------------------------------------------------------------------------------------------
async def test_a_platform_that_was_away_loses_and_doubles_nothing(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        stage.away(2)
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        await at.run()
        await at.shows("bo", "It was approve")
        assert len([m for m in stage.seen("bo") if "It was approve" in m.text]) == 1


async def test_an_answer_that_is_lost_doubles_no_card_that_can_be_looked_up(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.write("ana", "help")
        stage.lose(3)
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        await at.run()
        if stage.capabilities.looks_up:
            assert len([m for m in stage.seen("ana") if "Extend the pilot?" in m.text and m.ref != card.ref]) <= 1


async def test_a_card_answered_while_the_platform_was_not_served_converges(stage: Stage, tmp_path: Path) -> None:
    async with stage:
        async with playing(stage, tmp_path) as at:
            await asked(at)
            card = await at.card("ana", "Extend the pilot?")
            run = (await at.run(state="waiting"))["id"]
        elsewhere = Product(settings(tmp_path), guest=True)
        await elsewhere.start()
        said = await elsewhere.desk.answer(run, "scope", "approve", by="ana@acme.de")
        await elsewhere.stop()
        assert said.accepted
        async with playing(stage, tmp_path) as at:
            await at.run()
            await at.shows("bo", "It was approve")
            if stage.capabilities.edits:
                await until(lambda: any(m.ref == card.ref and not m.buttons for m in stage.seen("ana")))
            await stage.tap("ana", card, "decline")
            assert "approve" in await at.was_told("ana", "Nothing changed")


async def test_a_burst_of_cards_reaches_its_person_once_each(stage: Stage, tmp_path: Path) -> None:
    typing(stage)
    async with stand(stage, tmp_path) as at:
        await stage.write("ana", "prefer " + stage.name)
        await at.was_told("ana", "Your cards go to")
        await at.product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        for n in range(120):
            await at.product.desk.start(f"- a = ask @ana yes no\n  > Number {n}?\n", by="bo@acme.de", job="j")
        await until(lambda: _numbers(stage) >= set(range(120)))
        found = [m for m in stage.seen("ana") if "Number" in m.text]
        assert len(found) == 120


def _numbers(stage: Stage) -> set[int]:
    return {int(n[1]) for m in stage.seen("ana") if (n := re.search(r"Number (\d+)\?", m.text))}


async def test_a_platform_that_is_busy_is_waited_for(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        stage.busy(3, 0.05)
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        await at.run()


async def test_a_card_that_reaches_nobody_is_in_the_room_and_its_owner_hears(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        stage.refuse("ana")
        await asked(at)
        await at.shows("bo", "It is in the room")
        told = await at.run(state="waiting")
        assert told["ops"][0]["state"] == "waiting"
        said = await at.product.desk.answer(told["id"], "scope", "approve", by="ana@acme.de")
        assert said.accepted
        await at.run()


async def test_it_is_acknowledged_once_it_is_stored(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await asked(at)
        card = await at.card("ana", "Extend the pilot?")
        await stage.tap("ana", card, "approve")
        assert 0 <= stage.acknowledged() < 2
        await at.run()


# --- the live message ------------------------------------------------------------------------------------------------
async def test_one_message_shows_how_a_run_stands_and_few_edits_keep_it_so(stage: Stage, tmp_path: Path) -> None:
    if not stage.capabilities.edits:
        pytest.skip("nothing can be changed there")
    async with stand(stage, tmp_path) as at:
        script = "".join(f"- v{n} = let {n}\n" for n in range(200)) + "- ok = ask @ana yes no\n  > Go on?\n"
        begun = time.monotonic()
        await stage.paste("bo", script)
        status = await at.shows("bo", "waiting on Ana")
        card = await at.card("ana", "Go on?")
        await stage.tap("ana", card, "yes")
        await at.run()
        await until(lambda: any(m.ref == status.ref and "waiting on" not in m.text for m in stage.seen("bo")))
        last = next(m for m in stage.seen("bo") if m.ref == status.ref)
        # One a second at most, whatever moves meanwhile.
        assert last.edits <= 2 + time.monotonic() - begun
