"""Runs: started and gone on with at this terminal, listed, answered, edited."""

from __future__ import annotations

from typing import Any

import click

from bot.commands.frame import acting, as_json, go, inputs_of, text_of, value_of
from bot.domain.errors import WaitonError


@click.command()
@click.argument("file")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE", help="An input of the script.")
@acting
@click.option("--detach", is_flag=True, help="Hand it to the server and return.")
def run(file: str, given: tuple[str, ...], as_: str | None, detach: bool) -> None:
    """Runs a script here: asks put to you are asked at the prompt. Ctrl-C leaves it waiting."""
    from bot.terminal import run_here

    go(run_here(text_of(file), inputs_of(given), as_, detach=detach))


@click.command()
@click.argument("run_id", metavar="RUN")
@acting
def resume(run_id: str, as_: str | None) -> None:
    """Goes on with a run at this terminal."""
    from bot.terminal import resume_here

    go(resume_here(run_id, as_))


@click.command()
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

        go(save_run(run_id, name, as_))
    if verb is not None:
        if run_id is None:
            raise WaitonError(f"write `waiton runs {verb} RUN`")
        from bot.terminal import edit_run

        go(edit_run(run_id, {"run": verb}, as_, why))
    from bot.listings import list_runs

    go(list_runs(state, as_json))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("op")
@click.argument("value")
@click.option("--reason", help="A comment with the answer.")
@acting
def answer(run_id: str, op: str, value: str, reason: str | None, as_: str | None) -> None:
    """Answers an ask, an approval or a doubt. OP is an id or a path; VALUE a choice, a text, or a form as JSON."""
    from bot.terminal import answer_run

    go(answer_run(run_id, op, value_of(value) if value.startswith("{") else value, reason, as_))


@click.command()
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
        wanted[key] = value_of(value)
    for key in ("insert", "replace"):
        if isinstance(given.get(key), str):
            wanted[key] = text_of(given[key]).decode("utf-8", "replace")
    if run_edit is not None:
        wanted["run"] = run_edit
    if len(wanted) != 1 or (op is None and run_edit is None):
        raise WaitonError("write one edit, such as `waiton edit RUN OP --to bo@acme.de` or `waiton edit RUN --pause`")
    named = {} if run_edit is not None else {"after" if "insert" in wanted else "op": op}
    go(edit_run(run_id, {**named, **wanted}, as_, why, rev=rev, preview=preview, as_json=as_json))


COMMANDS = (
    run,
    resume,
    runs,
    answer,
    edit,
)
