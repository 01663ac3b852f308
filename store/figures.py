"""Counts for operators."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from store.dialect import Transaction, micros
from store.tables import call, delivery, event, history, run, timer


def ping(tx: Transaction) -> None:
    """Raises where the database does not answer."""
    tx.connection.execute(sa.select(sa.literal(1)))


def figures(tx: Transaction, now: datetime) -> dict[str, int | dict[str, int]]:
    """`runs` by state, `facts` on record, what is queued (`deliveries`, `calls`, `events`), what is `due`."""

    def of(table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
        query = sa.select(sa.func.count()).select_from(table).where(table.c.ws == tx.ws, *where)
        return tx.connection.execute(query).scalar() or 0

    states = tx.connection.execute(
        sa.select(run.c.state, sa.func.count()).where(run.c.ws == tx.ws).group_by(run.c.state)
    )
    return {
        "runs": {str(state): int(n) for state, n in states},
        "facts": of(history),
        "deliveries": of(delivery, delivery.c.state.in_(("queued", "sent"))),
        "calls": of(call, call.c.state.in_(("queued", "sent"))),
        "events": of(event, event.c.routed == 0),
        "due": of(timer, timer.c.due <= micros(now)),
    }
