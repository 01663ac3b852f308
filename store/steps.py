"""One step of a run, written: everything a fact changes, in the transaction that is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.changes import Call, Delivery, Step
from bot.domain.ids import digest
from store import history, inbox, ops, outbox, runs, waits
from store.dialect import Transaction


@dataclass(slots=True)
class Written:
    """`orphans`: runs that cancelled ops had started. `delivered`: what the room shows by this commit."""

    orphans: list[str] = field(default_factory=list)
    delivered: list[Delivery] = field(default_factory=list)


def write(
    tx: Transaction,
    step: Step,
    plan_text: Callable[[Any], str],
    *,
    resumed: bool,
    here: Callable[[Delivery], bool],
    begins: Callable[[Call], str | None],
    now: datetime,
    crowded: bool = True,
) -> Written:
    """Writes a step's rows. `plan_text` gives the stored form of an edited plan; `resumed`: the step took up the rest
    of an earlier one; `here`: a delivery goes to the room, where its commit is its acceptance; `begins`: who makes a
    call as soon as it is committed; `crowded`: cards of the run may be held back."""
    run = step.run
    assert run is not None
    orphans: list[str] = []
    for change in step.cancelled:
        orphans += runs.children_below(tx, run.id, change.path)
        ops.cancel_under(tx, run.id, change)
    ops.put_regions(tx, run.id, step.regions)
    ops.put_ops(tx, run.id, step.ops)
    if step.timers or step.waits or step.disarmed or step.endpoints:
        armed = {row.path for row in step.ops if row.op == "expect"}
        waits.put(tx, run.id, step.timers, step.waits, step.disarmed, step.endpoints, armed)
    freed = crowded and bool(step.settled or step.cancelled)
    if step.settled or step.calls or step.dropped_calls:
        step.begun = outbox.put(tx, run.id, step.settled, step.calls, step.dropped_calls, begins)
    written = Written(orphans=orphans)
    if step.deliveries:
        written.delivered += outbox.deliver(tx, run.id, step.deliveries, here, crowded=crowded)
    if freed:
        written.delivered += outbox.release(tx, run.id, here, now)
    inbox.take(tx, run.id, step.taken)
    history.bind(tx, run.job, run.id, step.bound)
    history.append(tx, run, step.entries)
    if step.plan is not None:
        body = plan_text(step.plan)
        run.plan = digest(body)
        runs.add_plan(tx, run.plan, body, None, None)
    if step.more:
        runs.remember_more(tx, run.id)
    elif resumed:
        runs.forget_more(tx, run.id)
    run.rev += 1
    runs.put(tx, run)
    return written


def empty(step: Step) -> bool:
    """Nothing of the step needs writing: the fact was stale, or only deserved a reply."""
    return not (
        step.ops
        or step.regions
        or step.deliveries
        or step.settled
        or step.calls
        or step.timers
        or step.waits
        or step.disarmed
        or step.cancelled
        or step.bound
        or step.taken
        or step.entries
        or step.plan
        or step.dropped_calls
        or step.ended
        or step.more
    )
