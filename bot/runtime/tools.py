"""Tools as they are called: Python functions and HTTP addresses. What each declares is its OpSpec."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, get_type_hints

from bot.domain.catalog import OpSpec
from bot.domain.values import normalise

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes of an HTTP tool's answer."""


class ToolFailed(Exception):
    """The tool said no, or could not be reached before anything was sent."""


class ToolLost(Exception):
    """The call was sent and its answer never came: it may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. Exactly one of `function` and `http` (`POST https://…`)."""

    spec: OpSpec
    function: Callable[..., Any] | None = None
    http: str | None = None


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


_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _schema(hint: Any) -> dict[str, Any]:
    origin = getattr(hint, "__origin__", hint)
    return {"type": _JSON[origin]} if origin in _JSON else {}


@lru_cache(maxsize=512)
def _waits(function: Callable[..., Any]) -> bool:
    """Whether a tool is a coroutine function."""
    return inspect.iscoroutinefunction(function)


class Tools:
    """The tools of a workspace, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = {t.spec.name: t for t in tools}
        self._client: Any = None

    @property
    def specs(self) -> tuple[OpSpec, ...]:
        return tuple(t.spec for t in self.tools.values())

    async def call(self, name: str, params: dict[str, Any], key: str, timeout_s: float) -> Any:
        """The tool's result. Raises ToolFailed or ToolLost."""
        found = self.tools.get(name)
        if found is None:
            raise ToolFailed(f"there is no tool `{name}` any more")
        if found.function is not None:
            return await self._python(found.function, params, timeout_s)
        return await self._http(found, params, key, timeout_s)

    async def _python(self, function: Callable[..., Any], params: dict[str, Any], timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                if _waits(function):
                    return normalise(await function(**params))
                return normalise(await asyncio.to_thread(function, **params))
        except TimeoutError:
            raise ToolLost(f"it did not answer within {timeout_s:g} s") from None
        except Exception as fault:  # whatever a tool raises is its failure, told in its own words
            raise ToolFailed(str(fault) or type(fault).__name__) from None

    async def _http(self, found: Tool, params: dict[str, Any], key: str, timeout_s: float) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(follow_redirects=False)
        method, _, url = (found.http or "").partition(" ")
        try:
            response = await self._client.request(
                method,
                url,
                json=params,
                headers={"Idempotency-Key": key},
                timeout=httpx2.Timeout(timeout_s, connect=10),
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as fault:
            raise ToolFailed(f"{url} cannot be reached: {fault}") from None
        except httpx2.TimeoutException:
            raise ToolLost(f"{url} did not answer within {timeout_s:g} s") from None
        except httpx2.HTTPError:
            raise ToolLost(f"{url} did not answer; the connection was lost") from None
        if response.status_code >= 300:
            raise ToolFailed(f"{url} answered {response.status_code}: {response.text[:300].strip()}")
        if len(response.content) > LARGEST_ANSWER:
            raise ToolFailed(f"{url} answered with more than 4 MiB")
        if not response.content:
            return None
        try:
            return normalise(response.json())
        except ValueError:
            return response.text

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
