"""The command line: its commands joined, and how faults end it. What a command needs is imported where it is used, so
that `check` and `rehearse` start at once."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from bot.commands import listing, mcp, operating, people, running, saved, trying
from bot.domain.errors import Misconfigured, WaitonError
from bot.exits import REFUSED, SURROUNDINGS


def main() -> None:
    """Runs a command; faults of the user or the surroundings are one line and the mend, never a traceback."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app(standalone_mode=False)
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except click.ClickException as fault:
        _fail(fault.format_message(), debug, REFUSED)
    except Misconfigured as fault:
        _fail(str(fault), debug, SURROUNDINGS)
    except WaitonError as fault:
        _fail(str(fault), debug, REFUSED)
    except (KeyboardInterrupt, click.Abort):
        raise SystemExit(130) from None
    except Exception as fault:
        if debug:
            raise
        _fail(_said(fault), debug, SURROUNDINGS)


def _said(fault: Exception) -> str:
    """A fault in a line, and what to do about it."""
    if isinstance(fault, FileNotFoundError):
        return f"{fault.filename} is not there"
    if type(fault).__module__.startswith("sqlalchemy"):
        why = (str(fault).splitlines() or [""])[0].partition(") ")[2] or type(fault).__name__
        return f"the database does not answer: {why}\nstart it, or set WAITON_DATABASE_URL; `waiton doctor` says more"
    return f"{type(fault).__name__}: {' '.join(str(fault).split())}\nrun it again with --debug to see where"


def _fail(text: str, debug: bool, code: int) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    print(f"waiton: {text}", file=sys.stderr)
    raise SystemExit(code)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def app(context: click.Context) -> None:
    """Runs scripts in team chat: asks people, waits for evidence, keeps the plan and the record as one list.

    With no command it serves."""
    if context.invoked_subcommand is None:
        context.invoke(operating.serve, demo=False, role="all")


for _subject in (trying, running, saved, listing, people, operating, mcp):
    for _command in _subject.COMMANDS:
        app.add_command(_command)

if __name__ == "__main__":
    main()
