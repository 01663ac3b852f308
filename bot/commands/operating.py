"""What operators do: serve, doctor, a job's record exported and verified, the database."""

from __future__ import annotations

import click

from bot.commands.frame import as_json, go
from bot.domain.errors import Misconfigured


@click.command()
@click.option("--demo", is_flag=True, help="Write the example workspace's settings if there are none.")
@click.option("--role", type=click.Choice(["web", "worker", "all"]), default="all", show_default=True)
def serve(demo: bool, role: str) -> None:
    """Runs the web room and the workers in one process. The same as `waiton` alone."""
    from bot.chat.chat import attached
    from bot.server.serve import serve as run_server

    raise SystemExit(run_server(demo=demo, role=role, attach=attached))


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Checks settings, database, files, sandbox and clock, and says what to do about each fault."""
    from bot.doctor import examine_all

    go(examine_all(as_json))


@click.command()
@click.argument("job")
def export(job: str) -> None:
    """A job's record as JSON lines: who did what, when and why."""
    from bot.listings import export as exported

    go(exported(job))


@click.command()
@click.argument("job")
@as_json
def verify(job: str, as_json: bool) -> None:
    """Whether a job's record is whole: each entry carries the hash of the one before it."""
    from bot.listings import verify as verified

    go(verified(job, as_json))


@click.group()
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
        raise Misconfigured(f"the database has {found}; run `waiton db upgrade`")
    print("the database has this release's tables")


COMMANDS = (
    serve,
    doctor,
    export,
    verify,
    db,
)
