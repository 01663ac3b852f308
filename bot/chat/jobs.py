"""A conversation on a platform as a job."""

from __future__ import annotations

from datetime import datetime

from bot.domain.ids import digest
from channels.base import Inbound
from store import runs, triggers
from store.dialect import Transaction

TITLE = 80


def job_id(conversation: str) -> str:
    """The same for the same conversation."""
    return f"{conversation.partition(':')[0]}-{digest(conversation)[:12]}"


def job_of(tx: Transaction, conversation: str) -> str | None:
    return triggers.job_of(tx, conversation)


def ensure(tx: Transaction, given: Inbound, email: str, title: str, at: datetime) -> str:
    """The job of a conversation, made where there is none: one between a person and the bot is theirs alone."""
    known = job_of(tx, given.conversation)
    if known is not None:
        return known
    made = job_id(given.conversation)
    members = (email,) if given.direct else ()
    runs.add_job(tx, made, title[:TITLE] or given.conversation, given.conversation, at, members=members)
    return made
