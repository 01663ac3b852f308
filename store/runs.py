"""Runs, their plans and jobs; reading and writing the run's own row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.errors import Bug
from bot.domain.record import RunRow
from bot.domain.values import dump, load
from store.dialect import Statement, Transaction, among, b, instant, micros, pages
from store.tables import job, member, more, plan, run

_COLUMNS = (
    run.c.id,
    run.c.job,
    run.c.owner,
    run.c.plan,
    run.c.state,
    run.c.rev,
    run.c.n,
    run.c.hash,
    run.c.created,
    run.c.ended,
    run.c.names,
    run.c.customer,
    run.c.parent,
    run.c.data,
    run.c.told,
    run.c.ends,
    run.c.seq,
)
_AT = {column.name: at for at, column in enumerate(_COLUMNS)}
_ONE = sa.select(*_COLUMNS).where(run.c.ws == b("ws"), run.c.id == b("id"))
_GET = Statement(_ONE)
_LOCK = Statement(_ONE.with_for_update())
_SOME = sa.select(*_COLUMNS).where(run.c.ws == b("ws"), among(run.c.id)).order_by(run.c.seq)
_GET_SOME = Statement(_SOME)
_LOCK_SOME = Statement(_SOME.with_for_update())
_KEY = Statement(sa.select(run.c.seq).where(run.c.ws == b("ws"), run.c.id == b("id")))
_ADD = Statement(sa.insert(run).values({c.name: b(c.name) for c in run.c if c.name != "seq"}).returning(run.c.seq))
_PUT = Statement(
    sa.update(run)
    .where(run.c.seq == b("seq_"))
    .values(plan=b("plan"), state=b("state"), rev=b("rev"), n=b("n"), hash=b("hash"), ended=b("ended"), data=b("data"))
)
_JOB = Statement(
    sa.select(job.c.id, job.c.title, job.c.conversation, job.c.customer, job.c.created, job.c.private).where(
        job.c.ws == b("ws"), job.c.id == b("id")
    )
)
_JOBS = Statement(
    sa.select(job.c.id, job.c.title, job.c.conversation, job.c.customer, job.c.created, job.c.private)
    .where(job.c.ws == b("ws"))
    .order_by(job.c.created.desc())
)
_ADD_JOB = Statement(lambda insert: insert(job).values({c.name: b(c.name) for c in job.c}).on_conflict_do_nothing())
_TITLE_JOB = Statement(sa.update(job).where(job.c.ws == b("ws"), job.c.id == b("id_")).values(title=b("title")))
_ADD_MEMBER = Statement(
    lambda insert: insert(member).values({c.name: b(c.name) for c in member.c}).on_conflict_do_nothing()
)
_MEMBERS = Statement(sa.select(member.c.email).where(member.c.ws == b("ws"), member.c.job == b("job")))
_PLAN = Statement(
    sa.select(plan.c.body, plan.c.source, plan.c.surface).where(plan.c.ws == b("ws"), plan.c.hash == b("hash"))
)
_ADD_PLAN = Statement(lambda insert: insert(plan).values({c.name: b(c.name) for c in plan.c}).on_conflict_do_nothing())
_ADD_MORE = Statement(lambda insert: insert(more).values({c.name: b(c.name) for c in more.c}).on_conflict_do_nothing())
_DROP_MORE = Statement(sa.delete(more).where(more.c.ws == b("ws"), more.c.run == b("run")))
_MORE = Statement(sa.select(run.c.id).where(run.c.seq.in_(sa.select(more.c.run).where(more.c.ws == b("ws")))))


def _row(tx: Transaction, got: tuple[Any, ...]) -> RunRow:
    created = instant(got[8])
    assert created is not None
    tx.runs[got[0]] = got[16]
    return RunRow(
        id=got[0],
        job=got[1],
        owner=got[2],
        plan=got[3].hex(),
        state=got[4],
        rev=got[5],
        n=got[6],
        hash=got[7].hex() if got[7] else "",
        created=created,
        ended=instant(got[9]),
        names=load(got[10]) if got[10] else {},
        customer=json.loads(got[11]) if got[11] else None,
        parent=got[12],
        data=json.loads(got[13]) if got[13] else {},
        told=got[14].hex() if got[14] else None,
        ends=instant(got[15]),
    )


def key(tx: Transaction, run_id: str) -> int:
    """The number under which other tables know a run; 0, which none has, where there is no such run."""
    known = tx.runs.get(run_id)
    if known is None:
        got = _KEY.one(tx, {"ws": tx.ws, "id": run_id})
        known = got[0] if got else 0
        if known:
            tx.runs[run_id] = known
    return known


def get(tx: Transaction, run_id: str) -> RunRow | None:
    got = tx.known.get(("run", run_id)) or _GET.one(tx, {"ws": tx.ws, "id": run_id})
    return _row(tx, got) if got else None


def lock(tx: Transaction, run_id: str) -> RunRow | None:
    """The run, with nobody else changing it until this transaction ends."""
    got = tx.known.get(("run", run_id))
    if got is None:
        got = (_LOCK if tx.locks else _GET).one(tx, {"ws": tx.ws, "id": run_id})
        if got is not None:
            tx.known["run", run_id] = got
    return _row(tx, got) if got else None


def ahead(tx: Transaction, ids: Sequence[str]) -> dict[str, str]:
    """Locks runs that facts are about to be applied to, by few statements; those that this transaction knows already
    stay as it knows them. Gives the plan of each that it has read."""
    wanted = [run_id for run_id in dict.fromkeys(ids) if ("run", run_id) not in tx.known]
    plans: dict[str, str] = {}
    for some in pages(wanted, ""):
        for got in (_LOCK_SOME if tx.locks else _GET_SOME).all(tx, {"ws": tx.ws, **some}):
            tx.known["run", got[0]] = got
            tx.runs[got[0]] = got[_AT["seq"]]
            plans[got[0]] = got[_AT["plan"]].hex()
    return plans


def add(tx: Transaction, row: RunRow) -> None:
    params = {
        "ws": tx.ws,
        "id": row.id,
        "job": row.job,
        "owner": row.owner,
        "plan": bytes.fromhex(row.plan),
        "state": row.state,
        "rev": row.rev,
        "n": row.n,
        "hash": bytes.fromhex(row.hash),
        "created": micros(row.created),
        "ended": micros(row.ended),
        "names": dump(row.names) if row.names else None,
        "customer": json.dumps(row.customer) if row.customer else None,
        "parent": row.parent,
        "told": bytes.fromhex(row.told) if row.told else None,
        "ends": micros(row.ends),
        "data": dump(row.data) if row.data else None,
    }
    got = _ADD.one(tx, params)
    assert got is not None
    number = tx.runs[row.id] = got[0]
    tx.known["run", row.id] = tuple(params[c.name] if c.name != "seq" else number for c in _COLUMNS)


def put(tx: Transaction, row: RunRow) -> None:
    """Writes a run's row, once before the commit: the facts that follow in this transaction find it as it stands."""
    number = key(tx, row.id)
    params = {
        "seq_": number,
        "plan": bytes.fromhex(row.plan),
        "state": row.state,
        "rev": row.rev,
        "n": row.n,
        "hash": bytes.fromhex(row.hash),
        "ended": micros(row.ended),
        "data": dump(row.data) if row.data else None,
    }
    stood = tx.known.get(("run", row.id)) or _GET.one(tx, {"ws": tx.ws, "id": row.id})
    assert stood is not None
    changed = {_AT[name]: value for name, value in params.items() if name in _AT}
    tx.known["run", row.id] = tuple(changed.get(at, value) for at, value in enumerate(stood))
    tx.late[number] = (_PUT, params)


def remember_more(tx: Transaction, run_id: str) -> None:
    _ADD_MORE.run(tx, {"ws": tx.ws, "run": key(tx, run_id)})


def forget_more(tx: Transaction, run_id: str) -> None:
    _DROP_MORE.run(tx, {"ws": tx.ws, "run": key(tx, run_id)})


def with_more(tx: Transaction) -> list[str]:
    """Runs with the rest of a step to do."""
    return [r[0] for r in _MORE.all(tx, {"ws": tx.ws})]


def add_plan(tx: Transaction, hashed: str, body: str, source: str | None, surface: str | None) -> None:
    _ADD_PLAN.run(tx, {"ws": tx.ws, "hash": bytes.fromhex(hashed), "body": body, "source": source, "surface": surface})


def plan_body(tx: Transaction, hashed: str) -> str:
    got = _PLAN.one(tx, {"ws": tx.ws, "hash": bytes.fromhex(hashed)})
    if got is None:
        raise Bug(f"no plan {hashed}")
    return got[0]


def plan_source(tx: Transaction, hashed: str) -> tuple[str | None, str | None]:
    """The text as pasted and its surface."""
    got = _PLAN.one(tx, {"ws": tx.ws, "hash": bytes.fromhex(hashed)})
    return (got[1], got[2]) if got else (None, None)


def told(tx: Transaction, row: RunRow) -> dict[str, Any]:
    """What whoever started a run was told: `{preflight, notes, source, surface}`; the pre-flight's `latest_end` is
    the run's own `ends`."""
    got = _PLAN.one(tx, {"ws": tx.ws, "hash": bytes.fromhex(row.told)}) if row.told else None
    said = json.loads(got[0]) if got else {"preflight": {}, "notes": []}
    source = (got[1], got[2]) if got else plan_source(tx, row.plan)
    return {**said, "source": source[0], "surface": source[1]}


def add_job(
    tx: Transaction,
    job_id: str,
    title: str,
    conversation: str,
    at: datetime,
    *,
    customer: dict[str, Any] | None = None,
    members: tuple[str, ...] = (),
) -> None:
    """Makes a job, unless it is there; with members only they read it."""
    _ADD_JOB.run(
        tx,
        {
            "ws": tx.ws,
            "id": job_id,
            "title": title,
            "conversation": conversation,
            "created": micros(at),
            "customer": json.dumps(customer) if customer else None,
            "private": int(bool(members)),
        },
    )
    for email in members:
        _ADD_MEMBER.run(tx, {"ws": tx.ws, "job": job_id, "email": email})


def _job(got: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "id": got[0],
        "title": got[1],
        "conversation": got[2],
        "customer": json.loads(got[3]) if got[3] else None,
        "created": instant(got[4]),
        "private": bool(got[5]),
    }


def get_job(tx: Transaction, job_id: str) -> dict[str, Any] | None:
    got = _JOB.one(tx, {"ws": tx.ws, "id": job_id})
    return _job(got) if got else None


def jobs(tx: Transaction) -> list[dict[str, Any]]:
    """Every job, the newest first."""
    return [_job(got) for got in _JOBS.all(tx, {"ws": tx.ws})]


def members(tx: Transaction, job_id: str) -> list[str]:
    return [r[0] for r in _MEMBERS.all(tx, {"ws": tx.ws, "job": job_id})]


def rename_job(tx: Transaction, job_id: str, title: str) -> None:
    _TITLE_JOB.run(tx, {"ws": tx.ws, "id_": job_id, "title": title})


def find(
    tx: Transaction,
    *,
    job_id: str | None = None,
    state: str | None = None,
    owner: str | None = None,
    before: datetime | None = None,
    limit: int = 50,
) -> list[RunRow]:
    """Runs, the newest first. `state` may be `waiting`: running, with nothing active."""
    tx.flush()
    query = sa.select(*_COLUMNS).where(run.c.ws == tx.ws).order_by(run.c.created.desc(), run.c.id.desc()).limit(limit)
    if job_id is not None:
        query = query.where(run.c.job == job_id)
    if state is not None:
        query = query.where(run.c.state == ("running" if state == "waiting" else state))
    if owner is not None:
        query = query.where(run.c.owner == owner)
    if before is not None:
        query = query.where(run.c.created < micros(before))
    return [_row(tx, tuple(got)) for got in tx.connection.execute(query)]


def children_below(tx: Transaction, run_id: str, path: str) -> list[str]:
    """Runs that ops below a path have started and that have not ended."""
    tx.flush()
    query = sa.select(run.c.id).where(run.c.ws == tx.ws, run.c.ended.is_(None), run.c.parent.like(f"{run_id} {path}%"))
    return [got[0] for got in tx.connection.execute(query)]
