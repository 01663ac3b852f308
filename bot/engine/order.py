"""Which ops may start, and when: needs, the walk from the top, skipping, and what follows an op's end."""

from __future__ import annotations

from bot.domain.errors import OpError
from bot.domain.ids import indexes_of, instance
from bot.domain.record import OpRow, RegionRow
from bot.engine import scope
from bot.engine.turn import Turn


def open_region(turn: Turn, owner: OpRow | None, path: str, item: object = None) -> None:
    """Opens a region instance: its ops become planned rows, each with the number of its open needs."""
    plan = turn.region_plan(path)
    region = turn.find_region(path)
    if region is not None and region.state == "ahead":
        region.state, region.opened, region.unended = "open", turn.now, len(plan.ops)
        turn.touch_region(region)
    else:
        turn.add_region(
            RegionRow(path=path, owner=owner.path if owner else "", opened=turn.now, unended=len(plan.ops), item=item)
        )
    if owner is not None:
        owner.unclosed += 1
        turn.touch(owner)
    cut = len(plan.place) + 1 if plan.place else 0
    rows: list[OpRow] = []
    for op in plan.ops:
        name = op.place[cut:]
        rows.append(
            OpRow(
                path=f"{path}.{name}" if path else name, place=op.place, region=path, rank=op.rank, op=op.op, id=op.id
            )
        )
        turn.add(rows[-1])
    for row in rows:
        count_needs(turn, row)
    turn.mark(path)
    if not rows:
        turn.queue.append(("closed", path))


def count_needs(turn: Turn, row: OpRow) -> None:
    """How many of the ops that a planned op needs have not ended; skips it if one has ended without a value."""
    row.needs = 0
    still: set[str] = set()
    for need, first in turn.index.primary[row.place]:
        other = turn.at_place(row.path, first)
        if other is None or other.open:
            still.add(first)
        elif row.state == "planned" and not _met(turn, need, other):
            skip(turn, row, need.name, other)
    row.needs = len(still)
    turn.touch(row)


def start_next(turn: Turn) -> OpRow | None:
    """Takes the op that comes first in written order among those that may start, and marks it started."""
    row = turn.next_start(lambda path: startable(turn, path))
    if row is None:
        return None
    row.started = turn.now
    row.state = "running"
    row.rev += 1
    row.attempt += 1
    turn.touch(row)
    return row


def startable(turn: Turn, path: str) -> OpRow | None:
    """The op of a region that may start now: the first ready one, if no active one stands above it."""
    region = turn.find_region(path)
    if region is None or region.state != "open" or turn.run.state != "running" or turn.run.data.get("held"):
        return None
    return turn.first_startable(region)


def ended(turn: Turn, row: OpRow) -> None:
    """What follows the end of an op for those outside: its name is bound, what needs it moves, its region shrinks."""
    region = turn.region(row.region)
    region.unended -= 1
    turn.touch_region(region)
    _bind(turn, row)
    for place in turn.index.dependents.get(row.place, ()):
        for other in _instances(turn, row, place):
            if other.state != "planned":
                continue
            count_needs(turn, other)
            if other.state == "planned" and other.needs == 0:
                turn.mark(other.region)
    if region.unended == 0:
        turn.queue.append(("closed", region.path))
    else:
        turn.mark(region.path)


def skip(turn: Turn, row: OpRow, name: str, cause: OpRow) -> None:
    """An op whose need ended without a value is skipped, and says because of what."""
    what = "has no value" if cause.state == "done" else cause.state
    row.state = "skipped"
    row.data["error"] = f"skipped: {name} {what}"
    close(turn, row)


def close(turn: Turn, row: OpRow) -> None:
    """The op has ended, for those outside too."""
    if not row.open:
        return
    row.open = False
    row.ended = row.ended or turn.now
    turn.set_own(row, False)
    turn.record(row.state, row, by=row.by, error=row.data.get("error"))
    turn.queue.append(("ended", row.path))


def finish(turn: Turn, row: OpRow, value: object = None, *, has_value: bool = True, by: str | None = None) -> None:
    """The op is done, with this value."""
    row.state = "done"
    row.value = value
    row.has_value = has_value
    row.by = by if by is not None else row.by
    row.due = None
    row.rev += 1
    close(turn, row)


def _met(turn: Turn, need: object, other: OpRow) -> bool:
    """Whether an ended op satisfies a need: with a value, or by having ended at all."""
    if not getattr(need, "value", True):
        return True
    if scope.value_of(turn, other) is not scope.MISSING:
        return True
    return other.state == "done" and getattr(need, "via", "ref") == "after"


def _instances(turn: Turn, row: OpRow, place: str) -> list[OpRow]:
    """The planned rows of a dependent's place that see this op."""
    indexes = indexes_of(row.path)
    if place.count("[]") == len(indexes):
        other = turn.op(instance(place, indexes))
        return [other] if other is not None else []
    return turn.planned_at(place, row.region)


def _bind(turn: Turn, row: OpRow) -> None:
    if row.region != "" or row.id is None or turn.index.plan.sealed or not turn.index.spec(row.op).binds:
        return
    value = scope.value_of(turn, row)
    if value is not scope.MISSING:
        turn.bind(row.id, value)


def begin(turn: Turn, row: OpRow) -> None:
    """Runs the op's own start; what its references lack is the op's error."""
    from bot.engine import failure

    behaviour = turn.index.spec(row.op).step
    try:
        behaviour.start(turn, row)
    except OpError as fault:
        failure.fail(turn, row, str(fault), final=True)
