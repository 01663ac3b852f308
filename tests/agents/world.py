"""A product whose agents speak to the loopback Messages API."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.config import ModelSettings
from bot.domain.catalog import Agent
from bot.wiring import Product
from tests.doubles.claude import KEY, Body, Claude, Says, Uses, last, prompt
from tests.runtime.world import product

HAIKU = "claude-haiku-4-5"
WORKED = """\
- files = glob core/src/*.rs
- some = first 5 files
- answers = each some

> Read {it} and answer with exactly one word: YES if it opens or connects a unix socket, NO if not.

- yes = keep answers YES
- total = count yes
- show total
"""
"""The worked example of the page that the language came from."""


def reader(body: Body) -> Says | Uses:
    """A model that reads the file it is asked about, then says what is in it."""
    if len(body["messages"]) == 1:
        (path,) = re.findall(r"core/src/\w+\.rs", prompt(body))
        return Uses((("read", {"path": path}),))
    return Says(" YES\n" if "Unix" in last(body) else "NO")


@asynccontextmanager
async def agents(folder: Path, api: Claude, **more: Any) -> AsyncGenerator[Product]:
    """The example workspace with one agent, `claude`, on a model whose price is known."""
    given: dict[str, Any] = {
        "agents": (Agent(name="claude", default=True),),
        "model": ModelSettings(key=KEY, base_url=api.url, name=HAIKU),
        **more,
    }
    async with product(folder, **given) as one:
        yield one


def files(one: Product, **content: str) -> None:
    """Puts files into the sandbox; `/` in names is written `__`."""
    for name, text in content.items():
        one.performer.files.save("", name.replace("__", "/").replace("_rs", ".rs").replace("_md", ".md"), text)
