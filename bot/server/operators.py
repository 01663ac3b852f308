"""For operators: is it up, is it ready, what does it carry."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.server.room import desk_of
from store import figures

READY_S = 3
HELP = {
    "facts": ("waiton_facts_total", "counter", "Entries of the history."),
    "deliveries": ("waiton_deliveries_queued", "gauge", "Messages and cards on their way."),
    "calls": ("waiton_calls_queued", "gauge", "Calls of tools and agents that have not ended."),
    "events": ("waiton_events_queued", "gauge", "Events that are stored and not yet offered to runs."),
    "due": ("waiton_due", "gauge", "Due times that are past and not yet applied."),
}


async def healthz(request: Request) -> Response:
    return PlainTextResponse("up\n")


async def readyz(request: Request) -> Response:
    """200 where the database answers, 503 where it does not, or the process is about to close."""
    if request.app.state.closing.is_set():
        return PlainTextResponse("closing\n", 503)
    try:
        await asyncio.wait_for(desk_of(request).committer.read(figures.ping), READY_S)
    except Exception as fault:  # whatever the driver raises, the answer is the same
        return PlainTextResponse(f"the database does not answer: {type(fault).__name__}\n", 503)
    return PlainTextResponse("ready\n")


async def metrics(request: Request) -> Response:
    desk = desk_of(request)
    found = await desk.committer.read(figures.figures, desk.clock.now())
    lines = ["# HELP waiton_runs Runs by state.", "# TYPE waiton_runs gauge"]
    counted = found["runs"]
    assert isinstance(counted, dict)
    for state in ("running", "paused", "done", "failed", "cancelled"):
        lines.append(f'waiton_runs{{state="{state}"}} {counted.get(state, 0)}')
    for key, (name, kind, help_) in HELP.items():
        lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}", f"{name} {found[key]}"]
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8")
