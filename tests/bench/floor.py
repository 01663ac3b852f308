"""The limits: the same rows written by the driver alone, on SQLite with WAL and `synchronous=FULL`, in the same run.

S: the settle transaction, one a commit: run locked (begin immediate), op done, wait gone, next op, history, delivery.
C: one durable commit of one small row.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path


def _opened(path: Path) -> sqlite3.Connection:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=wal", "synchronous=full", "cache_size=-65536"):
        connection.execute(f"pragma {pragma}")
    return connection


def commit_s(folder: Path, count: int = 1000) -> float:
    """C: seconds of one durable commit."""
    connection = _opened(folder / "commit.db")
    connection.execute("create table fact (id integer primary key, body text)")
    start = time.perf_counter()
    for n in range(count):
        connection.execute("begin immediate")
        connection.execute("insert into fact values (?, 'answered')", (n,))
        connection.execute("commit")
    took = time.perf_counter() - start
    connection.close()
    return took / count


def settle_rate(folder: Path, count: int = 2000) -> float:
    """S: settles a second by the driver alone."""
    connection = _opened(folder / "floor.db")
    connection.executescript(
        """
        create table run (id integer primary key, rev int, state text);
        create table op (run int, path text, state text, value text, ended int, primary key (run, path)) without rowid;
        create table wait (run int, path text, due int, primary key (run, path)) without rowid;
        create table history (run int, n int, at int, what text, data text, primary key (run, n)) without rowid;
        create table delivery (seq integer primary key, run int, path text, card text, state text);
        """
    )
    connection.execute("begin")
    for n in range(count):
        connection.execute("insert into run values (?, 0, 'running')", (n,))
        connection.execute("insert into op values (?, '1', 'waiting', null, null)", (n,))
        connection.execute("insert into op values (?, '2', 'planned', null, null)", (n,))
        connection.execute("insert into wait values (?, '1', 99)", (n,))
    connection.execute("commit")
    start = time.perf_counter()
    for n in range(count):
        connection.execute("begin immediate")
        connection.execute("select rev, state from run where id = ?", (n,)).fetchone()
        connection.execute(
            "update op set state = 'done', value = '\"approve\"', ended = 7 where run = ? and path = '1'", (n,)
        )
        connection.execute("delete from wait where run = ? and path = '1'", (n,))
        connection.execute("update op set state = 'done', ended = 7 where run = ? and path = '2'", (n,))
        connection.execute(
            'insert into history values (?, 1, 7, \'answered\', \'{"by":"ana@acme.de","answer":"approve"}\')', (n,)
        )
        connection.execute(
            "insert into delivery (run, path, card, state) values (?, '2', '{\"text\":\"approve\"}', 'queued')", (n,)
        )
        connection.execute("update run set rev = rev + 1 where id = ?", (n,))
        connection.execute("commit")
    took = time.perf_counter() - start
    connection.close()
    return count / took
