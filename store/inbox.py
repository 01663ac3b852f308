"""Events as they arrive: stored once by the sender's id, routed later."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.changes import Taken
from bot.domain.values import dump
from store import runs
from store.dialect import Statement, Transaction, b, instant, micros
from store.ops import event_of
from store.tables import event, taken

_ADD = Statement(
    lambda insert: (
        insert(event).values({c.name: b(c.name) for c in event.c if c.name != "seq"}).on_conflict_do_nothing()
    )
)
_COLUMNS = (event.c.body, event.c.sender, event.c.conversation, event.c.at, event.c.stream, event.c.id)
_UNROUTED = Statement(
    sa.select(event.c.seq, *_COLUMNS)
    .where(event.c.routed == sa.literal_column("0"))
    .order_by(event.c.seq)
    .limit(b("most"))
)
_ROUTED = Statement(sa.update(event).where(event.c.seq == b("seq_")).values(routed=1))
_ONE = Statement(
    sa.select(*_COLUMNS).where(event.c.ws == b("ws"), event.c.stream == b("stream"), event.c.id == b("id"))
)
_NUMBERED = Statement(sa.select(*_COLUMNS).where(event.c.seq == b("seq")))
_RAW = Statement(sa.select(event.c.raw).where(event.c.seq == b("seq")))
_TAKE = Statement(lambda insert: insert(taken).values({c.name: b(c.name) for c in taken.c}).on_conflict_do_nothing())
_LAST = Statement(
    sa.select(event.c.stream, sa.func.max(event.c.at)).where(event.c.ws == b("ws")).group_by(event.c.stream)
)


def add(
    tx: Transaction,
    *,
    stream: str,
    ident: str,
    sender: str | None,
    conversation: str | None,
    at: datetime,
    body: Any,
    raw: Any = None,
) -> bool:
    """Stores an event; False where it was stored before."""
    done = _ADD.run(
        tx,
        {
            "ws": tx.ws,
            "stream": stream,
            "id": ident,
            "sender": sender,
            "conversation": conversation,
            "at": micros(at),
            "body": dump(body),
            "raw": json.dumps(raw) if raw is not None else None,
            "routed": 0,
        },
    )
    return done.rowcount == 1


def unrouted(tx: Transaction, most: int = 200) -> list[tuple[int, dict[str, Any]]]:
    """Events that have not yet become facts, oldest first, with their number."""
    return [(g[0], event_of(g[1:])) for g in _UNROUTED.all(tx, {"most": most})]


def routed(tx: Transaction, numbers: list[int]) -> None:
    _ROUTED.many(tx, [{"seq_": n} for n in numbers])


def get(tx: Transaction, ident: str) -> dict[str, Any] | None:
    """An event by `STREAM/ID`, as the engine names it."""
    stream, _, own = ident.partition("/")
    got = _ONE.one(tx, {"ws": tx.ws, "stream": stream, "id": own})
    return event_of(got) if got else None


def raw_of(tx: Transaction, number: int) -> Any:
    """What a platform sent, as it came; None where nothing was kept."""
    got = _RAW.one(tx, {"seq": number})
    return json.loads(got[0]) if got and got[0] else None


def recent(tx: Transaction, stream: str, conversation: str, most: int = 30) -> list[tuple[int, Any]]:
    """The latest events of a conversation as they came, with their number, the newest first."""
    query = (
        sa.select(event.c.seq, event.c.raw)
        .where(event.c.ws == tx.ws, event.c.stream == stream, event.c.conversation == conversation)
        .order_by(event.c.seq.desc())
        .limit(most)
    )
    return [(got[0], json.loads(got[1])) for got in tx.connection.execute(query) if got[1]]


def by_number(tx: Transaction, number: int) -> dict[str, Any] | None:
    """An event by its number."""
    got = _NUMBERED.one(tx, {"seq": number})
    return event_of(got) if got else None


def take(tx: Transaction, run_id: str, rows: list[Taken]) -> None:
    for row in rows:
        _TAKE.run(tx, {"ws": tx.ws, "run": runs.key(tx, run_id), "event": row.event, "path": row.path})


def last_of_each(tx: Transaction) -> dict[str, datetime]:
    """When the latest event of every stream came."""
    found = {g[0]: instant(g[1]) for g in _LAST.all(tx, {"ws": tx.ws})}
    return {stream: at for stream, at in found.items() if at is not None}


def find(
    tx: Transaction, *, stream: str | None = None, conversation: str | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """Events, the newest first."""
    query = sa.select(*_COLUMNS).where(event.c.ws == tx.ws).order_by(event.c.seq.desc()).limit(limit)
    if stream:
        query = query.where(event.c.stream == stream)
    if conversation:
        query = query.where(event.c.conversation == conversation)
    return [event_of(tuple(g)) for g in tx.connection.execute(query)]
