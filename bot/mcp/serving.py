"""One process of `waiton mcp`: a guest in the database that works itself while no server does."""

from __future__ import annotations

import sys
from dataclasses import replace

from bot.domain.errors import Misconfigured
from bot.exits import FINE
from bot.mcp.server import by_standard_input, over_http
from bot.mcp.service import Service
from bot.terminal import acting, product


async def serve(as_: str | None, port: int | None, *, may_answer_asks: bool) -> int:
    from bot.server.serve import bound

    async with product(stands_in=True) as one:
        service = Service(one.desk, one.proposals, may_answer_asks=may_answer_asks)
        if port is None:
            await by_standard_input(one, service, await acting(one.desk, as_))
            return FINE
        only = await acting(one.desk, as_) if as_ is not None else None
        host = one.settings.host
        try:
            held = bound(replace(one.settings, port=port))
        except OSError as fault:
            why = fault.strerror or fault
            raise Misconfigured(f"{host}:{port} cannot be used ({why}); give another port by --http") from None
        at = held.getsockname()[1]
        print(f"waiton mcp at http://{host}:{at}/mcp for whoever has a token; Ctrl-C ends it", file=sys.stderr)
        await over_http(one, service, held, host, only)
        return FINE
