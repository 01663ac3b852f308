"""Rows go in and come out as they were, on both databases."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain.changes import Bound, Call, CancelledUnder, Delivery, Endpoint, Entry, Settled, Taken, Timer, Wait
from bot.domain.ids import digest, tap_token, tapped
from bot.domain.record import OpRow, RegionRow, RunRow
from bot.domain.values import ErrorValue
from store import history, inbox, leases, ops, outbox, people, runs, scripts, waits, work
from store.dialect import Transaction
from store.transaction import Database, check

NOW = datetime(2026, 3, 2, 8, 0, 0, 123456, tzinfo=UTC)


def a_run(tx: Transaction, run_id: str = "r1") -> RunRow:
    row = RunRow(
        id=run_id,
        job="j",
        owner="ana@acme.de",
        plan=digest("p"),
        created=NOW,
        names={"big": 2**60, "bad": ErrorValue("x")},
        customer={"id": "u"},
        data={"script": "s"},
    )
    runs.add(tx, row)
    return row


def an_op(path: str, region: str = "", **more: Any) -> OpRow:
    return OpRow(path=path, place=path, region=region, rank=int(re.findall(r"\d+", path)[-1]) << 40, op="ask",
                 id=f"x{path[0]}", new=True, **more)  # fmt: skip


def test_tables_are_this_releases_after_the_upgrade(db: Database) -> None:
    assert check(db.url) is None


def test_a_run_comes_back_as_it_was(db: Database) -> None:
    db.write(a_run)
    row = db.read(runs.get, "r1")
    assert row is not None
    assert (row.created, row.names["big"], row.names["bad"]) == (NOW, 2**60, ErrorValue("x"))
    assert (row.customer, row.data, row.state, row.ended) == ({"id": "u"}, {"script": "s"}, "running", None)


def test_an_op_comes_back_as_it_was_and_as_it_was_changed(db: Database) -> None:
    first = an_op(
        "1",
        value={"a": [1, None, "ü", ErrorValue("late")]},
        has_value=True,
        started=NOW,
        data={"to": [["person", "a"]]},
    )
    db.write(lambda tx: (a_run(tx), ops.put_ops(tx, "r1", [first])))
    row = db.read(lambda tx: ops.StoredRows(tx, "r1", "j").op("1"))
    assert row is not None
    assert (row.value, row.started, row.data, row.open) == (first.value, NOW, first.data, True)
    row.state, row.open, row.value = "done", False, "x" * 50_000
    db.write(ops.put_ops, "r1", [row])
    again = db.read(lambda tx: ops.StoredRows(tx, "r1", "j").op("1"))
    assert again is not None
    assert (again.state, again.open, again.value) == ("done", False, "x" * 50_000)


def test_ready_and_active_ops_come_in_written_order(db: Database) -> None:
    rows = [
        an_op("3"),
        an_op("10"),
        an_op("2", own=True, state="running"),
        an_op("1", needs=1),
        an_op("4", hot=1, state="running"),
    ]
    db.write(lambda tx: (a_run(tx), ops.put_ops(tx, "r1", rows)))

    def look(tx: Transaction) -> tuple[list[str], list[str]]:
        stored = ops.StoredRows(tx, "r1", "j")
        return [r.path for r in stored.ready("")], [r.path for r in stored.active("")]

    assert db.read(look) == (["3", "10"], ["2", "4"])


def test_a_set_cancels_what_is_open_below_a_path_and_nothing_beside_it(db: Database) -> None:
    rows = [an_op("2", state="running"), an_op("2[0].1", "2[0]", state="waiting"), an_op("2[1].1", "2[1]", state="done", open=False),
            an_op("2[2].1", "2[2]", state="running", own=True), an_op("22"), an_op("2+1")]  # fmt: skip
    regions = [RegionRow(path=f"2[{i}]", owner="2", opened=NOW, unended=1, new=True) for i in range(3)]
    change = CancelledUnder(path="2", keep=("2[2]",), at=NOW, why="x")
    db.write(lambda tx: (a_run(tx), ops.put_ops(tx, "r1", rows), ops.put_regions(tx, "r1", regions),
                         waits.put(tx, "r1", [Timer(path="2[0].1", kind="window", due=NOW)], [], [], []),
                         ops.cancel_under(tx, "r1", change)))  # fmt: skip
    states = db.read(lambda tx: {r.path: r.state for r in ops.StoredRows(tx, "r1", "j").all()})
    assert states == {
        "2": "running",
        "2[0].1": "cancelled",
        "2[1].1": "done",
        "2[2].1": "running",
        "22": "planned",
        "2+1": "planned",
    }
    assert db.read(lambda tx: {r.path: r.state for r in ops.StoredRows(tx, "r1", "j").all_regions()}) == {
        "2[0]": "closed", "2[1]": "closed", "2[2]": "open"}  # fmt: skip
    assert db.read(waits.next_due) is None


def test_what_is_due_comes_oldest_first_and_no_sooner(db: Database) -> None:
    timers = [Timer(path=str(i), kind="window", due=NOW + timedelta(seconds=i)) for i in (3, 1, 2)]
    db.write(lambda tx: (a_run(tx), waits.put(tx, "r1", timers, [], [], [])))
    assert [d[1] for d in db.read(waits.due, NOW + timedelta(seconds=2))] == ["1", "2"]
    assert db.read(waits.next_due) == NOW + timedelta(seconds=1)
    db.write(waits.put, "r1", [Timer(path="1", kind="window", due=NOW + timedelta(days=1))], [], ["2"], [])
    assert [d[1] for d in db.read(waits.due, NOW + timedelta(seconds=9))] == ["3"]


def test_an_event_is_stored_once_and_finds_who_waits_for_its_sender(db: Database) -> None:
    armed = [Wait(path="1", stream="s", key="u1", since=NOW), Wait(path="2", stream="s", key=None, since=NOW),
             Wait(path="3", stream="s", key="u2", since=NOW), Wait(path="4", stream="t", key=None, since=NOW)]  # fmt: skip

    def write(tx: Transaction) -> tuple[bool, bool]:
        a_run(tx)
        waits.put(tx, "r1", [], armed, [], [])
        event = {"stream": "s", "ident": "e1", "sender": "u1", "conversation": None, "at": NOW, "body": {"n": 5.5}}
        return inbox.add(tx, **event), inbox.add(tx, **event)

    assert db.write(write) == (True, False)
    assert sorted(db.read(waits.waiting_for, "s", "u1", None)) == [("r1", "1"), ("r1", "2")]
    ((number, event),) = db.read(inbox.unrouted)
    assert (event["id"], event["event"], event["from"]) == ("s/e1", {"n": 5.5}, "u1")
    db.write(inbox.routed, [number])
    assert db.read(inbox.unrouted) == []
    db.write(inbox.take, "r1", [Taken(event="s/e1", path="1")])
    assert db.read(lambda tx: ops.StoredRows(tx, "r1", "j").taker("s/e1")) == "1"


def test_a_delivery_is_queued_once_and_its_card_settles(db: Database) -> None:
    card = Delivery(path="1", attempt=1, kind="card", to="ana@acme.de", card={"text": "?"}, at=NOW)
    db.write(lambda tx: (a_run(tx), outbox.deliver(tx, "r1", [card, card], lambda _: False)))
    (row,) = db.read(outbox.queued)
    assert (row["card"], row["run"], row["state"]) == ({"text": "?"}, "r1", "queued")
    db.write(outbox.mark_done, row["seq"], NOW)
    assert db.read(outbox.queued) == []
    db.write(outbox.put, "r1", [Settled(path="1", outcome="Ana answered")], [], [])
    found = db.read(outbox.by_seq, row["seq"])
    assert found is not None and found["outcome"] == "Ana answered"


def test_a_call_is_begun_by_one_only(db: Database) -> None:
    work = Call(path="1", attempt=1, kind="tool", body={"tool": "t"}, at=NOW, idempotent=False)
    db.write(lambda tx: (a_run(tx), outbox.put(tx, "r1", [], [work, work], [])))
    (row,) = db.read(outbox.open_calls)
    assert [db.write(outbox.call_sent, row, NOW, "me"), db.write(outbox.call_sent, row, NOW, "you")] == [True, False]
    assert db.read(outbox.open_calls)[0]["holder"] == "me"
    db.write(outbox.call_done, row, NOW)
    assert db.read(outbox.open_calls) == []


def test_the_history_is_chained_and_a_changed_entry_is_found(db: Database) -> None:
    def write(tx: Transaction) -> None:
        row = a_run(tx)
        history.append(
            tx,
            row,
            [Entry(at=NOW, what="accepted", by="ana@acme.de"), Entry(at=NOW, what="done", path="1", data={"v": 1})],
        )
        runs.put(tx, row)

    db.write(write)
    assert [e["what"] for e in db.read(history.of_run, "r1")] == ["accepted", "done"]
    assert db.read(history.verify, "r1") is None
    db.write(lambda tx: tx.cursor.execute("update history set data = '{\"v\":2}' where n = 2"))
    assert db.read(history.verify, "r1") == 2


def test_the_jobs_names_keep_value_type_and_size(db: Database) -> None:
    db.write(
        history.bind,
        "j",
        "r1",
        [Bound(name="xs", value=["a", ErrorValue("e")], at=NOW), Bound(name="n", value=1, at=NOW)],
    )
    db.write(history.bind, "j", "r2", [Bound(name="n", value="two", at=NOW + timedelta(seconds=1))])
    assert db.read(history.bindings, "j") == {"xs": ["a", ErrorValue("e")], "n": "two"}
    assert db.read(history.held, "j") == [{"name": "xs", "type": "list<text>", "size": 2, "errors": 1},
                                          {"name": "n", "type": "text", "size": 3, "errors": 0}]  # fmt: skip


def test_an_address_is_called_once(db: Database) -> None:
    db.write(lambda tx: (a_run(tx), waits.put(tx, "r1", [], [], [], [Endpoint(token="t", path="1", until=NOW)])))
    assert [db.write(waits.call_endpoint, "t", NOW), db.write(waits.call_endpoint, "t", NOW)] == [True, False]


def test_a_log_in_link_works_once_and_in_time(db: Database) -> None:
    later = NOW + timedelta(minutes=15)
    db.write(
        lambda tx: (people.add_login(tx, "s1", "ana@acme.de", later), people.add_login(tx, "s2", "ana@acme.de", later))
    )
    assert [db.write(people.use_login, "s1", NOW), db.write(people.use_login, "s1", NOW)] == ["ana@acme.de", None]
    assert db.write(people.use_login, "s2", later) is None


def test_a_saved_script_gets_a_version_only_where_it_changed(db: Database) -> None:
    assert [db.write(scripts.save, "b", p, "ana@acme.de", None, NOW) for p in ("p1", "p1", "p2", "p1")] == [1, 1, 2, 3]


def test_a_lease_is_one_holders_until_it_runs_out(db: Database) -> None:
    soon = NOW + timedelta(seconds=30)
    assert db.write(leases.take, "x", "a", NOW, soon)
    assert not db.write(leases.take, "x", "b", NOW, soon)
    assert db.write(leases.take, "x", "b", soon, soon + timedelta(seconds=30))
    assert db.read(leases.live, soon) == {"x": "b"}


def test_two_writers_lose_nothing(db: Database) -> None:
    """Reads that become writes: without a lock from the start, one of two increments is lost."""
    db.write(lambda tx: a_run(tx))

    def add() -> None:
        for _ in range(20):
            db.write(_increment)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = db.read(runs.get, "r1")
    assert row is not None and row.rev == 80


def _increment(tx: Transaction) -> None:
    row = runs.lock(tx, "r1")
    assert row is not None
    row.rev += 1
    runs.put(tx, row)


def test_an_exception_rolls_everything_back(db: Database) -> None:
    def broken(tx: Transaction) -> None:
        a_run(tx)
        raise ValueError

    with pytest.raises(ValueError):
        db.write(broken)
    assert db.read(runs.get, "r1") is None


def test_a_savepoint_takes_back_its_own_only(db: Database) -> None:
    def write(tx: Transaction) -> None:
        a_run(tx, "r1")
        tx.savepoint()
        a_run(tx, "r2")
        tx.rollback_to()

    db.write(write)
    assert db.read(runs.get, "r1") is not None and db.read(runs.get, "r2") is None


def test_what_many_rows_say_is_kept_once_and_read_as_it_was(db: Database) -> None:
    said = {"to": [["person", "ana@acme.de"]], "question": "Extend the pilot to include S/4 writes?", "answers": []}

    def put(tx: Transaction, run_id: str) -> None:
        a_run(tx, run_id)
        row = an_op("1", state="waiting", data={**said, "since": NOW.isoformat()})
        card = Delivery(path="1", attempt=1, kind="card", to="ana@acme.de", card={"text": "Extend? " * 20}, at=NOW)
        ops.put_ops(tx, run_id, [row])
        outbox.deliver(tx, run_id, [card], lambda _: True)

    for n in range(5):
        db.write(put, f"r{n}")
    for n in range(5):
        row = db.read(lambda tx, n=n: ops.StoredRows(tx, f"r{n}", "j").op("1"))
        assert row is not None and row.data == {**said, "since": NOW.isoformat()}
        (card,) = db.read(lambda tx, n=n: outbox.find(tx, run_id=f"r{n}"))
        assert card["card"] == {"text": "Extend? " * 20} and card["done"] == NOW

    def stored(tx: Transaction) -> list[int]:
        tx.cursor.execute("select length(data) from op order by run")
        return [got[0] for got in tx.cursor.fetchall()]

    sizes = db.read(stored)
    assert sizes[0] > 90 and set(sizes[1:]) == {17}


def test_a_shared_text_that_was_taken_back_is_kept_again(db: Database) -> None:
    data = {"question": "Is this the longest question that anybody has ever asked?"}

    def put(tx: Transaction, run_id: str) -> None:
        a_run(tx, run_id)
        ops.put_ops(tx, run_id, [an_op("1", state="waiting", data={**data, "since": NOW.isoformat()})])

    def undone(tx: Transaction) -> None:
        tx.savepoint()
        put(tx, "r2")
        tx.rollback_to()

    db.write(put, "r1")
    db.write(undone)
    db.write(put, "r3")
    fresh = Database(db.url)
    row = fresh.read(lambda tx: ops.StoredRows(tx, "r3", "j").op("1"))
    fresh.close()
    assert row is not None and row.data["question"] == data["question"]


def test_a_run_taken_back_gives_its_number_to_nobody_who_remembers_it(db: Database) -> None:
    def write(tx: Transaction) -> None:
        tx.savepoint()
        a_run(tx, "gone")
        tx.rollback_to()
        a_run(tx, "here")
        assert runs.key(tx, "gone") == 0 and runs.key(tx, "here") > 0

    db.write(write)


def test_instances_of_a_place_are_found_by_it_alone(db: Database) -> None:
    def write(tx: Transaction) -> None:
        a_run(tx)
        rows = [an_op("5"), an_op("6")]
        for path in ("5[0].1", "5[10].1", "5[0].2", "55[0].1"):
            rows.append(an_op(path, path.rpartition(".")[0]))
            rows[-1].place = re.sub(r"\[\d+\]", "[]", path)
        ops.put_ops(tx, "r1", rows)

    db.write(write)

    def paths(*places: str) -> list[str]:
        return sorted(r.path for r in db.read(lambda tx: ops.StoredRows(tx, "r1", "j").instances(places)))

    assert paths("5[].1") == ["5[0].1", "5[10].1"]
    assert paths("6", "5[].2", "7") == ["5[0].2", "6"]


@pytest.mark.parametrize("number", [1, 35, 36, 10**9])
def test_a_token_names_its_card_and_no_other(number: int) -> None:
    made = tap_token("secret", number)
    assert tapped("secret", made) == number
    assert tapped("other", made) is None
    assert tapped("secret", made[:-1] + ("A" if made[-1] != "A" else "B")) is None
    for odd in ("", ".", "1", f"{made}x", "!.x", "1" * 40, made.replace(".", "")):
        assert tapped("secret", odd) is None


def test_what_facts_of_one_run_change_in_one_transaction_each_finds_as_it_stands(db: Database) -> None:
    item = {"title": "A long element of a map", "text": "x" * 20_000}

    def write(tx: Transaction) -> None:
        a_run(tx)
        ops.put_regions(tx, "r1", [RegionRow(path="2[0]", owner="2", opened=NOW, item=item, new=True)])
        run = runs.lock(tx, "r1")
        assert run is not None and run.names["big"] == 2**60
        for n in (1, 2, 3):
            rows = ops.StoredRows(tx, "r1", "j")
            region, run = rows.region("2[0]"), runs.lock(tx, "r1")
            assert region is not None and run is not None
            assert (region.item, region.hot, run.rev, run.names["bad"]) == (item, n - 1, n - 1, ErrorValue("x"))
            region.hot, run.rev = n, n
            ops.put_regions(tx, "r1", [region])
            runs.put(tx, run)

    def again(tx: Transaction) -> None:
        region = ops.StoredRows(tx, "r1", "j").region("2[0]")
        assert region is not None and (region.item, region.hot) == (item, 3)
        region.hot = 4
        ops.put_regions(tx, "r1", [region])  # read, not written, by this transaction
        region = ops.StoredRows(tx, "r1", "j").region("2[0]")
        assert region is not None and (region.item, region.hot) == (item, 4)

    db.write(write)
    db.write(again)
    run = db.read(runs.get, "r1")
    assert run is not None and (run.rev, run.names["big"], run.customer) == (3, 2**60, {"id": "u"})


@pytest.mark.parametrize("value", ["half \ud83d", {"\udc00": ["\0"]}, 2**70, [2**70, "\ud83d", "é"]])
def test_what_no_encoding_has_is_kept_all_the_same_and_comes_back(db: Database, value: object) -> None:
    answer = {"run": "r1", "path": "1", "attempt": 1}
    db.write(a_run)
    db.write(lambda tx: work.add_elements(tx, answer, [(0, value)]))
    assert db.read(work.elements, answer) == {0: value}
