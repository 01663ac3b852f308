"""An update of Telegram as what somebody did. Pure; the same by polling, by webhook, and out of the store."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from channels.base import File, Inbound, Sender
from channels.telegram.keyboard import is_own
from channels.telegram.limits import SPLIT_FROM
from channels.telegram.pasted import pasted
from channels.text import units

KINDS = (
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    "my_chat_member",
)
"""The updates that are asked for, by name: Telegram leaves some of them out unless it is told."""
MEDIA = ("document", "audio", "video", "voice", "animation", "video_note")
GONE = ("kicked", "left")
_OURS = "waiton"
"""What we add to a payload stands under this name, which Telegram does not use."""
_PLACE = re.compile(r"telegram:(-?\d{1,18})(?:/(\d{1,18}))?")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself: its number is in its token, its name is told by Telegram."""

    id: int
    username: str = ""


def read(update: Mapping[str, Any], me: Me) -> Inbound | None:
    """What an update says somebody did; None where it means nothing here."""
    if given := update.get("message"):
        return _message(update, given, me)
    if given := update.get("edited_message"):
        return _message(update, given, me, edited=True)
    if given := update.get("callback_query"):
        return _tap(update, given)
    if given := update.get("message_reaction"):
        return _reaction(update, given)
    if given := update.get("my_chat_member"):
        return _membership(update, given)
    return None


def as_part(update: Mapping[str, Any]) -> dict[str, Any]:
    """The same, marked as the rest of a text that the client split. It stays so where the payload is read again."""
    return {**update, _OURS: {"part": True}}


def conversation(chat: int | str, topic: int | None = None) -> str:
    """A chat, or one topic of it."""
    return f"telegram:{chat}" if topic is None else f"telegram:{chat}/{topic}"


def place(conversation: str) -> tuple[int, int | None] | None:
    """Chat and topic of a conversation; None where it is none of Telegram's."""
    found = _PLACE.fullmatch(conversation)
    return (int(found[1]), int(found[2]) if found[2] else None) if found else None


def _message(update: Mapping[str, Any], given: Mapping[str, Any], me: Me, *, edited: bool = False) -> Inbound | None:
    by = _sender(given.get("from"))
    if by is None or by.ref == str(me.id):
        return None
    direct = _direct(given)
    text, undone = _text(given, me)
    files = _files(given)
    if not text and not files:
        return None
    word = _command(given, me)
    if word is None:
        return None
    kind, data = "edited" if edited else "command" if word else "message", ""
    if word and not edited and direct and (token := _linking(text)):
        kind, data = "linked", token
    split = units(str(given.get("text") or "")) >= SPLIT_FROM or bool(update.get(_OURS))
    return Inbound(
        kind=kind,
        ident=str(update["update_id"]),
        conversation=_where(given),
        sender=by,
        text=text,
        undone=undone,
        direct=direct,
        mentioned=_is_meant(given, me),
        ref=str(given["message_id"]),
        reply_to=_answered(given),
        data=data,
        values={"split": True} if split else {},
        files=files,
        at=_instant(given.get("edit_date") if edited else given.get("date")),
        raw=update,
    )


def _tap(update: Mapping[str, Any], given: Mapping[str, Any]) -> Inbound | None:
    """A tapped button of a message in a chat; not of the channel's own, nor of a message that is not the bot's."""
    by, message, data = _sender(given.get("from")), given.get("message"), given.get("data")
    if by is None or not message or not isinstance(data, str) or is_own(data):
        return None
    return Inbound(
        kind="tap",
        ident=str(update["update_id"]),
        conversation=_where(message),
        sender=by,
        text=_label(message, data),
        direct=_direct(message),
        mentioned=True,
        ref=str(message["message_id"]),
        data=data,
        raw=update,
    )


def own_tap(update: Mapping[str, Any]) -> tuple[Mapping[str, Any], str] | None:
    """The query and the data of a tap that is answered within the channel."""
    given = update.get("callback_query") or {}
    data = given.get("data")
    return (given, data) if isinstance(data, str) and is_own(data) and given.get("message") else None


def _reaction(update: Mapping[str, Any], given: Mapping[str, Any]) -> Inbound | None:
    by = _sender(given.get("user"))
    if by is None:
        return None
    emoji = [str(one.get("emoji") or one.get("custom_emoji_id") or "") for one in given.get("new_reaction") or ()]
    return Inbound(
        kind="reaction",
        ident=str(update["update_id"]),
        conversation=_where(given),
        sender=by,
        text=" ".join(emoji),
        direct=_direct(given),
        ref=str(given["message_id"]),
        at=_instant(given.get("date")),
        raw=update,
    )


def _membership(update: Mapping[str, Any], given: Mapping[str, Any]) -> Inbound | None:
    """The bot was let in or shut out: by a person, in their own chat; by somebody, in a group."""
    by = _sender(given.get("from"))
    before = (given.get("old_chat_member") or {}).get("status")
    after = (given.get("new_chat_member") or {}).get("status")
    if by is None or (before in GONE) == (after in GONE):
        return None
    return Inbound(
        kind="unfollow" if after in GONE else "follow",
        ident=str(update["update_id"]),
        conversation=_where(given),
        sender=by,
        direct=_direct(given),
        at=_instant(given.get("date")),
        raw=update,
    )


# --- whose and where -------------------------------------------------------------------------------------------------
def _sender(given: Mapping[str, Any] | None) -> Sender | None:
    """The person, as Telegram's own payload says; None for a group or a channel that speaks for itself."""
    if not given:
        return None
    name = " ".join(part for part in (given.get("first_name"), given.get("last_name")) if part)
    return Sender(
        ref=str(given["id"]),
        name=name or str(given.get("username") or ""),
        kind="bot" if given.get("is_bot") else "member",
    )


def _where(given: Mapping[str, Any]) -> str:
    # A thread number without `is_topic_message` is a chain of replies in a group that has no topics.
    topic = given.get("message_thread_id") if given.get("is_topic_message") else None
    return conversation(given["chat"]["id"], topic)


def _direct(given: Mapping[str, Any]) -> bool:
    return (given.get("chat") or {}).get("type") == "private"


def _answered(given: Mapping[str, Any]) -> str | None:
    """The message that it answers. The first message of a topic is named by every message in it, and is no answer."""
    to = given.get("reply_to_message")
    if not to or (given.get("is_topic_message") and to["message_id"] == given.get("message_thread_id")):
        return None
    return str(to["message_id"])


def _is_meant(given: Mapping[str, Any], me: Me) -> bool:
    """Whether it names the bot, or answers a message of its that has nothing to tap: what answers a card is for that
    card alone."""
    to = given.get("reply_to_message") or {}
    if _answered(given) is not None and (to.get("from") or {}).get("id") == me.id and not to.get("reply_markup"):
        return True
    return any(_names(entity, words, me) for entity, words in _entities(given))


def _names(entity: Mapping[str, Any], words: str, me: Me) -> bool:
    match entity.get("type"):
        case "mention":
            return bool(me.username) and words.casefold() == f"@{me.username}".casefold()
        case "text_mention":
            return (entity.get("user") or {}).get("id") == me.id
        case "bot_command":
            return bool(me.username) and words.casefold().endswith(f"@{me.username}".casefold())
        case _:
            return False


# --- what was written ------------------------------------------------------------------------------------------------
def _entities(given: Mapping[str, Any]) -> Sequence[tuple[Mapping[str, Any], str]]:
    """The marked places of a text, with their words."""
    raw = str(given.get("text") or given.get("caption") or "").encode("utf-16-le", "surrogatepass")
    marked = given.get("entities") or given.get("caption_entities") or ()
    return [
        (e, raw[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le", "surrogatepass")) for e in marked
    ]


def _text(given: Mapping[str, Any], me: Me) -> tuple[str, bool]:
    """What was typed, without the bot's own name at its begin or behind its command."""
    name = f"@{me.username}"
    found = pasted(
        str(given.get("text") or given.get("caption") or ""),
        given.get("entities") or given.get("caption_entities") or (),
        aside=name,
    )
    text = found.text
    if me.username:
        head, found_at, rest = text.partition(name) if name in text else _folded(text, name)
        if found_at and not head.strip():
            text = rest.lstrip(" ").removeprefix("\n")
        elif found_at and head.startswith("/") and not any(c.isspace() for c in head):
            text = head + rest
    return text, found.undone


def _folded(text: str, name: str) -> tuple[str, str, str]:
    """A text parted at a name whose letters may be of either case."""
    at = text.casefold().find(name.casefold())
    # Folding can change lengths (ß); then the name stands as it is or not at all.
    if at < 0 or text[at : at + len(name)].casefold() != name.casefold():
        return text, "", ""
    return text[:at], text[at : at + len(name)], text[at + len(name) :]


def _command(given: Mapping[str, Any], me: Me) -> str | None:
    """The command that a message begins with, "" for none; None where it is another bot's."""
    for entity, words in _entities(given):
        if entity.get("type") == "bot_command" and entity.get("offset") == 0:
            word, _, whose = words.partition("@")
            if whose and me.username and whose.casefold() != me.username.casefold():
                return None
            return word
    return ""


def _linking(text: str) -> str:
    """The token of a deep link: `/start TOKEN`."""
    word, _, token = text.partition(" ")
    return token.strip() if word == "/start" else ""


def _files(given: Mapping[str, Any]) -> tuple[File, ...]:
    if photos := given.get("photo"):
        best = max(photos, key=lambda one: one.get("width", 0))
        return (File(name="photo.jpg", ref=best["file_id"], size=best.get("file_size"), type="image/jpeg"),)
    return tuple(
        File(
            name=str(one.get("file_name") or kind),
            ref=one["file_id"],
            size=one.get("file_size"),
            type=str(one.get("mime_type") or ""),
        )
        for kind in MEDIA
        # A moving picture comes as `document` and as `animation`: one file.
        if (one := given.get(kind)) and not (kind == "animation" and given.get("document"))
    )


def _label(message: Mapping[str, Any], data: str) -> str:
    """The words of the button that was tapped."""
    rows = (message.get("reply_markup") or {}).get("inline_keyboard") or ()
    return next((str(b.get("text")) for row in rows for b in row if b.get("callback_data") == data), "")


def _instant(seconds: Any) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
