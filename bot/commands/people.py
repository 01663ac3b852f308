"""People, and how they get in: `waiton people`, login links, tokens."""

from __future__ import annotations

import click

from bot.commands.frame import as_json, go


@click.group(invoke_without_command=True)
@click.pass_context
@as_json
def people(context: click.Context, as_json: bool) -> None:
    """Lists the people; sub-verbs change them."""
    if context.invoked_subcommand is None:
        from bot.listings import list_people

        go(list_people(as_json))


@people.command("add")
@click.argument("email")
@click.option("--name")
@click.option("--timezone")
@click.option("--role", multiple=True, help="A role they hold.")
def add_person(email: str, name: str | None, timezone: str | None, role: tuple[str, ...]) -> None:
    """Adds a person, or changes their name, zone and roles."""
    from bot.terminal import add_person as added

    go(added(email, name, timezone, list(role)))


@people.command("remove")
@click.argument("email")
def remove_person(email: str) -> None:
    """Removes a person; what they did stays on record."""
    from bot.terminal import remove_person as removed

    go(removed(email))


CHANNEL = click.Choice(["slack", "telegram", "line"])


@people.command("link")
@click.argument("email")
@click.argument("channel", type=CHANNEL)
@click.argument("ref", required=False)
def link_person(email: str, channel: str, ref: str | None) -> None:
    """Says who they are on a platform: by its id of them (REF), or by words that they send to the bot there, once."""
    from bot.identities import link

    go(link(email, channel, ref))


@people.command("prefer")
@click.argument("email")
@click.argument("channel", type=click.Choice(["slack", "telegram", "line", "web", "none"]))
def prefer_channel(email: str, channel: str) -> None:
    """Where their cards go; `none`: wherever they are."""
    from bot.identities import prefer

    go(prefer(email, channel))


@click.command()
@click.argument("email")
def login(email: str) -> None:
    """Prints a link that logs this person in: once, within 15 minutes."""
    from bot.terminal import login_link

    go(login_link(email))


@click.group()
def token() -> None:
    """Bearer tokens of the API."""


@token.command("create")
@click.argument("email")
@click.option("--name")
@click.option("--days", type=click.IntRange(min=1), help="It ends after so many days.")
def create_token(email: str, name: str | None, days: int | None) -> None:
    """Makes a bearer token for the API; it is shown once, alone on the last line."""
    from bot.terminal import make_token

    go(make_token(email, name, days))


COMMANDS = (
    people,
    login,
    token,
)
