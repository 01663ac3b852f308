"""What a model is asked and what it gives, in plain values: the one seam between agents and whoever speaks for them.

`Model.reply` makes one call. It is `claude.Claude` in the product; a failure says whether asking again may help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.domain.cost import Usage

Message = dict[str, Any]
"""One message of a conversation in the Messages API's shape: `{role, content}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What an agent may call: its name, what it does, a JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool that the model wants called."""

    id: str
    name: str
    input: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call. `schema`: the answer must be JSON that fits it; `must_use`: a tool that must be called; `cached`: what
    stands before the last message is sent often, so the provider may keep it."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None
    must_use: str | None = None
    max_tokens: int = 4096
    cached: bool = False
    long: bool = False
    """The answer may take minutes: it is streamed, so that the connection does not stand still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`content`: the blocks as they came, to be sent back; `stop`: why it ended (`end_turn`, `tool_use`, …)."""

    text: str
    uses: tuple[Use, ...] = ()
    content: tuple[Any, ...] = ()
    stop: str = "end_turn"
    usage: Usage = field(default_factory=Usage)
    limits: Mapping[str, str] = field(default_factory=dict)
    """What the provider said of its rate limits, by header."""


class ModelFailed(Exception):
    """The call gave no answer. `again`: it may later; `after_s`: not before so many seconds; `everyone`: that holds for
    every call of the account (a limit, a refused key), so nobody else need try."""

    def __init__(self, why: str, *, again: bool = False, after_s: float | None = None, everyone: bool = False) -> None:
        super().__init__(why)
        self.again = again
        self.after_s = after_s
        self.everyone = everyone

    @property
    def hopeless(self) -> bool:
        """No call gives an answer before somebody has changed something."""
        return self.everyone and not self.again


class Model(Protocol):
    async def reply(self, request: Request) -> Reply:
        """One call of the model. Raises ModelFailed."""
        ...

    async def aclose(self) -> None: ...
