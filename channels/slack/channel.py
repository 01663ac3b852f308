"""Slack: Socket Mode and HTTP, one way in; one attempt a call out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from channels.base import Answer, Capabilities, Door, Fault, File, Home, Inbound, Later, Refused, Sender, Thing
from channels.slack import checking, limits
from channels.slack.calls import Calls, meaning
from channels.slack.entrance import Entrance
from channels.slack.link import Link, Watching
from channels.slack.outgoing import Outgoing
from channels.slack.people import People

log = structlog.get_logger()

BASE_URL = "https://slack.com/api/"
TIMEOUT_S = 10
NONE = "-"
"""In place of a token that is not set: for an empty one Bolt looks into the environment."""
PATIENCE_S = 1.0
"""How long looking somebody up may take, and a form: Slack gives three seconds for both and the commit."""


class Slack:
    """One workspace's Slack. `app_token`: by a socket; `signing_secret`: by HTTP; both work at once.

    `base_url` ends in `/api/`. `now`: the clock that watches the socket and dates what is shown; `watching`: how;
    `patience_s`: how long a look-up or a form may take."""

    name = "slack"
    capabilities = Capabilities(
        edits=True,
        looks_up=True,
        buttons=limits.BUTTONS,
        text_limit=limits.BLOCK_TEXT,
        local_times=True,
        forms=True,
        private=True,
    )

    def __init__(
        self,
        *,
        bot_token: str,
        app_token: str = "",
        signing_secret: str = "",
        base_url: str = BASE_URL,
        now: Callable[[], datetime],
        timeout_s: float = TIMEOUT_S,
        watching: Watching = Watching(),
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._bot_token = bot_token
        self._app_token = app_token
        self._signing_secret = signing_secret
        self._base_url = base_url
        self._now = now
        self._timeout_s = timeout_s
        self._watching = watching
        client = AsyncWebClient(
            token=bot_token or NONE, base_url=base_url, timeout=int(timeout_s) or 1, retry_handlers=[]
        )
        self._client = client
        self._calls = Calls(client)
        self._people = People(self._calls, now)
        self._outgoing = Outgoing(self._calls, now, self._http)
        self._entrance = Entrance(
            self.name, self._calls, self._people, self._outgoing, now, patience_s=patience_s, gone=self._was_taken_out
        )
        self._app = AsyncApp(
            name="waiton",
            client=client,
            signing_secret=signing_secret or NONE,
            logger=_quiet,
            raise_error_for_unhandled_request=False,
            before_authorize=self._entrance.middleware,
        )
        self._session: aiohttp.ClientSession | None = None
        self._link: Link | None = None
        self._running: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._groups: dict[str, tuple[str, ...]] = {}
        self._fault: Fault | None = None

    # --- in ----------------------------------------------------------------------------------------------------------
    async def start(self, door: Door) -> None:
        """Begins; while Slack is away the socket is tried again, with growing pauses."""
        self._entrance.door = door
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        self._session = self._client.session = aiohttp.ClientSession(timeout=timeout)
        self._learning = asyncio.ensure_future(self._learn())
        if self._app_token:
            self._link = Link(self._app, self._calls, self._app_token, now=self._now, watching=self._watching)
            self._running = asyncio.ensure_future(self._link.run())

    async def stop(self) -> None:
        if self._link and self._running:
            await self._link.stop()
            await self._running
        self._link = self._running = None
        if self._learning:
            self._learning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._learning
        await self._entrance.settle()
        self._entrance.door = None
        if self._session:
            await self._session.close()
            self._session = self._client.session = None

    def routes(self) -> list[Route]:
        """`/slack/events`, where a signing secret is set: events, taps, forms and commands alike."""
        return [Route("/slack/events", self._events, methods=["POST"])] if self._signing_secret else []

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        return self._entrance.read(raw)

    @property
    def sockets(self) -> int:
        """Sockets opened so far."""
        return self._link.built if self._link else 0

    # --- out ---------------------------------------------------------------------------------------------------------
    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        return await self._outgoing.send(conversation, thing, ident=ident, again=again)

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        return await self._outgoing.edit(conversation, ref, thing)

    async def tell(self, given: Inbound, text: str, *, alert: bool = False) -> None:
        await self._outgoing.tell(given, text)

    async def home(self, ref: str, home: Home) -> Answer:
        """Publishes somebody's home tab. It is also made anew whenever they open it."""
        return await self._outgoing.home(ref, home)

    async def reach(self, ref: str) -> str | Refused | Later:
        got = await self._calls.call("conversations.open", users=ref)
        return got if isinstance(got, Later | Refused) else f"slack:{got['channel']['id']}"

    async def fetch(self, file: File) -> bytes | Refused | Later:
        """A file's bytes. Only Slack's own hosts see the token."""
        url = file.ref
        if not url.startswith(("https://", "http://")):
            got = await self._calls.call("files.info", file=file.ref)
            if isinstance(got, Later | Refused):
                return got
            url = str(got["file"].get("url_private_download") or got["file"].get("url_private") or "")
        host = urlsplit(url).hostname or ""
        if host != urlsplit(self._base_url).hostname and not host.endswith(".slack.com"):
            return Refused(why=f"the file is kept outside Slack, at {host or 'no address'}")
        try:
            headers = {"Authorization": f"Bearer {self._bot_token}"}
            async with self._http().get(url, headers=headers) as answer:
                return await _content(answer, file)
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            return meaning(fault)

    # --- who ---------------------------------------------------------------------------------------------------------
    async def find(self, email: str) -> Sender | None:
        got = await self._calls.call("users.lookupByEmail", email=email)
        return None if isinstance(got, Later | Refused) else self._people.learn(got["user"])

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The workspace's user groups: handle to the ids of its members. None where the app may not read them; as they
        were last seen where Slack does not answer."""
        got = await self._calls.call("usergroups.list", include_users=True)
        if isinstance(got, Later | Refused):
            return {} if isinstance(got, Refused) else self._groups
        self._people.learn_groups(got["usergroups"])
        self._groups = {str(one["handle"]): tuple(one.get("users") or ()) for one in got["usergroups"]}
        return self._groups

    async def check(self) -> list[Fault]:
        found = await checking.check(
            self._calls,
            bot_token=self._bot_token,
            app_token=self._app_token,
            signing_secret=self._signing_secret,
        )
        own = [fault for fault in (self._fault, self._link.fault if self._link else None) if fault]
        return found or own

    # --- inside ------------------------------------------------------------------------------------------------------
    def _http(self) -> aiohttp.ClientSession:
        """The one session of a channel that runs, for what goes to addresses that Slack gives."""
        if self._session is None:
            raise aiohttp.ClientConnectionError("the channel does not run")
        return self._session

    async def _learn(self) -> None:
        """The workspace's own id, and its groups: what tells strangers and names roles."""
        got = await self._calls.call("auth.test")
        if not isinstance(got, Later | Refused):
            self._people.team = str(got.get("team_id") or "")
        await self.groups()

    async def _events(self, request: Request) -> Response:
        """Slack's HTTP requests; Bolt checks their signature and their age."""
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.BODY_BYTES:
                    return Response(status_code=413)
        except ClientDisconnect:
            return Response(status_code=400)
        headers: dict[str, Any] = dict(request.headers)
        answer = await self._app.async_dispatch(
            AsyncBoltRequest(body=body.decode("utf-8", "replace"), query=str(request.query_params), headers=headers)
        )
        return Response(
            status_code=answer.status, content=answer.body, headers=dict(answer.first_headers_without_set_cookie())
        )

    def _was_taken_out(self, event: str) -> None:
        log.warning("slack.taken_out", what=event)
        what = (
            "the app was removed from the workspace" if event == "app_uninstalled" else "Slack's tokens were taken back"
        )
        self._fault = Fault(what=what, mend="install the app again and copy its tokens")


async def _content(answer: aiohttp.ClientResponse, file: File) -> bytes | Refused | Later:
    if answer.status == 429 or answer.status >= 500:
        return Later(why=f"Slack answered {answer.status}", pause=timedelta(seconds=5))
    if answer.status >= 300:
        return Refused(why=f"the file {file.name} is not there any more ({answer.status})")
    if answer.content_type == "text/html" and "html" not in file.type:
        # Slack shows its login page, with 200, to an app that may not read files.
        return Refused(why="the app lacks a right, `files:read` (missing_scope)")
    content = bytearray()
    async for chunk in answer.content.iter_chunked(65_536):
        content += chunk
        if len(content) > limits.FILE_BYTES:
            return Refused(why=f"the file {file.name} is over {limits.FILE_BYTES // 1048576} MiB")
    return bytes(content)


_quiet = logging.getLogger("channels.slack.bolt")
_quiet.setLevel(logging.CRITICAL)
