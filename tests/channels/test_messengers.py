"""The whole product on the messengers: what only they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.chat.chat import Chat
from bot.wiring import Product
from channels.telegram.channel import Telegram
from store import people
from tests.channels.world import Stand, stand
from tests.doubles.line import LineStage
from tests.doubles.telegram import TEAM, TOKEN, TelegramStage
from tests.runtime.world import PEOPLE, settings

pytestmark = pytest.mark.anyio
FORM = """- when = ask @ana
  > When do you start?
  ```json
  {fields: [{name: "day", type: "date"}, {name: "people", type: "number", min: 1}]}
  ```
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=[TelegramStage, LineStage], ids=["telegram", "line"])
def stage(request: pytest.FixtureRequest) -> Any:
    return request.param()


async def test_a_form_is_asked_for_field_by_field_and_again_where_one_is_wrong(stage: Any, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await at.alone("ana", "When do you start?")
        await stage.fill("ana", card, {"day": "2026-03-04", "people": "0"})
        again = await at.shows("ana", "must be at least 1")
        assert (await at.run(state="waiting"))["ops"][0]["state"] == "waiting"
        await stage.reply("ana", again, "2")
        assert (await at.run())["ops"][0]["value"] == {"day": "2026-03-04", "people": 2}


async def test_the_next_words_answer_the_field_that_was_asked_last_but_no_command_does(
    stage: Any, tmp_path: Path
) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.paste("bo", FORM)
        card = await at.alone("ana", "When do you start?")
        await stage.tap("ana", card, "Answer")
        await at.shows("ana", "(1 of 2)")
        await stage.write("ana", "help")
        await at.was_told("ana", "Paste a script")
        await stage.write("ana", "2026-03-04")
        await at.shows("ana", "(2 of 2)")
        await stage.write("ana", "2")
        assert (await at.run())["ops"][0]["value"] == {"day": "2026-03-04", "people": 2}


async def test_whoever_presses_start_on_their_invitation_is_known_from_then_on(tmp_path: Path) -> None:
    stage = TelegramStage()
    async with stand(stage, tmp_path) as at:
        await at.product.committer.write(lambda tx: people.put(tx, "mika@acme.de", "Mika"))
        at.product.people_changed()
        telegram = at.chat.channels["telegram"]
        assert isinstance(telegram, Telegram)
        address = await telegram.invite(await at.product.desk.proof("mika@acme.de"))
        assert isinstance(address, str) and address.startswith("https://t.me/waiton_bot?start=")
        await stage.write("mika", f"/start {address.rpartition('=')[2]}")
        assert "You are Mika here now" in await at.was_told("mika", "Mika")


async def test_a_script_that_the_client_split_is_asked_for_as_a_file_and_no_part_of_it_starts(tmp_path: Path) -> None:
    stage = TelegramStage()
    async with stand(stage, tmp_path) as at:
        first = "- note = list x\n" * 260
        api, at_once = stage.api, {"chat": TEAM, "date": 1772442720}
        mention = [{"type": "mention", "offset": 0, "length": 11}]
        await api.happens(**api.said("bo", f"@waiton_bot\n{first[:4080]}", entities=mention, **at_once))
        await api.happens(**api.said("bo", "- show note", **at_once))
        await at.shows("bo", "Send it as a file")
        assert await at.product.desk.find_runs() == []


async def test_a_bot_that_is_polled_takes_a_script_and_settles_a_card(tmp_path: Path) -> None:
    """The contract suite gives the product an address, which Telegram calls; this one has none."""
    stage = TelegramStage()
    who = tuple(replace(p, identities={"telegram": stage.ref(p.name.lower())}) for p in PEOPLE)
    async with stage:
        product = Product(settings(tmp_path, people=who, channels=frozenset({"web", "telegram"})))
        telegram = Telegram(token=TOKEN, base_url=stage.env["TELEGRAM_BASE_URL"], now=product.clock.now)
        chat = Chat(product, {"telegram": telegram})
        await product.start()
        await chat.start()
        await stage.ready()
        at = Stand(stage=stage, product=product, chat=chat)
        await stage.paste("bo", "- scope = ask @ana approve decline\n  > Extend?\n", form="code")
        await stage.tap("ana", await at.card("ana", "Extend?"), "approve")
        await stage.again()
        assert (await at.run())["ops"][0]["value"] == "approve"
        assert not (await at.shows("ana", "Ana answered “approve”")).buttons
        assert stage.api.polls > 1 and stage.api.hook is None
        await chat.stop()
        await product.stop()
