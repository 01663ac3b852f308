"""Every page in every state, on a desk and on a phone, light and dark: as every page must be."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.ids import tap_token
from tests.runtime import world
from tests.web.browser import BROWSER, PHONE, WIDE, Room, sound

pytestmark = BROWSER
SIZES = pytest.mark.parametrize(
    "look", [{"viewport": WIDE}, {"viewport": PHONE, "color_scheme": "dark"}], ids=["wide", "phone, dark"]
)
FIELDS = (
    "{name: note, type: text, max: 200}, {name: seats, type: number, min: 1, max: 9}, {name: day, type: date}, "
    "{name: at, type: time}, {name: lunch, type: bool}, {name: size, type: choice, choices: [big, small]}, "
    "{name: who, type: person}, {name: doc, type: file, required: false}"
)
MANY = " ".join(f"choice{n}" for n in range(20))
CARDS = {
    "choices": "- a = ask @ana approve decline within 2d\n  > Extend the pilot?\n- if a == 'approve'\n  - say\n    > We do.\n",
    "long list": f"- b = ask @ana {MANY} within 2d\n  > Which of these?\n",
    "free text": "- c = ask @ana within 2d\n  > What do you think of averyveryveryveryveryveryveryveryveryverylongword?\n",
    "form": f"- d = ask @ana within 2d fields: [{FIELDS}]\n  > Tell me all.\n",
    "reason": "- e = ask @ana yes no within 2d reason: required\n  > Shall we stop?\n",
    "approval": "- f = demo_deploy service: s4 mode: writes\n",
    "doubt": "- g = lossy x: 1\n",
    "role": "- h = ask role:leads yes no need: 2 within 2d\n  > Both of you?\n",
}


async def cards(room: Room) -> dict[str, str]:
    """A run a kind of card, each put to Ana; by kind."""
    await room.job("pilot", "Pilot")
    made: dict[str, str] = {}
    for kind, script in CARDS.items():
        made[kind] = await room.run(script, by="ana@acme.de" if kind == "doubt" else "bo@acme.de")
    for kind in ("approval", "doubt"):
        await until(room, made[kind], lambda run: run["ops"][0]["state"] in ("gated", "uncertain"))
    return made


async def until(room: Room, run: str, holds: Any) -> None:
    """Looks until this holds of a run."""

    async def so() -> bool:
        return bool(holds(await room.product.desk.show(run)))

    await world.until(so)


@SIZES
async def test_pages_of_a_room_in_which_nothing_has_happened(room: Room, look: dict[str, Any]):
    page = await room.person("ana", **look)
    for path in ("/", "/inbox", "/runs", "/help", "/help?q=file", "/api", "/jobs?", "/?example=ask"):
        await page.goto(room.url + path)
        if path == "/?example=ask":
            await page.locator(".ready").wait_for()
        await sound(page, path)
    await room.job("pilot", "Pilot")
    await page.goto(f"{room.url}/jobs/pilot")
    await sound(page, "an empty job", tabs=40)
    await page.fill("#script", "- scope = ask @anna yes\n  > Go?\n- count nothing\n")
    await page.locator(".problems").wait_for()
    await sound(page, "a wrong script")
    await page.fill("#script", "- go = ask @ana yes no\n  > Go?\n- demo_restart host: web1\n- show go\n")
    await page.locator(".hold").wait_for()
    await sound(page, "a script that holds")
    await page.locator("#rehearse").click()
    await page.locator(".endings").wait_for()
    await sound(page, "a rehearsal")
    await page.keyboard.press("Escape")
    await page.locator("a[data-over]").click()
    await page.get_by_role("dialog").wait_for()
    await sound(page, "help over the room")
    assert room.broken == []


@SIZES
async def test_every_kind_of_card_open_and_settled(room: Room, look: dict[str, Any]):
    made = await cards(room)
    page = await room.person("ana", **look)
    await page.goto(f"{room.url}/inbox")
    assert await page.locator(".card.mine").count() == len(CARDS)
    await page.evaluate("document.querySelectorAll('details.more').forEach((el) => { el.open = true; })")
    await sound(page, "a full inbox", tabs=80)
    for path in ("/jobs/pilot", f"/runs/{made['form']}", f"/runs/{made['approval']}", f"/runs/{made['doubt']}"):
        await page.goto(room.url + path)
        await sound(page, path, tabs=4)
    desk = room.product.desk
    for kind, op, answer in (("choices", "a", "approve"), ("free text", "c", "Well."), ("reason", "e", "yes"),
                             ("approval", "f", "decline"), ("doubt", "g", "happened"), ("role", "h", "yes")):  # fmt: skip
        assert (await desk.answer(made[kind], op, answer, by="ana@acme.de", reason="because")).accepted, kind
    await desk.edit(made["long list"], {"op": "b", "withdraw": True}, by="bo@acme.de")
    await page.goto(f"{room.url}/jobs/pilot")
    assert await page.locator(".card.settled").count() == len(CARDS) - 1
    await sound(page, "settled cards", tabs=4)
    assert room.faults == []


@SIZES
async def test_a_job_and_its_record_in_every_state(room: Room, look: dict[str, Any]):
    await room.job("pilot", "Pilot")
    desk = room.product.desk
    states = {"waiting": await room.run(CARDS["choices"]), "paused": await room.run(CARDS["choices"])}
    states["cancelled"] = await room.run(CARDS["choices"])
    await desk.edit(states["paused"], {"run": "pause"}, by="bo@acme.de")
    await desk.edit(states["cancelled"], {"run": "cancel"}, by="bo@acme.de", why="enough")
    states["done"] = await room.run(
        "- prs = demo_list_prs repo: acme/api\n- titles = transform prs | map(.title)\n- save titles.txt titles\n"
        "- say files: [titles.txt]\n  > Here they are: https://example.com/a\n- show titles\n"
    )
    states["failed"] = await room.run("- content = read nowhere.md\n- show content\n")
    states["running"] = await room.run(
        "- prs = demo_list_prs repo: acme/api\n- map prs as pr\n  - verdict = ask @ana ship hold\n    > {pr.title}\n"
        "- seen = expect camera.line_2 within 10m after prs\n- parallel\n  - branch docs\n    - say\n      > one\n"
        "  - branch site\n    - say @bo\n      > two\n"
    )
    await until(room, states["done"], lambda run: run["state"] == "done")
    await until(room, states["failed"], lambda run: run["state"] == "failed")
    await desk.edit(states["waiting"], {"op": "a", "to": "jonas@acme.de"}, by="bo@acme.de", why="on leave")
    page = await room.person("bo", **look)
    for state, run in states.items():
        for path in (f"/jobs/pilot?run={run}", f"/runs/{run}"):
            await page.goto(room.url + path)
            await sound(page, f"{path} ({state})", tabs=6)
    for path in (
        "/runs", "/runs?state=done&person=bo@acme.de&q=prs", "/runs?q=nothing+such", "/runs?state=odd",
        f"/runs/{states['waiting']}/edit?op=1&do=insert", f"/runs/{states['waiting']}/edit?op=1&do=to",
        f"/runs/{states['waiting']}/edit?run=cancel", f"/runs/{states['done']}/edit?op=1", "/nowhere",
    ):  # fmt: skip
        await page.goto(room.url + path)
        await sound(page, path, tabs=8)
    await page.goto(f"{room.url}/runs?state=waiting")
    assert "waiting on Jonas since" in await page.inner_text(".hits")
    assert room.broken == []


@SIZES
async def test_pages_for_people_without_a_session(room: Room, look: dict[str, Any]):
    from store import waits

    await room.job("pilot", "Pilot")
    run = await room.run("- hook = endpoint within 1h\n- got = expect {hook.stream} within 1h\n")
    await until(room, run, lambda found: found["ops"][0]["state"] == "done")
    url = (await room.product.desk.show(run))["ops"][0]["value"]["url"]
    assert await room.product.committer.read(waits.get_endpoint, url.rpartition("/")[2])
    link = await room.product.desk.login_link("ana@acme.de")
    page = await room.stranger(**look)
    for path in (f"/e/{url.rpartition('/')[2]}", "/", "/inbox", "/api", "/nowhere", "/a/none", "/login/none"):
        await page.goto(room.url + path)
        await sound(page, path)
    await page.set_extra_http_headers({"x-forwarded-for": "192.0.2.1"})
    await page.goto(link)
    assert "Log in as Ana" in await page.inner_text("main")
    await sound(page, "login")
    assert room.broken == []


async def test_every_kind_of_card_is_answered_on_its_page_without_javascript_or_a_session(room: Room):
    from store import outbox

    made = await cards(room)
    page = await room.stranger(java_script_enabled=False, viewport=PHONE)
    taps = {"choices": "approve", "reason": "no", "approval": "decline", "doubt": "happened", "role": "yes"}
    for kind, run in made.items():
        rows = await room.product.committer.read(lambda tx, run=run: outbox.find(tx, run_id=run, to="ana@acme.de"))
        await page.goto(f"{room.url}/a/{tap_token(room.product.site.secret, rows[-1]['seq'])}")
        assert await page.locator(".card.mine form").count() == 1, kind
        if kind == "long list":
            await page.get_by_label("Your choice").select_option("choice7")
        if kind == "free text":
            await page.get_by_label("Your answer").fill("Well.")
        if kind == "form":
            for label, value in (("note", "x"), ("seats", "3"), ("day", "2030-01-02"), ("at", "09:30")):
                await page.get_by_label(label, exact=True).fill(value)
            await page.get_by_label("lunch").check()
            await page.get_by_label("size").select_option("small")
            await page.get_by_label("who").select_option("bo@acme.de")
            upload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"hello"}
            await page.locator("input[type=file]").set_input_files(upload)
        if kind in ("reason", "approval"):
            await page.get_by_label("Reason").fill("because")
        await page.get_by_role("button", name=taps.get(kind, "Answer")).click()
        assert "is in." in await page.inner_text("#toast"), kind
        assert await page.locator(".card.settled").count() == 1, kind
    doc = (await room.product.desk.show(made["form"]))["ops"][0]["value"]
    assert (doc["doc"]["name"], doc["who"], doc["lunch"]) == ("a.txt", "bo@acme.de", True)


async def test_two_people_see_each_others_taps_within_a_second(room: Room):
    where = await room.job("pilot", "Pilot")
    run = await room.run(CARDS["role"], by="jonas@acme.de")
    ana, bo = await room.person("ana"), await room.person("bo")
    for page in (ana, bo):
        await page.goto(where)
        await page.locator("body[data-connected='1']").wait_for()
    await ana.locator(".card.mine").get_by_role("button", name="yes").click()
    await bo.locator("#plan .sub", has_text="Ana: yes").wait_for(timeout=1000)
    await bo.locator(".card.mine").get_by_role("button", name="yes").click()
    await ana.locator(".pill.good").wait_for(timeout=1000)
    assert (await room.product.desk.show(run))["state"] == "done"
    assert room.faults == []


async def test_the_composer_keeps_the_indentation_and_lets_the_keyboard_out(room: Room):
    bo = await room.person("bo")
    await bo.goto(await room.job("pilot", "Pilot"))
    await bo.locator("#script").click()
    for line in ("- if true", "", "", "x"):
        await bo.keyboard.type(line)
        await bo.keyboard.press("Enter")
    assert await bo.input_value("#script") == "- if true\n\n\nx\n"
    await bo.fill("#script", "  - say\n    > one")
    await bo.locator("#script").press("End")
    await bo.keyboard.press("Enter")
    await bo.keyboard.type("two")
    await bo.keyboard.press("Enter")
    await bo.keyboard.press("Enter")
    await bo.keyboard.type("- x")
    assert await bo.input_value("#script") == "  - say\n    > one\n    > two\n    - x"
    await bo.keyboard.press("Tab")
    assert await bo.evaluate("document.activeElement.id") != "script"
    await bo.get_by_role("button", name="Examples").click()
    await bo.locator("#examples a").first.click()
    await bo.locator(".ready").wait_for()
    assert "Extend the pilot" in await bo.input_value("#script")
    await bo.locator("#script").press("Control+z")
    assert await bo.input_value("#script") == "  - say\n    > one\n    > two\n    - x"
    await bo.locator("#script").press("Control+/")
    sheet = bo.get_by_role("dialog")
    await sheet.get_by_label("Find").fill("approve nothing such")
    await sheet.get_by_text("Nothing here is called so.").wait_for()
    await sheet.get_by_label("Find").fill("file pattern")
    assert await sheet.locator(".help-entry:visible").count() == 1
    await sheet.get_by_label("Find").press("Escape")
    await sheet.get_by_label("Find").press("Escape")
    await sheet.wait_for(state="hidden")
    assert room.faults == []
