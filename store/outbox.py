"""What must go out: deliveries to people and conversations, calls of tools, agents and the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.changes import CARDS, Call, Delivery, Settled
from bot.domain.values import dump, load
from store import runs, values
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import call, delivery, run, timer

MOST_OPEN = 50
"""Open cards that one person has of one run (engine.md, Effects)."""

_ADD = Statement(
    lambda insert: (
        insert(delivery).values({c.name: b(c.name) for c in delivery.c if c.name != "seq"}).on_conflict_do_nothing()
    )
)
_FIELDS = (
    "seq",
    "path",
    "attempt",
    "kind",
    "to",
    "card",
    "at",
    "opens",
    "n",
    "state",
    "channel",
    "conversation",
    "ref",
    "outcome",
    "shown",
    "error",
    "done",
)
_DELIVERIES = sa.select(*(delivery.c[n] for n in _FIELDS), run.c.id).outerjoin(run, run.c.seq == delivery.c.run)
_IS_CARD = delivery.c.kind.in_([sa.literal_column(f"'{kind}'") for kind in CARDS])
_QUEUED = Statement(
    _DELIVERIES.where(
        delivery.c.state.in_([sa.literal_column("'queued'"), sa.literal_column("'sent'")]), delivery.c.seq > b("after")
    )
    .order_by(delivery.c.seq)
    .limit(b("most"))
)
_STALE_OF = Statement(
    _DELIVERIES.where(
        delivery.c.outcome.is_not(None),
        delivery.c.shown == sa.literal_column("0"),
        delivery.c.channel == b("channel"),
        delivery.c.state.in_([sa.literal_column("'delivered'"), sa.literal_column("'failed'")]),
    )
    .order_by(delivery.c.seq)
    .limit(b("most"))
)
_BY_REF = Statement(
    _DELIVERIES.where(
        delivery.c.ws == b("ws"),
        delivery.c.conversation == b("conversation"),
        delivery.c.ref == b("ref"),
        delivery.c.ref.is_not(None),
    )
    .order_by(delivery.c.seq.desc())
    .limit(sa.literal_column("1"))
)
_BY_SEQ = Statement(_DELIVERIES.where(delivery.c.ws == b("ws"), delivery.c.seq == b("seq")))
_SENT = Statement(
    sa.update(delivery)
    .where(delivery.c.seq == b("seq_"))
    .values(state="sent", channel=b("channel"), conversation=b("conversation"))
)
_DONE = Statement(
    sa.update(delivery)
    .where(delivery.c.seq == b("seq_"))
    .values(
        state=b("state"),
        ref=b("ref"),
        error=b("error"),
        done=b("done"),
        channel=sa.func.coalesce(b("channel"), delivery.c.channel),
        conversation=sa.func.coalesce(b("conversation"), delivery.c.conversation),
    )
)
_SHOWN = Statement(sa.update(delivery).where(delivery.c.seq == b("seq_")).values(shown=1))
_SHOWN_HERE = sa.case((delivery.c.channel == "web", 1), else_=0)
"""The room shows an outcome by its commit; a platform has yet to be told."""
_SETTLE = Statement(
    sa.update(delivery)
    .where(
        delivery.c.ws == b("ws"),
        delivery.c.run == b("run"),
        delivery.c.path == b("path"),
        _IS_CARD,
        delivery.c.outcome.is_(None),
    )
    .values(outcome=b("outcome"), shown=_SHOWN_HERE)
)
_SETTLE_TO = Statement(
    sa.update(delivery)
    .where(
        delivery.c.ws == b("ws"),
        delivery.c.run == b("run"),
        delivery.c.path == b("path"),
        delivery.c.to == b("to_"),
        _IS_CARD,
        delivery.c.outcome.is_(None),
    )
    .values(outcome=b("outcome"), shown=_SHOWN_HERE)
)
_OPEN = Statement(
    sa.select(sa.func.count()).select_from(
        sa.select(delivery.c.seq)
        .where(
            delivery.c.ws == b("ws"),
            delivery.c.run == b("run"),
            delivery.c.to == b("to"),
            _IS_CARD,
            delivery.c.outcome.is_(None),
            delivery.c.state != sa.literal_column("'held'"),
        )
        .limit(sa.literal_column(str(MOST_OPEN)))
        .subquery()
    )
)
_HELD_OF_RUN = (
    delivery.c.ws == b("ws"),
    delivery.c.run == b("run"),
    delivery.c.state == sa.literal_column("'held'"),
    delivery.c.outcome.is_(None),
)
_HELD_UP = Statement(sa.select(sa.func.min(delivery.c.to)).where(*_HELD_OF_RUN, delivery.c.to > b("after")))
"""The next person with held cards: one step along the index, however many cards there are."""
_HELD = Statement(_DELIVERIES.where(*_HELD_OF_RUN, delivery.c.to == b("to")).order_by(delivery.c.seq).limit(b("room")))
_FREE = Statement(
    sa.update(delivery)
    .where(delivery.c.seq == b("seq_"))
    .values(at=b("at"), state=b("state"), channel=b("channel"), shown=b("shown"))
)
_UNTIMED = Statement(
    sa.delete(timer).where(
        timer.c.ws == b("ws"), timer.c.run == b("run"), timer.c.path == b("path"), timer.c.kind == "delivery"
    )
)
_CALLS = sa.select(
    run.c.id,
    *(
        call.c[n]
        for n in (
            "path",
            "attempt",
            "kind",
            "n",
            "body",
            "at",
            "state",
            "idempotent",
            "timeout_ms",
            "sent",
            "holder",
        )
    ),
).join(run, run.c.seq == call.c.run)
_ADD_CALL = Statement(lambda insert: insert(call).values({c.name: b(c.name) for c in call.c}).on_conflict_do_nothing())
_OPEN_CALLS = Statement(
    _CALLS.where(call.c.ws == b("ws"), call.c.state.in_([sa.literal_column("'queued'"), sa.literal_column("'sent'")]))
    .order_by(call.c.at, call.c.run, call.c.path, call.c.n)
    .limit(b("most"))
)
_MINE = (
    call.c.ws == b("ws"),
    call.c.run == b("run"),
    call.c.path == b("path"),
    call.c.attempt == b("attempt_"),
    call.c.kind == b("kind_"),
    call.c.n == b("n_"),
)
_CALL_SENT = Statement(
    # A holder may mark its own again: the acknowledgement of the commit that marked it may have been lost.
    sa.update(call)
    .where(*_MINE, sa.or_(call.c.state == "queued", sa.and_(call.c.state == "sent", call.c.holder == b("holder_"))))
    .values(state="sent", sent=b("at_"), holder=b("holder"))
)
_CALL_DONE = Statement(sa.update(call).where(*_MINE).values(state="done", done=b("at_"), body="{}"))
_DROP = Statement(
    sa.update(call)
    .where(
        call.c.ws == b("ws"),
        call.c.run == b("run"),
        call.c.path == b("path"),
        call.c.state.in_([sa.literal_column("'queued'"), sa.literal_column("'sent'")]),
    )
    .values(state="dropped")
)


def put(
    tx: Transaction,
    run_id: str,
    settled: list[Settled],
    calls: list[Call],
    dropped: list[str],
    begins: Callable[[Call], str | None] = lambda _: None,
) -> frozenset[tuple[str, int, str, int]]:
    """Writes what a step settles and calls. Cards end before others are put, so that one put again for the same op
    stays open. A call that `begins` names a holder for is marked as begun by this very commit; gives their keys."""
    number = runs.key(tx, run_id)
    for change in settled:
        mine = {"ws": tx.ws, "run": number, "path": change.path, "outcome": change.outcome}
        if change.to is None:
            _SETTLE.many(tx, [mine])
        else:
            _SETTLE_TO.many(tx, [{**mine, "to_": change.to}])
    for path in dropped:
        _DROP.run(tx, {"ws": tx.ws, "run": number, "path": path})
    rows: list[dict[str, Any]] = []
    begun: set[tuple[str, int, str, int]] = set()
    for work in calls:
        holder, at = begins(work), micros(work.at)
        if holder:
            begun.add(work.key)
        rows.append(
            {
                "ws": tx.ws,
                "run": number,
                "path": work.path,
                "attempt": work.attempt,
                "kind": work.kind,
                "n": work.n,
                "body": dump(work.body),
                "at": at,
                "state": "sent" if holder else "queued",
                "idempotent": int(work.idempotent),
                "timeout_ms": int(work.timeout_s * 1000),
                "sent": at if holder else None,
                "done": None,
                "holder": holder,
            }
        )
    _ADD_CALL.many(tx, rows)
    return frozenset(begun)


def deliver(
    tx: Transaction, run_id: str, rows: list[Delivery], here: Callable[[Delivery], bool], *, crowded: bool = True
) -> list[Delivery]:
    """Writes deliveries; gives those that the room shows by this commit. A person has 50 open cards of one run at
    most: the rest is held, its window not begun, until one of them settles. `crowded`: the run may have so many."""
    shown: list[Delivery] = []
    number = runs.key(tx, run_id)
    for row in rows:
        held = crowded and row.kind == "card" and row.opens and _open(tx, number, row.to) >= MOST_OPEN
        in_room = not held and here(row)
        _ADD.many(tx, [{**_stored(tx, number, row), **_fate(held, in_room)}])
        if held:
            _UNTIMED.run(tx, {"ws": tx.ws, "run": number, "path": row.path})
        elif in_room:
            shown.append(row)
    return shown


def release(tx: Transaction, run_id: str, here: Callable[[Delivery], bool], now: datetime) -> list[Delivery]:
    """Cards that were held and have room now, each person's in the order of their commit; gives those that the room
    shows."""
    shown: list[Delivery] = []
    number = runs.key(tx, run_id)
    for to in _held_up(tx, number):
        room = MOST_OPEN - _open(tx, number, to)
        if room <= 0:
            continue
        for got in _HELD.all(tx, {"ws": tx.ws, "run": number, "to": to, "room": room}):
            found = _delivery(tx, got)
            row = Delivery(
                path=found["path"],
                attempt=found["attempt"],
                kind=found["kind"],
                to=to,
                card=found["card"],
                at=now,
                opens=True,
                n=found["n"],
            )
            in_room = here(row)
            _FREE.run(tx, {"seq_": found["seq"], "at": micros(now), **_fate(False, in_room)})
            if in_room:
                shown.append(row)
    return shown


def _held_up(tx: Transaction, number: int) -> Iterator[str]:
    after: str | None = ""
    while True:
        got = _HELD_UP.one(tx, {"ws": tx.ws, "run": number, "after": after})
        after = got[0] if got else None
        if after is None:
            return
        yield after


def _open(tx: Transaction, number: int, to: str) -> int:
    got = _OPEN.one(tx, {"ws": tx.ws, "run": number, "to": to})
    return got[0] if got else 0


def _fate(held: bool, in_room: bool) -> dict[str, Any]:
    """What the room shows was delivered when it was committed: `done` stays null, it is `at`."""
    return {
        "state": "held" if held else "delivered" if in_room else "queued",
        "channel": "web" if in_room else None,
        "shown": int(in_room),
    }


def _stored(tx: Transaction, number: int, row: Delivery) -> dict[str, Any]:
    card = dump(dict(row.card))
    return {
        "ws": tx.ws,
        "run": number,
        "path": row.path,
        "attempt": row.attempt,
        "kind": row.kind,
        "to": row.to,
        "n": row.n,
        "card": values.shared(tx, card) if row.kind in CARDS else card,
        "at": micros(row.at),
        "opens": int(row.opens),
        "conversation": None,
        "ref": None,
        "outcome": None,
        "error": None,
        "done": None,
    }


def _delivery(tx: Transaction, g: tuple[Any, ...]) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip((*_FIELDS, "run"), g, strict=True))
    row["run"] = row["run"] or ""  # said outside any run
    row["card"] = json.loads(values.unshared(tx, row["card"]))
    row["at"] = instant(row["at"])
    row["done"] = instant(row["done"]) or (row["at"] if row["state"] == "delivered" else None)
    return row


def queued(tx: Transaction, most: int = 200, after: int = 0) -> list[dict[str, Any]]:
    """Deliveries that have not been accepted, in the order of their commit. `after`: the number of the last of a page
    before."""
    return [_delivery(tx, g) for g in _QUEUED.all(tx, {"most": most, "after": after})]


def stale_of(tx: Transaction, channel: str, most: int = 50) -> list[dict[str, Any]]:
    """Cards of one platform whose outcome it does not show yet."""
    return [_delivery(tx, g) for g in _STALE_OF.all(tx, {"channel": channel, "most": most})]


def by_ref(tx: Transaction, conversation: str, ref: str) -> dict[str, Any] | None:
    """What a platform shows under its own name for it."""
    got = _BY_REF.one(tx, {"ws": tx.ws, "conversation": conversation, "ref": ref})
    return _delivery(tx, got) if got else None


def by_seq(tx: Transaction, seq: int) -> dict[str, Any] | None:
    """A delivery by its number."""
    got = _BY_SEQ.one(tx, {"ws": tx.ws, "seq": seq})
    return _delivery(tx, got) if got else None


def mark_sent(tx: Transaction, seq: int, channel: str, conversation: str) -> None:
    """Before the socket is touched."""
    _SENT.run(tx, {"seq_": seq, "channel": channel, "conversation": conversation})


def mark_done(
    tx: Transaction,
    seq: int,
    at: datetime,
    *,
    ref: str | None = None,
    error: str | None = None,
    channel: str | None = None,
    conversation: str | None = None,
) -> None:
    _DONE.run(
        tx,
        {
            "seq_": seq,
            "state": "failed" if error else "delivered",
            "ref": ref,
            "error": error,
            "done": micros(at),
            "channel": channel,
            "conversation": conversation,
        },
    )


def mark_shown(tx: Transaction, seq: int) -> None:
    _SHOWN.run(tx, {"seq_": seq})


def find(
    tx: Transaction,
    *,
    run_id: str | None = None,
    to: str | None = None,
    conversation: str | None = None,
    open_cards: bool = False,
    after: int = 0,
    limit: int = 2000,
) -> list[dict[str, Any]]:
    """Deliveries, oldest first. `conversation`: what was put there."""
    query = _DELIVERIES.where(delivery.c.ws == tx.ws, delivery.c.seq > after).order_by(delivery.c.seq).limit(limit)
    if run_id is not None:
        query = query.where(delivery.c.run == runs.key(tx, run_id))
    if to is not None:
        query = query.where(delivery.c.to == to)
    if conversation is not None:
        query = query.where(delivery.c.conversation == conversation, delivery.c.ref.is_not(None))
    if open_cards:
        query = query.where(delivery.c.state != "held", delivery.c.kind.in_(CARDS), delivery.c.outcome.is_(None))
    return [_delivery(tx, tuple(g)) for g in tx.connection.execute(query)]


def _call(g: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "run": g[0],
        "path": g[1],
        "attempt": g[2],
        "kind": g[3],
        "n": g[4],
        "body": load(g[5]),
        "at": instant(g[6]),
        "state": g[7],
        "idempotent": bool(g[8]),
        "timeout_s": g[9] / 1000,
        "sent": instant(g[10]),
        "holder": g[11],
    }


def open_calls(tx: Transaction, most: int = 500) -> list[dict[str, Any]]:
    """Work that has not ended, in the order it was asked for."""
    return [_call(g) for g in _OPEN_CALLS.all(tx, {"ws": tx.ws, "most": most})]


def _key(tx: Transaction, work: dict[str, Any]) -> dict[str, Any]:
    return {
        "ws": tx.ws,
        "run": runs.key(tx, work["run"]),
        "path": work["path"],
        "attempt_": work["attempt"],
        "kind_": work["kind"],
        "n_": work["n"],
    }


def calls_sent(tx: Transaction, works: list[dict[str, Any]], at: datetime, holder: str) -> list[bool]:
    """Marks calls as begun by `holder`, as `call_sent` does each."""
    return [call_sent(tx, work, at, holder) for work in works]


def call_sent(tx: Transaction, work: dict[str, Any], at: datetime, holder: str = "") -> bool:
    """Marks a call as begun by `holder`, before it is; False where somebody else has it or it was dropped."""
    return _CALL_SENT.run(tx, {**_key(tx, work), "at_": micros(at), "holder": holder, "holder_": holder}).rowcount == 1


def call_done(tx: Transaction, work: dict[str, Any], at: datetime) -> None:
    _CALL_DONE.run(tx, {**_key(tx, work), "at_": micros(at)})
