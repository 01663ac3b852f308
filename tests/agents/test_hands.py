"""What an agent can reach: files by reading, read-only tools that its settings give it, and nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.agents.hands import MOST_CHARS, Hands, held
from bot.agents.model import Use
from bot.domain.catalog import Agent, Policy
from bot.runtime.files import MemoryFiles
from bot.runtime.tools import ToolFailed, tool
from tests.agents.test_each import ended
from tests.agents.world import agents
from tests.doubles.claude import Body, Says, Uses, claude, last
from tests.runtime.world import started


async def look(name: str) -> dict[str, str]:
    return {"found": name}


async def write(name: str) -> str:
    raise AssertionError("nothing is written by an agent")


TOOLS = (
    tool("crm_look", look, read_only=True),
    tool("crm_write", write),
    tool("other_look", look, read_only=True),
)


async def used(hands: Hands, name: str, /, **given: Any) -> tuple[str, bool]:
    block = await hands.use(Use(id="t1", name=name, input=given))
    assert block["tool_use_id"] == "t1"
    return block["content"], bool(block.get("is_error"))


@pytest.mark.anyio
async def test_an_agent_reads_whole_files_and_parts_of_long_ones() -> None:
    files = MemoryFiles(content={"a.md": b"one\ntwo\nthree\nfour", "long.md": b"x" * (MOST_CHARS + 5)})
    hands = Hands(files=files, job="j")
    assert await used(hands, "read", path="a.md") == ("one\ntwo\nthree\nfour", False)
    assert await used(hands, "read", path="a.md", from_line=2, lines=2) == ("two\nthree", False)
    assert await used(hands, "glob", pattern="*.md") == ("a.md\nlong.md", False)
    assert await used(hands, "glob", pattern="*.txt") == ("no file fits", False)
    said, wrong = await used(hands, "read", path="long.md")
    assert said.endswith("… cut off here: 5 characters more") and not wrong


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("read", {"path": "../../etc/passwd"}), ("read", {"path": ".env"}), ("read", {}), ("read", {"path": 3}),
        ("save", {"path": "a", "text": "b"}), ("crm_write", {"name": "x"}), ("nothing", {}),
    ],
)  # fmt: skip
async def test_what_it_may_not_reach_is_told_to_it_as_not_there(name: str, given: dict[str, Any]) -> None:
    said, wrong = await used(Hands(files=MemoryFiles(), job="j", specs=(TOOLS[0].spec,)), name, **given)
    assert wrong and said


def test_it_holds_read_only_tools_that_are_named_and_that_the_runs_owner_may_use() -> None:
    specs = [t.spec for t in TOOLS]
    assert [s.name for s in held(specs, ["crm_*"], lambda spec: True)] == ["crm_look"]
    assert [s.name for s in held(specs, ["*"], lambda spec: spec.name != "other_look")] == ["crm_look"]
    assert held(specs, [], lambda spec: True) == []


@pytest.mark.anyio
async def test_an_agent_asks_its_tools_and_their_failures_are_told_to_it(tmp_path: Path) -> None:
    seen: list[str] = []

    async def flaky(name: str) -> str:
        """Looks somebody up."""
        seen.append(name)
        if name == "Bo":
            raise ToolFailed("there is no Bo")
        return f"{name} is in Berlin"

    def brain(body: Body) -> Says | Uses:
        turn = len(body["messages"])
        if turn == 1:
            assert {t["name"] for t in body["tools"]} == {"glob", "read", "crm_look"}
            return Uses((("crm_look", {"name": "Ana"}), ("crm_look", {"name": "Bo"})))
        return Says(last(body))

    lead = (Agent(name="claude", tools=("crm_*",), default=True),)
    tools = (tool("crm_look", flaky, read_only=True), tool("crm_write", write))
    async with claude(brain) as api, agents(tmp_path, api, tools=tools, agents=lead) as one:
        shown = await ended(one, await started(one, "- reply = ask\n  > Where is Ana?\n- show reply\n"))
    assert shown["result"] == "Ana is in Berlin\nthere is no Bo" and seen == ["Ana", "Bo"]


@pytest.mark.anyio
async def test_a_tool_that_policy_keeps_from_the_owner_is_kept_from_their_agents(tmp_path: Path) -> None:
    def brain(body: Body) -> Says:
        return Says(",".join(sorted(t["name"] for t in body["tools"])))

    lead = (Agent(name="claude", tools=("*",), default=True),)
    policy = Policy(approve={}, use={"crm_*": "role:leads", "other_look": "jonas@acme.de"})
    async with claude(brain) as api, agents(tmp_path, api, tools=TOOLS, agents=lead, policy=policy) as one:
        leads = await ended(
            one, await started(one, "- reply = ask\n  > What have you?\n- show reply\n", by="bo@acme.de")
        )
        other = await ended(
            one, await started(one, "- reply = ask\n  > What have you?\n- show reply\n", by="jonas@acme.de")
        )
    assert leads["result"] == "crm_look,glob,read" and other["result"] == "glob,other_look,read"
