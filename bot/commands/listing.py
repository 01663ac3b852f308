"""What is there, listed: jobs, events, roles, approvals, the inbox, tools."""

from __future__ import annotations

import sys

import click

from bot.commands.frame import acting, as_json, go, print_json
from bot.exits import SURROUNDINGS


@click.command()
@as_json
def jobs(as_json: bool) -> None:
    """The conversations in which scripts run, the newest first."""
    from bot.listings import list_jobs

    go(list_jobs(as_json))


@click.command()
@click.option("--stream", help="Only those of one stream.")
@as_json
def events(stream: str | None, as_json: bool) -> None:
    """What has arrived, the newest first."""
    from bot.listings import list_events

    go(list_events(stream, as_json))


@click.command()
@as_json
def roles(as_json: bool) -> None:
    """The roles and who holds them."""
    from bot.listings import list_roles

    go(list_roles(as_json))


@click.command()
@as_json
def approvals(as_json: bool) -> None:
    """What waits to be approved, oldest first."""
    from bot.listings import list_approvals

    go(list_approvals(as_json))


@click.command()
@acting
@as_json
def inbox(as_: str | None, as_json: bool) -> None:
    """What waits on you, oldest first."""
    from bot.listings import list_inbox

    go(list_inbox(as_, as_json))


@click.command()
@click.argument("verb", required=False, type=click.Choice(["refresh"]))
@as_json
def tools(verb: str | None, as_json: bool) -> None:
    """The tools that scripts can call, where each is from, what it declares; `tools refresh` asks MCP servers anew."""
    from bot.config import load
    from bot.offline import tools_of

    known = tools_of(load(), anew=verb == "refresh")
    found = [
        {
            "name": t.spec.name,
            "summary": t.spec.summary,
            "from": t.source or None,
            "read_only": t.spec.read_only,
            "idempotent": t.spec.idempotent,
            "destructive": t.spec.destructive,
            "input": t.spec.schema,
            "output": t.spec.output,
        }
        for t in known.tools.values()
    ]
    if as_json:
        print_json(found)
    for tool in found if not as_json else []:
        marks = [m for m in ("read_only", "idempotent", "destructive") if tool[m]]
        marks += ["harmless"] if tool["destructive"] is False and not tool["read_only"] else []
        says = (tool["summary"], f"from {tool['from']}" if tool["from"] else None, " ".join(marks))
        print(f"{tool['name']:<24} {' · '.join(str(part) for part in says if part)}")
    away = [server for server in known.servers if server.fault is not None]
    for server in away:
        print(f"waiton: {server.fault}", file=sys.stderr)
    if away and verb == "refresh":
        raise SystemExit(SURROUNDINGS)


COMMANDS = (
    jobs,
    events,
    roles,
    approvals,
    inbox,
    tools,
)
