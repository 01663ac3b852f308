"""What a process does about faults around it, without a process: wake-ups, leases, work that is cut off."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.runtime.clock import SystemClock
from bot.runtime.leases import LASTS, RENEWED_S, lives, new_holder
from bot.runtime.tools import tool
from bot.runtime.waker import Waker
from store import leases, outbox
from store.dialect import Transaction
from tests.runtime.world import START, product, started, state, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_sweep_that_failed_is_made_again() -> None:
    swept: list[str] = []

    async def sweep() -> datetime | None:
        swept.append("swept")
        if len(swept) == 1:
            raise ConnectionError("the database is away")
        return None

    waker = Waker(SystemClock(), sweep)
    await waker.start()
    try:
        await until(lambda: len(swept) > 1, 10)
    finally:
        await waker.stop()


async def test_work_of_a_process_on_another_machine_is_taken_up_once_its_lease_has_run_out(tmp_path: Path) -> None:
    calls: list[str] = []

    async def note() -> str:
        calls.append("note")
        return "ok"

    async def charge() -> str:
        calls.append("charge")
        return "ok"

    tools = (tool("note_it", note, idempotent=True), tool("charge", charge))
    async with product(tmp_path, tools) as one:
        there = "elsewhere/1/x"
        await one.committer.write(lambda tx: leases.take(tx, f"worker:{there}", there, START, START + LASTS))
        one.performer.only = ""  # the other machine has it
        run = await started(one, "- paid = charge\n")
        work = (await one.committer.read(outbox.open_calls))[0]
        await one.committer.write(lambda tx: outbox.call_sent(tx, work, START, there))
        one.performer.only = None
        await one.performer.look()
        assert (await state(one, run), calls) == ("waiting", [])
        one.clock.move(seconds=LASTS.total_seconds() + 1)
        await until(lambda: _uncertain(one, run), 20)
        assert calls == []


async def _uncertain(one, run: str) -> bool:
    return any(op["state"] == "uncertain" for op in (await one.desk.show(run))["ops"])


async def test_a_process_that_ends_begins_nothing_more(tmp_path: Path) -> None:
    calls: list[int] = []
    gate = asyncio.Event()

    async def charge(n: int) -> int:
        calls.append(n)
        await gate.wait()
        return n

    tools = (tool("charge", charge),)
    script = "".join(f"- w{n} = charge n: {n}\n" for n in range(5))
    async with product(tmp_path, tools) as one:
        run = await started(one, script)
        await until(lambda: calls)
        asyncio.get_running_loop().call_later(0.05, gate.set)
    assert calls == [0], "the call at work ended, the next one is the next process's"
    async with product(tmp_path, tools) as two:
        await until(lambda: _done(two, run))
        assert calls == [0, 1, 2, 3, 4]


async def _done(one, run: str) -> bool:
    return await state(one, run) == "done"


async def test_a_delivery_whose_report_failed_is_reported_again(tmp_path: Path) -> None:
    """The database is away for a moment while a message to nobody is told as failed."""
    async with product(tmp_path) as one:
        write, broken = one.committer.write, [True]

        class OperationalError(Exception):
            pass

        async def sometimes(work):
            if broken and "_report" in work.__qualname__ and "Outbox" in work.__qualname__:
                broken.clear()
                raise OperationalError("database is locked")
            return await write(work)

        one.committer.write = sometimes
        from store import runs

        await write(lambda tx: runs.add_job(tx, "c", "C", "web:c", START, customer={"email": "mika@example.com"}))
        got = await one.desk.start('[{op:"say",to:"$customer.email",body:"hi"}]', by="bo@acme.de", job="c")
        await until(lambda: _told(one, got.run or ""))


async def _told(one, run: str) -> bool:
    return any(
        d["kind"] == "notice" and "mika@example.com" in d["text"] for d in (await one.desk.show(run))["deliveries"]
    )


def test_a_pid_that_is_used_again_is_another_process() -> None:
    mine = new_holder()
    host, pid, word = mine.split("/")
    before = f"{host}/{pid.partition('.')[0]}.1/{word}"
    assert lives(mine, {"worker": mine}) and not lives(mine, {})
    assert not lives(before, {"worker": before}), "in a container every process has the pid of the one before"
    assert lives("elsewhere/1.1/x", {"worker": "elsewhere/1.1/x"}), "of another machine only the lease is known"


def test_a_process_that_nobody_has_buried_is_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    holder = f"{socket.gethostname()}/{child.pid}./x"
    assert lives(holder, {"worker": holder})
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not lives(holder, {"worker": holder})
    child.wait()


def test_a_lease_is_renewed_well_before_it_ends() -> None:
    assert timedelta(seconds=3 * RENEWED_S) < LASTS


async def test_a_run_that_broke_inside_stops_nobody_elses_clock_and_events(tmp_path: Path) -> None:
    script = "- go = expect camera.line_2 within 1h\n"
    async with product(tmp_path) as one:
        broken = await started(one, script + "- show go.event.n\n")
        whole = [await started(one, script), await started(one, script)]

        def break_it(tx: Transaction) -> None:
            tx.connection.exec_driver_sql(f"update run set plan = 'gone' where id = '{broken}'")

        await one.committer.write(break_it)
        with capture_logs() as said:
            assert await one.desk.event("camera.line_2", {"n": 1}, ident="a")
            assert [await state(one, run) for run in whole] == ["done", "done"]
            one.clock.move(seconds=1)
            late = await started(one, script)
            one.clock.move(hours=2)
            await one.sweep()
        assert await state(one, late) == "failed"
        assert {entry["run"] for entry in said if entry["log_level"] == "error"} == {broken}
