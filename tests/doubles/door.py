"""What a channel needs around it: a door in memory, a server for its routes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from channels.base import Form, Home, Inbound, Sender


class Shut(Exception):
    """The store is away."""


@dataclass(eq=False)
class MemoryDoor:
    """What was handed in, in order, each once. `shut`: so many of the next things are not stored. `acts`: called with each that is."""

    taken: list[Inbound] = field(default_factory=list)
    offered: int = 0
    shut: int = 0
    acts: Callable[[Inbound], object] | None = None

    def __post_init__(self) -> None:
        self.news = asyncio.Condition()
        self._known: set[str] = set()

    async def take(self, channel: str, given: Inbound) -> bool:
        self.offered += 1
        if self.shut > 0:
            self.shut -= 1
            raise Shut
        fresh = given.ident not in self._known
        if fresh:
            self._known.add(given.ident)
            self.taken.append(given)
        async with self.news:
            self.news.notify_all()
        if fresh and self.acts is not None:
            self.acts(given)
        return fresh

    async def form(self, channel: str, given: Inbound) -> Form | None:
        return None

    async def submitted(self, channel: str, given: Inbound) -> Mapping[str, str]:
        return {}

    async def home(self, channel: str, sender: Sender) -> Home:
        return Home()

    async def first(self, count: int = 1) -> list[Inbound]:
        """The first so many, once they are there."""
        async with self.news:
            await asyncio.wait_for(self.news.wait_for(lambda: len(self.taken) >= count), 10)
        return self.taken[:count]


@contextlib.asynccontextmanager
async def served(routes: Sequence[Route]) -> AsyncIterator[str]:
    """Routes over HTTP; where they are."""
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=list(routes)), port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def until(holds: Callable[[], object]) -> None:
    """Lets everything else go on until something holds."""
    async with asyncio.timeout(10):
        while True:
            if holds():
                return
            await asyncio.sleep(0)
