"""The socket by which Slack reaches us: opened, watched by our own clock, and built anew when it falls silent.

The SDK reconnects by itself too, and has been seen to come back without events; so each connection here is a client of
its own, and whatever ends it, or a silence on it, gives the next one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from channels.base import Fault, Later, Refused
from channels.slack.calls import Calls

log = structlog.get_logger()

DRAIN_S = 3.0
"""How long what came on an old socket may take to be acknowledged on it: Slack waits no longer."""


class _Client(SocketModeClient):
    """One connection. Where the SDK would open another, it says that this one is at its end."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.ended = asyncio.Event()
        self.heard = 0
        self.handling: set[asyncio.Task[Any]] = set()

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        self.ended.set()

    async def enqueue_message(self, message: str) -> None:
        self.heard += 1
        await super().enqueue_message(message)

    def signs(self) -> tuple[int, float | None]:
        """What changes with every sign of life: messages, and pongs."""
        return self.heard, self.last_ping_pong_time

    @property
    def broken(self) -> bool:
        return self.current_session is None or self.current_session.closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How a socket is watched. `ping_s`: seconds between pings; `silence`: how long nothing may be heard; `pauses_s`:
    seconds between attempts, the last one for ever."""

    ping_s: float = 10.0
    silence: timedelta = timedelta(seconds=30)
    pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Link:
    """Keeps one socket open."""

    def __init__(
        self,
        app: AsyncApp,
        calls: Calls,
        app_token: str,
        *,
        now: Callable[[], datetime],
        watching: Watching,
    ) -> None:
        self._app = app
        self._calls = calls
        self._token = app_token
        self._now = now
        self._watching = watching
        self._retiring: set[asyncio.Task[None]] = set()
        self._client: _Client | None = None
        self._stopping = asyncio.Event()
        self.built = 0
        """Sockets opened so far."""
        self.fault: Fault | None = None

    async def run(self) -> None:
        """Until it is stopped."""
        tries = 0
        while not self._stopping.is_set():
            if await self._open():
                tries = 0
                await self._watch()
            else:
                pause = self._watching.pauses_s[min(tries, len(self._watching.pauses_s) - 1)]
                tries += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)

    async def stop(self) -> None:
        """Takes nothing more; what was taken is acknowledged first."""
        self._stopping.set()
        if self._client:
            self._client.ended.set()
            await self._retire(self._client)
            self._client = None
        await asyncio.gather(*self._retiring)

    async def _open(self) -> bool:
        """A new socket in place of the old one, which ends what it has begun."""
        got = await self._calls.call("apps.connections.open", app_token=self._token)
        if isinstance(got, Later | Refused):
            log.info("slack.unlinked", why=got.why)
            self.fault = Fault(what=f"Slack opens no socket: {got.why}", mend=_MEND) if _is_final(got) else None
            return False
        client = _Client(
            app_token=self._token,
            logger=_quiet,
            web_client=self._calls.client,
            auto_reconnect_enabled=False,
            ping_interval=self._watching.ping_s,
        )
        client.wss_uri = got["url"]
        client.socket_mode_request_listeners.append(self._handle)  # pyright: ignore[reportArgumentType]
        try:
            await self._connect(client)
        except Exception as fault:  # a socket that cannot be opened is tried again, whatever the reason
            log.info("slack.unlinked", why=str(fault) or type(fault).__name__)
            await client.close()
            return False
        old, self._client = self._client, client
        if old:
            self._later(self._retire(old))
        self.built += 1
        self.fault = None
        log.info("slack.linked", sockets=self.built)
        return True

    async def _connect(self, client: _Client) -> None:
        """Opens the socket, once: the SDK would try for ever, with an address that serves one attempt."""
        client.current_session = await client.aiohttp_client_session.ws_connect(
            client.wss_uri or "", autoping=False, proxy=client.proxy
        )
        client.current_session_monitor = asyncio.ensure_future(client.monitor_current_session())
        client.message_receiver = asyncio.ensure_future(client.receive_messages())

    async def _watch(self) -> None:
        """Returns when this socket is at its end, broken, or silent for too long."""
        client = self._client
        assert client is not None
        signs, at = client.signs(), self._now()
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.ended.wait(), self._watching.ping_s)
            if client.ended.is_set() or client.broken:
                return
            if client.signs() != signs:
                signs, at = client.signs(), self._now()
            elif self._now() - at >= self._watching.silence:
                log.warning("slack.silent", since=at.isoformat())
                return

    async def _handle(self, client: _Client, request: SocketModeRequest) -> None:
        """What came, through the same app that the HTTP route uses."""
        task = asyncio.current_task()
        if task:
            client.handling.add(task)
        try:
            answer = await run_async_bolt_app(self._app, request)
            await send_async_response(client, request, answer, 0.0)
        except (ConnectionError, AttributeError) as fault:
            log.info("slack.unacknowledged", why=str(fault))
        finally:
            if task:
                client.handling.discard(task)

    async def _retire(self, client: _Client) -> None:
        if client.handling:
            await asyncio.wait(client.handling, timeout=DRAIN_S)
        tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
        await client.close()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


_MEND = "make a new app-level token with `connections:write` (Basic Information) and set SLACK_APP_TOKEN"
_quiet = logging.getLogger("channels.slack.link")
_quiet.setLevel(logging.CRITICAL)


def _is_final(got: Later | Refused) -> bool:
    return isinstance(got, Refused)
