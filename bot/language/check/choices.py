"""Choices: none twice, none empty, not more than can be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.domain.values import text
from bot.language.check.context import Checking, problem
from bot.language.problems import Problem
from bot.language.refs import has_refs
from bot.language.types import is_list, is_record

MOST = 100


def check(c: Checking) -> Iterator[Problem]:
    for place, op, _ in c.ops():
        if op.op not in ("ask", "each"):
            continue
        if "choices" in op.params and "fields" in op.params:
            yield problem(c.span(place, "fields"), "choices-and-fields", "an ask has `choices` or `fields`, not both")
        yield from _choices(c, place, ("choices",), op.params.get("choices"))
        fields = op.params.get("fields")
        for at, field in enumerate(fields if is_list(fields) else ()):
            if is_record(field):
                yield from _field(c, place, at, field)


def _field(c: Checking, place: str, at: int, field: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _choices(c, place, ("fields", at, "choices"), field.get("choices"))
    if field.get("type") == "choice" and not field.get("choices"):
        yield problem(
            c.span(place, "fields", at), "choices-empty", f"the field `{field.get('name')}` is a choice without choices"
        )


def _choices(c: Checking, place: str, path: tuple[str | int, ...], choices: Any) -> Iterator[Problem]:
    if not is_list(choices):
        return
    if not choices:
        yield problem(
            c.span(place, *path),
            "choices-empty",
            "`choices` is empty, so nothing could be picked",
            "leave it out for an answer in words",
        )
    if len(choices) > MOST:
        yield problem(
            c.span(place, *path, MOST),
            "choices-too-many",
            f"at most {MOST} choices can be shown; here are {len(choices)}",
        )
        return
    labels: dict[str, int] = {}
    values: dict[str, int] = {}
    for at, choice in enumerate(choices):
        label = text(choice.get("label")) if is_record(choice) else text(choice)
        value = choice.get("value", label) if is_record(choice) else choice
        span = c.span(place, *path, at)
        if not label.strip():
            yield problem(span, "choice-empty", "a choice is empty", "remove it, or name it")
            continue
        said = text(value).strip()
        first = labels.setdefault(label.strip(), at)
        if first == at and (has_refs(value) or values.setdefault(said, at) == at):
            continue
        by_label = first != at
        first = first if by_label else values[said]
        start, end = c.span(place, *path, first)
        what = "two choices read the same once trimmed" if by_label else "two choices have the same value"
        yield problem(
            span,
            "choice-repeated",
            f"{what}: `{label.strip() if by_label else said}`",
            "remove one, or word it differently",
            also=((start, end, "first here"),),
        )
