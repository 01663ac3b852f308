"""One ask, for one person: its page, and what is answered there. Replies say what stands."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bot.people import reach
from bot.runtime.desk import Said
from bot.server import attachments, conversation
from bot.server.auth import has_csrf, reader_of, same_origin
from bot.server.bodies import NoJson, TooLarge, read_form
from bot.server.composing import fields_of
from bot.server.respond import not_there, page, said, shown_once, told
from bot.server.room import _own, _refused, desk_of, logged_out
from channels.web import render
from channels.web.limits import UPLOAD_BYTES
from store import runs
from store.dialect import Transaction


async def ask(request: Request) -> Response:
    """One ask, for one person: GET shows it and changes nothing."""
    desk, token = desk_of(request), request.path_params["token"]
    reader = await reader_of(request)
    world = reader.world if reader else await desk.world()

    def read(tx: Transaction) -> tuple[conversation.Item, str, bool] | None:
        row = desk.card_of(tx, token)
        item = conversation.card_item(tx, desk.site, world, row["to"], row) if row else None
        return (item, row["to"], reach.read_by_others(world, row)) if row and item else None

    found = await desk.committer.read(read)
    if found is None:
        return not_there(reader)
    item, to, shared = found
    if shared and reader is None:
        return logged_out(request)
    theirs = reader is None or reader.email.casefold() == to.casefold()
    note = (
        None
        if theirs
        else f"You are logged in as {reader.name if reader else ''}; this question is for {world.name_of(to)}."
    )
    response = page(
        "ask.html",
        world,
        reader=reader,
        item=item,
        whom="you" if theirs and reader else world.name_of(to),
        note=note,
        back=f"/a/{token}",
        said=said(request),
    )
    return shown_once(request, response)


async def answer(request: Request) -> Response:
    """Answers the ask of a token: as whoever is logged in, else as its own addressee (the token is theirs alone,
    unless the card stands where others read it)."""
    desk, token = desk_of(request), request.path_params["token"]
    reader = await reader_of(request)
    if not same_origin(request, strict=reader is not None):
        return _refused(request, "This did not come from a page of this room. Nothing changed.", 403)
    row = await desk.committer.read(desk.card_of, token)
    if row is not None and reader is None and reach.read_by_others(await desk.world(), row):
        return _refused(request, "This question stands where others read it: log in to answer. Nothing changed.", 401)
    run = await desk.committer.read(runs.get, row["run"]) if row is not None else None
    uploads = render.shown(row["card"]).uploads if row is not None else 0
    uploaded: dict[str, dict[str, Any]] = {}
    try:
        if uploads and run is not None and request.headers.get("content-type", "").startswith("multipart/form-data"):
            raw = await attachments.read_upload(request, most_files=uploads)
            try:
                form = {name: value for name, value in raw.multi_items() if isinstance(value, str)}
                if reader is not None and not has_csrf(request, reader, form):
                    return _refused(request, ANOTHER, 403)
                uploaded = await attachments.kept(desk, run.job, raw, "f.")
            finally:
                await raw.close()
        else:
            form = await read_form(request)
    except TooLarge:
        return _refused(
            request, f"That is too large: {UPLOAD_BYTES // 1048576} MiB a file at most. Nothing changed.", 413
        )
    except NoJson:
        return _refused(request, "This form does not read. Nothing changed.", 400)
    if reader is not None and not has_csrf(request, reader, form):
        return _refused(request, ANOTHER, 403)
    given = _given(form)
    if uploaded:
        given = {**(given if isinstance(given, dict) else {}), **uploaded}
    reply = await desk.answer_token(
        token, given, by=reader.email if reader else None, reason=form.get("reason") or None
    )
    if uploaded and run is not None and not reply.accepted:
        await attachments.dropped(desk, run.job, uploaded)
    return _told(request, form.get("back") or f"/a/{token}", reply)


ANOTHER = "This page is from another log-in; load it again. Nothing changed."


def _given(form: dict[str, str]) -> Any:
    """The answer in a card's form: its choice or text, or an object of its fields."""
    fields = fields_of(form, "f.")
    return fields if fields or "with" not in form else form["with"]


def _told(request: Request, back: str, reply: Said) -> Response:
    return told(request, _own(back), reply.text, status=reply.status, accepted=reply.accepted)
