"""One ask, for one person: its page, and what is answered there. Replies say what stands."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bot.runtime.desk import Said
from bot.server import conversation
from bot.server.auth import has_csrf, reader_of, same_origin
from bot.server.bodies import NoJson, TooLarge, read_form
from bot.server.composing import fields_of
from bot.server.respond import not_there, page, said, shown_once, told
from bot.server.room import _own, _refused, desk_of
from store import outbox
from store.dialect import Transaction


async def ask(request: Request) -> Response:
    """One ask, for one person: GET shows it and changes nothing."""
    desk, token = desk_of(request), request.path_params["token"]
    reader = await reader_of(request)
    world = reader.world if reader else await desk.world()

    def read(tx: Transaction) -> tuple[conversation.Item, str] | None:
        row = outbox.by_token(tx, token)
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
