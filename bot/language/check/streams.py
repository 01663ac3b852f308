"""What the workspace must have: streams, models, saved scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.domain.plan import Op
from bot.language import types
from bot.language.check.context import (
    CHAT_KINDS,
    Checking,
    input_type,
    literal_texts,
    problem,
    streams_of,
)
from bot.language.problems import Problem, did_you_mean, nearest
from bot.language.refs import has_refs
from bot.language.types import is_record

CHANNELS = ("slack", "telegram", "line", "web")
CHAT_STREAMS = tuple(f"{channel}:{kind}" for channel in CHANNELS for kind in CHAT_KINDS)
"""Streams of the channels, which are always there."""


def check(c: Checking) -> Iterator[Problem]:
    for place, op, _ in c.ops():
        if op.op == "expect":
            yield from _evidence(c, place, op)
        elif op.op == "model":
            yield from _model(c, place, op)
        elif op.op == "run":
            yield from _script(c, place, op)


def unknown_stream(c: Checking, stream: str) -> tuple[str, str | None, str | None] | None:
    """What is wrong with a literal stream: message, mend, replacement."""
    if stream == "clock" or stream in c.world.streams or stream.startswith("endpoint:"):
        return None
    channel = stream.partition(":")[0]
    if stream in CHAT_STREAMS:
        off = c.world.channels is not None and channel not in c.world.channels
        return (f"`{channel}` is not on here, so nothing comes on `{stream}`", None, None) if off else None
    if stream.startswith("script:"):
        name = stream.removeprefix("script:")
        if name in c.world.scripts or name == c.plan.name:
            return None
        near = [f"script:{n}" for n in nearest(name, c.world.scripts)]
        return f"no saved script is called `{name}`", did_you_mean(near), near[0] if len(near) == 1 else None
    known = [*c.world.streams, "clock", *CHAT_STREAMS]
    near = nearest(stream, known)
    return f"no stream here is called `{stream}`", did_you_mean(near), near[0] if len(near) == 1 else None


def _evidence(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    for named in literal_texts(c, place, "evidence", op.params.get("evidence")):
        found = unknown_stream(c, named.text)
        if found is not None:
            message, mend, fix = found
            code = "channel-off" if named.text in CHAT_STREAMS else "unknown-stream"
            yield problem(named.span, code, message, mend, fix, fix_at=named.inner)
    streams = streams_of(op)
    if streams and "clock" not in streams and not any(has_refs(stream) for stream in streams):
        for field in ("at", "in"):
            if op.params.get(field) is not None:
                yield problem(
                    c.span(place, field),
                    "clock-only",
                    f"`{field}` goes with `clock`, not with `{streams[0]}`",
                    "a window is written `within` or `by`",
                )


def _model(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    name = op.params.get("name")
    if c.world.models is None or not isinstance(name, str) or has_refs(name) or name in c.world.models:
        return
    near = nearest(name, c.world.models)
    mend = did_you_mean(near) or (
        f"models here: {', '.join(f'`{m}`' for m in c.world.models)}" if c.world.models else None
    )
    yield problem(
        c.span(place, "name"),
        "unknown-model",
        f"no model here is called `{name}`",
        mend,
        near[0] if len(near) == 1 else None,
        fix_at=c.inner(place, "name"),
    )


def _script(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    name = op.params.get("script")
    if not isinstance(name, str) or has_refs(name):
        return
    saved = c.world.scripts.get(name)
    if saved is None:
        near = nearest(name, c.world.scripts)
        yield problem(
            c.span(place, "script"),
            "unknown-script",
            f"no saved script is called `{name}`",
            did_you_mean(near),
            near[0] if len(near) == 1 else None,
            fix_at=c.inner(place, "script"),
        )
        return
    if name == c.plan.name or (c.plan.name and reaches(c, name, c.plan.name)):
        yield problem(c.span(place, "script"), "script-circle", f"`{name}` calls `{c.plan.name}` in turn, in a circle")
    given = op.params.get("inputs")
    yield from _inputs(c, place, op, name, given if is_record(given) else {})


def reaches(c: Checking, name: str, target: str) -> bool:
    """Whether a saved script calls another, itself or through others."""
    seen: set[str] = set()
    stack = [name]
    while stack:
        saved = c.world.scripts.get(stack.pop())
        for called in saved.calls if saved else ():
            if called == target:
                return True
            if called not in seen:
                seen.add(called)
                stack.append(called)
    return False


def _inputs(c: Checking, place: str, op: Op, script: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    declared = c.world.scripts[script].inputs
    if declared is None:
        return
    known = {i.name: i for i in declared}
    for key, value in given.items():
        span = c.span(place, "inputs", key)
        if key not in known:
            near = nearest(key, known)
            yield problem(
                c.key_span(place, ("inputs",), key),
                "unknown-input",
                f"`{script}` has no input `{key}`",
                did_you_mean(near) or (f"it has {', '.join(f'`{k}`' for k in known)}" if known else None),
            )
            continue
        wanted = input_type(known[key].type, known[key].of)
        found = types.from_value(value) if not has_refs(value) else _reference(c, place, key, value)
        if types.disjoint(wanted, found):
            yield problem(
                span, "type-mismatch", f"`{key}` of `{script}` is {types.spell(wanted)}; this is {types.spell(found)}"
            )
    for name, declaration in known.items():
        if name not in given and not declaration.has_default:
            yield problem(c.span(place, "script"), "input-missing", f"`{script}` needs `{name}`", f"add `{name}: …`")


def _reference(c: Checking, place: str, key: str, value: Any) -> types.Type:
    for use in c.scopes.uses(place):
        if (
            use.field == "inputs"
            and use.keys == (key,)
            and isinstance(value, str)
            and (use.start, use.end) == (0, len(value))
        ):
            return c.path_type(place, use)
    return types.ANY
