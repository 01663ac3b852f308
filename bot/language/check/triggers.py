"""What starts a saved script: cron, streams, commands, scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.domain.plan import Trigger
from bot.language import cel, cron, refs
from bot.language.check.context import Checking, problem
from bot.language.check.names import JQ_WORDS
from bot.language.check.streams import unknown_stream
from bot.language.problems import Problem, did_you_mean, nearest
from bot.language.scope import FIXED

SCRIPT_NAME = re.compile(r"[^\s/\\?#%\x00-\x1f](?:[^/\\?#%\x00-\x1f]{0,78}[^\s/\\?#%\x00-\x1f])?")
"""What a script can be saved under: it stands in addresses, in streams and at a prompt."""


def check(c: Checking) -> Iterator[Problem]:
    if c.plan.on and not c.plan.name:
        yield problem(
            c.literal("on"), "name-missing", "a script with `on` is saved, so it needs a `name`", "add `name: …`"
        )
    if c.plan.on and c.plan.name and not SCRIPT_NAME.fullmatch(c.plan.name):
        yield problem(c.literal(c.plan.name), "name-form", *no_name(c.plan.name))
    for trigger in c.plan.on:
        yield from _trigger(c, trigger)
    yield from _key(c)


def no_name(name: str) -> tuple[str, str]:
    """What is wrong with a name to save a script under, and what fits."""
    return f"`{name}` cannot be a script's name", "a name has up to 80 characters, none of them one of `/ \\ ? # %`"


def said(trigger: Trigger) -> str:
    """What starts a script, in words."""
    if trigger.every is not None:
        return f"`{trigger.every}`" + (f" ({trigger.zone})" if trigger.zone else "")
    if trigger.command is not None:
        return f"`/{trigger.command}` in a conversation"
    if trigger.script is not None:
        return f"whenever `{trigger.script}` ends"
    return f"`{trigger.event}`" + (f" where `{trigger.where}`" if trigger.where else "")


def _key(c: Checking) -> Iterator[Problem]:
    """What runs are counted by is filled with what the triggers bind."""
    seen = {"event", *(t.as_ for t in c.plan.on if t.as_)}
    for _, ref in refs.refs(c.plan.key or ""):
        if ref.name not in seen:
            yield problem(
                c.literal(ref.name),
                "unknown-name",
                f"`key` sees `event` and what a trigger binds by `as`, and no `{ref.name}`",
                did_you_mean(nearest(ref.name, seen)),
            )


def _bound(c: Checking, name: str) -> Iterator[Problem]:
    """The name that a trigger binds."""
    if not re.fullmatch(refs.NAME, name):
        message = f"`{name}` cannot be a name: letters, digits and `_`, no digit first"
        yield problem(c.literal(name), "id-form", message)
    elif name in FIXED or name in cel.RESERVED or name in JQ_WORDS:
        yield problem(c.literal(name), "id-reserved", f"`{name}` is a name of the language, so `as` cannot bind it")


def _trigger(c: Checking, trigger: Trigger) -> Iterator[Problem]:
    if trigger.every is not None:
        fault = cron.fault(trigger.every)
        if fault is not None:
            yield problem(
                c.literal(trigger.every),
                "cron-unreadable",
                fault,
                "write such as `0 9 * * mon-fri`: minute, hour, day, month, weekday",
            )
        if trigger.zone is not None and not _zone(trigger.zone):
            yield problem(
                c.literal(trigger.zone),
                "unknown-zone",
                f"no time zone is called `{trigger.zone}`",
                "write such as `Europe/Berlin`",
            )
    if trigger.as_ is not None:
        yield from _bound(c, trigger.as_)
    if trigger.event is not None and c.plan.name and trigger.event == f"script:{c.plan.name}":
        message = f"`{c.plan.name}` would start itself whenever it ends"
        yield problem(c.literal(trigger.event), "script-circle", message)
    elif trigger.event is not None:
        found = unknown_stream(c, trigger.event)
        if found is not None:
            message, mend, fix = found
            span = c.literal(trigger.event)
            yield problem(span, "unknown-stream", message, mend, fix if span[1] else None)
    if trigger.script is not None and trigger.script not in c.world.scripts:
        near = nearest(trigger.script, c.world.scripts)
        span = c.literal(trigger.script)
        if trigger.script == c.plan.name:
            yield problem(span, "script-circle", f"`{trigger.script}` would start itself whenever it ends")
        else:
            yield problem(
                span,
                "unknown-script",
                f"no saved script is called `{trigger.script}`",
                did_you_mean(near),
                near[0] if len(near) == 1 and span[1] else None,
            )
    if trigger.command is not None and not re.fullmatch(r"[\w-]+", trigger.command):
        yield problem(c.literal(trigger.command), "command-form", f"`{trigger.command}` is no single word")
    if trigger.where is not None and trigger.event is None:
        yield problem(c.literal(trigger.where), "where-without-event", "`where` goes with `event`")


def _zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return bool(re.fullmatch(r"[+-]\d{2}:\d{2}", name))
    return True
