"""Finding runs: the same filters and pages for the API and the room."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.catalog import World
from bot.domain.record import RunRow
from bot.runtime import report
from bot.runtime.desk import Desk
from bot.server import phrases, waiting
from bot.server.auth import Reader
from bot.server.entries import Wait
from bot.server.respond import page, said, shown_once
from bot.server.room import _around, desk_of
from store import ops, runs, search
from store.dialect import Transaction

STATES = ("waiting", "running", "paused", "done", "failed", "cancelled")
"""`running` is another word for `waiting`."""
PAGE, MOST, ON_A_PAGE = 50, 200, 25


class Unknown(Exception):
    """A filter that cannot be; the message says what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Runs of one page, the newest first, and the cursor of the next."""

    runs: list[RunRow]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A run in a list."""

    id: str
    title: str
    job: str
    job_title: str
    owner: str
    state: str
    created: datetime
    ended: datetime | None
    error: str | None
    waits: list[Wait]


def find(tx: Transaction, reader: str, world: World, query: Mapping[str, str], limit: int) -> Found:
    """Runs that this reader may read, by `state`, `person`, `q` and `cursor`. Raises Unknown."""
    state = query.get("state") or None
    if state is not None and state not in STATES:
        raise Unknown(f"There is no state `{state}`; there are {', '.join(STATES[:1] + STATES[2:])}.")
    before = _cursor(query["cursor"]) if query.get("cursor") else None
    if query.get("cursor") and before is None:
        raise Unknown("This cursor is not one of ours; take `next` as it was given.")
    person = query.get("person") or None
    if person is not None:
        named = world.person(person) or next(
            (p for p in world.people if p.name.casefold() == person.removeprefix("@").casefold()), None
        )
        person = named.email if named else person
    found = search.readable(
        tx, reader, state=state, person=person, words=(query.get("q") or "").strip() or None, before=before,
        limit=limit + 1,
    )  # fmt: skip
    last = found[limit - 1] if len(found) > limit else None
    return Found(runs=found[:limit], next=_next(last.created, last.id) if last else None)


def _next(at: datetime, run_id: str) -> str:
    return base64.urlsafe_b64encode(f"{at.isoformat()} {run_id}".encode()).decode().rstrip("=")


def _cursor(given: str) -> tuple[datetime, str] | None:
    try:
        at, _, run_id = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)).decode().partition(" ")
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (moment, run_id) if run_id and moment.tzinfo is not None else None


async def show(request: Request, reader: Reader) -> Response:
    """The page of runs: a form of filters, and what they find."""
    desk, query = desk_of(request), dict(request.query_params)

    def read(tx: Transaction) -> tuple[list[Hit], str | None, str | None, dict[str, Any]]:
        try:
            got = find(tx, reader.email, reader.world, query, ON_A_PAGE)
        except Unknown as fault:
            return [], None, str(fault), _around(tx, reader.email)
        return [_hit(tx, desk, reader, run) for run in got.runs], got.next, None, _around(tx, reader.email)

    hits, following, fault, around = await desk.committer.read(read)
    kept = {key: query[key] for key in ("state", "person", "q") if query.get(key)}
    response = page(
        "runs.html", reader.world, status=422 if fault else 200, reader=reader, here="runs", hits=hits, fault=fault,
        states=STATES[:1] + STATES[2:], given=kept, said=said(request),
        more=f"/runs?{urlencode({**kept, 'cursor': following})}" if following else None,
        first=f"/runs?{urlencode(kept)}" if query.get("cursor") else None, **around,
    )  # fmt: skip
    return shown_once(request, response)


def _hit(tx: Transaction, desk: Desk, reader: Reader, run: RunRow) -> Hit:
    plan, job = desk.site.index(tx, run.plan).plan, runs.get_job(tx, run.job)
    rows = ops.StoredRows(tx, run.id, run.job).pending() if run.ended is None else []
    return Hit(
        id=run.id,
        title=plan.title
        or plan.name
        or (phrases.phrase(plan.program.ops[0], reader.world) if plan.program.ops else ""),
        job=run.job,
        job_title=(job["title"] if job else None) or run.job,
        owner=run.owner,
        state=report.state_of(run),
        created=run.created,
        ended=run.ended,
        error=run.data.get("error"),
        waits=waiting.waits_of(rows, reader.world),
    )
