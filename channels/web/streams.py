"""The events that people in the room make: `web:message` for what they write, `web:tap` for a tapped button.

Both have the one event shape of chats (language.md, section 5, Streams)."""

from __future__ import annotations

from typing import Any

MESSAGE = "web:message"
TAP = "web:tap"


def conversation(job: str) -> str:
    """How a job of the room is written to."""
    return f"web:{job}"


def event(
    *, ident: str, text: str, job: str, email: str, name: str, at: str, tap: bool = False, data: Any = None
) -> dict[str, Any]:
    """One event of somebody in a job's room."""
    return {
        "id": ident,
        "text": text,
        "tap": tap,
        "conversation": conversation(job),
        "user": {"id": email, "name": name, "email": email},
        "files": [],
        "data": data if data is not None else {},
        "at": at,
    }
