"""The pictures of the guide: every page and card, in a small workspace whose clock is set.

Each is taken at every run of the tests, which shows that the page can be brought there; `--pictures` writes them into
docs/pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.runtime.clock import SetClock
from tests.web.browser import BROWSER, PHONE, Room
from tests.web.conftest import ANA, BO, JONAS, served
from tests.web.png import alike, packed
from tests.web.test_pages import until

pytestmark = BROWSER
PICTURES = Path(__file__).parents[2] / "docs/pictures"
BEGIN = datetime(2026, 3, 2, 9, 31, tzinfo=UTC)
"""A Monday, 10:31 in Berlin."""
WIDE = {"width": 1280, "height": 820}
MARGIN = 14
LOOK = {"timezone_id": "Europe/Berlin", "locale": "en-GB", "device_scale_factor": 1}
SCOPE = """- scope = ask @ana approve decline within 2d
  > Extend the pilot to include S/4 writes?
  - miss
    - say role:leads
      > No answer from Ana on the pilot.
- if scope == 'approve'
  - rollout = demo_deploy service: s4 mode: writes
  - say
    > Rolling out: {rollout.url}
- else
  - say @ana
    > Understood, we leave it.
"""
WRONG = """- prs = demo_list_prs repo: acme/api
- some = first prs 2
- verdict = ask @anna ship hold within 1d
  > {some[0].title}: ship it?
- show verdct
"""
HOLDS = """- go = ask @bo yes no within 2d
  > Shall I restart web1 now?
- demo_restart host: web1
- show go
"""
SWAP = """- swap = ask @jonas done within 1d
  > Replace the filter on line 2
- seated = expect camera.line_2 within 10m after swap where: "event.housing == 'closed'"
  - miss
    - say @bo
      > Jonas says the filter is in, but the camera has not seen the housing closed.
- sign = ask @ana fine look-again within 4h after seated
  > Line 2 runs again. Is the pressure as it was?
- say
  > Line 2: new filter seated; {sign}.
"""
FORM = """- visit = ask @ana within 3d fields: [{name: day, type: date}, {name: people, type: number, min: 1, max: 8}, {name: room, type: choice, choices: [blue, garden]}, {name: lunch, type: bool}, {name: agenda, type: file, required: false}]
  > When do you come, and with how many?
- say
  > Ana comes on {visit.day} with {visit.people}.
"""
FILE = """- prs = demo_list_prs repo: acme/api
- titles = transform prs | map(.title) | join("\\n")
- save open-work.txt titles
- say files: [open-work.txt]
  > What is open on acme/api, for the planning on Monday.
"""
BOOKING = """---
name: book-a-class
title: Book a class
inputs:
  who: {type: text, description: whose place it is}
  day: {type: text, choices: [Mon, Wed, Fri], default: Wed}
  seats: {type: number, default: 1}
on:
  - {event: auth.first_signin}
  - command: book
---
- times = demo_schedule
- slot = ask @jonas 07:30 18:30 20:00 within 1d
  > A class for {who} on {day}: which time?
- demo_book_class slot: {slot}
- say
  > Booked for {who}: {day}, {slot}.
"""
WEEKLY = """---
name: weekly
title: What ships this week
on:
  - {every: "0 9 * * Mon", zone: Europe/Berlin}
---
- plan = ask role:leads done within 2d
  > What ships this week? Put it on the board, then tap done.
- say after plan
  > This week is on the board.
"""
RELEASE = """---
name: release-ready
title: Ask every service before a release
inputs:
  services: {type: list, of: text, default: [web, api, search]}
---
- map services as service
  - state = ask @bo ready hold within 1d
    > Is {service} ready for tonight?
"""


@dataclass
class Studio:
    """A room whose clock stands, and where its pictures go."""

    room: Room
    clock: SetClock
    folder: Path | None

    @property
    def desk(self) -> Any:
        return self.room.product.desk

    async def person(self, name: str, **options: Any) -> Any:
        page = await self.room.person(name, **LOOK, **{"viewport": WIDE, **options})
        await page.clock.set_fixed_time(self.clock.now())
        return page

    async def stranger(self, **options: Any) -> Any:
        page = await self.room.stranger(**LOOK, **options)
        await page.clock.set_fixed_time(self.clock.now())
        return page

    async def run(self, script: str, *, by: str = BO, job: str = "pilot") -> str:
        self.clock.move(seconds=1)  # what starts at one instant stands in the order of its ids, which chance makes
        return await self.room.run(script, by=by, job=job)

    async def take(self, name: str, page: Any, part: Any = None, *, margin: int = MARGIN) -> None:
        """A picture of the page, or of one part of it with a margin."""
        await page.evaluate("document.fonts.ready")
        await page.mouse.move(0, 0)
        await plain(page)
        clip = None
        if part is not None:
            await part.scroll_into_view_if_needed()
            box, size = await part.bounding_box(), page.viewport_size
            left, top = max(0, int(box["x"]) - margin), max(0, int(box["y"]) - margin)
            right = min(size["width"], int(box["x"] + box["width"]) + margin)
            bottom = min(size["height"], int(box["y"] + box["height"]) + margin)
            assert box["height"] <= size["height"], f"{name} does not fit its window"
            clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        options = {"clip": clip} if clip else {}
        made = await page.screenshot(animations="disabled", scale="css", **options)
        assert self.room.broken == [], name
        keep(self.folder, name, made)


def keep(folder: Path | None, name: str, made: bytes) -> None:
    """Writes a picture, unless the one that is there looks the same."""
    if folder is not None:
        file = folder / f"{name}.png"
        if not file.exists() or not alike(file.read_bytes(), made):
            file.write_bytes(packed(made))


@pytest.fixture
async def studio(
    tmp_path: Path, anyio_backend: str, chromium: str, request: pytest.FixtureRequest
) -> AsyncIterator[Studio]:
    folder = PICTURES if request.config.getoption("--pictures") else None
    clock = SetClock(BEGIN)
    async with served(tmp_path, chromium, clock=clock, lossy="send_invoice") as room:
        yield Studio(room=room, clock=clock, folder=folder)


async def plain(page: Any) -> None:
    """What chance makes, an id of a run and a port, reads the same in every picture."""
    await page.evaluate(
        """() => {
          const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (walk.nextNode()) {
            const text = walk.currentNode;
            text.data = text.data.replace(/^([0-9][0-9a-z]{8})[0-9a-z]{7}$/, '$1wm4t7kx').replace(/127\\.0\\.0\\.1:\\d+/g, '127.0.0.1:8080');
          }
        }"""
    )


async def lively(studio: Studio) -> dict[str, str]:
    """A workspace in which a day has begun: four jobs, a run in each, what is saved; ten minutes past."""
    for ident, title in (("mika", "Onboarding: Mika"), ("line-2", "Line 2 filter swap"), ("pilot", "Pilot go-live")):
        await studio.room.job(ident, title)
    for text in (BOOKING, BOOKING.replace("seats: {type: number, default: 1}", "seats: {type: number, default: 2}"),
                 WEEKLY, RELEASE):  # fmt: skip
        await studio.desk.saved.save(text, by=BO, job="pilot")
    runs = {
        "mika": await studio.run(
            "- hello = ask @bo sent later\n  > Has Mika the laptop?\n- show hello\n", by=JONAS, job="mika"
        )
    }
    await studio.desk.event("camera.line_2", {"housing": "open", "frame": 7}, ident="f0")
    runs["swap"] = await studio.run(SWAP, job="line-2")
    studio.clock.move(minutes=4)
    assert (await studio.desk.answer(runs["mika"], "hello", "sent", by=BO)).accepted
    assert (await studio.desk.answer(runs["swap"], "swap", "done", by=JONAS)).accepted
    studio.clock.move(minutes=3)
    await studio.desk.event("camera.line_2", {"housing": "closed", "frame": 118}, ident="f1")
    await until(studio.room, runs["swap"], lambda run: run["line"].startswith("waiting on Ana"))
    runs["failed"] = await studio.run("- content = read plan/nowhere.md\n- show content\n", by=JONAS, job="mika")
    await until(studio.room, runs["failed"], lambda run: run["state"] == "failed")
    runs["scope"] = await studio.run(SCOPE)
    studio.clock.move(minutes=9)
    return runs


async def test_what_a_newcomer_sees(studio: Studio):
    stranger = await studio.stranger(viewport={"width": 1280, "height": 420})
    await stranger.goto(studio.room.url)
    await studio.take("login", stranger)
    ana = await studio.person("ana")
    await ana.goto(studio.room.url)
    await studio.take("home", ana)
    await studio.room.job("pilot", "Pilot go-live")
    await ana.goto(f"{studio.room.url}/jobs/pilot")
    await ana.fill("#script", WRONG)
    await ana.locator(".problems").wait_for()
    await ana.evaluate("document.activeElement.blur()")
    await studio.take("composer", ana, ana.locator("#compose .box"))
    await ana.fill("#script", HOLDS)
    await ana.locator(".hold").wait_for()
    await studio.take("preflight", ana, ana.locator("#compose .box"))
    await ana.set_viewport_size({"width": 1280, "height": 1600})
    await ana.fill("#script", SCOPE.replace("@ana", "@bo").replace("Ana", "Bo"))
    await ana.locator(".ready").wait_for()
    await ana.locator("#rehearse:not([disabled])").click()
    await ana.locator(".endings > li").nth(2).wait_for()
    await studio.take("rehearsal", ana, ana.locator("#compose .box"))
    await ana.set_viewport_size(WIDE)
    for path in ("help", "api"):
        await ana.goto(f"{studio.room.url}/{path}")
        await studio.take(path, ana)


async def test_a_room_in_which_a_day_has_begun(studio: Studio):
    runs = await lively(studio)
    ana, bo = await studio.person("ana"), await studio.person("bo")
    await ana.goto(f"{studio.room.url}/inbox")
    await studio.take("inbox", ana)
    address = await ana.locator(".card.mine form[action^='/a/']").last.get_attribute("action")
    where = f"{studio.room.url}/jobs/pilot"
    await ana.goto(where)
    await ana.locator("body[data-connected='1']").wait_for()
    await studio.take("room", ana)
    await studio.take("card", ana, ana.locator(".msg", has=ana.locator(".card.mine")))
    for name, options in (("dark", {"color_scheme": "dark"}), ("phone", {"viewport": PHONE})):
        page = await studio.person("ana", **options)
        await page.goto(where)
        await page.locator("body[data-connected='1']").wait_for()
        await studio.take(name, page)
    page = await studio.stranger(viewport={"width": 1280, "height": 460})
    await page.goto(studio.room.url + address)
    await page.locator(".card.mine").wait_for()
    await studio.take("ask", page)
    await bo.goto(where)
    await bo.locator("#plan .acts summary").first.click()
    await bo.locator("#plan .acts").first.get_by_role("link", name="Hand over").click()
    sheet = bo.get_by_role("dialog")
    await sheet.get_by_label("To whom").select_option(JONAS)
    await sheet.get_by_label("Why").fill("Ana is away until Thursday")
    await sheet.locator(".compared .new").wait_for()
    await bo.evaluate("document.activeElement.blur()")
    await studio.take("edit", bo, sheet, margin=0)
    await sheet.get_by_role("link", name="Leave it").click()
    await studio.desk.edit(runs["swap"], {"op": "sign", "within": "6h"}, by=BO, why="the pressure needs an hour")
    assert (await studio.desk.answer(runs["scope"], "scope", "decline", by=ANA)).accepted
    await ana.locator(".card.settled").wait_for()
    await studio.take("settled", ana, ana.locator(".msg", has=ana.locator(".card.settled")))
    await bo.goto(f"{studio.room.url}/runs")
    await studio.take("runs", bo)
    await bo.goto(f"{studio.room.url}/runs/{runs['swap']}")
    await bo.set_viewport_size({"width": 1280, "height": 1100})
    await studio.take("record", bo)
    await studio.take("evidence", bo, bo.locator("#claims"))
    await bo.set_viewport_size(WIDE)
    await bo.goto(f"{studio.room.url}/scripts")
    await studio.take("scripts", bo)
    await bo.goto(f"{studio.room.url}/scripts/book-a-class")
    await studio.take("script", bo)


async def test_every_other_kind_of_card(studio: Studio):
    await studio.room.job("pilot", "Pilot go-live")
    runs = {"form": await studio.run(FORM), "approval": await studio.run("- rollout = demo_deploy service: s4 mode: writes\n- show rollout\n"),
            "doubt": await studio.run("- sent = send_invoice number: 2026-117 to: billing@acme.de\n- show sent\n", by=ANA),
            "file": await studio.run(FILE)}  # fmt: skip
    for kind in ("approval", "doubt"):
        await until(studio.room, runs[kind], lambda run: run["ops"][0]["state"] in ("gated", "uncertain"))
    await until(studio.room, runs["file"], lambda run: run["state"] == "done")
    hook = await studio.run("- hook = endpoint within 1h\n- got = expect {hook.stream} within 1h\n- show got\n")
    await until(studio.room, hook, lambda run: run["ops"][0]["state"] == "done")
    studio.clock.move(minutes=2)
    ana = await studio.person("ana", viewport={"width": 1280, "height": 1400})
    await ana.goto(f"{studio.room.url}/jobs/pilot")
    await ana.locator("body[data-connected='1']").wait_for()
    for kind, words in (("form", "When do you come"), ("approval", "demo_deploy"), ("doubt", "send_invoice")):
        await studio.take(kind, ana, ana.locator(".msg", has=ana.locator(".card.mine", has_text=words)))
    await studio.take("file", ana, ana.locator(".msg", has=ana.locator(".files")))
    url = (await studio.desk.show(hook))["ops"][0]["value"]["url"]
    page = await studio.stranger(viewport={"width": 1280, "height": 360})
    await page.goto(f"{studio.room.url}/e/{url.rpartition('/')[2]}")
    await studio.take("endpoint", page)
