"""The few places where SQLite and PostgreSQL differ, and how rows' values are stored."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)
BUSY_MS = 10_000
"""How long a writer on SQLite waits for another process's."""


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
        f"busy_timeout={BUSY_MS}",
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
        self._sqlite: str | None = None
        self._postgres: str | None = None

    def text(self, tx: Transaction) -> str:
        """The statement for the driver; what stands in it itself is written out."""
        known = self._sqlite if tx.sqlite else self._postgres
        if known is None:
            build = self._build
            if not isinstance(build, sa.sql.ClauseElement):
                build = build(_insert(tx.sqlite))
            done = build.compile(dialect=tx.dialect, compile_kwargs={"render_postcompile": True})
            known = _written_out(str(done), done.params or {}, tx.sqlite)
            if tx.sqlite:
                self._sqlite = known
            else:
                self._postgres = known
        return known

    def run(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> Any:
        """Runs it; gives the driver's cursor."""
        tx.write_gathered()
        return tx.cursor.execute(self.text(tx), params or {})

    def all(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        tx.write_gathered()
        return tx.cursor.execute(self.text(tx), params or {}).fetchall()

    def one(self, tx: Transaction, params: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
        tx.write_gathered()
        return tx.cursor.execute(self.text(tx), params or {}).fetchone()

    def many(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes rows of one run, whose outcome is no matter: where the transaction gathers, not before it must."""
        if tx.gathers:
            tx.gather(self, rows)
        else:
            self.write(tx, rows)

    def write(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Runs it for each of the rows, now."""
        if len(rows) == 1:
            tx.cursor.execute(self.text(tx), rows[0])
        elif rows:
            tx.cursor.executemany(self.text(tx), rows)


def _insert(on_sqlite: bool) -> Any:
    """The dialect's own `insert`; the other dialect is not imported for it."""
    if on_sqlite:
        from sqlalchemy.dialects.sqlite import insert

        return insert
    from sqlalchemy.dialects.postgresql import insert as insert_postgres

    return insert_postgres


def _written_out(text: str, values: Mapping[str, Any], on_sqlite: bool) -> str:
    """The text with the values that the statement itself holds as literals: our own constants, never data."""
    for name, value in values.items():
        if value is None:
            continue
        literal = str(int(value)) if isinstance(value, (bool, int)) else "'" + str(value).replace("'", "''") + "'"
        pattern = rf":{re.escape(name)}\b" if on_sqlite else rf"%\({re.escape(name)}\)s"
        text = re.sub(pattern, lambda _, found=literal: found if on_sqlite else found.replace("%", "%%"), text)
    return text


class Shared:
    """What a process remembers of texts that many rows share: by hash, the latest ones. A cache: nothing is lost with
    it, and a text under its hash is never another."""

    MOST = 2048

    def __init__(self) -> None:
        self.texts: OrderedDict[str, str] = OrderedDict()
        self.met: OrderedDict[str, None] = OrderedDict()

    def keep(self, key: str, text: str) -> None:
        self.texts[key] = text
        if len(self.texts) > self.MOST:
            self.texts.popitem(last=False)

    def meet(self, key: str) -> bool:
        """Whether a text was met before."""
        before = key in self.met
        self.met[key] = None
        if len(self.met) > self.MOST:
            self.met.popitem(last=False)
        return before


class Transaction:
    """One open transaction: the driver's cursor, the dialect, the workspace; the numbers of the runs it has met.

    Facts of one run often share a transaction, so what one wrote the next need not read: `known` holds rows as they
    stand (by table, run and path), `late` what is written once before the commit, however often it changed. Facts of
    many runs that come together are read together (`ahead`, by the run's number: its ops and regions as they stood,
    until somebody takes or changes them) and written together (`gathers`)."""

    __slots__ = (
        "_connection", "_gathered", "_reached", "ahead", "cursor", "dialect", "gathers", "known", "late", "runs",
        "shared", "sqlite", "ws",
    )  # fmt: skip

    def __init__(self, connection: sa.Connection, ws: int, shared: Shared) -> None:
        self._connection = connection
        self.dialect = connection.dialect
        self.sqlite = self.dialect.name == "sqlite"
        self.cursor: Any = connection.connection.cursor()
        self.ws = ws
        self.shared = shared
        self.runs: dict[str, int] = {}
        self.known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.late: dict[int, tuple[Statement, Mapping[str, Any]]] = {}
        self.ahead: dict[int, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {}
        self.gathers = False
        self._gathered: list[tuple[Statement, list[Mapping[str, Any]]]] = []
        self._reached: dict[int, int] = {}

    @property
    def connection(self) -> sa.Connection:
        """For what is not run by a `Statement`: it finds what was gathered."""
        self.write_gathered()
        return self._connection

    @property
    def locks(self) -> bool:
        """Rows must be locked one by one (SQLite has one writer anyway)."""
        return not self.sqlite

    def gather(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keeps rows until somebody reads, or the commit: what is written of one run keeps its order, and runs of
        which the same is written share a statement."""
        for row in rows:
            run = row.get("run", 0)
            at = self._reached.get(run, 0)
            while at < len(self._gathered) and self._gathered[at][0] is not statement:
                at += 1
            if at == len(self._gathered):
                self._gathered.append((statement, []))
            self._gathered[at][1].append(row)
            self._reached[run] = at

    def write_gathered(self) -> None:
        """Writes what was gathered."""
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._reached.clear()
            for statement, rows in gathered:
                statement.write(self, rows)

    def flush(self) -> None:
        """Writes what is late: before the commit, and before whatever reads it by other ways."""
        self.write_gathered()
        late: dict[Statement, list[Mapping[str, Any]]] = {}
        for statement, params in self.late.values():
            late.setdefault(statement, []).append(params)
        self.late.clear()
        for statement, rows in late.items():
            statement.write(self, rows)

    def savepoint(self, name: str = "fact") -> None:
        self.flush()
        self.cursor.execute(f"savepoint {name}")

    def release(self, name: str = "fact") -> None:
        self.flush()
        self.cursor.execute(f"release savepoint {name}")

    def rollback_to(self, name: str = "fact") -> None:
        # What was written since is not so: a run that was added has no number any more.
        self.runs.clear()
        self.known.clear()
        self.late.clear()
        self.ahead.clear()
        self._gathered.clear()
        self._reached.clear()
        self.cursor.execute(f"rollback to savepoint {name}")
        self.cursor.execute(f"release savepoint {name}")


def b(name: str) -> sa.BindParameter[Any]:
    """A named parameter of a statement."""
    return sa.bindparam(name)


PAGE = 100
"""Keys that one statement looks up together."""


def among(column: Any) -> Any:
    """Whether a column has one of a page of keys."""
    return column.in_([b(f"key{n}") for n in range(PAGE)])


def pages(keys: Sequence[Any], none: Any) -> Iterator[dict[str, Any]]:
    """Keys as the parameters of statements that look `among` them. `none`: what no row has, to fill the last page."""
    for at in range(0, len(keys), PAGE):
        page = [*keys[at : at + PAGE], *[none] * (at + PAGE - len(keys))]
        yield {f"key{n}": key for n, key in enumerate(page)}
