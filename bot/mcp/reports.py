"""A run as an agent is told of it: state, what was shown, names that are held, and of each op whether its effect has
happened, so that nothing that happened is done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.catalog import Catalog
from bot.domain.record import OpRow
from bot.domain.values import dump

MOST_OPS = 200
"""Ops of a report: those of a fan-out beyond are counted."""
LARGEST_RESULT = 64 * 1024
"""Characters of what was shown: a plan that shows more says so to people, and less to an agent's conversation."""
EFFECTS = frozenset({"say", "save"})
"""Built-in ops that do something outside; tools and channels besides."""


def of_run(found: Mapping[str, Any], rows: Sequence[OpRow], catalog: Catalog) -> dict[str, Any]:
    """`found`: the run as `Desk.show` gives it; `rows`: its ops, sorted."""
    ops = [of_op(row, catalog) for row in rows]
    told: dict[str, Any] = {
        "run": found["id"],
        "state": found["state"],
        "job": found["job"],
        "owner": found["owner"],
        **{key: found[key] for key in ("error", "line") if found[key] is not None},
        **_shown(found["result"]),
        "held": found["held"],
        "ops": _fewer(ops),
    }
    if len(ops) > MOST_OPS:
        told["ops_left_out"] = len(ops) - MOST_OPS
    if found["notes"]:
        told["notes"] = found["notes"]
    return told


def of_op(row: OpRow, catalog: Catalog) -> dict[str, Any]:
    """One op: what it is, how it stands, whom it waits for, whether its effect has happened."""
    told: dict[str, Any] = {"path": row.path, "op": row.op, "state": row.state}
    if row.id is not None:
        told["id"] = row.id
    if row.error is not None:
        told["error"] = row.error
    if (happened := effect(row, catalog)) is not None:
        told["happened"] = happened
    gate = row.data.get("gate") or {}
    if row.state in ("gated", "uncertain"):
        told["waiting_on"] = list(gate.get("to", []))
    elif row.state == "waiting" and row.op == "ask":
        told["waiting_on"] = list(row.data.get("asked", []))
        told["question"] = row.data.get("question")
        if row.data.get("choices"):
            told["choices"] = [choice["label"] for choice in row.data["choices"]]
    return told


def effect(row: OpRow, catalog: Catalog) -> bool | str | None:
    """Whether what an op does outside has happened: true, false, `unknown`, `under way`; None where it does nothing
    outside."""
    spec = catalog[row.op]
    if not ((spec.tool and not spec.read_only) or spec.channel is not None or row.op in EFFECTS):
        return None
    match row.state:
        case "done":
            # What `onError` has tolerated failed all the same.
            return not row.data.get("tolerated")
        case "uncertain":
            return "unknown"
        case "running":
            return False if row.data.get("pausing") or row.data.get("held") else "under way"
        case "failed" if row.error is not None and row.error.startswith("unknown whether"):
            return "unknown"
        case _:
            return False


def _fewer(ops: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """So many ops at most: those that wait, failed or have had an effect first, in their order."""
    if len(ops) <= MOST_OPS:
        return ops
    first = [n for n, op in enumerate(ops) if op["state"] not in ("done", "planned") or op.get("happened")]
    others = set(range(len(ops))) - set(first)
    rest = sorted(others)
    return [ops[n] for n in sorted([*first, *rest][:MOST_OPS])]


def _shown(result: Any) -> dict[str, Any]:
    size = len(dump(result))
    if size <= LARGEST_RESULT:
        return {"result": result}
    said = f"what is shown has {size} characters; show less of it, or save it to a file"
    return {"result": None, "result_left_out": said}
