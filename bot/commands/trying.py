"""Scripts before they run: examples, check, show, rehearse. They start at once, without the database."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from bot.commands.frame import as_json, go, print_json, text_of
from bot.domain.errors import WaitonError
from bot.exits import FINE, REFUSED


@click.command()
@click.argument("name", required=False)
@click.option("--scenario", is_flag=True, help="The scenario that the example is rehearsed with.")
@as_json
def examples(name: str | None, scenario: bool, as_json: bool) -> None:
    """Prints a whole script to begin with, or says which there are."""
    from bot import examples as found

    if name is None:
        if as_json:
            print_json([{"name": one, "title": found.title(one)} for one in found.NAMES])
            return
        for one in found.NAMES:
            print(f"{one:<12} {found.title(one)}")
        print("\nwaiton examples NAME > NAME.md prints one; with --scenario what to rehearse it with")
        return
    text = found.script(name)
    if text is None:
        from bot.language.problems import did_you_mean, nearest

        raise WaitonError(
            f"there is no example `{name}`; {did_you_mean(nearest(name, found.NAMES)) or 'see `waiton examples`'}"
        )
    print(found.scenario(name) if scenario else text, end="")


@click.command()
@click.argument("file")
@as_json
def check(file: str, as_json: bool) -> None:
    """Says every problem of a script, or its pre-flight card. Nothing starts. FILE may be - for standard input."""
    from bot.language.script import examine
    from bot.offline import surroundings
    from bot.rehearse.lines import flight_of, preflight_card

    catalog, world = surroundings()
    seen = examine(text_of(file), catalog, world, starting=False)
    if as_json:
        right = {"preflight": flight_of(seen, world), "notes": [note.message for note in seen.notes]}
        print_json({"refused": seen.reports()} if seen.refused else right)
    elif seen.refused:
        print(seen.rendered(), file=sys.stderr)
    else:
        print(preflight_card(seen, world))
    raise SystemExit(REFUSED if seen.refused else FINE)


@click.command()
@click.argument("target", metavar="FILE|RUN")
@click.option("--as", "as_", type=click.Choice(["markdown", "json", "card", "mermaid"]), help="How it is printed.")
def show(target: str, as_: str | None) -> None:
    """Prints a script from either surface as the other, or a run as it stands."""
    if target != "-" and not Path(target).exists():
        from bot.terminal import show_run

        go(show_run(target, as_ or "card"))
    from bot.offline import read_script
    from bot.rehearse.lines import printed

    got, catalog, world = read_script(text_of(target))
    if got.plan is None or got.problems:
        print(got.source.render(got.problems), file=sys.stderr)
        raise SystemExit(REFUSED)
    print(printed(got, as_ or ("json" if got.surface == "markdown" else "markdown"), catalog, world))


@click.command()
@click.argument("file")
@click.option("--scenario", metavar="FILE", help="What the world does, as YAML.")
@as_json
@click.option("--branches", is_flag=True, help="Walk every branch, one line an outcome.")
@click.option("--coverage", is_flag=True, help="List what the scenario did not reach.")
def rehearse(file: str, scenario: str | None, as_json: bool, branches: bool, coverage: bool) -> None:
    """Runs a script in virtual time, with the world of a scenario. Nothing is sent."""
    import asyncio
    import gc

    gc.disable()  # what is imported stays: the collector would walk over it again and again
    from bot.rehearse.rehearse import covered, walked
    from bot.rehearse.rehearse import rehearse as play
    from bot.rehearse.scenario import WrongScenario, load

    gc.freeze()
    gc.enable()
    try:
        told = load(Path(scenario).read_text(encoding="utf-8") if scenario else "")
    except (OSError, UnicodeDecodeError) as fault:
        raise WrongScenario(f"{scenario} does not read: {fault}") from None
    if scenario is None:
        from bot.offline import surroundings
        from bot.rehearse.scenario import of_workspace

        catalog, world = surroundings()
        told = of_workspace(told, world, [spec for spec in catalog.ops.values() if spec.tool])
    how = walked if branches else covered if coverage else play
    code, found = asyncio.run(how(text_of(file), told))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        from bot.rehearse.lines import rehearsed

        print(rehearsed(found), file=sys.stderr if code == REFUSED else sys.stdout)
    raise SystemExit(code)


COMMANDS = (
    examples,
    check,
    show,
    rehearse,
)
