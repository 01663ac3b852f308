"""What LINE's refusals mean for what was sent."""

from __future__ import annotations

from datetime import timedelta

import aiohttp

from channels.base import Later, Refused
from channels.line.calls import SaidNo, Stopped

AWAY = timedelta(seconds=2)
"""Until a platform that does not answer is tried again; whoever tries grows it."""
BUSY = timedelta(seconds=10)
"""Where LINE asks to wait and does not say how long."""
FAILURES = (OSError, TimeoutError, aiohttp.ClientError)
"""What a call raises where LINE is away."""
QUOTA = "this month's messages are used up: LINE sends none until the next month or a larger plan"


def verdict(error: Exception) -> Later | Refused:
    """What becomes of a thing whose sending failed so."""
    if isinstance(error, SaidNo):
        return _said_no(error)
    if isinstance(error, aiohttp.ClientConnectorError | Stopped):
        return Later(why="LINE cannot be reached", pause=AWAY, scope="channel")
    return Later(why="LINE took it, perhaps: its answer did not come", pause=AWAY, lost=True)


def is_about_form(error: Exception) -> bool:
    """Whether plain text would have been taken: what LINE found wrong is inside a message."""
    if not isinstance(error, SaidNo) or error.status != 400:
        return False
    return "messages[" in error.words or any(where.startswith("messages[") for where in error.where)


def _said_no(error: SaidNo) -> Later | Refused:
    match error.status:
        case 401 | 403:
            return Refused(why="LINE does not know the channel's access token (LINE_CHANNEL_ACCESS_TOKEN)", stops=True)
        case 429 if "monthly limit" in error.words.casefold():
            return Refused(why=QUOTA)
        case 429:
            pause = timedelta(seconds=error.pause_s) if error.pause_s is not None else BUSY
            return Later(why="LINE asks to wait", pause=pause, scope="channel")
        case status if status >= 500:
            return Later(why=f"LINE: {error.words}", pause=AWAY, lost=True)
        case 400 if "failed to send" in error.words.casefold():
            return Refused(why="LINE reaches nobody there: they are no friend of the account, or the group is gone")
        case _:
            return Refused(why=f"LINE: {error.words}")
