"""The few places where SQLite and PostgreSQL differ, and how rows' values are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def micros(at: datetime | None) -> int | None:
    """An aware instant as microseconds since 1970 UTC."""
    return None if at is None else (at - EPOCH) // MICRO


def instant(stored: int | None) -> datetime | None:
    return None if stored is None else EPOCH + timedelta(microseconds=stored)


def engine_for(url: str, *, readers: int = 4) -> sa.Engine:
    """An engine whose transactions hold: SQLite begins them itself and at once (a read that becomes a write would
    fail or lose an update otherwise), PostgreSQL as it is."""
    if url.startswith("sqlite"):
        memory = ":memory:" in url or url in ("sqlite://", "sqlite:///")
        engine = sa.create_engine(
            url,
            paramstyle="named",
            **(
                {"poolclass": sa.StaticPool, "connect_args": {"check_same_thread": False}}
                if memory
                else {"pool_size": readers + 1, "max_overflow": 4, "connect_args": {"check_same_thread": False}}
            ),
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return sa.create_engine(url, pool_size=readers + 1, max_overflow=8, pool_pre_ping=True)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=wal",
        "synchronous=full",
        "busy_timeout=10000",
        "foreign_keys=on",
        "cache_size=-65536",
        "temp_store=memory",
    ):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "immediate")
    connection.connection.driver_connection.execute(f"begin {mode}")  # type: ignore[union-attr]


class Statement:
    """A statement bound at module level: written with SQLAlchemy, compiled once a dialect, run by the driver.

    `build` gives the statement, or takes the dialect's `insert` where the two differ (`on_conflict`)."""

    def __init__(self, build: sa.sql.ClauseElement | Callable[[Any], sa.sql.ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}

    def compiled(self, dialect: sa.Dialect) -> tuple[str, dict[str, Any]]:
        """The text for the driver, and the values that stand in the statement itself."""
        known = self._compiled.get(dialect.name)
        if known is None:
            build = self._build
            if not isinstance(build, sa.sql.ClauseElement):
                build = build(sqlite.insert if dialect.name == "sqlite" else postgresql.insert)
            done = build.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            fixed = {name: value for name, value in (done.params or {}).items() if value is not None}
            known = self._compiled[dialect.name] = (str(done), fixed)
        return known

    def run(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> Any:
        """Runs it; gives the driver's cursor."""
        text, fixed = self.compiled(tx.dialect)
        return tx.cursor.execute(text, {**fixed, **(params or {})} if fixed else params or {})

    def all(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self.run(tx, params).fetchall()

    def one(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
        return self.run(tx, params).fetchone()

    def many(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) == 1:
            self.run(tx, rows[0])
        elif rows:
            text, fixed = self.compiled(tx.dialect)
            tx.cursor.executemany(text, [{**fixed, **row} for row in rows] if fixed else rows)


class Transaction:
    """One open transaction: the driver's cursor, the dialect, the workspace."""

    __slots__ = ("connection", "cursor", "dialect", "ws")

    def __init__(self, connection: sa.Connection, ws: int) -> None:
        self.connection = connection
        self.dialect = connection.dialect
        self.cursor: Any = connection.connection.cursor()
        self.ws = ws

    @property
    def locks(self) -> bool:
        """Rows must be locked one by one (SQLite has one writer anyway)."""
        return self.dialect.name != "sqlite"

    def savepoint(self, name: str = "fact") -> None:
        self.cursor.execute(f"savepoint {name}")

    def release(self, name: str = "fact") -> None:
        self.cursor.execute(f"release savepoint {name}")

    def rollback_to(self, name: str = "fact") -> None:
        self.cursor.execute(f"rollback to savepoint {name}")
        self.cursor.execute(f"release savepoint {name}")


def b(name: str) -> sa.BindParameter[Any]:
    """A named parameter of a statement."""
    return sa.bindparam(name)
