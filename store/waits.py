"""Armed expectations, due times and minted endpoints."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.changes import Endpoint, Timer, Wait
from store import runs
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import endpoint, run, timer, wait

WINDOW = "window"
"""The commonest kind of due time: nothing stands for it in a row."""

_SET = Statement(
    lambda insert: (
        insert(timer)
        .values({c.name: b(c.name) for c in timer.c})
        .on_conflict_do_update(index_elements=["ws", "run", "path", "kind"], set_={"due": b("due")})
    )
)
_DROP = Statement(
    sa.delete(timer).where(
        timer.c.ws == b("ws"), timer.c.run == b("run"), timer.c.path == b("path"), timer.c.kind == b("kind")
    )
)
_DROP_ALL = Statement(sa.delete(timer).where(timer.c.ws == b("ws"), timer.c.run == b("run"), timer.c.path == b("path")))
_ARM = Statement(lambda insert: insert(wait).values({c.name: b(c.name) for c in wait.c}).on_conflict_do_nothing())
_DISARM = Statement(sa.delete(wait).where(wait.c.ws == b("ws"), wait.c.run == b("run"), wait.c.path == b("path")))
_DUE = Statement(
    sa.select(run.c.id, timer.c.path, timer.c.kind, timer.c.due, timer.c.run)
    .join(run, run.c.seq == timer.c.run)
    .where(timer.c.due <= b("now"))
    .order_by(timer.c.due, timer.c.run, timer.c.path)
    .limit(b("most"))
)
_NEXT = Statement(sa.select(sa.func.min(timer.c.due)))
_ARMED = sa.select(run.c.id, wait.c.path).join(run, run.c.seq == wait.c.run)
_WAITING = Statement(
    _ARMED.where(
        wait.c.ws == b("ws"), wait.c.stream == b("stream"), sa.or_(wait.c.key == b("a"), wait.c.key == b("z"))
    ).union_all(_ARMED.where(wait.c.ws == b("ws"), wait.c.stream == b("stream"), wait.c.key.is_(None)))
)
_MINT = Statement(
    lambda insert: insert(endpoint).values({c.name: b(c.name) for c in endpoint.c}).on_conflict_do_nothing()
)
_ENDPOINT = Statement(
    sa.select(run.c.id, endpoint.c.path, endpoint.c.until, endpoint.c.called)
    .join(run, run.c.seq == endpoint.c.run)
    .where(endpoint.c.ws == b("ws"), endpoint.c.token == b("token"))
)
_CALLED = Statement(
    sa.update(endpoint)
    .where(endpoint.c.ws == b("ws"), endpoint.c.token == b("token_"), endpoint.c.called.is_(None))
    .values(called=b("at"))
)


def put(
    tx: Transaction,
    run_id: str,
    timers: list[Timer],
    waits: list[Wait],
    disarmed: list[str],
    endpoints: list[Endpoint],
    expecting: Collection[str] | None = None,
) -> None:
    """Writes a step's timers, waits and endpoints; what was disarmed first, so that arming again holds.
    `expecting`: those of the disarmed that can have an armed expectation; None: any."""
    mine = {"ws": tx.ws, "run": runs.key(tx, run_id)}
    for path in dict.fromkeys(disarmed):
        if expecting is None or path in expecting:
            _DISARM.many(tx, [{**mine, "path": path}])
        _DROP_ALL.many(tx, [{**mine, "path": path}])
    for change in timers:
        if change.due is None:
            _DROP.many(tx, [{**mine, "path": change.path, "kind": _stored(change.kind)}])
        else:
            _SET.many(tx, [{**mine, "path": change.path, "kind": _stored(change.kind), "due": micros(change.due)}])
    for armed in waits:
        _ARM.run(
            tx,
            {
                **mine,
                "path": armed.path,
                "stream": armed.stream,
                "key": armed.key,
                "since": micros(armed.since),
                "where": armed.where,
            },
        )
    for minted in endpoints:
        _MINT.run(
            tx, {**mine, "token": minted.token, "path": minted.path, "until": micros(minted.until), "called": None}
        )


def due(tx: Transaction, now: datetime, most: int = 100) -> list[tuple[str, str, str, datetime]]:
    """What is due by now, oldest first: (run, path, kind, due)."""
    found = _DUE.all(tx, {"now": micros(now), "most": most})
    return [(g[0], g[1], g[2] or WINDOW, _at(g[3])) for g in found]


def next_due(tx: Transaction) -> datetime | None:
    got = _NEXT.one(tx)
    return instant(got[0]) if got else None


def waiting_for(tx: Transaction, stream: str, sender: str | None, conversation: str | None) -> list[tuple[str, str]]:
    """(run, path) of every expectation that an event of this sender or conversation could settle."""
    found = _WAITING.all(tx, {"ws": tx.ws, "stream": stream, "a": sender, "z": conversation})
    return list(dict.fromkeys((g[0], g[1]) for g in found))


def get_endpoint(tx: Transaction, token: str) -> dict[str, Any] | None:
    got = _ENDPOINT.one(tx, {"ws": tx.ws, "token": token})
    return {"run": got[0], "path": got[1], "until": instant(got[2]), "called": instant(got[3])} if got else None


def call_endpoint(tx: Transaction, token: str, at: datetime) -> bool:
    """Marks a minted address as called; False if it was before."""
    return _CALLED.run(tx, {"ws": tx.ws, "token_": token, "at": micros(at)}).rowcount == 1


def of_run(tx: Transaction, run_id: str) -> list[dict[str, Any]]:
    query = sa.select(timer.c.path, timer.c.kind, timer.c.due).where(
        timer.c.ws == tx.ws, timer.c.run == runs.key(tx, run_id)
    )
    return [{"path": g[0], "kind": g[1] or WINDOW, "due": instant(g[2])} for g in tx.connection.execute(query)]


def silent_streams(tx: Transaction) -> list[str]:
    """Streams that something waits on, in runs that have not ended."""
    query = sa.select(wait.c.stream).join(run, run.c.seq == wait.c.run).distinct()
    return [g[0] for g in tx.connection.execute(query)]


def _stored(kind: str) -> str:
    return "" if kind == WINDOW else kind


def _at(stored: int) -> datetime:
    at = instant(stored)
    assert at is not None
    return at
