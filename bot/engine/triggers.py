"""What starts a saved script: which events it hears, what they bind, and what a firing does while others of its key
still run. Rules only; rows are in `store/triggers.py`, moments of cron lines in `bot/runtime/crons.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.catalog import World
from bot.domain.errors import OpError
from bot.domain.plan import Plan, Trigger
from bot.domain.values import text
from bot.language import refs
from bot.language.check.context import CHAT_KINDS
from bot.language.refs import Ref

CHAIN = 32
"""Scripts that start each other one after another, at most: a circle of them has no other end."""
_COMMAND = re.compile(r"/([\w-]+)(?:@\w+)?(?:\s+(.*))?|([\w-]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Begin:
    """The firing starts its run, in place of older ones (`cancels`)."""

    cancels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """The firing starts its run when those before it have ended."""


@dataclass(frozen=True, slots=True)
class Skip:
    """The firing starts nothing."""

    why: str


Decision = Begin | Wait | Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """An earlier start of the same key that has not ended: its run (None while it is queued itself), and whether a
    write of that run has happened."""

    run: str | None
    wrote: bool = False


def decide(overlap: str, others: Sequence[Other]) -> Decision:
    """What a firing does beside earlier starts of its key, by `overlap`."""
    running = [other for other in others if other.run is not None]
    match overlap:
        case "allow":
            return Begin()
        case "queue":
            return Wait() if others else Begin()
        case "replace":
            wrote = [str(other.run) for other in running if other.wrote]
            if wrote:
                return Skip(f"`{wrote[0]}` has written something already, so it goes on")
            return Begin(tuple(str(other.run) for other in running))
        case _:
            return Skip(f"`{others[0].run or 'another'}` still runs") if others else Begin()


def overlap_of(plan: Plan, *, chat: bool) -> str:
    """The script's `overlap`, else that of where its firing comes from."""
    return plan.overlap or ("replace" if chat else "allow")


def is_chat(stream: str, world: World) -> bool:
    """Whether a stream's events are somebody's in a conversation."""
    declared = world.streams.get(stream)
    return declared.chat if declared is not None else stream.partition(":")[2] in CHAT_KINDS


def looked_up_by(trigger: Trigger) -> str | None:
    """What an event that starts it is found by; None of a cron line."""
    if trigger.command is not None:
        return f"command:{trigger.command.casefold()}"
    return trigger.event if trigger.event is not None else f"script:{trigger.script}" if trigger.script else None


def command_in(stream: str, body: Any) -> tuple[str, str] | None:
    """The command that a typed message is, and the words after it: `/book`, `/book at noon`, or `book` alone."""
    if stream.partition(":")[2] != "message" or not isinstance(body, Mapping) or body.get("tap"):
        return None
    found = _COMMAND.fullmatch(str(body.get("text", "")).strip())
    return ((found[1] or found[3]).casefold(), (found[2] or "").strip()) if found else None


def bound(event: Mapping[str, Any], words: str | None = None) -> Any:
    """What `as` names: the event as `where` sees it, and besides its `stream`, sender (`from`) and `at` where it has no
    such members of its own. `words`: of a command, what stood after it, in place of the text."""
    body = event["event"]
    if not isinstance(body, Mapping):
        return body
    envelope = {key: event.get(key) for key in ("stream", "from", "conversation", "at")}
    said = {} if words is None else {"text": words}
    return {**{key: value for key, value in envelope.items() if value is not None}, **body, **said}


def answered(event: Mapping[str, Any], *, chat: bool) -> str:
    """What a script must not answer twice. A tap is one event on two streams of its channel."""
    stream, ident = event["stream"], event["id"]
    return f"{stream.partition(':')[0]}{ident[len(stream) :]}" if chat else ident


def key_of(plan: Plan, names: Mapping[str, Any], conversation: str | None) -> str:
    """Of which runs a firing counts as one: the script's `key`, filled with what the event binds; else (also where it
    is not there) the conversation, else the script."""
    if plan.key is not None:
        try:
            return text(refs.fill(plan.key, lambda ref: _named(ref, names)))
        except OpError:
            pass
    return conversation or plan.name or ""


def _named(ref: Ref, names: Mapping[str, Any]) -> Any:
    if ref.name not in names and not ref.optional:
        raise OpError(f"`{ref.name}` is not there")
    return refs.follow(ref, names.get(ref.name))
