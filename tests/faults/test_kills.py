"""Killed at random moments under load: nothing acknowledged is lost, nothing is done twice, nothing is stranded."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.faults.load import Load
from tests.faults.outside import Outside
from tests.faults.served import Served
from tests.faults.verdict import judged, kept

KILLS = int(os.environ.get("WAITON_KILLS", "20"))
SEED = int(os.environ.get("WAITON_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
LONGEST_S = 1.2
"""Between the server's readiness and its end."""
REST_S = 45
"""By then everything must have come to rest after the last restart."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 12 * KILLS)]


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Slow now and then, and now and then its answer never comes."""
    found = Outside(SEED)
    yield found
    found.close()


def test_killed_at_random_moments_nothing_acknowledged_is_lost_and_nothing_is_done_twice(
    served: Served, outside: Outside
) -> None:
    load = Load(served, outside, SEED)
    asyncio.run(_storm(served, load))
    records = _records(served)
    assert served.end() == 0
    faults = [*judged(load, outside, records), *kept(served.database)]
    told = (
        f"WAITON_SEED={SEED} WAITON_KILLS={KILLS}: {len(records)} runs, {len(load.answers)} answers, "
        f"{len(outside.calls)} calls, {load.doubts} doubts"
    )
    print(told)
    assert not faults, told + "\n" + "\n".join(faults) + "\n" + served.said()
    assert load.started and load.answers and outside.calls, told
    assert not served.left_over(), "no process of a killed server lives on"


async def _storm(served: Served, load: Load) -> None:
    served.start()
    await asyncio.to_thread(served.ready)
    working = asyncio.create_task(load.work())
    killing = asyncio.create_task(_kill_and_restart(served))
    await asyncio.wait({working, killing}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    killing.result()
    load.finishing = True
    try:
        await asyncio.wait_for(working, REST_S)
    except TimeoutError:
        stuck = [
            (run, [(o["path"], o["op"], o["state"], o["error"]) for o in found["ops"] if not o["ended"]])
            for run, found in load.seen.items()
            if not found["ended"]
        ]
        raise AssertionError(f"WAITON_SEED={SEED}: not at rest after {REST_S} s: {stuck}\n{served.said()}") from None


async def _kill_and_restart(served: Served) -> None:
    """Mostly while it works, now and then while it starts."""
    chance = random.Random(SEED)
    for _ in range(KILLS):
        if chance.random() < 0.85:
            await asyncio.to_thread(served.ready)
        await asyncio.sleep(chance.uniform(0.0, LONGEST_S))
        await asyncio.to_thread(served.kill)
        served.start()
    await asyncio.to_thread(served.ready)


def _records(served: Served) -> dict[str, dict[str, Any]]:
    """Every run as the API gives it."""
    headers = {"authorization": f"Bearer {served.tokens['bo']}"}
    found: dict[str, dict[str, Any]] = {}
    with httpx2.Client(base_url=served.url, headers=headers, timeout=20) as client:
        cursor = ""
        while True:
            page = client.get(f"/api/runs?limit=100&cursor={cursor}").json()
            for run in page["runs"]:
                found[run["id"]] = client.get(f"/api/runs/{run['id']}").json()
            if not page["next"]:
                return found
            cursor = page["next"]
