"""What a fan-out costs: against the SDK alone for the same calls, and the engine's own part of an element."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.agents.claude import arguments
from bot.agents.model import Reply, Request
from bot.config import ModelSettings
from bot.domain.catalog import Agent
from bot.domain.cost import Usage
from tests.agents.world import HAIKU
from tests.doubles.claude import KEY, claude
from tests.runtime.world import product, started, state, until

ELEMENTS, AT_ONCE, LATENCY_S = 200, 32, 0.1
MANY = 10_000


def script(many: int) -> str:
    listed = "- all = list " + " ".join(str(n) for n in range(many))
    return f"{listed}\n- answers = each all\n  > Double {{it}}.\n- n = count answers\n- show n\n"


@contextmanager
def served() -> Iterator[str]:
    """The Messages API's double in a process of its own, with its latency."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield mine.recv()
    finally:
        mine.send("stop")
        process.join(5)


def _serve(pipe: Any) -> None:
    async def serve() -> None:
        async with claude(lambda body: "ok", latency_s=LATENCY_S) as api:
            pipe.send(api.url)
            while not pipe.poll():
                await asyncio.sleep(0.05)
                api.seen.clear()

    asyncio.run(serve())


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds of the same calls by the SDK alone and by the product."""

    alone_s: float
    whole_s: float


async def spread(folder: Path, url: str) -> Spread:
    """The same calls: those that the product makes are kept, and made by the SDK alone first."""
    model = ModelSettings(key=KEY, base_url=url, name=HAIKU)
    async with product(folder, agents=(Agent(name="claude", default=True),), model=model) as one:
        assert one.agency is not None
        speaker, kept = one.agency.line.model, _Instant()
        one.agency.line.model = kept
        await _run(one, ELEMENTS)
        one.agency.line.model = speaker
        await _run(one, 2)  # the SDK is imported, connections stand
        alone = await _alone(url, [arguments(request) for request in kept.asked])
        begun = time.perf_counter()
        await _run(one, ELEMENTS)
        return Spread(alone_s=alone, whole_s=time.perf_counter() - begun)


async def _run(one: Any, many: int) -> None:
    run = await started(one, script(many))

    async def over() -> bool:
        return await state(one, run) == "done"

    await until(over, 120)


async def _alone(url: str, calls: list[dict[str, Any]]) -> float:
    """Seconds of the calls, 32 at once, by the SDK and nothing else."""
    import anthropic

    client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
    left = iter(calls)

    async def work() -> None:
        for call in left:
            await client.messages.create(**call)

    await client.messages.create(**calls[0])
    begun = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    took = time.perf_counter() - begun
    await client.close()
    return took


class _Instant:
    """A model that has its answer at once: what is left is ours. `asked`: what it was asked."""

    def __init__(self, *, keeps: bool = True) -> None:
        self.asked: list[Request] = []
        self._keeps = keeps

    async def reply(self, request: Request) -> Reply:
        if self._keeps:
            self.asked.append(request)
        await asyncio.sleep(0)
        return Reply(text="ok", usage=Usage(calls=1, input=10, output=1, usd=15))

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Own:
    """The engine's own part: CPU of an element in milliseconds, and how far memory grew in bytes."""

    cpu_ms: float
    grown: int


def own(folder: Path, many: int = MANY) -> Own:
    """Measured in a fresh process, whose memory is its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_own, (folder, many))


def _own(folder: Path, many: int) -> Own:
    return asyncio.run(_measured(folder, many))


async def _measured(folder: Path, many: int) -> Own:
    model = ModelSettings(key=KEY, name=HAIKU)
    async with product(folder, agents=(Agent(name="claude", default=True),), model=model) as one:
        assert one.agency is not None
        one.agency.line.model = _Instant(keeps=False)
        await _run(one, 10)
        before = _peak()
        begun = time.process_time()
        await _run(one, many)
        cpu = time.process_time() - begun
    return Own(cpu_ms=cpu / many * 1e3, grown=_peak() - before)


def _peak() -> int:
    """The most memory that this process has had since it was last asked, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024
