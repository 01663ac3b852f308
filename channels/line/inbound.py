"""An event of LINE as what somebody did. Pure; the same for what came by the webhook and out of the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from channels.base import File, Inbound, Sender
from channels.line.buttons import is_own

FILES = {"image": "photo.jpg", "video": "video.mp4", "audio": "audio.m4a", "file": "file"}


def read(event: Mapping[str, Any]) -> Inbound | None:
    """What an event says somebody did; None where it means nothing here."""
    source = event.get("source") or {}
    if not source or event.get("mode") == "standby" or not event.get("webhookEventId"):
        return None
    match event.get("type"):
        case "message":
            return _message(event, source)
        case "messageEdited":
            return _message(event, source, edited=True)
        case "postback":
            return _tap(event, source)
        case "follow" | "join":
            return Inbound(kind="follow", **_common(event, source))
        case "unfollow" | "leave":
            return Inbound(kind="unfollow", **_common(event, source))
        case "accountLink":
            link = event.get("link") or {}
            if link.get("result") != "ok":
                return None
            return Inbound(kind="linked", data=str(link.get("nonce") or ""), **_common(event, source))
        case _:
            return None


def own_tap(event: Mapping[str, Any]) -> str | None:
    """The data of a tap that is answered within the channel."""
    data = (event.get("postback") or {}).get("data") if event.get("type") == "postback" else None
    return data if isinstance(data, str) and is_own(data) else None


def conversation(source: Mapping[str, Any]) -> str:
    """A person's own, a group, or a chat of several."""
    return f"line:{source.get('groupId') or source.get('roomId') or source.get('userId') or ''}"


def _message(event: Mapping[str, Any], source: Mapping[str, Any], *, edited: bool = False) -> Inbound | None:
    message = event.get("message") or {}
    kind = message.get("type")
    text, files = "", ()
    if kind == "text":
        text = _without_name(message)
    elif kind in FILES:
        files = (_file(message, FILES[kind]),)
    elif kind == "location":
        text = str(message.get("address") or message.get("title") or "")
    elif kind != "sticker":
        return None
    common = _common(event, source)
    return Inbound(
        kind="edited" if edited else "command" if text.startswith("/") else "message",
        text=text,
        mentioned=_is_meant(message),
        ref=str(message["id"]),
        reply_to=message.get("quotedMessageId"),
        files=files,
        **common,
    )


def _tap(event: Mapping[str, Any], source: Mapping[str, Any]) -> Inbound | None:
    postback = event.get("postback") or {}
    data = postback.get("data")
    if not isinstance(data, str) or is_own(data):
        return None
    # `params`: what was picked where a button asks for a date or a time.
    return Inbound(kind="tap", data=data, values=dict(postback.get("params") or {}), **_common(event, source))


def _common(event: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """What every event says. In a group LINE may leave out who it was: then it is nobody that we know."""
    stamp = event.get("timestamp")
    return {
        "ident": str(event["webhookEventId"]),
        "conversation": conversation(source),
        "sender": Sender(ref=str(source.get("userId") or "")),
        "direct": source.get("type") == "user",
        "at": datetime.fromtimestamp(stamp / 1000, UTC) if stamp else None,
        "raw": event,
    }


def _file(message: Mapping[str, Any], name: str) -> File:
    return File(name=str(message.get("fileName") or name), ref=str(message["id"]), size=message.get("fileSize"))


def _is_meant(message: Mapping[str, Any]) -> bool:
    return any(one.get("isSelf") for one in (message.get("mention") or {}).get("mentionees") or ())


def _without_name(message: Mapping[str, Any]) -> str:
    """What was written, without the bot's own name at its begin. Places are counted in UTF-16 units."""
    text = str(message.get("text") or "")
    for one in (message.get("mention") or {}).get("mentionees") or ():
        if one.get("isSelf") and one.get("index") == 0:
            raw = text.encode("utf-16-le", "surrogatepass")[2 * int(one.get("length") or 0) :]
            return raw.decode("utf-16-le", "surrogatepass").lstrip(" ").removeprefix("\n")
    return text
