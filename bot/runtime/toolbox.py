"""The tools that the settings name and installed packages declare, loaded."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from bot.config import DECLARED, SOURCES, Settings, short_schema
from bot.domain.errors import Misconfigured
from bot.ops.specs import SPECS
from bot.runtime.mcp_listing import setting_name
from bot.runtime.redacting import Redactor
from bot.runtime.tools import Clash, Tool, Tools, declared_so, headers, tool, tool_spec

if TYPE_CHECKING:
    from bot.runtime.mcp_tools import McpServer

Shelf = Callable[[str], str | None]
"""What the database keeps under a name."""


def configured_tools(
    settings: Settings, shelf: Shelf = lambda _: None, points: Iterable[EntryPoint] | None = None
) -> Tools:
    """The tools of the settings and those that installed packages declare (`waiton.tools` entry points). `shelf` has
    the lists of MCP servers from when they were last there: none is spoken to here."""
    redact = Redactor(settings.secrets)
    found: list[Tool] = []
    servers: list[McpServer] = []
    for name, table in settings.tools.items():
        if table.get("demo"):
            from bot.runtime.demo import TOOLS

            found += TOOLS
        elif "python" in table:
            found.append(_python(name, table))
        elif "http" in table:
            found.append(_http(name, table, settings))
        elif "command" in table or "url" in table:
            servers.append(_server(name, table, settings, redact, shelf))
    declared = entry_points(group="waiton.tools") if points is None else points
    packaged = {one.spec.name: one for point in declared for one in _packaged(point)}
    for name, table in settings.tools.items():
        if any(key in table for key in SOURCES):
            continue
        if name not in packaged:
            raise Misconfigured(
                f"[tools.{name}] needs `http`, `python`, `command` or `url`: no installed package declares a tool "
                f"`{name}`"
            )
        packaged[name] = declared_so(packaged[name], _said(table))
    tools = Tools([*found, *packaged.values()], servers, redact)
    try:
        names = list(tools.tools)
    except Clash as fault:
        raise Misconfigured(f"{fault}; name one of the tables in [tools] otherwise") from None
    for name in names:
        if name in COMMANDS:
            raise Misconfigured(f"the tool `{name}` is named like a command; call it otherwise")
    return tools


COMMANDS = frozenset({spec.name for spec in SPECS} | {spec.name.rpartition(".")[2] for spec in SPECS})
"""Names that scripts have taken."""


def _said(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a table declares, and only that: what it leaves out stays what the tool says of itself."""
    return {key: table[key] for key in DECLARED if key in table}


def _python(name: str, table: Mapping[str, Any]) -> Tool:
    loaded = _function(str(table["python"]), name)
    made = loaded if isinstance(loaded, Tool) else tool(name, loaded)
    return declared_so(made, {"name": name, "source": str(table["python"]), **_said(table)})


def _http(name: str, table: Mapping[str, Any], settings: Settings) -> Tool:
    spec = tool_spec(
        name,
        schema=short_schema(table.get("input")),
        output=short_schema(table.get("output")),
        summary=table.get("summary"),
        idempotent=bool(table.get("idempotent")),
        read_only=bool(table.get("read_only")),
        destructive=table.get("destructive"),
        timeout_s=float(table.get("timeout", 60)),
    )
    http = str(table["http"])
    return Tool(spec=spec, http=http, headers=headers(table, settings.variables), source=http)


def _server(name: str, table: Mapping[str, Any], settings: Settings, redact: Redactor, shelf: Shelf) -> McpServer:
    if importlib.util.find_spec("mcp") is None:
        raise Misconfigured(
            f"[tools.{name}] is an MCP server, and what speaks to it is not installed; "
            "install it with `uv tool install 'waiton[mcp]'`"
        )
    from bot.runtime.mcp_tools import McpServer

    try:
        return McpServer(name, table, settings.variables, redact, shelf(setting_name(name)))
    except Clash as fault:
        raise Misconfigured(str(fault)) from None


def _packaged(point: EntryPoint) -> list[Tool]:
    loaded = point.load()
    made = list(loaded) if isinstance(loaded, (list, tuple)) else [loaded]
    source = f"the package {point.dist.name}" if point.dist is not None else point.value
    return [declared_so(one if isinstance(one, Tool) else tool(point.name, one), {"source": source}) for one in made]


def _function(named: str, tool_name: str) -> Any:
    module, _, attribute = named.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as fault:
        raise Misconfigured(f'[tools.{tool_name}] python = "{named}" does not load: {fault}') from None
