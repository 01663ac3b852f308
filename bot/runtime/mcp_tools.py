"""MCP servers whose tools scripts call: one connection each, kept by a task of its own, lost and found again.

The `mcp` package is imported when the first connection is made: a process that calls no such tool never loads it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import json
import logging
import mimetypes
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from bot.domain.errors import OpError
from bot.domain.values import dump, normalise
from bot.runtime.files import LARGEST
from bot.runtime.mcp_listing import Listed, known, op_name, summary, tools_of
from bot.runtime.redacting import Redactor
from bot.runtime.tools import CONNECTING_S, LARGEST_ANSWER, Clash, Keep, Progress, Tool, ToolFailed, ToolLost, headers

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

CONNECT_S = 30.0
"""From the start of a server to its list of tools."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Between attempts to connect, doubled each time; a call that needs the server does not wait for it."""
ENDING_S = 10.0
PAGES = 100
"""Pages of a list that are read at most."""
KEY = "waiton/idempotency-key"
"""In a call's `_meta`: the same at every attempt of the same op."""

Heard = Callable[["McpServer", Sequence[Listed]], Awaitable[None]]
"""A server has listed its tools."""


class McpServer:
    """One server of the settings, `[tools.NAME]`.

    `tools`: what is known of it now, from its latest list or a kept one (`listed` None: it was never listed).
    `fault`: why it is not there, None where it is or where nobody has tried. `clash`: which two tools of its latest
    list would be one op. `heard` and `lost`: who wants to know of its list and of its end. `variables`: what the
    settings' `env:NAME` stand for."""

    def __init__(
        self, name: str, table: Mapping[str, Any], variables: Mapping[str, str], redact: Redactor, stored: str | None
    ) -> None:
        self.name = name
        self.prefix = f"{op_name(name, '')}_"
        self.table = table
        self.redact = redact
        self.listed: tuple[Listed, ...] | None = None
        self.tools: tuple[Tool, ...] = ()
        self.fault: str | None = None
        self.clash: str | None = None
        self.heard: Heard | None = None
        self.lost: Callable[[McpServer, str], None] | None = None
        self._variables = variables
        self._task: asyncio.Task[None] | None = None
        self._scope: Any = None
        self._client: Client | None = None
        self._attempt: asyncio.Future[Client | str] | None = None
        self._wanted = asyncio.Event()
        self._stir = asyncio.Event()
        self._changed = False
        self._gone = False
        self.shelve(stored)

    def __repr__(self) -> str:
        return f"McpServer({self.name!r})"

    def take(self, listed: Sequence[Listed]) -> None:
        """These are its tools now. Raises Clash where two of them would be one op; then nothing changes."""
        self.tools = tools_of(self.name, self.table, listed, self)
        self.listed = tuple(listed)

    def shelve(self, stored: str | None) -> None:
        """Takes a kept list, if it is one of this server."""
        if (listed := known(stored, self.table)) is not None:
            self.take(listed)

    # --- the connection -----------------------------------------------------------------------------------------
    def start(self) -> None:
        """Connects in the background, and again whenever the connection is lost."""
        if self._task is None:
            self._attempt = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._keep(), name=f"mcp {self.name}")

    async def known(self) -> str | None:
        """Waits for the attempt to connect that is under way, or makes one: why the server is not there, or None."""
        try:
            await self._connected()
        except ToolFailed as fault:
            return str(fault)
        return None

    async def aclose(self) -> None:
        """Ends the connection, and the process that was started for it."""
        if self._task is None:
            return
        if self._scope is not None:
            self._scope.cancel()
        done, _ = await asyncio.wait([self._task], timeout=ENDING_S)
        if not done:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = self._client = None
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_result("this process ends")

    async def _connected(self) -> Client:
        if self._client is not None:
            return self._client
        self.start()
        assert self._attempt is not None
        self._wanted.set()
        try:
            async with asyncio.timeout(CONNECT_S + ENDING_S):
                found = await asyncio.shield(self._attempt)
        except TimeoutError:
            found = "it does not answer"
        if isinstance(found, str):
            raise ToolFailed(f"the MCP server `{self.name}` is not there: {found}")
        return found

    async def _keep(self) -> None:
        import anyio

        await asyncio.to_thread(importlib.import_module, "mcp")
        # What it logs by itself may hold what a server sent; what matters of that is told by us, without secrets.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        pause = FIRST_PAUSE_S
        with anyio.CancelScope() as self._scope:
            while True:
                self._wanted.clear()
                was_there, why = await self._once()
                pause = FIRST_PAUSE_S if was_there else min(pause * 2, LONGEST_PAUSE_S)
                self._down(why, was_there)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wanted.wait()

    async def _once(self) -> tuple[bool, str]:
        """One connection from its start to its end: whether it stood, and why it stands no more."""
        import anyio
        from mcp import Client

        self._gone, self._changed = False, False
        self._stir.clear()
        complaints = _Complaints()
        stood = False
        with anyio.CancelScope() as scope:
            late = asyncio.get_running_loop().call_later(CONNECT_S, scope.cancel)
            try:
                transport = _watched(self._transport(complaints), self._lose)
                async with Client(transport, cache=None, message_handler=self._message) as client:
                    await self._list(client)
                    late.cancel()
                    stood = True
                    self._up(client)
                    await self._stay(client)
            except Exception as fault:
                return stood, self.redact(complaints.say(_why(fault)))
            finally:
                late.cancel()
                complaints.close()
        if scope.cancelled_caught:
            return stood, f"it did not list its tools within {CONNECT_S:g} s"
        return stood, self.redact(complaints.say("it ended"))

    def _up(self, client: Client) -> None:
        self._client, self.fault = client, None
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_result(client)

    def _down(self, why: str, was_there: bool) -> None:
        """Who waits hears of an attempt that failed; who came after a connection was lost waits for the next one."""
        self._client, self.fault = None, why
        if self.lost is not None:
            self.lost(self, why)
        if self._attempt is not None and not self._attempt.done() and not was_there:
            self._attempt.set_result(why)
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_future()

    def _lose(self) -> None:
        """The connection stands no more: the next call waits for another one."""
        if self._client is not None:
            self._client = None
            self._attempt = asyncio.get_running_loop().create_future()
        self._gone = True
        self._stir.set()

    async def _stay(self, client: Client) -> None:
        """Until the connection is lost: lists again whenever the server says that its tools are others."""
        import anyio
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        async with anyio.create_task_group() as group:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._listen, client)
            while not self._gone:
                await self._stir.wait()
                self._stir.clear()
                if self._changed and not self._gone:
                    self._changed = False
                    await self._list(client)
            group.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Hears that the list has changed, where the protocol has a stream of its own for that."""
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        pause = FIRST_PAUSE_S
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    pause = FIRST_PAUSE_S
                    self._relist()  # what changed before it was listened to
                    async for _ in changes:
                        self._relist()
                return
            except MCPError as fault:
                if fault.code not in (_NOT_SENT, _LOST):
                    return  # the server has no such stream
            except (SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def _message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._relist()

    def _relist(self) -> None:
        self._changed = True
        self._stir.set()

    async def _list(self, client: Client) -> None:
        found: list[Listed] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            found += [_listed(one) for one in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        try:
            if self.heard is not None:
                await self.heard(self, found)
            else:
                self.take(found)
            self.clash = None
        except Clash as fault:
            self.clash = str(fault)
            raise

    def _transport(self, complaints: _Complaints) -> Any:
        variables = {key: self._variables[str(v).partition(":")[2]] for key, v in self.table.get("env", {}).items()}
        if "command" in self.table:
            from mcp import StdioServerParameters, stdio_client

            command, *arguments = self.table["command"]
            started = StdioServerParameters(command=command, args=arguments, env=variables)
            return stdio_client(started, errlog=complaints.file())
        return _web(str(self.table["url"]), headers(self.table, self._variables))

    # --- a call ---------------------------------------------------------------------------------------------------
    async def call(
        self,
        tool: Tool,
        params: dict[str, Any],
        key: str,
        timeout_s: float,
        *,
        progress: Progress | None = None,
        keep: Keep | None = None,
    ) -> Any:
        """What the tool gives. Raises ToolFailed where it said no or nothing was sent, ToolLost where the answer to
        what was sent never came. Cancelled, it tells the server so."""
        for _ in range(2):
            client = await self._connected()
            try:
                result = await self._ask(client, tool, params, key, timeout_s, progress)
            except _Stale:
                # The server has forgotten us and done nothing: a new connection, once.
                if client is self._client:
                    self._lose()
                continue
            return await self._value(tool, result, keep)
        raise ToolFailed(f"the MCP server `{self.name}` forgets every connection at once")

    async def _ask(
        self, client: Client, tool: Tool, params: dict[str, Any], key: str, timeout_s: float, progress: Progress | None
    ) -> CallToolResult:
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolRequest, CallToolRequestParams
        from mcp_types import CallToolResult, InputRequiredResult
        from pydantic import TypeAdapter, ValidationError

        heard = progress

        async def told(progress: float, total: float | None, message: str | None) -> None:
            if heard is not None:
                heard(progress, total, self.redact(message) if message else None)

        request = CallToolRequest(params=CallToolRequestParams(name=tool.remote, arguments=params, _meta={KEY: key}))
        answers: Any = TypeAdapter(CallToolResult | InputRequiredResult)
        try:
            # Not `call_tool`: it raises where a result does not fit the tool's own schema, and the result is gone.
            found = await client.session.send_request(
                request, answers, request_read_timeout_seconds=timeout_s, progress_callback=told
            )
        except MCPError as fault:
            if fault.code == _STALE:
                raise _Stale from None
            if fault.code == REQUEST_TIMEOUT:
                raise ToolLost(f"`{self.name}` did not answer within {timeout_s:g} s") from None
            if fault.code == CONNECTION_CLOSED:
                raise ToolLost(f"the connection to the MCP server `{self.name}` was lost before it answered") from None
            if fault.code == _LOST:
                raise ToolLost(f"`{self.name}` {fault.message}") from None
            if fault.code == _NOT_SENT:
                raise ToolFailed(f"the MCP server `{self.name}` is not there: {fault.message}") from None
            raise ToolFailed(f"`{self.name}` says: {fault.message}") from None
        except ValidationError:
            raise ToolLost(f"`{self.name}` answered with what is no result of a tool") from None
        if isinstance(found, InputRequiredResult):
            raise ToolFailed(f"`{self.name}` wants somebody at a screen before it does this")
        return found

    async def _value(self, tool: Tool, result: CallToolResult, keep: Keep | None) -> Any:
        from mcp.types import TextContent

        texts = [one.text for one in result.content if isinstance(one, TextContent)]
        if result.is_error:
            said = "\n".join(texts).strip()
            raise ToolFailed(said[:2000] or f"`{self.name}` says that it failed, and not why")
        if result.structured_content is not None:
            value = normalise(result.structured_content)
        else:
            parts = [await self._part(tool, one, keep) for one in result.content]
            if len(parts) == len(texts) == 1:
                parts = [_as_wanted(tool, texts[0])]
            value = parts[0] if len(parts) == 1 else parts or None
        if len(dump(value).encode("utf-8", "surrogatepass")) > LARGEST_ANSWER:
            raise ToolFailed(f"`{tool.spec.name}` answered with more than 4 MiB")
        return value

    async def _part(self, tool: Tool, part: Any, keep: Keep | None) -> Any:
        """One part of what a tool gave, as a value: a text, a file that is kept, a link."""
        from mcp.types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink

        if isinstance(part, ResourceLink):
            return {"name": part.name, "type": part.mime_type, "size": part.size, "uri": str(part.uri)}
        if isinstance(part, (ImageContent, AudioContent)):
            return await self._file(tool, tool.spec.name, part.mime_type, part.data, keep)
        if isinstance(part, EmbeddedResource):
            inside = part.resource
            name = unquote(urlsplit(str(inside.uri)).path.rstrip("/").rpartition("/")[2]) or tool.spec.name
            blob = isinstance(inside, BlobResourceContents)
            data = inside.blob if blob else inside.text.encode("utf-8", "surrogatepass")
            return await self._file(tool, name, inside.mime_type or ("" if blob else "text/plain"), data, keep)
        return part.text

    async def _file(self, tool: Tool, name: str, kind: str, data: str | bytes, keep: Keep | None) -> dict[str, Any]:
        if isinstance(data, str):
            try:
                data = base64.b64decode(data, validate=True)
            except ValueError:
                raise ToolFailed(f"`{tool.spec.name}` gave a file that does not decode") from None
        if len(data) > LARGEST:
            raise ToolFailed(f"`{tool.spec.name}` gave a file of more than {LARGEST // 1048576} MiB")
        if "." not in name:
            name += mimetypes.guess_extension(kind) or _ending(kind)
        if keep is None:
            raise ToolFailed(f"`{tool.spec.name}` gave a file, and there is no place for it here")
        try:
            path, size = await keep(name, data)
        except (OpError, OSError) as fault:
            raise ToolFailed(f"`{tool.spec.name}` gave a file that could not be kept: {fault}") from None
        return {"name": name, "type": kind or "application/octet-stream", "size": size, "path": path}


class _Stale(Exception):
    """The server does not know this connection any more; it has done nothing."""


def _listed(tool: Any) -> Listed:
    said = tool.annotations
    return Listed(
        name=tool.name,
        summary=summary(tool.title or (said.title if said else None), tool.description),
        input=tool.input_schema,
        output=tool.output_schema,
        read_only=said.read_only_hint if said else None,
        idempotent=said.idempotent_hint if said else None,
        destructive=said.destructive_hint if said else None,
    )


def _ending(kind: str) -> str:
    """What a file's name ends in where nothing knows its type: `audio/wav` is `.wav`."""
    last = kind.rpartition("/")[2].removeprefix("x-")
    return f".{last}" if last.isalnum() else ""


def _as_wanted(tool: Tool, text: str) -> Any:
    """A text, or the JSON in it where the tool's output schema wants that."""
    import jsonschema_rs

    if tool.spec.output is None:
        return text
    try:
        value = normalise(json.loads(text))
        validator = jsonschema_rs.validator_for(dict(tool.spec.output), retriever=_fetch_nothing)
        return value if validator.is_valid(value) else text
    except (ValueError, jsonschema_rs.ValidationError):
        return text


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")


def _why(fault: BaseException) -> str:
    """The cause of a connection that failed, in a line."""
    while isinstance(fault, BaseExceptionGroup) and fault.exceptions:
        fault = fault.exceptions[0]
    if isinstance(fault, FileNotFoundError):
        return f"`{fault.filename}` is not there"
    return " ".join(str(fault).split())[:500] or type(fault).__name__


@contextlib.asynccontextmanager
async def _watched(transport: Any, ended: Callable[[], None]) -> AsyncGenerator[tuple[Any, Any]]:
    """A transport whose end is told at once, also while nobody waits for an answer."""
    async with transport as (read, write):
        yield _Read(read, ended), write


class _Read:
    """The incoming stream of a transport, heard for its end."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _Read:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._ended()
            raise

    async def __aenter__(self) -> _Read:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *fault: Any) -> Any:
        return await self._stream.__aexit__(*fault)


class _Complaints:
    """What a server that was started here writes to its standard error: the last of it says why it ended. It goes
    nowhere else."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=20)
        self._file: Any = None
        self._reader: threading.Thread | None = None

    def file(self) -> Any:
        """The end that the process writes to."""
        read, write = os.pipe()
        self._file = os.fdopen(write, "w")
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()
        return self._file

    def _read(self, handle: int) -> None:
        with os.fdopen(handle, errors="replace") as lines:
            for line in lines:
                if line.strip():
                    self._lines.append(line.strip()[:300])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def say(self, why: str) -> str:
        """Why it ended, with its own last word."""
        self.close()
        if self._reader is not None:
            self._reader.join(0.2)
        return f"{why} ({self._lines[-1]})" if self._lines else why


# --- over HTTP --------------------------------------------------------------------------------------------------------
_NOT_SENT, _LOST, _STALE = 47001, 47002, 47003
"""Codes of answers that are ours in place of a server's: it was not reached; its answer was lost; it has forgotten the
connection."""


@contextlib.asynccontextmanager
async def _web(url: str, headers: Mapping[str, str]) -> AsyncGenerator[tuple[Any, Any]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # No read timeout of its own: a call has one, and the stream of what changes stays open.
    timeout = httpx2.Timeout(CONNECT_S, connect=CONNECTING_S, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_door()) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=4 * LARGEST) as streams,
    ):
        yield streams


def _door() -> Any:
    """The transport of HTTP on which one request that fails is an answer to that request, and ends no other."""
    import httpx2

    class Door(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                response = await super().handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as fault:
                return self._instead(request, fault, 503, _NOT_SENT, f"{_host(request)} cannot be reached: {fault}")
            except httpx2.TransportError as fault:
                return self._instead(request, fault, 502, _LOST, "did not answer; the connection was lost")
            if request.method != "POST" or response.status_code < 400:
                return response
            status, body = response.status_code, await response.aread()
            await response.aclose()
            if status == 404 and "mcp-session-id" in request.headers:
                return self._instead(request, None, status, _STALE, "it does not know this connection")
            if _of_the_protocol(body):
                return httpx2.Response(status, content=body, headers={"content-type": "application/json"})
            more = body[:300].decode("utf-8", "replace").strip()
            said = f"{_host(request)} answered {status}" + (f": {more}" if more else "")
            return self._instead(request, None, status, _NOT_SENT, said)

        def _instead(
            self, request: httpx2.Request, fault: Exception | None, status: int, code: int, said: str
        ) -> httpx2.Response:
            if request.method != "POST" and fault is not None:
                raise fault
            answer = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": said}}
            return httpx2.Response(status, json=answer, request=request)

    return Door()


def _of_the_protocol(body: bytes) -> bool:
    """Whether an answer is the server's own and not something's before it."""
    try:
        found = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and "jsonrpc" in found


def _host(request: Any) -> str:
    return f"{request.url.scheme}://{request.url.netloc.decode()}"
