"""The API of what is said to the bot's agent and of what it proposes: JSON, as the person of a bearer token."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.agents.wishes import Wishes
from bot.runtime.proposals import Decided, Proposals
from bot.server import phrases, rights
from bot.server.api import _body, _job, _said, _unknown
from bot.server.bodies import NoJson, limited, read_json
from bot.server.room import desk_of, make_job
from store import proposals, wishes
from store.dialect import Transaction
from store.proposals import Proposal
from store.wishes import Wish

MOST = 50
ABSENT = "There is no such proposal. Nothing changed."


async def find(request: Request, email: str) -> Response:
    """What was said to the agent in a job and what came of it, the newest first, `{proposals}`."""
    desk, job = desk_of(request), request.query_params.get("job")
    if not job:
        return _said("Say which job: `?job=`.", 422)

    def read(tx: Transaction) -> list[dict[str, Any]] | None:
        if not rights.reads_job(tx, job, email):
            return None
        asked = {row.id: row for row in wishes.of_job(tx, job, MOST)}
        made = {row.id: row for row in proposals.of_job(tx, job, MOST)}
        found = [_told(asked.get(ident), made.get(ident)) for ident in {**asked, **made}]
        return sorted(found, key=lambda one: str(one["at"]), reverse=True)[:MOST]

    found = await desk.committer.read(read)
    return JSONResponse({"proposals": found}) if found is not None else _said(f"There is no job `{job}`.", 404)


async def show(request: Request, email: str) -> Response:
    """One of them, as it stands now."""
    found = await desk_of(request).committer.read(_one, request.path_params["proposal"], email)
    return JSONResponse(_told(*found)) if found is not None else _said(ABSENT, 404)


async def ask(request: Request, email: str) -> Response:
    """Puts the agent on work; its answer is read at the address that comes back."""
    desk, body = desk_of(request), await _body(request)
    if (odd := _unknown(body, ("wish", "job"))) is not None:
        return odd
    wish, job = body.get("wish"), body.get("job")
    if not isinstance(wish, str) or not wish.strip() or (job is not None and not isinstance(job, str)):
        return _said("Give `wish` as a text, `job` as a text. Nothing has started.", 422)
    world = await desk.world()
    if not rights.may_paste(world, email):
        return _said(f"Scripts are started by {rights.who_pastes(world)} here. Nothing has started.", 403)
    agent: Wishes | None = request.app.state.product.wishes
    if agent is None:
        return _said("No agent is configured here: ANTHROPIC_API_KEY is not set. Nothing has started.", 409)
    if job is not None and (refused := await _job(desk, job, email)) is not None:
        return refused
    where = await make_job(desk, job or phrases.short(wish, 60), by=email, ident=job)
    row = await agent.ask(wish.strip(), by=email, job=where)
    agent.begin(row)
    return JSONResponse(_told(row, None), 202, {"Location": f"/api/proposals/{row.id}"})


async def run(request: Request, email: str) -> Response:
    """Lets it run as this person's, or as `text` has it."""
    body = await _optional(request)
    if (odd := _unknown(body, ("text", "inputs"))) is not None:
        return odd
    text, inputs = body.get("text"), body.get("inputs")
    if (text is not None and not isinstance(text, str)) or (inputs is not None and not isinstance(inputs, dict)):
        return _said("Give `text` as a text, `inputs` as an object. Nothing has started.", 422)
    kept, ident = _kept(request), request.path_params["proposal"]
    if (refused := await _closed(kept, ident, email)) is not None:
        return refused
    decided = await kept.run(ident, by=email, text=text, inputs=inputs)
    if decided.run is not None and decided.accepted:
        return JSONResponse(await kept.desk.show(decided.run), 201, {"Location": f"/api/runs/{decided.run}"})
    if decided.accepted and decided.started is not None:
        return JSONResponse({"saved": decided.started.saved}, 201)
    if decided.started is not None:
        return JSONResponse({"refused": decided.started.seen.reports()}, 422)
    return _decided(decided)


async def discard(request: Request, email: str) -> Response:
    await _optional(request)
    kept, ident = _kept(request), request.path_params["proposal"]
    if (refused := await _closed(kept, ident, email)) is not None:
        return refused
    return _decided(await kept.discard(ident, by=email))


async def _optional(request: Request) -> dict[str, Any]:
    raw = await limited(request)
    body = read_json(raw) if raw.strip() else {}
    if not isinstance(body, dict):
        raise NoJson
    return body


def _kept(request: Request) -> Proposals:
    return request.app.state.product.proposals


async def _closed(kept: Proposals, ident: str, email: str) -> Response | None:
    """Why this person cannot decide it; None where they may try."""
    found = await kept.desk.committer.read(_one, ident, email)
    if found is None or found[1] is None:
        return _said(ABSENT, 404)
    world = await kept.desk.world()
    if not rights.may_paste(world, email):
        return _said(f"Scripts are started by {rights.who_pastes(world)} here. Nothing has started.", 403)
    return None


def _decided(decided: Decided) -> Response:
    said: dict[str, Any] = {"text": decided.text}
    return JSONResponse(
        said | ({"run": decided.run} if decided.run else {}),
        200 if decided.accepted else 409,
    )


def _one(tx: Transaction, ident: str, email: str) -> tuple[Wish | None, Proposal | None] | None:
    """A wish and what was proposed for it, where this person reads their job."""
    asked, made = wishes.get(tx, ident), proposals.get(tx, ident)
    job = made.job if made is not None else asked.job if asked is not None else None
    return (asked, made) if job is not None and rights.reads_job(tx, job, email) else None


def _told(asked: Wish | None, made: Proposal | None) -> dict[str, Any]:
    writing = asked is not None and asked.state == "open"
    state = (
        "writing" if writing else made.state if made else "failed" if asked is not None and asked.failed else "answered"
    )
    first = made or asked
    assert first is not None
    ended = made.ended if made is not None else asked.ended if asked is not None else None
    return {
        "id": first.id,
        "job": first.job,
        "for": made.owner if made is not None else asked.by if asked is not None else None,
        "author": first.author,
        "wish": asked.text if asked is not None else None,
        "answer": asked.said if asked is not None else None,
        "state": state,
        "script": made.text if made is not None and not writing else None,
        "by": made.by if made is not None else None,
        "run": made.run if made is not None else None,
        "at": (asked.at if asked is not None else first.at).isoformat(),
        "ended": ended.isoformat() if ended is not None else None,
    }
