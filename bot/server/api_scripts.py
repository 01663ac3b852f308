"""The API of saved scripts: JSON, as the person of a bearer token."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.domain.errors import WaitonError
from bot.domain.plan import Input
from bot.domain.values import plain
from bot.language.problems import Problem
from bot.runtime.saved import NoScript
from bot.server import rights
from bot.server.api import _body, _job, _said, _unknown
from bot.server.bodies import NoJson, limited, read_json
from bot.server.room import desk_of, make_job


async def find(request: Request, email: str) -> Response:
    """The saved scripts, by name."""
    found = await desk_of(request).saved.find(email, request.query_params.get("q", ""))
    return JSONResponse({"scripts": [_listed(script) for script in found]})


async def show(request: Request, email: str) -> Response:
    """One version of a saved script, the current one unless another is asked for."""
    name, version = request.path_params["name"], request.query_params.get("version")
    if version is not None and not version.isdigit():
        return _said("`version` is a number, counted from 1.", 422)
    try:
        found = await desk_of(request).saved.show(name, email, int(version) if version else None)
    except NoScript as fault:
        return _said(f"{str(fault)[:1].upper()}{str(fault)[1:]}.", 404)
    return JSONResponse(
        {
            **_listed(found),
            "script": found["text"],
            "inputs": [_input(given) for given in found["inputs"]] if found["inputs"] is not None else None,
            "versions": [
                {"version": v["version"], "owner": v["owner"], "saved": v["created"].isoformat()}
                for v in found["versions"]
            ],
            "starts": [_dated(start) for start in found["starts"]],
        }
    )


async def run(request: Request, email: str) -> Response:
    """Starts the current version, in the job given, else in the one it was saved in."""
    desk, name = desk_of(request), request.path_params["name"]
    raw = await limited(request)
    body = read_json(raw) if raw.strip() else {}
    if not isinstance(body, dict):
        raise NoJson
    if (odd := _unknown(body, ("inputs", "job"))) is not None:
        return odd
    inputs, job = body.get("inputs"), body.get("job")
    if (inputs is not None and not isinstance(inputs, dict)) or (job is not None and not isinstance(job, str)):
        return _said("Give `inputs` as an object, `job` as a text. Nothing has started.", 422)
    world = await desk.world()
    if not rights.may_paste(world, email):
        return _said(f"Scripts are started by {rights.who_pastes(world)} here. Nothing has started.", 403)
    try:
        kept = await desk.saved.show(name, email)
    except NoScript as fault:
        return _said(f"{str(fault)[:1].upper()}{str(fault)[1:]}. Nothing has started.", 404)
    where = job if job is not None else kept["job"]
    if where is not None and (odd := await _job(desk, where, email)) is not None:
        return odd
    where = await make_job(desk, where or name, by=email, ident=where)
    problems, started = await desk.run_saved(name, by=email, job=where, inputs=inputs)
    if started is None:
        return JSONResponse({"refused": [report(problem) for problem in problems]}, 422)
    return JSONResponse(await desk.show(started), 201, {"Location": f"/api/runs/{started}"})


async def save(request: Request, email: str) -> Response:
    """Saves a script as the next version of this name, and arms what starts it."""
    desk, name, body = desk_of(request), request.path_params["name"], await _body(request)
    if (odd := _unknown(body, ("script", "job"))) is not None:
        return odd
    script, job = body.get("script"), body.get("job")
    if not isinstance(script, str) or (job is not None and not isinstance(job, str)):
        return _said("Give `script` as a text, `job` as a text. Nothing changed.", 422)
    world = await desk.world()
    if not rights.may_paste(world, email):
        return _said(f"Scripts are saved by {rights.who_pastes(world)} here. Nothing changed.", 403)
    if job is not None and (odd := await _job(desk, job, email)) is not None:
        return odd
    before = await _current(request, email, name)
    where = job if job is not None else before["job"] if before is not None else None
    if where is not None and await _job(desk, where, email) is not None:
        where = None  # it was saved in a job that this person cannot read
    try:
        where = await make_job(desk, where or name, by=email, ident=where)
        seen, saved = await desk.saved.save(script, by=email, job=where, name=name)
    except WaitonError as fault:
        return _said(f"{str(fault)[:1].upper()}{str(fault)[1:]}. Nothing changed.", 422)
    if saved is None:
        return JSONResponse({"refused": seen.reports()}, 422)
    new = before is None or before["version"] != saved["version"]
    return JSONResponse({"saved": saved}, 201 if new else 200)


async def _current(request: Request, email: str, name: str) -> dict[str, Any] | None:
    try:
        return await desk_of(request).saved.show(name, email)
    except NoScript:
        return None


def report(problem: Problem) -> dict[str, Any]:
    """A problem of a script whose text was not sent along: it has no place."""
    return {
        "line": 1,
        "column": 1,
        "length": 1,
        "code": problem.code,
        "message": problem.message,
        "mend": problem.mend,
        "fix": None,
    }


def _listed(script: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "title", "version", "owner", "job", "on", "paused", "told")
    return {
        **{key: script[key] for key in keys},
        "saved": script["saved"].isoformat(),
        "next": script["next"].isoformat() if script["next"] else None,
        "last": _dated(script["last"]) if script["last"] else None,
    }


def _dated(start: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in start.items()}


def _input(given: Input) -> dict[str, Any]:
    return {
        "name": given.name,
        "type": given.type,
        **({"default": plain(given.default)} if given.has_default and not given.secret else {}),
        "needed": not given.has_default,
        "choices": list(given.choices) or None,
        "description": given.description,
        "secret": given.secret,
    }
