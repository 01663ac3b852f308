"""One answer everywhere: several surfaces at once, and customers on any of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot import examples
from bot.chat.chat import Chat
from bot.chat.platforms import channels_of
from bot.config import PLATFORMS
from bot.domain.catalog import Policy
from bot.runtime.clock import Clock, SetClock, SystemClock
from bot.runtime.desk import Desk
from bot.runtime.toolbox import configured_tools
from bot.runtime.tools import Tools
from bot.wiring import Product
from store import people, runs
from tests.channels.stage import Seen, Stage
from tests.channels.world import stand
from tests.doubles.line import LineStage
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import PEOPLE, START, settings, until

pytestmark = pytest.mark.anyio
FIRST = "- scope = ask role:all approve decline\n  > Extend the pilot?\n- say\n  > It was {scope}\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(slots=True, kw_only=True)
class Several:
    """A product on Slack and Telegram, with Ana on the one, Bo on the other, and Jonas in the room."""

    slack: SlackStage
    telegram: TelegramStage
    product: Product

    @property
    def desk(self) -> Desk:
        return self.product.desk

    async def card(self, stage: Stage, who: str, text: str) -> Seen:
        return await until(lambda: next((m for m in stage.seen(who) if text in m.text and m.buttons), None))


@asynccontextmanager
async def several(folder: Path, clock: Clock | None = None) -> AsyncGenerator[Several]:
    async with SlackStage() as slack, TelegramStage() as telegram:
        identities = {"Ana": {"slack": slack.ref("ana"), "telegram": telegram.ref("ana")},
                      "Bo": {"telegram": telegram.ref("bo")}, "Jonas": {}}  # fmt: skip
        given = {
            stage.name: {key: stage.env[name] for key, name in PLATFORMS[stage.name].items() if name in stage.env}
            for stage in (slack, telegram)
        }
        set_ = settings(
            folder, people=tuple(replace(p, identities=identities[p.name]) for p in PEOPLE),
            roles={"all": tuple(p.email for p in PEOPLE)}, policy=Policy(approve={}), platforms=given,
            channels=frozenset({"web", *given}),
        )  # fmt: skip
        product = Product(set_, clock=clock or SystemClock(), tools=Tools(()))
        chat = Chat(product, channels_of(set_, product.clock.now))
        await product.start()
        await product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        await chat.start()
        await asyncio.gather(slack.ready(), telegram.ready())
        for who in ("ana", "bo"):
            await telegram.write(who, "status")
        try:
            yield Several(slack=slack, telegram=telegram, product=product)
        finally:
            await chat.stop()
            await product.stop()


async def test_a_hundred_taps_on_three_surfaces_settle_once_and_every_card_shows_it(tmp_path: Path) -> None:
    async with several(tmp_path) as at:
        await at.product.committer.write(lambda tx: people.prefer(tx, "ana@acme.de", "slack"))
        await at.product.committer.write(lambda tx: people.prefer(tx, "bo@acme.de", "telegram"))
        at.product.people_changed()
        started = await at.desk.start(FIRST, by="jonas@acme.de", job="j")
        run = started.run or ""
        anas = await at.card(at.slack, "ana", "Extend the pilot?")
        bos = await at.card(at.telegram, "bo", "Extend the pilot?")
        labels = ("approve", "decline")
        accepted = await asyncio.gather(
            *(at.slack.tap("ana", anas, labels[n % 2]) for n in range(33)),
            *(at.telegram.tap("bo", bos, labels[n % 2]) for n in range(33)),
            *(at.desk.answer(run, "scope", labels[n % 2], by="jonas@acme.de") for n in range(34)),
        )
        told = await until(lambda: _ended(at, run))
        by, value = told["ops"][0]["by"], told["ops"][0]["value"]
        assert value in labels and len([a for a in told["ops"] if a["op"] == "ask"]) == 1
        jonas = [said for said in accepted if said is not None and said.accepted]
        assert bool(jonas) == (by == "jonas@acme.de")
        for stage, who, card in ((at.slack, "ana", anas), (at.telegram, "bo", bos)):
            await until(lambda stage=stage, who=who, card=card: _shows(stage, who, card.ref, value))


def _shows(stage: Stage, who: str, ref: str, value: str) -> bool:
    return any(
        m.ref == ref and not m.buttons and bool(re.search(f"answered [`“]{value}", m.text)) for m in stage.seen(who)
    )


async def _ended(at: Several, run: str) -> dict[str, Any] | None:
    told = await at.desk.show(run)
    return told if told["state"] == "done" else None


async def test_a_card_goes_where_its_person_wants_it_then_where_they_were_last(tmp_path: Path) -> None:
    async with several(tmp_path, SystemClock()) as at:
        ask = "- ask @ana yes no\n  > Number {}?\n"

        async def start(n: int) -> None:
            await at.desk.start(ask.format(n), by="bo@acme.de", job="j")

        await start(1)  # the job is in the room, and nobody has said otherwise
        assert (await at.desk.find_runs())[0].state == "running"
        await at.product.committer.write(lambda tx: people.prefer(tx, "ana@acme.de", "telegram"))
        at.product.people_changed()
        await start(2)
        await at.card(at.telegram, "ana", "Number 2?")
        await at.slack.write("ana", "prefer slack")
        await until(lambda: any("Your cards go to slack" in said for said in words(at.slack, "ana")))
        await start(3)
        await at.card(at.slack, "ana", "Number 3?")
        assert not any("Number 1?" in m.text for s in (at.slack, at.telegram) for m in s.seen("ana"))


def words(stage: Stage, who: str) -> list[str]:
    return [*stage.told(who), *(m.text for m in stage.seen(who))]


@pytest.mark.parametrize("make", [LineStage, TelegramStage])
async def test_a_customer_who_misses_the_window_is_asked_once_more_and_booked(make: Any, tmp_path: Path) -> None:
    stage, clock = make(), SetClock(START)
    script = (examples.script("booking") or "").replace("line:", f"{stage.name}:").replace("line_", f"{stage.name}_")
    demo = configured_tools(settings(tmp_path, tools={"demo": {"demo": True}})).tools
    async with stand(stage, tmp_path, tuple(demo.values()), clock) as at:
        await at.product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        seen = await at.product.desk.check(script, by="bo@acme.de", job="j")
        assert not seen.refused, seen.rendered()
        await at.product.desk.start(script, by="bo@acme.de", job="j")
        await stage.menu("mika", "book")
        await at.card("mika", "Today at CUBIC")
        await until(lambda: _waits(at.product))
        clock.at += timedelta(minutes=10)
        await at.product.sweep()
        await at.shows("mika", "Still want to book?")
        await stage.write("mika", "20:00")
        await at.shows("mika", "Booked. See you at 20:00.")
        assert (await at.run())["state"] == "done"


async def _waits(product: Product) -> bool:
    found = await product.desk.find_runs()
    return bool(found) and "waiting on" in str((await product.desk.show(found[0].id))["line"])
