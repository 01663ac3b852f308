"""A product with one platform attached, in this process: what the contract suite runs on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn

from bot.chat.chat import Chat
from bot.chat.platforms import channels_of
from bot.config import PLATFORMS
from bot.domain.catalog import Policy
from bot.runtime.clock import Clock, SystemClock
from bot.runtime.tools import Tool, Tools
from bot.server.app import app
from bot.server.serve import bound
from bot.wiring import Product
from channels.base import Channel
from tests.channels.stage import Seen, Stage
from tests.doubles.plain import Plain
from tests.doubles.room import RoomStage
from tests.runtime.world import PEOPLE, settings, until


@dataclass(slots=True, kw_only=True)
class Stand:
    """A stage, and the product that plays on it."""

    stage: Stage
    product: Product
    chat: Chat

    async def card(self, who: str, text: str) -> Seen:
        """The open card with these words that this person sees, once it is there."""
        return await until(lambda: self.open(who, text))

    async def alone(self, who: str, text: str) -> Seen:
        """The message with these words that this person sees and Jonas does not, once it is there."""

        def found() -> Seen | None:
            others = {m.ref for m in self.stage.seen("jonas")}
            return next((m for m in self.stage.seen(who) if text in m.text and m.ref not in others), None)

        return await until(found)

    def open(self, who: str, text: str) -> Seen | None:
        return next((m for m in self.stage.seen(who) if text in m.text and m.buttons), None)

    async def shows(self, who: str, text: str) -> Seen:
        """The message with these words that this person sees, once it is there."""
        return await until(lambda: next((m for m in self.stage.seen(who) if text in m.text), None))

    async def was_told(self, who: str, text: str) -> str:
        """Words back to somebody who acted: to them alone, or in a conversation that is theirs."""

        def found() -> str | None:
            words = [*self.stage.told(who), *(m.text for m in self.stage.seen(who))]
            return next((said for said in words if text in said), None)

        return await until(found)

    async def run(self, *, state: str = "done") -> dict[str, Any]:
        """The latest run, once it is in this state."""

        async def found() -> dict[str, Any] | None:
            runs = await self.product.desk.find_runs()
            told = await self.product.desk.show(runs[0].id) if runs else None
            return told if told is not None and told["state"] == state else None

        return await until(found)


@asynccontextmanager
async def stand(
    stage: Stage, folder: Path, tools: tuple[Tool, ...] = (), clock: Clock | None = None, **more: Any
) -> AsyncGenerator[Stand]:
    """The product on a stage, from its opening to its end."""
    async with stage, playing(stage, folder, tools, clock, **more) as at:
        yield at


@asynccontextmanager
async def playing(
    stage: Stage,
    folder: Path,
    tools: tuple[Tool, ...] = (),
    clock: Clock | None = None,
    *,
    identified: bool = True,
    **more: Any,
) -> AsyncGenerator[Stand]:
    """One process on a stage that stands; a platform that calls finds it on a port of its own. `identified`: the
    settings say who people are there."""
    web = isinstance(stage, RoomStage) or not identified
    people = tuple(replace(p, identities={} if web else {stage.name: stage.ref(p.name.lower())}) for p in PEOPLE)
    set_ = settings(folder, **{"port": 0, "people": people, "policy": Policy(approve={}), **more})
    set_ = replace(set_, channels=frozenset({"web", stage.name}), platforms=_platforms(stage))
    held = bound(set_)
    address = f"http://127.0.0.1:{held.getsockname()[1]}"
    stage.connect(address)
    set_ = replace(set_, public_url=address)
    product = Product(set_, clock=clock or SystemClock(), tools=Tools(tools))
    own = isinstance(stage, Plain)
    channels: dict[str, Channel] = {"plain": stage} if own else channels_of(set_, product.clock.now)
    if isinstance(stage, RoomStage):
        stage.product = product
    chat = Chat(product, channels)
    await product.start()
    server = _Quiet(uvicorn.Config(app(product, chat.routes()), log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([held]))
    await chat.start()
    await stage.ready()
    try:
        yield Stand(stage=stage, product=product, chat=chat)
    finally:
        server.should_exit = True
        await serving
        await chat.stop()
        await product.stop()


class _Quiet(uvicorn.Server):
    def install_signal_handlers(self) -> None: ...


def _platforms(stage: Stage) -> dict[str, dict[str, str]]:
    """The settings' `platforms` as the stage's environment gives them."""
    variables = PLATFORMS.get(stage.name, {})
    found = {key: stage.env[variable] for key, variable in variables.items() if variable in stage.env}
    return {stage.name: found} if found else {}


Maker = Callable[[], Stage]
