"""The tools that the settings name and installed packages declare, loaded."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any

from bot.config import Settings, short_schema
from bot.domain.errors import Misconfigured
from bot.ops.specs import SPECS
from bot.runtime.tools import Tool, Tools, tool, tool_spec


def configured_tools(settings: Settings) -> Tools:
    """The tools of the settings and those that installed packages declare (`waiton.tools` entry points)."""
    found: list[Tool] = []
    for name, table in settings.tools.items():
        declared: dict[str, Any] = {
            "idempotent": bool(table.get("idempotent")),
            "read_only": bool(table.get("read_only")),
            "destructive": table.get("destructive"),
            "timeout_s": float(table.get("timeout", 60)),
        }
        if table.get("demo"):
            from bot.runtime.demo import TOOLS

            found += TOOLS
        elif "python" in table:
            found.append(tool(name, _function(str(table["python"]), name), **declared))
        elif "http" in table:
            spec = tool_spec(
                name,
                schema=short_schema(table.get("input")),
                output=short_schema(table.get("output")),
                summary=table.get("summary"),
                **declared,
            )
            found.append(Tool(spec=spec, http=str(table["http"])))
        else:
            raise Misconfigured(f"[tools.{name}]: MCP servers are not there yet; use `http` or `python`")
    for point in entry_points(group="waiton.tools"):
        loaded = point.load()
        found += list(loaded) if isinstance(loaded, (list, tuple)) else [tool(point.name, loaded)]
    taken = {spec.name for spec in SPECS} | {spec.name.rpartition(".")[2] for spec in SPECS}
    for one in found:
        if one.spec.name in taken:
            raise Misconfigured(f"the tool `{one.spec.name}` is named like a command; call it otherwise")
    return Tools(found)


def _function(named: str, tool_name: str) -> Any:
    module, _, attribute = named.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as fault:
        raise Misconfigured(f'[tools.{tool_name}] python = "{named}" does not load: {fault}') from None
