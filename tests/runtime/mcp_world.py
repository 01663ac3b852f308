"""MCP servers for tests: the double as a process of its own, by standard input or over HTTP, of today or of old."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.runtime.mcp_listing import Listed
from bot.runtime.mcp_tools import McpServer
from bot.runtime.redacting import Redactor
from bot.runtime.tools import ToolFailed, ToolLost, Tools
from tests.runtime.world import until

ROOT = Path(__file__).parents[2]
TOKEN = "t0p-secret-token"
KINDS = ("stdio", "stdio of old", "http", "http of old")


@dataclass
class Double:
    """The double's settings, and what it has done."""

    folder: Path
    kind: str = "stdio"
    more: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def words(self) -> list[str]:
        http = ["--http", str(self.port)] if self.port else []
        return [sys.executable, "-m", "tests.doubles.mcp_server", *http, *(["--legacy"] if "old" in self.kind else [])]

    @property
    def table(self) -> dict[str, Any]:
        if self.port:
            return {"url": f"http://127.0.0.1:{self.port}/mcp", "headers": {"Authorization": "env:MCP_TOKEN"}}
        return {"command": self.words, "env": {name: f"env:{name}" for name in self.variables}}

    @property
    def variables(self) -> dict[str, str]:
        return {"MCP_FOLDER": str(self.folder), "MCP_TOKEN": TOKEN, "PYTHONPATH": str(ROOT), **self.more}

    @property
    def done(self) -> list[str]:
        path = self.folder / "done"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    async def up(self) -> None:
        """Starts it, where it is not started by whoever calls its tools."""
        if not self.port:
            return
        self.process = self._begun()

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        await until(listens, 40)

    def _begun(self) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MCP_")}
        return subprocess.Popen(self.words, cwd=ROOT, env=kept | self.variables, stderr=subprocess.DEVNULL)

    def down(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class World:
    """A toolbox with the double in it as `dbl`; what calls gave, how far they were, what files they left."""

    double: Double
    server: McpServer
    tools: Tools
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    async def keep(self, name: str, data: bytes) -> tuple[str, int]:
        self.files[name] = data
        return name, len(data)

    async def call(self, name: str, /, *, within: float = 30, **params: Any) -> Any:
        return await self.tools.call(
            f"dbl_{name}", params, "key-1", within,
            progress=lambda *told: self.progress.append(told), keep=self.keep,
        )  # fmt: skip

    async def failed(self, name: str, /, **params: Any) -> str:
        """The words of a call that failed."""
        try:
            return f"it gave {await self.call(name, **params)}"
        except ToolFailed as fault:
            return str(fault)

    async def lost(self, name: str, /, **params: Any) -> str:
        try:
            return f"it gave {await self.call(name, **params)}"
        except ToolLost as fault:
            return str(fault)


@asynccontextmanager
async def world(folder: Path, kind: str = "stdio", **table: Any) -> AsyncGenerator[World]:
    double = Double(folder, kind, port=free_port() if "http" in kind else 0)
    redact = Redactor([TOKEN])
    server = McpServer("dbl", {**double.table, **table}, double.variables, redact, None)
    tools = Tools([], [server], redact)
    await double.up()
    try:
        yield World(double, server, tools)
    finally:
        await tools.aclose()
        double.down()


def names(listed: tuple[Listed, ...] | None) -> set[str]:
    return {one.name for one in listed or ()}
