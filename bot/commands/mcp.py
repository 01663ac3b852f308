"""An MCP server for Claude and other agents."""

from __future__ import annotations

import click

from bot.commands.frame import acting, go


@click.command()
@acting
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Over HTTP, for tokens.")
@click.option(
    "--may-answer",
    type=click.Choice(["asks"]),
    help="What is put to the person may be answered by their agent too; approvals and doubts never.",
)
def mcp(as_: str | None, port: int | None, may_answer: str | None) -> None:
    """Lets Claude and other agents run plans here, for one person: over standard input, or HTTP at /mcp."""
    import importlib.util

    from bot.domain.errors import Misconfigured

    if importlib.util.find_spec("mcp") is None:
        raise Misconfigured("what speaks MCP is not installed; install it with `uv tool install 'waiton[mcp]'`")
    from bot.mcp.serving import serve

    go(serve(as_, port, may_answer_asks=may_answer == "asks"))


COMMANDS = (mcp,)
