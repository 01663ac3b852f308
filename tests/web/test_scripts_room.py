"""The pages of saved scripts in a real browser: wide and on a phone, with and without JavaScript."""

from __future__ import annotations

import pytest

from tests.web.browser import BROWSER, PHONE, WIDE, Room, sound
from tests.web.test_scripts import BOOK

pytestmark = BROWSER


async def shelf(room: Room) -> None:
    await room.job("pilot", "Pilot")
    await room.job("studio", "Studio")
    for text in (BOOK, BOOK.replace("show out", "say\n  > {out}")):
        assert (await room.product.desk.start(text, by="bo@acme.de", job="pilot")).saved
    long = "a script of averyveryveryveryveryveryveryveryveryvery long name that goes on"
    await room.product.desk.saved.save("- say\n  > hi\n", by="ana@acme.de", job="pilot", name=long)


@pytest.mark.parametrize("size", ["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pages_of_saved_scripts_are_sound(room: Room, size: str, scheme: str):
    await shelf(room)
    page = await room.person("bo", viewport=WIDE if size == "wide" else PHONE, color_scheme=scheme)
    for path in ("/scripts", "/scripts?q=none", "/scripts/book-a-class?changes=2", "/inbox"):
        await page.goto(room.url + path)
        await page.locator("body[data-connected='1']").wait_for()
        await sound(page, path)
    await page.goto(f"{room.url}/scripts/book-a-class")
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.locator("#in-who-said.fault").wait_for()
    await sound(page, "with what is wrong")
    assert room.faults == []


async def test_a_script_is_found_started_by_its_form_paused_and_brought_back(room: Room):
    await shelf(room)
    page = await room.person("bo")
    await page.goto(f"{room.url}/scripts")
    await page.fill("#find-words", "class")
    await page.keyboard.press("Enter")
    await page.locator("#shelf").get_by_role("link", name="Book a class").click()
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("button", name="Resume").wait_for()
    await page.get_by_role("button", name="Bring version 1 back").click()
    await page.locator("#versions td", has_text="3").first.wait_for()
    await page.fill("#in-who", "Ana")
    await page.select_option("#start-job", "studio")
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.locator(".pill.good").first.wait_for()
    assert "/jobs/studio?run=" in page.url
    assert room.faults == []


async def test_without_javascript_a_script_is_started_and_what_is_wrong_is_told(room: Room):
    await shelf(room)
    page = await room.person("bo", java_script_enabled=False)
    await page.goto(f"{room.url}/scripts/book-a-class")
    await page.fill("#in-who", "Ana")
    await page.fill("#in-extra", "[")
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.locator("#in-extra-said.fault").wait_for()
    assert await page.input_value("#in-who") == "Ana"
    await page.fill("#in-extra", "")
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url("**/jobs/pilot?run=*")


async def test_save_as_on_a_record_keeps_the_script_under_a_name(room: Room):
    await room.job("pilot", "Pilot")
    run = await room.run("- n = let 5\n- show n\n")
    page = await room.person("bo")
    await page.goto(f"{room.url}/runs/{run}")
    await page.get_by_text("Save as…").click()
    await page.fill("#save-name", "five")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.locator("#toast", has_text="Saved as five, version 1.").wait_for()
    await page.goto(f"{room.url}/scripts/five")
    await page.get_by_role("heading", name="five").wait_for()
    assert room.faults == []
