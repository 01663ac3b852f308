"""Where somebody is reached: the one rule of which channel a delivery goes to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.catalog import Person, World
from bot.domain.changes import CARDS

WEB = "web"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A channel, and there a conversation, or whoever is to be written to alone (`ref`)."""

    channel: str
    conversation: str | None = None
    ref: str | None = None


def surface(conversation: str | None) -> str:
    """The channel of a conversation; the room for what has none."""
    name, found, _ = (conversation or "").partition(":")
    return name if found else WEB


def way(
    world: World, to: str, job: str | None, on: Collection[str], *, card: str | None = None, shut: Collection[str] = ()
) -> Way | None:
    """How a delivery goes to an addressee: a person by their own choice, else where its job is, else where they were
    last, else in the room; a conversation as it is; `job` into the job's own. None where nothing leads there.

    `job`: the job's conversation; `on`: channels that this process has; `card`: of a card, `direct` or `thread`;
    `shut`: channels that have refused it."""
    here = surface(job)
    threads = job is not None and here != WEB and here in on and here not in shut
    if to == "job" or (card == "thread" and threads):
        return Way(channel=here, conversation=job) if threads else Way(channel=WEB)
    person = world.person(to)
    if person is not None:
        return _to_person(person, here, [name for name in on if name not in shut])
    name = surface(to)
    if ":" not in to:
        return None
    if name == WEB:
        return Way(channel=WEB)
    return Way(channel=name, conversation=to) if name in on and name not in shut else None


def card(world: World, kind: str, shown: Mapping[str, Any]) -> str | None:
    """Where a delivery's card goes: `direct`, or `thread`; None of what is no card."""
    return str(shown.get("cards") or world.workspace.cards) if kind in CARDS else None


def read_by_others(world: World, row: Mapping[str, Any]) -> bool:
    """Whether a card to a person may stand where others read it, so that holding its token proves nothing."""
    return world.person(row["to"]) is not None and card(world, row["kind"], row["card"]) == "thread"


def _to_person(person: Person, here: str, on: Collection[str]) -> Way:
    for name in (person.prefers, here, person.latest, WEB):
        if name == WEB:
            break
        if name is not None and name in on and name in person.identities:
            return Way(channel=name, ref=person.identities[name])
    return Way(channel=WEB)
