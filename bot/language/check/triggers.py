"""What starts a saved script: cron, streams, commands, scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.domain.plan import Trigger
from bot.language.check.context import Checking, problem
from bot.language.check.streams import unknown_stream
from bot.language.problems import Problem, did_you_mean, nearest

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "weekday": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
_SHORT = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}


def check(c: Checking) -> Iterator[Problem]:
    if c.plan.on and not c.plan.name:
        yield problem(
            c.literal("on"), "name-missing", "a script with `on` is saved, so it needs a `name`", "add `name: …`"
        )
    for trigger in c.plan.on:
        yield from _trigger(c, trigger)


def _trigger(c: Checking, trigger: Trigger) -> Iterator[Problem]:
    if trigger.every is not None:
        fault = cron_fault(trigger.every)
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
    if trigger.event is not None:
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


def cron_fault(text: str) -> str | None:
    """What is wrong with a cron expression of five fields, or None."""
    if text.strip().lower() in _SHORT:
        return None
    fields = text.split()
    if len(fields) != 5:
        return f"`{text}` has {len(fields)} field{'s' * (len(fields) != 1)}; a cron line has 5"
    for field, (name, low, high) in zip(fields, _FIELDS, strict=True):
        for part in field.lower().split(","):
            if not _part(part, name, low, high):
                return f"`{part or field}` is no {name} of a cron line"
    return None


def _part(part: str, name: str, low: int, high: int) -> bool:
    span, _, step = part.partition("/")
    if "/" in part and not (step.isdigit() and int(step) > 0):
        return False
    if span == "*":
        return True
    ends = span.split("-")
    values = [_value(end, name) for end in ends]
    if len(ends) > 2 or any(value is None or not low <= value <= high for value in values):
        return False
    return len(values) == 1 or name == "weekday" or (values[0] or 0) <= (values[1] or 0)


def _value(word: str, name: str) -> int | None:
    names = _NAMES.get(name, ())
    if word in names:
        return names.index(word) + (name == "month")
    return int(word) if word.isdigit() else None


def _zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return bool(re.fullmatch(r"[+-]\d{2}:\d{2}", name))
    return True
