"""A loopback Messaging API that answers as LINE does, its limits, keys and signatures included, and the people who use it.

What it knows of LINE it knows by itself: it shares no limit with the channel that it tests."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, web

from bot.runtime.clock import machine_time
from channels.line.channel import Line
from tests.channels.stage import Seen

SECRET = "0123456789abcdef-test-secret"
ACCESS = "test-access-token"
BOT = "U" + "b0" * 16
PEOPLE = {"ana": "U" + "a1" * 16, "bo": "U" + "b2" * 16, "jonas": "U" + "c3" * 16, "mika": "U" + "d4" * 16}
TEAM = "C" + "e5" * 16
"""A group: ana, bo and jonas are in it."""
MEMBERS = ("ana", "bo", "jonas")
AFTER_S = 10
"""Seconds that people wait for what the bot should do."""
TOKEN_S = 60.0
"""Seconds that a reply token holds."""


@dataclass(eq=False)
class Shown:
    """A message of the bot's. `answers`: it came by a reply token."""

    id: str
    to: str
    payload: dict[str, Any]
    answers: bool = False

    @property
    def actions(self) -> list[dict[str, Any]]:
        return [one["action"] for one in inside(self.payload) if isinstance(one, dict) and "action" in one]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(action["label"] for action in self.actions)

    @property
    def text(self) -> str:
        if self.payload["type"] == "text":
            return self.payload["text"]
        return "\n".join(
            one["text"] for one in inside(self.payload) if isinstance(one, dict) and one.get("type") == "text"
        )


def inside(held: Any) -> Iterator[Any]:
    yield held
    for part in held.values() if isinstance(held, dict) else held if isinstance(held, list) else ():
        yield from inside(part)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@dataclass(eq=False)
class MessagingApi:
    """The server. Knobs are plain members: what is away, lost, busy, refused, used up."""

    token: str = ACCESS
    shown: list[Shown] = field(default_factory=list)
    calls: list[tuple[str, str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    content: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, tuple[str, list[dict[str, Any]]]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)
    """Who is sent nothing: LINE says so."""
    blockers: set[str] = field(default_factory=set)
    """Who blocked the account: LINE says 200, and nothing arrives."""
    away: int = 0
    lose: int = 0
    busy: tuple[int, float] = (0, 0.0)
    inject: dict[str, list[tuple[int, dict[str, Any]]]] = field(default_factory=dict)
    limit: int | None = None
    used: int = 0
    endpoint: str = ""
    active: bool = True
    signs_with: str = SECRET
    url: str = ""

    def __post_init__(self) -> None:
        self.ids = itertools.count(461230966842064897)
        self.changed = asyncio.Condition()
        self.took_s = 0.0
        self.address = ""

    async def start(self) -> MessagingApi:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.+}", self._call)
        self.runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return self

    async def stop(self) -> None:
        await self.runner.cleanup()

    # --- calls --------------------------------------------------------------------------------------------------------
    async def _call(self, request: web.Request) -> web.Response:
        raw = await request.read()
        given = json.loads(raw) if raw and request.content_type == "application/json" else {}
        path, out = request.path, request.path in ("/v2/bot/message/push", "/v2/bot/message/reply")
        self.calls.append((request.method, path, given, dict(request.headers)))
        if out and self.away > 0:
            self.away -= 1
            return self._dropped(request)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._said(
                401,
                {
                    "message": "Authentication failed. Confirm that the access token in the authorization header is valid."
                },
            )
        if self.inject.get(path):
            return self._said(*self.inject[path].pop(0))
        if out and self.busy[0] > 0:
            self.busy = (self.busy[0] - 1, self.busy[1])
            body = {"message": "The API rate limit has been exceeded. Try again later."}
            return self._said(429, body, **{"Retry-After": str(self.busy[1])})
        made = await self._answer(path, given, request)
        if out:
            async with self.changed:
                self.changed.notify_all()
            if self.lose > 0:
                self.lose -= 1
                return self._dropped(request)
        return made

    async def _answer(self, path: str, given: dict[str, Any], request: web.Request) -> web.Response:
        parts = path.strip("/").split("/")
        match parts:
            case ["v2", "bot", "message", "push"]:
                return self._push(given, request.headers.get("X-Line-Retry-Key"))
            case ["v2", "bot", "message", "reply"]:
                return self._reply(given, request.headers.get("X-Line-Retry-Key"))
            case ["v2", "bot", "message", "quota"]:
                return self._said(200, {"type": "limited", "value": self.limit} if self.limit else {"type": "none"})
            case ["v2", "bot", "message", "quota", "consumption"]:
                return self._said(200, {"totalUsage": self.used})
            case ["v2", "bot", "message", number, "content"] if number in self.content:
                return web.Response(body=self.content[number], content_type="application/octet-stream")
            case ["v2", "bot", "info"]:
                return self._said(
                    200,
                    {
                        "userId": BOT,
                        "basicId": "@waiton",
                        "displayName": "Waiton",
                        "chatMode": "bot",
                        "markAsReadMode": "auto",
                    },
                )
            case ["v2", "bot", "channel", "webhook", "endpoint"] if self.endpoint:
                return self._said(200, {"endpoint": self.endpoint, "active": self.active})
            case ["v2", "bot", "channel", "webhook", "test"]:
                return await self._test()
            case ["v2", "bot", "chat", "loading", "start"]:
                seconds = given.get("loadingSeconds", 20)
                if not str(given.get("chatId", "")).startswith("U") or seconds % 5 or not 5 <= seconds <= 60:
                    return self._said(400, {"message": "The request body has 1 error(s)"})
                return self._said(202, {})
            case ["v2", "bot", "user", user, "linkToken"] if user.startswith("U"):
                return self._said(200, {"linkToken": "LT" + uuid.uuid5(uuid.NAMESPACE_OID, user).hex})
            case _:
                return self._said(404, {"message": "Not found"})

    def _push(self, given: dict[str, Any], key: str | None) -> web.Response:
        if wrong := faults(given):
            return self._said(400, wrong)
        to = str(given.get("to") or "")
        if to[:1] not in "UCR" or len(to) != 33:
            return self._said(
                400, {"message": "The property, 'to', in the request body is invalid (line: -, column: -)"}
            )
        if key is not None and key in self.keys:
            first, sent = self.keys[key]
            body = {"message": "The retry key is already accepted", "sentMessages": sent}
            return self._said(409, body, **{"X-Line-Accepted-Request-Id": first})
        if to in self.strangers:
            return self._said(400, {"message": "Failed to send messages"})
        if self.limit is not None and self.used + len(given["messages"]) > self.limit:
            return self._said(429, {"message": "You have reached your monthly limit."})
        self.used += 1
        sent = self._put(to, given["messages"], answers=False)
        if key is not None:
            uuid.UUID(key)
            self.keys[key] = (f"req-{len(self.keys)}", sent)
        return self._said(200, {"sentMessages": sent})

    def _reply(self, given: dict[str, Any], key: str | None) -> web.Response:
        if key is not None:
            return self._said(400, {"message": "The retry key is not supported for this endpoint"})
        if wrong := faults(given):
            return self._said(400, wrong)
        to, until = self.tokens.pop(given["replyToken"], ("", 0.0))
        if time.monotonic() > until:
            return self._said(400, {"message": "Invalid reply token"})
        return self._said(200, {"sentMessages": self._put(to, given["messages"], answers=True)})

    def _put(self, to: str, messages: list[dict[str, Any]], *, answers: bool) -> list[dict[str, Any]]:
        made = [Shown(id=str(next(self.ids)), to=to, payload=one, answers=answers) for one in messages]
        if to not in self.blockers:
            self.shown += made
        return [{"id": one.id, "quoteToken": f"q{one.id}"} for one in made]

    def _said(self, status: int, body: dict[str, Any], **headers: str) -> web.Response:
        return web.json_response(body, status=status, headers={"X-Line-Request-Id": "req"} | headers)

    def _dropped(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _test(self) -> web.Response:
        """LINE calls the webhook with no events."""
        try:
            status = await self.post()
        except OSError:
            status = 0
        ok = status == 200
        return self._said(
            200,
            {
                "success": ok,
                "timestamp": machine_time().isoformat(),
                "statusCode": status,
                "reason": "OK" if ok else "ERROR_STATUS_CODE" if status else "COULD_NOT_CONNECT",
                "detail": str(status),
            },
        )

    # --- what happens -------------------------------------------------------------------------------------------------
    def event(self, kind: str, who: str | None, *, group: str | None = None, **more: Any) -> dict[str, Any]:
        """An event as LINE brings it. `who` None: LINE leaves out who it was."""
        user = {"userId": PEOPLE[who]} if who is not None else {}
        source = {"type": "group", "groupId": group} | user if group else {"type": "user"} | user
        made: dict[str, Any] = {
            "type": kind,
            "mode": "active",
            "timestamp": int(machine_time().timestamp() * 1000),
            "source": source,
            "webhookEventId": f"01TEST{next(self.ids)}",
            "deliveryContext": {"isRedelivery": False},
        }
        if kind not in ("unfollow", "unsend", "leave"):
            token = f"reply{next(self.ids)}"
            self.tokens[token] = (group or source.get("userId", ""), time.monotonic() + TOKEN_S)
            made["replyToken"] = token
        return made | more

    def said(self, who: str | None, text: str, *, group: str | None = None, **more: Any) -> dict[str, Any]:
        number = next(self.ids)
        message = {"type": "text", "id": str(number), "quoteToken": f"q{number}", "text": text, **more}
        return self.event("message", who, group=group, message=message)

    async def post(self, *events: dict[str, Any], secret: str | None = None) -> int:
        """Brings events to the webhook, signed; the status that it answers."""
        body = json.dumps({"destination": BOT, "events": list(events)}, ensure_ascii=False).encode()
        signed = hmac.new((secret or self.signs_with).encode(), body, hashlib.sha256).digest()
        headers = {
            "X-Line-Signature": base64.b64encode(signed).decode(),
            "Content-Type": "application/json; charset=utf-8",
        }
        begun = time.monotonic()
        async with (
            ClientSession() as session,
            session.post(f"{self.address}/line/webhook", data=body, headers=headers) as answer,
        ):
            await answer.read()
            self.took_s = time.monotonic() - begun
            return answer.status

    async def happens(self, event: dict[str, Any]) -> None:
        """Brings an event until it is taken: where it was not, once more as a redelivery."""
        self.last = event
        for n in range(20):
            given = event | {"deliveryContext": {"isRedelivery": n > 0}}
            if (await self.post(given)) == 200:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the webhook never took it")


def faults(given: dict[str, Any]) -> dict[str, Any] | None:
    """What LINE has against the messages of a call, in its words."""
    messages = given.get("messages") or []
    if not 1 <= len(messages) <= 5:
        return {
            "message": "The request body has 1 error(s)",
            "details": [_detail("Size must be between 1 and 5", "messages")],
        }
    found = [detail for n, message in enumerate(messages) for detail in _message_faults(message, f"messages[{n}]")]
    return {"message": f"The request body has {len(found)} error(s)", "details": found} if found else None


def _message_faults(message: dict[str, Any], at: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    if message["type"] == "text" and not 1 <= units(message["text"]) <= 5000:
        found.append(_detail("Length must be between 0 and 5000", f"{at}.text"))
    if message["type"] == "flex":
        if not 1 <= units(message.get("altText", "")) <= 1500:
            found.append(_detail("Length must be between 1 and 1500", f"{at}.altText"))
        held = message["contents"]
        bubbles = held["contents"] if held["type"] == "carousel" else [held]
        if len(bubbles) > 12:
            found.append(_detail("Size must be between 1 and 12", f"{at}.contents.contents"))
        if any(len(json.dumps(bubble, ensure_ascii=False).encode()) > 30 * 1024 for bubble in bubbles):
            found.append(_detail("The bubble is too large", f"{at}.contents"))
        for one in inside(held):
            if one is None or (isinstance(one, dict) and one.get("type") == "text" and not one.get("text")):
                found.append(_detail("must be specified", f"{at}.contents"))
            if isinstance(one, dict) and one.get("type") == "box" and not one.get("contents"):
                found.append(_detail("must be non-empty array", f"{at}.contents"))
            if isinstance(one, dict) and one.get("type") == "image" and not one["url"].startswith("https://"):
                found.append(_detail("invalid uri scheme", f"{at}.contents"))
    quick = (message.get("quickReply") or {}).get("items") or []
    if len(quick) > 13:
        found.append(_detail("Size must be between 0 and 13", f"{at}.quickReply.items"))
    for one in inside(message):
        if isinstance(one, dict) and isinstance(one.get("action"), dict):
            found += _action_faults(one["action"], at)
    return found


def _action_faults(action: dict[str, Any], at: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    # Joined characters count as one; the tests' labels have none that are longer than that.
    if not 1 <= len([c for c in action.get("label", "") if c not in "\u200d\ufe0f"]) <= 20:
        found.append(_detail("Length must be between 1 and 20", f"{at}.label"))
    if action["type"] == "postback":
        if not 1 <= len(action.get("data", "")) <= 300:
            found.append(_detail("Length must be between 1 and 300", f"{at}.data"))
        if len(action.get("displayText", "")) > 300:
            found.append(_detail("Length must be between 0 and 300", f"{at}.displayText"))
    if action["type"] == "uri" and not action.get("uri", "").startswith(("http://", "https://", "line://", "tel:")):
        found.append(_detail("invalid uri scheme", f"{at}.uri"))
    return found


def _detail(message: str, place: str) -> dict[str, str]:
    return {"message": message, "property": place}


class LineStage:
    """The people of the contract suite, on LINE. A script is pasted into the team's group."""

    name = "line"
    capabilities = Line.capabilities

    def __init__(self) -> None:
        self.api = MessagingApi()

    async def __aenter__(self) -> LineStage:
        await self.api.start()
        self.env: Mapping[str, str] = {
            "LINE_CHANNEL_SECRET": SECRET,
            "LINE_CHANNEL_ACCESS_TOKEN": ACCESS,
            "LINE_BASE_URL": self.api.url,
        }
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.api.stop()

    def ref(self, who: str) -> str:
        return PEOPLE[who]

    def connect(self, address: str) -> None:
        self.api.address = address.rstrip("/")
        self.api.endpoint = f"{self.api.address}/line/webhook"

    async def ready(self) -> None:
        """LINE calls: there is nothing to wait for."""

    # --- what people do -------------------------------------------------------------------------------------------
    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        if form != "text":
            raise NotImplementedError(form)
        mention = {"index": 0, "length": 7, "type": "user", "userId": BOT, "isSelf": True}
        said = self.api.said(who, f"@Waiton\n{text}", group=TEAM, mention={"mentionees": [mention]})
        await self.api.happens(said)
        return f"line:{TEAM}"

    async def write(self, who: str, text: str) -> str:
        await self.api.happens(self.api.said(who, text))
        return f"line:{PEOPLE[who]}"

    async def send_file(self, who: str, name: str, content: bytes) -> str:
        """A file in that person's own conversation."""
        number = str(next(self.api.ids))
        self.api.content[number] = content
        message = {"type": "file", "id": number, "fileName": name, "fileSize": len(content)}
        await self.api.happens(self.api.event("message", who, message=message))
        return f"line:{PEOPLE[who]}"

    async def menu(self, who: str, name: str) -> str:
        """Taps an area of the rich menu."""
        await self.api.happens(self.api.event("postback", who, postback={"data": f"menu:{name}"}))
        return f"line:{PEOPLE[who]}"

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        shown = self._shown(seen)
        action = next(one for one in shown.actions if one["label"] == label and one["type"] == "postback")
        group = shown.to if shown.to.startswith("C") else None
        await self.api.happens(self.api.event("postback", who, group=group, postback={"data": action["data"]}))

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        shown = self._shown(seen)
        group = shown.to if shown.to.startswith("C") else None
        await self.api.happens(self.api.said(who, text, group=group, quotedMessageId=shown.id))

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        """LINE has no forms: `Answer` is tapped, then each field is asked for and answered. One with more fields is on its
        page, which is no platform's."""
        if "Answer" not in seen.buttons:
            raise NotImplementedError("a form of many fields")
        known = {one.ref for one in self.seen(who)}
        await self.tap(who, seen, "Answer")
        for value in values.values():
            asked = await self._next(who, known)
            known.add(asked.ref)
            await self.reply(who, asked, value)
        return {}

    async def again(self) -> None:
        await self.api.happens(self.api.last | {"deliveryContext": {"isRedelivery": True}})

    async def forged(self) -> bool:
        event = self.api.event("postback", "ana", postback={"data": "w:forged:0"})
        return await self.api.post(event, secret="guessed") == 200

    # --- what people see ------------------------------------------------------------------------------------------
    def seen(self, who: str) -> list[Seen]:
        chats = {PEOPLE[who]} | ({TEAM} if who in MEMBERS else set())
        return [
            Seen(ref=one.id, conversation=f"line:{one.to}", text=one.text, buttons=one.labels)
            for one in self.api.shown
            if one.to in chats
        ]

    def told(self, who: str) -> list[str]:
        """Words in their own conversation: what answers somebody in the group comes there too."""
        return [one.text for one in self.api.shown if one.to == PEOPLE[who] and one.payload["type"] == "text"]

    def acknowledged(self) -> float:
        return self.api.took_s

    # --- what goes wrong ------------------------------------------------------------------------------------------
    def away(self, calls: int) -> None:
        self.api.away = calls

    def lose(self, calls: int) -> None:
        self.api.lose = calls

    def busy(self, calls: int, seconds: float) -> None:
        self.api.busy = (calls, seconds)

    def refuse(self, who: str) -> None:
        self.api.strangers.add(PEOPLE[who])

    # --- their own ------------------------------------------------------------------------------------------------
    def _shown(self, seen: Seen) -> Shown:
        return next(one for one in self.api.shown if one.id == seen.ref)

    async def _next(self, who: str, known: set[str]) -> Seen:
        async with self.api.changed:
            found = self.api.changed.wait_for(lambda: any(one.ref not in known for one in self.seen(who)))
            await asyncio.wait_for(found, AFTER_S)
        return next(one for one in self.seen(who) if one.ref not in known)
