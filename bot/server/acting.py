"""What people do to what is pending: answer a card, change an ask, stop a run. Replies say what stands."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.runtime.desk import NotThere, Said
from bot.server import conversation, rights
from bot.server.auth import Reader, has_csrf, reader_of, same_origin
from bot.server.bodies import NoJson, TooLarge, read_form
from bot.server.composing import fields_of
from bot.server.respond import not_there, page, said, shown_once, told
from bot.server.room import _own, _refused, desk_of
from store.dialect import Transaction


async def ask(request: Request) -> Response:
    """One ask, for one person: GET shows it and changes nothing."""
    desk, token = desk_of(request), request.path_params["token"]
    reader = await reader_of(request)
    world = reader.world if reader else await desk.world()

    def read(tx: Transaction) -> tuple[conversation.Item, str] | None:
        row = desk.card_of(tx, token)
        item = conversation.card_item(tx, desk.site, world, row["to"], row) if row else None
        return (item, row["to"]) if row and item else None

    found = await desk.committer.read(read)
    if found is None:
        return not_there(reader)
    item, to = found
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
    """Answers the ask of a token: as whoever is logged in, else as its own addressee (the token is theirs alone)."""
    desk, token = desk_of(request), request.path_params["token"]
    reader = await reader_of(request)
    if not same_origin(request, strict=reader is not None):
        return _refused(request, "This did not come from a page of this room. Nothing changed.", 403)
    try:
        form = await read_form(request)
    except (TooLarge, NoJson):
        return _refused(request, "This form does not read. Nothing changed.", 400)
    if reader is not None and not has_csrf(request, reader, form):
        return _refused(request, "This page is from another log-in; load it again. Nothing changed.", 403)
    reply = await desk.answer_token(
        token, _given(form), by=reader.email if reader else None, reason=form.get("reason") or None
    )
    return _told(request, form.get("back") or f"/a/{token}", reply)


def _given(form: dict[str, str]) -> Any:
    """The answer in a card's form: its choice or text, or an object of its fields."""
    fields = fields_of(form, "f.")
    return fields if fields or "with" not in form else form["with"]


def _told(request: Request, back: str, reply: Said) -> Response:
    return told(request, _own(back), reply.text, status=reply.status, accepted=reply.accepted)


async def edit(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """An edit from a page: `run` (cancel, pause, resume, retry), or of one op: to, within, withdraw, skip."""
    desk, run_id = desk_of(request), request.path_params["run"]
    back = form.get("back") or f"/runs/{run_id}"

    def visible(tx: Transaction) -> bool:
        return rights.reads_run(tx, run_id, reader.email) or rights.asked_in(tx, run_id, reader.email)

    if not await desk.committer.read(visible):
        return not_there(reader)
    change = _change(form)
    if change is None:
        return told(
            request, _own(back), "Pick whom to hand it to, or write a window such as `3d`. Nothing changed.", status=422
        )
    try:
        reply = await desk.edit(run_id, change, by=reader.email, why=form.get("why") or None)
    except NotThere:
        return not_there(reader)
    return _told(request, back, reply)


def _change(form: dict[str, str]) -> dict[str, Any] | None:
    if form.get("run"):
        return {"run": form["run"]}
    op = form.get("op", "")
    if form.get("do") in ("withdraw", "skip"):
        return {"op": op, form["do"]: True}
    if form.get("to"):
        return {"op": op, "to": form["to"]}
    return {"op": op, "within": form["within"].strip()} if form.get("within", "").strip() else None


def json_reply(reply: Said) -> JSONResponse:
    return JSONResponse({"text": reply.text}, reply.status)
