"""The history: append only, each entry with the hash of the one before it in its own."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from bot.domain.changes import Bound, Entry
from bot.domain.record import RunRow
from bot.domain.values import dump, dumped, errors_in, load, size_of, type_of
from store import runs, values
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import binding, history

_ADD = Statement(sa.insert(history).values({c.name: b(c.name) for c in history.c}))
_OF_RUN = Statement(
    sa.select(history.c.n, history.c.at, history.c.what, history.c.path, history.c.by, history.c.data, history.c.hash)
    .where(history.c.ws == b("ws"), history.c.run == b("run"))
    .order_by(history.c.n)
)
_BIND = Statement(
    lambda insert: (
        insert(binding)
        .values({c.name: b(c.name) for c in binding.c})
        .on_conflict_do_update(
            index_elements=["ws", "job", "name"],
            set_={n: b(n) for n in ("value", "type", "size", "errors", "at", "run")},
        )
    )
)
_BINDINGS = Statement(
    sa.select(binding.c.name, binding.c.value, binding.c.type, binding.c.size, binding.c.errors, binding.c.at)
    .where(binding.c.ws == b("ws"), binding.c.job == b("job"))
    .order_by(binding.c.at, binding.c.name)
)
_HELD = Statement(
    sa.select(binding.c.name, binding.c.type, binding.c.size, binding.c.errors)
    .where(binding.c.ws == b("ws"), binding.c.job == b("job"))
    .order_by(binding.c.at, binding.c.name)
)


def append(tx: Transaction, run: RunRow, entries: list[Entry]) -> None:
    """Adds entries to a run's history and moves its head (`run.n`, `run.hash`; the caller writes the run)."""
    rows: list[dict[str, Any]] = []
    number = runs.key(tx, run.id)
    for entry in entries:
        run.n += 1
        data = dump(dict(entry.data)) if entry.data else None
        at = micros(entry.at)
        run.hash = chained(run.hash, run.id, run.n, at, entry.what, entry.path, entry.by, data)
        rows.append(
            {
                "ws": tx.ws,
                "run": number,
                "n": run.n,
                "at": at,
                "what": entry.what,
                "path": entry.path or None,
                "by": entry.by,
                "data": data,
                "hash": bytes.fromhex(run.hash),
            }
        )
    _ADD.many(tx, rows)


def chained(
    before: str, run_id: str, n: int, at: int | None, what: str, path: str | None, by: str | None, data: str | None
) -> str:
    """An entry's hash over everything it says and the hash before it."""
    said = dumped([before, run_id, n, at, what, path or None, by, data])
    return hashlib.sha256(said).hexdigest()[:32]


def of_run(tx: Transaction, run_id: str) -> list[dict[str, Any]]:
    return [
        {
            "n": g[0],
            "at": instant(g[1]),
            "what": g[2],
            "path": g[3] or "",
            "by": g[4],
            "data": load(g[5]) if g[5] else {},
            "hash": g[6].hex(),
        }
        for g in _OF_RUN.all(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)})
    ]


def verify(tx: Transaction, run_id: str) -> int | None:
    """The number of the first entry whose hash does not hold, None where all do."""
    before = ""
    for g in _OF_RUN.all(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)}):
        before = chained(before, run_id, g[0], g[1], g[2], g[3], g[4], g[5])
        if before != g[6].hex():
            return int(g[0])
    return None


def bind(tx: Transaction, job: str, run_id: str, bound: list[Bound]) -> None:
    """The job's names; the latest to settle wins."""
    for one in bound:
        _BIND.run(
            tx,
            {
                "ws": tx.ws,
                "job": job,
                "name": one.name,
                "value": values.put(tx, one.value),
                "type": type_of(one.value),
                "size": size_of(one.value),
                "errors": errors_in(one.value),
                "at": micros(one.at),
                "run": runs.key(tx, run_id),
            },
        )


def bindings(tx: Transaction, job: str) -> dict[str, Any]:
    """The job's names with their values."""
    return {g[0]: values.get(tx, g[1]) for g in _BINDINGS.all(tx, {"ws": tx.ws, "job": job})}


def held(tx: Transaction, job: str) -> list[dict[str, Any]]:
    """The job's names: name, type, size, errors; never the values."""
    return [
        {"name": g[0], "type": g[1], "size": g[2], "errors": g[3]} for g in _HELD.all(tx, {"ws": tx.ws, "job": job})
    ]
