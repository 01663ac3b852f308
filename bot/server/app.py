"""The ASGI app: every route, by subject. What a route does is in its subject's module."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.runtime.committer import database_away
from bot.server import (
    acting,
    attachments,
    changing,
    endpoints,
    finding,
    helping,
    hooks,
    live,
    login,
    me,
    openapi,
    operators,
    proposed,
    record,
    room,
    scripts,
)
from bot.server.respond import Guard, not_there, plain_page
from bot.server.room import for_post, for_reader
from bot.server.static import static
from bot.wiring import Product

log = structlog.get_logger()


def app(product: Product, further: Sequence[Route] = ()) -> Starlette:
    """The app of a product that is started and stopped by whoever made it. `further`: what chat platforms call."""
    made = Starlette(
        routes=[
            Route("/", for_reader(room.home)),
            Route("/jobs", for_post(room.new_job), methods=["POST"]),
            Route("/jobs/{job}", for_reader(room.job)),
            Route("/jobs/{job}/runs", for_post(room.post_script), methods=["POST"]),
            Route("/help", for_reader(helping.show)),
            Route("/check", for_post(room.check), methods=["POST"]),
            Route("/rehearse", for_post(room.rehearse), methods=["POST"]),
            Route("/tap/{seq:int}", for_post(room.tap), methods=["POST"]),
            Route("/proposals/{proposal}", for_post(proposed.decide), methods=["POST"]),
            Route("/inbox", for_reader(room.inbox)),
            Route("/me", for_reader(me.show)),
            Route("/me", for_post(me.change), methods=["POST"]),
            Route("/runs", for_reader(finding.show)),
            Route("/runs/{run}", for_reader(record.show)),
            Route("/runs/{run}/save", for_post(scripts.save_run), methods=["POST"]),
            Route("/scripts", for_reader(scripts.index)),
            Route("/scripts/{name}", for_reader(scripts.show)),
            Route("/scripts/{name}", for_post(scripts.save), methods=["POST"]),
            Route("/scripts/{name}/runs", for_post(scripts.run), methods=["POST"]),
            Route("/scripts/{name}/standing", for_post(scripts.standing), methods=["POST"]),
            Route("/scripts/{name}/rollback", for_post(scripts.rollback), methods=["POST"]),
            Route("/runs/{run}/edit", for_reader(changing.show)),
            Route("/runs/{run}/edit", for_post(changing.post), methods=["POST"]),
            Route("/runs/{run}/files/{path:path}", for_reader(attachments.download)),
            Route("/a/{token}", acting.ask),
            Route("/a/{token}", acting.answer, methods=["POST"]),
            Route("/e/{token}", endpoints.show),
            Route("/e/{token}", endpoints.call, methods=["POST"]),
            Route("/hooks/{stream:path}", hooks.hook, methods=["POST"]),
            Route("/login/{secret}", login.show),
            Route("/login/{secret}", login.press, methods=["POST"]),
            Route("/logout", for_post(login.log_out), methods=["POST"]),
            Route("/live", for_reader(live.room)),
            Route("/api/openapi.json", openapi.openapi),
            Route("/api", openapi.readable),
            *openapi.routes(),
            Route("/static/{name}", static),
            Route("/healthz", operators.healthz),
            Route("/readyz", operators.readyz),
            Route("/metrics", operators.metrics),
            *further,
        ],
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: _http, ClientDisconnect: _gone, Exception: _broken},
    )
    made.state.product = product
    made.state.closing = asyncio.Event()
    made.state.rehearsing = asyncio.Semaphore(1)
    return made


async def _http(request: Request, fault: Exception) -> Response:
    status = fault.status_code if isinstance(fault, HTTPException) else 500
    said = {404: "There is nothing at this address.", 405: "This address does not take that."}.get(
        status, "That did not work."
    )
    if request.url.path.startswith(("/api", "/hooks", "/e/")):
        return JSONResponse({"text": said}, status)
    return not_there() if status == 404 else plain_page(said, "Nothing changed.", status=status)


async def _gone(request: Request, fault: Exception) -> Response:
    """The caller left before the body was read: nobody is there to be told, and nothing was done."""
    return Response(status_code=499)


async def _broken(request: Request, fault: Exception) -> Response:
    """A fault of ours: the log has it, the caller learns that nothing is known to have changed."""
    if database_away(fault):
        log.warning("database away", path=request.url.path, method=request.method, fault=str(fault))
        return _away(request)
    log.error("request failed", path=request.url.path, method=request.method, exc_info=fault)
    said = "Something broke here; the log says what. Look at the page again to see how things stand."
    if request.url.path.startswith(("/api", "/hooks", "/e/")):
        return JSONResponse({"text": said}, 500)
    return plain_page("Something broke", said, status=500)


def _away(request: Request) -> Response:
    """The database cannot be reached: nothing was stored, so the caller sends it again."""
    said = "The database cannot be reached just now. Nothing changed; try again in a moment."
    again = {"Retry-After": "2"}
    if request.url.path.startswith(("/api", "/hooks", "/e/")):
        return JSONResponse({"text": said}, 503, again)
    page = plain_page("One moment", said, status=503)
    page.headers.update(again)
    return page
