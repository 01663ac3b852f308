"""Whoever is logged in: who they are on each platform that is on, and where they want their cards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from bot.people.reach import WEB
from bot.runtime.desk import LOGIN_MINUTES
from bot.server.auth import Reader
from bot.server.respond import page, said, shown_once, told
from bot.server.room import _around, desk_of
from bot.wiring import Product
from channels.base import Inviting
from store import people
from store.dialect import Transaction

NAMES = {"slack": "Slack", "telegram": "Telegram", "line": "LINE"}
ALONE = {
    "slack": "a direct message to the bot",
    "telegram": "a private chat with the bot",
    "line": "a chat with the account alone",
}
"""Where nobody else reads what is written to the bot."""
INVITED_S = 3.0
"""How long the platform may take to say where the bot is; without it there are the words."""
ANYWHERE = "none"
"""The choice of those who want their cards wherever they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who somebody is on one platform: its `ref` of them, None where they are nobody there. `settled`: the settings say
    so, which a page cannot change."""

    channel: str
    name: str
    ref: str | None
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What to send to the bot, shown once. `address`: it does that by itself where the platform has such."""

    name: str
    where: str
    words: str
    until: datetime
    address: str | None


async def show(request: Request, reader: Reader) -> Response:
    return await _page(request, reader)


async def change(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """A post of the page: link, unlink, or where cards go. The words to link with are on the page that comes back."""
    channel = form.get("channel", "")
    match form.get("do"):
        case "link":
            return await _link(request, reader, channel)
        case "unlink":
            return await _unlink(request, reader, channel)
        case "prefer":
            return await _prefer(request, reader, channel)
        case _:
            return _told(request, "This page takes no such thing. Nothing changed.", 422)


async def _page(request: Request, reader: Reader, proof: Proof | None = None) -> Response:
    around = await desk_of(request).committer.read(_around, reader.email)
    known = identities(_product(request), reader)
    ways = _ways(known)
    person = reader.world.person(reader.email)
    prefers = person.prefers if person and person.prefers else ANYWHERE
    response = page(
        "me.html",
        reader.world,
        reader=reader,
        here="me",
        known=known,
        ways=ways,
        prefers=prefers,
        lost=None if prefers in ways else NAMES.get(prefers, prefers),
        proof=proof,
        said=None if proof else said(request),
        **around,
    )
    return shown_once(request, response)


def identities(product: Product, reader: Reader) -> list[Identity]:
    """Who the reader is on each platform that is on, by its name."""
    person = reader.world.person(reader.email)
    known = person.identities if person else {}
    given = next((p.identities for p in product.settings.people if p.email == reader.email), {})
    return [
        Identity(channel=channel, name=NAMES.get(channel, channel), ref=known.get(channel), settled=channel in given)
        for channel in sorted(product.on)
    ]


def _ways(known: list[Identity]) -> dict[str, str]:
    """Where cards can be wanted, with its name: wherever they are, the room, platforms on which something reaches
    them."""
    linked = {one.channel: one.name for one in known if one.ref is not None}
    return {ANYWHERE: "Wherever I am", WEB: "The room", **linked}


def _product(request: Request) -> Product:
    return request.app.state.product


def _told(request: Request, text: str, status: int, *, accepted: bool = False) -> Response:
    return told(request, "/me", text, status=status, accepted=accepted)


def _identity(request: Request, reader: Reader, channel: str) -> Identity | None:
    return next((one for one in identities(_product(request), reader) if one.channel == channel), None)


async def _link(request: Request, reader: Reader, channel: str) -> Response:
    one = _identity(request, reader, channel)
    if one is None:
        return _told(request, NOT_ON, 422)
    if one.settled:
        return _told(request, f"The settings say who you are on {one.name}. Nothing changed.", 409)
    desk = desk_of(request)
    until = desk.clock.now() + timedelta(minutes=LOGIN_MINUTES)
    secret = await desk.proof(reader.email)
    proof = Proof(
        name=one.name,
        where=ALONE.get(channel, "a chat with the bot alone"),
        words=f"link {secret}",
        until=until,
        address=await _invitation(request, channel, secret),
    )
    return await _page(request, reader, proof)


async def _invitation(request: Request, channel: str, secret: str) -> str | None:
    """The address that opens the bot and brings the proof along, where this process speaks to such a platform."""
    there = _product(request).post.channels.get(channel)
    if not isinstance(there, Inviting):
        return None
    try:
        found = await asyncio.wait_for(there.invite(secret), INVITED_S)
    except TimeoutError:
        return None
    return found if isinstance(found, str) else None


async def _unlink(request: Request, reader: Reader, channel: str) -> Response:
    one = _identity(request, reader, channel)
    if one is None:
        return _told(request, NOT_ON, 422)
    if one.settled:
        return _told(request, f"The settings say who you are on {one.name}. Nothing changed.", 409)
    person = reader.world.person(reader.email)
    wanted = person is not None and person.prefers == channel

    def write(tx: Transaction) -> bool:
        gone = people.unlink(tx, reader.email, channel)
        if gone and wanted:
            people.prefer(tx, reader.email, None)
        return gone

    if not await desk_of(request).committer.write(write):
        return _told(request, f"You are nobody on {one.name} already. Nothing changed.", 409)
    _product(request).people_changed()
    then = " Your cards go wherever you are." if wanted else ""
    return _told(request, f"You are nobody on {one.name} now.{then}", 200, accepted=True)


async def _prefer(request: Request, reader: Reader, channel: str) -> Response:
    ways = _ways(identities(_product(request), reader))
    if channel not in ways:
        name = NAMES.get(channel)
        said = f"You are nobody on {name} yet; link it first." if name else "There is no such place for cards."
        return _told(request, f"{said} Nothing changed.", 422)
    chosen = None if channel == ANYWHERE else channel
    await desk_of(request).committer.write(lambda tx: people.prefer(tx, reader.email, chosen))
    _product(request).people_changed()
    where = {ANYWHERE: "wherever you are", WEB: "to the room"}.get(channel, f"to {ways[channel]}")
    return _told(request, f"Your cards go {where} from now on.", 200, accepted=True)


NOT_ON = "This platform is not on here. Nothing changed."
