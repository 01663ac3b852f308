"""Who people are on platforms: told by the platform, by its groups, by its own account link."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from bot.people import directory
from store import people
from tests.channels.world import playing, stand
from tests.doubles.line import PEOPLE, LineStage
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_people_are_found_by_their_email_and_groups_are_roles(tmp_path: Path) -> None:
    stage = SlackStage()
    async with stage:
        stage.slack.groups.append(
            {"id": "S1", "handle": "oncall", "users": [stage.ref("ana"), stage.ref("bo")], "date_delete": 0}
        )
        async with playing(stage, tmp_path, identified=False) as at:
            await until(lambda: _known(at.product.db.read(directory.read, at.product.settings, at.product.clock.now())))
            await at.chat.acquaintance.look()
            world = await at.product.desk.world()
            assert world.person("ana@acme.de").identities["slack"] == stage.ref("ana")  # type: ignore[union-attr]
            assert set(world.roles["oncall"]) == {"ana@acme.de", "bo@acme.de"}
            await stage.paste("bo", "- ok = ask role:oncall yes no\n  > Restart it?\n")
            card = await at.card("ana", "Restart it?")
            await stage.tap("ana", card, "yes")
            assert (await at.run())["ops"][0]["by"] == "ana@acme.de"


def _known(world: object) -> bool:
    return all("slack" in person.identities for person in world.people)  # type: ignore[attr-defined]


async def test_an_account_of_line_is_linked_by_whoever_is_logged_in(tmp_path: Path) -> None:
    stage = LineStage()
    async with stand(stage, tmp_path) as at:
        await at.product.committer.write(lambda tx: people.put(tx, "mika@acme.de", "Mika"))
        at.product.people_changed()
        await stage.write("mika", "link")
        said = await at.was_told("mika", "/link/line?linkToken=")
        address = re.search(r"http\S+", said)
        assert address is not None
        async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as browser:
            out = await browser.get(address[0])
            assert "Link this account" not in out.text
            await browser.post(await at.product.desk.login_link("mika@acme.de", base=stage.api.address))
            page = await browser.get(address[0])
        onward = re.search(r'href="([^"]*accountLink[^"]*)"', page.text)
        assert "You are Mika here" in page.text and onward is not None
        nonce = parse_qs(urlsplit(onward[1].replace("&amp;", "&")).query)["nonce"][0]
        await stage.api.happens(stage.api.event("accountLink", "mika", link={"result": "ok", "nonce": nonce}))
        await until(lambda: at.product.db.read(people.identity_of, "line", PEOPLE["mika"]))
        await asyncio.sleep(0)
        found = at.product.db.read(people.identity_of, "line", PEOPLE["mika"])
        assert found is not None and found["email"] == "mika@acme.de"


async def test_the_page_of_whoever_is_logged_in_opens_the_bot_on_telegram_with_proof(tmp_path: Path) -> None:
    stage = TelegramStage()
    async with stand(stage, tmp_path) as at:
        await at.product.committer.write(lambda tx: people.put(tx, "mika@acme.de", "Mika"))
        at.product.people_changed()
        origin = stage.address
        async with httpx2.AsyncClient(base_url=origin, follow_redirects=True, headers={"origin": origin}) as browser:
            await browser.get(await at.product.desk.login_link("mika@acme.de", base=origin))
            csrf = re.search(r'name="csrf" value="([^"]+)"', (await browser.get("/me")).text)
            assert csrf is not None
            page = await browser.post("/me", data={"csrf": csrf[1], "do": "link", "channel": "telegram"})
            address = re.search(r'href="https://t\.me/waiton_bot\?start=([\w-]+)"', page.text)
            assert address is not None and f"link {address[1]}<" in page.text
            await stage.write("mika", f"/start {address[1]}")
            assert "You are Mika here now" in await at.was_told("mika", "Mika")
            assert stage.ref("mika") in (await browser.get("/me")).text
