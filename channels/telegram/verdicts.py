"""What Telegram's refusals mean for what was sent."""

from __future__ import annotations

from datetime import timedelta

from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, TelegramError

from channels.base import Later, Refused

AWAY = timedelta(seconds=2)
"""Until a platform that does not answer is tried again; whoever tries grows it."""
NEVER_LEFT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "RuntimeError")
"""Failures before a request was out: httpx's, and the SDK's where the channel was stopped."""
UNCHANGED = "message is not modified"
TOO_OLD = ("query is too old", "query_id_invalid")
FORM = ("button_", "reply_markup", "entit", "can't parse", "inline keyboard", "wrong http url", "keyboard")
"""Words in a refusal that is about buttons and formatting, not about where it goes."""
WORDS = {
    "chat not found": "Telegram knows no such chat: whoever it is has not written to the bot yet",
    "message thread not found": "the topic is gone",
    "topic_closed": "the topic is closed",
    "not enough rights": "the bot may not write in that group",
    "have no rights": "the bot may not write in that group",
    "message to edit not found": "the message is gone",
    "message can't be edited": "Telegram lets nobody change that message",
    "chat_write_forbidden": "the bot may not write in that group",
}


class Busy(TelegramError):
    """Telegram asks to wait for so long."""

    def __init__(self, pause: timedelta) -> None:
        super().__init__("Too Many Requests")
        self.pause = pause


def verdict(error: TelegramError) -> Later | Refused:
    """What becomes of a thing whose sending failed so."""
    text = error.message
    match error:
        case Busy():
            return Later(why="Telegram asks to wait", pause=error.pause, scope="conversation")
        case InvalidToken():
            return Refused(why="Telegram does not know the bot's token (TELEGRAM_BOT_TOKEN)", stops=True)
        case Forbidden():
            return Refused(why=_forbidden(text))
        case ChatMigrated():
            return Refused(why="the group has another number now")
        case BadRequest():
            low = text.casefold()
            return Refused(why=next((words for part, words in WORDS.items() if part in low), f"Telegram: {text}"))
        case Conflict():
            return Later(why=f"Telegram: {text}", pause=AWAY, scope="channel")
        case NetworkError():
            out = type(error.__cause__).__name__ not in NEVER_LEFT
            why = "Telegram took it, perhaps: its answer did not come" if out else "Telegram cannot be reached"
            return Later(why=why, pause=AWAY, lost=out, scope="conversation" if out else "channel")
        case _:
            return Refused(why=f"Telegram: {text}")


def is_about_form(error: BadRequest) -> bool:
    """Whether plain text would have been taken."""
    low = error.message.casefold()
    return any(part in low for part in FORM)


def is_too_old(error: TelegramError) -> bool:
    """A tap that nobody waits for any more, as after a restart."""
    low = error.message.casefold()
    return any(part in low for part in TOO_OLD)


def _forbidden(text: str) -> str:
    low = text.casefold()
    if "blocked" in low:
        return "they have blocked the bot"
    if "initiate" in low:
        return "they have not written to the bot yet: Telegram lets it write only to those who pressed Start"
    if "deactivated" in low:
        return "their account is gone"
    if "kicked" in low or "not a member" in low:
        return "the bot is not in that group"
    return f"Telegram: {text}"
