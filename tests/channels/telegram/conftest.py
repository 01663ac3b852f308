"""A channel and its double, ready to talk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from channels.telegram.channel import Telegram
from tests.channels.telegram.world import made
from tests.doubles.door import MemoryDoor
from tests.doubles.telegram import BotApi, TelegramStage


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stage() -> AsyncIterator[TelegramStage]:
    async with TelegramStage() as one:
        yield one


@pytest.fixture
def api(stage: TelegramStage) -> BotApi:
    return stage.api


@pytest.fixture
def door() -> MemoryDoor:
    return MemoryDoor()


@pytest.fixture
async def start(api: BotApi, door: MemoryDoor) -> AsyncIterator[Callable[..., Awaitable[Telegram]]]:
    """Starts a channel; all of them stop in the end."""
    async with AsyncExitStack() as running:

        async def begin(**more: Any) -> Telegram:
            one = made(api, **more)
            await one.start(door)
            running.push_async_callback(one.stop)
            return one

        yield begin


@pytest.fixture
async def channel(start: Callable[..., Awaitable[Telegram]], stage: TelegramStage) -> Telegram:
    """One that polls."""
    one = await start()
    await stage.ready()
    return one
