"""The page of whoever is logged in: who they are on each platform that is on, and where their cards go."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bot.config import Settings
from bot.domain.catalog import Person
from store import people
from tests.web.conftest import ANA, BO, Site

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Slack and Telegram are on; the settings say who Bo is on Slack."""
    bo = next(p for p in settings.people if p.email == BO)
    others = tuple(p for p in settings.people if p.email != BO)
    return replace(
        settings,
        people=(*others, replace(bo, identities={"slack": "UBO"})),
        platforms={"slack": {"bot_token": "xoxb-1"}, "telegram": {"token": "1:a"}},
    )


async def linked(site: Site, email: str, channel: str, ref: str) -> None:
    await site.product.committer.write(lambda tx: people.link(tx, email, channel, ref))
    site.product.people_changed()


async def person(site: Site, email: str) -> Person:
    found = (await site.desk.world()).person(email)
    assert found
    return found


def rows(page: str) -> list[str]:
    """What stands of each platform, in words."""
    found = re.findall(r"<li>\s*<p><b>.*?</li>", page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


async def test_the_page_says_who_somebody_is_on_each_platform_that_is_on(site: Site):
    await linked(site, ANA, "telegram", "5512")
    await linked(site, ANA, "line", "U4af")
    page = (await (await site.session(ANA)).get("/me")).text
    assert rows(page) == ["Slack not linked Link", "Telegram 5512 Unlink"]


async def test_what_the_settings_say_is_not_changed_here(site: Site):
    bo = await site.session(BO)
    assert rows((await bo.get("/me")).text)[0] == "Slack UBO as the settings say"
    for do in ("link", "unlink"):
        await bo.post("/me", do=do, channel="slack")
        assert "The settings say who you are on Slack. Nothing changed." in (await bo.get("/me")).text
    assert (await person(site, BO)).identities["slack"] == "UBO"


async def test_the_words_that_link_are_shown_once_and_prove_who_it_is(site: Site):
    ana = await site.session(ANA)
    got = await ana.post("/me", do="link", channel="telegram")
    found = re.search(r"link ([\w-]{16,})", got.text)
    assert got.status_code == 200 and found and "a private chat with the bot" in got.text
    assert found[1] not in (await ana.get("/me")).text and "said" not in got.headers.get("set-cookie", "")
    use = site.product.committer.write
    assert await use(lambda tx: people.use_login(tx, found[1], site.clock.now())) is None, "it logs nobody in"
    assert await use(lambda tx: people.use_login(tx, found[1], site.clock.now(), "link")) == ANA


async def test_the_words_prove_nothing_after_fifteen_minutes(site: Site):
    found = re.search(
        r"link ([\w-]{16,})", (await (await site.session(ANA)).post("/me", do="link", channel="slack")).text
    )
    assert found
    site.clock.move(minutes=15)
    assert not await site.product.committer.write(lambda tx: people.use_login(tx, found[1], site.clock.now(), "link"))


async def test_unlinking_takes_every_identity_there_and_only_the_readers(site: Site):
    for ref in ("1", "2"):
        await linked(site, ANA, "telegram", ref)
    await linked(site, BO, "telegram", "3")
    ana = await site.session(ANA)
    await ana.post("/me", do="prefer", channel="telegram")
    await ana.post("/me", do="unlink", channel="telegram")
    page = (await ana.get("/me")).text
    assert "You are nobody on Telegram now. Your cards go wherever you are." in page
    assert rows(page)[1] == "Telegram not linked Link"
    assert "telegram" not in (await person(site, ANA)).identities and (await person(site, ANA)).prefers is None
    assert (await person(site, BO)).identities["telegram"] == "3"
    await ana.post("/me", do="unlink", channel="telegram")
    assert "You are nobody on Telegram already. Nothing changed." in (await ana.get("/me")).text


@pytest.mark.parametrize(
    ("channel", "prefers", "words"),
    [
        ("telegram", "telegram", "Your cards go to Telegram from now on."),
        ("web", "web", "Your cards go to the room from now on."),
        ("none", None, "Your cards go wherever you are from now on."),
        ("slack", "line", "You are nobody on Slack yet; link it first. Nothing changed."),
        ("line", "line", "You are nobody on LINE yet; link it first. Nothing changed."),
        ("pigeon", "line", "There is no such place for cards. Nothing changed."),
    ],
)
async def test_cards_go_where_somebody_wants_them_of_where_they_are_reached(
    site: Site, channel: str, prefers: str | None, words: str
):
    await linked(site, ANA, "telegram", "5512")
    await site.product.committer.write(lambda tx: people.prefer(tx, ANA, "line"))
    ana = await site.session(ANA)
    await ana.post("/me", do="prefer", channel=channel)
    page = (await ana.get("/me")).text
    assert words in page
    assert (await person(site, ANA)).prefers == prefers
    assert ("You chose LINE, where nothing reaches you now" in page) == (prefers == "line")


async def test_a_platform_that_is_not_on_is_neither_linked_nor_unlinked(site: Site):
    ana = await site.session(ANA)
    for do in ("link", "unlink"):
        await ana.post("/me", do=do, channel="line")
        assert "This platform is not on here. Nothing changed." in (await ana.get("/me")).text
    await ana.post("/me", do="dance")
    assert "This page takes no such thing. Nothing changed." in (await ana.get("/me")).text


async def test_the_page_is_the_readers_alone(site: Site):
    assert (await site.client().get("/me")).status_code == 401
    ana = await site.session(ANA)
    ana.csrf = "another"
    assert (await ana.post("/me", do="prefer", channel="web")).status_code == 403
    assert (await person(site, ANA)).prefers is None
