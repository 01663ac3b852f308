"""The command line. What a command needs is imported where it is used, so that `check` and `rehearse` start at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from bot.domain.errors import Misconfigured, WaitonError
from bot.exits import FINE, REFUSED, SURROUNDINGS

F = TypeVar("F", bound=Callable[..., Any])


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


def _go(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Runs a command's work and ends with its status."""
    import asyncio

    raise SystemExit(asyncio.run(work))


def _text(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if path.is_dir():
        raise WaitonError(f"{file} is a folder; give the path of a script")
    if not path.is_file():
        raise WaitonError(f"{file} is not there; give the path of a script, or - for standard input")
    return path.read_bytes()


def _print(found: Any) -> None:
    print(json.dumps(found, ensure_ascii=False, indent=1, default=str))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object.")(command)


def acting(command: F) -> F:
    return click.option("--as", "as_", metavar="EMAIL", help="Act as this person (default: the first).")(command)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def app(context: click.Context) -> None:
    """Runs scripts in team chat: asks people, waits for evidence, keeps the plan and the record as one list.

    With no command it serves."""
    if context.invoked_subcommand is None:
        context.invoke(serve, demo=False, role="all")


# --- scripts --------------------------------------------------------------------------------------------------------
@app.command()
@click.argument("name", required=False)
@click.option("--scenario", is_flag=True, help="The scenario that the example is rehearsed with.")
@as_json
def examples(name: str | None, scenario: bool, as_json: bool) -> None:
    """Prints a whole script to begin with, or says which there are."""
    from bot import examples as found

    if name is None:
        if as_json:
            _print([{"name": one, "title": found.title(one)} for one in found.NAMES])
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


@app.command()
@click.argument("file")
@as_json
def check(file: str, as_json: bool) -> None:
    """Says every problem of a script, or its pre-flight card. Nothing starts. FILE may be - for standard input."""
    from bot.language.script import examine
    from bot.offline import surroundings
    from bot.rehearse.lines import flight_of, preflight_card

    catalog, world = surroundings()
    seen = examine(_text(file), catalog, world, starting=False)
    if as_json:
        right = {"preflight": flight_of(seen, world), "notes": [note.message for note in seen.notes]}
        _print({"refused": seen.reports()} if seen.refused else right)
    elif seen.refused:
        print(seen.rendered(), file=sys.stderr)
    else:
        print(preflight_card(seen, world))
    raise SystemExit(REFUSED if seen.refused else FINE)


@app.command()
@click.argument("target", metavar="FILE|RUN")
@click.option("--as", "as_", type=click.Choice(["markdown", "json", "card", "mermaid"]), help="How it is printed.")
def show(target: str, as_: str | None) -> None:
    """Prints a script from either surface as the other, or a run as it stands."""
    if target != "-" and not Path(target).exists():
        from bot.terminal import show_run

        _go(show_run(target, as_ or "card"))
    from bot.offline import read_script
    from bot.rehearse.lines import printed

    got, catalog, world = read_script(_text(target))
    if got.plan is None or got.problems:
        print(got.source.render(got.problems), file=sys.stderr)
        raise SystemExit(REFUSED)
    print(printed(got, as_ or ("json" if got.surface == "markdown" else "markdown"), catalog, world))


@app.command()
@click.argument("file")
@click.option("--scenario", metavar="FILE", help="What the world does, as YAML.")
@as_json
@click.option("--branches", is_flag=True, help="Walk every branch, one line an outcome.")
@click.option("--coverage", is_flag=True, help="List what the scenario did not reach.")
def rehearse(file: str, scenario: str | None, as_json: bool, branches: bool, coverage: bool) -> None:
    """Runs a script in virtual time, with the world of a scenario. Nothing is sent."""
    import asyncio

    from bot.rehearse.rehearse import covered, walked
    from bot.rehearse.rehearse import rehearse as play
    from bot.rehearse.scenario import WrongScenario, load

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
    code, found = asyncio.run(how(_text(file), told))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        from bot.rehearse.lines import rehearsed

        print(rehearsed(found), file=sys.stderr if code == REFUSED else sys.stdout)
    raise SystemExit(code)


@app.command()
@click.argument("file")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE", help="An input of the script.")
@acting
@click.option("--detach", is_flag=True, help="Hand it to the server and return.")
def run(file: str, given: tuple[str, ...], as_: str | None, detach: bool) -> None:
    """Runs a script here: asks put to you are asked at the prompt. Ctrl-C leaves it waiting."""
    from bot.terminal import run_here

    _go(run_here(_text(file), _inputs(given), as_, detach=detach))


def _inputs(given: tuple[str, ...]) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise WaitonError(f"`--input {pair}` is no name=value")
        inputs[name] = _value(value)
    return inputs


@app.command()
@click.argument("run_id", metavar="RUN")
@acting
def resume(run_id: str, as_: str | None) -> None:
    """Goes on with a run at this terminal."""
    from bot.terminal import resume_here

    _go(resume_here(run_id, as_))


# --- what is there --------------------------------------------------------------------------------------------------
@app.command()
@click.argument("verb", required=False, type=click.Choice(["cancel", "pause", "resume", "retry", "save"]))
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--name", help="What `runs save RUN` saves the run's script under.")
@click.option("--state", type=click.Choice(["waiting", "paused", "done", "failed", "cancelled"]))
@acting
@click.option("--why", help="The reason, for the record.")
@as_json
def runs(
    verb: str | None,
    run_id: str | None,
    name: str | None,
    state: str | None,
    as_: str | None,
    why: str | None,
    as_json: bool,
) -> None:
    """Lists runs, the newest first; `runs cancel RUN` and the like act on one, `runs save RUN --name NAME` saves its
    script."""
    if verb == "save":
        if run_id is None or not name:
            raise WaitonError("write `waiton runs save RUN --name NAME`")
        from bot.scripts import save_run

        _go(save_run(run_id, name, as_))
    if verb is not None:
        if run_id is None:
            raise WaitonError(f"write `waiton runs {verb} RUN`")
        from bot.terminal import edit_run

        _go(edit_run(run_id, {"run": verb}, as_, why))
    from bot.listings import list_runs

    _go(list_runs(state, as_json))


@app.command()
@as_json
def jobs(as_json: bool) -> None:
    """The conversations in which scripts run, the newest first."""
    from bot.listings import list_jobs

    _go(list_jobs(as_json))


@app.command()
@click.option("--stream", help="Only those of one stream.")
@as_json
def events(stream: str | None, as_json: bool) -> None:
    """What has arrived, the newest first."""
    from bot.listings import list_events

    _go(list_events(stream, as_json))


@app.group(invoke_without_command=True)
@click.pass_context
@click.option("--search", default="", metavar="WORDS", help="Only those with these words.")
@as_json
def scripts(context: click.Context, search: str, as_json: bool) -> None:
    """Lists the saved scripts: what starts each, when next, its last run; sub-verbs act on one."""
    if context.invoked_subcommand is None:
        from bot.scripts import list_scripts

        _go(list_scripts(search, as_json))


@scripts.command("save")
@click.argument("file")
@click.option("--name", help="What it is saved under, whatever it says itself.")
@click.option("--job", metavar="JOB", help="Where it runs when no conversation starts it (default: this terminal's).")
@acting
def save_script(file: str, name: str | None, job: str | None, as_: str | None) -> None:
    """Saves a script as the next version of its name, and arms what starts it. FILE may be - for standard input."""
    from bot.scripts import save

    _go(save(_text(file), name, job, as_))


@scripts.command("show")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1))
@click.option("--as", "as_", type=click.Choice(["markdown", "json"]), help="Only the script, on this surface.")
def show_script(name: str, version: int | None, as_: str | None) -> None:
    """How a saved script stands, and its text as it was saved."""
    from bot.scripts import show as shown

    _go(shown(name, version, as_))


@scripts.command("diff")
@click.argument("name")
@click.argument("old", metavar="[A]", required=False, type=click.IntRange(min=1))
@click.argument("new", metavar="[B]", required=False, type=click.IntRange(min=1))
def diff_script(name: str, old: int | None, new: int | None) -> None:
    """What changed between versions A and B; without them, what the current version changed."""
    from bot.scripts import diff

    _go(diff(name, old, new))


@scripts.command("rollback")
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1))
@acting
def rollback_script(name: str, version: int, as_: str | None) -> None:
    """Saves an old version again, as the next one."""
    from bot.scripts import rollback

    _go(rollback(name, version, as_))


@scripts.command("pause")
@click.argument("name")
@acting
def pause_script(name: str, as_: str | None) -> None:
    """Disarms what starts a script; people still can."""
    from bot.scripts import pause

    _go(pause(name, True, as_))


@scripts.command("resume")
@click.argument("name")
@acting
def resume_script(name: str, as_: str | None) -> None:
    """Arms again what starts a script; what was missed meanwhile is not made up for."""
    from bot.scripts import pause

    _go(pause(name, False, as_))


@scripts.command("run")
@click.argument("name")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE", help="An input of the script.")
@click.option("--job", metavar="JOB", help="The job it runs in (default: this terminal's).")
@acting
@click.option("--detach", is_flag=True, help="Hand it to the server and return.")
def run_script(name: str, given: tuple[str, ...], job: str | None, as_: str | None, detach: bool) -> None:
    """Starts the current version of a saved script here."""
    from bot.scripts import run as run_saved

    _go(run_saved(name, _inputs(given), job, as_, detach=detach))


@app.command()
@as_json
def roles(as_json: bool) -> None:
    """The roles and who holds them."""
    from bot.listings import list_roles

    _go(list_roles(as_json))


@app.command()
@as_json
def approvals(as_json: bool) -> None:
    """What waits to be approved, oldest first."""
    from bot.listings import list_approvals

    _go(list_approvals(as_json))


@app.command()
@acting
@as_json
def inbox(as_: str | None, as_json: bool) -> None:
    """What waits on you, oldest first."""
    from bot.listings import list_inbox

    _go(list_inbox(as_, as_json))


@app.command()
@click.argument("run_id", metavar="RUN")
@click.argument("op")
@click.argument("value")
@click.option("--reason", help="A comment with the answer.")
@acting
def answer(run_id: str, op: str, value: str, reason: str | None, as_: str | None) -> None:
    """Answers an ask, an approval or a doubt. OP is an id or a path; VALUE a choice, a text, or a form as JSON."""
    from bot.terminal import answer_run

    _go(answer_run(run_id, op, _value(value) if value.startswith("{") else value, reason, as_))


@app.command()
@click.argument("run_id", metavar="RUN")
@click.argument("op", required=False)
@click.argument("change", metavar="[KEY=VALUE]", required=False)
@click.option("--to", help="Hand it over: a person, role:NAME.")
@click.option("--within", help="Another window, from its own start: 3d.")
@click.option("--until", help="Another deadline: 'Fri 17:00'.")
@click.option("--skip", is_flag=True, help="Leave it out.")
@click.option("--withdraw", is_flag=True, help="Take the question back; what needs it is skipped.")
@click.option("--remove", is_flag=True, help="Take it out of the plan.")
@click.option("--replace", metavar="FILE|-", help="Another op in its place.")
@click.option("--insert", metavar="FILE|-", help="Ops below it.")
@click.option("--accept", is_flag=True, help="Let the late answer count.")
@click.option("--cancel", "run_edit", flag_value="cancel", help="The run: cancel it.")
@click.option("--pause", "run_edit", flag_value="pause", help="The run: start nothing more for now.")
@click.option("--resume", "run_edit", flag_value="resume", help="The run: go on.")
@click.option("--retry", "run_edit", flag_value="retry", help="The run: again from where it failed.")
@click.option("--why", help="The reason, for the record.")
@click.option("--rev", type=int, help="The revision that you saw: an op that has moved on refuses.")
@click.option("--preview", is_flag=True, help="Show what it would do; nothing changes.")
@acting
@as_json
def edit(
    run_id: str,
    op: str | None,
    change: str | None,
    run_edit: str | None,
    why: str | None,
    rev: int | None,
    preview: bool,
    as_: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Edits what is pending: `edit RUN scope --to bo@acme.de`, `edit RUN scope --insert ops.md`, `edit RUN --pause`.

    OP is an id or a path; `scope to=bo@acme.de` does the same."""
    from bot.terminal import edit_run

    wanted = {key: value for key, value in given.items() if value}
    if change is not None:
        key, equals, value = change.partition("=")
        if not equals:
            raise WaitonError(f"`{change}` is no key=value, such as `to=bo@acme.de` or `skip=true`")
        wanted[key] = _value(value)
    for key in ("insert", "replace"):
        if isinstance(given.get(key), str):
            wanted[key] = _text(given[key]).decode("utf-8", "replace")
    if run_edit is not None:
        wanted["run"] = run_edit
    if len(wanted) != 1 or (op is None and run_edit is None):
        raise WaitonError("write one edit, such as `waiton edit RUN OP --to bo@acme.de` or `waiton edit RUN --pause`")
    named = {} if run_edit is not None else {"after" if "insert" in wanted else "op": op}
    _go(edit_run(run_id, {**named, **wanted}, as_, why, rev=rev, preview=preview, as_json=as_json))


@app.command()
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
        _print(found)
    for tool in found if not as_json else []:
        marks = " ".join(m for m in ("read_only", "idempotent") if tool[m])
        print(f"{tool['name']:<24} {tool['summary']} {marks}".rstrip())


@app.group(invoke_without_command=True)
@click.pass_context
@as_json
def people(context: click.Context, as_json: bool) -> None:
    """Lists the people; sub-verbs change them."""
    if context.invoked_subcommand is None:
        from bot.listings import list_people

        _go(list_people(as_json))


@people.command("add")
@click.argument("email")
@click.option("--name")
@click.option("--timezone")
@click.option("--role", multiple=True, help="A role they hold.")
def add_person(email: str, name: str | None, timezone: str | None, role: tuple[str, ...]) -> None:
    """Adds a person, or changes their name, zone and roles."""
    from bot.terminal import add_person as added

    _go(added(email, name, timezone, list(role)))


@people.command("remove")
@click.argument("email")
def remove_person(email: str) -> None:
    """Removes a person; what they did stays on record."""
    from bot.terminal import remove_person as removed

    _go(removed(email))


@app.command()
@click.argument("email")
def login(email: str) -> None:
    """Prints a link that logs this person in: once, within 15 minutes."""
    from bot.terminal import login_link

    _go(login_link(email))


@app.group()
def token() -> None:
    """Bearer tokens of the API."""


@token.command("create")
@click.argument("email")
@click.option("--name")
@click.option("--days", type=click.IntRange(min=1), help="It ends after so many days.")
def create_token(email: str, name: str | None, days: int | None) -> None:
    """Makes a bearer token for the API; it is shown once, alone on the last line."""
    from bot.terminal import make_token

    _go(make_token(email, name, days))


# --- operations -----------------------------------------------------------------------------------------------------
@app.command()
@click.option("--demo", is_flag=True, help="Write the example workspace's settings if there are none.")
@click.option("--role", type=click.Choice(["web", "worker", "all"]), default="all", show_default=True)
def serve(demo: bool, role: str) -> None:
    """Runs the web room and the workers in one process. The same as `waiton` alone."""
    from bot.server.serve import serve as run_server

    raise SystemExit(run_server(demo=demo, role=role))


@app.command()
@as_json
def doctor(as_json: bool) -> None:
    """Checks settings, database, files, sandbox and clock, and says what to do about each fault."""
    from bot.doctor import examine_all

    _go(examine_all(as_json))


@app.command()
@click.argument("job")
def export(job: str) -> None:
    """A job's record as JSON lines: who did what, when and why."""
    from bot.listings import export as exported

    _go(exported(job))


@app.command()
@click.argument("job")
@as_json
def verify(job: str, as_json: bool) -> None:
    """Whether a job's record is whole: each entry carries the hash of the one before it."""
    from bot.listings import verify as verified

    _go(verified(job, as_json))


@app.group()
def db() -> None:
    """The database."""


@db.command("upgrade")
def upgrade_db() -> None:
    """Brings the database to this release's tables."""
    from bot.config import load
    from store.transaction import upgrade

    upgrade(load().database)
    print("the database has this release's tables")


@db.command("check")
def check_db() -> None:
    """Says whether the database has this release's tables."""
    from bot.config import load
    from store.transaction import check as checked

    found = checked(load().database)
    if found is not None:
        _fail(f"the database has {found}; run `waiton db upgrade`", False, SURROUNDINGS)
    print("the database has this release's tables")


if __name__ == "__main__":
    main()
