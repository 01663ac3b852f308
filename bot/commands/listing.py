"""What is there, listed: jobs, events, roles, approvals, the inbox, tools."""

from __future__ import annotations

import click

from bot.commands.frame import acting, as_json, go, print_json


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
@as_json
def tools(as_json: bool) -> None:
    """The tools that scripts can call."""
    from bot.offline import surroundings

    catalog, _ = surroundings()
    found = [
        {
            "name": s.name,
            "summary": s.summary,
            "read_only": s.read_only,
            "idempotent": s.idempotent,
            "input": s.schema,
        }
        for s in catalog.ops.values()
        if s.tool
    ]
    if as_json:
        print_json(found)
    for tool in found if not as_json else []:
        marks = " ".join(m for m in ("read_only", "idempotent") if tool[m])
        print(f"{tool['name']:<24} {tool['summary']} {marks}".rstrip())


COMMANDS = (
    jobs,
    events,
    roles,
    approvals,
    inbox,
    tools,
)
