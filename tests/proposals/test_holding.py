"""What an agent starts: it runs at once where it does nothing outside, else it holds until a person lets it run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config import load
from bot.domain.catalog import Policy
from bot.domain.errors import Misconfigured
from bot.runtime.tools import tool
from bot.wiring import Product
from store import proposals, runs
from tests.runtime.world import product, until

pytestmark = pytest.mark.anyio
MCP = "agent:claude-code"


def deploy() -> str:
    return "ok"


async def handed(one: Product, script: str, **more: str):
    return await one.proposals.hold_or_start(script, by="ana@acme.de", job="j", author=MCP, **more)


async def open_ones(one: Product) -> list[str]:
    return [row.text for row in await one.committer.read(proposals.of_job, "j") if row.state == "open"]


async def test_what_does_nothing_outside_starts_at_once_for_its_person(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        got = await handed(one, "- a = ask @bo yes no\n  > Go on?\n")
        assert got.held is None and got.started is not None and got.started.run is not None
        shown = await one.desk.show(got.started.run)
    assert (shown["owner"], shown["author"]) == ("ana@acme.de", MCP)


@pytest.mark.parametrize(
    "script",
    [
        "- deploy\n",
        "- if 1 > 0\n  - deploy\n",
        "- files = list a\n- save /all.txt files\n",
        "- place = let '\"/all.txt\"'\n- save {place} place\n",
        "- who = let '\"ana@acme.de\"'\n- say {who}\n  > Hello\n",
        '{name: "nightly", on: [{every: "0 3 * * *"}], program: [{op: "show", params: {value: "1"}}]}',
    ],
)
async def test_what_writes_or_starts_by_itself_holds(tmp_path: Path, script: str) -> None:
    async with product(tmp_path, (tool("deploy", deploy),)) as one:
        got = await handed(one, script)
        assert got.held is not None, got.seen.rendered()
        assert "holds until a person taps Run" in got.text and f"/jobs/{got.held.job}" in got.text
        assert await one.committer.read(lambda tx: runs.find(tx, limit=5)) == []
        assert await open_ones(one) == [script]


async def test_a_person_lets_it_run_as_their_own(tmp_path: Path) -> None:
    async with product(tmp_path, (tool("deploy", deploy),)) as one:
        got = await handed(one, "- deploy\n")
        assert got.held is not None
        done = await one.proposals.run(got.held.id, by="bo@acme.de")
        assert done.run is not None
        await until(lambda: _ended(one, done.run))
        shown = await one.desk.show(done.run)
    assert (shown["owner"], shown["author"], shown["state"]) == ("bo@acme.de", MCP, "done")


async def _ended(one: Product, run: str | None) -> bool:
    return (await one.desk.show(run or ""))["ended"] is not None


async def test_a_repeat_gives_what_the_first_gave(tmp_path: Path) -> None:
    async with product(tmp_path, (tool("deploy", deploy),)) as one:
        first, second = [await handed(one, "- deploy\n", ident="ana/claude/1") for _ in range(2)]
        assert first.held is not None and second.held is not None and first.held.id == second.held.id
        done = await one.proposals.run(first.held.id, by="bo@acme.de")
        third = await handed(one, "- deploy\n", ident="ana/claude/1")
        assert third.held is not None and third.held.run == done.run and "Bo has run it" in third.text
        runs_ = [await handed(one, "- list a\n", ident="ana/claude/2") for _ in range(2)]
        assert len({got.started.run for got in runs_ if got.started is not None}) == 1


async def test_where_agents_are_free_nothing_holds(tmp_path: Path) -> None:
    free = Policy(approve={}, agent_runs="free")
    async with product(tmp_path, (tool("deploy", deploy),), policy=free) as one:
        got = await handed(one, "- deploy\n")
        assert got.started is not None and got.started.run is not None
        assert await open_ones(one) == []


async def test_what_is_wrong_is_refused_and_kept_nowhere(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        got = await handed(one, "- n = count fils\n")
        assert got.seen.refused and got.started is not None and got.started.refused
        assert await open_ones(one) == []


def test_the_setting_is_read_and_a_misspelt_one_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/waiton.db"
    (tmp_path / "waiton.toml").write_text('[policy]\nagent_runs = "free"\n')
    assert load({"WAITON_DATABASE_URL": url}).policy.agent_runs == "free"
    (tmp_path / "waiton.toml").write_text('[policy]\nagent_runs = "never"\n')
    with pytest.raises(Misconfigured, match='agent_runs is "confirm" or "free"'):
        load({"WAITON_DATABASE_URL": url})
