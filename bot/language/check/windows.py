"""Windows and moments: what must have one, and what a written one says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bot.domain.catalog import OpSpec
from bot.domain.plan import Op
from bot.language import durations
from bot.language.check.context import Checking, Span, problem, streams_of
from bot.language.problems import Problem
from bot.language.refs import has_refs
from bot.language.types import is_list


def check(c: Checking) -> Iterator[Problem]:
    for place, op, spec in c.ops():
        yield from _window(c, place, op, spec)
        if op.op == "expect":
            yield from _clock(c, place, op)
        yield from _further(c, place, op)
    if c.plan.within is not None and not has_refs(c.plan.within):
        yield from _duration(c, c.literal(c.plan.within), "within", c.plan.within)


def _window(c: Checking, place: str, op: Op, spec: OpSpec) -> Iterator[Problem]:
    if op.within is not None and op.by is not None:
        yield problem(
            c.span(place, "by"),
            "window-twice",
            f"`{c.spelt(place)}` has `within` and `by`; one window is enough",
            "keep one of the two",
        )
        return
    if op.within is None and op.by is None:
        if spec.window == "required" and not _timed(c, place, op):
            yield _missing(c, place, op)
        return
    if op.within is not None and not has_refs(op.within):
        yield from _duration(c, c.span(place, "within"), "within", op.within)
    if op.by is not None and not has_refs(op.by):
        yield from _moment(
            c.span(place, "by"), "window-past", lambda: durations.due_by(op.by or "", c.now, c.world.workspace)
        )


def _timed(c: Checking, place: str, op: Op) -> bool:
    """A clock ends by itself; and where `within` was written and could not be read, that has been told."""
    if c.node(place, "within") is not None or c.node(place, "by") is not None:
        return True
    streams = streams_of(op)
    return op.op == "expect" and bool(streams) and all(stream == "clock" for stream in streams)


def _missing(c: Checking, place: str, op: Op) -> Problem:
    why = "its address would live forever" if op.op == "endpoint" else "it could wait forever"
    sample = "within 3d" if c.markdown(place) else 'within: "3d"'
    return problem(
        c.name(place),
        "window-missing",
        f"`{c.spelt(place)}` has no `within`, so {why}",
        f"add a window, such as `{sample}`",
    )


def _clock(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    streams = streams_of(op)
    at, in_ = op.params.get("at"), op.params.get("in")
    if "clock" not in streams:
        return
    if at is None and in_ is None and "evidence" in op.params:
        sample = "in: 20m" if c.markdown(place) else 'in: "20m"'
        yield problem(
            c.name(place),
            "clock-without-time",
            "`clock` needs `at` or `in`: when should it strike?",
            f"add such as `{sample}`",
        )
    elif at is not None and in_ is not None:
        yield problem(
            c.span(place, "in"), "clock-twice", "`clock` has `at` and `in`; one moment is enough", "keep one of the two"
        )
    elif isinstance(at, str) and not has_refs(at):
        yield from _moment(c.span(place, "at"), "window-past", lambda: durations.clock_at(at, c.now, c.world.workspace))
    elif isinstance(in_, str) and not has_refs(in_):
        yield from _duration(c, c.span(place, "in"), "in", in_)


def _further(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    """Durations besides the window: a pause, reminders, the backoff of a retry."""
    every = op.params.get("every")
    if op.op == "core.repeat" and isinstance(every, str) and not has_refs(every):
        yield from _duration(c, c.span(place, "every"), "every", every, zero=True)
    if op.op == "ask":
        yield from _reminders(c, place, op.params.get("remind"))
    if op.retry is not None:
        for key, text in (("backoff", op.retry.backoff), ("maxDelay", op.retry.max_delay)):
            if text is not None and not has_refs(text):
                yield from _duration(c, c.span(place, "retry", key), key, text, zero=True)


def _reminders(c: Checking, place: str, remind: Any) -> Iterator[Problem]:
    for at, text in enumerate(remind if is_list(remind) else [remind]):
        if isinstance(text, str) and not has_refs(text):
            span = c.span(place, "remind", at) if is_list(remind) else c.span(place, "remind")
            yield from _duration(c, span, "remind", text)


def _duration(c: Checking, span: Span, field: str, text: str, *, zero: bool = False) -> Iterator[Problem]:
    found = durations.parse(text)
    if found is not None and (found.sign < 0 or (found.sign == 0 and not zero)):
        what = "is over before it begins" if field in ("within", "in") else "is no time at all"
        yield problem(span, "window-empty", f"`{text}` {what}", "write a duration above zero, such as `10m`")
        return
    yield from _moment(span, "window-past", lambda: durations.due_within(text, c.now, c.world.workspace))


def _moment(span: Span, past: str, read: Callable[[], object]) -> Iterator[Problem]:
    try:
        read()
    except durations.TooFar as said:
        yield problem(span, "window-too-long", str(said), "400 days are the longest")
    except durations.BadDuration as said:
        message, _, mend = str(said).partition(": ")
        yield problem(span, "window-unreadable", message, mend or None)
    except durations.NoSuchDate as said:
        yield problem(span, "no-such-date", str(said))
    except durations.PastMoment as said:
        yield problem(span, past, str(said))
