"""The pictures of the guide's pages on Slack, Telegram and LINE: the whole product on each platform's double, and what it
sent there drawn as that platform draws it. Written by `--pictures`, as the room's are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.domain.catalog import Policy, Workspace
from bot.runtime import demo
from bot.runtime.clock import SetClock
from store import people
from tests.channels.stage import Seen
from tests.channels.world import Stand, stand
from tests.doubles import slack_blocks
from tests.doubles.line import LineStage
from tests.doubles.messenger_pages import Said, line_page, telegram_page
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import until
from tests.web.browser import BROWSER
from tests.web.conftest import ANA, served
from tests.web.test_me_room import TOKENS
from tests.web.test_pictures import BEGIN, LOOK, PICTURES, SCOPE, WRONG, Studio, keep, plain

pytestmark = BROWSER
BERLIN = ZoneInfo("Europe/Berlin")
FORM = """- visit = ask @ana within 3d fields: [{name: day, type: date}, {name: people, type: number, min: 1, max: 8}]
  > When do you come, and with how many?
- say
  > Ana comes on {visit.day} with {visit.people}.
"""
DESK, PHONE = {"width": 660, "height": 1000}, {"width": 420, "height": 1000}


@dataclass
class Camera:
    """A page of a browser that shows drawn chats, and where its pictures go."""

    page: Any
    folder: Path | None

    async def take(self, name: str, html: str) -> None:
        """A picture of the drawn page, as far down as something stands on it."""
        await self.page.set_content(html)
        await plain(self.page)
        high = await self.page.evaluate(
            "Math.ceil([...document.querySelectorAll('body *')].reduce((most, el) => Math.max(most, el.getBoundingClientRect().bottom), 0))"
        )
        size = self.page.viewport_size
        assert 0 < high <= size["height"], f"{name} does not fit its window"
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(high + 14, size["height"])}
        keep(self.folder, name, await self.page.screenshot(animations="disabled", scale="css", clip=clip))


@asynccontextmanager
async def camera(chromium: str, request: pytest.FixtureRequest, size: dict[str, int]) -> AsyncGenerator[Camera]:
    from playwright.async_api import async_playwright

    async with async_playwright() as play:
        browser = await play.chromium.connect_over_cdp(chromium)
        context = await browser.new_context(viewport=size, **LOOK)
        folder = PICTURES if request.config.getoption("--pictures") else None
        yield Camera(page=await context.new_page(), folder=folder)
        await browser.close()


@asynccontextmanager
async def workspace(stage: Any, folder: Path, clock: SetClock) -> AsyncGenerator[Stand]:
    """The product on a platform, in Berlin, at an address of its own, with the demo's tools; leads approve a deploy."""
    more = {"workspace": Workspace(timezone="Europe/Berlin"), "policy": Policy(approve={"demo_deploy": "role:leads"})}
    async with stand(stage, folder, demo.TOOLS, clock, **more) as at:
        at.product.site.url = "https://waiton.acme.de"
        yield at


async def settled(at: Stand, who: str, card: Seen) -> None:
    """Returns once this card has nothing to tap any more."""
    await until(lambda: any(m.ref == card.ref and not m.buttons for m in at.stage.seen(who)))


async def waiting(at: Stand, who: str) -> Seen:
    """The live message that this person sees, once the card that it speaks of is delivered."""
    return await until(
        lambda: next((m for m in at.stage.seen(who) if "waiting on Ana since" in m.text.replace("*", "")), None)
    )


async def test_what_slack_shows(tmp_path: Path, chromium: str, request: pytest.FixtureRequest):
    clock, stage = SetClock(BEGIN), SlackStage()
    stage.slack.now = clock.now
    names = {"UANA": "Ana", "UBO": "Bo", "UBOT": "Waiton"}
    reader = slack_blocks.Reader(names=names, zone=BERLIN)

    def drawn(channel: str, *seen: Seen) -> str:
        refs = [one.ref for one in seen]
        found = [m for (where, ts), m in stage.slack.messages.items() if where == channel and (ts in refs or not refs)]
        return slack_blocks.page(found, reader=reader)

    async with workspace(stage, tmp_path, clock) as at, camera(chromium, request, DESK) as lens:
        await stage.paste("bo", SCOPE, form="code")
        card = await at.card("ana", "Extend the pilot")
        await waiting(at, "bo")
        await lens.take("slack_card", drawn("DANA", card))
        await lens.take("slack_thread", drawn("C1"))
        clock.move(minutes=4)
        await stage.tap("ana", card, "approve")
        await settled(at, "ana", card)
        await lens.take("slack_settled", drawn("DANA", card))
        await lens.take("slack_approval", drawn("DANA", await at.card("ana", "demo_deploy")))
        await stage.paste("bo", WRONG, form="code")
        await lens.take("slack_refused", drawn("C1", await at.shows("bo", "3 problems")))
        await stage.paste("bo", FORM)
        await stage.tap("ana", await at.card("ana", "When do you come"), "Answer")
        await stage.slack.until(lambda: "submit" in stage.slack.views.get("UANA", {}))
        await lens.take("slack_form", slack_blocks.modal(stage.slack.views["UANA"], reader=reader))


async def test_what_telegram_shows(tmp_path: Path, chromium: str, request: pytest.FixtureRequest):
    clock, stage = SetClock(BEGIN), TelegramStage()

    def drawn(who: str, *seen: Seen, before: str = "") -> str:
        refs = {one.ref for one in seen}
        found = [m for m in stage.api.of(int(stage.ref(who))) if str(m.id) in refs]
        return telegram_page("Waiton", [*([Said(before.rstrip())] if before else []), *found])

    async with workspace(stage, tmp_path, clock) as at, camera(chromium, request, PHONE) as lens:
        for who in ("ana", "bo"):
            await stage.write(who, "/start")
        await stage.write("bo", SCOPE)
        card = await at.card("ana", "Extend the pilot")
        await lens.take("telegram_status", drawn("bo", await waiting(at, "bo"), before=SCOPE))
        await lens.take("telegram_card", drawn("ana", card))
        clock.move(minutes=4)
        await stage.tap("ana", card, "approve")
        await settled(at, "ana", card)
        await lens.take("telegram_settled", drawn("ana", card))
        await lens.take("telegram_approval", drawn("ana", await at.card("ana", "demo_deploy")))
        await stage.write("bo", WRONG)
        await lens.take("telegram_refused", drawn("bo", await at.shows("bo", "3 problems"), before=WRONG))
        await stage.write("bo", FORM)
        form = await at.card("ana", "When do you come")
        await stage.tap("ana", form, "Answer")
        asked = await until(lambda: next((m for m in stage.seen("ana") if int(m.ref) > int(form.ref)), None))
        await lens.take("telegram_form", drawn("ana", form, asked))


async def test_what_line_shows(tmp_path: Path, chromium: str, request: pytest.FixtureRequest):
    clock, stage = SetClock(BEGIN), LineStage()

    def drawn(who: str, *seen: Seen, before: str = "") -> str:
        refs = {one.ref for one in seen}
        found = [m for m in stage.api.shown if m.to == stage.ref(who) and m.id in refs]
        return line_page("Waiton", [*([Said(before.rstrip())] if before else []), *found])

    async with workspace(stage, tmp_path, clock) as at, camera(chromium, request, PHONE) as lens:
        await stage.write("bo", SCOPE)
        card = await at.card("ana", "Extend the pilot")
        await lens.take("line_card", drawn("ana", card))
        clock.move(minutes=4)
        await stage.tap("ana", card, "approve")
        approval = await at.card("ana", "demo_deploy")
        await lens.take("line_approval", drawn("ana", approval))
        clock.move(minutes=6)
        await stage.tap("ana", card, "decline")
        late = await until(lambda: next((m for m in stage.seen("ana") if "Nothing changed" in m.text), None))
        await lens.take("line_settled", drawn("ana", card, late))
        await stage.write("bo", WRONG)
        await lens.take("line_refused", drawn("bo", await at.shows("bo", "3 problems"), before=WRONG))
        await stage.write("bo", FORM)
        form = await at.card("ana", "When do you come")
        await stage.tap("ana", form, "Answer")
        asked = await until(lambda: next((m for m in stage.seen("ana") if int(m.ref) > int(form.ref)), None))
        await lens.take("line_form", drawn("ana", form, asked))


async def test_who_somebody_is_on_the_platforms(tmp_path: Path, chromium: str, request: pytest.FixtureRequest):
    clock, folder = SetClock(BEGIN), PICTURES if request.config.getoption("--pictures") else None
    async with served(tmp_path, chromium, clock=clock, env=TOKENS) as room:
        await room.product.committer.write(lambda tx: people.link(tx, ANA, "slack", "U0123ABCD"))
        await room.product.committer.write(lambda tx: people.prefer(tx, ANA, "slack"))
        room.product.people_changed()
        await room.job("pilot", "Pilot go-live")
        studio = Studio(room=room, clock=clock, folder=folder)
        ana = await studio.person("ana", viewport={"width": 1280, "height": 640})
        await ana.goto(f"{room.url}/me")
        await ana.locator("body[data-connected='1']").wait_for()
        await studio.take("me", ana)
