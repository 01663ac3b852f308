"""Values in rows: JSON text, large ones as a blob by their hash; texts that many rows share likewise."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import sqlalchemy as sa

from bot.domain.errors import Bug
from bot.domain.ids import digest
from bot.domain.values import dump, load
from store.dialect import Statement, Transaction, b
from store.tables import blob

LARGE = 16_384
"""Characters from which a value is kept as a blob."""
SHARED = 48
"""Characters from which a text that was met before is kept once for all rows that have it."""

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
    _PUT.many(tx, [{"ws": tx.ws, "hash": key, "body": text}])
    return "@" + key


def get(tx: Transaction, stored: str | None) -> Any:
    if stored is None:
        return None
    if stored.startswith("@"):
        row = _GET.one(tx, {"ws": tx.ws, "hash": stored[1:]})
        return load(row[0]) if row else None
    return load(stored)


def shared(tx: Transaction, text: str) -> str:
    """The stored form of a JSON text that other rows may have too: itself at first, from its second meeting on `#` and
    the hash under which it is kept once."""
    if len(text) < SHARED:
        return text
    key = base64.urlsafe_b64encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:12]).decode()
    if not tx.shared.meet(key):
        return text
    _PUT.many(tx, [{"ws": tx.ws, "hash": key, "body": text}])
    tx.shared.keep(key, text)
    return "#" + key


def unshared(tx: Transaction, stored: str) -> str:
    """The JSON text of its stored form."""
    if not stored.startswith("#"):
        return stored
    key = stored[1:]
    known = tx.shared.texts.get(key)
    if known is None:
        row = _GET.one(tx, {"ws": tx.ws, "hash": key})
        if row is None:
            raise Bug(f"no text {key}")
        known = row[0]
        tx.shared.keep(key, known)
    return known
