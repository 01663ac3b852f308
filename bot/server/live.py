"""Server-sent events: one stream a page says which job has moved; one of the API replays a run's history.

A reader that does not keep up is dropped by `Listeners`; it comes back and reads the rows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from bot.domain.record import RunRow
from bot.domain.values import plain
from bot.server import rights
from bot.server.auth import Reader
from bot.server.room import desk_of
from store import history, runs
from store.dialect import Transaction

PING_S = 15
HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


async def room(request: Request, reader: Reader) -> Response:
    """`job` events with the id of a job that moved, of those this reader may read."""
    return EventSourceResponse(_jobs(request, reader), ping=PING_S, headers=HEADERS)


async def _jobs(request: Request, reader: Reader) -> AsyncIterator[dict[str, str | int]]:
    desk = desk_of(request)
    changes = desk.listeners.changes()
    since = request.query_params.get("since", "")
    yield {"event": "hello", "data": "{}", "retry": 1000}
    if since.isascii() and since.isdigit() and desk.listeners.moved > int(since):
        # What moved between the page's making and here it has not seen.
        yield {"event": "job", "data": "{}"}
    async for job, run in ended_with(request, changes):
        visible = await desk.committer.read(rights.reads_job, job, reader.email)
        if not visible and run:
            visible = await desk.committer.read(rights.asked_in, run, reader.email)
        if visible:
            yield {"event": "job", "data": json.dumps({"job": job, "run": run})}


async def ended_with(request: Request, changes: AsyncGenerator[tuple[str, str]]) -> AsyncIterator[tuple[str, str]]:
    """What moves, until the process is about to close: an open page must not hold it up."""
    closing: asyncio.Event = request.app.state.closing
    stop = asyncio.create_task(closing.wait())
    following: asyncio.Future[tuple[str, str]] | None = None
    try:
        while not closing.is_set():
            following = asyncio.ensure_future(anext(changes))
            done, _ = await asyncio.wait({following, stop}, return_when=asyncio.FIRST_COMPLETED)
            if following not in done:
                return
            try:
                yield following.result()
            except StopAsyncIteration:
                return
    finally:
        stop.cancel()
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def run_events(request: Request, email: str, run: RunRow) -> Response:
    """A run's history from `Last-Event-ID` on, then as it grows; ends with the run."""
    after = request.headers.get("last-event-id", "0")
    start = int(after) if after.isdigit() else 0
    return EventSourceResponse(_history(request, run.id, start), ping=PING_S, headers=HEADERS)


async def _history(request: Request, run_id: str, after: int) -> AsyncIterator[dict[str, str | int]]:
    desk = desk_of(request)

    def read(tx: Transaction) -> tuple[list[dict[str, Any]], bool]:
        run = runs.get(tx, run_id)
        return history.of_run(tx, run_id), run is None or run.ended is not None

    changes = ended_with(request, desk.listeners.changes())
    following = asyncio.ensure_future(anext(changes))
    try:
        await asyncio.sleep(0)  # listening before the rows are read: nothing falls between
        while True:
            entries, ended = await desk.committer.read(read)
            for entry in entries:
                if entry["n"] > after:
                    after = entry["n"]
                    said = {k: plain(v) for k, v in entry.items() if k not in ("hash", "at")} | {
                        "at": entry["at"].isoformat()
                    }
                    yield {
                        "id": str(after),
                        "event": str(entry["what"]).replace(" ", "-"),
                        "data": json.dumps(said, ensure_ascii=False),
                    }
            if ended:
                return
            while True:
                try:
                    _, moved = await following
                except StopAsyncIteration:
                    return
                following = asyncio.ensure_future(anext(changes))
                if moved == run_id:
                    break
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
