"""The page of whoever is logged in, in a real browser: wide and on a phone, with and without JavaScript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store import people
from tests.web.browser import BROWSER, PHONE, WIDE, Room, sound
from tests.web.conftest import ANA, served

pytestmark = BROWSER
TOKENS = {"SLACK_BOT_TOKEN": "xoxb-1", "TELEGRAM_BOT_TOKEN": "1:a", "LINE_CHANNEL_ACCESS_TOKEN": "l"}


@pytest.fixture
async def chat_room(tmp_path: Path, anyio_backend: str, chromium: str) -> AsyncIterator[Room]:
    """A room of a workspace that has every platform."""
    async with served(tmp_path, chromium, env=TOKENS) as found:
        await found.product.committer.write(lambda tx: people.link(tx, ANA, "slack", "U0123ABCD"))
        found.product.people_changed()
        yield found


@pytest.mark.parametrize("size", ["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_is_sound(chat_room: Room, size: str, scheme: str):
    page = await chat_room.person("ana", viewport=WIDE if size == "wide" else PHONE, color_scheme=scheme)
    await page.goto(f"{chat_room.url}/me")
    await page.locator("body[data-connected='1']").wait_for()
    await sound(page, "me", tabs=30)
    await page.get_by_role("button", name="Link Telegram").click()
    await page.locator("#proof-words").wait_for()
    await sound(page, "the words to link with", tabs=30)
    assert chat_room.faults == []


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
async def test_somebody_finds_the_page_by_their_name_links_prefers_and_unlinks(chat_room: Room, script: bool):
    page = await chat_room.person("ana", java_script_enabled=script)
    await page.get_by_role("link", name="Ana", exact=True).click()
    await page.get_by_role("heading", name="Ana", exact=True).wait_for()
    await page.get_by_role("button", name="Link LINE").click()
    words = await page.locator("#proof-words").inner_text()
    used = await chat_room.product.committer.write(
        lambda tx: people.use_login(tx, words.removeprefix("link "), chat_room.product.clock.now(), "link")
    )
    assert used == ANA
    await page.get_by_role("link", name="look at this page again").click()
    await page.get_by_role("radio", name="Slack").check()
    await page.get_by_role("button", name="Save").click()
    await page.locator("#toast", has_text="Your cards go to Slack from now on.").wait_for()
    assert await page.get_by_role("radio", name="Slack").is_checked()
    await page.get_by_role("button", name="Unlink Slack").click()
    await page.locator("#toast", has_text="You are nobody on Slack now.").wait_for()
    assert await page.get_by_role("radio", name="Wherever I am").is_checked()
    assert chat_room.faults == []
