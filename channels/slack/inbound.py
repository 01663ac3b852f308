"""What Slack brings, as one value of ours. Pure: the payload, and who is known here, say everything.

The same function reads a payload when it arrives and when it is read again from where it was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from channels.base import File, Inbound, Sender
from channels.slack import modals
from channels.slack.pasted import Names, Pasted, pasted

COMMAND = "/waiton"
RUN_SHORTCUT = "waiton_run"
NEW_SHORTCUT = "waiton_new"
SHOWN = "waiton_shown"
"""Beside a form's payload: the message by which its script was shown, once it is there."""
SPOKEN = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that somebody wrote; the others tell of joins, topics, pins, bots and the like."""

Raw = Mapping[str, Any]
Known = Callable[[str], Sender | None]


def read(raw: Raw, known: Known, names: Names) -> Inbound | None:
    """A payload as one thing that somebody did; None where it means nothing here. `known`: who a user id is, where it
    was looked up; `names`: the words for who is mentioned."""
    match raw.get("type"):
        case "event_callback":
            return _event(raw, known, names)
        case "block_actions":
            return _tap(raw, known)
        case "view_submission":
            return _form(raw, known)
        case "message_action":
            return _shortcut(raw, known, names)
        case None if raw.get("command"):
            return _command(raw, known)
        case _:
            return None


def acting(raw: Raw) -> str | None:
    """The id of whoever did it, as the signed payload says."""
    event = raw.get("event") or {}
    if raw.get("type") == "event_callback":
        message = event.get("message") or {}
        user = message.get("user") or event.get("user")
    else:
        user = raw.get("user") or raw.get("user_id")
    return user.get("id") if isinstance(user, Mapping) else user


def written(raw: Raw) -> Mapping[str, Any]:
    """The message that a payload brings: its text, its blocks, its files."""
    event = raw.get("event") or {}
    return raw.get("message") or event.get("message") or event


def bot(raw: Raw) -> str:
    """The user id that the bot has where this payload comes from."""
    found = raw.get("authorizations") or [{}]
    return str(found[0].get("user_id") or "")


def instant(ts: Any) -> datetime | None:
    """When a message with this `ts` was written."""
    try:
        return datetime.fromtimestamp(float(ts), UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def place(channel: str, thread: str | None) -> str:
    """The conversation that a thread is; of direct messages, all there is with that person."""
    return f"slack:{channel}" if _is_direct(channel) or not thread else f"slack:{channel}/{thread}"


def parts(conversation: str) -> tuple[str, str | None]:
    """Channel and thread of a conversation."""
    channel, _, thread = conversation.removeprefix("slack:").partition("/")
    return channel, thread or None


def _is_direct(channel: str) -> bool:
    return channel.startswith("D")


def _event(raw: Raw, known: Known, names: Names) -> Inbound | None:
    event = raw["event"]
    match event.get("type"):
        case "message" if event.get("subtype") == "message_changed":
            return _edited(raw, known, names)
        case "message" | "app_mention":
            return _message(raw, known, names)
        case "reaction_added":
            item = event.get("item") or {}
            if item.get("type") != "message" or event.get("user") == bot(raw):
                return None
            return Inbound(
                kind="reaction",
                ident=f"reaction:{raw['event_id']}",
                conversation=place(item["channel"], item["ts"]),
                sender=_sender(raw, event["user"], known),
                text=event["reaction"],
                direct=_is_direct(item["channel"]),
                ref=item["ts"],
                reply_to=item["ts"],
                at=instant(event.get("event_ts")),
                raw=raw,
            )
        case "app_home_opened" if event.get("tab", "home") == "home":
            return Inbound(
                kind="home",
                ident=f"home:{raw['event_id']}",
                conversation=f"slack:{event['channel']}" if event.get("channel") else "slack:",
                sender=_sender(raw, event["user"], known),
                direct=True,
                at=instant(event.get("event_ts")),
                raw=raw,
            )
        case _:
            return None


def _message(raw: Raw, known: Known, names: Names) -> Inbound | None:
    event = raw["event"]
    if event.get("subtype") not in SPOKEN or event.get("hidden") or _is_ours(raw, event) or not acting(raw):
        return None
    got = pasted(event, bot(raw), names)
    return _written(raw, event, got, known, ident=f"{event['channel']}:{event['ts']}", kind="message")


def _edited(raw: Raw, known: Known, names: Names) -> Inbound | None:
    """A message whose words were changed. An unfurled link changes a message too, and nobody edited it."""
    event = raw["event"]
    message, before = event["message"], event.get("previous_message") or {}
    stamp = (message.get("edited") or {}).get("ts")
    if not stamp or message.get("subtype") not in SPOKEN or _is_ours(raw, message) or not acting(raw):
        return None
    got = pasted(message, bot(raw), names)
    if before and got.text == pasted(before, bot(raw), names).text:
        return None
    ident = f"{event['channel']}:{message['ts']}:{stamp}"
    return _written(raw, {"channel": event["channel"], **message}, got, known, ident=ident, kind="edited")


def _is_ours(raw: Raw, message: Mapping[str, Any]) -> bool:
    """Whether the bot wrote it itself."""
    ours = raw.get("api_app_id")
    return message.get("user") == bot(raw) or bool(ours and message.get("app_id") == ours)


def _written(
    raw: Raw,
    event: Mapping[str, Any],
    got: Pasted,
    known: Known,
    *,
    ident: str,
    kind: Any,
    sender: Sender | None = None,
) -> Inbound:
    root = event.get("thread_ts")
    direct = _is_direct(event["channel"])
    return Inbound(
        kind=kind,
        ident=ident,
        conversation=place(event["channel"], root or event["ts"]),
        sender=sender or _sender(raw, str(acting(raw)), known, event),
        text=got.text,
        undone=got.undone,
        direct=direct,
        mentioned=got.mentioned or raw["event"].get("type") == "app_mention",
        ref=event["ts"],
        reply_to=root if root and root != event["ts"] else None,
        files=_files(event),
        at=instant((event.get("edited") or {}).get("ts") or event["ts"]),
        raw=raw,
    )


def _files(event: Mapping[str, Any]) -> tuple[File, ...]:
    """Files that can be fetched, by their address, or by their id where Slack wants to be asked for it."""
    return tuple(
        File(
            name=str(one.get("name") or one.get("title") or one["id"]),
            ref=str(one.get("url_private_download") or one.get("url_private") or one["id"]),
            size=one.get("size"),
            type=str(one.get("mimetype") or ""),
        )
        for one in event.get("files") or ()
        if one.get("mode") not in ("tombstone", "hidden_by_limit") and not one.get("is_external")
    )


def _tap(raw: Raw, known: Known) -> Inbound | None:
    action, container = raw["actions"][0], raw.get("container") or {}
    picked = action.get("selected_option") or {}
    data = str(picked.get("value") or action.get("value") or "")
    channel = (raw.get("channel") or {}).get("id") or container.get("channel_id")
    if not data or not channel:
        return None
    ref = container.get("message_ts")
    root = (raw.get("message") or {}).get("thread_ts") or container.get("thread_ts")
    words = picked.get("text") or action.get("text") or {}
    return Inbound(
        kind="tap",
        ident=f"tap:{raw.get('trigger_id') or action.get('action_ts')}",
        conversation=place(channel, root or ref),
        sender=_sender(raw, raw["user"]["id"], known, raw["user"]),
        text=str(words.get("text") or ""),
        direct=_is_direct(channel),
        ref=ref,
        reply_to=root if root and root != ref else None,
        data=data,
        at=instant(action.get("action_ts")),
        raw=raw,
    )


def _form(raw: Raw, known: Known) -> Inbound | None:
    view = raw["view"]
    origin = modals.origin(view)
    sender = _sender(raw, raw["user"]["id"], known, raw["user"])
    direct = _is_direct(parts(origin.conversation)[0])
    if view.get("callback_id") == modals.SCRIPT:
        shown = raw.get(SHOWN) or {}
        return Inbound(
            kind="message",
            ident=f"form:{view['id']}",
            conversation=place(shown["channel"], shown["ts"]) if shown else origin.conversation,
            sender=sender,
            text=str(modals.values(view).get(modals.SCRIPT_FIELD) or ""),
            direct=_is_direct(shown["channel"]) if shown else direct,
            mentioned=True,
            ref=shown.get("ts"),
            at=instant(shown.get("ts")),
            raw=raw,
        )
    if view.get("callback_id") != modals.FORM:
        return None
    return Inbound(
        kind="form",
        ident=f"form:{raw.get('trigger_id') or view['id']}",
        conversation=origin.conversation,
        sender=sender,
        direct=direct,
        ref=origin.ref,
        data=origin.data,
        values=modals.values(view),
        raw=raw,
    )


def _shortcut(raw: Raw, known: Known, names: Names) -> Inbound | None:
    """ "Run as a script" on somebody's message: whoever tapped it starts it, in that message's thread."""
    if raw.get("callback_id") != RUN_SHORTCUT:
        return None
    message, channel = raw["message"], raw["channel"]["id"]
    got = pasted(message, "", names)
    root = message.get("thread_ts")
    return Inbound(
        kind="message",
        ident=f"run:{raw['trigger_id']}",
        conversation=place(channel, root or message["ts"]),
        sender=_sender(raw, raw["user"]["id"], known, raw["user"]),
        text=got.text,
        undone=got.undone,
        direct=_is_direct(channel),
        mentioned=True,
        ref=message["ts"],
        reply_to=root if root and root != message["ts"] else None,
        files=_files(message),
        at=instant(raw.get("action_ts")),
        raw=raw,
    )


def _command(raw: Raw, known: Known) -> Inbound | None:
    if raw["command"] != COMMAND:
        return None
    return Inbound(
        kind="command",
        ident=f"command:{raw['trigger_id']}",
        conversation=f"slack:{raw['channel_id']}",
        sender=_sender(raw, raw["user_id"], known, {"name": raw.get("user_name", "")}),
        text=str(raw.get("text") or "").strip(),
        direct=_is_direct(raw["channel_id"]),
        mentioned=True,
        raw=raw,
    )


def _sender(raw: Raw, user: str, known: Known, said: Mapping[str, Any] | None = None) -> Sender:
    """Whoever did it. What the payload itself says of them outweighs nothing but a missing look-up."""
    said = said or {}
    if found := known(user):
        return found
    home = raw.get("team_id") or (raw.get("team") or {}).get("id")
    theirs = said.get("user_team") or said.get("source_team") or said.get("team_id") or said.get("team")
    foreign = bool(home and theirs and home != theirs)
    name = str(said.get("name") or said.get("username") or "")
    return Sender(ref=user, name=name, kind="bot" if said.get("bot_id") else "guest" if foreign else "member")
