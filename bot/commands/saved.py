"""Saved scripts: `waiton scripts` and its sub-verbs."""

from __future__ import annotations

import click

from bot.commands.frame import acting, as_json, go, inputs_of, text_of


@click.group(invoke_without_command=True)
@click.pass_context
@click.option("--search", default="", metavar="WORDS", help="Only those with these words.")
@as_json
def scripts(context: click.Context, search: str, as_json: bool) -> None:
    """Lists the saved scripts: what starts each, when next, its last run; sub-verbs act on one."""
    if context.invoked_subcommand is None:
        from bot.scripts import list_scripts

        go(list_scripts(search, as_json))


@scripts.command("save")
@click.argument("file")
@click.option("--name", help="What it is saved under, whatever it says itself.")
@click.option("--job", metavar="JOB", help="Where it runs when no conversation starts it (default: this terminal's).")
@acting
def save_script(file: str, name: str | None, job: str | None, as_: str | None) -> None:
    """Saves a script as the next version of its name, and arms what starts it. FILE may be - for standard input."""
    from bot.scripts import save

    go(save(text_of(file), name, job, as_))


@scripts.command("show")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1))
@click.option("--as", "as_", type=click.Choice(["markdown", "json"]), help="Only the script, on this surface.")
def show_script(name: str, version: int | None, as_: str | None) -> None:
    """How a saved script stands, and its text as it was saved."""
    from bot.scripts import show as shown

    go(shown(name, version, as_))


@scripts.command("diff")
@click.argument("name")
@click.argument("old", metavar="[A]", required=False, type=click.IntRange(min=1))
@click.argument("new", metavar="[B]", required=False, type=click.IntRange(min=1))
def diff_script(name: str, old: int | None, new: int | None) -> None:
    """What changed between versions A and B; without them, what the current version changed."""
    from bot.scripts import diff

    go(diff(name, old, new))


@scripts.command("rollback")
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1))
@acting
def rollback_script(name: str, version: int, as_: str | None) -> None:
    """Saves an old version again, as the next one."""
    from bot.scripts import rollback

    go(rollback(name, version, as_))


@scripts.command("pause")
@click.argument("name")
@acting
def pause_script(name: str, as_: str | None) -> None:
    """Disarms what starts a script; people still can."""
    from bot.scripts import pause

    go(pause(name, True, as_))


@scripts.command("resume")
@click.argument("name")
@acting
def resume_script(name: str, as_: str | None) -> None:
    """Arms again what starts a script; what was missed meanwhile is not made up for."""
    from bot.scripts import pause

    go(pause(name, False, as_))


@scripts.command("run")
@click.argument("name")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE", help="An input of the script.")
@click.option("--job", metavar="JOB", help="The job it runs in (default: this terminal's).")
@acting
@click.option("--detach", is_flag=True, help="Hand it to the server and return.")
def run_script(name: str, given: tuple[str, ...], job: str | None, as_: str | None, detach: bool) -> None:
    """Starts the current version of a saved script here."""
    from bot.scripts import run as run_saved

    go(run_saved(name, inputs_of(given), job, as_, detach=detach))


COMMANDS = (scripts,)
