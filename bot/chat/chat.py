"""The chat side of a process: its platforms, their door, what they show."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.routing import Route

from bot.chat.acquaintance import Acquaintance
from bot.chat.acts import Acts
from bot.chat.door import ChatDoor
from bot.chat.linking import LinkPages
from bot.chat.platforms import channels_of
from bot.chat.post import ChatPost
from bot.chat.proposing import Proposing
from bot.wiring import Product
from channels.base import Channel


class Chat:
    """Attached to a product before it starts; started after it, stopped before it."""

    def __init__(self, product: Product, channels: Mapping[str, Channel]) -> None:
        self.product = product
        self.channels = channels
        self.proposing = Proposing(product.desk, product.proposals, product.wishes, channels)
        self.door = ChatDoor(product.desk, product.clock, product.people_changed, self.proposing)
        self.acts = Acts(product.desk, channels, self.door)
        product.attach(ChatPost(channels, product.site, product.settings, product.clock))
        self.acquaintance = Acquaintance(product.desk, channels, product.people_changed)
        self.links = LinkPages(channels)
        for name in channels:
            product.inbox.doormen[name] = self.acts.doorman

    async def start(self) -> None:
        """Each channel by itself: one whose platform is away stops no other."""
        await asyncio.gather(*(channel.start(self.door) for channel in self.channels.values()))
        await self.proposing.start()
        self.acquaintance.start()

    async def stop(self) -> None:
        """First whatever speaks to the platforms, then the platforms."""
        await self.acquaintance.stop()
        await self.proposing.stop()
        await self.product.inbox.stop()
        await self.product.displays.stop()
        await self.product.outbox.stop()
        await asyncio.gather(*(channel.stop() for channel in self.channels.values()), return_exceptions=True)
        await self.door.stop()

    def routes(self) -> list[Route]:
        """What the platforms call."""
        own = [route for channel in self.channels.values() for route in channel.routes()]
        return [*own, *self.links.routes()]


def attached(product: Product) -> Chat:
    """The chat of a product, by its settings; without a platform there is nothing in it."""
    return Chat(product, channels_of(product.settings, product.clock.now))
