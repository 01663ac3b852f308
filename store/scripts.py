"""Saved scripts, by name and version."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import script

_ADD = Statement(sa.insert(script).values({c.name: b(c.name) for c in script.c}))
_LATEST = Statement(sa.select(sa.func.max(script.c.version)).where(script.c.ws == b("ws"), script.c.name == b("name")))
_GET = Statement(
    sa.select(script.c.version, script.c.plan, script.c.owner, script.c.job, script.c.created)
    .where(script.c.ws == b("ws"), script.c.name == b("name"))
    .order_by(script.c.version.desc())
    .limit(1)
)
_NAMES = Statement(
    sa.select(script.c.name, sa.func.max(script.c.version))
    .where(script.c.ws == b("ws"))
    .group_by(script.c.name)
    .order_by(script.c.name)
)


def save(tx: Transaction, name: str, plan: str, owner: str, job: str | None, at: datetime) -> int:
    """Saves a plan under a name, as its next version; gives the version. The same plan again is no new one."""
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
            "owner": owner,
            "job": job,
            "created": micros(at),
        },
    )
    return version


def get(tx: Transaction, name: str) -> dict[str, Any] | None:
    """The current version of a saved script."""
    got = _GET.one(tx, {"ws": tx.ws, "name": name})
    if got is None:
        return None
    return {"name": name, "version": got[0], "plan": got[1], "owner": got[2], "job": got[3], "created": instant(got[4])}


def names(tx: Transaction) -> list[tuple[str, int]]:
    return [(g[0], g[1]) for g in _NAMES.all(tx, {"ws": tx.ws})]
