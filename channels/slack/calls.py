"""One attempt a call, and what its failure means: again later, never, or not at all any more.

The SDK's own retries are off: its default posts a second time when an answer is lost, and Slack has no key by which a
repeat could be told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from channels.base import Later, Refused

BUSY = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
BUSY_PAUSE = timedelta(seconds=30)
"""Where Slack does not say how long."""
UNSURE = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
"""Slack's own faults: part of it may have happened."""
UNSURE_PAUSE = timedelta(seconds=5)
AWAY_PAUSE = timedelta(seconds=2)
STOPS = {
    "account_inactive": "the bot's user was removed, or the app was taken out of the workspace",
    "invalid_auth": "Slack does not know the token",
    "not_authed": "no token was sent",
    "token_revoked": "the token was taken back",
    "token_expired": "the token has run out",
    "team_access_not_granted": "the app may not be used in this workspace",
    "no_permission": "the token may not do this",
    "not_allowed_token_type": "the token is of another kind than this needs",
}
"""The platform takes nothing more from us, with this token."""
WORDS = {
    "cannot_dm_bot": "a bot cannot be written to",
    "cant_update_message": "the message is not the bot's to change",
    "channel_not_found": "the conversation is not there, or the bot cannot see it",
    "edit_window_closed": "the workspace does not let messages of that age be changed",
    "is_archived": "the channel is archived",
    "message_not_found": "the message is not there any more",
    "missing_scope": "the app lacks a right",
    "msg_too_long": "the text is too long",
    "not_in_channel": "the bot is not in that channel: invite it with /invite",
    "restricted_action": "the workspace's settings do not let the bot write there",
    "user_disabled": "that account is switched off",
    "user_not_found": "nobody has that id",
    "user_not_in_channel": "that person is not in the channel",
    "users_not_found": "nobody has that address",
}
BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments"})
"""The blocks are at fault, and the same in plain text would be taken."""

Got = Mapping[str, Any]


class Calls:
    """Slack's Web API. `scope`: what else waits when a call has to."""

    def __init__(self, client: AsyncWebClient) -> None:
        self.client = client

    async def call(
        self, method: str, *, scope: Literal["conversation", "channel"] = "channel", **args: Any
    ) -> Got | Later | Refused:
        """What Slack answered, its headers under `headers`; or what becomes of the call."""
        try:
            given = await getattr(self.client, method.replace(".", "_"))(**args)
        except Exception as fault:  # whatever the SDK and the network under it raise has one of three meanings
            return meaning(fault, scope)
        return {**given.data, "headers": {str(k).lower(): str(v) for k, v in given.headers.items()}}


def meaning(fault: BaseException, scope: Literal["conversation", "channel"] = "channel") -> Later | Refused:
    """What a failed call means. Raises what is no fault of the platform or the network."""
    match fault:
        case SlackApiError():
            return _said(fault, scope)
        case aiohttp.ClientConnectorError() | ConnectionRefusedError():
            return Later(why="Slack cannot be reached", pause=AWAY_PAUSE, scope="channel")
        case TimeoutError() | asyncio.TimeoutError():
            return Later(why="Slack gave no answer in time", pause=AWAY_PAUSE, lost=True, scope="channel")
        case aiohttp.ClientError() | OSError():
            return Later(why="the connection to Slack broke off", pause=AWAY_PAUSE, lost=True, scope="channel")
        case _:
            raise fault


def code_of(refused: Refused) -> str:
    """Slack's own word for a refusal."""
    return refused.why.rpartition("(")[2].rstrip(")")


def _said(fault: SlackApiError, scope: Literal["conversation", "channel"]) -> Later | Refused:
    answer: Any = fault.response
    status = int(getattr(answer, "status_code", None) or getattr(answer, "status", 0) or 0)
    data = getattr(answer, "data", None)
    code = str(data.get("error") or "") if isinstance(data, Mapping) else ""
    if status == 429 or code in BUSY:
        return Later(why="Slack asks for a pause", pause=_pause(getattr(answer, "headers", None) or {}), scope=scope)
    if status >= 500 or code in UNSURE or not code:
        return Later(why=f"Slack answered {code or status}", pause=UNSURE_PAUSE, lost=True, scope="channel")
    words = STOPS.get(code) or WORDS.get(code) or "Slack does not take it"
    needed = f", `{data['needed']}`" if isinstance(data, Mapping) and data.get("needed") else ""
    return Refused(why=f"{words}{needed} ({code})", stops=code in STOPS)


def _pause(headers: Mapping[str, Any]) -> timedelta:
    for name, value in headers.items():
        if str(name).lower() == "retry-after" and str(value).isdigit():
            return timedelta(seconds=int(value))
    return BUSY_PAUSE
