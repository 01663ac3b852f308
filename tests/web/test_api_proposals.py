"""The API of the bot's agent: a wish, its answer, a proposal that runs or is discarded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.config import ModelSettings, Settings
from bot.domain.catalog import Agent, Policy
from bot.runtime.clock import SetClock
from bot.server.app import app
from bot.wiring import Product
from tests.doubles.claude import KEY, Claude, Fails, Says, Uses, claude
from tests.runtime.world import until
from tests.web.conftest import ANA, BO, NOW, Site

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- show scope\n"


@pytest.fixture
async def api(anyio_backend: str) -> AsyncIterator[Claude]:
    async with claude(lambda body: Uses((("propose_script", {"script": ASK, "note": "Asks Ana."}),))) as one:
        yield one


@pytest.fixture
async def asking(settings: Settings, api: Claude, tmp_path: Path) -> AsyncIterator[Site]:
    model = ModelSettings(key=KEY, base_url=api.url, name="claude-haiku-4-5")
    set_ = replace(settings, agents=(Agent(name="claude", default=True),), model=model)
    product = Product(set_, clock=SetClock(NOW))
    await product.start()
    found = Site(product=product, clock=SetClock(NOW), web=app(product))
    yield found
    for client in found.made:
        await client.aclose()
    await product.stop()


async def asked(client: Any, wish: str = "Ask Ana whether to extend the pilot") -> dict[str, Any]:
    """The wish once it is answered."""
    got = await client.post("/api/proposals", json={"wish": wish, "job": "pilot"})
    assert got.status_code == 202 and got.json()["state"] == "writing"
    where = got.headers["location"]
    assert where == f"/api/proposals/{got.json()['id']}"

    async def over() -> dict[str, Any] | None:
        found = (await client.get(where)).json()
        return found if found["state"] != "writing" else None

    return await until(over)


async def test_a_wish_is_answered_with_a_proposal_that_runs_as_whoever_lets_it(asking: Site):
    bo, ana = await asking.bearer(BO), await asking.bearer(ANA)
    made = await asked(bo)
    assert (made["state"], made["script"], made["answer"]) == ("open", ASK, "Asks Ana.")
    assert (made["for"], made["author"], made["run"]) == (BO, "agent:claude", None)
    got = await ana.post(f"/api/proposals/{made['id']}/run")
    assert got.status_code == 201 and (got.json()["owner"], got.json()["author"]) == (ANA, "agent:claude")
    again = await bo.post(f"/api/proposals/{made['id']}/run")
    assert again.status_code == 409 and again.json() == {
        "text": "Ana has run it. Nothing changed.",
        "run": got.json()["id"],
    }
    (listed,) = (await bo.get("/api/proposals?job=pilot")).json()["proposals"]
    assert (listed["state"], listed["by"], listed["run"]) == ("run", ANA, got.json()["id"])


async def test_a_proposal_may_run_as_it_was_changed(asking: Site):
    bo = await asking.bearer(BO)
    made = await asked(bo)
    wrong = await bo.post(f"/api/proposals/{made['id']}/run", json={"text": ASK.replace("@ana", "@anna")})
    assert wrong.status_code == 422 and wrong.json()["refused"][0]["line"] == 1
    got = await bo.post(f"/api/proposals/{made['id']}/run", json={"text": ASK.replace("pilot", "trial")})
    assert got.status_code == 201
    assert "Extend the trial?" in str((await asking.desk.plan_of(got.json()["id"]))[0])


async def test_what_is_discarded_starts_nothing(asking: Site):
    bo = await asking.bearer(BO)
    made = await asked(bo)
    assert (await bo.post(f"/api/proposals/{made['id']}/discard")).json()["text"] == "Discarded. Nothing has started."
    assert (await bo.post(f"/api/proposals/{made['id']}/run")).status_code == 409
    assert (await bo.get("/api/runs")).json()["runs"] == []


async def test_words_and_failures_are_answers_too(asking: Site, api: Claude):
    bo = await asking.bearer(BO)
    api.brain = lambda body: Says("Nothing waits on you.")
    said = await asked(bo, "What waits on me?")
    assert (said["state"], said["answer"], said["script"]) == ("answered", "Nothing waits on you.", None)
    api.brain = lambda body: Fails(400, "invalid_request_error")
    failed = await asked(bo, "And now?")
    assert failed["state"] == "failed" and "400" in failed["answer"]


async def test_what_one_may_not_read_or_start_is_refused(asking: Site):
    bo, ana = await asking.bearer(BO), await asking.bearer(ANA)
    await asking.job("alone", members=(BO,))
    got = await bo.post("/api/proposals", json={"wish": "Ask Ana", "job": "alone"})
    ident = got.json()["id"]
    assert (await ana.get(f"/api/proposals/{ident}")).status_code == 404
    assert (await ana.post(f"/api/proposals/{ident}/run")).status_code == 404
    assert (await ana.get("/api/proposals?job=alone")).status_code == 404
    assert (await ana.get("/api/proposals")).status_code == 422
    assert (await ana.post("/api/proposals", json={"wish": "Ask Bo", "job": "alone"})).status_code == 404
    assert (await ana.post("/api/proposals", json={"wish": " "})).status_code == 422
    assert (await ana.post("/api/proposals/p_none/discard")).status_code == 404


async def test_without_an_agent_it_says_what_is_missing(site: Site):
    bo = await site.bearer(BO)
    got = await bo.post("/api/proposals", json={"wish": "Ask Ana"})
    assert got.status_code == 409 and "ANTHROPIC_API_KEY" in got.json()["text"]


async def test_only_people_who_start_scripts_ask(settings: Settings, api: Claude):
    model = ModelSettings(key=KEY, base_url=api.url, name="claude-haiku-4-5")
    set_ = replace(settings, agents=(Agent(name="claude"),), model=model, policy=Policy(paste=(BO,)))
    product = Product(set_, clock=SetClock(NOW))
    await product.start()
    site = Site(product=product, clock=SetClock(NOW), web=app(product))
    ana = await site.bearer(ANA)
    got = await ana.post("/api/proposals", json={"wish": "Ask Bo"})
    assert got.status_code == 403 and "Scripts are started by Bo here" in got.json()["text"]
    await ana.aclose()
    await product.stop()
