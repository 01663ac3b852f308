"""Tools in a product: ops that are known while their server is away, what is cancelled, what is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.domain.catalog import Policy
from bot.runtime.clock import SetClock
from bot.runtime.files import FolderFiles
from bot.runtime.tools import tool
from bot.wiring import Product
from store import runs
from tests.runtime.mcp_world import TOKEN, Double
from tests.runtime.world import START, product, settings, started, state, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def served(double: Double, *, wait: bool = True, **more: Any) -> AsyncGenerator[Product]:
    """A product whose settings name the double as `dbl`; with `wait` it is there before anything begins."""
    given = settings(double.folder, tools={"dbl": double.table}, variables=double.variables, **more)
    one = Product(given, clock=SetClock(START), files=FolderFiles(double.folder / "files"))
    await one.committer.start()
    await one.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
    await one.start()
    if wait:
        assert await one.tools.servers[0].known() is None
    try:
        yield one
    finally:
        await one.stop()


async def ops(one: Product, run: str) -> list[tuple[str, Any, Any]]:
    found = await one.desk.show(run)
    return [(op["state"], op["value"], op["error"]) for op in found["ops"]]


async def test_ops_are_known_from_the_first_list_and_while_the_server_is_away(tmp_path: Path) -> None:
    double = Double(tmp_path)
    script = "- w = dbl_weather city: Rome\n- show w.degrees\n"
    async with served(double) as one:
        assert "dbl_send_mail" in one.catalog.ops and "dbl_nothing" not in one.catalog.ops
        seen = await one.desk.check("- w = dbl_weather town: Rome\n", by="bo@acme.de", job="j")
        assert [p.code for p in seen.problems], "its schema is checked"
        run = await started(one, script)
        await until(lambda: _ended(one, run))
        assert (await one.desk.show(run))["result"] == 21
    (tmp_path / "away").touch()
    async with served(double, wait=False) as one:
        run = await started(one, script)
        await until(lambda: _ended(one, run))
        (w, *_) = await ops(one, run)
        assert w[0] == "failed" and "`dbl` is not there" in w[2] and "away for the day" in w[2]
        other = await started(one, "- show owner\n")
        assert await state(one, other) == "done", "nothing else waits for it"


async def _ended(one: Product, run: str) -> bool:
    return (await one.desk.show(run))["ended"] is not None


async def test_a_tool_that_is_new_is_an_op_at_once_and_for_every_process(tmp_path: Path) -> None:
    double = Double(tmp_path)
    async with served(double) as one:
        await started(one, "- dbl_grow name: fresh\n")
        await until(lambda: "dbl_fresh" in one.catalog.ops)
        guest = Product(one.settings, clock=SetClock(START), guest=True)
        assert "dbl_fresh" in guest.catalog.ops
        await guest.start()
        assert guest.tools.servers[0].fault is None and len(double.done) == 1, "a guest starts no server"
        await guest.stop()


async def test_a_write_that_was_lost_is_a_doubt_and_a_read_fails(tmp_path: Path) -> None:
    double = Double(tmp_path)
    async with served(double) as one:
        run = await started(one, "- dbl_crash to: it\n")
        await until(lambda: _is(one, run, "uncertain"))
        card = next(d for d in (await one.desk.show(run))["deliveries"] if d["kind"] == "doubt")
        assert "was lost before it answered" in card["text"]
    async with served(double, policy=Policy()) as one:
        run = await started(one, "- dbl_crash to: it\n")
        assert [s for s, *_ in await ops(one, run)] == ["gated"], "who says nothing is consequential"
        run = await started(one, "- dbl_put name: x\n- w = dbl_weather city: Rome\n")
        await until(lambda: _ended(one, run))
        assert [s for s, *_ in await ops(one, run)] == ["done", "done"], "what it declares harmless is not"


async def _is(one: Product, run: str, state: str) -> bool:
    return (await ops(one, run))[0][0] == state


async def test_what_a_tool_gives_is_kept_small_or_large_and_shows_no_secret(tmp_path: Path) -> None:
    async with served(Double(tmp_path)) as one:
        run = await started(one, "- big = dbl_huge kib: 300\n- m = dbl_mixed\n- n = dbl_fails\n")
        await until(lambda: _ended(one, run))
        big, mixed, fails = await ops(one, run)
        assert len(big[1]) == 300 * 1024
        with closing(sqlite3.connect(tmp_path / "waiton.db")) as database:
            sizes = [
                n
                for (n,) in database.execute(
                    "select max(length(value)) from op union select max(length(body)) from blob"
                )
            ]
        assert sorted(sizes)[0] < 16_384 and sorted(sizes)[1] > 300_000, "a large value stands beside its row"
        assert (tmp_path / "files/jobs/j" / mixed[1][1]["path"]).read_bytes().startswith(b"\x89PNG")
        assert fails[2] == "no: token •••"
        stored = b"".join(p.read_bytes() for p in tmp_path.glob("waiton.db*"))
        assert TOKEN.encode() not in stored
        assert TOKEN not in repr(one.settings) + repr(one.tools.tools) + repr(one.tools.servers)


async def test_a_run_that_is_cancelled_ends_its_reads_and_lets_its_writes_end(tmp_path: Path) -> None:
    double = Double(tmp_path)
    async with served(double) as one:
        reading = await started(one, "- dbl_slow steps: 4 pause: 60\n")

        async def way() -> bool:
            return (await one.desk.show(reading))["ops"][0].get("progress") == "1 of 4, step 1"

        await until(way)
        writing = await started(one, "- dbl_slow_write pause: 0.4\n")
        await until(lambda: "begun" in double.done)
        for run in (reading, writing):
            assert (await one.desk.edit(run, {"run": "cancel"}, by="bo@acme.de")).accepted
        await until(lambda: _ended(one, reading))
        await until(lambda: "cancelled" in double.done)
        assert (await ops(one, reading))[0][2] == "cancelled" and not await way()
        await until(lambda: _ended(one, writing))
        assert (await ops(one, writing))[0][0] == "done" and double.done[-1] == "written"
        assert [await state(one, r) for r in (reading, writing)] == ["cancelled", "cancelled"]


async def test_a_python_tool_that_nobody_waits_for_is_cancelled(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(n: int) -> int:
        seen.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return n

    script = """\
- won = parallel until: 1
  - branch a
    - look n: 1
  - branch b
    - ask @ana go
      > Now?
"""
    async with product(tmp_path, tools=(tool("look", look, read_only=True),)) as one:
        run = await started(one, script)
        await until(lambda: seen == ["begun"])
        assert (await one.desk.answer(run, "1.b.1", "go", by="ana@acme.de")).accepted
        await until(lambda: _ended(one, run))
        assert seen == ["begun", "cancelled"] and await state(one, run) == "done"


async def test_a_run_whose_tool_is_gone_fails_by_its_name(tmp_path: Path) -> None:
    def leave(n: int) -> int:
        return n

    script = '- a = ask @ana go\n  > Now?\n- gone = leave n: 1 after: "a"\n'
    async with product(tmp_path, tools=(tool("leave", leave),)) as one:
        run = await started(one, script)
    given = replace(settings(tmp_path), policy=Policy(approve={}))
    one = Product(given, clock=SetClock(START))
    await one.start()
    try:
        assert (await one.desk.answer(run, "a", "go", by="ana@acme.de")).accepted
        await until(lambda: _ended(one, run))
        assert (await ops(one, run))[1][2] == "there is no tool `leave` any more"
    finally:
        await one.stop()
