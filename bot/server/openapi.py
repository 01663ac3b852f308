"""The API's table of routes: the routes themselves, their OpenAPI document and the page that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as HttpRoute

from bot.engine.edits import RUN_EDITS
from bot.server import api, api_proposals, api_scripts, attachments
from bot.server.auth import reader_of
from bot.server.respond import page

TEXT = {"type": "string"}
SAID = {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}
PROBLEM = {
    "type": "object",
    "properties": {
        "line": {"type": "integer"},
        "column": {"type": "integer"},
        "length": {"type": "integer"},
        "code": TEXT,
        "message": TEXT,
        "mend": {"type": ["string", "null"]},
        "fix": {
            "type": ["object", "null"],
            "properties": {
                "line": {"type": "integer"},
                "column": {"type": "integer"},
                "length": {"type": "integer"},
                "text": TEXT,
            },
        },
    },
    "required": ["line", "column", "length", "code", "message", "mend", "fix"],
}
OP = {
    "type": "object",
    "properties": {
        "path": TEXT,
        "id": {"type": ["string", "null"]},
        "op": TEXT,
        "state": TEXT,
        "value": {},
        "by": {"type": ["string", "null"]},
        "error": {"type": ["string", "null"]},
        "reason": {"type": ["string", "null"]},
        "miss": {"type": ["string", "null"]},
        "claim": {"enum": ["claimed", "evidenced", "contradicted", None]},
        "started": {"type": ["string", "null"]},
        "ended": {"type": ["string", "null"]},
    },
    "required": ["path", "op", "state"],
}
RUN = {
    "type": "object",
    "properties": {
        "id": TEXT,
        "job": TEXT,
        "owner": TEXT,
        "script": {"type": ["string", "null"]},
        "version": {"type": ["integer", "null"]},
        "created": TEXT,
        "ended": {"type": ["string", "null"]},
        "state": {"enum": ["waiting", "paused", "done", "failed", "cancelled"]},
        "error": {"type": ["string", "null"]},
        "line": {"type": ["string", "null"]},
        "result": {},
        "ops": {"type": "array", "items": OP},
    },
    "required": ["id", "job", "owner", "state", "created"],
}
FILE = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "path": TEXT,
        "size": {"type": ["integer", "null"]},
        "how": {"enum": ["saved", "uploaded", "said"]},
        "by": TEXT,
        "at": TEXT,
        "op": TEXT,
        "url": TEXT,
    },
    "required": ["name", "path", "size", "how", "url"],
}
REFUSED = {"type": "object", "properties": {"refused": {"type": "array", "items": PROBLEM}}, "required": ["refused"]}


def record(needed: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(needed)} if needed else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """One route. `answers`: status → words and schema (None: no schema of its own)."""

    method: str
    path: str
    handler: Callable[..., Awaitable[Response]]
    name: str
    summary: str
    answers: dict[int, tuple[str, Any]]
    body: dict[str, Any] | None = None
    optional_body: bool = False
    query: dict[str, str] = field(default_factory=dict)
    example: Any = None
    media: str = "application/json"


SAVED = record(("saved",), saved=record(("name", "version"), name=TEXT, version={"type": "integer"}))
NULLABLE = {"type": ["string", "null"]}
SCRIPT = record(
    ("name", "version", "owner", "saved", "on", "paused"),
    name=TEXT,
    title=NULLABLE,
    version={"type": "integer"},
    owner=TEXT,
    job=NULLABLE,
    saved=TEXT,
    on={"type": "array", "items": TEXT},
    next=NULLABLE,
    paused={"type": "boolean"},
    told=NULLABLE,
    last={"type": ["object", "null"]},
)
PROPOSAL = record(
    ("id", "job", "for", "author", "state", "at"),
    **{"for": NULLABLE},
    id=TEXT,
    job=TEXT,
    author=TEXT,
    wish=NULLABLE,
    answer=NULLABLE,
    state={"enum": ["writing", "answered", "failed", "open", "run", "discarded", "replaced"]},
    script=NULLABLE,
    by=NULLABLE,
    run=NULLABLE,
    at=TEXT,
    ended=NULLABLE,
)
NEW_RUN = record(("script",), script=TEXT, inputs={"type": "object"}, job=TEXT)
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        method="POST",
        path="/api/runs",
        handler=api.start,
        name="startRun",
        body=NEW_RUN,
        summary="Checks a script and runs it. Without a job it opens one; a job not there yet is opened under this id.",
        example={
            "script": "- scope = ask @ana approve decline within 2d\n  > Shall we go on?\n- show scope",
            "job": "pilot",
        },
        answers={
            201: (
                'the run; of a script with `on`: {"saved": {name, version}}',
                {
                    "anyOf": [
                        RUN,
                        SAVED,
                    ]
                },
            ),
            422: (
                '{"refused": […]}: every problem with its place, and nothing has started',
                {"anyOf": [REFUSED, SAID]},
            ),
            403: ("policy does not let you start scripts", SAID),
            404: ("no such job", SAID),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/check",
        handler=api.check,
        name="check",
        body=record(("script",), script=TEXT, inputs={"type": "object"}),
        summary="Says every problem of a script, or its pre-flight and notes. Nothing starts.",
        example={"script": "- some = first files 5"},
        answers={
            200: (
                '{"refused": […]} or {"preflight", "notes"}',
                {
                    "anyOf": [
                        REFUSED,
                        record(
                            ("preflight", "notes"), preflight={"type": "object"}, notes={"type": "array", "items": TEXT}
                        ),
                    ]
                },
            ),
            422: ("no script was given", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/runs",
        handler=api.find,
        name="findRuns",
        summary="Finds runs that you may read, the newest first. `next` is the cursor of the next page.",
        query={
            "state": "waiting, paused, done, failed or cancelled",
            "person": "who started it or was asked in it: an email or a name",
            "q": "words of the script, the job's title, or a run's id",
            "cursor": "`next` of the page before",
            "limit": "50, at most 200",
        },
        answers={
            200: (
                '{"runs": […], "next"}',
                record(("runs", "next"), runs={"type": "array", "items": RUN}, next={"type": ["string", "null"]}),
            ),
            422: ("no such state, or a cursor that is not ours", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/runs/{run}",
        handler=api.show,
        name="showRun",
        summary="A run as it stands: every op with its state, what was said, edits, result.",
        answers={200: ("the run", RUN), 404: ("no such run", SAID)},
    ),
    ApiRoute(
        method="POST",
        path="/api/runs/{run}/ops/{op}/answer",
        handler=api.answer,
        name="answer",
        summary="Answers an ask, an approval or a doubt; `op` is an id or a path. A repeat gets the same reply.",
        body={"type": "object", "properties": {"with": {}, "reason": TEXT}, "required": ["with"]},
        example={"with": "approve", "reason": "it is time"},
        answers={
            200: ("what it settled", SAID),
            403: ("not yours: whose it is", SAID),
            404: ("no such run or question", SAID),
            409: ("settled otherwise: by whom and when", SAID),
            422: ("no such choice, or a reason is needed", SAID),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/runs/{run}/edits",
        handler=api.edit,
        name="edit",
        summary="One edit of what is pending, as the language gives it, with `why` and `rev` (the revision that you "
        "saw) beside it. With `preview` nothing changes: the plan's lines before and after, and what it means.",
        body={
            "type": "object",
            "properties": {
                "op": TEXT,
                "to": {},
                "within": TEXT,
                "until": TEXT,
                "skip": {"type": "boolean"},
                "withdraw": {"type": "boolean"},
                "replace": {"type": ["object", "string"]},
                "remove": {"type": "boolean"},
                "after": TEXT,
                "insert": {"type": ["array", "string"]},
                "accept": {"type": "boolean"},
                "run": {"enum": [kind.key for kind in RUN_EDITS]},
                "why": TEXT,
                "rev": {"type": "integer"},
                "preview": {"type": "boolean"},
            },
        },
        example={"op": "scope", "to": "bo@acme.de", "why": "on leave"},
        answers={
            200: (
                'done; with `preview`: {"preview", "accepted", "text", "rev", "means", "before", "after", "diff"}',
                SAID,
            ),
            403: ("only its owner can", SAID),
            404: ("no such run", SAID),
            409: ("it has moved on: what it is now", SAID),
            422: (
                'no edit, or a plan that does not stand: "problems" as `check` gives them, with "words"',
                record(("text",), text=TEXT, problems={"type": "array", "items": {"type": "object"}}),
            ),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/runs/{run}/cancel",
        handler=api.cancel,
        name="cancel",
        summary="Cancels a run: what waits is withdrawn, effects on their way run to their end.",
        body=record((), why=TEXT),
        optional_body=True,
        example={"why": "not needed any more"},
        answers={
            200: ("cancelled", SAID),
            403: ("only its owner can", SAID),
            404: ("no such run", SAID),
            409: ("it has ended: as what", SAID),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/events/{stream}",
        handler=api.event,
        name="sendEvent",
        summary="An event of a declared stream; 202 once it is stored.",
        body=record((), id=TEXT, data={}, **{"from": TEXT}),
        example={"id": "e1", "from": "u-17", "data": {"user": "u-17"}},
        answers={
            202: (
                "stored; `new` is false where its id was stored before",
                record(("id", "new"), id=TEXT, new={"type": "boolean"}),
            ),
            404: ("no such stream", SAID),
            413: ("over 256 KiB", SAID),
            422: ("the data do not fit the stream's schema", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/runs/{run}/files",
        handler=attachments.listed,
        name="listFiles",
        summary="The files of a run: what it saved, what was uploaded to its questions, what came with its messages.",
        answers={
            200: (
                '{"files": [{name, path, size, how, by, at, op, url}]}',
                record(("files",), files={"type": "array", "items": FILE}),
            ),
            404: ("no such run", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/runs/{run}/files/{path}",
        handler=attachments.download_api,
        name="getFile",
        summary="One file of a run, by the `path` or `url` of the list.",
        media="application/octet-stream",
        answers={200: ("the file", None), 404: ("no such file", SAID)},
    ),
    ApiRoute(
        method="GET",
        path="/api/runs/{run}/events",
        handler=api.events,
        name="followRun",
        media="text/event-stream",
        summary="A run's history as server-sent events, from `Last-Event-ID` on, until the run ends.",
        answers={
            200: ("text/event-stream: `id` counts from 1, `event` is what happened, `data` who, when and what", None),
            404: ("no such run", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/proposals",
        handler=api_proposals.find,
        name="findProposals",
        summary="What was said to the agent in a job, its answers, and what it proposed; the newest first.",
        query={"job": "the job's id"},
        answers={
            200: ("at most 50", record(("proposals",), proposals={"type": "array", "items": PROPOSAL})),
            404: ("no such job", SAID),
            422: ("no job was said", SAID),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/proposals",
        handler=api_proposals.ask,
        name="askAgent",
        body=record(("wish",), wish=TEXT, job=TEXT),
        summary="Puts the agent on work for a wish; its answer is then at `/api/proposals/ID`. No job: a new one.",
        example={"wish": "Find out from Ana whether we extend the pilot", "job": "pilot"},
        answers={
            202: ("it is writing", PROPOSAL),
            403: ("policy does not let you start scripts", SAID),
            404: ("no such job", SAID),
            409: ("no agent is configured", SAID),
            422: ("no wish was given", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/proposals/{proposal}",
        handler=api_proposals.show,
        name="showProposal",
        summary="How it stands: `writing`, `answered` in words, `failed`, or a script that is `open` or was decided.",
        answers={200: ("as it stands", PROPOSAL), 404: ("no such proposal", SAID)},
    ),
    ApiRoute(
        method="POST",
        path="/api/proposals/{proposal}/run",
        handler=api_proposals.run,
        name="runProposal",
        body=record(text=TEXT, inputs={"type": "object"}),
        optional_body=True,
        summary="Lets a proposal run as yours, or what you changed it into. The record names you and who wrote it.",
        example={},
        answers={
            201: ('the run; of a script with `on`: {"saved": {name, version}}', {"anyOf": [RUN, SAVED]}),
            403: ("policy does not let you start scripts", SAID),
            404: ("no such proposal", SAID),
            409: ("decided before: by whom", SAID),
            422: ('{"refused": […]}: every problem with its place', {"anyOf": [REFUSED, SAID]}),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/proposals/{proposal}/discard",
        handler=api_proposals.discard,
        name="discardProposal",
        body=record(),
        optional_body=True,
        summary="Discards a proposal: nothing of it starts.",
        example={},
        answers={
            200: ("it is discarded", SAID),
            403: ("policy does not let you start scripts", SAID),
            404: ("no such proposal", SAID),
            409: ("decided before: by whom", SAID),
        },
    ),
    ApiRoute(
        method="GET",
        path="/api/scripts",
        handler=api_scripts.find,
        name="findScripts",
        summary="The saved scripts, by name: what starts each, when next, its last run.",
        query={"q": "words of the name, the title or what starts it"},
        answers={200: ('{"scripts": […]}', record(("scripts",), scripts={"type": "array", "items": SCRIPT}))},
    ),
    ApiRoute(
        method="GET",
        path="/api/scripts/{name}",
        handler=api_scripts.show,
        name="showScript",
        summary="A saved script: its text, inputs, versions and latest starts.",
        query={"version": "an older version; without it the current one"},
        answers={
            200: (
                "the script",
                {
                    **SCRIPT,
                    "properties": {
                        **SCRIPT["properties"],
                        "script": TEXT,
                        "inputs": {"type": ["array", "null"]},
                        "versions": {"type": "array"},
                        "starts": {"type": "array"},
                    },
                },
            ),
            404: ("no such script, or no such version", SAID),
            422: ("`version` is no number", SAID),
        },
    ),
    ApiRoute(
        method="PUT",
        path="/api/scripts/{name}",
        handler=api_scripts.save,
        name="saveScript",
        summary="Saves a script as the next version of this name, and arms what its `on` says. "
        "Without a job it keeps the one it was saved in.",
        body=record(("script",), script=TEXT, job=TEXT),
        example={"script": "- n = let 2 + 3\n- show n", "job": "pilot"},
        answers={
            201: ("a new version", SAVED),
            200: ("the current version is the same already", SAVED),
            403: ("policy does not let you save scripts", SAID),
            404: ("no such job", SAID),
            422: ('{"refused": […]}, or a name that cannot be; nothing was saved', {"anyOf": [REFUSED, SAID]}),
        },
    ),
    ApiRoute(
        method="POST",
        path="/api/scripts/{name}/runs",
        handler=api_scripts.run,
        name="runScript",
        summary="Starts the current version of a saved script. Without a job it runs in the one it was saved in.",
        body=record((), inputs={"type": "object"}, job=TEXT),
        optional_body=True,
        example={"inputs": {"who": "Ana"}},
        answers={
            201: ("the run", RUN),
            403: ("policy does not let you start scripts", SAID),
            404: ("no such script or job", SAID),
            422: (
                '{"refused": […]}: what is wrong with the inputs, and nothing has started',
                {"anyOf": [REFUSED, SAID]},
            ),
        },
    ),
)


def routes() -> list[HttpRoute]:
    return [HttpRoute(_typed(r.path), api.for_bearer(r.handler), methods=[r.method]) for r in ROUTES]


def _typed(path: str) -> str:
    """Paths of ops hold slashes never, dots and brackets often; streams and files may hold anything."""
    return path.replace("{stream}", "{stream:path}").replace("{path}", "{path:path}")


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Waiton",
            "version": "1",
            "description": "Scripts that ask people, wait for evidence and keep the plan and the record as one list.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in re.findall(r"{(\w+)}", route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "description": words, "schema": TEXT}
        for name, words in route.query.items()
    ]
    answers = {**route.answers, 401: ("no bearer token that stands", SAID)}
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            str(code): {
                "description": words,
                "content": {route.media if code == 200 else "application/json": {"schema": schema or TEXT}},
            }
            for code, (words, schema) in sorted(answers.items())
        },
    }
    if route.body is not None:
        content: dict[str, Any] = {"schema": route.body}
        if route.example is not None:
            content["example"] = route.example
        found["requestBody"] = {"required": not route.optional_body, "content": {"application/json": content}}
    return found


async def openapi(request: Request) -> Response:
    return JSONResponse(document())


async def readable(request: Request) -> Response:
    """The same for people."""
    reader = await reader_of(request)
    shown = [
        {
            "method": r.method,
            "path": r.path,
            "summary": r.summary,
            "body": json.dumps(r.example, ensure_ascii=False, indent=1) if r.example is not None else None,
            "answers": sorted((code, words) for code, (words, _) in r.answers.items()),
        }
        for r in ROUTES
    ]
    return page(
        "api.html",
        reader.world if reader else None,
        reader=reader,
        routes=shown,
        email=reader.email if reader else "you@example.com",
    )
