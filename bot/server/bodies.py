"""Bodies of posts, read up to a limit."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from channels.web.limits import BODY_BYTES


class TooLarge(Exception):
    """The body is over the limit."""


class NoJson(Exception):
    """The body is not JSON."""


async def limited(request: Request, most: int = BODY_BYTES) -> bytes:
    """The body, at most so many bytes. Raises TooLarge without reading on."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise TooLarge
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise TooLarge
    return bytes(found)


def read_json(body: bytes) -> Any:
    """The body as JSON. Raises NoJson; a number that is none (`NaN`) counts as no JSON."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refused, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise NoJson from None


def _refused(word: str) -> Any:
    raise ValueError(word)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, none of whose keys stands twice: the second would win in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


FORM_BYTES = 4 * BODY_BYTES
"""Of a form: a script of the full size with every character escaped."""


async def read_form(request: Request) -> dict[str, str]:
    """An urlencoded form, the last of every name; a JSON object of texts passes too. Raises TooLarge and NoJson."""
    body = await limited(request, FORM_BYTES)
    if request.headers.get("content-type", "").startswith("application/json"):
        found = read_json(body)
        if not isinstance(found, dict):
            raise NoJson
        return {str(k): v for k, v in found.items() if isinstance(v, str)}
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=500))
    except ValueError:
        raise NoJson from None
