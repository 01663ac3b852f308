"""What must hold once everything has come to rest, from what was acknowledged, the outside's notes and the records."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from store import figures, history, outbox, runs
from store.dialect import Transaction
from store.transaction import Database
from tests.faults.load import Load
from tests.faults.outside import Outside


def judged(load: Load, outside: Outside, records: dict[str, dict[str, Any]]) -> list[str]:
    """Everything that does not hold, in sentences."""
    return [
        *load.faults,
        *_runs(load, records),
        *_answers(load, records),
        *_events(load, records),
        *_calls(load, outside, records),
    ]


def _runs(load: Load, records: dict[str, dict[str, Any]]) -> list[str]:
    lost = [f"{run} was acknowledged and is not there" for run in load.started if run not in records]
    wrong = [
        f"{run} is {found['state']}: {found['error'] or [(o['path'], o['state'], o['error']) for o in found['ops']]}"
        for run, found in records.items()
        if found["state"] != "done"
    ]
    return lost + wrong


def _answers(load: Load, records: dict[str, dict[str, Any]]) -> list[str]:
    faults: list[str] = []
    for (run, path), value in load.answers.items():
        op = next(o for o in records[run]["ops"] if o["path"] == path)
        if (op["state"], op["value"]) != ("done", value):
            faults.append(f"{run} {path}: `{value}` was acknowledged; it is {op['state']} {op['value']!r}")
    return faults


def _events(load: Load, records: dict[str, dict[str, Any]]) -> list[str]:
    """Two events a run, each of which settles one of its two expectations."""
    faults: list[str] = []
    for run, found in records.items():
        taken = sorted(o["value"]["event"]["tag"] for o in found["ops"] if o["id"] in ("one", "two") and o["value"])
        name = load.name_of(found)
        if taken != sorted(load.events.get(name, [])):
            faults.append(f"{run}: the events {load.events.get(name)} were acknowledged; {taken} settled something")
    return faults


def _calls(load: Load, outside: Outside, records: dict[str, dict[str, Any]]) -> list[str]:
    faults: list[str] = []
    made = Counter(c.order for c in outside.calls if c.tool == "charge")
    for order, count in made.items():
        if count > 1 + load.retried.get(order, 0):
            faults.append(f"charge {order} was made {count} times; its owner said `retry` {load.retried.get(order, 0)}")
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for call in outside.calls:
        keys[f"{call.tool} {call.order}"].add(call.key)
    faults += [f"{what} went out under {len(found)} keys" for what, found in keys.items() if len(found) > 1]
    for run, found in records.items():
        for order in ("c", "ca", "cb", "cc", "z"):
            if found["state"] == "done" and not made[f"{run}/{order}"]:
                faults.append(f"{run}: charge {order} is done in the record and was never made")
        for order in ("n", "na", "nb", "nc"):
            if found["state"] == "done" and not outside.of("note", f"{run}/{order}"):
                faults.append(f"{run}: note {order} is done in the record and was never made")
    return faults


def kept(database: str) -> list[str]:
    """What does not hold in the database itself, once the server is down."""
    db = Database(database)
    try:
        return db.read(_kept)
    finally:
        db.close()


def _kept(tx: Transaction) -> list[str]:
    faults = [
        f"{run.id}: entry {at} of its history does not fit the chain"
        for run in runs.find(tx, limit=10_000)
        if (at := history.verify(tx, run.id)) is not None
    ]
    left = outbox.open_calls(tx)
    faults += [f"a call is left over: {c['run']} {c['path']} {c['kind']} {c['state']}" for c in left]
    from bot.runtime.clock import SystemClock

    found = figures.figures(tx, SystemClock().now())
    faults += [f"{found[what]} {what} are left over" for what in ("events", "due", "deliveries") if found[what]]
    faults += [f"{run} has the rest of a step to do" for run in runs.with_more(tx)]
    return faults
