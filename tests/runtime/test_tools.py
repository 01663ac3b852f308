"""Python and HTTP tools: what they declare, what goes with their calls, what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from bot.config import Settings
from bot.domain.catalog import Policy
from bot.domain.errors import Misconfigured
from bot.runtime.redacting import Redactor
from bot.runtime.toolbox import configured_tools
from bot.runtime.tools import Tool, ToolFailed, ToolLost, Tools, headers, tool, tool_spec
from tests.runtime.world import product, started, until

pytestmark = pytest.mark.anyio
SECRET = "t0p-secret"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Echo:
    """An HTTP server on loopback that keeps what it got and answers as it is told: a body, or nothing for ever."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.status, self.body, self.answers = 200, b"{}", True
        self.gone = asyncio.Event()
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.got.append(head)
        if not self.answers:
            length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
            await reader.read()  # until the caller goes
            self.gone.set()
        else:
            body = self.body.replace(b"HEAD", head.partition("uthorization: ")[2].partition("\r\n")[0].encode())
            writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def echo() -> AsyncGenerator[tuple[Echo, Tools]]:
    one = Echo()
    server = await asyncio.start_server(one._serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    http = f"POST http://127.0.0.1:{one.port}/do"
    given = headers({"headers": {"Authorization": "env:KEY", "X-Key": "env:KEY"}}, {"KEY": SECRET})
    tools = Tools([Tool(spec=tool_spec("do"), http=http, headers=given)], redact=Redactor([SECRET]))
    try:
        yield one, tools
    finally:
        await tools.aclose()
        server.close()


async def test_an_http_tool_goes_with_its_key_and_its_secrets_and_tells_none() -> None:
    async with echo() as (server, tools):
        assert await tools.call("do", {"a": 1}, "key-7", 5) == {}
        head = server.got[0].lower()
        assert "idempotency-key: key-7" in head and f"authorization: bearer {SECRET}" in head
        assert f"x-key: {SECRET}" in head
        server.status, server.body = 403, b"you are HEAD"
        with pytest.raises(ToolFailed, match="answered 403: you are Bearer •••"):
            await tools.call("do", {}, "k", 5)
        server.status, server.body = 200, b'{"who": "HEAD"}'
        assert await tools.call("do", {}, "k", 5) == {"who": "Bearer •••"}
        server.body = b"x" * (4 * 1024 * 1024 + 1)
        with pytest.raises(ToolFailed, match="more than 4 MiB"):
            await tools.call("do", {}, "k", 5)
        assert SECRET not in repr(tools.tools)


async def test_an_http_call_that_nobody_waits_for_drops_its_connection() -> None:
    async with echo() as (server, tools):
        server.answers = False
        nobody = asyncio.create_task(tools.call("do", {}, "k", 30))
        await until(lambda: server.got)
        nobody.cancel()
        await asyncio.wait_for(server.gone.wait(), 10)
        server.gone.clear()
        with pytest.raises(ToolLost, match=r"within 0\.2 s"):
            await tools.call("do", {}, "k", 0.2)
        await asyncio.wait_for(server.gone.wait(), 10)


def test_a_scheme_that_is_there_is_not_written_twice() -> None:
    assert headers({"headers": {"Authorization": "env:A"}}, {"A": "Basic eA=="}) == {"Authorization": "Basic eA=="}


def look(n: int) -> int:
    """Looks."""
    return n


MADE = tool("made", look, read_only=True, destructive=True)


def declared(settings: Settings, points: list[EntryPoint] | None = None) -> dict[str, tuple[bool, bool, bool | None]]:
    found = configured_tools(settings, points=points).tools
    return {name: (t.spec.read_only, t.spec.idempotent, t.spec.destructive) for name, t in found.items()}


def test_settings_say_over_a_tool_what_it_leaves_open_or_says_itself() -> None:
    here = f"{__name__}:"
    tables: dict[str, dict[str, Any]] = {
        "plain": {"python": here + "look", "idempotent": True},
        "mine": {"python": here + "MADE", "destructive": False, "timeout": 5, "summary": "Mine."},
    }
    assert declared(Settings(tools=tables)) == {"plain": (False, True, None), "mine": (True, False, False)}
    mine = configured_tools(Settings(tools=tables)).tools["mine"]
    assert (mine.spec.timeout.total_seconds(), mine.spec.summary, mine.source) == (5, "Mine.", here + "MADE")


def test_a_packages_tool_may_be_declared_otherwise_by_its_name() -> None:
    point = EntryPoint(name="made", value=f"{__name__}:MADE", group="waiton.tools")
    assert declared(Settings(tools={"made": {"read_only": False}}), [point]) == {"made": (False, False, True)}
    with pytest.raises(Misconfigured, match="no installed package declares a tool `other`"):
        declared(Settings(tools={"other": {"read_only": False}}), [point])


async def test_a_tool_kept_for_others_is_refused_when_it_starts_too(tmp_path: Path) -> None:
    policy = Policy(approve={}, use={"look": "role:leads"})
    async with product(tmp_path, tools=(tool("look", look),), policy=policy) as one:
        await one.desk.saved.save("- look n: 1\n", by="bo@acme.de", job="j", name="looking")
        run = await started(one, "- run looking\n", by="jonas@acme.de")

        async def ended() -> Any:
            return (await one.desk.show(run))["ended"]

        await until(ended)
        found = await one.desk.show(run)
        assert found["state"] == "failed"
        assert "`look` is for `role:leads`, and Jonas is not among them" in found["error"]
        edit = {"after": "1", "insert": "- look n: 2"}
        waiting = await started(one, "- ask @ana go\n  > Go?\n", by="jonas@acme.de")
        said = await one.desk.edit(waiting, edit, by="jonas@acme.de")
        assert not said.accepted and "Jonas is not among them" in said.text, said.text
