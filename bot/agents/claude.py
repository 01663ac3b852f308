"""Claude, by the anthropic SDK: one attempt a call. Waiting and trying again is the line's (`line.py`), because the SDK
would sleep as long as a header says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import structlog

from bot.agents.model import ModelFailed, Reply, Request, Use
from bot.domain.cost import Price, price_of, used
from bot.domain.values import whole

log = structlog.get_logger()
TIMEOUT_S = 300.0
LONGEST_S = 900.0
"""Of an answer that is streamed."""
CACHE = {"type": "ephemeral"}
SAID_CHARS = 300
"""Of what a server says of a refusal: some answer with a page."""
UNREAD = "the model's answer does not read"
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""What a fault means that came after the status 200, in the middle of an answer (Messages API, Errors)."""


@dataclass(slots=True)
class Claude:
    """`prices`: the settings' own. The SDK is imported by the first call: it takes seconds."""

    key: str
    base_url: str | None = None
    prices: Mapping[str, Price] | None = None
    connections: int = 64
    _client: Any = None

    async def reply(self, request: Request) -> Reply:
        client = await self._connected()
        import anthropic
        import httpx2

        try:
            if request.long:
                async with client.messages.stream(**arguments(request), timeout=LONGEST_S) as stream:
                    message, headers = await stream.get_final_message(), stream.response.headers
            else:
                raw = await client.messages.with_raw_response.create(**arguments(request), timeout=TIMEOUT_S)
                message, headers = await raw.parse(), raw.headers
        except anthropic.APIStatusError as fault:
            raise self._refused(fault) from None
        except anthropic.APITimeoutError:
            raise ModelFailed("the model did not answer in time", again=True) from None
        except anthropic.APIConnectionError as fault:
            raise ModelFailed(f"the model cannot be reached: {fault.__cause__ or fault}", again=True) from None
        except anthropic.APIError as fault:
            raise ModelFailed(f"{UNREAD}: {fault.message}", again=True) from None
        except httpx2.TransportError as fault:  # the SDK does not name what breaks a stream in its middle
            raise ModelFailed(f"the model's answer broke off: {fault}", again=True) from None
        except Exception as fault:  # whatever is no message (a page, junk, nothing) breaks the SDK as it may
            log.warning("a model's answer does not read", fault=f"{type(fault).__name__}: {fault}"[:SAID_CHARS])
            raise ModelFailed(UNREAD, again=True) from None
        try:
            return self._read(request.model, message, headers)
        except (AttributeError, LookupError, TypeError, ValueError) as fault:  # the SDK builds a message of any JSON
            log.warning("a model's answer does not read", fault=f"{type(fault).__name__}: {fault}"[:SAID_CHARS])
            raise ModelFailed(UNREAD, again=True) from None

    async def knows(self, model: str) -> None:
        """Whether the provider takes the key and has this model. Raises ModelFailed where it does not."""
        client = await self._connected()
        import anthropic

        try:
            await client.models.retrieve(model, timeout=10)
        except anthropic.APIStatusError as fault:
            raise self._refused(fault) from None
        except anthropic.APIConnectionError as fault:
            raise ModelFailed(f"the model cannot be reached: {fault.__cause__ or fault}") from None

    async def _connected(self) -> Any:
        if self._client is None:
            await asyncio.to_thread(import_module, "anthropic.resources")  # nothing else stands still meanwhile
        if self._client is None:
            import anthropic
            import httpx2

            limits = httpx2.Limits(max_connections=self.connections, max_keepalive_connections=self.connections)
            self._client = anthropic.AsyncAnthropic(
                api_key=self.key,
                base_url=self.base_url,
                max_retries=0,
                timeout=TIMEOUT_S,
                http_client=anthropic.DefaultAsyncHttpxClient(limits=limits),
            )
        return self._client

    def _read(self, model: str, message: Any, headers: Mapping[str, str]) -> Reply:
        """Raises AttributeError, LookupError, TypeError, ValueError where it is no whole message."""
        if message.stop_reason is None:
            raise ValueError("it does not say why it ended, so it is not whole")
        count = message.usage
        usage = used(
            price_of(model, self.prices or {}),
            input=int(count.input_tokens),
            output=int(count.output_tokens),
            written=int(count.cache_creation_input_tokens or 0),
            cached=int(count.cache_read_input_tokens or 0),
        )
        blocks = _clean([block.model_dump(exclude_none=True, warnings=False) for block in message.content])
        blocks = [block for block in blocks if block.get("text") != ""]  # an empty one may not be sent back
        return Reply(
            text="".join(block["text"] for block in blocks if block["type"] == "text"),
            uses=tuple(
                Use(id=block["id"], name=block["name"], input=block["input"])
                for block in blocks
                if block["type"] == "tool_use"
            ),
            content=tuple(blocks),
            stop=message.stop_reason,
            usage=usage,
            limits={k: v for k, v in headers.items() if k.startswith("anthropic-ratelimit-")},
        )

    def _refused(self, fault: Any) -> ModelFailed:
        """What an answer with another status than 200 means, or a fault in the middle of one."""
        body = fault.body if isinstance(fault.body, dict) else {}
        found = body.get("error")
        error = found if isinstance(found, dict) else {}
        status = fault.status_code if fault.status_code >= 300 else STATUSES.get(error.get("type") or "", 500)
        said = str(error.get("message") or fault.message).replace(self.key, "•••")[:SAID_CHARS]
        after = _seconds(fault.response.headers.get("retry-after"))
        if status == 429:
            return ModelFailed("the model's rate limit is reached", again=True, after_s=after, everyone=True)
        if status >= 500 or status in (408, 409):
            why = "the model is overloaded" if status in (503, 529) else f"the model answered {status}"
            return ModelFailed(why, again=True, after_s=after)
        if status in (401, 403):
            return ModelFailed("the model refuses the key; see ANTHROPIC_API_KEY", everyone=True)
        if status == 404:
            return ModelFailed(f"the model is not known there: {said}", everyone=True)
        return ModelFailed(f"the model refused the call ({status}): {said}")

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


def arguments(request: Request) -> dict[str, Any]:
    """The arguments of `messages.create`."""
    system: dict[str, Any] = {"type": "text", "text": _clean(request.system)}
    if request.cached:
        # Tools stand before the system text in what the provider caches, so one mark keeps both.
        system["cache_control"] = CACHE
    call: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": [system],
        "messages": _clean(request.messages),
    }
    if request.tools:
        call["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
            for tool in request.tools
        ]
    if request.must_use is not None:
        call["tool_choice"] = {"type": "tool", "name": request.must_use}
    if request.schema is not None:
        call["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
    return call


def _clean(value: Any) -> Any:
    """JSON data with U+FFFD in place of what is no text."""
    match value:
        case str():
            return whole(value)
        case dict():
            return {_clean(key): _clean(one) for key, one in value.items()}
        case list() | tuple():
            return [_clean(one) for one in value]
        case _:
            return value


def _seconds(given: str | None) -> float | None:
    try:
        return max(0.0, float(given)) if given else None
    except ValueError:
        return None
