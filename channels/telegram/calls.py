"""The calls of one bot, by the SDK: a message out, a message changed, a tap answered, a file fetched."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import BadRequest
from telegram.request import HTTPXRequest

from channels.telegram.inbound import KINDS
from channels.telegram.limits import ANSWER, PLACEHOLDER
from channels.telegram.verdicts import Busy, is_too_old
from channels.telegram.words import Document, Picture, Rows, Step, Words
from channels.text import cut

BASE = "https://api.telegram.org/bot"
CONNECTIONS = 32
ANSWER_S = 15.0
"""Seconds until a call counts as lost."""
POLL_S = 25
"""Seconds that Telegram holds a poll open."""
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class _Way(HTTPXRequest):
    """The SDK's way to Telegram, which says itself how long to wait: the SDK's error for it warns of its own change."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        code, payload = await super().do_request(*args, **kwargs)
        if code == 429 and (pause_s := _pause_s(payload)):
            raise Busy(timedelta(seconds=pause_s))
        return code, payload


class _Kept(_Way):
    """Keeps what came as it came: the SDK's objects do not hold all of it, and one that it cannot read would hold back
    every update behind it."""

    payload: bytes = b""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        code, self.payload = await super().do_request(*args, **kwargs)
        return code, self.payload


class Calls:
    """Raises `TelegramError` for what Telegram says, and where it is away."""

    def __init__(self, token: str, base_url: str) -> None:
        # The one logs its addresses, which hold the token; the other all of an update that it cannot read.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        logging.getLogger("telegram.Bot").setLevel(logging.CRITICAL + 1)
        self._polls = _Kept(connection_pool_size=1, connect_timeout=ANSWER_S, read_timeout=ANSWER_S)
        self._way = _Way(
            connection_pool_size=CONNECTIONS,
            connect_timeout=ANSWER_S,
            read_timeout=ANSWER_S,
            write_timeout=ANSWER_S,
            pool_timeout=ANSWER_S,
        )
        base = base_url.rstrip("/")
        self._bot = Bot(
            token,
            base_url=base,
            base_file_url=f"{base.removesuffix('/bot')}/file/bot",
            request=self._way,
            get_updates_request=self._polls,
        )

    async def close(self) -> None:
        # `Bot.shutdown` closes nothing of a bot that was never told who it is.
        for way in (self._polls, self._way):
            await way.shutdown()

    # --- what comes in ----------------------------------------------------------------------------------------------
    async def me(self) -> tuple[str, bool]:
        """The bot's name, and whether it sees everything that is written in groups."""
        user = await self._bot.get_me()
        return user.username or "", bool(user.can_read_all_group_messages)

    async def updates(self, offset: int | None, wait_s: int = POLL_S) -> list[dict[str, Any]]:
        """What happened from an offset on; asking so confirms everything below it."""
        # An update that the SDK cannot read is read below, by what is known of it.
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            await self._bot.get_updates(offset=offset, timeout=wait_s, allowed_updates=KINDS)
        return list(json.loads(self._polls.payload)["result"])

    async def hook(self, address: str, secret: str) -> None:
        await self._bot.set_webhook(address, secret_token=secret, allowed_updates=KINDS, drop_pending_updates=False)

    async def unhook(self) -> None:
        await self._bot.delete_webhook(drop_pending_updates=False)

    async def hooked(self) -> tuple[str, str]:
        """The webhook's address, and what Telegram last had against it."""
        info = await self._bot.get_webhook_info()
        return info.url, info.last_error_message or ""

    async def fetch(self, ref: str) -> bytes:
        file = await self._bot.get_file(ref)
        return bytes(await file.download_as_bytearray())

    # --- what goes out ----------------------------------------------------------------------------------------------
    async def put(self, chat: int, topic: int | None, step: Step, reply_to: int | None = None) -> int:
        """One message out; its number."""
        answers = None
        if reply_to is not None:
            answers = ReplyParameters(reply_to, allow_sending_without_reply=True)
        match step:
            case Picture():
                sent = await self._bot.send_photo(chat, step.url, message_thread_id=topic)
            case Document():
                sent = await self._bot.send_document(
                    chat, step.content, filename=step.name, message_thread_id=topic, disable_content_type_detection=True
                )
            case Words():
                sent = await self._bot.send_message(
                    chat,
                    step.ink.text,
                    entities=_entities(step),
                    message_thread_id=topic,
                    reply_parameters=answers,
                    reply_markup=_markup(step, private=chat > 0),
                    link_preview_options=_NO_PREVIEW,
                )
        return sent.message_id

    async def change(self, chat: int, message: int, words: Words) -> None:
        """One message changed; without rows its keyboard goes."""
        await self._bot.edit_message_text(
            words.ink.text,
            chat,
            message,
            entities=_entities(words),
            reply_markup=_keyboard(words.rows),
            link_preview_options=_NO_PREVIEW,
        )

    async def change_keyboard(self, chat: int, message: int, rows: Rows) -> None:
        await self._bot.edit_message_reply_markup(chat, message, reply_markup=_keyboard(rows))

    async def answer(self, query: str, text: str = "", *, alert: bool = False) -> bool:
        """Tells whoever tapped; False where nobody waits for it any more."""
        try:
            await self._bot.answer_callback_query(query, cut(text, ANSWER) or None, show_alert=alert)
        except BadRequest as error:
            if is_too_old(error):
                return False
            raise
        return True


def _entities(words: Words) -> Sequence[MessageEntity] | None:
    return [MessageEntity(**entity) for entity in words.ink.entities()] or None


def _markup(words: Words, *, private: bool) -> InlineKeyboardMarkup | ForceReply | None:
    # In a group a forced reply would open for everybody who is in it.
    if words.asks and private and not words.rows:
        return ForceReply(input_field_placeholder=words.asks[:PLACEHOLDER])
    return _keyboard(words.rows)


def _keyboard(rows: Rows) -> InlineKeyboardMarkup | None:
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton(one.label, url=one.url)
                if one.url is not None
                else InlineKeyboardButton(one.label, callback_data=one.data)
                for one in row
            ]
            for row in rows
        ]
    )


def _pause_s(payload: bytes) -> float:
    try:
        return float(json.loads(payload)["parameters"]["retry_after"])
    except (KeyError, TypeError, ValueError):
        return 0.0
