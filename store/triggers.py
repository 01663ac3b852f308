"""What starts saved scripts, when cron lines come next, and every start by the event that it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.values import dump, load
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import job, run, start, trigger

_ADD = Statement(sa.insert(trigger).values({c.name: b(c.name) for c in trigger.c}))
_DROP = Statement(sa.delete(trigger).where(trigger.c.ws == b("ws"), trigger.c.script == b("script")))
_OF = Statement(
    sa.select(trigger.c.n, trigger.c.body, trigger.c.due)
    .where(trigger.c.ws == b("ws"), trigger.c.script == b("script"))
    .order_by(trigger.c.n)
)
_BY_STREAM = sa.select(trigger.c.script, trigger.c.n, trigger.c.body).where(trigger.c.ws == b("ws"))
_ARMED = Statement(
    # Two equalities and no `or`: each is a look-up of its own by the key.
    _BY_STREAM.where(trigger.c.stream == b("a")).union_all(_BY_STREAM.where(trigger.c.stream == b("z")))
)
_DUE = Statement(
    sa.select(trigger.c.script, trigger.c.n, trigger.c.body, trigger.c.due)
    .where(trigger.c.ws == b("ws"), trigger.c.due <= b("now"))
    .order_by(trigger.c.due, trigger.c.script, trigger.c.n)
    .limit(b("most"))
)
_NEXT = Statement(sa.select(sa.func.min(trigger.c.due)).where(trigger.c.ws == b("ws"), trigger.c.due.is_not(None)))
_MOVE = Statement(
    sa.update(trigger)
    .where(trigger.c.ws == b("ws"), trigger.c.script == b("script_"), trigger.c.n == b("n_"), trigger.c.due == b("was"))
    .values(due=b("due"))
)
_START = Statement(lambda insert: insert(start).values({c.name: b(c.name) for c in start.c}).on_conflict_do_nothing())
_SET = Statement(
    sa.update(start)
    .where(start.c.ws == b("ws"), start.c.script == b("script_"), start.c.event == b("event_"))
    .values(state=b("state"), run=b("run"), version=b("version"), why=b("why"))
)
_COLUMNS = (
    start.c.script,
    start.c.event,
    start.c.state,
    start.c.key,
    start.c.job,
    start.c.run,
    start.c.version,
    start.c.chain,
    start.c.names,
    start.c.why,
    start.c.at,
)
_OPEN = Statement(
    sa.select(start.c.run, start.c.state, run.c.ended)
    .select_from(start.outerjoin(run, sa.and_(run.c.ws == start.c.ws, run.c.id == start.c.run)))
    .where(
        start.c.ws == b("ws"),
        start.c.script == b("script"),
        start.c.key == b("key"),
        start.c.state.in_([sa.literal_column("'live'"), sa.literal_column("'queued'")]),
    )
    .order_by(start.c.at, start.c.event)
)
_WAITING = Statement(
    sa.select(*_COLUMNS)
    .where(
        start.c.ws == b("ws"),
        start.c.script == b("script"),
        start.c.key == b("key"),
        start.c.state == sa.literal_column("'queued'"),
    )
    .order_by(start.c.at, start.c.event)
    .limit(1)
)
_BY_RUN = Statement(
    # By the run alone, whose id is nobody else's: SQLite would take the key, and read every start of the workspace.
    sa.select(*_COLUMNS).where(start.c.run == b("run"))
)
_KNOWN = Statement(
    sa.select(start.c.state).where(start.c.ws == b("ws"), start.c.script == b("script"), start.c.event == b("event"))
)
_LATEST = Statement(
    sa.select(*_COLUMNS)
    .where(start.c.ws == b("ws"), start.c.script == b("script"))
    .order_by(start.c.at.desc(), start.c.event.desc())
    .limit(b("most"))
)
_JOB_OF = Statement(sa.select(job.c.id).where(job.c.ws == b("ws"), job.c.conversation == b("conversation")).limit(1))


def arm(tx: Transaction, script: str, entries: Sequence[tuple[Mapping[str, Any], str | None, datetime | None]]) -> None:
    """What starts a script from now on, in place of what did: (entry of `on`, what events are looked up by, due)."""
    _DROP.run(tx, {"ws": tx.ws, "script": script})
    for n, (body, stream, due) in enumerate(entries, 1):
        _ADD.run(
            tx,
            {
                "ws": tx.ws,
                "script": script,
                "n": n,
                "stream": stream or "",
                "body": json.dumps(dict(body), ensure_ascii=False),
                "due": micros(due),
            },
        )


def of_script(tx: Transaction, script: str) -> list[tuple[dict[str, Any], datetime | None]]:
    """What starts a script, in written order, with when it is due; nothing while it is paused."""
    return [(json.loads(g[1]), instant(g[2])) for g in _OF.all(tx, {"ws": tx.ws, "script": script})]


def armed(tx: Transaction, stream: str, command: str | None) -> list[tuple[str, dict[str, Any]]]:
    """(script, entry of `on`) of everything that an event of this stream, or with this command, could start."""
    found = _ARMED.all(tx, {"ws": tx.ws, "a": stream, "z": command})
    return [(g[0], json.loads(g[2])) for g in sorted(found, key=lambda g: (g[0], g[1]))]


def due(tx: Transaction, now: datetime, most: int = 100) -> list[tuple[str, int, dict[str, Any], datetime]]:
    """Cron lines that have come by now, oldest first: (script, number, entry, due)."""
    found = _DUE.all(tx, {"ws": tx.ws, "now": micros(now), "most": most})
    return [(g[0], g[1], json.loads(g[2]), at) for g in found if (at := instant(g[3])) is not None]


def next_due(tx: Transaction) -> datetime | None:
    got = _NEXT.one(tx, {"ws": tx.ws})
    return instant(got[0]) if got else None


def move(tx: Transaction, script: str, n: int, was: datetime, due: datetime | None) -> bool:
    """The next moment of a cron line; False where somebody else has taken this one."""
    asked = {"ws": tx.ws, "script_": script, "n_": n, "was": micros(was), "due": micros(due)}
    return _MOVE.run(tx, asked).rowcount == 1


def known(tx: Transaction, script: str, event: str) -> bool:
    """Whether an event was answered by this script before."""
    return _KNOWN.one(tx, {"ws": tx.ws, "script": script, "event": event}) is not None


def add(
    tx: Transaction,
    *,
    script: str,
    event: str,
    state: str,
    key: str,
    job: str,
    at: datetime,
    run: str | None = None,
    version: int = 0,
    chain: int = 0,
    names: Mapping[str, Any] | None = None,
    why: str | None = None,
) -> bool:
    """Records a start; False where the event was answered before."""
    done = _START.run(
        tx,
        {
            "ws": tx.ws,
            "script": script,
            "event": event,
            "state": state,
            "key": key,
            "job": job,
            "run": run,
            "version": version,
            "chain": chain,
            "names": dump(dict(names)) if names else None,
            "why": why,
            "at": micros(at),
        },
    )
    return done.rowcount == 1


def settle(
    tx: Transaction, row: Mapping[str, Any], state: str, *, run: str | None, version: int, why: str | None
) -> None:
    """What has become of a recorded start."""
    _SET.run(
        tx,
        {
            "ws": tx.ws,
            "script_": row["script"],
            "event_": row["event"],
            "state": state,
            "run": run,
            "version": version,
            "why": why,
        },
    )


def open_of(tx: Transaction, script: str, key: str) -> list[tuple[str | None, str]]:
    """(run, `live` or `queued`) of every start of this key whose run has not ended, oldest first."""
    tx.flush()  # whether a run has ended may be written late
    found = _OPEN.all(tx, {"ws": tx.ws, "script": script, "key": key})
    return [(g[0], g[1]) for g in found if g[2] is None]


def next_queued(tx: Transaction, script: str, key: str) -> dict[str, Any] | None:
    """The start that waits longest behind others of its key."""
    got = _WAITING.one(tx, {"ws": tx.ws, "script": script, "key": key})
    return _row(got) if got else None


def of_run(tx: Transaction, run_id: str) -> dict[str, Any] | None:
    """The start that a run came of."""
    got = _BY_RUN.one(tx, {"ws": tx.ws, "run": run_id})
    return _row(got) if got else None


def latest(tx: Transaction, script: str, most: int = 20) -> list[dict[str, Any]]:
    """The latest starts of a script, the newest first."""
    return [_row(got) for got in _LATEST.all(tx, {"ws": tx.ws, "script": script, "most": most})]


def job_of(tx: Transaction, conversation: str) -> str | None:
    """The job that a conversation is."""
    got = _JOB_OF.one(tx, {"ws": tx.ws, "conversation": conversation})
    return got[0] if got else None


def _row(got: tuple[Any, ...]) -> dict[str, Any]:
    names = ("script", "event", "state", "key", "job", "run", "version", "chain", "names", "why", "at")
    row: dict[str, Any] = dict(zip(names, got, strict=True))
    row["names"] = load(row["names"]) if row["names"] else {}
    row["at"] = instant(row["at"])
    return row
