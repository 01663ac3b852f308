"""The room: jobs on the left, a conversation with its composer, the plan on the right; the inbox."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from bot.domain.errors import WaitonError
from bot.runtime.desk import Desk, new_run_id
from bot.runtime.proposals import Proposals
from bot.server import composing, conversation, examples, phrases, proposed, rights
from bot.server.auth import Reader, has_csrf, reader_of, same_origin
from bot.server.bodies import NoJson, TooLarge, read_form
from bot.server.respond import not_there, page, plain_page, render, said, shown_once, told, wants_json
from channels.web import streams
from store import outbox, runs, scripts
from store.dialect import Transaction

Handler = Callable[[Request, Reader], Awaitable[Response]]
Posted = Callable[[Request, Reader, dict[str, str]], Awaitable[Response]]


TOLD_FOR = timedelta(days=7)
NOTICES_SHOWN = 10
"""What was said to somebody outside any run (a saved script that did not start) stands so long, and so much of it."""


def desk_of(request: Request) -> Desk:
    return request.app.state.product.desk


def for_reader(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A page for whoever is logged in; others are told how to log in."""

    async def guarded(request: Request) -> Response:
        reader = await reader_of(request)
        return await handler(request, reader) if reader is not None else logged_out(request)

    return guarded


def for_post(handler: Posted) -> Callable[[Request], Awaitable[Response]]:
    """A post of a page of ours, by whoever is logged in, with the session's token."""

    async def guarded(request: Request) -> Response:
        if not same_origin(request):
            return _refused(request, "This did not come from a page of this room. Nothing changed.", 403)
        reader = await reader_of(request)
        if reader is None:
            return logged_out(request)
        try:
            form = await read_form(request)
        except TooLarge:
            return _refused(request, "That is too large: 256 KiB at most. Nothing changed.", 413)
        except NoJson:
            return _refused(request, "This form does not read. Nothing changed.", 400)
        if not has_csrf(request, reader, form):
            return _refused(request, "This page is from another log-in; load it again. Nothing changed.", 403)
        return await handler(request, reader, form)

    return guarded


def logged_out(request: Request) -> Response:
    if wants_json(request):
        return JSONResponse({"text": "You are logged out. Ask for a new link.", "accepted": False}, 401)
    return plain_page(
        "Log in",
        "You are not logged in here.",
        "On the machine that runs this, `waiton login you@example.com` prints a link that "
        "logs you in: once, within 15 minutes.",
        status=401,
    )


def _refused(request: Request, text: str, status: int) -> Response:
    return (
        JSONResponse({"text": text, "accepted": False}, status)
        if wants_json(request)
        else plain_page("Nothing changed", text, status=status)
    )


def _around(tx: Transaction, email: str) -> dict[str, Any]:
    jobs, waiting = conversation.sidebar(tx, email)
    return {"jobs": jobs, "waiting": waiting, "scripts": scripts.names(tx)}


async def home(request: Request, reader: Reader) -> Response:
    """The job with the latest run that this reader may read, or a welcome."""
    desk = desk_of(request)

    def latest(tx: Transaction) -> str | None:
        for run in runs.find(tx, limit=50):
            if rights.reads_job(tx, run.job, reader.email):
                return run.job
        found, _ = conversation.sidebar(tx, reader.email)
        return found[0].id if found else None

    return await _job_page(request, reader, await desk.committer.read(latest))


async def job(request: Request, reader: Reader) -> Response:
    return await _job_page(request, reader, request.path_params["job"])


async def _job_page(
    request: Request,
    reader: Reader,
    job_id: str | None,
    *,
    text: str = "",
    state: composing.State | None = None,
    proposal: str | None = None,
    status: int = 200,
) -> Response:
    desk = desk_of(request)
    before = _instant(request.query_params.get("before"))

    def read(tx: Transaction) -> tuple[conversation.Talk | None, dict[str, Any]]:
        talk = (
            conversation.talk(
                tx, desk.site, reader.world, reader.email, job_id, chosen=request.query_params.get("run"), before=before
            )
            if job_id is not None
            else None
        )
        return talk, _around(tx, reader.email)

    talk, around = await desk.committer.read(read)
    if job_id is not None and talk is None:
        return not_there(reader)
    agent, replaced = proposed.asked_of(request, reader), ""
    if not text and job_id and (ident := request.query_params.get("proposal")):
        row = await request.app.state.product.proposals.get(ident)
        if row is not None and row.job == job_id:
            text, replaced = row.text, row.id
    if not text and (name := request.query_params.get("example")):
        text = examples.example(name, reader.world, reader.email) or ""
    if state is None:
        state = await composing.state_of(desk, reader.world, text, by=reader.email, job=job_id, given={})
    replaced = replaced or proposal or ""
    state.agent, state.replaces = agent.name if agent else None, await _replaced(request, reader, replaced, job_id)
    back = f"/jobs/{quote(job_id)}" if job_id else "/"
    response = page(
        "job.html",
        reader.world,
        status=status,
        reader=reader,
        talk=talk,
        here=job_id,
        job=job_id,
        text=text,
        state=state,
        action=f"{back}/runs" if job_id else "/jobs",
        back=back,
        examples=examples.offered(reader.world),
        proposal=replaced if state.replaces else "",
        cards=await proposed.cards(desk, reader.world, reader.email, talk.items) if talk else {},
        said=said(request),
        **around,
    )
    return shown_once(request, response)


async def _replaced(request: Request, reader: Reader, ident: str, job_id: str | None) -> str | None:
    """Whose open proposal of this job a text would run in place of."""
    row = await request.app.state.product.proposals.get(ident) if ident and job_id else None
    return (
        phrases.by_whom(row.author, reader.world)
        if row is not None and row.job == job_id and row.state == "open"
        else None
    )


def _instant(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


async def new_job(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """Opens a job; with a script in the form it runs there at once."""
    desk = desk_of(request)
    title = form.get("title", "").strip()[:80]
    text = form.get("script", "")
    if not title and not text.strip():
        return told(request, "/", "A job needs a name. Nothing changed.", status=422)
    if text.strip() and form.get("do") == "ask" and proposed.asked_of(request, reader) is not None:
        return await proposed.ask(request, reader, text, await make_job(desk, _title(text), by=reader.email))
    if text.strip() and form.get("do", composing.RUN) not in (composing.RUN, composing.AS_WRITTEN):
        return await _composed(request, reader, None, form)
    if text.strip():
        state = await composing.state_of(
            desk, reader.world, text, by=reader.email, job=None, given=composing.fields_of(form, "in.")
        )
        if state.blocked or _holds(state, form):
            return await _job_page(request, reader, None, text=text, state=state, status=422)
    customer = {key: form[f"customer.{key}"].strip() for key in CUSTOMER if form.get(f"customer.{key}", "").strip()}
    if customer.get("email") and "@" not in customer["email"]:
        return told(request, "/", f"`{customer['email']}` is no email. Nothing changed.", status=422)
    made = await make_job(
        desk, title or "First job", by=reader.email, private=form.get("private") == "1", customer=customer or None
    )
    return (
        await run_script(request, reader, form, made) if text.strip() else RedirectResponse(f"/jobs/{quote(made)}", 303)
    )


def _title(text: str) -> str:
    """What a job is called that begins with words to the agent."""
    return phrases.short(text, 60)


CUSTOMER = ("name", "email", "id")
"""What a job knows of its customer: scripts name it as `customer.email` and the like."""


async def make_job(
    desk: Desk,
    title: str,
    *,
    by: str,
    private: bool = False,
    ident: str | None = None,
    customer: dict[str, str] | None = None,
) -> str:
    """A job under this id, or a new one made of its title; gives the id."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.casefold()).strip("-")[:40] or "job"
    job_id = ident or f"{slug}-{new_run_id(desk.clock.now())[-4:]}"
    await desk.committer.write(
        lambda tx: runs.add_job(
            tx,
            job_id,
            title,
            streams.conversation(job_id),
            desk.clock.now(),
            members=(by,) if private else (),
            customer=customer,
        )
    )
    return job_id


async def post_script(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """The composer's post: run, check, mend or send as a message."""
    job_id = request.path_params["job"]
    if not await desk_of(request).committer.read(rights.reads_job, job_id, reader.email):
        return not_there(reader)
    do = form.get("do", composing.RUN)
    if do == "message":
        return await _message(request, reader, form, job_id)
    if do == "ask":
        return await proposed.ask(request, reader, form.get("script", ""), job_id)
    if do not in (composing.RUN, composing.AS_WRITTEN):
        return await _composed(request, reader, job_id, form)
    return await run_script(request, reader, form, job_id)


def _holds(state: composing.State, form: dict[str, str]) -> bool:
    """Whether a run waits at its pre-flight: something in it has not been seen by whoever starts it."""
    return bool(state.waits) and form.get("do") != composing.AS_WRITTEN


async def _composed(request: Request, reader: Reader, job_id: str | None, form: dict[str, str]) -> Response:
    """The page with the text as it was, or mended, and what is said of it."""
    desk = desk_of(request)
    text, given = form.get("script", ""), composing.fields_of(form, "in.")
    state = await composing.state_of(desk, reader.world, text, by=reader.email, job=job_id, given=given)
    kind, _, which = form.get("do", "").partition(":")
    if kind == "discard":
        return RedirectResponse(f"/jobs/{quote(job_id)}" if job_id else "/", 303)
    if kind in ("mend", "wait") and which.isdigit():
        text = composing.mended(text, state.problems if kind == "mend" else state.waits, int(which))
        state = await composing.state_of(desk, reader.world, text, by=reader.email, job=job_id, given=given)
    if kind == "rehearse":
        state.rehearsal = await composing.rehearsed(
            desk, reader.world, text, by=reader.email, job=job_id, given=given, turn=request.app.state.rehearsing
        )
    return await _job_page(request, reader, job_id, text=text, state=state, proposal=form.get("proposal"))


async def run_script(request: Request, reader: Reader, form: dict[str, str], job_id: str) -> Response:
    desk = desk_of(request)
    text, given = form.get("script", ""), composing.fields_of(form, "in.")
    back = f"/jobs/{quote(job_id)}"
    if not rights.may_paste(reader.world, reader.email):
        return told(
            request,
            back,
            f"Scripts are started by {rights.who_pastes(reader.world)} here. Nothing has started.",
            status=403,
        )
    state = await composing.state_of(desk, reader.world, text, by=reader.email, job=job_id, given=given)
    if state.blocked or _holds(state, form):
        if wants_json(request):
            return JSONResponse({"text": state.hint, "accepted": False}, 422)
        return await _job_page(
            request, reader, job_id, text=text, state=state, status=422, proposal=form.get("proposal")
        )
    inputs = composing.input_values(state.inputs, given) or None
    if await _replaced(request, reader, form.get("proposal", ""), job_id) is not None:
        return await _run_proposed(request, reader, form["proposal"], text, inputs, back)
    try:
        started = await desk.start(text, by=reader.email, job=job_id, inputs=inputs)
    except WaitonError as fault:
        return told(request, back, str(fault), status=409)
    if started.saved:
        saved = started.saved
        desk.listeners.tell(job_id, "")
        return told(
            request, back, f"Saved as `{saved['name']}`, version {saved['version']}.", status=200, accepted=True
        )
    if started.refused:
        return told(request, back, "It is refused now; check it again. Nothing has started.", status=422)
    if wants_json(request):
        return JSONResponse({"text": "It runs.", "accepted": True, "run": started.run, "job": job_id}, 201)
    return RedirectResponse(f"{back}?run={started.run}", 303)


async def _run_proposed(
    request: Request, reader: Reader, ident: str, text: str, inputs: dict[str, Any] | None, back: str
) -> Response:
    """Runs what the composer was filled with by a proposal: as it is, or what it was changed into in its place."""
    kept: Proposals = request.app.state.product.proposals
    row = await kept.get(ident)
    same = row is not None and text.replace("\r\n", "\n").strip() == row.text.strip()
    decided = await kept.run(ident, by=reader.email, text=None if same else text, inputs=inputs, instead=not same)
    if decided.run is None or not decided.accepted:
        status = 200 if decided.accepted else 409
        return told(request, back, decided.text, status=status, accepted=decided.accepted)
    if wants_json(request):
        return JSONResponse({"text": decided.text, "accepted": True, "run": decided.run}, 201)
    return RedirectResponse(f"{back}?run={decided.run}", 303)


async def _message(request: Request, reader: Reader, form: dict[str, str], job_id: str) -> Response:
    """What somebody writes in the room is an event of `web:message`."""
    desk, text = desk_of(request), form.get("script", "").strip()
    back = f"/jobs/{quote(job_id)}"
    if not text:
        return told(request, back, "An empty message says nothing. Nothing changed.", status=422)
    await _event(desk, streams.MESSAGE, secrets.token_hex(12), reader, job_id, text)
    desk.listeners.tell(job_id, "")
    return told(request, back, "Sent.", status=200, accepted=True)


async def tap(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """A button of a message that a script sent into the room: an event of `web:tap`, and of `web:message`."""
    desk = desk_of(request)

    def read(tx: Transaction) -> tuple[str, list[str]] | None:
        row = outbox.by_seq(tx, int(request.path_params["seq"]))
        run = runs.get(tx, row["run"]) if row else None
        if row is None or run is None or not rights.reads_run(tx, run.id, reader.email):
            return None
        return run.job, [
            str(b.get("value", b.get("label")))
            for m in row["card"].get("messages") or []
            for b in m.get("buttons") or []
        ]

    found = await desk.committer.read(read)
    back = form.get("back") or "/"
    if found is None or form.get("value") not in found[1]:
        return told(request, _own(back), "This button is not here any more. Nothing changed.", status=404)
    ident = secrets.token_hex(12)  # one tap is one event, on two streams
    for stream in (streams.MESSAGE, streams.TAP):
        await _event(desk, stream, ident, reader, found[0], form["value"], tapped=True)
    return told(request, _own(back), f"You chose `{form['value']}`.", status=200, accepted=True)


async def _event(
    desk: Desk, stream: str, ident: str, reader: Reader, job_id: str, text: str, *, tapped: bool = False
) -> None:
    body = streams.event(
        ident=ident,
        text=text,
        job=job_id,
        email=reader.email,
        name=reader.name,
        tap=tapped,
        at=desk.clock.now().isoformat(),
    )
    await desk.event(stream, body, ident=ident, sender=reader.email, conversation=streams.conversation(job_id))


async def check(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """What the composer says of a text, for the page's script: `{html, hint, marks, ready, label, word}`."""
    desk, job_id = desk_of(request), form.get("job") or None
    if job_id and not await desk.committer.read(rights.reads_job, job_id, reader.email):
        return JSONResponse({"text": "This job is not here."}, 404)
    state = await composing.state_of(
        desk, reader.world, form.get("script", ""), by=reader.email, job=job_id, given=composing.fields_of(form, "in.")
    )
    agent = proposed.asked_of(request, reader)
    state.agent = agent.name if agent else None
    state.replaces = await _replaced(request, reader, form.get("proposal", ""), job_id)
    marks = [{k: p[k] for k in ("line", "column", "length")} for p in state.problems]
    html = render("composer_state.html", reader.world, state=state, job=job_id)
    return JSONResponse(
        {
            "html": html,
            "hint": state.hint,
            "marks": marks,
            "ready": state.ready,
            "label": state.label,
            "word": state.word,
        }
    )


async def rehearse(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """Every branch of the composer's text, for the page's script: `{html}`. Nothing is stored or sent."""
    desk, job_id = desk_of(request), form.get("job") or None
    if job_id and not await desk.committer.read(rights.reads_job, job_id, reader.email):
        return JSONResponse({"text": "This job is not here."}, 404)
    found = await composing.rehearsed(
        desk,
        reader.world,
        form.get("script", ""),
        by=reader.email,
        job=job_id,
        given=composing.fields_of(form, "in."),
        turn=request.app.state.rehearsing,
    )
    return JSONResponse({"html": render("rehearsal.html", reader.world, rehearsal=found)})


async def inbox(request: Request, reader: Reader) -> Response:
    """Everything that waits on this reader, oldest first."""
    desk = desk_of(request)

    def read(tx: Transaction) -> tuple[list[conversation.Item], list[dict[str, Any]], dict[str, Any]]:
        found = [
            conversation.card_item(tx, desk.site, reader.world, reader.email, row)
            for row in conversation.open_cards(tx, reader.email)
        ]
        cards = [item for item in found if item is not None and item.state == "mine"]
        told = [n for n in outbox.find(tx, run_id="", to=reader.email) if n["at"] > desk.clock.now() - TOLD_FOR]
        return cards, told[: -NOTICES_SHOWN - 1 : -1], _around(tx, reader.email)

    cards, notices, around = await desk.committer.read(read)
    return shown_once(
        request,
        page(
            "inbox.html",
            reader.world,
            reader=reader,
            cards=cards,
            notices=notices,
            here="inbox",
            said=said(request),
            **around,
        ),
    )


def _own(back: str) -> str:
    """Where to go back to: only within the room."""
    return back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/"
