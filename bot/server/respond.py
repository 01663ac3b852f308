"""Pages: templates, words for moments, the headers that every answer carries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from bot.domain.catalog import World
from bot.engine import words
from bot.language import durations
from bot.server.static import asset

CSP = (
    "default-src 'self'; img-src 'self' https: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "object-src 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_TICKS = re.compile(r"`([^`\n]+)`")
_LINKS = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]]")
Scope = MutableMapping[str, Any]


class Guard:
    """Puts the headers on every answer; pages of people are kept by nobody."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Scope) -> None:
            if message["type"] == "http.response.start":
                held = message.setdefault("headers", [])
                held.extend(HEADERS)
                if not any(name.lower() == b"cache-control" for name, _ in held):
                    held.append((b"cache-control", b"no-store"))
            await send(message)

        await self.app(scope, receive, guarded)


@lru_cache(maxsize=1)
def templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(ticks=ticks, links=links)
    helpers: dict[str, Any] = made.globals
    helpers.update(asset=asset, file_at=file_at)
    return made


def file_at(run: str, path: str) -> str:
    """Where a file of a run is handed out."""
    return f"/runs/{quote(run)}/files/{quote(path.lstrip('/'))}"


def ticks(text: str) -> Markup:
    """A text of ours with the script's words set apart."""
    return Markup(_TICKS.sub(r"<code>\1</code>", str(escape(text))))


def links(text: str) -> Markup:
    """A message that somebody wrote: plain, its addresses as links."""
    out, at = Markup(), 0
    for found in _LINKS.finditer(text):
        out += escape(text[at : found.start()])
        out += Markup('<a href="{0}" rel="noopener noreferrer nofollow" target="_blank">{0}</a>').format(found[0])
        at = found.end()
    return out + escape(text[at:])


def moment(world: World, at: datetime | None, *, full: bool = False) -> Markup:
    """An instant as the workspace reads it, for the reader's browser to put into their own zone."""
    if at is None:
        return Markup()
    if full:
        here = at.astimezone(durations.zone(world.workspace))
        said = f"{here:%a} {here.day} {here:%b}, {here:%H:%M}"
    else:
        said = words.clock(at, world, world.now)
    return Markup('<time datetime="{}" data-as="{}">{}</time>').format(
        at.isoformat(), "full" if full else "clock", said
    )


_MOMENT = re.compile(r"⟨(\d{4}-\d\d-\d\dT[\d:.]+\+00:00)⟩")


def marked(at: datetime) -> str:
    """A moment in a text of ours, for `timed` to find."""
    return f"⟨{at.astimezone(UTC).isoformat()}⟩"


def timed(text: Markup, world: World) -> Markup:
    """A text of ours whose marked moments are put into the reader's zone."""
    return Markup(_MOMENT.sub(lambda found: str(moment(world, datetime.fromisoformat(found[1]))), str(escape(text))))


def render(template: str, world: World | None = None, **values: Any) -> str:
    def when(at: datetime | None, full: bool = False) -> Markup:
        return moment(world, at, full=full) if world is not None else Markup()

    def moments(text: Markup) -> Markup:
        return timed(text, world) if world is not None else text

    return templates().get_template(template).render(when=when, moments=moments, world=world, **values)


def page(template: str, world: World | None = None, *, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, world, **values), status)


def plain_page(
    title: str, *paragraphs: str, status: int = 200, reader: Any = None, link: tuple[str, str] | None = None
) -> HTMLResponse:
    """One heading and a few lines."""
    return page(
        "plain.html",
        reader.world if reader else None,
        status=status,
        title=title,
        paragraphs=paragraphs,
        reader=reader,
        link=link,
    )


def not_there(reader: Any = None) -> HTMLResponse:
    """What is not there and what may not be seen look the same."""
    return plain_page(
        "This is not here",
        "There is nothing at this address that you can read.",
        status=404,
        reader=reader,
        link=("/", "Go to the room"),
    )


def wants_json(request: Request) -> bool:
    """Whether a post comes from the room's own script, which shows the reply itself."""
    return request.headers.get("accept", "").startswith("application/json")


def told(request: Request, back: str, text: str, *, status: int, accepted: bool = False) -> Response:
    """What someone who acted gets: JSON for the page's script; else back to the page, which says it."""
    if wants_json(request):
        return JSONResponse({"text": text, "accepted": accepted}, status)
    response = RedirectResponse(back, 303)
    response.set_cookie("said", _cookie(text), max_age=60, httponly=True, samesite="lax", path="/")
    return response


def _cookie(text: str) -> str:
    return quote(text[:800])


def said(request: Request) -> str | None:
    """What the post before this page had to say."""
    kept = request.cookies.get("said")
    return unquote(kept) if kept else None


def shown_once(request: Request, response: Response) -> Response:
    """Forgets what `said` gave, now that the page shows it."""
    if "said" in request.cookies:
        response.delete_cookie("said", path="/")
    return response
