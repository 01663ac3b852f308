"""A product for tests: a database of its own, the example workspace, a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.config import Settings, StreamSettings
from bot.domain.catalog import Person, Policy, StreamSpec
from bot.runtime.clock import SetClock
from bot.runtime.files import MemoryFiles
from bot.runtime.tools import Tool, Tools
from bot.wiring import Product
from store import runs

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
PEOPLE = tuple(Person(email=f"{n.lower()}@acme.de", name=n) for n in ("Ana", "Bo", "Jonas"))


def settings(folder: Path, **more: Any) -> Settings:
    """The example workspace on SQLite in a folder."""
    base = Settings(
        database=f"sqlite:///{folder}/waiton.db", people=PEOPLE, roles={"leads": ("ana@acme.de", "bo@acme.de")},
        streams={n: StreamSettings(spec=StreamSpec(name=n)) for n in ("auth.first_signin", "camera.line_2")},
        files=folder / "files", policy=Policy(approve={}), secret_key="tests",
    )  # fmt: skip
    return replace(base, **more)


@asynccontextmanager
async def product(
    folder: Path, tools: tuple[Tool, ...] = (), clock: Any = None, **more: Any
) -> AsyncGenerator[Product]:
    one = Product(settings(folder, **more), clock=clock or SetClock(START), tools=Tools(tools), files=MemoryFiles())
    await one.committer.start()
    await one.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


async def until(holds: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Waits until something holds; what comes next is done by other tasks, not by time."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.005)


async def state(one: Product, run: str) -> str:
    return str((await one.desk.show(run))["state"])


async def started(one: Product, script: str, by: str = "bo@acme.de", **more: Any) -> str:
    got = await one.desk.start(script, by=by, job="j", **more)
    assert got.run is not None, got.seen.rendered()
    return got.run
