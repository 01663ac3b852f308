"""Many deadlines at once: what is due together is read and written together, and comes out as if each came alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.runtime.inbox import Answering
from bot.wiring import Product
from store import history, inbox
from store.dialect import Transaction
from tests.runtime.world import product, started, state, until

pytestmark = pytest.mark.anyio
MISSED = (
    "- scope = ask @ana approve decline within 1h\n  > Extend?\n"
    "  - miss\n    - ok = ask @bo yes within 1h\n      > Nobody answered.\n- say\n  > {scope}\n"
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def said(one: Product, run: str) -> Any:
    """What a run has come to, and what it sent, without its id."""
    found = await one.desk.show(run)
    sent = [(d["kind"], d["to"], d["text"], d["at"], d["outcome"]) for d in found["deliveries"]]
    assert await one.committer.read(history.verify, run) is None
    entries = [(e["what"], e["path"], e["at"]) for e in await one.committer.read(history.of_run, run)]
    return found["state"], found["ops"], sent, entries


async def test_deadlines_that_pass_together_come_out_as_each_alone(tmp_path: Path) -> None:
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    async with product(tmp_path / "one") as one, product(tmp_path / "many") as many:
        alone = await started(one, MISSED)
        together = [await started(many, MISSED) for _ in range(3)]
        for _ in range(2):
            one.clock.move(hours=1)
            many.clock.move(hours=1)
            await one.sweep()
            await many.sweep()
            expected = await said(one, alone)
            assert [await said(many, run) for run in together] == [expected] * 3
        assert expected[0] == "failed"


async def test_the_clock_waits_for_what_may_be_an_answer_but_not_for_good(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        stuck, began = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            began.set()
            await stuck.wait()

        async def doorman(number: int, event: dict[str, Any]) -> Answering:
            return Answering(work)

        one.inbox.doormen["camera.line_2"] = doorman
        one.inbox.patience_s = 0.0
        run = await started(one, MISSED)
        await one.desk.event("camera.line_2", {"n": 1}, ident="a")
        await began.wait()
        one.clock.move(hours=1)
        await one.sweep()
        assert (await said(one, run))[1][0]["state"] == "missed"
        one.inbox.patience_s = 3600.0
        await one.inbox.heard()
        assert await one.committer.read(inbox.unrouted), "it is still to be dealt with"
        stuck.set()
        await until(lambda: _empty(one))


async def _empty(one: Product) -> bool:
    return not await one.committer.read(inbox.unrouted)


async def _with_child(one: Product) -> tuple[str, str]:
    """A run whose own ask and whose child's are due at once, and the child."""
    saved = "---\nname: slow\non:\n  - command: slow\n---\n- ok = ask @ana yes within 1h\n  > Go?\n"
    await one.desk.start(saved, by="bo@acme.de", job="j")
    one.people_changed()
    run = await started(
        one,
        "- parallel\n  - branch a\n    - run slow\n"
        "  - branch b\n    - ask @bo yes within 1h\n      > And you?\n      - miss\n        - say\n          > Nothing.\n",
    )

    async def child() -> str | None:
        return next((r.id for r in await one.desk.find_runs() if r.parent and r.parent.startswith(run)), None)

    return run, await until(child)


async def test_a_child_that_ends_tells_its_parent_whose_own_deadline_passes_with_it(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run, child = await _with_child(one)
        one.clock.move(hours=1)
        await one.sweep()
        assert (await state(one, child), await state(one, run)) == ("failed", "failed")
        for each in (run, child):
            assert await one.committer.read(history.verify, each) is None
        ops = {op["path"]: op["state"] for op in (await one.desk.show(run))["ops"]}
        assert "running" not in ops.values() and "waiting" not in ops.values(), ops


async def test_a_fault_in_one_of_many_deadlines_is_that_runs_alone(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        broken, *whole = [await started(one, MISSED) for _ in range(4)]

        def break_it(tx: Transaction) -> None:
            tx.connection.exec_driver_sql(
                "update op set data = '{' where run = (select seq from run where id = ?)", (broken,)
            )

        await one.committer.write(break_it)
        one.clock.move(hours=1)
        with capture_logs() as told:
            await one.sweep()
        assert {entry["run"] for entry in told if entry["log_level"] == "error"} == {broken}
        for run in whole:
            found = await said(one, run)
            assert [op["state"] for op in found[1] if op["path"].endswith("1")] == ["missed", "waiting"], found[1]
