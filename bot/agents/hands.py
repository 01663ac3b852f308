"""What an agent can reach: the sandbox's files by reading, and the read-only tools that its settings give it. A write
is an op of the plan, where policy sees it; nothing here writes."""

from __future__ import annotations

import asyncio
import fnmatch
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.agents.model import Tool, Use
from bot.domain.catalog import OpSpec
from bot.domain.errors import OpError
from bot.domain.values import plain

MOST_CHARS = 100_000
"""Characters of one tool's result that an agent reads; of a longer file it reads on by lines."""
MOST_PATHS = 1_000


class Files(Protocol):
    def glob(self, job: str, pattern: str) -> list[str]: ...

    def read(self, job: str, path: str) -> str: ...


Call = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Calls a configured tool by its name; raises with words where it failed."""

GLOB = Tool(
    name="glob",
    description="Lists the job's files that fit a pattern; `**` stands for any folders.",
    schema={
        "type": "object",
        "properties": {"pattern": {"type": "string"}},
        "required": ["pattern"],
        "additionalProperties": False,
    },
)
READ = Tool(
    name="read",
    description="Reads a text file of the job. `from_line` and `lines` read a part of a long one; lines count from 1.",
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "from_line": {"type": "integer", "minimum": 1},
            "lines": {"type": "integer", "minimum": 1},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


def held(specs: Iterable[OpSpec], patterns: Iterable[str], may_call: Callable[[OpSpec], bool]) -> list[OpSpec]:
    """The tools that an agent holds: named by its settings, read-only, and open to whoever started the run."""
    wanted = list(patterns)
    return [
        spec
        for spec in specs
        if spec.tool
        and spec.read_only
        and any(fnmatch.fnmatchcase(spec.name, pattern) for pattern in wanted)
        and may_call(spec)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The tools of one agent in one job."""

    files: Files
    job: str
    specs: tuple[OpSpec, ...] = ()
    call: Call | None = None

    def tools(self) -> tuple[Tool, ...]:
        return (
            GLOB,
            READ,
            *(Tool(name=s.name, description=s.summary, schema=s.schema or {"type": "object"}) for s in self.specs),
        )

    async def use(self, use: Use) -> dict[str, Any]:
        """A tool's result as a block for the model. What goes wrong is told to it: it may try otherwise."""
        try:
            said = await self._done(use.name, use.input if isinstance(use.input, Mapping) else {})
            wrong = False
        except OpError as fault:
            said, wrong = str(fault), True
        except Exception as fault:  # a tool's own failure, in its words
            said, wrong = str(fault) or type(fault).__name__, True
        if len(said) > MOST_CHARS:
            said = f"{said[:MOST_CHARS]}\n… cut off here: {len(said) - MOST_CHARS} characters more"
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": use.id, "content": said}
        return block | {"is_error": True} if wrong else block

    async def _done(self, name: str, given: Mapping[str, Any]) -> str:
        if name == "glob":
            paths = await asyncio.to_thread(self.files.glob, self.job, _text(given, "pattern"))
            more = f"\n… and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
            return "\n".join(paths[:MOST_PATHS]) + more if paths else "no file fits"
        if name == "read":
            whole = await asyncio.to_thread(self.files.read, self.job, _text(given, "path"))
            return _part(whole, given.get("from_line"), given.get("lines"))
        if self.call is None or name not in {s.name for s in self.specs}:
            raise OpError(f"there is no tool `{name}` here")
        value = plain(await self.call(name, dict(given)))
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise OpError(f"`{name}` must be a text")
    return value


def _part(whole: str, start: Any, count: Any) -> str:
    if not isinstance(start, int) and not isinstance(count, int):
        return whole
    at = max(0, (start if isinstance(start, int) else 1) - 1)
    lines = whole.split("\n")
    return "\n".join(lines[at : at + count] if isinstance(count, int) else lines[at:])
