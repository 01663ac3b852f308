"""The calls of one LINE channel, by the SDK. It is imported when the first is made, in a thread: it takes seconds."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, cast

import orjson

from bot.domain.errors import Misconfigured

BASE = "https://api.line.me"
WAIT_S = 10.0
"""Seconds until a call counts as lost; the SDK's own is five minutes."""


class SaidNo(Exception):
    """LINE refused a call: its status, its words, what is wrong where, and how long to wait, where it says."""

    def __init__(self, status: int, words: str, body: Mapping[str, Any], pause_s: float | None = None) -> None:
        super().__init__(f"{status}: {words}")
        self.status, self.words, self.body, self.pause_s = status, words, body, pause_s

    @property
    def where(self) -> tuple[str, ...]:
        """The parts of what was sent that it is about."""
        return tuple(str(one.get("property") or "") for one in self.body.get("details") or ())


class Stopped(ConnectionError):
    """The channel was stopped: nothing goes out any more."""


class Calls:
    """Raises `SaidNo` for what LINE says; `OSError`, `TimeoutError` and aiohttp's errors where it is away."""

    def __init__(self, access_token: str, base_url: str | None) -> None:
        if find_spec("linebot") is None:
            raise Misconfigured("LINE is configured but its library is not installed: pip install 'waiton[line]'")
        self._token, self._base = access_token, base_url
        self._ready = asyncio.Lock()
        self._sdk: Any = None
        self._client: Any = None
        self._stopped = False

    async def open(self) -> None:
        """Imports the SDK and makes its client, within the loop that runs: one made outside of it fails."""
        async with self._ready:
            if self._stopped:
                raise Stopped
            if self._client is None:
                self._sdk = await asyncio.to_thread(importlib.import_module, "linebot.v3.messaging")
                made = self._sdk.Configuration(access_token=self._token, host=self._base)
                self._client = self._sdk.AsyncApiClient(made)

    async def close(self) -> None:
        async with self._ready:
            self._stopped = True
            if self._client is not None:
                await self._client.close()
                self._client = None

    # --- what goes out ----------------------------------------------------------------------------------------------
    async def push(self, to: str, messages: Sequence[Mapping[str, Any]], key: str) -> list[str]:
        """Sends; the messages' ids. `key` is the same at every attempt: what was taken before is not sent again."""
        await self.open()
        request = self._sdk.PushMessageRequest.from_dict({"to": to, "messages": list(messages)})
        try:
            said = await self._call("push_message", request, x_line_retry_key=key)
        except SaidNo as no:
            if no.status != 409:
                raise
            return _ids(no.body.get("sentMessages"))
        return [str(one.id) for one in said.sent_messages]

    async def reply(self, token: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Answers an event, once. It takes no key: the token is one."""
        await self.open()
        request = self._sdk.ReplyMessageRequest.from_dict({"replyToken": token, "messages": list(messages)})
        await self._call("reply_message", request)

    async def loading(self, user: str, seconds: int) -> None:
        """Shows somebody that an answer is being made."""
        await self.open()
        request = self._sdk.ShowLoadingAnimationRequest.from_dict({"chatId": user, "loadingSeconds": seconds})
        await self._call("show_loading_animation", request)

    # --- what is asked ----------------------------------------------------------------------------------------------
    async def content(self, message: str) -> bytes:
        await self.open()
        blob = self._sdk.AsyncMessagingApiBlob(self._client)
        return bytes(await self._answer(blob.get_message_content(message, _request_timeout=WAIT_S)))

    async def link_token(self, user: str) -> str:
        return str((await self._call("issue_link_token", user)).link_token)

    async def info(self) -> str:
        """The account's name."""
        return str((await self._call("get_bot_info")).display_name)

    async def endpoint(self) -> tuple[str, bool]:
        """Where LINE brings events, and whether it does."""
        try:
            said = await self._call("get_webhook_endpoint")
        except SaidNo as no:
            if no.status == 404:
                return "", False
            raise
        return str(said.endpoint), bool(said.active)

    async def try_endpoint(self) -> tuple[int, str]:
        """LINE calls our webhook now: the status that it got, and its reason."""
        said = await self._call("test_webhook_endpoint")
        return int(said.status_code), "" if said.success else str(said.reason)

    async def quota(self) -> tuple[int | None, int]:
        """Messages a month, None without a limit; and how many are used."""
        limit, used = await self._call("get_message_quota"), await self._call("get_message_quota_consumption")
        return (int(limit.value) if limit.value is not None else None), int(used.total_usage)

    async def _call(self, name: str, *given: Any, **more: Any) -> Any:
        await self.open()
        method = getattr(self._sdk.AsyncMessagingApi(self._client), name)
        return await self._answer(method(*given, **more, _request_timeout=WAIT_S))

    async def _answer(self, call: Any) -> Any:
        try:
            return await call
        except self._sdk.ApiException as error:
            raise _said_no(error) from error


def _said_no(error: Any) -> SaidNo:
    try:
        body = cast("dict[str, Any]", orjson.loads(error.body or b"{}"))
    except orjson.JSONDecodeError:
        body = {}
    pause = (error.headers or {}).get("Retry-After")
    wait = float(pause) if pause and str(pause).replace(".", "", 1).isdigit() else None
    return SaidNo(int(error.status or 0), str(body.get("message") or error.reason or ""), body, wait)


def _ids(sent: Any) -> list[str]:
    return [str(one["id"]) for one in sent or ()]
