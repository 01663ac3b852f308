"""Finding runs: by state, person and words, page by page."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from bot.domain.changes import CARDS
from bot.domain.record import RunRow
from store import runs
from store.dialect import Transaction, micros
from store.tables import delivery, job, member, plan, run


def readable(
    tx: Transaction, reader: str, *, state: str | None = None, person: str | None = None, words: str | None = None,
    before: tuple[datetime, str] | None = None, limit: int = 50,
) -> list[RunRow]:  # fmt: skip
    """Runs that this reader may read, the newest first. `person`: who started it or was asked in it. `words`: in the
    script's name or text, the job's title, the run's id. `before`: the instant and id of the last run of a page."""
    mine = sa.select(member.c.job).where(member.c.ws == tx.ws, sa.func.lower(member.c.email) == reader.casefold())
    query = (
        sa.select(run.c.id)
        .outerjoin(job, sa.and_(job.c.ws == run.c.ws, job.c.id == run.c.job))
        .where(run.c.ws == tx.ws)
        .where(
            sa.or_(
                job.c.private == 0, run.c.job.in_(mine),
                sa.and_(job.c.id.is_(None), sa.func.lower(run.c.owner) == reader.casefold()),
            )
        )
        .order_by(run.c.created.desc(), run.c.id.desc())
        .limit(limit)
    )  # fmt: skip
    if state is not None:
        query = query.where(run.c.state == ("running" if state == "waiting" else state))
    if person is not None:
        asked = sa.select(delivery.c.run).where(
            delivery.c.ws == tx.ws, sa.func.lower(delivery.c.to) == person.casefold(), delivery.c.kind.in_(CARDS)
        )
        query = query.where(sa.or_(sa.func.lower(run.c.owner) == person.casefold(), run.c.seq.in_(asked)))
    if words:
        like = f"%{words.casefold().replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        body = sa.select(plan.c.hash).where(plan.c.ws == tx.ws, sa.func.lower(plan.c.body).like(like, escape="!"))
        query = query.where(
            sa.or_(
                run.c.plan.in_(body), run.c.id == words,
                sa.func.lower(job.c.title).like(like, escape="!"),
            )
        )  # fmt: skip
    if before is not None:
        at = micros(before[0])
        query = query.where(sa.or_(run.c.created < at, sa.and_(run.c.created == at, run.c.id < before[1])))
    found = [runs.get(tx, got[0]) for got in tx.connection.execute(query)]
    return [row for row in found if row is not None]
