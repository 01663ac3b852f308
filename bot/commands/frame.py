"""What commands share: options that many take, how what is given is read, how a command's work is run and ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from bot.domain.errors import WaitonError

F = TypeVar("F", bound=Callable[..., Any])


def go(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Runs a command's work and ends with its status."""
    import asyncio

    raise SystemExit(asyncio.run(work))


def text_of(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if path.is_dir():
        raise WaitonError(f"{file} is a folder; give the path of a script")
    if not path.is_file():
        raise WaitonError(f"{file} is not there; give the path of a script, or - for standard input")
    return path.read_bytes()


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def inputs_of(given: tuple[str, ...]) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WaitonError(f"`--input {pair}` is no name=value")
        inputs[name] = value_of(value)
    return inputs


def print_json(found: Any) -> None:
    print(json.dumps(found, ensure_ascii=False, indent=1, default=str))


def as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object.")(command)


def acting(command: F) -> F:
    return click.option("--as", "as_", metavar="EMAIL", help="Act as this person (default: the first).")(command)
