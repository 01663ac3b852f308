"""Runs jq filters over values of the language. Runs in the sandbox's processes only: a filter can hang or crash."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jq

from bot.domain.errors import OpError
from bot.domain.values import normalise, plain
from bot.language.jq import compile_problem

EXACT = 2**53
"""jq calculates in doubles: an integer beyond this would come back as another one."""


def run(text: str, value: Any, variables: Mapping[str, Any]) -> Any:
    """The filter's one output; several become a list, none is null. Raises OpError in the script's words."""
    value = plain(value)
    named = {name: plain(variable) for name, variable in variables.items()}
    _exact(value, "from")
    for name, variable in named.items():
        _exact(variable, f"${name}")
    try:
        outputs = list(_program(text, tuple(sorted(named)))(named).input_value(value))
    except ValueError as said:
        raise OpError(f"the filter fails: {_first_line(said)}") from None
    if len(outputs) == 1:
        return normalise(outputs[0])
    return normalise(outputs) if outputs else None


@functools.lru_cache(maxsize=256)
def _program(text: str, names: tuple[str, ...]) -> Any:
    fault = compile_problem(text, names)
    if fault is not None:
        raise OpError(f"the filter does not compile: {fault.message}")
    return functools.partial(_compiled, text)


def _compiled(text: str, named: Mapping[str, Any]) -> Any:
    return _plain_program(text) if not named else jq.compile(text, args=dict(named))


@functools.lru_cache(maxsize=256)
def _plain_program(text: str) -> Any:
    return jq.compile(text)


def _exact(value: Any, where: str) -> None:
    stack: list[tuple[Any, str]] = [(value, where)]
    while stack:
        item, path = stack.pop()
        if isinstance(item, int) and not isinstance(item, bool) and abs(item) > EXACT:
            raise OpError(f"{item} at `{path}` is beyond 2^53, and jq would round it")
        if isinstance(item, dict):
            stack.extend((v, f"{path}.{k}") for k, v in item.items())
        elif isinstance(item, list):
            stack.extend((v, f"{path}[{i}]") for i, v in enumerate(item))


def _first_line(said: ValueError) -> str:
    text = str(said).strip().splitlines()
    return text[0].removeprefix("jq: error: ").removeprefix("jq: error (at <unknown>): ") if text else "no reason given"
