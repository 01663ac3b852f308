"""What an MCP server lists, kept so that its ops are known while it is away, and the tools that its list becomes.

Nothing here speaks to a server, or needs the `mcp` package.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bot.config import DECLARED
from bot.domain.ids import digest
from bot.runtime.tools import Clash, Tool, tool_spec

if TYPE_CHECKING:
    from bot.runtime.mcp_tools import McpServer

LONGEST_SUMMARY = 200
"""Characters of a tool's summary: it is the server's text, and stands in lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One tool as its server lists it. What it claims of itself is None where it says nothing."""

    name: str
    summary: str = ""
    input: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    read_only: bool | None = None
    idempotent: bool | None = None
    destructive: bool | None = None


def setting_name(server: str) -> str:
    """Under which name the database keeps a server's list."""
    return f"tools/{server}"


def fingerprint(table: Mapping[str, Any]) -> str:
    """Which server a list is of: another command or address is another server."""
    return digest(json.dumps([table.get("command"), table.get("url")]))[:16]


def kept(listed: Sequence[Listed], table: Mapping[str, Any]) -> str:
    """The stored form of a list."""
    return json.dumps({"of": fingerprint(table), "tools": [asdict(one) for one in listed]}, ensure_ascii=False)


def known(stored: str | None, table: Mapping[str, Any]) -> tuple[Listed, ...] | None:
    """A stored list; None where there is none of this server."""
    try:
        found = json.loads(stored or "null")
        if found is None or found["of"] != fingerprint(table):
            return None
        return tuple(Listed(**one) for one in found["tools"])
    except (ValueError, KeyError, TypeError):  # of another release: it is listed anew
        return None


def op_name(server: str, tool: str) -> str:
    """`github` and `list-prs` are the op `github_list_prs`."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", f"{server}_{tool}").strip("_")
    return cleaned if not cleaned[:1].isdigit() else f"_{cleaned}"


def tools_of(
    server: str, table: Mapping[str, Any], listed: Sequence[Listed], speaker: McpServer | None
) -> tuple[Tool, ...]:
    """The tools of a server: its claims, then what the settings say of all of them, then of those that a pattern of
    `declare` names. Raises Clash where two are one op."""
    found: dict[str, Tool] = {}
    for one in listed:
        name = op_name(server, one.name)
        if name in found:
            raise Clash(
                f"[tools.{server}] lists `{found[name].remote}` and `{one.name}`: both would be the op `{name}`"
            )
        declared = _declared(table, one)
        spec = tool_spec(
            name,
            schema=one.input,
            output=one.output,
            summary=declared.get("summary") or one.summary or None,
            read_only=bool(declared.get("read_only")),
            idempotent=bool(declared.get("idempotent")),
            destructive=declared.get("destructive"),
            timeout_s=float(declared.get("timeout", 60)),
        )
        found[name] = Tool(spec=spec, server=speaker, remote=one.name, source=f"the MCP server `{server}`")
    return tuple(found.values())


def _declared(table: Mapping[str, Any], one: Listed) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if table.get("trust_annotations", True):
        claims = {"read_only": one.read_only, "idempotent": one.idempotent, "destructive": one.destructive}
        said = {key: claim for key, claim in claims.items() if claim is not None}
    said |= {key: table[key] for key in DECLARED if key in table and key != "summary"}
    for pattern, more in table.get("declare", {}).items():
        if fnmatch.fnmatchcase(one.name, pattern):
            said |= more
    return said


def summary(title: str | None, description: str | None) -> str:
    """A tool's summary in a line, of what its server says."""
    said = next((line.strip() for line in (description or title or "").splitlines() if line.strip()), "")
    return said if len(said) <= LONGEST_SUMMARY else said[: LONGEST_SUMMARY - 1] + "…"
