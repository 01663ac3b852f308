"""Expressions: CEL and jq that do not read, functions that are not there, how long and deep they may be."""

from __future__ import annotations

from collections.abc import Iterator

from bot.language import cel, jq
from bot.language.cel import CelSyntax, Function, parse
from bot.language.check.context import Checking, problem
from bot.language.problems import Problem, did_you_mean, nearest

ALL_BYTES = 64 * 1024


def check(c: Checking) -> Iterator[Problem]:
    total = 0
    for place, op, spec in c.ops():
        for name, language in spec.expressions.items():
            text = op.params.get(name)
            if not isinstance(text, str):
                continue
            before, total = total, total + len(text.encode("utf-8", "surrogatepass"))
            if before <= ALL_BYTES < total:
                yield problem(
                    c.name(place),
                    "limit-expressions",
                    "all expressions together may be 64 KiB long; here they are longer",
                )
            yield from _cel(c, place, name, text) if language == "cel" else _jq(c, place, name, text)
    for trigger in c.plan.on:
        if trigger.where is not None:
            yield from _where(c, trigger.where)


def _cel(c: Checking, place: str, name: str, text: str) -> Iterator[Problem]:
    if text.startswith("${") and text.endswith("}"):
        yield problem(
            c.span(place, name),
            "expression-syntax",
            f"`{name}` is an expression, so names stand without `${{…}}`",
            f"write `{text[2:-1]}`",
        )
        return
    try:
        read = parse(text)
    except CelSyntax as said:
        span = c.within(place, (name,), said.start, said.end)
        fix = said.replacement
        if fix is not None and set(fix) & set("\\\"'") and not c.markdown(place):
            fix = None  # inside a JSON text it would have to be escaped again
        yield problem(span, "expression-syntax", said.message, _write(text, said), fix)
        return
    for function in read.functions:
        found = unknown_function(function)
        if found is not None:
            message, mend, fix = found
            yield problem(
                c.within(place, (name,), function.start, function.end), "unknown-function", message, mend, fix
            )


def _write(text: str, said: CelSyntax) -> str | None:
    if said.replacement is None:
        return None
    around = text[: said.start] + said.replacement + text[said.end :]
    return f"write `{around}`" if len(around) <= 80 else None


def unknown_function(function: Function) -> tuple[str, str | None, str | None] | None:
    """What is wrong with a call: message, mend, replacement of the function's name."""
    arity = cel.FUNCTIONS.get(function.name)
    if arity is None:
        near = nearest(function.name, cel.FUNCTIONS)
        return f"no function is called `{function.name}`", did_you_mean(near), near[0] if len(near) == 1 else None
    takes = arity.method if function.method else arity.plain
    if not takes:
        way = f"`x.{function.name}(…)`" if arity.method else f"`{function.name}(…)`"
        return f"`{function.name}` is called as {way}", None, None
    if function.arguments not in takes:
        said = " or ".join("no" if n == 0 else str(n) for n in takes)
        s = "" if takes == (1,) else "s"
        return f"`{function.name}` takes {said} argument{s}, here it has {function.arguments}", None, None
    return None


def _jq(c: Checking, place: str, name: str, text: str) -> Iterator[Problem]:
    fault = jq.compile_problem(text, {variable.name for variable in jq.free_variables(text)})
    if fault is not None:
        yield problem(c.within(place, (name,), fault.start, fault.end), "expression-syntax", fault.message, fault.mend)


def _where(c: Checking, text: str) -> Iterator[Problem]:
    start, end = c.literal(text)
    try:
        read = parse(text)
    except CelSyntax as said:
        span = (start + said.start, start + said.end) if end else (0, 0)
        yield problem(span, "expression-syntax", said.message, _write(text, said), said.replacement if end else None)
        return
    for name in read.names:
        if (
            name.root not in ("event", "now", "templates")
            and name.root not in cel.TYPE_NAMES
            and name.root not in c.held
        ):
            yield problem(
                (start + name.start, start + name.start + len(name.root)) if end else (0, 0),
                "unknown-name",
                f"the `where` of a trigger sees `event`, and no `{name.root}`",
            )
