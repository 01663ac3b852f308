"""Asks MCP servers what tools they have, where no process that serves does: for a check, `waiton tools refresh`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog

from bot.config import Settings
from bot.domain.errors import Misconfigured
from bot.runtime.leases import new_holder
from bot.runtime.mcp_listing import kept, setting_name
from bot.runtime.mcp_tools import McpServer
from bot.runtime.tools import Clash, Tools
from store import leases, people
from store.dialect import Transaction
from store.transaction import Database

log = structlog.get_logger()
PATIENCE_S = 10.0
"""How long a command waits for servers."""


async def refresh(settings: Settings, tools: Tools, servers: Sequence[McpServer]) -> None:
    """Lists the tools of these servers, all at once, and keeps the lists where there is a database. A server that is
    not there says so in its `fault` and keeps what was known of it. Raises Misconfigured where two tools are one op."""
    await answers(tools, servers)
    if (clash := clash_of(tools)) is not None:
        raise Misconfigured(clash)
    if not (settings.database.startswith("sqlite:///") and not Path(settings.database[10:]).is_file()):
        await asyncio.to_thread(_keep, settings, servers)


def clash_of(tools: Tools) -> str | None:
    """Which two tools would be one op, where any would."""
    for server in tools.servers:
        if server.clash is not None:
            return server.clash
    try:
        _ = tools.tools
    except Clash as fault:
        return str(fault)
    return None


async def answers(tools: Tools, servers: Sequence[McpServer]) -> dict[str, str | None]:
    """Of each server, by name: None where it is there and has listed its tools, else why not."""
    asked = [asyncio.ensure_future(server.known()) for server in servers]
    try:
        await asyncio.wait(asked, timeout=PATIENCE_S)
        said = {
            server.name: one.result() if one.done() else f"it does not answer within {PATIENCE_S:g} s"
            for server, one in zip(servers, asked, strict=True)
        }
        for server in servers:
            server.fault = said[server.name]
        return said
    finally:
        for one in asked:
            one.cancel()
        await tools.aclose()


def _keep(settings: Settings, servers: Sequence[McpServer]) -> None:
    def write(tx: Transaction) -> None:
        for server in servers:
            if server.listed is not None and server.fault is None:
                people.put_setting(tx, setting_name(server.name), kept(server.listed, server.table))
        leases.nudge(tx, new_holder())

    database = Database(settings.database)
    try:
        database.write(write)
    except Exception as fault:  # a database of another release, or away: they are listed again the next time
        log.warning("the lists of MCP servers could not be kept", fault=str(fault))
    finally:
        database.close()
