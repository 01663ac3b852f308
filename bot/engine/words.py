"""How moments, people and values are written in replies, errors and lines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.domain.catalog import World
from bot.domain.values import text
from bot.language import durations


def clock(at: datetime, world: World, now: datetime | None = None) -> str:
    """`10:32`; on another day than `now` `Mon 10:32`; more than six days off `2 Dec 10:32`."""
    zone = durations.zone(world.workspace)
    here = at.astimezone(zone)
    hour = here.strftime("%H:%M")
    if now is None:
        return hour
    days = (here.date() - now.astimezone(zone).date()).days
    if days == 0:
        return hour
    if abs(days) < 7:
        return f"{here:%a} {hour}"
    return f"{here.day} {here:%b} {hour}"


def names(who: Iterable[str], world: World) -> str:
    """`Ana`, `Ana or Bo`, `Ana, Bo or Jonas`."""
    return either([called(w, world) for w in who])


def called(who: str, world: World) -> str:
    """A person's name, `the leads` for a role, else the address as it is."""
    if who.startswith("role:"):
        return f"the {who[5:]}"
    return world.name_of(who)


def either(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"


def ticked(words: Iterable[object]) -> str:
    return either([f"`{text(word)}`" for word in words])


def answer(value: object) -> str:
    """What somebody answered, in a line: of a form its fields, `day 2026-01-12, people 4`."""
    if isinstance(value, dict) and value:
        return ", ".join(f"{key} {_field(one)}" for key, one in value.items())
    return text(value)


def _field(value: object) -> str:
    if isinstance(value, dict) and {"name", "size", "path"} <= value.keys():  # a file
        return text(value["name"])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else text(value)


def span(length: timedelta) -> str:
    return durations.spell(length) if length >= timedelta(seconds=1) else "a moment"
