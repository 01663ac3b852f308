"""`each` and `ask` with real agents: the SDK against a loopback Messages API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agents.world import agents, files
from tests.doubles.claude import Body, Says, Uses, claude, last, prompt
from tests.runtime.world import started, state, until

WORKED = """\
- files = glob core/src/*.rs
- some = first 5 files
- answers = each some

> Read {it} and answer with exactly one word: YES if it opens or connects a unix socket, NO if not.

- yes = keep answers YES
- total = count yes
- show total
"""


def reader(body: Body) -> Says | Uses:
    """Reads the file that it is asked about, then says what is in it."""
    if len(body["messages"]) == 1:
        (path,) = re.findall(r"core/src/\w+\.rs", prompt(body))
        return Uses((("read", {"path": path}),))
    return Says(" YES\n" if "Unix" in last(body) else "NO")


@pytest.mark.anyio
async def test_the_worked_example_of_the_page_shows_two(tmp_path: Path) -> None:
    async with claude(reader) as api, agents(tmp_path, api) as one:
        files(
            one, core__src__attach_rs="UnixStream::connect", core__src__log_rs="fs::write",
            core__src__agents_rs="UnixListener::bind", core__src__main_rs="fn main", core__src__net_rs="TcpStream",
        )  # fmt: skip
        run = await started(one, WORKED)
        await until(lambda: one_is(one, run, "done"))
        shown = await one.desk.show(run)
    assert shown["result"] == 2
    assert shown["cost"]["agent_calls"] == 10 and shown["cost"]["usd"] > 0
    assert api.refused == []


async def one_is(one, run: str, wanted: str) -> bool:
    return await state(one, run) == wanted
