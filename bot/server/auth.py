"""Who is asking: session cookies, the check of every post, bearer tokens, callers on this machine.

Nothing here decides what somebody may read (`rights.py`).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from bot.config import Settings
from bot.domain.catalog import World
from bot.runtime.desk import Desk

COOKIE = "waiton"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who is logged in, and the world as it was when they asked."""

    email: str
    name: str
    csrf: str
    world: World
    moved: int = 0
    """How much had moved when they asked: what has since, their page has not seen."""


async def reader_of(request: HTTPConnection) -> Reader | None:
    """Whose session a request carries; None without one, or where the person is no longer here."""
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return None
    desk: Desk = request.app.state.product.desk
    moved = desk.listeners.moved
    found = await desk.session(cookie)
    if found is None:
        return None
    world = await desk.world()
    person = world.person(found[0])
    return Reader(email=person.email, name=person.name, csrf=found[1], world=world, moved=moved) if person else None


async def bearer_of(request: Request) -> str | None:
    """Whose bearer token a request carries; None without one that stands, or where the person is no longer here."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not secret.strip():
        return None
    desk: Desk = request.app.state.product.desk
    email = await desk.bearer(secret.strip())
    if email is None:
        return None
    person = (await desk.world()).person(email)
    return person.email if person else None


def same_origin(request: HTTPConnection, *, strict: bool = True) -> bool:
    """Whether a post comes from a page of ours. A browser that hides the origin says so by `Sec-Fetch-Site`; without
    either only what is not `strict` passes (a token of its own protects it)."""
    origin = request.headers.get("origin")
    if origin and origin != "null":
        ours = {request.headers.get("host", ""), urlsplit(request.app.state.product.settings.url).netloc}
        return urlsplit(origin).netloc in ours
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return not strict and origin is None


def has_csrf(request: Request, reader: Reader, form: Mapping[str, str] | None) -> bool:
    """Whether a post carries its session's token, in the form or in `X-CSRF`."""
    given = request.headers.get("x-csrf") or (form.get("csrf") if form is not None else None)
    return isinstance(given, str) and hmac.compare_digest(given.encode(), reader.csrf.encode())


def of_no_page(request: HTTPConnection, settings: Settings) -> bool:
    """Whether no foreign web page made this request: a page in a browser on this machine could post to it, and a name
    that leads to this machine could stand for it."""
    origin = request.headers.get("origin")
    if origin is not None and not same_origin(request):
        return False
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    host = (request.url.hostname or "").casefold()
    own = (urlsplit(settings.url).hostname or "").casefold()
    return host in ("localhost", "127.0.0.1", "::1", own, settings.host.casefold())


def from_here(request: HTTPConnection) -> bool:
    """Whether the caller is this machine itself, not somebody behind a proxy on it."""
    if any(request.headers.get(name) for name in ("x-forwarded-for", "forwarded", "x-real-ip", "via")):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
