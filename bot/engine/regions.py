"""Regions close: inner ones first; then the op they belong to ends, fails, or goes on; at last the run."""

from __future__ import annotations

from typing import Any

from bot.domain.errors import OpError
from bot.domain.record import OpRow, RegionRow
from bot.engine import failure, order, scope
from bot.engine.turn import Turn, name_of_region


def closed(turn: Turn, path: str) -> None:
    """All ops of a region have ended."""
    region = turn.region(path)
    if region.state == "closed" or region.unended > 0:
        return
    was = region.state
    region.state = "closed"
    turn.cool(region)
    turn.touch_region(region)
    if was == "open":
        _give_value(turn, region)
    if region.owner == "":
        _program_closed(turn, region, was)
        return
    owner = turn.must(region.owner)
    owner.unclosed -= 1
    turn.touch(owner)
    if owner.data.get("stopped"):
        if owner.unclosed == 0:
            if owner.state == "running":
                owner.state = "cancelled"
            order.close(turn, owner)
        return
    match name_of_region(path):
        case "onMiss":
            _miss_branch_closed(turn, owner, region, was)
        case "onError":
            _error_branch_closed(turn, owner, region, was)
        case _:
            behaviour = turn.index.spec(owner.op).step
            try:
                behaviour.closed(turn, owner, region, was)
            except OpError as fault:
                failure.fail(turn, owner, str(fault), final=True)


def _give_value(turn: Turn, region: RegionRow) -> None:
    """A region's value is that of its last op that has one."""
    for row in reversed(turn.ops_in(region.path)):
        value: Any = scope.value_of(turn, row)
        if value is not scope.MISSING:
            region.value, region.has_value = value, True
            return


def _miss_branch_closed(turn: Turn, owner: OpRow, region: RegionRow, was: str) -> None:
    if was == "failing":
        owner.data["error"] = region.error
        failure.apply_rule(turn, owner)
    else:
        order.close(turn, owner)


def _error_branch_closed(turn: Turn, owner: OpRow, region: RegionRow, was: str) -> None:
    if was == "failing":
        failure.apply_rule(turn, owner, branch=False)
    else:
        order.close(turn, owner)


def _program_closed(turn: Turn, region: RegionRow, was: str) -> None:
    run = turn.run
    if region.path == "" and was == "failing":
        run.data.setdefault("error", region.error)
        if turn.index.plan.on_error is not None and not run.data.get("stopping"):
            order.open_region(turn, None, "onError")
            return
    end_run(turn, "cancelled" if was == "stopping" else "done" if region.path == "" and was == "open" else "failed")


def end_run(turn: Turn, state: str) -> None:
    run = turn.run
    run.state = state  # type: ignore[assignment]
    run.ended = turn.now
    if turn.index.plan.within is not None:
        turn.timer("", "run", None)
    turn.step.ended = True
    turn.record("ended", data=state, error=run.data.get("error"))
