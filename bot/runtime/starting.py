"""Starting a run of a saved script, whatever starts it: its names from outside, its row, its first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.plan import Plan
from bot.domain.record import RunRow
from bot.language.problems import Note
from bot.language.scope import analyse
from bot.language.script import flight_of
from bot.runtime import report
from bot.runtime.commit import Outcome, Site, accept
from store import history, runs
from store.dialect import Transaction


def names_for(tx: Transaction, catalog: Catalog, plan: Plan, job: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run sees from outside: its inputs, or those of the job's names that it uses, as they stand now, and what
    its trigger bound. `given`: values of inputs, or of names that a trigger binds."""
    if plan.sealed:
        declared = {one.name for one in plan.inputs or ()}
        return report.input_names(plan, {name: value for name, value in given.items() if name in declared})
    scopes = analyse(plan, catalog)
    used = {use.name for op, _ in plan.walk() for use in scopes.uses(op.place)}
    held = {name: value for name, value in history.bindings(tx, job).items() if name in used}
    return {**held, **given}


TOLD = 20
"""Writes and notes of a pre-flight that stay with the run."""


def told_before(preflight: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    """What a run keeps of what was told before it started, for its status."""
    latest = preflight.get("latest_end")
    return {
        "preflight": {
            **preflight,
            "writes": list(preflight.get("writes", []))[:TOLD],
            "latest_end": latest.isoformat() if latest else None,
        },
        "notes": [note.message for note in notes if note.code != "input-ungiven"][:TOLD],
    }


def begin(
    tx: Transaction,
    site: Site,
    saved: Mapping[str, Any],
    plan: Plan,
    *,
    run: str,
    job: str,
    owner: str,
    at: datetime,
    given: Mapping[str, Any],
    data: Mapping[str, Any],
    world: World | None = None,
    parent: str | None = None,
) -> Outcome:
    """Starts a run of one version of a saved script; it keeps that version to its end. `parent`: the run whose op
    starts it, and that op's path. `world`: what its pre-flight is told from, where somebody will read that."""
    kept = runs.get_job(tx, job)
    row = RunRow(
        id=run,
        job=job,
        owner=owner,
        plan=saved["plan"],
        created=at,
        customer=kept["customer"] if kept else None,
        names=names_for(tx, site.catalog, plan, job, given),
        parent=parent,
        data={
            "script": saved["name"],
            "version": saved["version"],
            **({"pasted": saved["source"]} if saved["source"] else {}),
            **(told_before(*flight_of(plan, site.catalog, world)) if world is not None else {}),
            **data,
        },
    )
    return accept(tx, site, row, plan)
