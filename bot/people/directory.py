"""Who is here: people and roles of the settings and of the database, as one world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.config import Settings
from bot.domain.catalog import Person, SavedScript, World
from bot.domain.plan import Plan
from bot.language import program
from bot.language.write import from_program
from store import inbox, people, scripts
from store.dialect import Transaction


def settle(tx: Transaction, settings: Settings) -> None:
    """Brings the people and roles of the settings into the database."""
    for person in settings.people:
        people.put(tx, person.email, person.name, person.timezone)
        for channel, ref in person.identities.items():
            people.link(tx, person.email, channel, ref)
    for name, members in settings.roles.items():
        for email in members:
            people.put_role(tx, name, email)


def read(tx: Transaction, settings: Settings, now: datetime) -> World:
    """The world as it is now; what belongs to one job (its names, its customer) is added by `for_job`."""
    last = inbox.last_of_each(tx)
    world = settings.world(now, people.people(tx), people.roles(tx))
    streams = {name: replace(spec, last=last.get(name)) for name, spec in world.streams.items()}
    return replace(world, streams=streams, scripts=saved(tx))


def saved(tx: Transaction) -> dict[str, SavedScript]:
    """What the checks must know of the saved scripts."""
    found: dict[str, SavedScript] = {}
    for kept in scripts.current(tx):
        head = kept["head"]
        declared = from_program({"program": [], "inputs": head.get("inputs")}).inputs
        found[kept["name"]] = SavedScript(name=kept["name"], inputs=declared, calls=tuple(head.get("calls", ())))
    return found


def head_of(plan: Plan) -> dict[str, Any]:
    """What is kept of a saved script beside its plan, so that others are checked against it without reading it."""
    calls = [str(op.params.get("script")) for op, _ in plan.walk() if op.op == "run"]
    return {"inputs": program.head(plan).get("inputs"), "calls": list(dict.fromkeys(calls))}


def for_job(world: World, owner: str, bindings: Mapping[str, str], customer: Mapping[str, Any] | None) -> World:
    """The world as a script in one job sees it."""
    return replace(world, owner=owner, bindings=dict(bindings), customer=customer)


def default_person(settings: Settings) -> Person:
    """Whom the first link logs in, where nobody is configured."""
    return settings.people[0] if settings.people else Person(email="me@example.com", name="Me")
