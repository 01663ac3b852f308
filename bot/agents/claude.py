"""Claude, by the anthropic SDK: one attempt a call. Waiting and trying again is the line's (`line.py`), because the SDK
would sleep as long as a header says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.agents.model import ModelFailed, Reply, Request, Use
from bot.domain.cost import Price, price_of, used

TIMEOUT_S = 300.0
LONGEST_S = 900.0
"""Of an answer that is streamed."""
CACHE = {"type": "ephemeral"}


@dataclass(slots=True)
class Claude:
    """`prices`: the settings' own. The SDK is imported by the first call: it takes seconds."""

    key: str
    base_url: str | None = None
    prices: Mapping[str, Price] | None = None
    connections: int = 64
    _client: Any = None

    async def reply(self, request: Request) -> Reply:
        import anthropic

        client = self._connected()
        try:
            if request.long:
                async with client.messages.stream(**arguments(request), timeout=LONGEST_S) as stream:
                    message, headers = await stream.get_final_message(), stream.response.headers
            else:
                raw = await client.messages.with_raw_response.create(**arguments(request), timeout=TIMEOUT_S)
                message, headers = await raw.parse(), raw.headers
        except anthropic.APIStatusError as fault:
            raise _refused(fault) from None
        except anthropic.APITimeoutError:
            raise ModelFailed("the model did not answer in time", again=True) from None
        except anthropic.APIConnectionError as fault:
            raise ModelFailed(f"the model cannot be reached: {fault.__cause__ or fault}", again=True) from None
        except anthropic.APIError as fault:
            raise ModelFailed(f"the model's answer does not read: {fault.message}", again=True) from None
        return self._read(request.model, message, headers)

    async def knows(self, model: str) -> None:
        """Whether the provider takes the key and has this model. Raises ModelFailed where it does not."""
        import anthropic

        try:
            await self._connected().models.retrieve(model, timeout=10)
        except anthropic.APIStatusError as fault:
            raise _refused(fault) from None
        except anthropic.APIConnectionError as fault:
            raise ModelFailed(f"the model cannot be reached: {fault.__cause__ or fault}") from None

    def _connected(self) -> Any:
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
        count = message.usage
        usage = used(
            price_of(model, self.prices or {}),
            input=count.input_tokens,
            output=count.output_tokens,
            written=count.cache_creation_input_tokens or 0,
            cached=count.cache_read_input_tokens or 0,
        )
        return Reply(
            text="".join(block.text for block in message.content if block.type == "text"),
            uses=tuple(
                Use(id=block.id, name=block.name, input=block.input)
                for block in message.content
                if block.type == "tool_use"
            ),
            content=tuple(block.model_dump(exclude_none=True) for block in message.content),
            stop=message.stop_reason or "end_turn",
            usage=usage,
            limits={k: v for k, v in headers.items() if k.startswith("anthropic-ratelimit-")},
        )

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


def arguments(request: Request) -> dict[str, Any]:
    """The arguments of `messages.create`."""
    system: dict[str, Any] = {"type": "text", "text": request.system}
    if request.cached:
        # Tools stand before the system text in what the provider caches, so one mark keeps both.
        system["cache_control"] = CACHE
    call: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": [system],
        "messages": list(request.messages),
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


def _refused(fault: Any) -> ModelFailed:
    """What an answer with another status than 200 means."""
    status = fault.status_code
    body = fault.body if isinstance(fault.body, dict) else {}
    error = body.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    after = _seconds(fault.response.headers.get("retry-after"))
    if status == 429:
        return ModelFailed("the model's rate limit is reached", again=True, after_s=after, everyone=True)
    if status in (500, 502, 503, 504, 529) or status == 408:
        why = "the model is overloaded" if status in (503, 529) else f"the model answered {status}"
        return ModelFailed(why, again=True, after_s=after)
    if status in (401, 403):
        return ModelFailed("the model refuses the key; see ANTHROPIC_API_KEY", everyone=True)
    if status == 404:
        return ModelFailed(f"the model is not known there: {said or status}", everyone=True)
    return ModelFailed(f"the model refused the call ({status}): {said or fault.message}")


def _seconds(given: str | None) -> float | None:
    try:
        return max(0.0, float(given)) if given else None
    except ValueError:
        return None
