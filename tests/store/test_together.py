"""Facts of many runs in one transaction: what is read and written for all of them together is what each would have."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.changes import Entry
from bot.domain.record import RegionRow
from store import history, ops, runs
from store.dialect import Transaction
from store.small import SmallRows
from store.transaction import Database
from tests.store.test_rows import NOW, a_run, an_op

RUNS = [f"r{n}" for n in range(1, 4)]


def rows_of(tx: Transaction, run_id: str) -> tuple[Any, Any]:
    rows = SmallRows(tx, run_id, "j")
    return rows.in_region(""), rows.region("")


def filled(tx: Transaction) -> None:
    for n, run_id in enumerate(RUNS):
        a_run(tx, run_id)
        ops.put_regions(tx, run_id, [RegionRow(path="", owner="", opened=NOW, unended=n, new=True)])
        ops.put_ops(tx, run_id, [an_op("1", value=n, has_value=True), an_op("2")])


def test_what_is_read_ahead_is_what_each_would_read(db: Database) -> None:
    db.write(filled)
    alone = [db.read(rows_of, run_id) for run_id in RUNS]

    def together(tx: Transaction) -> Any:
        found = list(runs.ahead(tx, ["r2", "r1", "r3", "r2", "none"]))
        ops.ahead(tx, found)
        return sorted(found), [rows_of(tx, run_id) for run_id in RUNS], [runs.lock(tx, run_id) for run_id in RUNS]

    assert db.write(together) == (RUNS, alone, [db.read(runs.get, run_id) for run_id in RUNS])


def test_more_runs_than_a_page_are_read_ahead(db: Database) -> None:
    many = [f"m{n}" for n in range(205)]
    db.write(lambda tx: [a_run(tx, run_id) for run_id in many])
    assert db.write(runs.ahead, many).keys() == set(many)


def test_what_was_changed_since_is_read_again(db: Database) -> None:
    db.write(filled)

    def changed(tx: Transaction) -> Any:
        ops.ahead(tx, list(runs.ahead(tx, RUNS)))
        tx.gathers = True
        row = ops.StoredRows(tx, "r2", "j").op("1")
        assert row is not None
        row.state = "done"
        ops.put_ops(tx, "r2", [row])
        return [[row.state for row in rows_of(tx, run_id)[0]] for run_id in RUNS]

    assert db.write(changed) == [["planned", "planned"], ["done", "planned"], ["planned", "planned"]]


def test_what_is_gathered_of_a_run_keeps_its_order_and_is_seen_by_whoever_reads(db: Database) -> None:
    def write(tx: Transaction) -> Any:
        tx.gathers = True
        seen: list[Any] = []
        for run_id in RUNS:
            run = a_run(tx, run_id)
            row = an_op("1")
            ops.put_ops(tx, run_id, [row])
            row.new = False
            for state in ("running", "done"):
                row.state = state
                ops.put_ops(tx, run_id, [row])
                history.append(tx, run, [Entry(at=NOW, what=state, path="1")])
                runs.put(tx, run)
            if run_id == "r2":
                seen = [[op.state for op in ops.StoredRows(tx, one, "j").all()] for one in RUNS[:2]]
        return seen

    assert db.write(write) == [["done"], ["done"]]
    for run_id in RUNS:
        assert [op.state for op in db.read(lambda tx, run_id=run_id: ops.StoredRows(tx, run_id, "j").all())] == ["done"]
        assert [entry["what"] for entry in db.read(history.of_run, run_id)] == ["running", "done"]
        assert db.read(history.verify, run_id) is None


def test_what_was_gathered_is_not_written_by_a_transaction_that_fails(db: Database) -> None:
    db.write(filled)

    def fails(tx: Transaction) -> None:
        tx.gathers = True
        ops.put_ops(tx, "r1", [an_op("3")])
        raise ValueError

    def rolled_back(tx: Transaction) -> None:
        tx.savepoint()
        tx.gathers = True
        ops.put_ops(tx, "r1", [an_op("3")])
        tx.rollback_to()

    with pytest.raises(ValueError):
        db.write(fails)
    db.write(rolled_back)
    assert [op.path for op in db.read(lambda tx: ops.StoredRows(tx, "r1", "j").all())] == ["1", "2"]
