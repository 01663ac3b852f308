"""Tools as they are called: Python functions, HTTP addresses, MCP servers. What each declares is its OpSpec."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

from bot.domain.catalog import OpSpec
from bot.domain.errors import WaitonError
from bot.domain.values import normalise
from bot.runtime.redacting import Redactor

if TYPE_CHECKING:
    from bot.runtime.mcp_tools import McpServer

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes of a tool's answer."""
CONNECTING_S = 10
"""How long a connection to a tool may take to stand."""

Progress = Callable[[float, "float | None", "str | None"], None]
"""How far a call is: done, of how much if that is known, what is being done."""
Keep = Callable[[str, bytes], Awaitable[tuple[str, int]]]
"""Keeps a file that a tool gave, under this name or one like it: its path in the job, its size in bytes."""


class ToolFailed(Exception):
    """The tool said no, or could not be reached before anything was sent."""


class ToolLost(Exception):
    """The call was sent and its answer never came: it may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. Exactly one of `function`, `http` (`POST https://…`) and `server`, an MCP server that knows it as
    `remote`. `headers`: what goes with an HTTP call. `source`: where it is from, for people."""

    spec: OpSpec
    function: Callable[..., Any] | None = None
    http: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    server: McpServer | None = field(default=None, repr=False)
    remote: str = ""
    source: str = ""


def tool(name: str, function: Callable[..., Any], **declared: Any) -> Tool:
    """A tool from a Python function: its parameters' hints are its schema, its docstring the summary."""
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        properties[parameter.name] = _schema(hints.get(parameter.name))
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    summary = (inspect.getdoc(function) or f"The tool {name}.").partition("\n")[0]
    return Tool(spec=tool_spec(name, schema=schema, summary=summary, **declared), function=function)


def tool_spec(
    name: str,
    *,
    schema: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
    summary: str | None = None,
    idempotent: bool = False,
    read_only: bool = False,
    destructive: bool | None = None,
    timeout_s: float = 60.0,
) -> OpSpec:
    return OpSpec(
        name=name,
        summary=summary or f"The tool {name}.",
        kind="effect",
        shape=f"{name} KEY: VALUE …",
        params=schema or {},
        schema=schema,
        output=output,
        value="output",
        tool=True,
        idempotent=idempotent,
        read_only=read_only,
        destructive=destructive,
        timeout=timedelta(seconds=timeout_s),
    )


def declared_so(one: Tool, said: Mapping[str, Any]) -> Tool:
    """A tool of which something else is said than it says of itself: `name`, `source`, and what `tool_spec` takes."""
    changes = {key: said[key] for key in ("name", "summary", "idempotent", "read_only", "destructive") if key in said}
    if "timeout" in said:
        changes["timeout"] = timedelta(seconds=float(said["timeout"]))
    if "name" in changes:
        changes["shape"] = f"{changes['name']} KEY: VALUE …"
    return replace(one, spec=replace(one.spec, **changes), source=said.get("source", one.source))


def headers(table: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    """The headers of a tool with their secrets in place. A bare token is a bearer's."""
    found: dict[str, str] = {}
    for name, given in table.get("headers", {}).items():
        value = variables[str(given).partition(":")[2]].strip()
        bare = name.casefold() == "authorization" and " " not in value
        found[name] = f"Bearer {value}" if bare else value
    return found


_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _schema(hint: Any) -> dict[str, Any]:
    origin = getattr(hint, "__origin__", hint)
    return {"type": _JSON[origin]} if origin in _JSON else {}


@lru_cache(maxsize=512)
def _waits(function: Callable[..., Any]) -> bool:
    """Whether a tool is a coroutine function."""
    return inspect.iscoroutinefunction(function)


class Tools:
    """The tools of a workspace, by name. `servers`: MCP servers, whose tools may become others while they are used."""

    def __init__(
        self, tools: Iterable[Tool], servers: Iterable[McpServer] = (), redact: Redactor | None = None
    ) -> None:
        self.own = {t.spec.name: t for t in tools}
        self.servers = tuple(servers)
        self.redact = redact or Redactor()
        self._client: Any = None

    @property
    def tools(self) -> dict[str, Tool]:
        """Every tool that is known now. Raises Clash where two would be one op."""
        found = dict(self.own)
        for server in self.servers:
            for one in server.tools:
                if (other := found.get(one.spec.name)) is not None:
                    raise Clash(_two(other, one))
                found[one.spec.name] = one
        return found

    @property
    def specs(self) -> tuple[OpSpec, ...]:
        return tuple(t.spec for t in self.tools.values())

    def find(self, name: str) -> Tool | None:
        if name in self.own:
            return self.own[name]
        return next((one for server in self.servers for one in server.tools if one.spec.name == name), None)

    async def call(
        self,
        name: str,
        params: dict[str, Any],
        key: str,
        timeout_s: float,
        *,
        progress: Progress | None = None,
        keep: Keep | None = None,
    ) -> Any:
        """The tool's result. `key` is the same at every attempt. Cancelling it cancels the call as far as the tool can.

        Raises ToolFailed or ToolLost, without secrets in their words."""
        try:
            found = self.find(name) or await self._listed_now(name)
            return self.redact.value(await self._called(found, params, key, timeout_s, progress, keep))
        except (ToolFailed, ToolLost) as fault:
            raise type(fault)(self.redact(str(fault))) from None

    async def _listed_now(self, name: str) -> Tool:
        """A tool of a server that has never been there: it is waited for."""
        for server in self.servers:
            if server.listed is None and name.startswith(server.prefix):
                if (why := await server.known()) is not None:
                    raise ToolFailed(why)
        found = self.find(name)
        if found is None:
            raise ToolFailed(f"there is no tool `{name}` any more")
        return found

    async def _called(
        self,
        found: Tool,
        params: dict[str, Any],
        key: str,
        timeout_s: float,
        progress: Progress | None,
        keep: Keep | None,
    ) -> Any:
        if found.server is not None:
            return await found.server.call(found, params, key, timeout_s, progress=progress, keep=keep)
        if found.function is not None:
            return await self._python(found.function, params, timeout_s)
        return await self._http(found, params, key, timeout_s)

    async def _python(self, function: Callable[..., Any], params: dict[str, Any], timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                if _waits(function):
                    return normalise(await function(**params))
                return normalise(await asyncio.to_thread(function, **params))
        except (ToolFailed, ToolLost):
            raise
        except TimeoutError:
            raise ToolLost(f"it did not answer within {timeout_s:g} s") from None
        except Exception as fault:  # whatever a tool raises is its failure, told in its own words
            raise ToolFailed(str(fault) or type(fault).__name__) from None

    async def _http(self, found: Tool, params: dict[str, Any], key: str, timeout_s: float) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(follow_redirects=False)
        method, _, url = (found.http or "").partition(" ")
        body = bytearray()
        try:
            async with (
                asyncio.timeout(timeout_s + CONNECTING_S),
                self._client.stream(
                    method,
                    url,
                    json=params,
                    headers={**found.headers, "Idempotency-Key": key},
                    timeout=httpx2.Timeout(timeout_s, connect=CONNECTING_S),
                ) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > LARGEST_ANSWER:
                        raise ToolFailed(f"{url} answered with more than 4 MiB")
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as fault:
            raise ToolFailed(f"{url} cannot be reached: {fault}") from None
        except (httpx2.TimeoutException, TimeoutError):
            raise ToolLost(f"{url} did not answer within {timeout_s:g} s") from None
        except httpx2.HTTPError:
            raise ToolLost(f"{url} did not answer; the connection was lost") from None
        said = body.decode(response.encoding or "utf-8", "replace")
        if response.status_code >= 300:
            raise ToolFailed(f"{url} answered {response.status_code}: {said[:300].strip()}")
        if not said:
            return None
        try:
            return normalise(json.loads(said))
        except ValueError:
            return said

    async def aclose(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self.servers))
        if self._client is not None:
            await self._client.aclose()


class Clash(WaitonError):
    """Two tools would be one op."""


def _two(one: Tool, other: Tool) -> str:
    def named(tool: Tool) -> str:
        return f"`{tool.remote or tool.spec.name}` of {tool.source or 'the settings'}"

    return f"two tools would be the op `{one.spec.name}`: {named(one)} and {named(other)}"
