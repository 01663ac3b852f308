"""The one message of a run that a platform shows and that is edited in place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from store import runs
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import job, run, status

_GET = Statement(
    sa.select(
        status.c.channel, status.c.conversation, status.c.ref, status.c.said, status.c.rev, status.c.at
    ).where(status.c.ws == b("ws"), status.c.run == b("run"))
)  # fmt: skip
_PUT = Statement(
    lambda insert: (
        insert(status)
        .values({c.name: b(c.name) for c in status.c})
        .on_conflict_do_update(
            index_elements=["ws", "run"],
            set_={n: b(n) for n in ("channel", "conversation", "ref", "said", "rev", "at")},
        )
    )
)
_BEHIND = Statement(
    sa.select(run.c.id)
    .join(job, sa.and_(job.c.ws == run.c.ws, job.c.id == run.c.job))
    .outerjoin(status, sa.and_(status.c.ws == run.c.ws, status.c.run == run.c.seq))
    .where(
        run.c.ws == b("ws"),
        job.c.conversation >= b("from_"),
        job.c.conversation < b("to_"),
        sa.or_(status.c.rev.is_(None), status.c.rev != run.c.rev),
    )
    .order_by(run.c.seq)
    .limit(b("most"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """Where a run's message stands, and what it shows. `ref` None: nothing is there yet."""

    channel: str
    conversation: str
    ref: str | None
    said: str | None
    rev: int
    at: datetime | None


def get(tx: Transaction, run_id: str) -> StatusRow | None:
    got = _GET.one(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)})
    if got is None:
        return None
    return StatusRow(channel=got[0], conversation=got[1], ref=got[2], said=got[3], rev=got[4], at=instant(got[5]))


def put(tx: Transaction, run_id: str, row: StatusRow) -> None:
    _PUT.run(
        tx,
        {
            "ws": tx.ws,
            "run": runs.key(tx, run_id),
            "channel": row.channel,
            "conversation": row.conversation,
            "ref": row.ref,
            "said": row.said,
            "rev": row.rev,
            "at": micros(row.at),
        },
    )


def behind(tx: Transaction, channel: str, most: int = 500) -> list[str]:
    """Runs in conversations of a channel whose message is not of their latest state."""
    # A conversation begins with its channel and a colon; `;` is the character behind it.
    mine = {"ws": tx.ws, "from_": f"{channel}:", "to_": f"{channel};", "most": most}
    return [got[0] for got in _BEHIND.all(tx, mine)]
