"""The database: one plain function is one transaction. Nothing in here awaits anything."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from bot.domain.errors import Misconfigured
from store.dialect import BUSY_MS, Shared, Transaction, engine_for

T = TypeVar("T")


class Busy(Exception):
    """Somebody else writes: this would have to wait."""


class Database:
    """An engine and its transactions. `write(f, …)` runs `f(tx, …)` and commits; an exception rolls back.

    On SQLite writers take turns in this process by a lock, before the file's own."""

    def __init__(self, url: str, *, ws: int = 1) -> None:
        self.url = url
        self.ws = ws
        self.engine: sa.Engine = engine_for(url)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self.memory = self.sqlite and self.engine.url.database in (None, "", ":memory:")
        self._writer = threading.RLock()
        self._held: sa.Connection | None = None
        """The writer's connection on SQLite: taken from the pool once, not at every commit."""
        self._patience_ms = BUSY_MS
        self._shared = Shared()
        self._reads = self.engine.execution_options(sqlite_begin="deferred")

    def write(self, f: Callable[..., T], *args: Any) -> T:
        if not self.sqlite:
            with self.engine.begin() as connection:
                return self._run(connection, f, args)
        with self._writer:
            connection = self._writes(BUSY_MS)
            with connection.begin():
                return self._run(connection, f, args)

    def write_at_once(self, f: Callable[..., T], *args: Any) -> T:
        """Writes where nobody else does, on SQLite; raises Busy, with nothing done, where it would have to wait."""
        if not self.sqlite or not self._writer.acquire(blocking=False):
            raise Busy
        try:
            connection = self._writes(0)
            try:
                begun = connection.begin()
            except (DBAPIError, sqlite3.OperationalError) as fault:
                raise Busy from fault
            with begun:
                return self._run(connection, f, args)
        finally:
            self._writer.release()

    def _writes(self, patience_ms: int) -> sa.Connection:
        """The writer's connection, which waits so long for other processes."""
        connection = self._held
        if connection is None or connection.closed or connection.invalidated:
            connection = self._held = self.engine.connect()
            self._patience_ms = BUSY_MS
        if patience_ms != self._patience_ms:
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.execute(f"pragma busy_timeout={patience_ms}")
            self._patience_ms = patience_ms
        return connection

    def _run(self, connection: sa.Connection, f: Callable[..., T], args: tuple[Any, ...]) -> T:
        tx = Transaction(connection, self.ws, self._shared)
        found = f(tx, *args)
        tx.flush()
        return found

    def read(self, f: Callable[..., T], *args: Any) -> T:
        if self.memory:
            return self.write(f, *args)
        with self._reads.begin() as connection:
            return f(Transaction(connection, self.ws, self._shared), *args)

    def close(self) -> None:
        with self._writer:
            if self._held is not None:
                self._held.close()
                self._held = None
        self.engine.dispose()

    def create(self) -> None:
        """Makes the tables of a database in memory; files and servers are brought up by `upgrade`."""
        self.write(lambda tx: [tx.cursor.execute(text) for text in _tables()])


@cache
def _tables() -> tuple[str, ...]:
    """What makes the tables and indexes on SQLite: written once a process, for a rehearsal of every branch makes them
    over and over."""
    from sqlalchemy.dialects import sqlite

    from store.tables import metadata

    made = [
        change
        for table in metadata.sorted_tables
        for change in (
            sa.schema.CreateTable(table),
            *(sa.schema.CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name))),
        )
    ]
    dialect = sqlite.dialect()
    return tuple(str(change.compile(dialect=dialect)) for change in made)


def upgrade(url: str) -> None:
    """Brings a database to this release's tables (alembic's head). Raises Misconfigured where it is of a newer one, or
    of a state that no release ever had."""
    standing = _standing(url)
    if standing == newest():
        return
    if standing is not None and standing > newest():
        raise Misconfigured(
            f"the database is of a newer release ({standing}; this one has {newest()}); install that release, "
            "or set WAITON_DATABASE_URL to another database"
        )
    if standing is not None and standing not in _revisions():
        raise Misconfigured(
            f"the database was made before the first release ({standing}), and its tables were changed since; "
            "set it aside, or set WAITON_DATABASE_URL to another database"
        )
    from alembic import command

    _make_folder(url)
    command.upgrade(alembic_config(url), "head")


def _revisions() -> list[str]:
    """What migrations are numbered here: a file's name begins with its revision."""
    files = (Path(__file__).parent / "migrations/versions").glob("[0-9]*.py")
    return sorted(file.stem.partition("_")[0] for file in files)


def newest() -> str:
    """This release's revision."""
    return _revisions()[-1]


def _standing(url: str) -> str | None:
    """What a database says it has, without alembic, which is slow to load; None where it says nothing."""
    database = sa.make_url(url).database
    if url.startswith("sqlite") and not (database and Path(database).is_file()):
        return None
    engine = engine_for(url)
    try:
        with engine.execution_options(sqlite_begin="deferred").connect() as connection:
            return connection.execute(sa.text("select version_num from alembic_version")).scalar()
    except DBAPIError:
        return None
    finally:
        engine.dispose()


def check(url: str) -> str | None:
    """None where the database has this release's tables, else what it has."""
    database = sa.make_url(url).database
    if url.startswith("sqlite") and not (database and Path(database).is_file()):
        return "no tables"
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            here = MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()
    head = ScriptDirectory.from_config(alembic_config(url)).get_current_head()
    return None if here == head else (here or "no tables")


def alembic_config(url: str) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    config.attributes["url"] = url
    return config


def _make_folder(url: str) -> None:
    database = sa.make_url(url).database
    if url.startswith("sqlite") and database and database != ":memory:":
        Path(database).parent.mkdir(parents=True, exist_ok=True)
