"""An MCP server for tests, as a process: `python -m tests.doubles.mcp_server [--http PORT] [--legacy]`.

It writes what it does into the folder `MCP_FOLDER`. Over HTTP it wants `Authorization: Bearer MCP_TOKEN`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER = Path(os.environ.get("MCP_FOLDER", "."))
LEGACY = "--legacy" in sys.argv
TOKEN = os.environ.get("MCP_TOKEN", "")
PIXEL = base64.b64encode(b"\x89PNG" + b"\0" * 60).decode()
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("double", log_level="CRITICAL")


def note(what: str) -> None:
    """A line in the folder's `done`."""
    with (FOLDER / "done").open("a", encoding="utf-8") as out:
        out.write(what + "\n")


@server.tool(annotations=READS)
def weather(city: str) -> dict[str, Any]:
    """The weather of a city.

    More about it."""
    return {"city": city, "degrees": 21.0}


@server.tool(name="send-mail", annotations=ToolAnnotations(destructive_hint=True))
def send_mail(to: str, ctx: Context) -> str:
    """Sends a mail."""
    meta = ctx.request_context.meta or {}
    note(f"mail {to} {meta.get('waiton/idempotency-key')}")
    return "sent"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
def put(name: str) -> str:
    """Puts a name."""
    note(f"put {name}")
    return name


@server.tool(annotations=READS)
async def slow(ctx: Context, steps: int = 3, pause: float = 0.0) -> str:
    """Takes its time, and says how far it is."""
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            note(f"step {step + 1}")
            await asyncio.sleep(pause)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "done"


@server.tool()
async def slow_write(pause: float) -> str:
    """Writes, in the end."""
    note("begun")
    await asyncio.sleep(pause)
    note("written")
    return "written"


@server.tool()
def fails(ctx: Context) -> CallToolResult:
    """Says no, and tells what it was called with."""
    shown = dict(ctx.headers or {}).get("authorization") or f"token {TOKEN}"
    return CallToolResult(content=[TextContent(type="text", text=f"no: {shown}")], is_error=True)


@server.tool(annotations=READS)
def echo(text: str) -> CallToolResult:
    """Gives a text back, unstructured."""
    return CallToolResult(content=[TextContent(type="text", text=text.replace("TOKEN", TOKEN))])


@server.tool(annotations=READS)
def huge(kib: int) -> CallToolResult:
    """A text of so many KiB."""
    return CallToolResult(content=[TextContent(type="text", text="x" * (kib * 1024))])


@server.tool(annotations=READS)
def mixed() -> CallToolResult:
    """A text, a picture, a sound, a file and a link."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="here"),
            ImageContent(type="image", data=PIXEL, mime_type="image/png"),
            AudioContent(type="audio", data=PIXEL, mime_type="audio/wav"),
            EmbeddedResource(
                type="resource",
                resource=TextResourceContents(uri="file:///notes/a%20b.txt", mime_type="text/plain", text="noted"),
            ),
            ResourceLink(type="resource_link", name="big", uri="https://files.example.com/big", mime_type="text/csv"),
        ]
    )


@server.tool()
def crash(to: str) -> str:
    """Ends the process in the middle of a call."""
    note(f"crash {to}")
    print("the disk is full", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(annotations=READS)
async def grow(name: str, ctx: Context) -> str:
    """Adds a tool."""

    def fresh() -> str:
        return name

    server.add_tool(fresh, name=name, description=f"The tool {name}.", annotations=READS)
    await ctx.notify_tools_changed()
    if ctx.protocol_version is not None and ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()
    return "grown"


def of_old() -> None:
    """Standard input as a server of an older protocol reads it: what it does not know it says so."""
    read, write = os.pipe()
    real = os.dup(0)

    def pass_on() -> None:
        with os.fdopen(real, encoding="utf-8") as lines, os.fdopen(write, "w", encoding="utf-8") as out:
            for line in lines:
                if "server/discover" in line:
                    refusal = {"code": -32601, "message": "Method not found"}
                    said = json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "error": refusal}) + "\n"
                    os.write(1, said.encode())
                else:
                    out.write(line)
                    out.flush()

    os.dup2(read, 0)
    threading.Thread(target=pass_on, daemon=True).start()


class Guarded:
    """Lets in who has the token; one of old knows no protocol of today."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and given != f"Bearer {TOKEN}":
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": f"not {given}".encode()})
            return
        if LEGACY and dict(scope.get("headers", ())).get(b"mcp-protocol-version", b"").startswith(b"2026"):
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Unsupported protocol version"})
            return
        await self.app(scope, receive, send)


def main() -> None:
    if (FOLDER / "away").exists():
        sys.exit("away for the day")
    if os.environ.get("MCP_CLASH"):
        server.add_tool(lambda: "one", name="a-b", description="One.")
        server.add_tool(lambda: "other", name="a.b", description="Another.")
    note("started " + json.dumps(sorted(k for k in os.environ if k.startswith("MCP_"))))
    if "--http" in sys.argv:
        port = int(sys.argv[sys.argv.index("--http") + 1])
        app = Guarded(server.streamable_http_app())
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1)
    else:
        if LEGACY:
            of_old()
        server.run("stdio")


if __name__ == "__main__":
    main()
