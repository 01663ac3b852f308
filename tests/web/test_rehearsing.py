"""Rehearse in the composer: every branch of a text as it is typed, with nothing stored or sent."""

from __future__ import annotations

import pytest

from tests.web.browser import BROWSER, Room
from tests.web.conftest import BO, Site

SCRIPT = """- scope = ask @ana approve decline within 2d
  > Extend the pilot?
  - miss
    - say role:leads
      > No answer from Ana.
- if scope == 'approve'
  - demo_deploy service: s4
  - say
    > Rolling out.
- else
  - say @ana
    > Understood.
"""


@pytest.mark.anyio
async def test_every_way_is_told_with_who_reads_what_and_which_writes_and_nothing_is_stored(site: Site):
    await site.job()
    bo = await site.session(BO)
    got = await bo.post("/rehearse", script=SCRIPT, job="pilot", headers={"accept": "application/json"})
    html = got.json()["html"]
    assert "5 ways through it" in html and "Ask Ana" in html
    assert "<b>decline</b>" in html and "Ana is told" in html and "Understood." in html
    assert "<b>no answer</b>" in html and "No answer from Ana." in html and "2d" in html
    assert "<code>demo_deploy</code>" in html and "declined by" in html
    assert await site.desk.find_runs() == []


@pytest.mark.anyio
async def test_it_works_as_a_posted_page_and_says_what_to_mend_first(site: Site):
    await site.job()
    bo = await site.session(BO)
    page = (await bo.post("/jobs/pilot/runs", script=SCRIPT, do="rehearse")).text
    assert "5 ways through it" in page and "- scope = ask @ana" in page
    wrong = (await bo.post("/jobs/pilot/runs", script=SCRIPT.replace("@ana", "@anna"), do="rehearse")).text
    assert "There is something to mend first" in wrong
    assert await site.desk.find_runs() == []


@pytest.mark.anyio
async def test_files_of_the_job_are_read_and_what_is_saved_stays_in_the_rehearsal(site: Site):
    await site.job()
    folder = site.product.settings.files / "jobs" / "pilot"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("hello", encoding="utf-8")
    script = "- one = read a.md\n- save b.md one\n- two = read b.md\n- say\n  > {two} again\n"
    bo = await site.session(BO)
    html = (await bo.post("/rehearse", script=script, job="pilot")).json()["html"]
    assert "hello again" in html and not (folder / "b.md").exists()


@pytest.mark.anyio
async def test_a_walk_ends_when_its_time_is_over(site: Site):
    from bot.rehearse.rehearse import walked
    from bot.rehearse.scenario import build

    script = "".join(f"- a{n} = ask x@example.com yes no\n  > {n}?\n" for n in range(8))
    left = iter([True] * 300)
    _, found = await walked(script, build({"people": [{"email": "x@example.com"}]}), lambda: next(left, False))
    assert found["cut"] and 0 < len(found["outcomes"]) < 64


BELOW_THE_BAR = """() => {
  const bar = document.querySelector('.bar').getBoundingClientRect();
  return Boolean(document.elementFromPoint(bar.left + 60, bar.bottom + 6)?.closest('#rehearsal'));
}"""


class TestInABrowser:
    pytestmark = BROWSER

    async def test_the_room_shows_the_ways_and_forgets_them_when_the_text_changes(self, room: Room):
        bo = await room.person("bo")
        await bo.goto(await room.job("pilot", "Pilot"))
        await bo.fill("#script", SCRIPT)
        await bo.locator("#rehearse:not([disabled])").click()
        await bo.locator(".endings > li").nth(4).wait_for()
        assert await bo.locator(".endings > li").count() == 5
        assert await bo.evaluate(BELOW_THE_BAR) is False, "the ways show again below the bar that covers them"
        assert await bo.input_value("#script") == SCRIPT
        await bo.locator("#script").press("End")
        await bo.locator("#script").press("x")
        await bo.locator(".endings").wait_for(state="detached")
        assert room.faults == []


OVERTAKES = "- go = ask @ana yes no within 2d\n  > Shall I?\n- demo_restart host: web1\n- show go\n"


@pytest.mark.anyio
async def test_a_run_holds_until_its_overtaking_has_been_seen(site: Site):
    await site.job()
    bo = await site.session(BO)
    held = await bo.post("/jobs/pilot/runs", script=OVERTAKES, do="run")
    assert held.status_code == 422 and "starts without waiting for Ana" in held.text.replace("Starts", "starts")
    assert 'value="run:as-written"' in held.text and "Let it wait" in held.text and "Discard" in held.text
    assert await site.desk.find_runs() == []
    gone = await bo.post("/jobs/pilot/runs", script=OVERTAKES, do="discard")
    assert gone.status_code == 303 and await site.desk.find_runs() == []
    ran = await bo.post("/jobs/pilot/runs", script=OVERTAKES, do="run:as-written")
    assert ran.status_code == 303 and len(await site.desk.find_runs()) == 1


@pytest.mark.anyio
async def test_a_run_that_reaches_more_than_ten_people_at_once_holds_too(site: Site):
    from store import people

    def many(tx: object) -> None:
        for n in range(11):
            people.put(tx, f"p{n}@acme.de", f"P{n}", None)  # type: ignore[arg-type]
            people.put_role(tx, "crew", f"p{n}@acme.de")  # type: ignore[arg-type]

    await site.product.committer.write(many)
    site.product.people_changed()
    await site.job()
    bo = await site.session(BO)
    wide = "- first = ask @ana yes no\n  > Shall I?\n- say role:crew\n  > The office is closed.\n- show first\n"
    got = (await bo.post("/check", script=wide, job="pilot")).json()
    assert "12 people get something at once" in got["html"] and got["label"] == "Run as written"
    assert (await bo.post("/jobs/pilot/runs", script=wide, do="run")).status_code == 422
    each = "".join(f"- say @P{n}\n  > Hi.\n" for n in range(11))
    assert "11 people" in (await bo.post("/check", script=each, job="pilot")).json()["html"]
    few = "".join(f"- say @P{n}\n  > Hi.\n" for n in range(10))
    assert (await bo.post("/check", script=few, job="pilot")).json()["label"] == "Run"
    bearer = await site.bearer(BO)
    noted = (await bearer.post("/api/check", json={"script": wide})).json()["notes"]
    assert "12 people get something at once: say" in noted
    assert (await bearer.post("/api/runs", json={"script": wide})).status_code == 201


class TestBelowALongScript:
    pytestmark = BROWSER

    async def test_nothing_shows_below_the_buttons_while_the_outcomes_are_read(self, room: Room):
        bo = await room.person("bo")
        await bo.fill("#script", SCRIPT)
        await bo.locator(".ready").wait_for()
        await bo.locator("#rehearse").click()
        await bo.locator(".endings li").first.wait_for()
        below = "() => document.querySelector('.compose').getBoundingClientRect().bottom - document.querySelector('.bar').getBoundingClientRect().bottom"
        assert abs(await bo.evaluate(below)) <= 1
        await bo.evaluate("() => document.querySelector('.compose').scrollTo(0, 1e6)")
        assert await bo.evaluate(below) > 12
        assert room.faults == []
