"""What starts a saved script: cron, streams, commands, scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.domain.plan import Trigger
from bot.language import cron
from bot.language.check.context import Checking, problem
from bot.language.check.streams import unknown_stream
from bot.language.problems import Problem, did_you_mean, nearest


def check(c: Checking) -> Iterator[Problem]:
    if c.plan.on and not c.plan.name:
        yield problem(
            c.literal("on"), "name-missing", "a script with `on` is saved, so it needs a `name`", "add `name: …`"
        )
    for trigger in c.plan.on:
        yield from _trigger(c, trigger)


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


def _zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return bool(re.fullmatch(r"[+-]\d{2}:\d{2}", name))
    return True
