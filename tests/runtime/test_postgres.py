"""The same product on PostgreSQL: settled answers, evidence, tools, restarts, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.runtime.clock import SetClock
from bot.runtime.tools import tool
from tests.postgres import server
from tests.runtime.world import START, product, started, state, until

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]
SCRIPT = """\
- scope = ask @ana approve decline within 2d
  > Extend?
- xs = list a b c
- out = map xs as x
  - q = ask @bo yes no
    > {x}?
  - n = add_one n: 1 retry: {max: 2, backoff: 1s}
- seen = expect camera.line_2 within 1d after scope where: "event.n > 2"
- up = let out.map(o, o + 1)
- show up
- show seen.event.n
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with server() as base:
        engine = sa.create_engine(base, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text("create database product"))
        engine.dispose()
        yield sa.make_url(base).set(database="product").render_as_string(hide_password=False)


async def test_a_run_goes_its_whole_way_and_survives_a_restart(tmp_path: Path, url: str) -> None:
    def add_one(n: int) -> int:
        return n + 1

    clock = SetClock(START)
    async with product(tmp_path, (tool("add_one", add_one),), clock=clock, database=url) as one:
        runs = [await started(one, SCRIPT) for _ in range(20)]
        said = await asyncio.gather(*(one.desk.answer(r, "scope", "approve", by="ana@acme.de") for r in runs))
        assert all(s.accepted for s in said)
    async with product(tmp_path, (tool("add_one", add_one),), clock=clock, database=url) as two:
        for index in range(3):
            await asyncio.gather(*(two.desk.answer(r, f"3[{index}].1", "yes", by="bo@acme.de") for r in runs))
        for n in (1, 7):
            assert await two.desk.event("camera.line_2", {"n": n}, ident=f"e{n}")
        for run in runs:
            await until(lambda run=run: _done(two, run))
            assert (await two.desk.show(run))["result"] == [[3, 3, 3], 7]


async def _done(one: object, run: str) -> bool:
    return await state(one, run) == "done"  # type: ignore[arg-type]
