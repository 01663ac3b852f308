"""The channel, the double, a door of the test's own: by the socket and by HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.runtime.clock import SetClock
from tests.channels.slack.world import START, Door, World, channel
from tests.doubles.door import served
from tests.doubles.slack import SlackStage


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["socket", "http"])
async def world(anyio_backend: str, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Either way in: what holds must hold for both."""
    async with _opened(http=request.param == "http") as made:
        yield made


@pytest.fixture
async def one(anyio_backend: str) -> AsyncIterator[World]:
    """By the socket alone, for what has nothing to do with the way in."""
    async with _opened(http=False) as made:
        yield made


@asynccontextmanager
async def _opened(*, http: bool) -> AsyncIterator[World]:
    clock = SetClock(START)
    async with SlackStage(http=http) as stage:
        stage.slack.now = clock.now
        made = channel(stage, clock)
        door = Door()
        async with served(made.routes()) as address:
            stage.connect(address)
            await made.start(door)
            await stage.ready()
            yield World(stage=stage, slack=stage.slack, channel=made, door=door, clock=clock)
            await made.stop()
