"""One step of a run, written: everything a fact changes, in the transaction that is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bot.domain.changes import Delivery, Step
from bot.domain.ids import digest
from store import history, inbox, ops, outbox, runs, waits
from store.dialect import Transaction


def write(
    tx: Transaction,
    step: Step,
    plan_text: Callable[[Any], str],
    *,
    resumed: bool,
    here: Callable[[Delivery], bool],
) -> list[str]:
    """Writes a step's rows; gives the runs that cancelled ops had started. `plan_text` gives the stored form of an
    edited plan; `resumed`: the step took up the rest of an earlier one; `here`: a delivery goes to the room, where
    its commit is its acceptance."""
    run = step.run
    assert run is not None
    orphans: list[str] = []
    for change in step.cancelled:
        orphans += runs.children_below(tx, run.id, change.path)
        ops.cancel_under(tx, run.id, change)
    ops.put_regions(tx, run.id, step.regions)
    ops.put_ops(tx, run.id, step.ops)
    armed = {row.path for row in step.ops if row.op == "expect"}
    waits.put(tx, run.id, step.timers, step.waits, step.disarmed, step.endpoints, armed)
    outbox.put(tx, run.id, step.deliveries, step.settled, step.calls, step.dropped_calls, here)
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
    return orphans


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
