"""Edits from the pages: with JavaScript and without, by the owner and by whoever is asked."""

from __future__ import annotations

import re

import pytest

from tests.web.browser import BROWSER, Room
from tests.web.conftest import ANA, BO, JONAS, Site

ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- show scope\n"
LATE = (
    "- scope = ask @ana approve decline within 1h\n  > Extend?\n  - miss\n    - again = ask @jonas yes\n      > Then?\n"
)


@pytest.mark.anyio
async def test_an_edit_is_seen_before_it_is_made_and_names_the_revision_it_saw(site: Site):
    run = await site.run(ASK)
    bo, ana = await site.session(BO), await site.session(ANA)
    where = f"/runs/{run}/edit"
    page = (await bo.get(f"{where}?op=1&do=to")).text
    assert all(label in page for label in ("Hand over", "More or less time", "Skip", "Withdraw", "Insert below"))
    seen = (await bo.post(where, op="1", do="to", value=JONAS, step="preview")).text
    assert "Ask Jonas" in seen and "no more on Ana" in seen
    assert (await site.desk.show(run))["line"].startswith("waiting on Ana")
    rev = re.search(r'name="rev" value="(\d+)"', seen)
    assert rev
    assert (await ana.post(where, op="1", do="later", value="1d", why="busy")).status_code == 303
    stale = await bo.post(where, headers={"accept": "application/json"}, op="1", do="to", value=JONAS, rev=rev[1])
    assert stale.status_code == 409 and "has changed since" in stale.json()["text"]


@pytest.mark.anyio
async def test_what_is_wrong_in_typed_ops_stands_beside_its_line_and_nothing_changes(site: Site):
    run = await site.run(ASK)
    bo = await site.session(BO)
    before = await site.desk.show(run)
    for step in ("preview", "apply"):
        seen = await bo.post(f"/runs/{run}/edit", op="1", do="insert", value="- say @anna\n  > hi {scop}\n", step=step)
        assert "line 1" in seen.text and "line 2" in seen.text and "use <code>scope</code>" in seen.text
        assert "&gt; hi {scop}" in seen.text
    assert await site.desk.show(run) == before


@pytest.mark.anyio
async def test_every_edit_of_the_table_can_be_made_from_the_page(site: Site):
    script = ASK + "- say\n  > one\n- later = ask @jonas yes no\n  > And {scope}?\n- say\n  > {later} two\n"
    run = await site.run(script)
    bo = await site.session(BO)

    async def made(**form: str) -> str:
        got = await bo.post(f"/runs/{run}/edit", headers={"accept": "application/json"}, why="so", **form)
        return got.json()["text"]

    assert await made(op="1", do="to", value=JONAS) == "Done: `scope` is Jonas's now."
    assert await made(op="1", do="within", value="3d") == "Done: the window of `scope` is 3d now."
    assert await made(op="1", do="until", value="Fri 17:00") == "Done: `scope` is due Fri 17:00 now."
    assert await made(op="4", do="within", value="1d") == "Done: the window of `later` is 1d now."
    assert await made(op="5", do="replace", value="- say\n  > {later} three\n") == "Done: `5` is replaced."
    assert await made(op="1", do="insert", value="- note = let 'x'\n- show note\n") == "Done: inserted after `scope`."
    assert await made(op="5", do="remove") == "Done: `5` is removed."
    assert await made(op="4", do="skip") == "Done: `later` is skipped."
    assert await made(run="pause") == "Done: the run is paused."
    assert await made(run="resume") == "Done: the run goes on."
    assert await made(op="1", do="withdraw") == "Done: `scope` is withdrawn."
    record = await site.desk.show(run)
    assert {(e["by"], e["why"]) for e in record["edits"]} == {(BO, "so")} and len(record["edits"]) == 11
    page = (await bo.get(f"/runs/{run}")).text
    assert "handed over" in page and "inserted" in page


@pytest.mark.anyio
async def test_a_card_can_be_handed_back_and_a_role_goes_on_without_whoever_says_not_mine(site: Site):
    alone = await site.run(ASK)
    ana = await site.session(ANA)
    got = await ana.post(f"/runs/{alone}/edit", op="1", do="not-mine", why="I am not on the pilot")
    assert got.status_code == 303
    found = await site.desk.show(alone)
    assert found["line"].startswith("waiting on Bo since")
    assert (found["edits"][0]["by"], found["edits"][0]["why"]) == (ANA, "I am not on the pilot")
    leads = await site.run("- go = ask role:leads yes no within 2d\n  > Go?\n", by=JONAS)
    await ana.post(f"/runs/{leads}/edit", op="1", do="not-mine", why="away")
    assert (await site.desk.show(leads))["line"].startswith("waiting on Bo since")
    both = await site.run("- go = ask role:leads yes no need: 2 within 2d\n  > Go?\n", by=JONAS)
    await ana.post(f"/runs/{both}/edit", op="1", do="not-mine", why="away")
    assert (await site.desk.show(both))["line"].startswith("waiting on Bo and Jonas since")


@pytest.mark.anyio
async def test_later_moves_the_deadline_and_others_may_do_neither(site: Site):
    run = await site.run(ASK)
    ana, jonas = await site.session(ANA), await site.session(JONAS)
    await ana.post(f"/runs/{run}/edit", op="1", do="later", value="1d", why="busy")
    (edit,) = (await site.desk.show(run))["edits"]
    assert (edit["what"], edit["by"], edit["after"]) == ("deadline", ANA, "2026-03-05 10:00")
    got = await jonas.post(f"/runs/{run}/edit", headers={"accept": "application/json"}, op="1", do="later", value="1d")
    assert got.status_code == 403 and "only Bo" in got.json()["text"]


@pytest.mark.anyio
async def test_an_approval_can_be_put_off_and_left_to_the_others_who_may_decide(site: Site):
    run = await site.run("- demo_deploy service: s4\n", by=JONAS)
    await site.until(lambda r: r["ops"][0]["state"] == "gated", run)
    ana = await site.session(ANA)
    page = (await ana.get("/inbox")).text
    assert "Hand over, not mine, later" in page
    await ana.post(f"/runs/{run}/edit", op="1", do="later", value="1d", why="busy")
    await ana.post(f"/runs/{run}/edit", op="1", do="not-mine", why="Bo knows")
    found = await site.desk.show(run)
    assert [(e["what"], e["by"]) for e in found["edits"]] == [("deadline", ANA), ("handed over", ANA)]
    assert "Nothing waits on you" in (await ana.get("/inbox")).text
    assert (await site.desk.answer(run, "1", "approve", by=BO)).accepted


@pytest.mark.anyio
async def test_a_late_answer_is_shown_to_the_owner_who_may_accept_it(site: Site):
    run = await site.run(LATE)
    ana, bo = await site.session(ANA), await site.session(BO)
    site.clock.move(hours=1, minutes=5)
    await site.product.sweep()
    late = await site.desk.answer(run, "scope", "approve", by=ANA)
    assert "late" in late.text
    for path in (f"/jobs/pilot?run={run}", f"/runs/{run}"):
        page = (await bo.get(path)).text
        assert page.count("Accept it") >= 2 and "5m late" in page
        assert "Accept it" not in (await ana.get(path)).text
        assert "Ask Ana" in page and "missed <time" in page and ">missed</span>" in page
    await bo.post(f"/runs/{run}/edit", op="1", do="accept")
    found = await site.desk.show(run)
    assert found["state"] == "done" and found["ops"][0]["value"] == "approve"


@pytest.mark.anyio
async def test_no_latest_end_is_told_once_a_wait_was_given_more_time_than_that(site: Site):
    run = await site.run(ASK)
    bo = await site.session(BO)
    paths = (f"/jobs/pilot?run={run}", f"/runs/{run}")
    assert [(await bo.get(path)).text.count("at the latest") for path in paths] == [1, 1]
    await bo.post(f"/runs/{run}/edit", op="1", do="within", value="5d")
    assert [(await bo.get(path)).text.count("at the latest") for path in paths] == [0, 0]


@pytest.mark.anyio
async def test_a_paused_run_is_not_said_to_be_at_work(site: Site):
    run = await site.run(ASK)
    bo = await site.session(BO)
    await bo.post(f"/runs/{run}/edit", run="pause")
    assert (await site.desk.answer(run, "scope", "approve", by=ANA)).accepted
    for path in (f"/jobs/pilot?run={run}", f"/runs/{run}"):
        page = (await bo.get(path)).text
        assert ">paused</span>" in page and "at work" not in page


@pytest.mark.anyio
async def test_nobody_else_sees_a_menu_and_what_is_not_theirs_is_not_there(site: Site):
    run = await site.run(ASK)
    jonas = await site.session(JONAS)
    assert "Only Bo, who started the run, can change this" in (await jonas.get(f"/runs/{run}/edit?op=1")).text
    assert "data-edit" not in (await jonas.get(f"/runs/{run}")).text
    await site.job("secret", members=(BO,))
    started = await site.desk.start(ASK.replace("@ana", "@bo"), by=BO, job="secret")
    assert (await jonas.get(f"/runs/{started.run}/edit?op=1")).status_code == 404
    assert (await jonas.post(f"/runs/{started.run}/edit", run="cancel")).status_code == 404


class TestInABrowser:
    pytestmark = BROWSER

    async def test_ops_are_inserted_from_the_plan_with_problems_marked_and_mended(self, room: Room):
        where = await room.job("pilot", "Pilot")
        run = await room.run(ASK)
        bo = await room.person("bo")
        await bo.goto(where)
        await bo.locator("#plan .acts summary").first.click()
        await bo.get_by_role("link", name="Insert below").first.click()
        sheet = bo.get_by_role("dialog")
        await sheet.locator("textarea").fill("- say\n  > hello {scop}\n")
        await sheet.locator(".problems .mend").wait_for()
        assert await sheet.locator(".behind mark").all_inner_texts() == ["scop"]
        await sheet.locator(".problems .mend").click()
        await sheet.locator(".compared .new").first.wait_for()
        await sheet.get_by_role("button", name="Apply").click()
        await sheet.wait_for(state="hidden")
        await bo.locator("#plan li", has_text="hello").wait_for()
        assert (await room.product.desk.show(run))["ops"][1]["path"] == "1+1"
        assert room.faults == []

    async def test_a_preview_tells_moments_in_the_zone_of_the_page_around_it(self, room: Room):
        where = await room.job("pilot", "Pilot")
        await room.run(ASK)
        bo = await room.person("bo", timezone_id="Asia/Tokyo")
        await bo.goto(where)
        due = (await bo.locator("#plan .wait .sub").first.inner_text()).rpartition("until ")[2]
        await bo.locator("#plan .acts summary").first.click()
        await bo.get_by_role("link", name="More or less time").first.click()
        sheet = bo.get_by_role("dialog")
        await sheet.locator("#edit-value").fill("9d")
        await sheet.locator(".compared .new").first.wait_for()
        assert due in await sheet.locator(".compared .gone").first.inner_text()
        assert due in await sheet.locator(".means li").first.inner_text()
        assert room.faults == []

    async def test_a_run_is_paused_from_the_plan_after_a_look_at_what_that_does(self, room: Room):
        where = await room.job("pilot", "Pilot")
        run = await room.run(ASK)
        bo, ana = await room.person("bo"), await room.person("ana")
        await ana.goto(where)
        assert await ana.locator("#plan a[data-edit]").count() == 0
        await bo.goto(where)
        await bo.locator("#plan").get_by_role("link", name="Pause").click()
        sheet = bo.get_by_role("dialog")
        assert "The run is paused from then on" in await sheet.inner_text()
        assert (await room.product.desk.show(run))["state"] == "waiting"
        await sheet.get_by_role("button", name="Apply").click()
        await bo.locator(".pill.off", has_text="paused").first.wait_for()
        await bo.locator("#plan").get_by_role("link", name="Go on").wait_for()
        assert room.faults == []

    async def test_a_card_is_handed_over_from_its_more(self, room: Room):
        where = await room.job("pilot", "Pilot")
        await room.run(ASK)
        ana, jonas = await room.person("ana"), await room.person("jonas")
        await ana.goto(where)
        await jonas.goto(where)
        more = ana.locator(".card.mine .more")
        await more.locator("summary").click()
        await more.get_by_role("button", name="More time").click()
        await ana.locator("#toast p", has_text="is due").wait_for()
        await more.locator("summary").click()
        await more.get_by_label("Hand over to").select_option("jonas@acme.de")
        await more.get_by_role("button", name="Hand over").click()
        await jonas.locator(".card.mine").wait_for()
        await ana.locator(".card.settled", has_text="handed over to Jonas").wait_for()
        assert room.faults == []


@pytest.mark.anyio
async def test_a_page_that_does_not_say_what_it_saw_changes_nothing(site: Site):
    run = await site.run(ASK)
    bo = await site.session(BO)
    for odd in ("abc", "-1", "1.5", "²"):
        got = await bo.post(
            f"/runs/{run}/edit", headers={"accept": "application/json"}, op="1", do="to", value=JONAS, rev=odd
        )
        assert got.status_code == 422 and "load it again" in got.json()["text"]
    assert (await site.desk.show(run))["line"].startswith("waiting on Ana")


@pytest.mark.anyio
async def test_what_a_form_was_answered_reads_as_its_fields(site: Site):
    run = await site.run("- trip = ask @ana fields: [{name: day, type: date}, {name: lunch, type: bool}]\n  > When?\n")
    said = await site.desk.answer(run, "trip", {"day": "2026-03-09", "lunch": True}, by=ANA)
    assert said.text == "Your answer `day 2026-03-09, lunch yes` is in."
    seen = (await (await site.session(ANA)).get("/jobs/pilot")).text
    assert "Ana answered <code>day 2026-03-09, lunch yes</code>" in seen
