"""The bot's agent in the room: asked in prose, at work, its answer, its proposal and what is done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from store import runs
from tests.doubles.claude import KEY, Claude, Fails, Says, Uses, claude
from tests.web.browser import BROWSER, PHONE, WIDE, Room, sound
from tests.web.conftest import served

pytestmark = BROWSER
ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n  - miss\n    - say\n      > No answer.\n"
NOTE = "Asks Ana whether to extend the pilot, and tells everyone if she does not answer."
PROPOSE = Uses((("propose_script", {"script": ASK, "note": NOTE}),))


@pytest.fixture
async def api(anyio_backend: str) -> AsyncIterator[Claude]:
    async with claude(lambda body: PROPOSE) as one:
        yield one


@pytest.fixture
async def room(tmp_path: Path, chromium: str, api: Claude) -> AsyncIterator[Room]:
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url, "WAITON_MODEL": "claude-haiku-4-5"}
    async with served(tmp_path, chromium, env=env) as found:
        yield found


async def ask(page: Any, words: str = "Find out whether we extend the pilot") -> None:
    await page.fill("#script", words)
    await page.get_by_role("button", name="Ask claude").click()


async def runs_of(room: Room) -> list[Any]:
    return await room.product.committer.read(lambda tx: runs.find(tx, limit=9))


async def test_a_wish_is_written_by_the_agent_and_runs_with_one_tap(room: Room, api: Claude):
    api.hold = asyncio.Event()
    where = await room.job("pilot", "Pilot")
    bo, ana = await room.person("bo"), await room.person("ana")
    await bo.goto(where)
    await ana.goto(where)
    await ask(bo)
    for page in (bo, ana):
        await page.locator(".writing").wait_for()
        assert "claude is writing" in await page.locator(".writing").inner_text()
    assert await bo.input_value("#script") == ""
    api.hold.set()
    card = ana.locator(".card.proposed")
    await card.wait_for()
    said = await card.inner_text()
    assert (
        NOTE in said and "Ask Ana: “Extend the pilot?”, approve or decline, within 2d" in said and "if missed" in said
    )
    assert await ana.locator(".writing").count() == 0 and await runs_of(room) == []
    await bo.locator(".card.proposed").get_by_role("button", name="Run").click()
    await ana.locator(".card.mine").wait_for()
    assert "written by claude, run by Bo" in await ana.locator("#talk").inner_text()
    assert "Bo ran it at" in await ana.locator(".card.settled").inner_text()
    (run,) = await runs_of(room)
    assert (run.owner, run.data["author"]) == ("bo@acme.de", "agent:claude")
    await ana.reload()
    talk = await ana.locator("#talk").inner_text()
    assert "Find out whether we extend the pilot" in talk and NOTE in talk
    assert room.faults == []


async def test_a_question_is_answered_in_words_that_stay(room: Room, api: Claude):
    api.brain = lambda body: Says("Nothing waits on you, Bo.")
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await ask(bo, "What waits on me?")
    await bo.get_by_text("Nothing waits on you, Bo.").wait_for()
    await bo.reload()
    assert "What waits on me?" in await bo.locator("#talk").inner_text()
    await bo.get_by_text("Nothing waits on you, Bo.").wait_for()
    assert room.faults == []


async def test_a_proposal_is_changed_in_the_composer_and_what_runs_stands_in_its_place(room: Room):
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await ask(bo)
    await bo.locator(".card.proposed").get_by_role("link", name="Edit").click()
    await bo.wait_for_function("document.getElementById('script').value.startsWith('- scope')")
    await bo.locator(".ready", has_text="in place of what claude proposed").wait_for()
    await bo.fill("#script", ASK.replace("pilot", "trial"))
    await bo.locator("#run:not([disabled])").click()
    await bo.locator(".card.settled").wait_for()
    assert "Bo changed it and ran that" in await bo.locator(".card.settled").inner_text()
    (run,) = await runs_of(room)
    assert run.data.get("author") is None
    assert "Extend the trial?" in str(await room.product.desk.show(run.id))
    assert room.faults == []


async def test_a_proposal_that_is_discarded_says_who_did_it(room: Room):
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await ask(bo)
    await bo.locator(".card.proposed").get_by_role("button", name="Discard").click()
    await bo.locator(".card.settled").wait_for()
    assert "Bo discarded it at" in await bo.locator(".card.settled").inner_text()
    assert await bo.locator(".card.settled button").count() == 0 and await runs_of(room) == []


async def test_what_would_not_wait_holds_on_its_card(room: Room, api: Claude):
    script = ASK + "- demo_restart host: web1\n"
    api.brain = lambda body: Uses((("propose_script", {"script": script, "note": "Restarts it."}),))
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await ask(bo)
    card = bo.locator(".card.proposed")
    await card.wait_for()
    assert "tarts without waiting for Ana" in await card.inner_text()
    assert await card.get_by_role("button", name="Run", exact=True).count() == 0
    await card.get_by_role("button", name="Wait for the answer").click()
    await bo.locator(".card.settled").wait_for()
    (run,) = await runs_of(room)
    shown = await room.product.desk.show(run.id)
    assert [(op["op"], op["state"]) for op in shown["ops"] if op["op"] != "say"][:2] == [
        ("ask", "waiting"),
        ("demo_restart", "planned"),
    ]


async def test_a_failure_of_the_model_is_told_as_it_is(room: Room, api: Claude):
    api.brain = lambda body: Fails(400, "invalid_request_error")
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await ask(bo)
    await bo.locator("#talk .note").wait_for()
    assert "400" in await bo.locator("#talk .note").inner_text()


async def test_without_javascript_the_page_comes_to_the_end_by_itself(room: Room, api: Claude):
    api.hold = asyncio.Event()
    where = await room.job("pilot", "Pilot")
    bo = await room.person("bo", java_script_enabled=False)
    await bo.goto(where)
    await bo.fill("#script", "Find out whether we extend the pilot")
    await bo.get_by_role("button", name="Check").click()
    await bo.get_by_role("button", name="Ask claude").click()
    assert "claude is writing" in await bo.locator("#talk").inner_text()
    api.hold.set()
    await bo.locator(".card.proposed").wait_for()
    await bo.locator(".card.proposed").get_by_role("button", name="Run").click()
    assert "Bo ran it" in await bo.locator(".card.settled").inner_text()
    assert len(await runs_of(room)) == 1


async def test_the_first_words_to_the_agent_open_a_job(room: Room):
    bo = await room.person("bo")
    await bo.goto(room.url)
    await ask(bo)
    await bo.wait_for_url("**/jobs/find-out-*")
    await bo.locator(".card.proposed").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_card_is_as_every_page_must_be(room: Room, api: Claude, scheme: str, tmp_path: Path):
    api.brain = lambda body: Uses((("propose_script", {"script": LONG, "note": NOTE}),))
    where = await room.job("pilot", "Pilot")
    for view in (WIDE, PHONE):
        bo = await room.person("bo", viewport=view, color_scheme=scheme, reduced_motion="reduce")
        await bo.goto(where)
        if view is not PHONE:
            await ask(bo, "Extend the pilot, if Ana agrees, then restart web1 once it is out")
        await bo.locator(".card.proposed").wait_for()
        await sound(bo, f"the proposal, {scheme} at {view['width']}")
    assert room.faults == []


LONG = """- scope = ask @ana approve decline within 2d
  > Extend the pilot for a month?
  - miss
    - say @jonas
      > Ana has not answered; please look after the pilot.
- if scope == 'approve'
  - prs = demo_list_prs repo: acme/api
  - reviewed = each prs
    > Is this change risky?
  - demo_deploy service: pilot mode: writes
  - say
    > The pilot goes on for a month.
"""


FAN = "- all = list a b c d e f\n- answers = each all\n  > Is {it} a vowel?\n- show answers\n"


async def test_a_fan_out_shows_how_far_it_is_and_the_record_what_it_cost(room: Room, api: Claude):
    where = await room.job("pilot", "Pilot")
    bo = await room.person("bo")
    await bo.goto(where)
    api.brain, api.hold = lambda body: Says("YES"), asyncio.Event()
    run = await room.run(FAN)
    await bo.locator(".ways li").wait_for()
    assert "answers 0 of 6" in await bo.locator(".ways").inner_text()
    record = await room.person("ana")
    await record.goto(f"{room.url}/runs/{run}")
    assert "0 of 6" in await record.locator("#sum .ways").inner_text()
    api.hold.set()
    await bo.locator(".pill.good").wait_for()
    assert await bo.locator(".ways").count() == 0
    await record.locator("#cost").wait_for()
    said = await record.locator("#sum").inner_text()
    assert "for 6 agent calls and " in said and "tokens" in said and "$" in said
    assert "answers" in await record.locator("#cost").inner_text()
    await sound(record, "the record with its costs")
    assert room.faults == []
