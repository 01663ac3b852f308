"""What is said to the bot's agent, on every platform: an answer, or a script that a person lets run, changes or discards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.config import ModelSettings
from bot.domain.catalog import Agent, Policy
from bot.runtime.tools import Tool, tool
from store import proposals, wishes
from tests.channels.stage import Seen, Stage
from tests.channels.test_contract import STAGES
from tests.channels.world import Stand, playing, stand
from tests.doubles.claude import KEY, Body, Brain, Claude, Fails, Says, Uses, claude, prompt
from tests.doubles.slack import SlackStage
from tests.runtime.world import until

pytestmark = pytest.mark.anyio
WISH = "Could you find out whether we extend the pilot?"
ASK = "- scope = ask @ana approve decline\n  > Extend the pilot?\n  - miss\n    - say\n      > No answer.\n"
CHATS = [name for name in STAGES if name != "web"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=CHATS)
def stage(request: pytest.FixtureRequest) -> Stage:
    return STAGES[request.param]()


def proposes(script: str, note: str = "Asks Ana about the pilot.") -> Brain:
    def brain(body: Body) -> Uses:
        return Uses((("propose_script", {"script": script, "note": note}),))

    return brain


def with_model(api: Claude) -> dict[str, Any]:
    return {
        "agents": (Agent(name="claude", default=True),),
        "model": ModelSettings(key=KEY, base_url=api.url, name="claude-haiku-4-5"),
    }


@asynccontextmanager
async def asked(
    stage: Stage, folder: Path, brain: Brain, tools: tuple[Tool, ...] = (), **more: Any
) -> AsyncGenerator[tuple[Stand, Claude]]:
    async with claude(brain) as api, stand(stage, folder, tools, **with_model(api), **more) as at:
        yield at, api


async def proposal(at: Stand, who: str = "bo") -> Seen:
    return await at.card(who, "claude proposes")


async def rows(at: Stand) -> list[proposals.Proposal]:
    def read(tx: Any) -> list[proposals.Proposal]:
        jobs = {one.job for state in ("open", "said", "done") for one in wishes.in_state(tx, state)}
        return [row for job in sorted(jobs) for row in proposals.of_job(tx, job)]

    return await at.product.committer.read(read)


async def test_a_question_gets_its_answer_where_it_was_asked(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, lambda body: Says("Nothing waits on you, Bo.")) as (at, api):
        await stage.paste("bo", "What is going on here?")
        await at.shows("jonas", "Nothing waits on you, Bo.")
        assert not [m for m in stage.seen("bo") if "at work" in m.text]
        assert "What is going on here?" in prompt(api.seen[0]) and len(api.seen) == 1


async def test_whoever_asks_sees_at_once_that_it_is_at_work(stage: Stage, tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with claude(proposes(ASK), hold=hold) as api, stand(stage, tmp_path, **with_model(api)) as at:
        await stage.write("bo", WISH)
        if stage.capabilities.edits:
            working = await at.shows("bo", "claude is at work")
        else:
            await until(lambda: any("loading" in str(call[1]) for call in stage.api.calls))  # pyright: ignore
            working = None
        await stage.write("bo", "status")
        await at.was_told("bo", "Nothing has run here")
        hold.set()
        card = await proposal(at)
        assert working is None or card.ref == working.ref


async def test_a_proposal_says_what_it_would_do_and_runs_for_whoever_lets_it(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, proposes(ASK)) as (at, _):
        await stage.write("bo", WISH)
        card = await proposal(at)
        for said in (
            "Asks Ana about the pilot.",
            "Ask Ana: “Extend the pilot?”",
            "No answer.",
            "Asks: Ana",
            "Ends: by",
        ):
            assert said in card.text
        assert card.buttons[:3] == ("Run", "Edit", "Discard") and "agent:" not in card.text
        assert await at.product.desk.find_runs() == []
        await stage.tap("bo", card, "Run")
        await at.card("ana", "Extend the pilot?")
        told = await at.run(state="waiting")
        assert (told["owner"], told["author"]) == ("bo@acme.de", "agent:claude")
        if stage.capabilities.edits:
            over = await at.shows("bo", "Bo ran it")
            assert over.ref == card.ref and not over.buttons
        else:
            await at.was_told("bo", "It runs.")
        await stage.tap("bo", card, "Discard")
        assert "Bo has run it" in await at.was_told("bo", "Nothing changed")
        assert len(await at.product.desk.find_runs()) == 1


async def test_a_proposal_that_is_discarded_starts_nothing(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, proposes(ASK)) as (at, _):
        await stage.write("bo", WISH)
        card = await proposal(at)
        await stage.tap("bo", card, "Discard")
        if stage.capabilities.edits:
            assert (await at.shows("bo", "Bo discarded it")).ref == card.ref
        else:
            await at.was_told("bo", "Discarded. Nothing has started.")
        await stage.tap("bo", card, "Run")
        await at.was_told("bo", "Bo has discarded it. Nothing has started.")
        assert await at.product.desk.find_runs() == []


async def test_a_proposal_may_be_changed_before_it_runs(stage: Stage, tmp_path: Path) -> None:
    if stage.name == "plain":
        pytest.skip("its forms are of cards alone")
    async with asked(stage, tmp_path, proposes(ASK)) as (at, _):
        await stage.write("bo", WISH)
        card = await proposal(at)
        await stage.tap("bo", card, "Edit")
        if stage.capabilities.forms:
            await stage.slack.until(lambda: "submit" in stage.slack.views.get(stage.ref("bo"), {}))  # pyright: ignore
            wrong = await stage.fill("bo", card, {"script": ASK.replace("@ana", "@anna")})
            assert "line 1" in wrong["script"] and "anna" in wrong["script"]
            assert await at.product.desk.find_runs() == []
            await stage.fill("bo", card, {"script": ASK.replace("pilot", "trial")})
        else:
            await at.was_told("bo", "Copy the script below")
            await until(lambda: any(m.text.strip() == ASK.strip() for m in stage.seen("bo")))
            await stage.write("bo", ASK.replace("pilot", "trial"))
        await at.card("ana", "Extend the trial?")

        async def decided() -> list[proposals.Proposal]:
            return [row for row in await rows(at) if row.state != "open"]

        (row,) = await until(decided)
        told = await at.run(state="waiting")
        assert row.run == told["id"] and row.state == ("run" if stage.capabilities.forms else "replaced")
        if stage.capabilities.edits:
            await until(lambda: any(m.ref == card.ref and not m.buttons for m in stage.seen("bo")))


async def test_a_changed_script_that_would_not_wait_holds_on_the_card(tmp_path: Path) -> None:
    stage = SlackStage()
    async with asked(stage, tmp_path, proposes(ASK), (tool("deploy", lambda: "ok"),)) as (at, _):
        await stage.write("bo", WISH)
        card = await proposal(at)
        await stage.tap("bo", card, "Edit")
        await stage.slack.until(lambda: "submit" in stage.slack.views.get(stage.ref("bo"), {}))
        assert await stage.fill("bo", card, {"script": ASK + "- deploy\n"}) == {}
        held = await until(lambda: next((m for m in stage.seen("bo") if "Wait for the answer" in m.buttons), None))
        assert held.ref == card.ref and await at.product.desk.find_runs() == []
        await stage.tap("bo", held, "Wait for the answer")
        await at.card("ana", "Extend the pilot?")
        told = await at.run(state="waiting")
        assert next(op for op in told["ops"] if op["op"] == "deploy")["state"] == "planned"


async def test_what_comes_twice_is_answered_once(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, proposes(ASK)) as (at, api):
        await stage.write("bo", WISH)
        await stage.again()
        await proposal(at)
        await stage.again()
        await stage.write("bo", "status")
        await at.was_told("bo", "Nothing has run here")
        assert len(await rows(at)) == 1 and len(api.seen) == 1
        assert len([m for m in stage.seen("bo") if "claude proposes" in m.text]) == 1


async def test_a_process_that_ends_in_the_middle_answers_after_its_next_start(stage: Stage, tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with claude(proposes(ASK), hold=hold) as api, stage:
        async with playing(stage, tmp_path, **with_model(api)) as at:
            await stage.write("bo", WISH)
            await until(lambda: api.seen)
        hold.set()
        async with playing(stage, tmp_path, **with_model(api)) as at:
            card = await proposal(at)
            assert len(await rows(at)) == 1
            assert not [m for m in stage.seen("bo") if "at work" in m.text]
            assert len([m for m in stage.seen("bo") if "claude proposes" in m.text]) == 1
            await stage.tap("bo", card, "Run")
            await at.card("ana", "Extend the pilot?")


async def test_a_strangers_tap_is_refused_to_them_alone(stage: Stage, tmp_path: Path) -> None:
    only = Policy(approve={}, paste=("bo@acme.de",))
    async with asked(stage, tmp_path, proposes(ASK), policy=only) as (at, _):
        await stage.paste("bo", WISH)
        card = await proposal(at, "ana")
        await stage.tap("ana", card, "Run")
        await at.was_told("ana", "Scripts are started by Bo here. Nothing has started.")
        await stage.tap("mika", card, "Run")
        await at.was_told("mika", "Nothing has started.")
        assert await at.product.desk.find_runs() == []
        assert [row.state for row in await rows(at)] == ["open"]


async def test_who_may_start_no_scripts_gets_the_short_help(stage: Stage, tmp_path: Path) -> None:
    only = Policy(approve={}, paste=("bo@acme.de",))
    async with asked(stage, tmp_path, proposes(ASK), policy=only) as (at, api):
        await stage.write("ana", WISH)
        await at.was_told("ana", "This is no script.")
        assert api.seen == []


async def test_without_a_model_there_is_the_short_help(stage: Stage, tmp_path: Path) -> None:
    async with stand(stage, tmp_path) as at:
        await stage.write("bo", WISH)
        await at.was_told("bo", "This is no script.")
        await stage.write("bo", "help")
        assert "in your own words" not in await at.was_told("bo", "Paste a script")


async def test_help_says_that_one_may_just_ask(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, proposes(ASK)) as (at, _):
        await stage.write("bo", "help")
        assert "in your own words: claude answers" in await at.was_told("bo", "Paste a script")


async def test_a_model_that_fails_is_told_as_it_is(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, lambda body: Fails(400, "invalid_request_error")) as (at, _):
        await stage.write("bo", WISH)
        said = await at.shows("bo", "claude has no answer")
        assert "400" in said.text and "Nothing has started" in said.text and "help" in said.text


async def test_what_would_overtake_an_ask_holds_on_its_card(stage: Stage, tmp_path: Path) -> None:
    calls: list[str] = []

    async def deploy() -> str:
        calls.append("deploy")
        return "ok"

    async with asked(stage, tmp_path, proposes(ASK + "- deploy\n"), (tool("deploy", deploy),)) as (at, _):
        await stage.write("bo", WISH)
        card = await proposal(at)
        assert "tarts without waiting for Ana" in card.text and "Writes: " in card.text
        assert card.buttons[:4] == ("Wait for the answer", "Run as written", "Edit", "Discard")
        await stage.tap("bo", card, "Wait for the answer")
        ask = await at.card("ana", "Extend the pilot?")
        assert calls == []
        await stage.tap("ana", ask, "approve")
        await at.run()
        assert calls == ["deploy"]


async def test_what_was_said_before_is_known_to_the_agent(stage: Stage, tmp_path: Path) -> None:
    async with asked(stage, tmp_path, proposes(ASK)) as (at, api):
        await stage.write("bo", WISH)
        await proposal(at)
        await stage.write("bo", "Please give her three days for it")
        await until(lambda: len(api.seen) == 2)
        told = prompt(api.seen[1])
        assert WISH in told and "Extend the pilot?" in told and told.index(WISH) < told.index("three days")


FAN = "- all = list a b c d e f\n- answers = each all\n  > Is {it} a vowel?\n- show answers\n"


async def test_the_live_message_says_how_far_a_fan_out_is(stage: Stage, tmp_path: Path) -> None:
    if not stage.capabilities.edits:
        pytest.skip("nothing can be changed there")
    hold = asyncio.Event()
    async with claude(lambda body: Says("YES"), hold=hold) as api, stand(stage, tmp_path, **with_model(api)) as at:
        await stage.paste("bo", FAN)
        live = await at.shows("bo", "answers: 0 of 6")
        hold.set()
        await at.run()
        await until(lambda: any(m.ref == live.ref and "of 6" not in m.text for m in stage.seen("bo")))
