"""Saved scripts, by name and version, and how each stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import script, standing

_ADD = Statement(sa.insert(script).values({c.name: b(c.name) for c in script.c}))
_COLUMNS = (
    script.c.name,
    script.c.version,
    script.c.plan,
    script.c.owner,
    script.c.job,
    script.c.created,
    script.c.source,
    script.c.head,
)
_NAMED = sa.select(*_COLUMNS).where(script.c.ws == b("ws"), script.c.name == b("name"))
_GET = Statement(_NAMED.order_by(script.c.version.desc()).limit(1))
_ONE = Statement(_NAMED.where(script.c.version == b("version")))
_VERSIONS = Statement(_NAMED.order_by(script.c.version.desc()))
_LATEST = (
    sa.select(script.c.name, sa.func.max(script.c.version).label("version"))
    .where(script.c.ws == b("ws"))
    .group_by(script.c.name)
    .subquery()
)
_CURRENT = Statement(
    sa.select(*_COLUMNS)
    .join(_LATEST, sa.and_(script.c.name == _LATEST.c.name, script.c.version == _LATEST.c.version))
    .where(script.c.ws == b("ws"))
    .order_by(script.c.name)
)
_NAMES = Statement(
    sa.select(script.c.name, sa.func.max(script.c.version))
    .where(script.c.ws == b("ws"))
    .group_by(script.c.name)
    .order_by(script.c.name)
)
_STANDS = Statement(
    sa.select(standing.c.paused, standing.c.told).where(standing.c.ws == b("ws"), standing.c.script == b("script"))
)
_PAUSE = Statement(
    lambda insert: (
        insert(standing)
        .values(ws=b("ws"), script=b("script"), paused=b("paused"))
        .on_conflict_do_update(index_elements=["ws", "script"], set_={"paused": b("paused")})
    )
)
_TELL = Statement(
    lambda insert: (
        insert(standing)
        .values(ws=b("ws"), script=b("script"), told=b("told"))
        .on_conflict_do_update(index_elements=["ws", "script"], set_={"told": b("told")})
    )
)


def save(
    tx: Transaction,
    name: str,
    plan: str,
    owner: str,
    job: str | None,
    at: datetime,
    *,
    source: str | None = None,
    head: Mapping[str, Any] | None = None,
) -> int:
    """Saves a plan under a name, as its next version; gives the version. The same plan again is no new one.

    `source`: the key of the text as pasted. `head`: `inputs` and `calls`, as other scripts are checked against."""
    known = get(tx, name)
    if known is not None and known["plan"] == plan:
        return known["version"]
    version = (known["version"] if known else 0) + 1
    _ADD.run(
        tx,
        {
            "ws": tx.ws,
            "name": name,
            "version": version,
            "plan": plan,
            "source": source,
            "head": json.dumps(dict(head or {}), ensure_ascii=False),
            "owner": owner,
            "job": job,
            "created": micros(at),
        },
    )
    return version


def get(tx: Transaction, name: str, version: int | None = None) -> dict[str, Any] | None:
    """A saved script: its current version, or the one asked for."""
    asked = {"ws": tx.ws, "name": name}
    got = _GET.one(tx, asked) if version is None else _ONE.one(tx, {**asked, "version": version})
    return _row(got) if got else None


def versions(tx: Transaction, name: str) -> list[dict[str, Any]]:
    """Every version, the current one first."""
    return [_row(got) for got in _VERSIONS.all(tx, {"ws": tx.ws, "name": name})]


def current(tx: Transaction) -> list[dict[str, Any]]:
    """The current version of every saved script, by name."""
    return [_row(got) for got in _CURRENT.all(tx, {"ws": tx.ws})]


def names(tx: Transaction) -> list[tuple[str, int]]:
    return [(g[0], g[1]) for g in _NAMES.all(tx, {"ws": tx.ws})]


def stands(tx: Transaction, name: str) -> tuple[bool, str | None]:
    """Whether a script is paused, and why it did not start, as somebody was told."""
    got = _STANDS.one(tx, {"ws": tx.ws, "script": name})
    return (bool(got[0]), got[1]) if got else (False, None)


def pause(tx: Transaction, name: str, paused: bool) -> None:
    _PAUSE.run(tx, {"ws": tx.ws, "script": name, "paused": int(paused)})


def tell(tx: Transaction, name: str, why: str | None) -> None:
    """Remembers what was told of a script that did not start; None once it has."""
    _TELL.run(tx, {"ws": tx.ws, "script": name, "told": why})


def _row(got: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "name": got[0],
        "version": got[1],
        "plan": got[2],
        "owner": got[3],
        "job": got[4],
        "created": instant(got[5]),
        "source": got[6],
        "head": json.loads(got[7]),
    }
