"""LINE: brings in by its webhook, sends by push.

Every push carries a key made of what is sent, so that none is sent twice; the reply token of an event is used for words
straight back, while it is fresh. Messages cannot be changed: a card that was settled says so when it is tapped."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID, uuid5

import orjson
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from channels.base import (
    Answer,
    Capabilities,
    Door,
    Fault,
    File,
    Inbound,
    Later,
    Message,
    Refused,
    Sender,
    Sent,
    Thing,
)
from channels.line import buttons, inbound
from channels.line.calls import Calls, SaidNo
from channels.line.limits import CALL, FRESH_S, TEXT
from channels.line.render import AS_BUBBLES, Look, confirm, plain, shown
from channels.line.verdicts import FAILURES, is_about_form, verdict
from channels.text import quoted

log = structlog.get_logger()

ROUTE = "/line/webhook"
KEYS = UUID("7f0f4c1e-6d0b-5d0e-9f4b-0c5d3f4a9b21")
"""The space of the keys that pushes carry."""
TOKENS_KEPT = 10_000
"""Reply tokens remembered; each is good for less than a minute."""
BODY_BYTES = 1024 * 1024
BUSY_S = 60
"""Seconds of the loading animation, the most that LINE takes (Messaging API reference, read 2026-08)."""
NEARLY_USED = 0.9
"""The part of a month's messages from which on it is said."""
ACCOUNT_LINK = "https://access.line.me/dialog/bot/accountLink"


class Line:
    """One channel of LINE's. `base_url` is the host that is called. `public_url`: where the product is on the web, for
    what `check` compares. `zone`: in which times are told."""

    name = "line"
    capabilities = Capabilities(
        edits=False,
        looks_up=True,
        buttons=AS_BUBBLES,
        text_limit=TEXT,
        local_times=False,
        forms=False,
        private=True,
    )

    def __init__(
        self,
        *,
        channel_secret: str,
        access_token: str,
        now: Callable[[], datetime],
        base_url: str | None = None,
        public_url: str | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        self._secret = channel_secret.encode()
        self._calls = Calls(access_token, base_url)
        self._now, self._zone = now, zone
        self._link_page = f"{base_url.rstrip('/')}/dialog/bot/accountLink" if base_url else ACCOUNT_LINK
        self._address = f"{public_url.rstrip('/')}{ROUTE}" if public_url else None
        self._door: Door | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._fresh: OrderedDict[str, datetime] = OrderedDict()

    # --- what comes in ----------------------------------------------------------------------------------------------
    async def start(self, door: Door) -> None:
        self._door = door
        self._spawn(self._calls.open())

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._calls.close()

    def routes(self) -> list[Route]:
        return [Route(ROUTE, self._called, methods=["POST"])]

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        return inbound.read(raw)

    async def _called(self, request: Request) -> Response:
        """LINE brings events: 200 only when all of them are stored, so that they come again otherwise."""
        body = await request.body()
        if len(body) > BODY_BYTES:
            return PlainTextResponse("too large", 413)
        if not self._is_signed(body, request.headers.get("X-Line-Signature", "")):
            log.warning("line.forged")
            return PlainTextResponse("the signature is not LINE's", 401)
        try:
            events = orjson.loads(body)["events"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return PlainTextResponse("not of LINE's shape", 400)
        try:
            for event in events:
                await self._take(event)
        except Exception as error:  # Whatever it is, LINE brings it again.
            log.warning("line.not-stored", why=type(error).__name__)
            return PlainTextResponse("not stored", 500)
        return Response(status_code=200)

    def _is_signed(self, body: bytes, signature: str) -> bool:
        made = base64.b64encode(hmac.new(self._secret, body, hashlib.sha256).digest())
        return hmac.compare_digest(made, signature.encode())

    async def _take(self, event: Mapping[str, Any]) -> None:
        self._keep_token(event)
        if (data := inbound.own_tap(event)) is not None:
            self._spawn(self._ask_again(event, data))
            return
        try:
            given = inbound.read(event)
        except (KeyError, TypeError, ValueError):
            # Not of a shape that is known: it would come again and again.
            log.warning("line.unread", type=event.get("type"))
            return
        if given is None:
            log.info("line.ignored", type=event.get("type"), ident=event.get("webhookEventId"))
            return
        if self._door is None:
            raise RuntimeError("not started")
        await self._door.take(self.name, given)

    async def _ask_again(self, event: Mapping[str, Any], data: str) -> None:
        """A choice that asks once more: the question goes back, with what it needs in its own buttons."""
        text, actions = buttons.asked(data)
        where = inbound.conversation(event.get("source") or {})
        await self._back(event, where, [confirm(text, actions)], ident=str(event.get("webhookEventId")))

    # --- straight back ----------------------------------------------------------------------------------------------
    async def tell(self, given: Inbound, text: str, *, alert: bool = False) -> None:
        made = shown(Message(text=quoted(text)), self._look()).messages[:CALL]
        # In a group a reply is for everybody: words to one person go to them alone.
        where = given.conversation if given.direct or not given.sender.ref else f"line:{given.sender.ref}"
        await self._back(given.raw if given.direct else {}, where, made, ident=f"{given.ident}/{text}")

    async def _back(
        self, event: Mapping[str, Any], where: str, messages: Sequence[dict[str, Any]], *, ident: str
    ) -> None:
        """By the event's reply token while it is fresh, else by push. Best effort: what LINE says to it is logged."""
        token = str(event.get("replyToken") or "")
        received = self._fresh.pop(token, None)
        try:
            if received is not None and self._now() - received < timedelta(seconds=FRESH_S):
                try:
                    await self._calls.reply(token, messages)
                    return
                except SaidNo as no:
                    log.info("line.reply-refused", why=no.words)
            await self._calls.push(_to(where), messages, _key(f"back/{ident}"))
        except (SaidNo, *FAILURES) as error:
            log.info("line.not-told", why=str(error))

    def _keep_token(self, event: Mapping[str, Any]) -> None:
        token = event.get("replyToken")
        if token:
            self._fresh.setdefault(str(token), self._now())
            while len(self._fresh) > TOKENS_KEPT:
                self._fresh.popitem(last=False)

    # --- what goes out ----------------------------------------------------------------------------------------------
    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        made = shown(thing, self._look())
        try:
            ref = await self._push(conversation, made.messages, ident)
        except (SaidNo, *FAILURES) as error:
            if is_about_form(error) and any(message["type"] != "text" for message in made.messages):
                return await self._plainly(conversation, thing, ident, str(error))
            return verdict(error)
        return Sent(ref=ref, note=made.note)

    async def _plainly(self, conversation: str, thing: Thing, ident: str, why: str) -> Answer:
        """What LINE refused for its form, as text. Nothing of the refused call was sent; its key stays unused."""
        try:
            ref = await self._push(conversation, plain(thing, self._look()), f"{ident}/plain")
        except (SaidNo, *FAILURES) as error:
            return verdict(error)
        return Sent(ref=ref, note=f"it stands as plain text: LINE said {why}")

    async def _push(self, conversation: str, messages: Sequence[dict[str, Any]], ident: str) -> str | None:
        """In calls of five, each with a key of its own: what was broken off goes on where it was. The last one's id."""
        ref: str | None = None
        for n in range(0, len(messages), CALL):
            ids = await self._calls.push(_to(conversation), messages[n : n + CALL], _key(f"{ident}/{n}"))
            ref = ids[-1] if ids else ref
        return ref

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        return Sent(ref=ref)

    async def busy(self, conversation: str) -> None:
        """LINE's loading animation, which only a person's own conversation has."""
        if not _to(conversation).startswith("U"):
            return
        try:
            await self._calls.loading(_to(conversation), BUSY_S)
        except (SaidNo, *FAILURES) as error:
            log.info("line.not-shown-busy", why=str(error))

    async def reach(self, ref: str) -> str | Refused | Later:
        if not ref.startswith("U"):
            return Refused(why=f"`{ref}` is no person of LINE's: their ids begin with U")
        return f"line:{ref}"

    async def fetch(self, file: File) -> bytes | Refused | Later:
        try:
            return await self._calls.content(file.ref)
        except (SaidNo, *FAILURES) as error:
            return verdict(error)

    async def find(self, email: str) -> Sender | None:
        return None

    # --- who somebody is --------------------------------------------------------------------------------------------
    async def link(self, ref: str, page: str) -> str | Refused | Later:
        """The address that a person opens to prove who they are: `page`, a page of ours where they sign in, with LINE's
        token for it. It holds for ten minutes, once."""
        try:
            token = await self._calls.link_token(ref)
        except (SaidNo, *FAILURES) as error:
            return verdict(error)
        return f"{page}{'&' if '?' in page else '?'}{urlencode({'linkToken': token})}"

    def linked(self, link_token: str, nonce: str) -> str:
        """Where that page sends them on to, once they signed in: LINE brings the nonce back as proof (`linked`).
        `nonce`: at least 128 random bits, for one use."""
        return f"{self._link_page}?linkToken={quote(link_token)}&nonce={quote(nonce)}"

    # --- what keeps it from working ---------------------------------------------------------------------------------
    async def check(self) -> list[Fault]:
        """A wrong token or secret, a webhook that is not ours or not reached, a month's messages nearly used up."""
        try:
            name = await self._calls.info()
            return [*await self._check_endpoint(name), *await self._check_quota()]
        except (SaidNo, *FAILURES) as error:
            if isinstance(error, SaidNo) and error.status in (401, 403):
                return [
                    Fault(
                        what="LINE does not know the channel's access token",
                        mend="set LINE_CHANNEL_ACCESS_TOKEN to the one that the console issues under Messaging API",
                    )
                ]
            return [Fault(what=f"LINE does not answer: {error}", mend="look at the network and at LINE_BASE_URL")]

    async def _check_endpoint(self, name: str) -> list[Fault]:
        address, active = await self._calls.endpoint()
        ours = self._address or f"https://…{ROUTE}"
        if not address or (self._address and address != self._address) or not address.endswith(ROUTE):
            said = f"the webhook of {name} is {address}" if address else f"{name} has no webhook"
            return [Fault(what=said, mend=f"set it to {ours} in the console, under Messaging API")]
        if not active:
            return [Fault(what=f"the webhook of {name} is switched off", mend="switch on Use webhook in the console")]
        status, reason = await self._calls.try_endpoint()
        if status == 401:
            return [
                Fault(
                    what="what LINE signs does not match the channel's secret",
                    mend="set LINE_CHANNEL_SECRET to the one under Basic settings in the console",
                )
            ]
        if reason:
            return [
                Fault(
                    what=f"LINE cannot bring events to {address}: {reason}" + (f" ({status})" if status > 0 else ""),
                    mend="make that address reachable from the internet, by https",
                )
            ]
        return []

    async def _check_quota(self) -> list[Fault]:
        limit, used = await self._calls.quota()
        if limit is None or used < limit * NEARLY_USED:
            return []
        return [
            Fault(
                what=f"{used} of this month's {limit} messages are used",
                mend="take a larger plan at LINE; past the limit nothing is sent until the next month",
            )
        ]

    # --- its own ----------------------------------------------------------------------------------------------------
    def _look(self) -> Look:
        return Look(now=self._now(), zone=self._zone)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _to(conversation: str) -> str:
    return conversation.removeprefix("line:")


def _key(ident: str) -> str:
    """The same for the same thing at every attempt."""
    return str(uuid5(KEYS, ident))
