"""Logging in by a link, once; logging out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.runtime.desk import SESSION_DAYS
from bot.server.auth import COOKIE, Reader, from_here, same_origin
from bot.server.respond import page, plain_page
from bot.server.room import desk_of
from store import people
from store.dialect import Transaction


async def show(request: Request) -> Response:
    """Opened from this machine: logs in at once. From elsewhere: one button, so that previews use nothing up."""
    desk, secret = desk_of(request), request.path_params["secret"]
    found = await desk.committer.read(people.login_of, secret)
    now = desk.clock.now()
    if found is None or found["used"] is not None or now >= found["until"]:
        return _gone(found is not None and found["used"] is not None, found is not None)
    fetched_ahead = "prefetch" in request.headers.get("sec-purpose", "") or request.headers.get("purpose") == "prefetch"
    if request.method == "GET" and from_here(request) and not fetched_ahead:
        return await _log_in(request, secret)
    world = await desk.world()
    return page("login.html", world, reader=None, name=world.name_of(found["email"]), until=found["until"])


async def press(request: Request) -> Response:
    if not same_origin(request, strict=False):
        return plain_page("Nothing changed", "This did not come from the page of the link.", status=403)
    return await _log_in(request, request.path_params["secret"])


async def _log_in(request: Request, secret: str) -> Response:
    desk = desk_of(request)
    found = await desk.log_in(secret)
    if found is None:
        kept = await desk.committer.read(people.login_of, secret)
        return _gone(kept is not None and kept["used"] is not None, kept is not None)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE,
        found[0],
        max_age=SESSION_DAYS * 86400,
        httponly=True,
        samesite="lax",
        path="/",
        secure=desk.settings.url.startswith("https://"),
    )
    return response


def _gone(used: bool, known: bool) -> Response:
    why = (
        "This link has been used; each works once."
        if used
        else ("This link is too old; each works for 15 minutes." if known else "This link is not known here.")
    )
    return plain_page(
        "Ask for a new link",
        why,
        "On the machine that runs this, `waiton login you@example.com` prints another.",
        status=410,
    )


async def log_out(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    cookie = request.cookies.get(COOKIE, "")

    def write(tx: Transaction) -> None:
        people.end_session(tx, cookie)

    await desk_of(request).committer.write(write)
    response = RedirectResponse("/", 303)
    response.delete_cookie(COOKIE, path="/")
    return response
