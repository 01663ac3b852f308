"""`retry` of a failed run: what halted and what was stopped because of it is planned again; done ops stay done."""

from __future__ import annotations

from bot.domain.record import OpRow
from bot.engine import order
from bot.engine.turn import Turn


def reopen(turn: Turn) -> None:
    """Opens the program of a failed run again, as a new attempt of what halted, with new windows."""
    run = turn.run
    run.state = "running"
    run.ended = None
    run.data.pop("error", None)
    run.data["retries"] = run.data.get("retries", 0) + 1
    error_region = turn.find_region("onError")
    if error_region is not None:
        error_region.state = "closed"
    plan = turn.index.plan
    if plan.within is not None:
        from bot.engine.waits import durations

        turn.timer("", "run", durations.due_within(plan.within, turn.now, turn.world.workspace))
    _region(turn, "")


def _region(turn: Turn, path: str) -> None:
    region = turn.region(path)
    region.state = "open"
    region.error = None
    region.has_value = False
    region.unended = 0
    turn.touch_region(region)
    rows = turn.ops_in(path)
    for row in rows:
        if row.data.get("halts") or row.state in ("cancelled", "skipped"):
            _op(turn, row)
    for row in rows:
        if row.open:
            region.unended += 1
            if row.state == "planned":
                order.count_needs(turn, row)
    turn.mark(path)


def _op(turn: Turn, row: OpRow) -> None:
    broken = [r for r in turn.regions_of(row.path) if r.error is not None]
    turn.record("reopened", row, state=row.state, error=row.data.get("error"), attempt=row.attempt)
    kept = {k: row.data[k] for k in ("size", "next", "over", "begun", "results", "taken", "max", "edited") if k in row.data}
    row.open = True
    row.ended = None
    row.has_value = False
    row.value = None
    row.rev += 1
    if broken:
        row.state = "running"
        row.data = kept
        row.unclosed = len(broken)
        if "begun" in row.data:
            row.data["begun"] = len(broken)
        turn.touch(row)
        for region in broken:
            _region(turn, region.path)
        if "size" in row.data and row.data["next"] < row.data["size"]:
            turn.queue.append(("more", row.path))
    else:
        row.state = "planned"
        row.data = {k: v for k, v in kept.items() if k == "edited"}
        row.started = None
        turn.touch(row)
