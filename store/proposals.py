"""Scripts that agents wrote and that wait for a person to run, change or discard them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from bot.domain.values import dump, load
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import proposal

State = Literal["open", "run", "discarded", "replaced"]

_PUT = Statement(
    lambda insert: insert(proposal).values({c.name: b(c.name) for c in proposal.c}).on_conflict_do_nothing()
)
_FIELDS = tuple(c.name for c in proposal.c if c.name != "ws")
_ROWS = sa.select(*(proposal.c[n] for n in _FIELDS))
_GET = Statement(_ROWS.where(proposal.c.ws == b("ws"), proposal.c.id == b("id")))
_OF_JOB = Statement(
    _ROWS.where(proposal.c.ws == b("ws"), proposal.c.job == b("job")).order_by(proposal.c.at.desc()).limit(b("most"))
)
_DECIDE = Statement(
    sa.update(proposal)
    .where(
        proposal.c.ws == b("ws"),
        proposal.c.id == b("id_"),
        proposal.c.state == sa.literal_column("'open'"),
    )
    .values(state=b("state"), by=b("by"), run=b("run"), ended=b("ended"))
)
_REWRITE = Statement(
    sa.update(proposal)
    .where(proposal.c.ws == b("ws"), proposal.c.id == b("id_"), proposal.c.state == sa.literal_column("'open'"))
    .values(text=b("text_"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A script that an agent wrote in a job, for somebody. `author`: `agent:NAME`; `owner`: whom it was written for;
    `wish`: what they said; `by`: who decided; `run`: the run that it became."""

    id: str
    job: str
    author: str
    owner: str
    text: str
    at: datetime
    wish: str | None = None
    inputs: dict[str, Any] | None = None
    state: State = "open"
    by: str | None = None
    run: str | None = None
    ended: datetime | None = None


def put(tx: Transaction, row: Proposal) -> bool:
    """Stores a proposal; False where its id is there already."""
    return (
        _PUT.run(
            tx,
            {
                "ws": tx.ws,
                "id": row.id,
                "job": row.job,
                "author": row.author,
                "owner": row.owner,
                "wish": row.wish,
                "text": row.text,
                "inputs": None if row.inputs is None else dump(row.inputs),
                "state": row.state,
                "by": row.by,
                "run": row.run,
                "at": micros(row.at),
                "ended": None,
            },
        ).rowcount
        == 1
    )


def get(tx: Transaction, ident: str) -> Proposal | None:
    got = _GET.one(tx, {"ws": tx.ws, "id": ident})
    return _proposal(got) if got else None


def of_job(tx: Transaction, job: str, most: int = 50) -> list[Proposal]:
    """The latest proposals of a job, newest first."""
    return [_proposal(g) for g in _OF_JOB.all(tx, {"ws": tx.ws, "job": job, "most": most})]


def decide(tx: Transaction, ident: str, state: State, by: str, at: datetime, run: str | None = None) -> bool:
    """Ends an open proposal; False where it was decided before."""
    return (
        _DECIDE.run(tx, {"ws": tx.ws, "id_": ident, "state": state, "by": by, "run": run, "ended": micros(at)}).rowcount
        == 1
    )


def rewrite(tx: Transaction, ident: str, text: str) -> bool:
    """Another text for an open proposal; False where it was decided before."""
    return _REWRITE.run(tx, {"ws": tx.ws, "id_": ident, "text_": text}).rowcount == 1


def _proposal(got: tuple[Any, ...]) -> Proposal:
    row = dict(zip(_FIELDS, got, strict=True))
    at = instant(row["at"])
    assert at is not None
    row |= {"at": at, "ended": instant(row["ended"]), "inputs": load(row["inputs"]) if row["inputs"] else None}
    return Proposal(**row)
