"""What agents and tools leave behind while they are at work: answers of an `each`, how far it is, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.cost import Usage
from bot.domain.values import dump, load
from store import runs
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import element, progress, spent

_COUNTS = ("calls", "input", "output", "written", "cached", "usd", "unpriced")
_MINE = (element.c.ws == b("ws"), element.c.run == b("run"), element.c.path == b("path"))
_ADD_ELEMENT = Statement(
    lambda insert: insert(element).values({c.name: b(c.name) for c in element.c}).on_conflict_do_nothing()
)
_ELEMENTS = Statement(sa.select(element.c.at, element.c.value).where(*_MINE, element.c.attempt == b("attempt")))
_DROP_ELEMENTS = Statement(sa.delete(element).where(*_MINE))
_SPEND = Statement(
    lambda insert: (
        insert(spent)
        .values({c.name: b(c.name) for c in spent.c})
        .on_conflict_do_update(
            index_elements=["ws", "run", "path"], set_={n: spent.c[n] + b(n) for n in _COUNTS}
        )
    )
)  # fmt: skip
_SPENT = Statement(
    sa.select(spent.c.path, *(spent.c[n] for n in _COUNTS)).where(spent.c.ws == b("ws"), spent.c.run == b("run"))
)
_TOTAL = Statement(sa.select(sa.func.sum(spent.c.usd)).where(spent.c.ws == b("ws"), spent.c.run == b("run")))
_PROGRESS = ("done", "total", "failed", "said", "at")
_PUT_PROGRESS = Statement(
    lambda insert: (
        insert(progress)
        .values({c.name: b(c.name) for c in progress.c})
        .on_conflict_do_update(index_elements=["ws", "run", "path"], set_={n: b(n) for n in _PROGRESS})
    )
)
_OF_RUN = Statement(
    sa.select(progress.c.path, *(progress.c[n] for n in _PROGRESS), progress.c.since).where(
        progress.c.ws == b("ws"), progress.c.run == b("run")
    )
)
_DROP_PROGRESS = Statement(
    sa.delete(progress).where(progress.c.ws == b("ws"), progress.c.run == b("run"), progress.c.path == b("path"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an op is. `total` 0: not known. `said`: in the tool's own words."""

    done: int
    total: int = 0
    failed: int = 0
    said: str | None = None
    since: datetime
    at: datetime


def add_elements(tx: Transaction, work: dict[str, Any], answers: Sequence[tuple[int, Any]]) -> None:
    """Saves answers of an `each` as they come."""
    mine = {"ws": tx.ws, "run": runs.key(tx, work["run"]), "path": work["path"], "attempt": work["attempt"]}
    _ADD_ELEMENT.many(tx, [{**mine, "at": at, "value": dump(value)} for at, value in answers])


def elements(tx: Transaction, work: dict[str, Any]) -> dict[int, Any]:
    """The answers saved of this question, by index."""
    mine = {"ws": tx.ws, "run": runs.key(tx, work["run"]), "path": work["path"], "attempt": work["attempt"]}
    return {g[0]: load(g[1]) for g in _ELEMENTS.all(tx, mine)}


def spend(tx: Transaction, run_id: str, path: str, usage: Usage) -> None:
    """Adds what was used to what the op had used before."""
    _SPEND.run(tx, {"ws": tx.ws, "run": runs.key(tx, run_id), "path": path, **{n: getattr(usage, n) for n in _COUNTS}})


def spent_by(tx: Transaction, run_id: str) -> dict[str, Usage]:
    """What agents used in a run, by the op's path."""
    return {
        g[0]: Usage(**dict(zip(_COUNTS, g[1:], strict=True)))
        for g in _SPENT.all(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)})
    }


def total_spent(tx: Transaction, run_id: str) -> int:
    """What agents used in a run, in millionths of a dollar."""
    got = _TOTAL.one(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)})
    return int(got[0] or 0) if got else 0


def put_progress(tx: Transaction, run_id: str, path: str, now: Progress) -> None:
    _PUT_PROGRESS.run(
        tx,
        {
            "ws": tx.ws,
            "run": runs.key(tx, run_id),
            "path": path,
            "done": now.done,
            "total": now.total,
            "failed": now.failed,
            "said": now.said,
            "since": micros(now.since),
            "at": micros(now.at),
        },
    )


def progress_of(tx: Transaction, run_id: str) -> dict[str, Progress]:
    """How far the ops of a run are that are at work, by path."""
    found: dict[str, Progress] = {}
    for path, done, total, failed, said, at, since in _OF_RUN.all(tx, {"ws": tx.ws, "run": runs.key(tx, run_id)}):
        begun, now = instant(since), instant(at)
        assert begun is not None and now is not None
        found[path] = Progress(done=done, total=total, failed=failed, said=said, since=begun, at=now)
    return found


def over(tx: Transaction, work: dict[str, Any], *, failed: bool = False) -> None:
    """The call has ended: its answers are the op's value now, and it is no way along any more. One that `failed` leaves
    its answers to a further attempt."""
    mine = {"ws": tx.ws, "run": runs.key(tx, work["run"]), "path": work["path"]}
    if not failed:
        _DROP_ELEMENTS.run(tx, mine)
    _DROP_PROGRESS.run(tx, mine)
