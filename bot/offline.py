"""The world as `check` and `show` see it without the server: settings, and what a database file already holds.

The file is read by the standard library, so that a check starts at once; a database server is asked by the store.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.config import Settings, load
from bot.domain.catalog import Catalog, OpSpec, Person, World
from bot.language.read import Read, read
from bot.ops.specs import catalog


def surroundings() -> tuple[Catalog, World]:
    """The catalogue and the world of this folder's settings and database."""
    settings = load()
    people, roles = _from_file(settings)
    known = {
        p.email: replace(p, identities={**p.identities, "web": p.email}) for p in (*people, *settings.people)
    }  # the room reaches everyone
    merged = {
        name: tuple(dict.fromkeys((*roles.get(name, ()), *settings.roles.get(name, ()))))
        for name in (*roles, *settings.roles)
    }
    owner = next(iter(known), "owner@example.com")
    world = World(
        now=_now(),
        owner=owner,
        people=tuple(known.values()),
        roles=merged,
        agents=settings.agents,
        templates=settings.templates,
        streams={name: s.spec for name, s in settings.streams.items()},
        channels=settings.channels,
        judge=bool(settings.agents),
        workspace=replace(settings.workspace, alone=len(known) < 2),
        policy=settings.policy,
    )
    if settings.tools:
        from bot.runtime.toolbox import configured_tools

        return catalog(configured_tools(settings).specs), world
    return catalog(), world


def read_script(text: bytes) -> tuple[Read, Catalog, World]:
    """A script as it reads here; ops that are unknown here count as tools, so that it can be printed anywhere."""
    catalog, world = surroundings()
    got = read(text, catalog)
    unknown = {got.source.text[p.start : p.end] for p in got.problems if p.code == "unknown-op"}
    if unknown:
        more = {name: OpSpec(name=name, summary="", kind="effect", shape=name, tool=True) for name in unknown}
        catalog = Catalog(ops={**catalog.ops, **more})
        got = read(text, catalog)
    return got, catalog, world


def _now() -> datetime:
    from bot.runtime.clock import SystemClock

    return SystemClock().now().astimezone(UTC)


def _from_file(settings: Settings) -> tuple[tuple[Person, ...], dict[str, tuple[str, ...]]]:
    path = Path(settings.database.removeprefix("sqlite:///"))
    if not settings.database.startswith("sqlite:///") or not path.is_file():
        return (), {}
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            people = tuple(
                Person(email=e, name=n, timezone=z)
                for e, n, z in connection.execute(
                    "select email, name, timezone from person where active = 1 order by email"
                )
            )
            roles: dict[str, tuple[str, ...]] = {}
            for name, email in connection.execute("select name, email from role order by name, email"):
                roles[name] = (*roles.get(name, ()), email)
            return people, roles
    except sqlite3.Error:
        return (), {}
