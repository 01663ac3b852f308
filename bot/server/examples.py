"""The examples as the room offers them: those that this workspace can run, addressed to people who are here."""

from __future__ import annotations

import re

from bot import examples
from bot.domain.catalog import Person, World


def offered(world: World) -> list[tuple[str, str]]:
    """Name and title of each example that can run here."""
    channels = world.channels or frozenset()
    met = {"agents": bool(world.agents), "line": "line" in channels}
    return [(name, examples.title(name)) for name in examples.NAMES if met.get(examples.NEEDS.get(name, ""), True)]


def example(name: str, world: World, me: str) -> str | None:
    """An example's text, addressed to people who are here; None where there is none of this name."""
    text = examples.script(name)
    if text is None:
        return None
    others = [p for p in world.people if p.email != me] or list(world.people)
    for at, called in enumerate(("bo", "jonas")):
        if others:
            who = others[min(at, len(others) - 1)]
            text = re.sub(rf"@{called}\b", _handle(who), text)
            text = re.sub(rf"\b{called.capitalize()}\b", who.name, text)
    return text if "leads" in world.roles or not others else text.replace("role:leads", _handle(others[0]))


def _handle(person: Person) -> str:
    return f"@{person.name.lower()}" if person.name.isidentifier() else person.email
