"""What comes of a model's server that answers with something else than a message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.agents.claude import Claude
from bot.agents.model import ModelFailed, Reply, Request
from tests.doubles.claude import KEY, Fails, Raw, Says, Turn, claude, prompt

PAGE = Raw("<html>the gateway is tired</html>", "text/html")


def message(**other: Any) -> str:
    whole = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}, **other,
    }  # fmt: skip
    return json.dumps(whole)


def events(*given: dict[str, Any]) -> str:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in given)


BEGUN = events(
    {"type": "message_start", "message": {**json.loads(message(content=[])), "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "YES, but"}},
)


async def asked(turn: Turn, *, long: bool = False, text: str = "hi") -> tuple[Reply, str]:
    """The reply to one call, and what the server was told."""
    async with claude(lambda _: turn) as api:
        one = Claude(key=KEY, base_url=api.url)
        try:
            said: Any = {"role": "user", "content": text}
            return await one.reply(Request(model="claude-m", system="", messages=(said,), long=long)), prompt(
                api.seen[0]
            )
        finally:
            await one.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "turn",
    [
        Raw(""), Raw("{nope"), Raw("null"), Raw("[]"), Raw("{}"), PAGE, Raw(PAGE.text), Raw("", status=204),
        Raw(message(content=None)), Raw(message(content="YES")), Raw(message(content=[5])), Raw(message(usage=None)),
        Raw(message(content=[{"type": "text"}])), Raw(message(usage={"input_tokens": "x", "output_tokens": 1})),
        Raw(message(stop_reason=None)), Raw(message(), breaks=True),
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_message_is_asked_for_again(turn: Raw) -> None:
    with pytest.raises(ModelFailed) as told:
        await asked(turn)
    assert told.value.again and not told.value.hopeless


@pytest.mark.anyio
@pytest.mark.parametrize(
    "turn",
    [
        Raw("", "text/event-stream"), Raw(BEGUN, "text/event-stream"), Raw(BEGUN, "text/event-stream", breaks=True),
        Raw("event: message_start\ndata: {nope\n\n", "text/event-stream"), Raw(message()), PAGE,
    ],
)  # fmt: skip
async def test_a_stream_that_ends_before_its_message_is_no_answer_but_asked_for_again(turn: Raw) -> None:
    with pytest.raises(ModelFailed) as told:
        await asked(turn, long=True)
    assert told.value.again and not told.value.hopeless


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "words", "again"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate limit", True),
        ("authentication_error", "refuses the key", False),
        ("invalid_request_error", r"refused the call \(400\)", False),
    ],
)
async def test_a_fault_in_the_middle_of_a_stream_means_what_its_status_would(
    kind: str, words: str, again: bool
) -> None:
    fault = events({"type": "error", "error": {"type": kind, "message": "not now"}})
    with pytest.raises(ModelFailed, match=words) as told:
        await asked(Raw(BEGUN + fault, "text/event-stream"), long=True)
    assert told.value.again is again


@pytest.mark.anyio
async def test_what_a_server_says_of_a_refusal_is_short_and_never_tells_the_key() -> None:
    with pytest.raises(ModelFailed) as told:
        await asked(Fails(status=400, kind="invalid_request_error", message=f"{KEY} {'x' * 9_000}"))
    assert KEY not in str(told.value) and "•••" in str(told.value) and len(str(told.value)) < 400


@pytest.mark.anyio
async def test_halves_of_characters_and_nul_go_neither_to_a_model_nor_come_from_it() -> None:
    reply, told = await asked(Says("a\ud83db\0c 🚀"), text="x\ud83dy\0z 🚀")
    assert reply.text == "a\ufffdb\ufffdc 🚀" and told == "x\ufffdy\ufffdz 🚀"
