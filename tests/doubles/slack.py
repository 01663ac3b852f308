"""A Slack on 127.0.0.1: Web API, Socket Mode, signed HTTP delivery, files, and people who use it.

It answers as Slack does, its limits, errors, rate limits and signatures included, and refuses what Slack refuses. What
is measured of the real one is in the platform notes; the checks of blocks are `channels/slack/limits.py`'s, which have
tests of their own at every edge."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientSession, WSMsgType, web
from slack_sdk.signature import SignatureVerifier

from bot.runtime.clock import machine_time
from channels.base import Capabilities
from channels.slack import limits
from channels.slack.checking import SCOPES
from tests.channels.stage import Seen
from tests.doubles import slack_composer as composer

SECRET = "shh"
BOT_TOKEN = "xoxb-1-double"
APP_TOKEN = "xapp-1-double"
TEAM, APP, BOT = "T1", "A1", "UBOT"
BLOCK_TEXT = 11_000
"""Characters of all blocks together, above which the double answers `msg_blocks_too_long`."""
NEEDS = {
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "conversations.open": "im:write",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "users.info": "users:read",
    "users.lookupByEmail": "users:read.email",
    "usergroups.list": "usergroups:read",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
}
QUIET = frozenset({"apps.connections.open", "auth.test", "users.info", "usergroups.list"})
"""Calls that only a fault of their own meets: they are made beside what a test is about."""


class Refusal(Exception):
    """What the API answers with `ok: false`."""

    def __init__(self, code: str, **more: Any) -> None:
        self.code = code
        self.more = more


@dataclass
class User:
    id: str
    name: str
    email: str
    team: str = TEAM
    restricted: bool = False
    bot: bool = False
    tz: str = "Europe/Berlin"

    def payload(self) -> dict[str, Any]:
        profile = {"real_name": self.name, "display_name": self.name, "email": self.email}
        return {
            "id": self.id,
            "team_id": self.team,
            "name": self.name.lower(),
            "real_name": self.name,
            "deleted": False,
            "tz": self.tz,
            "is_bot": self.bot,
            "is_restricted": self.restricted,
            "is_ultra_restricted": False,
            "is_stranger": self.team != TEAM,
            "profile": profile,
        }


@dataclass
class Fault:
    """What happens to the next calls. `kind`: away, lose, busy, hang, none; `method`: only to that one."""

    kind: str
    calls: int
    method: str = ""
    seconds: float = 0
    body: Mapping[str, Any] | None = None
    status: int = 429


@dataclass
class Ack:
    """What Slack got back: a status and a body; None where it got nothing."""

    status: int | None
    body: Any = None
    seconds: float = 0.0


@dataclass
class Slack:
    """The double. `now` dates its messages; `pongs`: whether its sockets answer pings."""

    now: Callable[[], datetime] = machine_time
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    messages: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    whispers: list[dict[str, Any]] = field(default_factory=list)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The modal that is open at somebody's screen."""
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    users: dict[str, User] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    members: dict[str, set[str]] = field(default_factory=dict)
    """Channels, and who is in them."""
    triggers: dict[str, tuple[float, str]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Channels and people that take nothing, and how that is answered."""
    revoked: str = ""
    """How every call with our token is answered, if it was taken back."""
    pongs: bool = True
    events_url: str = ""
    """Where events are posted; by the socket where it is empty."""

    def __post_init__(self) -> None:
        self.url = ""
        self.sockets: list[web.WebSocketResponse] = []
        self.opened = 0
        self.pings = 0
        self.connected = asyncio.Event()
        self.called = asyncio.Condition()
        self.released = asyncio.Event()
        """Set: what hangs is answered."""
        self.waiting: dict[str, asyncio.Future[Any]] = {}
        self.last: tuple[str, dict[str, Any]] | None = None
        self.count = itertools.count(1)
        self.stamp = 0.0
        for who in ("ana", "bo", "jonas"):
            self.add(User(f"U{who.upper()}", who.capitalize(), f"{who}@acme.de"))
        self.add(User("UMIKA", "Mika", "mika@example.com", team="T2"))
        self.members["C1"] = {"UANA", "UBO", "UJONAS", BOT}

    def add(self, user: User) -> None:
        self.users[user.id] = user
        self.members[f"D{user.id[1:]}"] = {user.id, BOT}

    # --- the server ----------------------------------------------------------------------------------------------
    async def __aenter__(self) -> Slack:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/link", self._link)
        app.router.add_post("/response/{user}/{channel}", self._response)
        app.router.add_post("/upload/{id}", self._upload)
        app.router.add_get("/files/{id}", self._download)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        host, port = self.runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.http = ClientSession()
        return self

    async def __aexit__(self, *_: Any) -> None:
        for socket in list(self.sockets):
            await socket.close()
        await self.http.close()
        await self.runner.cleanup()

    async def until(self, holds: Callable[[], Any], wait_s: float = 5.0) -> Any:
        """Returns what `holds` gives once it is true; looked at whenever a call was made."""
        async with asyncio.timeout(wait_s), self.called:
            while not (got := holds()):
                await self.called.wait()
        return got

    async def _noticed(self) -> None:
        async with self.called:
            self.called.notify_all()

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        args: dict[str, Any] = dict(request.query)
        if request.content_type == "application/json":
            args |= await request.json()
        elif request.method == "POST":
            args |= dict(await request.post())
        for key in ("blocks", "view", "files", "metadata"):
            if isinstance(args.get(key), str):
                args[key] = json.loads(args[key])
        self.calls.append((method, request.method, args))
        fault = self._fault(method)
        try:
            if fault and fault.kind == "hang":
                await self.released.wait()
            if fault and fault.kind == "away":
                return self._cut(request)
            if fault and fault.kind == "busy":
                body = fault.body or {"ok": False, "error": "ratelimited"}
                return web.json_response(body, status=fault.status, headers={"Retry-After": str(int(fault.seconds))})
            try:
                self._allow(method, request.headers.get("Authorization", "").removeprefix("Bearer "))
                body = {"ok": True, **getattr(self, "do_" + method.replace(".", "_"))(args)}
            except Refusal as refusal:
                body = {"ok": False, "error": refusal.code, **refusal.more}
            if fault and fault.kind == "lose":
                return self._cut(request)
            return web.json_response(body, headers={"x-oauth-scopes": ",".join(sorted(self.scopes))})
        finally:
            await self._noticed()

    def _fault(self, method: str) -> Fault | None:
        for fault in self.faults:
            if fault.calls > 0 and fault.method in ("", method):
                if method in QUIET and not fault.method:
                    continue
                fault.calls -= 1
                return fault
        return None

    def _cut(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    def _allow(self, method: str, token: str) -> None:
        if method == "apps.connections.open":
            if token.startswith("xoxb-"):
                raise Refusal("not_allowed_token_type")
            if token != APP_TOKEN:
                raise Refusal("invalid_auth")
            return
        if token.startswith("xapp-"):
            raise Refusal("not_allowed_token_type")
        if token != BOT_TOKEN:
            raise Refusal("invalid_auth" if token else "not_authed")
        if self.revoked:
            raise Refusal(self.revoked)
        if (needed := NEEDS.get(method)) and needed not in self.scopes:
            raise Refusal("missing_scope", needed=needed, provided=",".join(sorted(self.scopes)))

    # --- the methods ---------------------------------------------------------------------------------------------
    def do_auth_test(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": self.url, "team": "Acme", "team_id": TEAM, "user": "waiton", "user_id": BOT, "bot_id": "BBOT"}

    def do_apps_connections_open(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={next(self.count)}"}

    def do_chat_postMessage(self, args: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(args["channel"])
        thread = args.get("thread_ts")
        if thread and (channel, thread) not in self.messages:
            raise Refusal("thread_not_found")
        blocks = self._blocks(args)
        message = {
            "type": "message",
            "user": BOT,
            "bot_id": "BBOT",
            "app_id": APP,
            "text": args.get("text", "")[: limits.POST_TEXT],
            "blocks": blocks,
            "metadata": args.get("metadata"),
            "edits": 0,
        }
        kept = self.keep(channel, message | ({"thread_ts": thread} if thread else {}))
        return {"channel": channel, "ts": kept["ts"], "message": kept}

    def do_chat_update(self, args: Mapping[str, Any]) -> dict[str, Any]:
        message = self.messages.get((args["channel"], args["ts"]))
        if message is None:
            raise Refusal("message_not_found")
        if message["user"] != BOT:
            raise Refusal("cant_update_message")
        self._writable(args["channel"])
        if len(args.get("text", "")) > limits.EDIT_TEXT:
            raise Refusal("msg_too_long")
        message |= {"text": args.get("text", ""), "blocks": self._blocks(args), "edits": message["edits"] + 1}
        return {"channel": args["channel"], "ts": args["ts"], "text": args.get("text", "")}

    def do_chat_postEphemeral(self, args: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(args["channel"])
        if args["user"] not in self.members[channel]:
            raise Refusal("user_not_in_channel")
        ts = self._ts()
        self.whispers.append({**args, "blocks": self._blocks(args), "ts": ts})
        return {"message_ts": ts}

    def do_conversations_open(self, args: Mapping[str, Any]) -> dict[str, Any]:
        user = args["users"]
        if user in self.refused:
            raise Refusal(self.refused[user])
        if user not in self.users:
            raise Refusal("user_not_found")
        return {"channel": {"id": f"D{user[1:]}"}}

    def do_conversations_history(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"messages": [m for m in reversed(self._in(args)) if m.get("thread_ts", m["ts"]) == m["ts"]]}

    def do_conversations_replies(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"messages": [m for m in self._in(args) if args["ts"] in (m["ts"], m.get("thread_ts"))]}

    def do_users_info(self, args: Mapping[str, Any]) -> dict[str, Any]:
        if args["user"] not in self.users:
            raise Refusal("user_not_found")
        return {"user": self.users[args["user"]].payload()}

    def do_users_lookupByEmail(self, args: Mapping[str, Any]) -> dict[str, Any]:
        for user in self.users.values():
            if user.email == args["email"] and user.team == TEAM:
                return {"user": user.payload()}
        raise Refusal("users_not_found")

    def do_usergroups_list(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"usergroups": self.groups}

    def do_views_open(self, args: Mapping[str, Any]) -> dict[str, Any]:
        at, user = self.triggers.pop(args["trigger_id"], (0.0, ""))
        if not user:
            raise Refusal("exchanged_trigger_id")
        if self.now().timestamp() - at > 3:
            raise Refusal("expired_trigger_id")
        return self._viewed(args["view"], user, f"V{next(self.count)}")

    def do_views_update(self, args: Mapping[str, Any]) -> dict[str, Any]:
        for user, view in self.views.items():
            if view["id"] == args["view_id"]:
                if args.get("hash") not in (None, view["hash"]):
                    raise Refusal("hash_conflict")
                return self._viewed(args["view"], user, view["id"])
        raise Refusal("not_found")

    def do_views_publish(self, args: Mapping[str, Any]) -> dict[str, Any]:
        if faults := limits.view_faults(args["view"]):
            raise Refusal("invalid_arguments", response_metadata={"messages": faults})
        self.homes[args["user_id"]] = args["view"]
        return {"view": {"id": "VHOME", **args["view"]}}

    def do_files_getUploadURLExternal(self, args: Mapping[str, Any]) -> dict[str, Any]:
        if int(args["length"]) <= 0:
            raise Refusal("invalid_arguments")
        ident = self.file(args["filename"], b"")
        return {"upload_url": f"{self.url}/upload/{ident}", "file_id": ident}

    def do_files_completeUploadExternal(self, args: Mapping[str, Any]) -> dict[str, Any]:
        channel = self._writable(args["channel_id"])
        for one in args["files"]:
            kept = self.files[one["id"]]
            message = {"type": "message", "user": BOT, "app_id": APP, "subtype": "file_share", "text": "", "blocks": []}
            message |= {"files": [{"id": one["id"], "name": kept["name"]}], "edits": 0}
            thread = args.get("thread_ts")
            self.keep(channel, message | ({"thread_ts": thread} if thread else {}))
        return {"files": args["files"]}

    def do_files_info(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"file": {"id": args["file"], "url_private_download": f"{self.url}/files/{args['file']}"}}

    def _viewed(self, view: dict[str, Any], user: str, ident: str) -> dict[str, Any]:
        if faults := limits.view_faults(view):
            raise Refusal("invalid_arguments", response_metadata={"messages": faults})
        self.views[user] = view | {"id": ident, "hash": f"h{next(self.count)}"}
        return {"view": self.views[user]}

    def _blocks(self, args: Mapping[str, Any]) -> list[dict[str, Any]]:
        blocks = args.get("blocks") or []
        if not blocks and not args.get("text"):
            raise Refusal("no_text")
        faults = [fault for fault in limits.faults(blocks, text=args.get("text") or "-") if "of text" not in fault]
        if faults:
            raise Refusal("invalid_blocks", response_metadata={"messages": faults})
        if any(b["type"] == "image" and not b["image_url"].startswith("https://") for b in blocks):
            raise Refusal("invalid_blocks", response_metadata={"messages": ["downloading image failed"]})
        if limits.characters(blocks) > BLOCK_TEXT:
            raise Refusal("msg_blocks_too_long")
        return blocks

    def _writable(self, channel: str) -> str:
        if channel in self.refused:
            raise Refusal(self.refused[channel])
        if channel not in self.members:
            raise Refusal("channel_not_found")
        if BOT not in self.members[channel]:
            raise Refusal("not_in_channel")
        return channel

    def _in(self, args: Mapping[str, Any]) -> list[dict[str, Any]]:
        oldest = float(args.get("oldest") or 0)
        return [m for (channel, ts), m in self.messages.items() if channel == args["channel"] and float(ts) >= oldest]

    def _ts(self) -> str:
        self.stamp = max(self.now().timestamp(), self.stamp + 0.000001)
        return f"{self.stamp:.6f}"

    def keep(self, channel: str, message: dict[str, Any]) -> dict[str, Any]:
        ts = self._ts()
        self.messages[channel, ts] = message | {"ts": ts}
        return self.messages[channel, ts]

    def file(self, name: str, content: bytes) -> str:
        ident = f"F{next(self.count)}"
        self.files[ident] = {"name": name, "content": content}
        return ident

    async def _upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["id"]]["content"] = await request.read()
        return web.Response(text="OK")

    async def _download(self, request: web.Request) -> web.Response:
        """A file; with no token, or no right to read files, the page to log in at, with 200."""
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}" or "files:read" not in self.scopes:
            return web.Response(text="<html>Sign in to Slack</html>", content_type="text/html")
        return web.Response(body=self.files[request.match_info["id"]]["content"])

    async def _response(self, request: web.Request) -> web.Response:
        body = await request.json()
        where = {"user": request.match_info["user"], "channel": request.match_info["channel"], "ts": self._ts()}
        self.whispers.append({**body, **where, "blocks": self._blocks(body)})
        await self._noticed()
        return web.Response(text="ok")

    # --- the socket ----------------------------------------------------------------------------------------------
    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self.sockets.append(socket)
        self.opened += 1
        await socket.send_json({"type": "hello", "num_connections": len(self.sockets)})
        self.connected.set()
        await self._noticed()
        async for message in socket:
            if message.type == WSMsgType.PING:
                if self.pongs:
                    await socket.pong(message.data)
                self.pings += 1
                await self._noticed()
            elif message.type == WSMsgType.TEXT:
                answer = json.loads(message.data)
                if (waiting := self.waiting.get(answer["envelope_id"])) and not waiting.done():
                    waiting.set_result(answer.get("payload"))
        self.sockets.remove(socket)
        if not self.sockets:
            self.connected.clear()
        await self._noticed()
        return socket

    async def bring(self, kind: str, payload: dict[str, Any], *, retry: int = 0, wait_s: float = 5.0) -> Ack:
        """Brings one payload, by the socket or by HTTP, and gives what came back."""
        self.last = (kind, payload)
        begun = time.perf_counter()
        answer = await (
            self.post(kind, payload, retry=retry) if self.events_url else self._push(kind, payload, retry, wait_s)
        )
        answer.seconds = time.perf_counter() - begun
        return answer

    async def _push(self, kind: str, payload: dict[str, Any], retry: int, wait_s: float) -> Ack:
        await asyncio.wait_for(self.connected.wait(), wait_s)
        ident = f"E{next(self.count)}"
        waits = kind == "slash_commands" or payload.get("type") == "view_submission"
        envelope: dict[str, Any] = {
            "envelope_id": ident,
            "type": kind,
            "payload": payload,
            "accepts_response_payload": waits,
        }
        if kind == "events_api":
            envelope |= {"retry_attempt": retry, "retry_reason": "timeout" if retry else ""}
        self.waiting[ident] = asyncio.get_running_loop().create_future()
        await self.sockets[-1].send_json(envelope)
        try:
            return Ack(200, await asyncio.wait_for(self.waiting[ident], wait_s))
        except TimeoutError:
            return Ack(None)

    async def post(
        self, kind: str, payload: dict[str, Any], *, retry: int = 0, age: int = 0, secret: str = SECRET, to: str = ""
    ) -> Ack:
        """Posts one payload, signed. `age`: seconds that its time stamp is old."""
        form = kind != "events_api"
        flat = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
        body = urlencode(flat) if form else json.dumps(payload)
        stamp = str(int(machine_time().timestamp()) - age)
        headers = {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body) or "",
            "Content-Type": "application/x-www-form-urlencoded" if form else "application/json",
        }
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        async with self.http.post(to or self.events_url, data=body, headers=headers) as answer:
            text = await answer.text()
            return Ack(answer.status, json.loads(text) if text.startswith("{") else text or None)

    # --- what people do ------------------------------------------------------------------------------------------
    def trigger(self, user: str) -> str:
        ident = f"{next(self.count)}.trigger"
        self.triggers[ident] = (self.now().timestamp(), user)
        return ident

    def event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event_id": f"Ev{next(self.count)}",
            "event_time": int(self.now().timestamp()),
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True, "is_enterprise_install": False}],
            "event": dict(event),
        }

    def message(self, user: str, channel: str, text: str = "", **more: Any) -> dict[str, Any]:
        """A message that somebody writes: it stands in the channel, and this is its event."""
        team = self.users[user].team if user in self.users else TEAM
        kept = self.keep(channel, {"type": "message", "user": user, "team": team, "text": text, **more})
        kind = "im" if channel.startswith("D") else "channel"
        return self.event({**kept, "channel": channel, "channel_type": kind, "event_ts": kept["ts"]})

    async def say(self, user: str, channel: str, text: str = "", **more: Any) -> Ack:
        """Somebody writes. A message that names the bot comes twice, as two events; what is not acknowledged comes
        once more."""
        event = self.message(user, channel, text, **more)
        answer = await self.insisted("events_api", event)
        if not channel.startswith("D") and f'"{BOT}"' in json.dumps(more) + f'"{BOT}"' * (f"<@{BOT}>" in text):
            mention = self.event({**event["event"], "type": "app_mention"})
            await self.insisted("events_api", mention)
            self.last = ("events_api", event)
        return answer

    async def insisted(self, kind: str, payload: dict[str, Any]) -> Ack:
        answer = await self.bring(kind, payload, wait_s=3.0)
        return answer if answer.status == 200 else await self.bring(kind, payload, retry=1)

    def tapping(self, user: str, channel: str, message: Mapping[str, Any], action: Mapping[str, Any]) -> dict[str, Any]:
        """The payload of somebody's tap on something in a message."""
        root = message.get("thread_ts")
        return {
            "type": "block_actions",
            "team": {"id": TEAM, "domain": "acme"},
            "user": {"id": user, "username": user.lower(), "team_id": self.users[user].team},
            "api_app_id": APP,
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel}
            | ({"thread_ts": root} if root else {}),
            "trigger_id": self.trigger(user),
            "channel": {"id": channel, "name": "ops"},
            "message": {k: v for k, v in message.items() if k != "edits"},
            "response_url": f"{self.url}/response/{user}/{channel}",
            "actions": [{"block_id": "b", "action_ts": self._ts(), **action}],
        }

    def submitting(self, user: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The payload of sending the form that is open at somebody's screen."""
        view = self.views[user]
        state: dict[str, Any] = {}
        for block in view["blocks"]:
            if block["type"] == "input":
                state[block["block_id"]] = {block["element"]["action_id"]: _filled(block, values)}
        return {
            "type": "view_submission",
            "team": {"id": TEAM, "domain": "acme"},
            "user": {"id": user, "username": user.lower(), "team_id": self.users[user].team},
            "api_app_id": APP,
            "trigger_id": self.trigger(user),
            "view": view | {"team_id": TEAM, "state": {"values": state}},
            "response_urls": [],
        }

    def command(self, user: str, channel: str, text: str = "") -> dict[str, Any]:
        return {
            "command": "/waiton",
            "text": text,
            "team_id": TEAM,
            "api_app_id": APP,
            "user_id": user,
            "user_name": user.lower(),
            "channel_id": channel,
            "trigger_id": self.trigger(user),
            "response_url": f"{self.url}/response/{user}/{channel}",
        }

    def shortcut(self, user: str, channel: str, ts: str) -> dict[str, Any]:
        return {
            "type": "message_action",
            "callback_id": "waiton_run",
            "team": {"id": TEAM, "domain": "acme"},
            "user": {"id": user, "name": user.lower(), "team_id": self.users[user].team},
            "channel": {"id": channel, "name": "ops"},
            "message": self.messages[channel, ts],
            "trigger_id": self.trigger(user),
            "action_ts": self._ts(),
            "response_url": f"{self.url}/response/{user}/{channel}",
        }

    def script_file(self, name: str, content: bytes) -> dict[str, Any]:
        """A file as a message carries it."""
        ident = self.file(name, content)
        url = f"{self.url}/files/{ident}"
        shape = {"id": ident, "name": name, "mode": "snippet", "mimetype": "text/plain", "size": len(content)}
        return shape | {"url_private_download": url, "preview": content[:20].decode(errors="replace")}


def _filled(block: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The state of one field after somebody filled it: by its name, or by its label."""
    element = block["element"]
    label = block["label"]["text"]
    given = values.get(block["block_id"], values.get(label))
    kind = element["type"]
    if kind == "static_select":
        options = element["options"]
        wanted = str(given) if given is not None else (element.get("initial_option") or {}).get("value")
        picked = [o for o in options if wanted in (o["value"], o["text"]["text"])]
        return {"type": kind, "selected_option": picked[0] if picked else None}
    if kind == "checkboxes":
        ticked = str(given).lower() in ("true", "yes")
        return {"type": kind, "selected_options": element["options"] if ticked else []}
    if kind in ("datepicker", "timepicker", "users_select"):
        key = {"datepicker": "date", "timepicker": "time", "users_select": "user"}[kind]
        return {"type": kind, f"selected_{key}": given}
    return {"type": kind, "value": element.get("initial_value") if given is None else str(given)}


# --- what somebody sees ----------------------------------------------------------------------------------------------
_DATE = re.compile(r"<!date\^\d+\^[^|>]*\|([^>]*)>")
_LINK = re.compile(r"<(https?://[^|>]+|mailto:[^|>]+)(?:\|([^>]*))?>")
_USER = re.compile(r"<@([A-Z0-9]+)>")


def plainly(markup: str) -> str:
    """Markup as a reader sees it, in UTC."""
    markup = _DATE.sub(r"\1", markup)
    markup = _LINK.sub(lambda found: found[2] or found[1], markup)
    markup = _USER.sub(lambda found: f"@{found[1]}", markup)
    markup = re.sub(r"(?<!\w)\*([^*\n]+)\*(?!\w)", r"\1", markup)
    return markup.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def words(message: Mapping[str, Any]) -> str:
    """All text of a message."""
    blocks = message.get("blocks") or []
    if not blocks:
        return plainly(message.get("text", ""))
    lines: list[str] = []
    for block in blocks:
        match block["type"]:
            case "section" | "header":
                lines.append(plainly(block["text"]["text"]))
            case "context":
                lines += [plainly(element["text"]) for element in block["elements"]]
            case "rich_text":
                lines += ["".join(e.get("text", "") for e in part["elements"]) for part in block["elements"]]
            case "image":
                lines.append(block["alt_text"])
            case _:
                pass
    return "\n".join(lines)


def actions(message: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Everything in a message that can be tapped: its label, and the action that it brings."""
    found: list[tuple[str, dict[str, Any]]] = []
    for block in message.get("blocks") or []:
        for element in block["elements"] if block["type"] == "actions" else []:
            base = {"type": element["type"], "action_id": element["action_id"]}
            if element["type"] == "button":
                held = {"value": element["value"]} if "value" in element else {}
                found.append((element["text"]["text"], {**base, **held, "text": element["text"]}))
            else:
                found += [(o["text"]["text"], {**base, "selected_option": o}) for o in element["options"]]
    return found


# --- the stage -------------------------------------------------------------------------------------------------------
class SlackStage:
    """Slack as the contract suite sees it, by the socket or by HTTP."""

    name = "slack"
    capabilities = Capabilities(
        edits=True, looks_up=True, buttons=limits.BUTTONS, text_limit=limits.BLOCK_TEXT, local_times=True
    )

    def __init__(self, *, http: bool = False) -> None:
        self.by_http = http
        self.slack = Slack()
        self.address = ""
        self.took = 0.0

    @property
    def env(self) -> Mapping[str, str]:
        way = {"SLACK_SIGNING_SECRET": SECRET} if self.by_http else {"SLACK_APP_TOKEN": APP_TOKEN}
        return {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_BASE_URL": f"{self.slack.url}/api/", **way}

    async def __aenter__(self) -> SlackStage:
        await self.slack.__aenter__()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.slack.__aexit__()

    def ref(self, who: str) -> str:
        return f"U{who.upper()}"

    def connect(self, address: str) -> None:
        self.address = address.rstrip("/")
        if self.by_http:
            self.slack.events_url = f"{self.address}/slack/events"

    async def ready(self) -> None:
        if not self.by_http:
            await asyncio.wait_for(self.slack.connected.wait(), 20)

    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        more: dict[str, Any] = {}
        lead = f"<@{BOT}>"
        match form:
            case "text":
                more["blocks"] = composer.as_text(text, BOT)
            case "code":
                more["blocks"] = composer.as_code(text, BOT)
            case "rich":
                more["blocks"] = composer.as_rich(text, BOT)
            case "file":
                more |= {"subtype": "file_share", "files": [self.slack.script_file("script.md", text.encode())]}
            case _:
                raise NotImplementedError(form)
        await self._said(who, "C1", f"{lead} {text}" if form != "file" else lead, **more)
        return f"slack:C1/{self._latest(who, 'C1')}"

    async def write(self, who: str, text: str) -> str:
        channel = f"D{who.upper()}"
        await self._said(who, channel, text, blocks=composer.as_text(text))
        return f"slack:{channel}"

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        await self._brought("interactive", self._tapping(who, seen, label))

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        channel, ts, message = self._message(seen)
        root = message.get("thread_ts") or ts
        await self._said(who, channel, text, thread_ts=root, blocks=composer.as_text(text))

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        user = self.ref(who)
        if user not in self.slack.views:
            _, _, message = self._message(seen)
            label = next(label for label, action in actions(message) if str(action.get("value")).startswith("w:"))
            await self.tap(who, seen, label)
            await self.slack.until(lambda: user in self.slack.views and "submit" in self.slack.views[user])
        answer = await self._brought("interactive", self.slack.submitting(user, values))
        body = answer.body if isinstance(answer.body, dict) else {}
        if body.get("response_action") == "errors":
            return body["errors"]
        del self.slack.views[user]
        return {}

    async def again(self) -> None:
        assert self.slack.last is not None
        await self._brought(*self.slack.last, retry=1)

    async def forged(self) -> bool:
        if not self.address:
            return False
        message = {"ts": "1.1", "text": "", "blocks": []}
        tap = self.slack.tapping("UANA", "C1", message, {"type": "button", "action_id": "c0", "value": "w:x:0"})
        to = f"{self.address}/slack/events"
        forged = await self.slack.post("interactive", tap, secret="not the secret", to=to)
        stale = await self.slack.post("interactive", tap, age=360, to=to)
        return 200 in (forged.status, stale.status)

    def seen(self, who: str) -> list[Seen]:
        user = self.ref(who)
        return [
            Seen(
                ref=ts,
                conversation=_conversation(channel, message),
                text=words(message),
                buttons=tuple(label for label, _ in actions(message)),
                edits=message["edits"],
            )
            for (channel, ts), message in self.slack.messages.items()
            if message["user"] == BOT and user in self.slack.members[channel]
        ]

    def told(self, who: str) -> list[str]:
        user = self.ref(who)
        whispers = [(one["ts"], words(one)) for one in self.slack.whispers if one["user"] == user]
        direct = [
            (ts, words(m))
            for (channel, ts), m in self.slack.messages.items()
            if channel == f"D{who.upper()}" and (m.get("metadata") or {}).get("event_type") == "waiton_told"
        ]
        return [text for _, text in sorted(whispers + direct)]

    def acknowledged(self) -> float:
        return self.took

    def away(self, calls: int) -> None:
        self.slack.faults.append(Fault("away", calls))

    def lose(self, calls: int) -> None:
        self.slack.faults.append(Fault("lose", calls))

    def busy(self, calls: int, seconds: float) -> None:
        self.slack.faults.append(Fault("busy", calls, seconds=seconds))

    def refuse(self, who: str) -> None:
        self.slack.refused |= {self.ref(who): "user_disabled", f"D{who.upper()}": "channel_not_found"}

    async def _said(self, who: str, channel: str, text: str, **more: Any) -> None:
        self.took = (await self.slack.say(self.ref(who), channel, text, **more)).seconds

    async def _brought(self, kind: str, payload: dict[str, Any], *, retry: int = 0) -> Ack:
        answer = await self.slack.bring(kind, payload, retry=retry)
        self.took = answer.seconds
        return answer

    def _latest(self, who: str, channel: str) -> str:
        user = self.ref(who)
        return [ts for (c, ts), m in self.slack.messages.items() if c == channel and m["user"] == user][-1]

    def _message(self, seen: Seen) -> tuple[str, str, dict[str, Any]]:
        channel = seen.conversation.removeprefix("slack:").partition("/")[0]
        return channel, seen.ref, self.slack.messages[channel, seen.ref]

    def _tapping(self, who: str, seen: Seen, label: str) -> dict[str, Any]:
        """A tap on what stands there, or on what stood there once on somebody's screen."""
        channel, _, message = self._message(seen)
        for one, action in [*actions(message), *self._once(channel, seen.ref)]:
            if one == label:
                return self.slack.tapping(self.ref(who), channel, message, action)
        raise AssertionError(f"nobody ever saw {label!r} there")

    def _once(self, channel: str, ts: str) -> list[tuple[str, dict[str, Any]]]:
        """What could be tapped in a message at any time: as it was posted, and as it was edited."""
        posted = [args for method, _, args in self.slack.calls if method == "chat.postMessage"]
        mine = self.slack.messages[channel, ts].get("metadata")
        first = [args for args in posted if args.get("metadata") == mine]
        edits = [a for m, _, a in self.slack.calls if m == "chat.update" and (a["channel"], a["ts"]) == (channel, ts)]
        return [found for args in [*first, *edits] for found in actions(args)]


def _conversation(channel: str, message: Mapping[str, Any]) -> str:
    if channel.startswith("D"):
        return f"slack:{channel}"
    return f"slack:{channel}/{message.get('thread_ts') or message['ts']}"
