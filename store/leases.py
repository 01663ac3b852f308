"""Who holds what, until when. A lease ends by itself; its fence only grows."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from store.dialect import Statement, Transaction, b, micros
from store.tables import lease, setting

_TAKE = Statement(
    lambda insert: (
        insert(lease)
        .values(ws=b("ws"), name=b("name"), holder=b("holder"), fence=1, until=b("until"))
        .on_conflict_do_update(
            index_elements=["ws", "name"],
            set_={"holder": b("holder"), "until": b("until"), "fence": lease.c.fence + 1},
            where=sa.or_(lease.c.until <= b("now"), lease.c.holder == b("holder")),
        )
    )
)
_RENEW = Statement(
    sa.update(lease).where(lease.c.ws == b("ws"), lease.c.holder == b("holder_")).values(until=b("until"))
)
_DROP = Statement(sa.delete(lease).where(lease.c.ws == b("ws"), lease.c.holder == b("holder")))
_NUDGE = Statement(
    lambda insert: (
        insert(setting)
        .values(ws=b("ws"), name="nudge", value=b("value"))
        .on_conflict_do_update(index_elements=["ws", "name"], set_={"value": b("value")})
    )
)
_NUDGED = Statement(sa.select(setting.c.value).where(setting.c.ws == b("ws"), setting.c.name == "nudge"))
_LIVE = Statement(sa.select(lease.c.name, lease.c.holder).where(lease.c.ws == b("ws"), lease.c.until > b("now")))


def take(tx: Transaction, name: str, holder: str, now: datetime, until: datetime) -> bool:
    """Takes a lease that nobody holds, or keeps one's own; False where somebody else has it."""
    return (
        _TAKE.run(
            tx, {"ws": tx.ws, "name": name, "holder": holder, "until": micros(until), "now": micros(now)}
        ).rowcount
        == 1
    )


def renew(tx: Transaction, holder: str, until: datetime) -> None:
    """Everything that a holder has, for longer."""
    _RENEW.run(tx, {"ws": tx.ws, "holder_": holder, "until": micros(until)})


def drop(tx: Transaction, holder: str) -> None:
    _DROP.run(tx, {"ws": tx.ws, "holder": holder})


def live(tx: Transaction, now: datetime) -> dict[str, str]:
    """Leases that have not run out: name → holder."""
    return {g[0]: g[1] for g in _LIVE.all(tx, {"ws": tx.ws, "now": micros(now)})}


def nudge(tx: Transaction, word: str) -> None:
    """Tells the processes that work on this database that another one has written something."""
    _NUDGE.run(tx, {"ws": tx.ws, "value": word})


def nudged(tx: Transaction) -> str | None:
    """The last nudge: it differs from the one before."""
    got = _NUDGED.one(tx, {"ws": tx.ws})
    return got[0] if got else None
