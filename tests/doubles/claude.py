"""A loopback Messages API: what it takes and refuses, streaming, tools, structured answers, limits, its cache.

What it answers is a test's to say (`brain`). What it knows of the API it knows by itself."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-ant-tests"
Body = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """The model's answer in words."""

    text: str
    stop: str = "end_turn"


@dataclass(frozen=True)
class Uses:
    """The model wants tools called: pairs of a name and an input."""

    calls: tuple[tuple[str, Any], ...]
    text: str = ""


@dataclass(frozen=True)
class Fails:
    """The API refuses: a status, what kind of error, headers; `cut`: the connection breaks instead."""

    status: int = 529
    kind: str = "overloaded_error"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    message: str = "not now"


@dataclass(frozen=True)
class Raw:
    """What comes is no message: these words with this status. `breaks`: the connection ends before they do."""

    text: str
    kind: str = "application/json"
    status: int = 200
    breaks: bool = False


Turn = Says | Uses | Fails | Raw | str
Brain = Callable[[Body], Turn]


@dataclass
class Claude:
    """`seen`: every request's body, in order; `most`: how many were at work at once."""

    brain: Brain = lambda body: "done"
    latency_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    """While it is set to an event that is not set, answers wait."""
    seen: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    most: int = 0
    url: str = ""
    _now: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _cache: set[str] = field(default_factory=set)

    async def messages(self, request: web.Request) -> web.StreamResponse:
        if KEY not in (request.headers.get("x-api-key"), request.headers.get("authorization", "")[7:]):
            return _error(401, "authentication_error", "invalid key")
        body = json.loads(await request.read())
        if (wrong := faults(body)) is not None:
            self.refused.append(wrong)
            return _error(400, "invalid_request_error", wrong)
        self.seen.append(body)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if self.hold is not None:
                await self.hold.wait()
            turn = self.brain(body)
        finally:
            self._now -= 1
        if isinstance(turn, Fails):
            if turn.cut:
                assert request.transport is not None
                request.transport.close()
            return _error(turn.status, turn.kind, turn.message, turn.headers)
        if isinstance(turn, Raw):
            return await _raw(request, turn)
        message = self._message(body, Says(turn) if isinstance(turn, str) else turn)
        if body.get("stream"):
            return await self._stream(request, message)
        return web.json_response(message, headers=self.headers)

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if KEY not in (request.headers.get("x-api-key"), request.headers.get("authorization", "")[7:]):
            return _error(401, "authentication_error", "invalid key")
        if not name.startswith("claude-"):
            return _error(404, "not_found_error", f"model: {name}")
        return web.json_response(
            {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
        )

    def _message(self, body: Body, turn: Says | Uses) -> Body:
        content: list[Body] = []
        if turn.text:
            content.append({"type": "text", "text": turn.text})
        if isinstance(turn, Uses):
            content += [
                {"type": "tool_use", "id": f"toolu_{next(self._numbers)}", "name": name, "input": given}
                for name, given in turn.calls
            ]
        written, cached, rest = self._cached(body)
        return {
            "id": f"msg_{next(self._numbers)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if isinstance(turn, Uses) else turn.stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": rest,
                "output_tokens": max(1, len(turn.text) // 4),
                "cache_creation_input_tokens": written,
                "cache_read_input_tokens": cached,
            },
        }

    def _cached(self, body: Body) -> tuple[int, int, int]:
        """Tokens written to the cache, read from it, and the rest: by the longest marked beginning."""
        blocks: list[tuple[str, bool]] = [(json.dumps(body.get("tools", [])), False)]
        blocks += [(b["text"], "cache_control" in b) for b in body.get("system", []) if isinstance(b, dict)]
        for message in body["messages"]:
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                blocks.append((json.dumps(block), "cache_control" in block))
        whole, longest = "", ""
        for said, marked in blocks:
            whole += said
            if marked:
                longest = whole
        size, total = len(longest) // 4, len(whole) // 4
        if size < 1024:
            return 0, 0, total
        if longest in self._cache:
            return 0, size, total - size
        self._cache.add(longest)
        return size, 0, total - size

    async def _stream(self, request: web.Request, message: Body) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", **self.headers})
        await response.prepare(request)

        async def send(kind: str, **data: Any) -> None:
            await response.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())

        await send("message_start", message={**message, "content": [], "stop_reason": None})
        for at, block in enumerate(message["content"]):
            if block["type"] == "text":
                await send("content_block_start", index=at, content_block={"type": "text", "text": ""})
                for start in range(0, len(block["text"]), 40):
                    delta = {"type": "text_delta", "text": block["text"][start : start + 40]}
                    await send("content_block_delta", index=at, delta=delta)
            else:
                await send("content_block_start", index=at, content_block={**block, "input": {}})
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                await send("content_block_delta", index=at, delta=delta)
            await send("content_block_stop", index=at)
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        await send("message_delta", delta=delta, usage={"output_tokens": message["usage"]["output_tokens"]})
        await send("message_stop")
        await response.write_eof()
        return response


def faults(body: Body) -> str | None:
    """What the API refuses of a request, in its manner; None where it takes it."""
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            return f"{name}: field required"
    roles = [m["role"] for m in body["messages"]]
    if not roles or roles[0] != "user":
        return "messages: first message must use the user role"
    marks = json.dumps(body).count('"cache_control"')
    if marks > 4:
        return f"a maximum of 4 blocks with cache_control may be provided; found {marks}"
    tools = [t["name"] for t in body.get("tools", [])]
    if len(set(tools)) < len(tools):
        return "tools: tool names must be unique"
    for tool in body.get("tools", []):
        if tool.get("input_schema", {}).get("type") != "object":
            return f"tools.{tool['name']}.input_schema.type: must be object"
    choice = body.get("tool_choice")
    if choice and choice.get("type") == "tool" and choice.get("name") not in tools:
        return f"tool_choice: tool {choice.get('name')!r} not found in provided tools"
    wanted: set[str] = set()
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        given = {b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"}
        if message["role"] == "user" and given != wanted:
            return f"messages: tool_use ids without tool_result blocks: {sorted(wanted ^ given)}"
        wanted = {b["id"] for b in blocks if b.get("type") == "tool_use"}
        if isinstance(message["content"], str) and not message["content"].strip():
            return "messages: text content blocks must be non-empty"
        if any(b.get("type") == "text" and not b["text"].strip() for b in blocks):
            return "messages: text content blocks must be non-empty"
    return None


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(
        {"type": "error", "error": {"type": kind, "message": message}}, status=status, headers=headers or {}
    )


async def _raw(request: web.Request, turn: Raw) -> web.StreamResponse:
    said = turn.text.encode()
    response = web.StreamResponse(status=turn.status, headers={"content-type": turn.kind})
    response.content_length = len(said) + turn.breaks
    await response.prepare(request)
    await response.write(said)
    if turn.breaks and request.transport is not None:
        request.transport.close()
    return response


@asynccontextmanager
async def claude(brain: Brain | None = None, **more: Any) -> AsyncGenerator[Claude]:
    """The double, listening on a loopback port."""
    one = Claude(**more) if brain is None else Claude(brain=brain, **more)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/messages", one.messages)
    app.router.add_get("/v1/models/{name}", one.model)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    one.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        await runner.cleanup()


def prompt(body: Body) -> str:
    """What the user said first."""
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


def last(body: Body) -> str:
    """What the model was told last: words, or what tools gave."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(str(b.get("text") or b.get("content") or "") for b in content)


def system(body: Body) -> str:
    return "".join(b["text"] for b in body["system"])
