"""The command line. What it needs is imported where it is used, so that `check` and `rehearse` start at once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bot.domain.errors import Misconfigured, WaitonError
from bot.exits import FINE, REFUSED, SURROUNDINGS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Runs scripts in team chat: asks people, waits for evidence, keeps the plan and the record as one list.",
)
people_app = typer.Typer(no_args_is_help=False, help="Who is here.")
token_app = typer.Typer(help="Bearer tokens of the API.")
db_app = typer.Typer(help="The database.")
app.add_typer(people_app, name="people")
app.add_typer(token_app, name="token")
app.add_typer(db_app, name="db")

File = Annotated[str, typer.Argument(help="A file, or - for standard input.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
As = Annotated[str | None, typer.Option("--as", help="Act as this person (an email; default: the first).")]


def main() -> None:
    """Runs a command; faults of the user or the surroundings are one line and the mend, never a traceback."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except Misconfigured as fault:
        _fail(str(fault), debug, SURROUNDINGS)
    except WaitonError as fault:
        _fail(str(fault), debug, REFUSED)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as fault:
        if debug:
            raise
        _fail(f"{_said(fault)}\nrun it again with --debug to see where", debug, SURROUNDINGS)


def _said(fault: Exception) -> str:
    if isinstance(fault, FileNotFoundError):
        return f"{fault.filename} is not there"
    return f"{type(fault).__name__}: {fault}"


def _fail(text: str, debug: bool, code: int) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    print(f"waiton: {text}", file=sys.stderr)
    raise SystemExit(code)


def _text(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        raise WaitonError(f"{file} is not there; give the path of a script, or - for standard input")
    return path.read_bytes()


def _print(found: Any) -> None:
    print(json.dumps(found, ensure_ascii=False, indent=1, default=str))


# --- scripts --------------------------------------------------------------------------------------------------------
@app.command()
def check(file: File, as_json: Json = False) -> None:
    """Says every problem of a script, or its pre-flight card. Nothing starts."""
    from bot.offline import surroundings

    catalog, world = surroundings()
    from bot.language.script import examine

    seen = examine(_text(file), catalog, world, starting=False)
    if as_json:
        from bot.rehearse.lines import timed

        _print(
            {"refused": seen.reports()}
            if seen.refused
            else {"preflight": timed(dict(seen.preflight), world), "notes": [note.message for note in seen.notes]}
        )
    elif seen.refused:
        print(seen.rendered(), file=sys.stderr)
    else:
        from bot.rehearse.lines import preflight_card

        print(preflight_card(seen, world))
    raise SystemExit(REFUSED if seen.refused else FINE)


@app.command()
def show(
    target: Annotated[str, typer.Argument(help="A script's file, - or a run's id.")],
    as_: Annotated[str, typer.Option("--as", help="markdown, json, card or mermaid")] = "",
) -> None:
    """Prints a script from either surface as the other, or a run as it stands."""
    if target != "-" and not Path(target).exists():
        from bot.terminal import show_run

        raise SystemExit(asyncio.run(show_run(target, as_ or "card")))
    from bot.offline import surroundings

    catalog, world = surroundings()
    from bot.language.read import read

    got = read(_text(target), catalog)
    if got.plan is None or got.problems:
        print(got.source.render(got.problems), file=sys.stderr)
        raise SystemExit(REFUSED)
    from bot.rehearse.lines import printed

    print(printed(got, as_ or ("json" if got.surface == "markdown" else "markdown"), catalog, world))


@app.command()
def rehearse(
    file: File,
    scenario: Annotated[Path | None, typer.Option(help="What the world does, as YAML.")] = None,
    as_json: Json = False,
    branches: Annotated[bool, typer.Option("--branches", help="Walk every branch, one line an outcome.")] = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="List what the scenario did not reach.")] = False,
) -> None:
    """Runs a script in virtual time, with the world of a scenario. Nothing is sent."""
    from bot.rehearse.rehearse import covered, walked
    from bot.rehearse.rehearse import rehearse as play
    from bot.rehearse.scenario import WrongScenario, load

    try:
        told = load(scenario.read_text(encoding="utf-8") if scenario else "")
    except (OSError, UnicodeDecodeError) as fault:
        raise WrongScenario(f"{scenario} does not read: {fault}") from None
    text = _text(file)
    if branches:
        code, found = asyncio.run(walked(text, told))
    elif coverage:
        code, found = asyncio.run(covered(text, told))
    else:
        code, found = asyncio.run(play(text, told))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        from bot.rehearse.lines import rehearsed

        print(rehearsed(found), file=sys.stderr if code == REFUSED else sys.stdout)
    raise SystemExit(code)


@app.command()
def run(
    file: File,
    given: Annotated[list[str] | None, typer.Option("--input", help="An input, as name=value.")] = None,
    as_: As = None,
    detach: Annotated[bool, typer.Option("--detach", help="Hand it to the server and return.")] = False,
) -> None:
    """Runs a script here: asks put to you are asked at the prompt. Ctrl-C leaves it waiting."""
    from bot.terminal import run_here

    inputs: dict[str, Any] = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WaitonError(f"`--input {pair}` is no name=value")
        inputs[name] = _value(value)
    raise SystemExit(asyncio.run(run_here(_text(file), inputs, as_, detach=detach)))


@app.command()
def resume(run_id: Annotated[str, typer.Argument(metavar="RUN")], as_: As = None) -> None:
    """Goes on with a run at this terminal."""
    from bot.terminal import resume_here

    raise SystemExit(asyncio.run(resume_here(run_id, as_)))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- what is there --------------------------------------------------------------------------------------------------
@app.command()
def runs(
    verb: Annotated[str | None, typer.Argument(help="cancel, pause, resume or retry")] = None,
    run_id: Annotated[str | None, typer.Argument(metavar="RUN")] = None,
    state: Annotated[str | None, typer.Option(help="waiting, paused, done, failed, cancelled")] = None,
    as_: As = None,
    why: Annotated[str | None, typer.Option(help="The reason, for the record.")] = None,
    as_json: Json = False,
) -> None:
    """Lists runs, the newest first; `runs cancel RUN` and the like act on one."""
    from bot import terminal

    if verb is not None:
        if verb not in ("cancel", "pause", "resume", "retry") or run_id is None:
            raise WaitonError("write `waiton runs cancel RUN` (or pause, resume, retry)")
        raise SystemExit(asyncio.run(terminal.edit_run(run_id, {"run": verb}, as_, why)))
    raise SystemExit(asyncio.run(terminal.list_runs(state, as_json)))


@app.command()
def inbox(as_: As = None, as_json: Json = False) -> None:
    """What waits on you, oldest first."""
    from bot.terminal import list_inbox

    raise SystemExit(asyncio.run(list_inbox(as_, as_json)))


@app.command()
def answer(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    op: Annotated[str, typer.Argument(help="The ask's id or path.")],
    value: Annotated[str, typer.Argument(help="A choice, a text, or a form as JSON.")],
    reason: Annotated[str | None, typer.Option(help="A comment with the answer.")] = None,
    as_: As = None,
) -> None:
    """Answers an ask, an approval or a doubt."""
    from bot.terminal import answer_run

    given = _value(value) if value.startswith("{") else value
    raise SystemExit(asyncio.run(answer_run(run_id, op, given, reason, as_)))


@app.command()
def tools(as_json: Json = False) -> None:
    """The tools that scripts can call."""
    from bot.offline import surroundings

    catalog, _ = surroundings()
    found = [
        {"name": s.name, "summary": s.summary, "read_only": s.read_only, "idempotent": s.idempotent, "input": s.schema}
        for s in catalog.ops.values()
        if s.tool
    ]
    if as_json:
        _print(found)
    for tool in found if not as_json else []:
        marks = " ".join(m for m in ("read_only", "idempotent") if tool[m])
        print(f"{tool['name']:<24} {tool['summary']} {marks}".rstrip())


@people_app.callback(invoke_without_command=True)
def list_people(context: typer.Context, as_json: Json = False) -> None:
    """Lists the people; sub-verbs change them."""
    if context.invoked_subcommand is None:
        from bot.terminal import list_people as listed

        raise SystemExit(asyncio.run(listed(as_json)))


@people_app.command("add")
def add_person(
    email: str,
    name: Annotated[str | None, typer.Option()] = None,
    timezone: Annotated[str | None, typer.Option()] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role they hold.")] = None,
) -> None:
    """Adds a person, or changes their name, zone and roles."""
    from bot.terminal import add_person as added

    raise SystemExit(asyncio.run(added(email, name, timezone, role or [])))


@people_app.command("remove")
def remove_person(email: str) -> None:
    """Removes a person; what they did stays on record."""
    from bot.terminal import remove_person as removed

    raise SystemExit(asyncio.run(removed(email)))


@app.command()
def login(email: str) -> None:
    """Prints a link that logs this person in: once, within 15 minutes."""
    from bot.terminal import login_link

    raise SystemExit(asyncio.run(login_link(email)))


@token_app.command("create")
def create_token(
    email: str,
    name: Annotated[str | None, typer.Option()] = None,
    days: Annotated[int | None, typer.Option(help="It ends after so many days.")] = None,
) -> None:
    """Makes a bearer token for the API; it is shown once, alone on the last line."""
    from bot.terminal import make_token

    raise SystemExit(asyncio.run(make_token(email, name, days)))


# --- operations -----------------------------------------------------------------------------------------------------
@app.command()
def serve(
    demo: Annotated[
        bool, typer.Option("--demo", help="Write the example workspace's settings if there are none.")
    ] = False,
    role: Annotated[str, typer.Option(help="web, worker or all")] = "all",
) -> None:
    """Runs the web room and the workers in one process. The same as `waiton` alone."""
    from bot.server.serve import serve as run_server

    if role not in ("web", "worker", "all"):
        raise WaitonError(f"there is no role `{role}`; write web, worker or all")
    raise SystemExit(run_server(demo=demo, role=role))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Checks settings, database, files, sandbox and clock, and says what to do about each fault."""
    from bot.doctor import examine_all

    raise SystemExit(asyncio.run(examine_all(as_json)))


@db_app.command("upgrade")
def upgrade_db() -> None:
    """Brings the database to this release's tables."""
    from bot.config import load
    from store.transaction import upgrade

    settings = load()
    upgrade(settings.database)
    print("the database has this release's tables")


@db_app.command("check")
def check_db() -> None:
    """Says whether the database has this release's tables."""
    from bot.config import load
    from store.transaction import check as checked

    found = checked(load().database)
    if found is not None:
        _fail(f"the database has {found}; run `waiton db upgrade`", False, SURROUNDINGS)
    print("the database has this release's tables")


@app.callback(invoke_without_command=True)
def alone(context: typer.Context) -> None:
    """With no command: the server."""
    if context.invoked_subcommand is None:
        serve(demo=False, role="all")


if __name__ == "__main__":
    main()
