"""`retry` of a failed run: what halted and what was stopped because of it is planned again; done ops stay done."""

from __future__ import annotations

from bot.domain.record import OpRow, RegionRow
from bot.engine import order
from bot.engine.turn import Turn, name_of_region


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
        if row.place in turn.index.ops and not row.data.get("meant"):
            if row.data.get("halts") or row.state in ("cancelled", "skipped"):
                _op(turn, row)
    for row in rows:
        if row.open:
            region.unended += 1
            if row.state == "planned":
                order.count_needs(turn, row)
    turn.mark(path)
    if region.unended == 0:
        turn.queue.append(("closed", path))


def _op(turn: Turn, row: OpRow) -> None:
    turn.record("reopened", row, state=row.state, error=row.data.get("error"), attempt=row.attempt)
    regions = turn.regions_of(row.path)
    branch = next((r for r in regions if name_of_region(r.path) in ("onMiss", "onError")), None)
    row.open = True
    row.has_value = False
    row.value = None
    row.rev += 1
    turn.touch(row)
    if branch is not None:
        _branch(turn, row, branch)
    elif regions:
        _inside(turn, row, regions)
    else:
        _again(turn, row)


def _branch(turn: Turn, row: OpRow, branch: RegionRow) -> None:
    """The branch was chosen and stays so: what halted in it goes on."""
    row.data.pop("halts", None)
    row.data.pop("stopped", None)
    row.unclosed = 1
    if row.state == "cancelled":
        row.state = "missed" if name_of_region(branch.path) == "onMiss" else "failed"
    _region(turn, branch.path)


def _inside(turn: Turn, row: OpRow, regions: list[RegionRow]) -> None:
    """What halted inside goes on; regions that had closed well stay as they are."""
    kept = ("size", "next", "begun", "results", "won", "taken", "max", "round", "edited")
    spent = row.state == "missed"
    row.data = {k: row.data[k] for k in kept if k in row.data}
    row.state = "running"
    row.ended = None
    row.due = None
    row.attempt += 1
    ahead = [r for r in regions if "size" in row.data and int(name_of_region(r.path)) >= row.data["next"]]
    for region in ahead:
        region.state, region.error = "ahead", None
        turn.touch_region(region)
    broken = [r for r in regions if r.error is not None]
    row.unclosed = len(broken)
    if "begun" in row.data:
        row.data["begun"] = len(broken)
    for region in broken:
        _region(turn, region.path)
    reopened = turn.index.spec(row.op).step.reopened
    if reopened is not None:
        reopened(turn, row, spent)


def _again(turn: Turn, row: OpRow) -> None:
    """Planned again, as a new attempt; what was approved stays approved."""
    row.state = "planned"
    row.ended = None
    row.started = None
    row.data = {k: row.data[k] for k in ("edited", "approved") if k in row.data}
    row.data["before"] = row.attempt
