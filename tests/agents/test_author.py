"""What somebody says to the bot: an answer, or a script that is put before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import runs
from tests.agents.world import agents
from tests.doubles.claude import Body, Fails, Says, Uses, claude, last, prompt, system
from tests.runtime.world import started, state, until

GOOD = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n  - miss\n    - say\n      > No answer from Ana.\n"
WRONG = GOOD.replace("@ana", "@anna")


@pytest.mark.anyio
async def test_a_wish_becomes_a_proposal_that_runs_when_somebody_lets_it(tmp_path: Path) -> None:
    def brain(body: Body) -> Uses:
        return Uses((("propose_script", {"script": GOOD, "note": "Asks Ana about the pilot."}),))

    async with claude(brain) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        written = await one.author.answer("ask Ana whether to extend the pilot", by="bo@acme.de", job="j")
        assert written.text == "Asks Ana about the pilot." and written.proposal is not None
        assert written.seen is not None and written.seen.preflight["addressees"] == ["Ana"]
        assert await one.committer.read(lambda tx: runs.find(tx, limit=5)) == []
        got = await one.proposals.run(written.proposal.id, by="bo@acme.de")
        assert got.accepted and got.run is not None
        shown = await one.desk.show(got.run)
        assert shown["owner"] == "bo@acme.de" and shown["author"] == "agent:claude"
        again = await one.proposals.run(written.proposal.id, by="ana@acme.de")
        assert not again.accepted and again.text == "Bo has run it. Nothing changed."
        assert (await one.proposals.discard(written.proposal.id, by="ana@acme.de")).text.startswith("Bo has run it")
    asked = api.seen[0]
    assert "ana@acme.de (Ana)" in prompt(asked) and "camera.line_2" in prompt(asked)
    assert "within" in system(asked) and asked["stream"]


@pytest.mark.anyio
async def test_problems_go_back_to_the_agent_which_mends_them(tmp_path: Path) -> None:
    def brain(body: Body) -> Uses:
        return Uses((("propose_script", {"script": GOOD if "anna" in last(body) else WRONG}),))

    async with claude(brain) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        written = await one.author.answer("ask Anna", by="bo@acme.de", job="j")
    assert written.proposal is not None and written.proposal.text == GOOD
    assert len(api.seen) == 2 and "did you mean" in last(api.seen[1]).casefold() and api.refused == []


@pytest.mark.anyio
async def test_a_wish_is_kept_without_what_not_every_storage_takes(tmp_path: Path) -> None:
    async with claude(lambda body: "No.") as api, agents(tmp_path, api) as one:
        assert one.wishes is not None
        row = await one.wishes.ask("ship\0 it \ud83d 🚀", by="bo@acme.de", job="j")
    assert row.text == "ship\ufffd it \ufffd 🚀"


@pytest.mark.anyio
async def test_a_script_that_stays_wrong_is_put_before_nobody(tmp_path: Path) -> None:
    async with claude(lambda body: Uses((("propose_script", {"script": WRONG}),))) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        written = await one.author.answer("ask Anna", by="bo@acme.de", job="j")
    assert written.failed and written.proposal is None and "each had problems" in written.text
    assert len(api.seen) == 5


@pytest.mark.anyio
async def test_a_question_gets_an_answer_in_words(tmp_path: Path) -> None:
    async with claude(lambda body: Says("Nothing waits on you.")) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        written = await one.author.answer("what waits on me?", by="bo@acme.de", job="j")
    assert written.text == "Nothing waits on you." and written.proposal is None and not written.failed


@pytest.mark.anyio
async def test_the_agent_is_told_of_names_and_sizes_but_not_of_what_values_say(tmp_path: Path) -> None:
    async with claude(lambda body: Says("ok")) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        run = await started(one, '- secrets = list "the launch code is 0000" b c\n')
        await until(lambda: done(one, run))
        await one.author.answer("what do we have?", by="bo@acme.de", job="j")
    assert "- secrets: list<text> 3" in prompt(api.seen[-1]) and "0000" not in prompt(api.seen[-1])


@pytest.mark.anyio
async def test_a_model_that_refuses_is_told_as_it_is(tmp_path: Path) -> None:
    async with claude(lambda body: Fails(400, "invalid_request_error")) as api, agents(tmp_path, api) as one:
        assert one.author is not None
        written = await one.author.answer("hello", by="bo@acme.de", job="j")
    assert written.failed and "400" in written.text


async def done(one, run: str) -> bool:
    return await state(one, run) == "done"
