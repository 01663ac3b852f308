"""Minted addresses: someone outside calls each once."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.server.bodies import NoJson, TooLarge, limited, read_json
from bot.server.respond import not_there, page
from bot.server.room import desk_of

SAID = {
    202: "It is in.",
    404: "This address is not known here.",
    409: "This address was called before. Nothing changed.",
    410: "This address is past its time. Nothing changed.",
}


async def show(request: Request) -> Response:
    """What an address is for; changes nothing."""
    desk = desk_of(request)
    found = await desk.endpoint(request.path_params["token"])
    if found is None:
        return not_there()
    past = desk.clock.now() >= found["until"]
    world = await desk.world()
    return page("endpoint.html", world, reader=None, called=found["called"], past=past, until=found["until"])


async def call(request: Request) -> Response:
    """Settles an address: 202 once; 404, 409, 410; 413 and 422 change nothing."""
    try:
        body = await limited(request)
        value = read_json(body) if body.strip() else None
    except TooLarge:
        return JSONResponse({"text": "The body is over 256 KiB. Nothing changed."}, 413)
    except NoJson:
        return JSONResponse({"text": "The body must be JSON. Nothing changed."}, 422)
    status = await desk_of(request).call_endpoint(request.path_params["token"], value)
    return JSONResponse({"text": SAID[status]}, status)
