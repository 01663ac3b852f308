"""The pages of saved scripts: the list, and one script with its form, what starts it, its versions and starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.domain.errors import WaitonError
from bot.domain.plan import Input
from bot.domain.values import normalise, plain, text
from bot.language.problems import Problem
from bot.runtime.saved import NoScript, starts
from bot.server import composing, rights
from bot.server.auth import Reader
from bot.server.respond import not_there, page, said, shown_once, told
from bot.server.room import _around, desk_of, make_job

HINTS = {
    "list": "one a line, or a list as JSON",
    "record": 'an object as JSON, such as `{"room": "blue"}`',
    "time": "such as `2026-06-12T09:00`",
    "file": "a path of the files here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """An input as the form shows it. `kind`: select, checkbox, long, or a type of `<input>`."""

    name: str
    kind: str
    description: str | None
    needed: bool
    value: str
    choices: tuple[str, ...] = ()
    hint: str | None = None
    fault: str | None = None


def fields_of(
    inputs: tuple[Input, ...] | None, given: Mapping[str, str] | None, faults: Mapping[str, str]
) -> list[Field]:
    """The form of a script's inputs, with what was typed (None: nothing yet), and what is wrong with it."""
    return [_field(one, given, faults.get(one.name)) for one in inputs or ()]


def _field(one: Input, given: Mapping[str, str] | None, fault: str | None) -> Field:
    kind = (
        "select"
        if one.choices
        else "password"
        if one.secret
        else {"number": "number", "bool": "checkbox", "list": "long", "record": "long"}.get(
            one.type.partition("<")[0].partition("{")[0], "text"
        )
    )
    shown = ""
    if one.has_default and not one.secret:
        default = plain(one.default)
        listed = isinstance(default, list) and all(isinstance(v, str) for v in default)
        shown = "\n".join(default) if listed else json.dumps(default) if kind == "checkbox" else text(default)
    hint = HINTS.get(one.type.partition("<")[0].partition("{")[0])
    if one.secret:
        hint = "left empty it keeps its default" if one.has_default else None
    return Field(
        name=one.name,
        kind=kind,
        description=one.description,
        needed=not one.has_default,
        value=shown if given is None else "" if one.secret else given.get(one.name, ""),
        choices=tuple(text(choice) for choice in one.choices),
        hint=hint if not one.choices else None,
        fault=fault,
    )


def values_of(inputs: tuple[Input, ...] | None, given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What was typed, by type, and what does not read, by name. An empty field gives nothing, so a default counts."""
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for one in inputs or ():
        typed, kind = given.get(one.name, ""), one.type.partition("<")[0].partition("{")[0]
        if kind == "bool" and not one.choices:
            values[one.name] = typed == "true"
        elif typed.strip() == "":
            if not one.has_default:
                faults[one.name] = "This is needed."
        elif one.choices:
            values[one.name] = next((choice for choice in one.choices if text(choice) == typed), typed)
        else:
            try:
                values[one.name] = _read(kind, typed)
            except ValueError:
                faults[one.name] = {
                    "number": f"`{typed.strip()}` is no number.",
                    "list": "This is no list: write one a line, or a list as JSON.",
                }.get(kind, 'This is no object as JSON, such as `{"room": "blue"}`.')
    return normalise(values), faults


def _read(kind: str, typed: str) -> Any:
    """A typed value of a type. Raises ValueError where it is none."""
    match kind:
        case "number":
            found = json.loads(typed.strip())
            if isinstance(found, bool) or not isinstance(found, (int, float)):
                raise ValueError
            return found
        case "list":
            if typed.lstrip().startswith("["):
                return json.loads(typed)
            return [line.strip() for line in typed.splitlines() if line.strip()]
        case "record":
            found = json.loads(typed)
            if not isinstance(found, dict):
                raise ValueError
            return found
        case "any":
            try:
                return json.loads(typed)
            except ValueError:
                return typed
        case _:
            return typed


async def index(request: Request, reader: Reader) -> Response:
    """The saved scripts, those with the words looked for."""
    desk, words = desk_of(request), request.query_params.get("q", "").strip()
    found = await desk.saved.find(reader.email, words)
    around = await desk.committer.read(_around, reader.email)
    response = page(
        "scripts.html",
        reader.world,
        reader=reader,
        here="scripts",
        found=found,
        words=words,
        said=said(request),
        **around,
    )
    return shown_once(request, response)


async def show(request: Request, reader: Reader) -> Response:
    return await _page(request, reader)


async def _page(
    request: Request,
    reader: Reader,
    *,
    given: Mapping[str, str] | None = None,
    faults: Mapping[str, str] | None = None,
    further: list[str] | None = None,
    place: str | None = None,
    draft: str | None = None,
    problems: list[dict[str, Any]] | None = None,
) -> Response:
    """The page; with what was typed and what is wrong with it, it is the answer to a form (a page that a browser asked
    for: 200, a refusal would stand in its console as a fault)."""
    desk, name = desk_of(request), request.path_params["name"]
    asked = request.query_params.get("changes", "")
    changed = int(asked) if asked.isdigit() and 1 < int(asked) < 10**9 else None
    try:
        found = await desk.saved.show(name, reader.email)
        changes = await desk.saved.diff(name, changed - 1, changed) if changed else None
    except NoScript:
        return not_there(reader)
    around = await desk.committer.read(_around, reader.email)
    response = page(
        "script.html",
        reader.world,
        reader=reader,
        here=f"scripts/{name}",
        s=found,
        starts=starts(found["plan"], reader.world, desk.clock.now()),
        fields=fields_of(found["inputs"], given, faults or {}),
        faults=further or [],
        places=around["jobs"],
        place=place or found["job"],
        changes=changes[2:] if changes is not None else None,
        changed=changed,
        draft=draft,
        problems=problems or [],
        said=said(request),
        **around,
    )
    return shown_once(request, response)


async def run(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """Starts the script with what the form holds; what is wrong stands beside its field, and nothing has started."""
    desk, name = desk_of(request), request.path_params["name"]
    try:
        found = await desk.saved.show(name, reader.email)
    except NoScript:
        return not_there(reader)
    back, given, job = f"/scripts/{quote(name)}", composing.fields_of(form, "in."), form.get("job") or None
    if not rights.may_paste(reader.world, reader.email):
        who = rights.who_pastes(reader.world)
        return told(request, back, f"Scripts are started by {who} here. Nothing has started.", status=403)
    if job is not None and not await desk.committer.read(rights.reads_job, job, reader.email):
        return not_there(reader)
    values, faults = values_of(found["inputs"], given)
    further: list[str] = []
    if not faults:
        where = job or await make_job(desk, found["title"] or name, by=reader.email)
        problems, started = await desk.run_saved(name, by=reader.email, job=where, inputs=values)
        if started is not None:
            return RedirectResponse(f"/jobs/{quote(where)}?run={started}", 303)
        faults, further = _apart(found["inputs"], problems)
    return await _page(request, reader, given=given, faults=faults, further=further, place=job)


def _apart(inputs: tuple[Input, ...] | None, problems: list[Problem]) -> tuple[dict[str, str], list[str]]:
    """What is wrong, by input, and what is wrong with none of them."""
    faults: dict[str, str] = {}
    further: list[str] = []
    for problem in problems:
        said = f"{problem.message[:1].upper()}{problem.message[1:]}."
        name = next((i.name for i in inputs or () if f"`{i.name}`" in problem.message), None)
        if name is not None and problem.code.startswith("input-"):
            faults.setdefault(name, said)
        else:
            further.append(said)
    return faults, further


async def standing(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """Pauses a script, or resumes it."""
    desk, name = desk_of(request), request.path_params["name"]
    paused = form.get("do") == "pause"
    back = f"/scripts/{quote(name)}"
    try:
        changed = await desk.saved.pause(name, paused, by=reader.email)
    except NoScript:
        return not_there(reader)
    except WaitonError as fault:
        return told(request, back, _sentence(fault), status=403)
    desk.listeners.tell("*", "*")
    stands = "`{}` is paused: people alone start it." if paused else "`{}` is started by what its `on` says again."
    more = "" if changed else " It was so before; nothing changed."
    return told(request, back, stands.format(name) + more, status=200, accepted=True)


async def rollback(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """An old version again, as the next one."""
    desk, name, version = desk_of(request), request.path_params["name"], form.get("version", "")
    back = f"/scripts/{quote(name)}"
    try:
        saved = await desk.saved.rollback(name, int(version) if version.isdigit() else 0, by=reader.email)
    except NoScript as fault:
        return told(request, back, f"{_sentence(fault)} Nothing changed.", status=404)
    except WaitonError as fault:
        return told(request, back, _sentence(fault), status=409)
    desk.listeners.tell("*", "*")
    return told(request, back, f"Version {saved['version']} is version {version} again.", status=200, accepted=True)


async def save(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """The next version of a script, from the text in its page."""
    desk, name, script = desk_of(request), request.path_params["name"], form.get("script", "").replace("\r\n", "\n")
    back = f"/scripts/{quote(name)}"
    try:
        found = await desk.saved.show(name, reader.email)
        seen, saved = await desk.saved.save(script, by=reader.email, job=found["job"], name=name)
    except NoScript:
        return not_there(reader)
    except WaitonError as fault:
        return told(request, back, _sentence(fault), status=409)
    if saved is None:
        return await _page(request, reader, draft=script, problems=seen.reports())
    same = saved["version"] == found["version"]
    words = "The plan is the same; nothing changed." if same else f"Saved as version {saved['version']}."
    return told(request, back, words, status=200, accepted=True)


async def save_run(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """Save as…: what a run was started with, under a name."""
    desk, run_id, name = desk_of(request), request.path_params["run"], form.get("name", "").strip()
    if not await desk.committer.read(rights.reads_run, run_id, reader.email):
        return not_there(reader)
    back = f"/runs/{run_id}"
    try:
        saved = await desk.saved.save_run(run_id, name, by=reader.email)
    except WaitonError as fault:
        return told(request, back, _sentence(fault), status=422)
    desk.listeners.tell("*", "*")
    return told(request, back, f"Saved as `{saved['name']}`, version {saved['version']}.", status=200, accepted=True)


def _sentence(fault: Exception) -> str:
    words = str(fault)
    return f"{words[:1].upper()}{words[1:]}."
