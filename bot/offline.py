"""The world as `check` and `show` see it without the server: settings, and what a database file already holds.

The file is read by the standard library, so that a check starts at once; a database server is asked by the store.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bot.config import Settings, load
from bot.domain.catalog import Catalog, OpSpec, Person, World
from bot.language.read import Read, read
from bot.ops.specs import catalog

if TYPE_CHECKING:
    from bot.runtime.tools import Tools


def surroundings() -> tuple[Catalog, World]:
    """The catalogue and the world of this folder's settings and database."""
    settings = load()
    people, roles = _from_file(settings)
    known = {p.email: p for p in (*people, *settings.people)}
    merged = {
        name: tuple(dict.fromkeys((*roles.get(name, ()), *settings.roles.get(name, ()))))
        for name in (*roles, *settings.roles)
    }
    world = settings.world(_now(), known.values(), merged)
    world = replace(world, owner=next(iter(known), "owner@example.com"))
    return catalog(tools_of(settings).specs if settings.tools else ()), world


def tools_of(settings: Settings, *, anew: bool = False) -> Tools:
    """The tools of the settings, those of MCP servers as they were listed last; a server that has never been there is
    asked now, for its tools alone (`anew`: every server is). What is learnt so is kept for the next time.

    Raises Misconfigured where two tools would be one op."""
    from bot.runtime.toolbox import configured_tools

    tools = configured_tools(settings, lambda name: setting_of(settings, name))
    asked = [server for server in tools.servers if anew or server.listed is None]
    if asked:
        import asyncio

        from bot.runtime.refreshing import refresh

        asyncio.run(refresh(settings, tools, asked))
    return tools


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


def setting_of(settings: Settings, name: str) -> str | None:
    """What the database keeps under a name."""
    path = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database.startswith("sqlite:///"):
        if not path.is_file():
            return None
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                found = connection.execute("select value from setting where name = ?", (name,)).fetchone()
                return found[0] if found else None
        except sqlite3.Error:
            return None
    from store import people
    from store.transaction import Database

    database = Database(settings.database)
    try:
        return database.read(people.setting_of, name)
    finally:
        database.close()


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
