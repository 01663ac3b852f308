"""What somebody did counts by when it was received, however long the process then took, or was away."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.runtime.clock import SetClock
from store import history, inbox, waits
from tests.channels.stage import Seen, Stage
from tests.channels.world import Stand, playing
from tests.doubles.plain import Plain
from tests.doubles.telegram import TelegramStage
from tests.runtime.world import START, product, started, until

pytestmark = pytest.mark.anyio
SCRIPT = (
    "- scope = ask @ana approve decline within 1h\n  > Extend?\n"
    "  - miss\n    - say\n      > Nobody answered.\n- say\n  > It is {scope}.\n"
)
WINDOW = timedelta(hours=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked(at: Stand) -> Seen:
    """The card of a run that has just started, its window open."""
    await at.stage.paste("bo", SCRIPT)
    seen = await at.card("ana", "Extend?")

    async def opened() -> bool:
        (run,) = await at.product.desk.find_runs()
        return any(row["kind"] == waits.WINDOW for row in await at.product.committer.read(waits.of_run, run.id))

    await until(opened)
    return seen


async def do(stage: Stage, how: str, seen: Seen) -> None:
    if how == "tap":
        await stage.tap("ana", seen, "approve")
    else:
        await stage.reply("ana", seen, "approve")


async def first(at: Stand) -> dict[str, Any]:
    found = await at.product.desk.find_runs()
    shown = await at.product.desk.show(found[0].id)
    assert await at.product.committer.read(history.verify, found[0].id) is None
    return shown


async def entries(at: Stand) -> list[dict[str, Any]]:
    run = (await at.product.desk.find_runs())[0].id
    return await at.product.committer.read(history.of_run, run)


@pytest.mark.parametrize("make", [Plain, TelegramStage])
@pytest.mark.parametrize("how", ["tap", "reply"])
async def test_an_answer_stored_before_its_deadline_counts_though_the_process_ended_first(
    make: Any, how: str, tmp_path: Path
) -> None:
    clock = SetClock(START)
    async with make() as stage:
        async with playing(stage, tmp_path, clock=clock) as at:
            seen = await asked(at)
            await at.product.inbox.stop()  # from here on it is stored and no more
            clock.at = START + WINDOW - timedelta(seconds=1)
            received = clock.at
            await do(stage, how, seen)
            await until(lambda: _stored(at))
        clock.at = START + WINDOW + timedelta(minutes=30)
        async with playing(stage, tmp_path, clock=clock) as at:
            shown = await at.run(state="done")
            assert [op["state"] for op in shown["ops"]] == ["done", "done"], "the miss branch has not opened"
            assert await at.shows("bo", "It is approve.")
            (said,) = [entry for entry in await entries(at) if entry["what"] == "answered"]
            assert (said["at"], said["data"]["received"]) == (clock.at, received.isoformat())
            moments = [entry["at"] for entry in await entries(at)]
            assert moments == sorted(moments)


@pytest.mark.parametrize("how", ["tap", "reply"])
async def test_an_answer_stored_after_its_deadline_is_late_though_nobody_had_looked_at_the_clock(
    how: str, tmp_path: Path
) -> None:
    clock = SetClock(START)
    async with Plain() as stage:
        async with playing(stage, tmp_path, clock=clock) as at:
            seen = await asked(at)
            await at.product.inbox.stop()
            clock.at = START + WINDOW + timedelta(minutes=2)
            await do(stage, how, seen)
            await until(lambda: _stored(at))
        clock.at = START + WINDOW + timedelta(minutes=30)
        async with playing(stage, tmp_path, clock=clock) as at:
            shown = await at.run()
            assert shown["ops"][0]["state"] == "missed"
            await at.shows("bo", "Nobody answered.")
            await at.was_told("ana", "2m late")


@pytest.mark.parametrize("how", ["tap", "reply"])
async def test_what_was_said_before_a_deadline_is_heard_before_it_passes(how: str, tmp_path: Path) -> None:
    clock = SetClock(START)
    async with Plain() as stage, playing(stage, tmp_path, clock=clock) as at:
        seen = await asked(at)
        clock.at = START + WINDOW - timedelta(milliseconds=1)
        await do(stage, how, seen)  # stored: the process has yet to deal with it
        clock.at = START + WINDOW
        await at.product.sweep()
        assert (await first(at))["ops"][0]["state"] == "done"


@pytest.mark.parametrize(("seconds", "states"), [(-1, ["done", "done"]), (1, ["missed", "done"])])
async def test_an_event_stored_as_the_process_ended_counts_by_when_it_came(
    seconds: int, states: list[str], tmp_path: Path
) -> None:
    clock = SetClock(START)
    script = "- go = expect camera.line_2 within 1h\n  - miss\n    - say\n      > Nothing came.\n- say\n  > On.\n"
    async with product(tmp_path, clock=clock) as one:
        run = await started(one, script)
        await one.inbox.stop()
        clock.at = START + WINDOW + timedelta(seconds=seconds)
        await one.desk.event("camera.line_2", {"n": 1}, ident="a")
    clock.at = START + WINDOW + timedelta(minutes=30)
    async with product(tmp_path, clock=clock) as one:
        ops = {op["path"]: op["state"] for op in (await one.desk.show(run))["ops"]}
        assert [ops["1"], ops["2"]] == states
        assert ("1.onMiss.1" in ops) == (seconds > 0), ops


async def _stored(at: Stand) -> bool:
    return len(await at.product.committer.read(inbox.unrouted)) == 1
