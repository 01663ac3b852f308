"""Saved scripts over HTTP: the pages without JavaScript, and the API."""

from __future__ import annotations

from typing import Any

import pytest

from store import people, triggers
from tests.web.conftest import ANA, BO, JONAS, Site

pytestmark = pytest.mark.anyio
BOOK = """---
name: book-a-class
title: Book a class
inputs:
  who: {type: text, description: Whose place it is}
  day: {type: text, choices: [Mon, Wed], default: Wed}
  seats: {type: number, default: 2}
  lunch: {type: bool, default: true}
  guests: {type: list, of: text, default: [Mika]}
  extra: {type: record, default: {room: blue}}
  code: {type: text, secret: true, default: hush}
on:
  - {every: "0 9 * * mon-fri", zone: Europe/Berlin}
  - command: book
---
- out = let [who, day, string(seats), string(lunch), guests[0], extra.room, code].join(" ")
- show out
"""


async def saved(site: Site, text: str = BOOK, by: str = BO) -> Any:
    await site.job()
    got = await site.desk.start(text, by=by, job="pilot")
    assert got.saved, got.seen.rendered()
    return got.saved


async def test_the_list_says_what_starts_each_script_and_when_next_and_finds_by_words(site: Site):
    await saved(site)
    await site.desk.saved.save("- say\n  > hi\n", by=BO, job="pilot", name="greet")
    bo = await site.session(BO)
    page = (await bo.get("/scripts")).text
    assert 'href="/scripts/book-a-class"' in page and "Book a class" in page and "greet" in page
    assert "<code>0 9 * * mon-fri</code> (Europe/Berlin)" in page and 'datetime="2026-03-03T08:00:00+00:00"' in page
    found = (await bo.get("/scripts?q=CLASS+book")).text.partition('id="shelf"')[2]
    assert "Book a class" in found and "greet" not in found
    assert "No saved script has" in (await bo.get("/scripts?q=nope")).text


async def test_a_form_of_its_inputs_starts_it_with_their_types(site: Site):
    await saved(site)
    bo = await site.session(BO)
    page = (await bo.get("/scripts/book-a-class")).text
    assert 'type="password"' in page and "hush" not in page.partition('id="texts"')[0], (
        "a secret's default is not shown"
    )
    form = {
        "in.who": "Ana",
        "in.day": "Mon",
        "in.seats": "3",
        "in.guests": "Bo\nJonas",
        "in.extra": '{"room": "red"}',
        "in.code": "",
        "job": "pilot",
    }
    got = await bo.post("/scripts/book-a-class/runs", **form)
    assert got.status_code == 303 and got.headers["location"].startswith("/jobs/pilot?run=")
    run = got.headers["location"].partition("run=")[2]
    found = await site.until(lambda r: r["ended"] is not None, run)
    assert (found["result"], found["script"], found["version"]) == ("Ana Mon 3 false Bo red hush", "book-a-class", 1)
    assert run in (await bo.get("/scripts/book-a-class")).text, "its starts are on its page"


async def test_what_is_wrong_stands_beside_its_field_and_nothing_has_started(site: Site):
    await saved(site)
    bo = await site.session(BO)
    form = {"in.day": "Tue", "in.seats": "many", "in.guests": "[1", "in.extra": "[]"}
    page = (await bo.post("/scripts/book-a-class/runs", **form)).text
    for name, fault in (
        ("who", "This is needed."),
        ("seats", "<code>many</code> is no number."),
        ("guests", "This is no list"),
        ("extra", "This is no object"),
    ):
        said = page.partition(f'id="in-{name}-said"')[2].partition("</p>")[0]
        assert fault in said and f'aria-describedby="in-{name}-said"' in page, name
    assert 'value="many"' in page, "what was typed is still there"
    page = (await bo.post("/scripts/book-a-class/runs", **{"in.who": "Ana", "in.day": "Tue"})).text
    assert (
        "The input <code>day</code> is one of <code>Mon</code>, <code>Wed</code>"
        in page.partition('id="in-day-said"')[2].partition("</p>")[0]
    )
    assert await site.desk.find_runs() == []


async def test_pause_resume_and_rollback_answer_as_they_stand(site: Site):
    await saved(site)
    await saved(site, BOOK.replace("show out", "say\n  > {out}"), by=ANA)
    bo = await site.session(BO)
    assert (await bo.post("/scripts/book-a-class/standing", do="pause")).status_code == 303
    assert await site.product.committer.read(triggers.next_due) is None
    page = (await bo.get("/scripts/book-a-class")).text
    assert "people alone start it" in page and 'value="resume"' in page
    said = await bo.post("/scripts/book-a-class/standing", {"accept": "application/json"}, do="pause")
    assert "nothing changed" in said.json()["text"]
    await bo.post("/scripts/book-a-class/standing", do="resume")
    assert await site.product.committer.read(triggers.next_due) is not None
    said = await bo.post("/scripts/book-a-class/rollback", {"accept": "application/json"}, version="1")
    assert (said.status_code, said.json()["text"]) == (200, "Version 3 is version 1 again.")
    page = (await bo.get("/scripts/book-a-class?changes=2")).text
    assert (
        '<span class="del">- show out' in page.replace("&gt;", ">").replace("-- show", "- show")
        or 'class="del"' in page
    )
    assert (
        await bo.post("/scripts/book-a-class/rollback", {"accept": "application/json"}, version="9")
    ).status_code == 404
    assert (await bo.post("/scripts/nope/standing", do="pause")).status_code == 404


async def test_the_text_in_the_page_becomes_the_next_version_or_its_problems_are_told(site: Site):
    await saved(site)
    bo = await site.session(BO)
    page = (await bo.post("/scripts/book-a-class", script="- n = cuont xs\r\n")).text
    assert "line 1" in page and "cuont" in page
    assert (await bo.post("/scripts/book-a-class", script="- say\r\n  > hi\r\n")).status_code == 303
    found = await site.desk.saved.show("book-a-class", BO)
    assert (found["version"], found["text"], found["on"]) == (2, "- say\n  > hi\n", [])


async def test_save_as_keeps_a_runs_script_and_those_who_cannot_read_the_run_cannot(site: Site):
    await site.job("secret", members=(BO,))
    started = await site.desk.start("- n = let 5\n- show n\n", by=BO, job="secret")
    bo, ana = await site.session(BO), await site.session(ANA)
    page = (await bo.get(f"/runs/{started.run}")).text
    assert f'action="/runs/{started.run}/save"' in page
    assert (await ana.post(f"/runs/{started.run}/save", name="five")).status_code == 404
    said = await bo.post(f"/runs/{started.run}/save", {"accept": "application/json"}, name="five")
    assert said.json() == {"text": "Saved as `five`, version 1.", "accepted": True}
    said = await bo.post(f"/runs/{started.run}/save", {"accept": "application/json"}, name="a/b")
    assert said.status_code == 422 and "cannot be a script's name" in said.json()["text"]


async def test_a_command_in_a_room_starts_its_script_there(site: Site):
    await saved(site, BOOK.replace("  who: {type: text, description: Whose place it is}", "  who: Ana"))
    await site.job("studio")
    ana = await site.session(ANA)
    await ana.post("/jobs/studio/runs", script="/book", do="message")
    (run,) = await site.desk.find_runs()
    assert (run.job, run.owner, run.data["on"]) == ("studio", BO, "`/book` in a conversation")


async def test_a_tap_in_a_room_starts_a_script_on_either_stream_once(site: Site):
    await saved(
        site,
        "---\nname: taps\noverlap: allow\non:\n  - event: web:tap\n  - event: web:message\n---\n- say\n  > tapped\n",
    )
    run = await site.run('- web_send to: "web:pilot" messages: [{type: card, title: Menu, buttons: [book]}]\n')
    await site.until(lambda r: r["ended"] is not None, run)
    sent = next(d for d in await site.product.committer.read(_sent, run))
    bo = await site.session(BO)
    assert (await bo.post(f"/tap/{sent}", value="book")).status_code == 303
    assert len([r for r in await site.desk.find_runs() if r.data.get("script") == "taps"]) == 1


def _sent(tx: Any, run: str) -> list[int]:
    from store import outbox

    return [row["seq"] for row in outbox.find(tx, run_id=run) if row["kind"] == "send"]


async def test_a_script_that_did_not_start_is_told_in_the_inbox_of_its_saver(site: Site):
    await saved(site)
    await site.desk.event(
        "web:message", {"text": "/book", "conversation": "web:pilot"}, ident="1", conversation="web:pilot"
    )
    bo, ana = await site.session(BO), await site.session(ANA)
    assert "Nothing gives its input <code>who</code>" in (await bo.get("/inbox")).text
    assert "did not start" in (await bo.get("/scripts")).text
    assert "Nothing gives" not in (await ana.get("/inbox")).text


async def test_the_api_saves_shows_and_starts(site: Site):
    await site.job()
    bo = await site.bearer(BO)
    assert (await bo.put("/api/scripts/sum", json={"script": "- n = cuont xs"})).json()["refused"][0]["line"] == 1
    text = "---\ninputs:\n  a: {type: number}\n---\n- n = let a + 1\n- show n\n"
    got = await bo.put("/api/scripts/sum", json={"script": text, "job": "pilot"})
    assert (got.status_code, got.json()) == (201, {"saved": {"name": "sum", "version": 1}})
    assert (await bo.put("/api/scripts/sum", json={"script": text})).status_code == 200
    assert (await bo.put("/api/scripts/a%3Fb", json={"script": text})).status_code == 422
    got = await bo.get("/api/scripts/sum")
    assert (got.json()["script"], got.json()["job"], got.json()["inputs"][0]["needed"]) == (text, "pilot", True)
    assert [s["name"] for s in (await bo.get("/api/scripts?q=su")).json()["scripts"]] == ["sum"]
    got = await bo.post("/api/scripts/sum/runs", json={"inputs": {"a": "x"}})
    assert (got.status_code, [p["code"] for p in got.json()["refused"]]) == (422, ["input-type"])
    assert (await bo.post("/api/scripts/sum/runs")).json()["refused"][0]["code"] == "input-missing"
    got = await bo.post("/api/scripts/sum/runs", json={"inputs": {"a": 4}})
    assert got.status_code == 201 and (got.json()["job"], got.json()["script"], got.json()["version"]) == (
        "pilot",
        "sum",
        1,
    )
    found = await site.until(lambda r: r["ended"] is not None, got.json()["id"])
    assert found["result"] == 5
    assert (
        (await bo.get("/api/scripts/nope")).status_code == (await bo.post("/api/scripts/nope/runs")).status_code == 404
    )
    assert (await bo.get("/api/scripts/sum?version=7")).status_code == 404


async def test_who_may_not_start_scripts_saves_and_starts_none_over_the_api(site: Site):
    await saved(site)
    token = await site.bearer("gone@acme.de")
    assert (await token.get("/api/scripts")).status_code == 401
    await site.product.committer.write(lambda tx: people.remove(tx, JONAS))
    jonas = await site.bearer(JONAS)
    assert (await jonas.put("/api/scripts/x", json={"script": "- say\n  > x"})).status_code == 401


async def test_a_checked_script_says_what_starts_it_and_when(site: Site):
    bo = await site.bearer(BO)
    got = (await bo.post("/api/check", json={"script": BOOK})).json()
    assert got["preflight"]["starts"] == [
        {"on": "`0 9 * * mon-fri` (Europe/Berlin)", "next": "2026-03-03T09:00:00+01:00"},
        {"on": "`/book` in a conversation", "next": None},
    ]
    assert any("nothing gives `who`" in note for note in got["notes"])
