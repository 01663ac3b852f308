"""Starting a run of a saved script, whatever starts it: its names from outside, its row, its first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.changes import Taken
from bot.domain.ids import digest
from bot.domain.plan import Plan
from bot.domain.record import RunRow
from bot.domain.values import dump
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


def keep_told(
    tx: Transaction, preflight: Mapping[str, Any], notes: Sequence[Note], *, source: str | None, surface: str | None
) -> str:
    """Keeps what was told before a run started: the text as pasted, the pre-flight, the notes; gives its hash. Runs of
    one script share it."""
    flight = {k: v for k, v in preflight.items() if k != "latest_end"}
    said = dump(
        {
            "preflight": {**flight, "writes": list(flight.get("writes", []))[:TOLD]},
            "notes": [note.message for note in notes if note.code != "input-ungiven"][:TOLD],
        }
    )
    key = digest(f"told {said} {source}")
    runs.add_plan(tx, key, said, source, surface)
    return key


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
    taken: Sequence[Taken] = (),
) -> Outcome:
    """Starts a run of one version of a saved script; it keeps that version to its end. `parent`: the run whose op
    starts it, and that op's path. `world`: what its pre-flight is told from, where somebody will read that."""
    kept = runs.get_job(tx, job)
    flight, notes = flight_of(plan, site.catalog, world) if world is not None else ({}, [])
    source, surface = runs.plan_source(tx, saved["source"]) if saved["source"] else (None, None)
    row = RunRow(
        id=run,
        job=job,
        owner=owner,
        plan=saved["plan"],
        created=at,
        customer=kept["customer"] if kept else None,
        names=names_for(tx, site.catalog, plan, job, given),
        parent=parent,
        told=keep_told(tx, flight, notes, source=source, surface=surface),
        ends=flight.get("latest_end"),
        data={"script": saved["name"], "version": saved["version"], **data},
    )
    return accept(tx, site, row, plan, taken=taken)
