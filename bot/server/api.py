"""The API: JSON, as the person of a bearer token. Its table of routes is `openapi.py`."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.domain.errors import WaitonError
from bot.language.problems import did_you_mean, nearest
from bot.rehearse.lines import flight_of
from bot.runtime.desk import Desk, NotThere
from bot.server import finding, hooks, live, previewing, rights
from bot.server.auth import bearer_of
from bot.server.bodies import NoJson, TooLarge, limited, read_json
from bot.server.room import desk_of, make_job
from store import runs
from store.dialect import Transaction

Call = Callable[[Request, str], Awaitable[Response]]
JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}\Z")


def for_bearer(handler: Call) -> Callable[[Request], Awaitable[Response]]:
    """A route for whoever has a token; faults of the body are told the same way everywhere."""

    async def guarded(request: Request) -> Response:
        email = await bearer_of(request)
        if email is None:
            return JSONResponse(
                {"text": "A bearer token is needed; `waiton token create EMAIL` makes one."},
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        try:
            return await handler(request, email)
        except TooLarge:
            return _said("The body is over 256 KiB. Nothing changed.", 413)
        except NoJson:
            return _said("The body must be a JSON object. Nothing changed.", 422)
        except NotThere:
            return _absent()
        except WaitonError as fault:
            return _said(f"{fault}. Nothing changed.", 409)

    return guarded


def _said(text: str, status: int) -> JSONResponse:
    return JSONResponse({"text": text}, status)


def _absent() -> JSONResponse:
    return _said("There is no such run.", 404)


async def _body(request: Request) -> dict[str, Any]:
    found = read_json(await limited(request, hooks_limit(request)))
    if not isinstance(found, dict):
        raise NoJson
    return found


def hooks_limit(request: Request) -> int:
    """A script of the full size takes more as JSON."""
    from channels.web.limits import BODY_BYTES

    path = request.url.path
    scripts = path in ("/api/runs", "/api/check") or (path.startswith("/api/scripts/") and request.method == "PUT")
    return BODY_BYTES * (2 if scripts else 1)


def _unknown(body: dict[str, Any], known: tuple[str, ...]) -> Response | None:
    """A key that nothing reads is refused: a misspelt `inputs` would start the script without them."""
    for key in body:
        if key not in known:
            hint = did_you_mean(nearest(key, known)) or f"there are {', '.join(f'`{k}`' for k in known)}"
            return _said(f"Nothing here is called `{key}`; {hint} Nothing changed.", 422)
    return None


async def start(request: Request, email: str) -> Response:
    """Checks a script and runs it."""
    desk, body = desk_of(request), await _body(request)
    if (odd := _unknown(body, ("script", "inputs", "job"))) is not None:
        return odd
    script, inputs, job = body.get("script"), body.get("inputs"), body.get("job")
    if (
        not isinstance(script, str)
        or (inputs is not None and not isinstance(inputs, dict))
        or (job is not None and not isinstance(job, str))
    ):
        return _said("Give `script` as a text, `inputs` as an object, `job` as a text. Nothing has started.", 422)
    world = await desk.world()
    if not rights.may_paste(world, email):
        return _said(f"Scripts are started by {rights.who_pastes(world)} here. Nothing has started.", 403)
    if job is not None and (found := await _job(desk, job, email)) is not None:
        return found
    seen = await desk.check(script, by=email, job=job, inputs=inputs)
    if seen.refused or seen.plan is None:
        return JSONResponse({"refused": seen.reports()}, 422)
    title = seen.plan.title or seen.plan.name or "Over the API"
    where = job or await make_job(desk, title, by=email)
    if job is not None:
        await make_job(desk, job, by=email, ident=job)
    started = await desk.start(script, by=email, job=where, inputs=inputs)
    if started.saved is not None:
        return JSONResponse({"saved": started.saved}, 201)
    if started.run is None:
        return JSONResponse({"refused": started.seen.reports()}, 422)
    return JSONResponse(await desk.show(started.run), 201, {"Location": f"/api/runs/{started.run}"})


async def _job(desk: Desk, job: str, email: str) -> Response | None:
    """Why this job cannot be used; None where it can, or is yet to be made."""

    def read(tx: Transaction) -> tuple[bool, bool]:
        return runs.get_job(tx, job) is not None, rights.reads_job(tx, job, email)

    there, readable = await desk.committer.read(read)
    if (there and readable) or (not there and JOB.match(job)):
        return None
    return _said(f"There is no job `{job}`. Nothing has started.", 404)


async def check(request: Request, email: str) -> Response:
    """Every problem of a script, or its pre-flight and notes."""
    desk, body = desk_of(request), await _body(request)
    script, inputs = body.get("script"), body.get("inputs")
    if not isinstance(script, str) or (inputs is not None and not isinstance(inputs, dict)):
        return _said("Give `script` as a text, `inputs` as an object.", 422)
    seen = await desk.check(script, by=email, inputs=inputs, starting=inputs is not None)
    if seen.refused:
        return JSONResponse({"refused": seen.reports()})
    flight = flight_of(seen, await desk.world())
    return JSONResponse({"preflight": flight, "notes": [note.message for note in seen.notes]})


async def show(request: Request, email: str) -> Response:
    desk, run_id = desk_of(request), request.path_params["run"]
    if not await desk.committer.read(rights.reads_run, run_id, email):
        return _absent()
    return JSONResponse(await desk.show(run_id))


async def find(request: Request, email: str) -> Response:
    """Runs, the newest first, `{runs, next}`."""
    desk, query = desk_of(request), request.query_params
    limit = (
        min(int(query["limit"]), finding.MOST)
        if query.get("limit", "").isdigit() and query["limit"] != "0"
        else finding.PAGE
    )
    world = await desk.world()
    try:
        found = await desk.committer.read(finding.find, email, world, query, limit)
    except finding.Unknown as fault:
        return _said(str(fault), 422)
    return JSONResponse({"runs": [await desk.show_short(row) for row in found.runs], "next": found.next})


async def answer(request: Request, email: str) -> Response:
    """Answers an ask, an approval or a doubt; OP is an id or a path."""
    desk, run_id, body = desk_of(request), request.path_params["run"], await _body(request)

    def concerned(tx: Transaction) -> bool:
        return rights.reads_run(tx, run_id, email) or rights.asked_in(tx, run_id, email)

    if not await desk.committer.read(concerned):
        return _absent()
    if (odd := _unknown(body, ("with", "reason"))) is not None:
        return odd
    reason = body.get("reason")
    if "with" not in body or (reason is not None and not isinstance(reason, str)):
        return _said("Give the answer as `with`, and `reason` as a text. Nothing changed.", 422)
    reply = await desk.answer(run_id, request.path_params["op"], body["with"], by=email, reason=reason)
    return _said(reply.text, reply.status)


async def edit(request: Request, email: str) -> Response:
    """One edit of section 10 of the language, with `why` and `rev` beside it; with `preview` nothing changes."""
    body = await _body(request)
    why, rev, trying = body.pop("why", None), body.pop("rev", None), body.pop("preview", False)
    change = body.pop("edit", body)
    if (
        not isinstance(change, dict)
        or (why is not None and not isinstance(why, str))
        or (rev is not None and (not isinstance(rev, int) or isinstance(rev, bool)))
        or not isinstance(trying, bool)
    ):
        return _said('An edit is an object such as `{"op": "scope", "to": "bo@acme.de"}`. Nothing changed.', 422)
    return await _edit(request, email, {k: v for k, v in change.items() if k != "by"}, why, rev, trying)


async def cancel(request: Request, email: str) -> Response:
    raw = await limited(request)
    body = read_json(raw) if raw.strip() else {}
    if not isinstance(body, dict):
        raise NoJson
    why = body.get("why")
    return await _edit(request, email, {"run": "cancel"}, why if isinstance(why, str) else None, None)


async def _edit(
    request: Request, email: str, change: dict[str, Any], why: str | None, rev: int | None, trying: bool = False
) -> Response:
    desk, run_id = desk_of(request), request.path_params["run"]

    def concerned(tx: Transaction) -> bool:
        return rights.reads_run(tx, run_id, email) or rights.asked_in(tx, run_id, email)

    if not await desk.committer.read(concerned):
        return _absent()
    if trying:
        said, trial = await desk.try_edit(run_id, change, by=email, why=why, rev=rev)
        seen = previewing.preview(said, trial, await desk.world(), desk.catalog)
        return JSONResponse(seen.report(), said.status)
    reply = await desk.edit(run_id, change, by=email, why=why, rev=rev)
    if reply.problems:
        return JSONResponse({"text": reply.text, "problems": list(reply.problems)}, reply.status)
    return _said(reply.text, reply.status)


async def event(request: Request, email: str) -> Response:
    """Stores an event of a declared stream."""
    desk, name, body = desk_of(request), request.path_params["stream"], await _body(request)
    stream = desk.settings.streams.get(name)
    if stream is None or stream.spec.chat:
        return _said(f"No stream is called `{name}` here.", 404)
    ident, sender = body.get("id"), body.get("from")
    if any(v is not None and (isinstance(v, bool) or not isinstance(v, (str, int))) for v in (ident, sender)):
        return _said("Give `id` and `from` as texts. Nothing was stored.", 422)
    return await hooks.store(
        request,
        stream,
        body.get("data"),
        ident=str(ident) if ident is not None else secrets.token_hex(12),
        sender=str(sender) if sender is not None else None,
        raw=body,
    )


async def events(request: Request, email: str) -> Response:
    """A run's history as server-sent events."""
    desk, run_id = desk_of(request), request.path_params["run"]

    def read(tx: Transaction) -> Any:
        return runs.get(tx, run_id) if rights.reads_run(tx, run_id, email) else None

    run = await desk.committer.read(read)
    return await live.run_events(request, email, run) if run is not None else _absent()
