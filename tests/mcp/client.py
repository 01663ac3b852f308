"""The SDK's own client against `waiton mcp` as a process."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation, TextResourceContents

from tests.cli.conftest import Folder
from tests.runtime.mcp_world import free_port
from tests.runtime.world import until

ROOT = Path(__file__).parents[2]
CLAUDE = Implementation(name="claude code", version="1")
MODES = ("auto", "legacy")


@dataclass
class Agent:
    """A client that is connected."""

    client: Client

    async def __call__(self, tool: str, **given: Any) -> dict[str, Any]:
        """What a tool tells, as data; `with_` is `with`."""
        if "with_" in given:
            given["with"] = given.pop("with_")
        result = await self.client.call_tool(tool, given)
        found = result.structured_content
        assert isinstance(found, dict)
        return found

    async def read(self, uri: str) -> str:
        (page,) = (await self.client.read_resource(uri)).contents
        assert isinstance(page, TextResourceContents)
        return page.text


@asynccontextmanager
async def by_stdio(folder: Folder, *words: str, mode: str = "auto") -> AsyncGenerator[Agent]:
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "bot.cli", "mcp", *words], cwd=folder.path, env=folder.environment
    )
    async with Client(started, mode=mode, client_info=CLAUDE, read_timeout_seconds=60) as client:
        yield Agent(client)


@asynccontextmanager
async def by_http(folder: Folder, token: str, *words: str, mode: str = "auto") -> AsyncGenerator[Agent]:
    port = free_port()
    process = _served(folder, port, *words)

    def listens() -> bool:
        assert process.poll() is None, "it ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await until(listens, 40)
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as web:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=web)
            async with Client(transport, mode=mode, client_info=CLAUDE) as client:
                yield Agent(client)
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 20)


def _served(folder: Folder, port: int, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bot.cli", "mcp", "--http", str(port), *words], cwd=folder.path,
        env=folder.environment | {"PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
