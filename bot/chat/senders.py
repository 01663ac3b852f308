"""Who did something on a platform: a person of the workspace, or somebody known by their conversation alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.catalog import Person, World
from channels.base import Inbound, Sender
from store import people
from store.dialect import Transaction

FRESH = timedelta(minutes=10)
"""How often it is written down that somebody is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """`person` None: nobody of the workspace. `moved`: where they are reached has changed."""

    person: Person | None
    moved: bool = False

    @property
    def email(self) -> str | None:
        return self.person.email if self.person else None


def who(tx: Transaction, world: World, channel: str, sender: Sender, at: datetime) -> Who:
    """Who this is. Somebody whom the platform itself says to have an address of the workspace is linked to it; bots
    and strangers of shared channels never are."""
    if not sender.ref or sender.kind == "bot":
        return Who(person=None)
    known = people.identity_of(tx, channel, sender.ref)
    if known is None:
        found = world.person(sender.email) if sender.email and sender.kind == "member" else None
        if found is None:
            return Who(person=None)
        people.link(tx, found.email, channel, sender.ref)
        people.met(tx, channel, sender.ref, at)
        return Who(person=found, moved=True)
    person = world.person(known["email"])
    if person is None:
        return Who(person=None)
    moved = known["shut"] is not None or person.latest != channel
    if moved or known["used"] is None or at - known["used"] > FRESH:
        people.met(tx, channel, sender.ref, at)
    return Who(person=person, moved=moved)


def named(given: Inbound, world: World, email: str | None) -> str:
    """How they are called."""
    return world.name_of(email) if email else given.sender.name or given.conversation


def known(tx: Transaction, world: World, channel: str, sender: Sender) -> str | None:
    """The address of whoever this is, if it is somebody of the workspace; nothing is written."""
    if not sender.ref or sender.kind == "bot":
        return None
    found = people.identity_of(tx, channel, sender.ref)
    person = world.person(found["email"]) if found else None
    if person is None and sender.email and sender.kind == "member":
        person = world.person(sender.email)
    return person.email if person else None
