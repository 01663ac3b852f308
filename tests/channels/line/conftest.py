"""A channel and its double, ready to talk."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from channels.line.channel import Line
from tests.channels.line.world import Hands, made
from tests.doubles.door import MemoryDoor, served
from tests.doubles.line import LineStage, MessagingApi


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stage() -> AsyncIterator[LineStage]:
    async with LineStage() as one:
        yield one


@pytest.fixture
def api(stage: LineStage) -> MessagingApi:
    return stage.api


@pytest.fixture
def door() -> MemoryDoor:
    return MemoryDoor()


@pytest.fixture
def hands() -> Hands:
    """The hands of the clock."""
    return Hands()


@pytest.fixture
async def channel(stage: LineStage, door: MemoryDoor, hands: Hands) -> AsyncIterator[Line]:
    """One that LINE reaches."""
    one = made(stage.api, now=hands.now)
    async with served(one.routes()) as address:
        stage.connect(address)
        await one.start(door)
        yield one
        await one.stop()
