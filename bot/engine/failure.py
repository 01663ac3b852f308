"""What a failure does: further attempts, the op's own rule, the region it fails, and what stops with it."""

from __future__ import annotations

from datetime import timedelta

from bot.domain.errors import Bug
from bot.domain.plan import Default, Region
from bot.domain.record import OpRow, RegionRow
from bot.engine import order, waits
from bot.engine.turn import STOPPED, Turn
from bot.language import durations


def fail(turn: Turn, row: OpRow, error: str, *, final: bool = False) -> None:
    """An attempt of the op failed: another one follows if `retry` has one left, else the op has failed."""
    op = turn.plan_op(row)
    region = turn.region(row.region)
    tried = row.attempt - int(row.data.get("before", 0))
    if turn.index.spec(row.op).kind == "wait":
        waits.withdraw(turn, row, "it failed")
    if not final and op.retry is not None and tried <= op.retry.max and region.state == "open":
        pause = next_delay(tried, op.retry.backoff, op.retry.max_delay)
        row.state = "running"
        row.data["error"] = error
        row.data["pausing"] = True
        row.rev += 1
        row.due = turn.now + pause
        turn.set_own(row, turn.index.spec(row.op).kind == "effect")
        turn.timer(row.path, "retry", row.due)
        turn.record("paused", row, error=error, attempt=row.attempt)
        return
    row.state = "failed"
    row.data["error"] = error
    row.data.pop("pausing", None)
    row.ended = turn.now
    row.rev += 1
    waits.disarm(turn, row)
    apply_rule(turn, row)


def next_delay(attempt: int, backoff: str, most: str | None) -> timedelta:
    """The pause after attempt number `attempt`: the backoff, doubled for each attempt before, at most `most`."""
    pause = durations.seconds(backoff) or 0.0
    pause *= 2 ** (attempt - 1)
    if most is not None:
        pause = min(pause, durations.seconds(most) or pause)
    return timedelta(seconds=min(pause, 86_400 * 400))


def apply_rule(turn: Turn, row: OpRow, *, branch: bool = True) -> None:
    """What the op's `onError` says of a failure (or of a miss without a branch): a value, a region, or halt."""
    op = turn.plan_op(row)
    rule = op.on_error if op.on_error is not None else turn.index.spec(row.op).on_error
    turn.touch(row)
    if isinstance(rule, Region) and branch:
        turn.set_own(row, False)
        turn.record(row.state, row, error=row.data.get("error"))
        order.open_region(turn, row, f"{row.path}.onError")
    elif rule == "continue":
        _tolerate(turn, row, None)
    elif isinstance(rule, Default):
        _tolerate(turn, row, rule.value)
    else:
        row.data["halts"] = True
        order.close(turn, row)
        fail_region(turn, row.region, row.data.get("error") or f"{row.id or row.path} {row.state}")


def _tolerate(turn: Turn, row: OpRow, value: object) -> None:
    row.value = value
    row.has_value = True
    row.data["tolerated"] = True
    order.close(turn, row)


def fail_region(turn: Turn, path: str, error: str) -> None:
    """The region starts nothing more; what has not begun or waits is cancelled, effects on their way run out."""
    region = turn.region(path)
    if region.state == "open":
        region.state = "failing"
        region.error = error
        stop_ops(turn, region, "its region failed")


def stop_region(turn: Turn, region: RegionRow, why: str) -> None:
    """Stops a region from outside: like a failure, but nothing has failed."""
    if region.state in ("open", "failing"):
        region.state = "stopping"
        region.error = region.error or STOPPED
        stop_ops(turn, region, why)


def stop_ops(turn: Turn, region: RegionRow, why: str) -> None:
    turn.touch_region(region)
    for row in turn.ops_in(region.path):
        if not row.open:
            continue
        stop_op(turn, row, why)
        if not row.open:
            region.unended -= 1
    turn.touch_region(region)
    if region.unended == 0:
        turn.queue.append(("closed", region.path))


def stop_op(turn: Turn, row: OpRow, why: str) -> None:
    """One op of a stopping region: cancelled, or left to run to its recorded end."""
    turn.touch(row)
    if row.state == "planned":
        _cancel(turn, row, why)
    elif row.unclosed:
        row.data["stopped"] = True
        hot = turn.regions_of(row.path, hot=True)
        for inner in hot:
            stop_region(turn, inner, why)
        turn.cancel_under(row.path, tuple(r.path for r in hot), why)
        row.unclosed = len(hot)
        turn.touch(row)
        if not hot:
            end_stopped(turn, row)
    elif row.data.get("pausing"):
        row.state = "failed"
        row.data.pop("pausing")
        _end(turn, row)
    elif row.state == "gated":
        turn.settle_cards(row.path, "withdrawn")
        _cancel(turn, row, why)
    elif row.state == "uncertain":
        if turn.run.data.get("stopping"):
            row.data["detached"] = True
            row.open = False
            turn.set_own(row, False)
        else:
            row.data["stopped"] = True
    elif row.data.pop("held", None):
        _cancel(turn, row, why)
    elif row.state == "waiting":
        waits.withdraw(turn, row, "withdrawn")
        _cancel(turn, row, why)
    elif row.own and turn.index.spec(row.op).kind == "effect":
        row.data["stopped"] = True
    elif row.state == "running":
        turn.drop_calls(row.path)
        _cancel(turn, row, why)
    else:
        raise Bug(f"{row.path} is {row.state} and open")


def end_stopped(turn: Turn, row: OpRow) -> None:
    """A region op whose regions have all been stopped."""
    if row.state in ("running", "waiting"):
        row.state = "cancelled"
    _end(turn, row)


def _cancel(turn: Turn, row: OpRow, why: str) -> None:
    row.state = "cancelled"
    row.data["reason"] = why
    _end(turn, row)


def _end(turn: Turn, row: OpRow) -> None:
    """Ends an op of a stopping region: nothing below it is looked at, its region is counted by the caller."""
    row.open = False
    row.due = None
    row.ended = row.ended or turn.now
    row.rev += 1
    turn.set_own(row, False)
    waits.disarm(turn, row)
    turn.record(row.state, row, error=row.data.get("error"))
