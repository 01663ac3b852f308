"""One process of `waiton mcp`: a guest in the database that works itself while no server does."""

from __future__ import annotations

import sys

from bot.exits import FINE
from bot.mcp.server import by_standard_input, over_http
from bot.mcp.service import Service
from bot.terminal import acting, product


async def serve(as_: str | None, port: int | None, *, may_answer_asks: bool) -> int:
    async with product(stands_in=True) as one:
        service = Service(one.desk, one.proposals, may_answer_asks=may_answer_asks)
        if port is None:
            await by_standard_input(one, service, await acting(one.desk, as_))
            return FINE
        only = await acting(one.desk, as_) if as_ is not None else None
        host = one.settings.host
        print(f"waiton mcp at http://{host}:{port}/mcp for whoever has a token; Ctrl-C ends it", file=sys.stderr)
        await over_http(one, service, host, port, only)
        return FINE
