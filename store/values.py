"""Values in rows: JSON text, large ones as a blob by their hash."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bot.domain.ids import digest
from bot.domain.values import dump, load
from store.dialect import Statement, Transaction, b
from store.tables import blob

LARGE = 16_384
"""Characters from which a value is kept as a blob."""

_PUT = Statement(
    lambda insert: insert(blob).values(ws=b("ws"), hash=b("hash"), body=b("body")).on_conflict_do_nothing()
)
_GET = Statement(sa.select(blob.c.body).where(blob.c.ws == b("ws"), blob.c.hash == b("hash")))


def put(tx: Transaction, value: Any) -> str:
    """The stored form of a value."""
    text = dump(value)
    if len(text) < LARGE:
        return text
    key = digest(text)
    _PUT.run(tx, {"ws": tx.ws, "hash": key, "body": text})
    return "@" + key


def get(tx: Transaction, stored: str | None) -> Any:
    if stored is None:
        return None
    if stored.startswith("@"):
        row = _GET.one(tx, {"ws": tx.ws, "hash": stored[1:]})
        return load(row[0]) if row else None
    return load(stored)
