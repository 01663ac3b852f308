"""The page that a platform's own account link leads through: whoever is logged in goes on from it, with proof."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.server.auth import reader_of
from bot.server.respond import not_there, plain_page
from bot.server.room import desk_of, logged_out
from channels.base import Channel, Linking

TOKEN_MOST = 500


class LinkPages:
    """`/link/NAME?linkToken=…`: LINE's token comes with the address that the bot gave, and goes on with a nonce."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self.channels = {name: channel for name, channel in channels.items() if isinstance(channel, Linking)}

    def routes(self) -> list[Route]:
        return [Route("/link/{channel}", self.show)] if self.channels else []

    async def show(self, request: Request) -> Response:
        """Looking links nothing: the platform asks whoever goes on."""
        reader = await reader_of(request)
        channel = self.channels.get(request.path_params["channel"])
        token = request.query_params.get("linkToken", "")
        if channel is None or not token or len(token) > TOKEN_MOST:
            return not_there(reader)
        if reader is None:
            return logged_out(request)
        nonce = await desk_of(request).proof(reader.email)
        return plain_page(
            f"You are {reader.name} here",
            "Go on, and what waits on you comes to that chat too. It asks once more; this works for 15 minutes.",
            reader=reader,
            link=(channel.linked(token, nonce), "Link this account"),
        )
