"""What a run looks like from outside: its ops, what it showed, its state, for the API and the rehearsal alike."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.domain.values import errors_in, normalise, plain
from store import ops
from store.dialect import Transaction


def natural(path: str) -> list[Any]:
    """A key that sorts `2` before `10`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", path)]


def shown_values(rows: list[OpRow]) -> list[Any]:
    """What was shown, in written order and index."""
    return [
        r.data["shown"] for r in sorted(rows, key=lambda r: natural(r.path)) if "shown" in r.data and r.state == "done"
    ]


def result_of_run(tx: Transaction, run_id: str, job: str) -> Any:
    """What a run shows, else its last op's value."""
    rows = ops.StoredRows(tx, run_id, job)
    shown = shown_values(rows.showing())
    if shown:
        return shown[0] if len(shown) == 1 else shown
    program = rows.region("")
    return program.value if program is not None and program.has_value else None


def state_of(run: RunRow) -> str:
    """`waiting` where the run has not ended."""
    return run.state if run.state in ("done", "failed", "cancelled", "paused") else "waiting"


def op_report(row: OpRow, zone: Any) -> dict[str, Any]:
    """One op as reports give it; instants in `zone`."""

    def at(moment: datetime | None) -> str | None:
        return moment.astimezone(zone).isoformat() if moment else None

    return {
        "path": row.path,
        "id": row.id,
        "op": row.op,
        "state": row.state,
        "value": plain(row.value) if row.has_value else None,
        "by": row.by,
        "error": row.data.get("error"),
        "reason": row.data.get("reason"),
        "miss": row.data.get("miss"),
        "claim": row.data.get("claim"),
        "started": at(row.started),
        "ended": at(row.ended),
    }


def error_notes(rows: list[OpRow]) -> list[str]:
    """How many error values went out with what was shown, and which events an expectation passed over."""
    found: list[str] = []
    for row in rows:
        count = errors_in(row.data.get("shown"))
        if count:
            found.append(f"{count} of the shown values {'is an error' if count == 1 else 'are errors'} (op {row.path})")
    for row in rows:
        passed = row.data.get("passed")
        if passed:
            said = ", ".join(f"{n} {why}" for why, n in passed.items())
            found.append(f"{row.id or row.path}: {sum(passed.values())} passed over: {said}")
    return found


def input_names(plan: Plan, given: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a sealed plan with their defaults."""
    names = {i.name: i.default for i in plan.inputs or () if i.has_default}
    return {**names, **{k: normalise(v) for k, v in given.items()}}
