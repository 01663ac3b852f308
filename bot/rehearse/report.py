"""The transcript of a rehearsal, as one JSON object and as text."""

from __future__ import annotations

from typing import Any

from bot.domain.record import OpRow, RunRow
from bot.domain.values import plain
from bot.rehearse.lines import in_zone
from bot.rehearse.play import JOB, RUN, Player
from bot.runtime.report import error_notes, natural, op_report, shown_values, state_of
from store import history, ops, runs


def report(player: Player, notes: list[str], preflight: dict[str, Any]) -> dict[str, Any]:
    """Everything section 12 of the language names, in its order."""
    zone = player.scenario.zone

    def read(tx: Any) -> tuple[RunRow, bool, list[OpRow], list[dict[str, Any]], list[dict[str, Any]]]:
        run = runs.get(tx, RUN)
        assert run is not None
        sealed = player.site.index(tx, run.plan).plan.sealed
        return run, sealed, ops.StoredRows(tx, RUN, JOB).all(), history.of_run(tx, RUN), history.held(tx, JOB)

    run, sealed, rows, entries, held = player.db.read(read)
    rows.sort(key=lambda r: natural(r.path))
    shown = shown_values(rows)
    log = player.log
    state = "failed" if log.missing else state_of(run)
    found: dict[str, Any] = {
        "state": state,
        "result": plain(shown[0] if len(shown) == 1 else shown if shown else None),
        "held": [] if sealed else held,
        "bindings": bindings(player, rows),
        "ops": [op_report(row, zone) for row in rows],
        "deliveries": log.deliveries,
        "calls": log.calls,
        "agent_calls": log.agent_calls,
        "lines": log.lines,
        "edits": [e["data"]["edit"] for e in entries if e["what"] == "edited"],
        "replies": log.replies,
        "notes": notes + error_notes(rows),
        "preflight": in_zone(preflight, zone),
        "cost": {"agent_calls": len(log.agent_calls), "tokens": 0, "usd": 0},
    }
    if run.data.get("error"):
        found["error"] = run.data["error"]
    if log.missing:
        found["missing"] = log.missing
    return found


def bindings(player: Player, rows: list[OpRow]) -> dict[str, Any]:
    """What the top-level ops bound: the last written one that has a value counts, its branches included."""
    found: dict[str, Any] = {}
    top = {r.id for r in rows if r.region == "" and r.id}
    for row in rows:
        if (
            row.id in top
            and row.has_value
            and (row.region == "" or ".onMiss" in row.region or ".onError" in row.region)
        ):
            if "[" not in row.path and player.site.catalog[row.op].binds:
                found[row.id] = plain(row.value)
    return found
