"""One agent at one task: it is asked, uses its tools, and answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.agents.hands import Hands
from bot.agents.line import Line
from bot.agents.model import Message, ModelFailed, Reply, Request, Tool
from bot.domain.cost import Usage

MOST_TURNS = 24
"""Calls of the model for one task: an agent that has no answer by then has none."""


TRIES = 3
"""Answers that do not fit before there is none."""


class NoAnswer(Exception):
    """The agent has no answer, in words; `usage` is what trying took. `hopeless`: no other has one either."""

    def __init__(self, why: str, usage: Usage, *, hopeless: bool = False) -> None:
        super().__init__(why)
        self.usage = usage
        self.hopeless = hopeless


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an agent is put on. `prefix`: the part of the prompt that others of the same kind share, worth caching;
    `said` and `then`: its last answer and what is wrong with it."""

    model: str
    system: str
    prompt: str
    prefix: str = ""
    schema: Mapping[str, Any] | None = None
    said: str | None = None
    then: str | None = None
    cached: bool = False
    max_tokens: int = 4096

    def corrected(self, said: str, then: str) -> Task:
        """The same task, with an answer to it and what is wrong with that."""
        return replace(self, said=said, then=then)


@dataclass(slots=True)
class Answer:
    text: str
    usage: Usage = field(default_factory=Usage)


async def answer(line: Line, task: Task, hands: Hands | None = None) -> Answer:
    """The agent's answer. Raises NoAnswer."""
    messages: list[Message] = [{"role": "user", "content": _content(task)}]
    if task.said is not None:
        messages.append({"role": "assistant", "content": task.said or "…"})
        messages.append({"role": "user", "content": task.then or "Answer again."})
    tools = hands.tools() if hands is not None else ()
    usage = Usage()
    for _ in range(MOST_TURNS):
        try:
            reply = await line.reply(_request(task, messages, tools))
        except ModelFailed as fault:
            raise NoAnswer(str(fault), usage, hopeless=fault.hopeless) from None
        usage += reply.usage
        if reply.stop == "tool_use" and hands is not None and reply.uses:
            messages.append({"role": "assistant", "content": list(reply.content)})
            messages.append({"role": "user", "content": await _used(hands, reply)})
            continue
        if (why := _cut_short(reply)) is not None:
            raise NoAnswer(why, usage)
        return Answer(text=reply.text.strip(), usage=usage)
    raise NoAnswer(f"it used tools {MOST_TURNS} times and gave no answer", usage)


async def _used(hands: Hands, reply: Reply) -> Sequence[dict[str, Any]]:
    return await asyncio.gather(*(hands.use(use) for use in reply.uses))


def _request(task: Task, messages: list[Message], tools: tuple[Tool, ...]) -> Request:
    return Request(
        model=task.model,
        system=task.system,
        messages=tuple(messages),
        tools=tools,
        schema=task.schema,
        max_tokens=task.max_tokens,
        cached=task.cached,
    )


def _content(task: Task) -> str | list[dict[str, Any]]:
    if not task.prefix:
        return task.prompt
    return [
        {"type": "text", "text": task.prefix, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": task.prompt},
    ]


def _cut_short(reply: Reply) -> str | None:
    match reply.stop:
        case "max_tokens":
            return "its answer was cut off: it is too long"
        case "refusal":
            return "it declined to answer"
        case "tool_use":
            return "it wanted a tool that it does not have"
        case _:
            return None if reply.text.strip() else "it answered nothing"


def picked(text: str) -> str:
    """The answer in the JSON of a choice; the text itself where it is none."""
    found = _record(text).get("answer")
    return found if isinstance(found, str) else text


def given(text: str, schema: Mapping[str, Any] | None, *, fields: bool) -> tuple[Any, str | None]:
    """An answer to an `ask` and its comment. `fields`: the answer is a form's record. What does not read as the schema
    wants is the text itself: whoever asked says what is wrong with it."""
    if schema is None:
        return text, None
    record = _record(text)
    reason = record.get("reason")
    comment = reason.strip() or None if isinstance(reason, str) else None
    if fields:
        own = "reason" in schema["properties"]
        return ({k: v for k, v in record.items() if k != "reason" or not own} if record else text), comment
    return picked(text), comment


def _record(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
