"""Events from outside: who sent them is verified, each is stored once, and only then it is acknowledged."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.config import StreamSettings
from bot.server.auth import from_here, of_no_page
from bot.server.bodies import NoJson, TooLarge, limited, read_json
from bot.server.room import desk_of

TOLERANCE_S = 300
"""How far a sender's time stamp may be from our clock (Standard Webhooks and Stripe both advise five minutes)."""


async def hook(request: Request) -> Response:
    """202 once stored (`new` false: it was before); 401 not verified, 403 not from this machine, 404, 413, 422."""
    desk, name = desk_of(request), request.path_params["stream"]
    stream = desk.settings.streams.get(name)
    if stream is None or stream.spec.chat:
        return _said("No stream is called so here.", 404)
    try:
        body = await limited(request)
    except TooLarge:
        return _said("The body is over 256 KiB. Nothing was stored.", 413)
    if stream.kind == "none" and not (from_here(request) and of_no_page(request, desk.settings)):
        return _said("This stream takes events from this machine only. Nothing was stored.", 403)
    refused = verify(stream, request.headers, body, desk.clock.now())
    if refused is not None:
        return _said(f"{refused} Nothing was stored.", 401)
    try:
        data = read_json(body)
    except NoJson:
        return _said("The body must be JSON. Nothing was stored.", 422)
    ident, why = _ident(stream, request.headers, data)
    if ident is None:
        return _said(f"{why} Nothing was stored.", 422)
    return await store(request, stream, data, ident=ident, sender=_text_at(data, stream.sender), raw=data)


async def store(
    request: Request, stream: StreamSettings, data: Any, *, ident: str, sender: str | None, raw: Any = None
) -> Response:
    """Stores an event of a declared stream, unless its data do not fit the stream's schema."""
    misfit = unfit(stream, data)
    if misfit is not None:
        return _said(f"The data do not fit `{stream.spec.name}`: {misfit} Nothing was stored.", 422)
    if (
        stream.text
        and isinstance(data, dict)
        and "text" not in data
        and (found := _text_at(data, stream.text)) is not None
    ):
        data = {**data, "text": found}
    new = await desk_of(request).event(stream.spec.name, data, ident=ident, sender=sender, raw=raw)
    return JSONResponse({"id": ident, "new": new}, 202)


def verify(stream: StreamSettings, headers: Mapping[str, str], body: bytes, now: datetime) -> str | None:
    """None where the sender is who they must be, else what is missing."""
    secret = stream.secret or ""
    match stream.kind:
        case "none":
            return None
        case "bearer":
            given = headers.get("authorization", "").removeprefix("Bearer ")
            return None if _same(given, secret) else "The bearer token is not the stream's."
        case "github":
            expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            return None if _same(headers.get("x-hub-signature-256", ""), expected) else "The signature does not fit."
        case "stripe":
            return _stripe(secret, headers.get("stripe-signature", ""), body, now)
        case _:
            return _standard(secret, headers, body, now)


def _standard(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> str | None:
    """Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; several, divided by spaces."""
    ident, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not ident:
        return "The header webhook-id is missing."
    if (stale := _stale(stamp, now)) is not None:
        return stale
    signed = f"{ident}.{stamp}.".encode() + body
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in _keys(secret)]
    for given in headers.get("webhook-signature", "").split():
        version, _, value = given.partition(",")
        if version == "v1" and any(_same(value, one) for one in expected):
            return None
    return "The signature does not fit."


def _keys(secret: str) -> list[bytes]:
    """A secret is `whsec_` and base64; one without the prefix may be either."""
    bare = secret.removeprefix("whsec_")
    keys = [] if secret.startswith("whsec_") else [secret.encode()]
    try:
        keys.append(base64.b64decode(bare, validate=True))
    except (binascii.Error, ValueError):
        keys.append(bare.encode())
    return [key for key in keys if key]


def _stripe(secret: str, header: str, body: bytes, now: datetime) -> str | None:
    """Stripe: `t=…,v1=…`, the hex HMAC-SHA256 of `t.body`."""
    pairs = [part.strip().partition("=") for part in header.split(",")]
    stamp = next((value for key, _, value in pairs if key == "t"), "")
    if (stale := _stale(stamp, now)) is not None:
        return stale
    expected = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return (
        None
        if any(key == "v1" and _same(value, expected) for key, _, value in pairs)
        else "The signature does not fit."
    )


def _stale(stamp: str, now: datetime) -> str | None:
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        return "The time stamp is missing."
    return "The time stamp is more than five minutes off." if abs(int(stamp) - now.timestamp()) > TOLERANCE_S else None


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _ident(stream: StreamSettings, headers: Mapping[str, str], data: Any) -> tuple[str | None, str]:
    """The sender's id: where the settings say it is, else where this kind of sender has it, else a new one."""
    if stream.id:
        found = _text_at(data, stream.id)
        return (found, "") if found is not None else (None, f"There is no `{stream.id}` in the body.")
    named = {"standard-webhooks": "webhook-id", "github": "x-github-delivery"}.get(stream.kind, "idempotency-key")
    if headers.get(named):
        return headers[named][:200], ""
    # An unsigned sender, and Stripe, name an event by its `id` where it has one.
    if stream.kind in ("stripe", "none", "bearer") and (found := _text_at(data, "id")) is not None:
        return found, ""
    return secrets.token_hex(12), ""


def _text_at(data: Any, path: str | None) -> str | None:
    """The text or number at a dotted path."""
    if not path:
        return None
    for step in path.split("."):
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and step.isdigit() and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    if isinstance(data, bool) or not isinstance(data, (str, int, float)) or data == "":
        return None
    return str(data)[:500]


def unfit(stream: StreamSettings, data: Any) -> str | None:
    """Why data do not fit the stream's schema; None where they do or it has none."""
    if stream.spec.schema is None:
        return None
    import json

    validator = _validator(json.dumps(stream.spec.schema, sort_keys=True))
    fault = next(iter(validator.iter_errors(data)), None)
    if fault is None:
        return None
    where = ".".join(str(step) for step in fault.instance_path)
    return f"{f'`{where}`: ' if where else ''}{fault.message}."


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    import json

    import jsonschema_rs

    def never(uri: str) -> Any:
        raise ValueError(f"{uri} is not fetched")

    return jsonschema_rs.validator_for(json.loads(schema), retriever=never)


def _said(text: str, status: int) -> Response:
    return JSONResponse({"text": text}, status)
