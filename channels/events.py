"""The one event shape of chats, whatever the platform (language.md, section 5, Streams), and which stream it is on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from channels.base import Inbound

CARD = "card"
"""The kind of what concerns a card or a pasted script: no stream that a script can name."""
STREAMS: Mapping[str, str] = {
    "message": "message",
    "command": "message",
    "tap": "tap",
    "reaction": "reaction",
    "follow": "follow",
    "unfollow": "unfollow",
    "edited": CARD,
    "form": CARD,
    "linked": CARD,
}
MENU = "menu:"


def event(
    given: Inbound, at: datetime, *, email: str | None = None, name: str = "", text: str | None = None
) -> dict[str, Any]:
    """What a script sees of it: `text`, `tap`, `conversation`, `user {id, name, email?}`, `files`, `data`, `id`, `at`.

    `text`: of a tap on a button that a script sent, the button's value. A menu's tap has its name as text (surfaces.md,
    section 7); any other data is the text as it is."""
    user: dict[str, Any] = {"id": given.sender.ref, "name": name or given.sender.name}
    if email:
        user["email"] = email
    said, data = given.text if text is None else text, dict(given.values)
    if given.kind == "tap":
        said = given.data if text is None else text
        if said.startswith(MENU):
            said = said[len(MENU) :]
            data = {**data, "menu": said}
    return {
        "id": given.ident,
        "text": said,
        "tap": given.kind == "tap",
        "conversation": given.conversation,
        "user": user,
        "files": [{"name": file.name, "size": file.size, "type": file.type} for file in given.files],
        "data": data,
        "at": (given.at or at).isoformat(),
    }


def stream(channel: str, given: Inbound) -> str:
    """The stream that it is an event of."""
    return f"{channel}:{STREAMS.get(given.kind, CARD)}"
