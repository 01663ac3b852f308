"""The room in a real browser: paste, mend, run, tap; two people at once; every page wide and on a phone."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.web.browser import BROWSER, Room

pytestmark = BROWSER
WRONG = "- scope = ask @anna approve decline within 2d\n  > Extend the pilot?\n- prs = demo_list_prs repo: acme/api\n- some = first prs 2\n- show scope\n"
RIGHT = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > It is {scope}.\n- show scope\n"
FORM = """- slot = ask @ana within 1d reason: optional fields: [{name: day, type: date}, {name: seats, type: number, min: 1, max: 9}, {name: lunch, type: bool}, {name: room, type: choice, choices: [big, small]}]
  > When shall we meet?
- show slot
"""


async def test_a_wrong_script_is_mended_by_taps_then_runs_and_goes_on_with_the_right_tap(room: Room):
    where = await room.job("pilot", "Pilot")
    bo, ana = await room.person("bo"), await room.person("ana")
    await bo.goto(where)
    await ana.goto(where)
    await bo.fill("#script", WRONG)
    problems = bo.locator(".problems")
    await problems.wait_for()
    said = await problems.inner_text()
    assert "line 1" in said and "line 4" in said and "@anna" in said
    assert await bo.locator("#run").is_disabled()
    assert await bo.locator(".behind mark").all_inner_texts() == ["@anna", "prs 2"]
    await bo.locator(".mend").first.click()
    await bo.locator(".mend").nth(1).wait_for(state="detached")
    await bo.locator(".mend").click()
    await bo.locator(".ready").wait_for()
    assert "@ana approve" in await bo.input_value("#script") and "first 2 prs" in await bo.input_value("#script")
    await bo.locator("#run").click()
    pill = bo.locator(".pill").first
    await pill.wait_for()
    assert (await pill.inner_text()).startswith("waiting on Ana since ")
    assert await bo.input_value("#script") == "" and await bo.locator("button:text-is('approve')").count() == 0
    card = ana.locator(".card.mine")
    await card.wait_for()
    assert "Extend the pilot?" in await card.inner_text()
    await card.get_by_role("button", name="approve").click()
    await bo.locator(".pill.good").wait_for()
    await ana.locator(".card.settled").wait_for()
    assert "Ana answered approve at" in await ana.locator(".card.settled").inner_text()
    assert await ana.locator(".card.settled button").count() == 0
    assert await bo.locator(".result").inner_text() == "approve"
    assert room.faults == []


async def test_somebody_who_is_not_asked_is_told_privately_whose_it_is(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run(RIGHT)
    ana, bo = await room.person("ana"), await room.person("bo")
    await ana.goto(where)
    address = await ana.locator(".card.mine form").first.get_attribute("action")
    await bo.goto(room.url + address)
    assert "this question is for Ana" in await bo.inner_text("main")
    await bo.get_by_role("button", name="approve").click()
    await bo.locator("#toast p").wait_for()
    assert "This question is for Ana. Nothing changed." in await bo.locator("#toast").inner_text()
    assert (await room.product.desk.show(run))["state"] == "waiting"
    assert await ana.locator("#toast p").count() == 0


async def test_what_moves_shows_itself_and_loses_no_text_and_no_focus(room: Room):
    where = await room.job("pilot", "Pilot")
    ana = await room.person("ana")
    await ana.goto(where)
    await ana.fill("#script", "- half a th")
    await ana.locator("#state :first-child").first.wait_for()
    first = await room.run("- a = ask @ana within 2d\n  > First?\n- show a\n")
    field = ana.locator(".card.mine textarea")
    await field.wait_for()
    assert await ana.input_value("#script") == "- half a th"
    await field.fill("not yet sent")
    await field.focus()
    await room.product.desk.edit(first, {"op": "a", "within": "3d"}, by="bo@acme.de")
    await room.run("- b = ask @ana yes no within 2d\n  > Second?\n")
    await ana.locator(".card.mine").nth(1).wait_for()
    assert await field.input_value() == "not yet sent"
    assert await ana.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert await ana.locator("#nav .n").first.inner_text() == "2"
    await ana.locator(".card.mine button:text-is('Answer')").click()
    await ana.locator(".card.settled").wait_for()
    assert (await room.product.desk.show(first))["result"] == "not yet sent"
    assert await ana.input_value("#script") == "- half a th"


async def test_a_form_says_what_does_not_fit_and_keeps_what_was_typed(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run(FORM)
    ana = await room.person("ana")
    await ana.goto(where)
    card = ana.locator(".card.mine")
    await card.get_by_label("day").fill("2026-06-12")
    await ana.evaluate("document.querySelector('.card.mine form').noValidate = true")
    await card.get_by_label("seats").fill("12")
    await card.get_by_label("room").select_option("small")
    await card.get_by_role("button", name="Answer").click()
    fault = card.locator(".fault:not([hidden])")
    await fault.wait_for()
    assert "must be at most 9" in await fault.inner_text()
    await card.get_by_label("seats").fill("7")
    await card.get_by_label("lunch").check()
    await card.get_by_role("button", name="Answer").click()
    await ana.locator(".card.settled").wait_for()
    assert (await room.product.desk.show(run))["result"] == {
        "day": "2026-06-12",
        "seats": 7,
        "lunch": True,
        "room": "small",
    }


async def test_an_approval_shows_the_real_parameters_and_a_decline_needs_a_reason(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run("- service = let 's' + '4'\n- rollout = demo_deploy service: {service} mode: writes\n")
    ana = await room.person("ana")
    await ana.goto(where)
    card = ana.locator(".card.mine")
    await card.wait_for()
    assert "s4" in await card.locator(".params").inner_text()
    await card.get_by_role("button", name="decline").click()
    await card.locator(".fault:not([hidden])").wait_for()
    await card.get_by_label("Reason").fill("not on a Friday")
    await card.get_by_role("button", name="decline").click()
    await ana.locator(".card.settled").wait_for()
    assert "not on a Friday" in await ana.locator(".card.settled").inner_text()
    assert (await room.product.desk.show(run))["ops"][1]["error"] == "declined by Ana: not on a Friday"


async def test_a_tap_that_starts_a_write_nobody_approves_asks_once_more(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run(
        "- go = ask @ana yes no within 2d\n  > Restart it?\n- if go == 'yes'\n  - demo_restart host: web1\n"
    )
    ana = await room.person("ana")
    await ana.goto(where)
    yes = ana.locator(".card.mine").get_by_role("button", name="yes")
    await yes.click()
    await ana.locator(".card.mine .fault:not([hidden])").wait_for()
    assert (await room.product.desk.show(run))["state"] == "waiting"
    await yes.click()
    await ana.locator(".pill.good").wait_for()


async def test_prose_is_no_script_and_can_be_sent_as_a_message_that_a_script_expects(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run("- heard = expect web:message within 1h\n- show heard.event.text\n")
    jonas, bo = await room.person("jonas"), await room.person("bo")
    await bo.goto(where)
    await jonas.goto(where)
    await jonas.fill("#script", "good morning everybody")
    await jonas.locator(".help").wait_for()
    assert "There is no script in this" in await jonas.locator(".help").inner_text()
    await jonas.get_by_role("button", name="Send it as a message").click()
    await bo.locator(".pill.good").wait_for()
    assert await bo.locator(".msg .text").all_inner_texts() == ["good morning everybody"]
    assert (await room.product.desk.show(run))["result"] == "good morning everybody"


async def test_the_room_works_without_javascript(room: Room):
    where = await room.job("pilot", "Pilot")
    bo, ana = await room.person("bo", java_script_enabled=False), await room.person("ana", java_script_enabled=False)
    await bo.goto(where)
    await bo.fill("#script", WRONG)
    await bo.click("#run")
    assert "line 4" in await bo.locator(".problems").inner_text()
    await bo.locator(".mend").first.click()
    await bo.locator(".mend").click()
    assert await bo.locator(".ready").count() == 1
    await bo.click("#run")
    assert (await bo.locator(".pill").inner_text()).startswith("waiting on Ana since")
    await ana.goto(room.url + "/inbox")
    await ana.get_by_role("button", name="decline").click()
    assert "Your answer decline is in." in await ana.locator("#toast").inner_text()
    assert "Nothing waits on you" in await ana.inner_text("main")
    await bo.reload()
    assert await bo.locator(".pill.good").count() == 1


async def test_the_owner_hands_over_pauses_and_cancels_from_the_record(room: Room):
    await room.job("pilot", "Pilot")
    run = await room.run(RIGHT)
    bo, jonas = await room.person("bo"), await room.person("jonas")
    await jonas.goto(room.url + "/inbox")
    await bo.goto(f"{room.url}/runs/{run}")
    await bo.locator("#plan .acts summary").first.click()
    await bo.locator("#plan .acts").first.get_by_role("link", name="Hand over").click()
    sheet = bo.get_by_role("dialog")
    await sheet.get_by_label("To whom").select_option("jonas@acme.de")
    await sheet.locator(".compared .new").wait_for()
    assert "Ask Jonas" in await sheet.locator(".compared .new").inner_text()
    await sheet.get_by_label("Why").fill("on leave")
    await sheet.get_by_role("button", name="Apply").click()
    await jonas.locator(".card.mine").wait_for()
    await bo.locator("#edits").wait_for()
    assert "on leave" in await bo.locator("#edits").inner_text()
    await bo.get_by_role("button", name="Pause").click()
    await bo.get_by_role("button", name="Go on").wait_for()
    await bo.get_by_role("button", name="Cancel the run").click()
    await bo.locator("#sum .pill.off:text-is('cancelled')").wait_for()
    await jonas.locator("#nothing").wait_for()


async def test_dark_follows_the_system(room: Room):
    await room.job("pilot", "Pilot")
    light, dark = await room.person("ana"), await room.person("ana", color_scheme="dark")
    grounds = [await page.evaluate("getComputedStyle(document.body).backgroundColor") for page in (light, dark)]
    assert grounds == ["rgb(247, 246, 243)", "rgb(22, 23, 26)"]


async def test_a_reader_that_does_not_keep_up_is_dropped_and_comes_back_by_itself(room: Room):
    where = await room.job("pilot", "Pilot")
    ana = await room.person("ana")
    await ana.goto(where)
    await ana.locator("body[data-connected='1']").wait_for()
    for _ in range(600):
        room.product.listeners.tell("pilot", "")
    await ana.locator("#line").wait_for()
    await ana.locator("#line").wait_for(state="hidden")
    await room.run(RIGHT)
    await ana.locator(".card.mine").wait_for()


async def test_nothing_overtakes_an_ask_unseen(room: Room):
    where = await room.job("pilot", "Pilot")
    bo = await room.person("bo")
    await bo.goto(where)
    await bo.fill("#script", "- go = ask @ana yes no within 2d\n  > Shall I?\n- demo_restart host: web1\n- show go\n")
    await bo.locator(".hold").wait_for()
    assert "without waiting for Ana" in await bo.locator(".hold").inner_text()
    assert await bo.locator("#run").inner_text() == "Run as written"
    await bo.locator(".hold .mend").click()
    await bo.locator(".hold").wait_for(state="detached")
    assert "demo_restart host: web1 after go" in await bo.input_value("#script")
    assert await bo.locator("#run").inner_text() == "Run"


async def test_what_a_script_is_started_with_is_filled_in_beside_it(room: Room):
    where = await room.job("pilot", "Pilot")
    bo = await room.person("bo")
    await bo.goto(where)
    script = "---\ninputs:\n  who: {type: text, description: whom to greet}\n  times: 2\n---\n- said = let who + ' ' + string(times)\n- show said\n"
    await bo.fill("#script", script)
    await bo.get_by_label("who").wait_for()
    assert await bo.locator("#run").is_disabled()
    await bo.get_by_label("who").fill("Ana")
    await bo.locator("#run:not([disabled])").click()
    await bo.locator(".pill.good").wait_for()
    assert await bo.locator(".result").inner_text() == "Ana 2"


async def test_what_moves_between_a_pages_making_and_its_connection_is_seen(room: Room):
    where, gate = await room.job("pilot", "Pilot"), asyncio.Event()

    async def late(route: Any) -> None:
        await gate.wait()
        await route.continue_()

    ana = await room.person("ana")
    await ana.route("**/live*", late)
    await ana.goto(where)
    await room.run("- go = ask @ana yes no\n  > Now?\n")
    gate.set()
    await ana.locator(".card.mine").wait_for()
