"""What starts saved scripts, as rows: found by stream, due by the clock, each event once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.domain.ids import digest
from bot.domain.record import RunRow
from store import runs, scripts, triggers
from store.dialect import Statement, Transaction
from store.transaction import Database, upgrade

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def arm(db: Database, script: str, *entries: tuple[str | None, datetime | None]) -> None:
    db.write(triggers.arm, script, [({"n": n}, stream, due) for n, (stream, due) in enumerate(entries, 1)])


def test_triggers_are_found_by_stream_or_command_and_arming_again_puts_them_in_place_of_the_old(db: Database) -> None:
    arm(db, "a", ("web:tap", None), ("command:book", None))
    arm(db, "b", ("web:tap", None))
    assert [s for s, _ in db.read(triggers.armed, "web:tap", None)] == ["a", "b"]
    assert db.read(triggers.armed, "web:message", "command:book") == [("a", {"n": 2})]
    arm(db, "a", ("shop.orders", None))
    assert db.read(triggers.armed, "web:tap", "command:book") == [("b", {"n": 1})]
    arm(db, "a")
    assert db.read(triggers.of_script, "a") == []


def test_a_moment_is_taken_by_one(db: Database) -> None:
    arm(db, "a", (None, NOW), (None, LATER))
    assert db.read(triggers.next_due) == NOW
    assert db.read(triggers.due, NOW) == [("a", 1, {"n": 1}, NOW)]
    assert db.write(triggers.move, "a", 1, NOW, LATER + timedelta(hours=1))
    assert not db.write(triggers.move, "a", 1, NOW, LATER), "somebody else was first"
    assert (db.read(triggers.next_due), db.read(triggers.due, NOW)) == (LATER, [])


def start(db: Database, event: str, **more: object) -> bool:
    row: dict[str, object] = {"script": "a", "event": event, "state": "live", "key": "k", "job": "j", "at": NOW}
    return db.write(lambda tx: triggers.add(tx, **{**row, **more}))  # type: ignore[arg-type]


def test_an_event_starts_a_script_once(db: Database) -> None:
    assert start(db, "s/1") and not start(db, "s/1")
    assert start(db, "s/1", script="b")
    assert db.read(triggers.known, "a", "s/1") and not db.read(triggers.known, "a", "s/2")


def test_open_starts_of_a_key_are_those_whose_run_has_not_ended(db: Database) -> None:
    for run, ended in (("r1", None), ("r2", NOW)):
        db.write(runs.add, RunRow(id=run, job="j", owner="o", plan=digest("p"), created=NOW, ended=ended))
        start(db, f"s/{run}", run=run)
    start(db, "s/3", state="queued", at=LATER, names={"tap": {"text": "book"}}, chain=2)
    start(db, "s/4", state="skipped", why="another runs")
    start(db, "s/5", key="other")
    assert db.read(triggers.open_of, "a", "k") == [("r1", "live"), (None, "queued")]
    queued = db.read(triggers.next_queued, "a", "k")
    assert queued is not None and (queued["event"], queued["names"], queued["chain"]) == (
        "s/3",
        {"tap": {"text": "book"}},
        2,
    )
    db.write(lambda tx: triggers.settle(tx, queued, "live", run="r3", version=4, why="`/book`"))
    found = db.read(triggers.of_run, "r3")
    assert found is not None and (found["state"], found["version"], found["why"]) == ("live", 4, "`/book`")
    assert db.read(triggers.next_queued, "a", "k") is None
    assert [row["event"] for row in db.read(triggers.latest, "a", 2)] == ["s/3", "s/r2"]


def test_a_job_is_found_by_its_conversation(db: Database) -> None:
    db.write(lambda tx: runs.add_job(tx, "j", "J", "line:U1", NOW))
    assert (db.read(triggers.job_of, "line:U1"), db.read(triggers.job_of, "line:U2")) == ("j", None)


def test_how_a_script_stands_is_kept_beside_its_versions(db: Database) -> None:
    assert db.read(scripts.stands, "a") == (False, None)
    db.write(scripts.tell, "a", "nobody saved it")
    db.write(scripts.pause, "a", True)
    assert db.read(scripts.stands, "a") == (True, "nobody saved it")
    db.write(scripts.tell, "a", None)
    db.write(scripts.pause, "a", False)
    assert db.read(scripts.stands, "a") == (False, None)


def test_versions_are_listed_and_the_current_one_of_each_name(db: Database) -> None:
    for name, plan in (("b", "p1"), ("b", "p2"), ("a", "p3")):
        db.write(lambda tx, name=name, plan=plan: scripts.save(tx, name, plan, "o", "j", NOW, head={"calls": [plan]}))
    assert [(s["name"], s["version"], s["head"]) for s in db.read(scripts.current)] == [
        ("a", 1, {"calls": ["p3"]}),
        ("b", 2, {"calls": ["p2"]}),
    ]
    assert [v["plan"] for v in db.read(scripts.versions, "b")] == ["p2", "p1"]
    old = db.read(scripts.get, "b", 1)
    assert old is not None and old["plan"] == "p1" and db.read(scripts.get, "b", 3) is None


def test_what_is_looked_up_at_every_event_and_every_sweep_is_found_by_an_index(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path}/rows.db")
    db = Database(f"sqlite:///{tmp_path}/rows.db")

    def steps(tx: Transaction, statement: Statement, given: dict[str, object]) -> str:
        tx.cursor.execute(f"explain query plan {statement.text(tx)}", {"ws": tx.ws, **given})
        return " ".join(str(step[3]) for step in tx.cursor.fetchall())

    assert db.read(steps, triggers._ARMED, {"a": "s", "z": None}).count("PRIMARY KEY (ws=? AND stream=?)") == 2
    assert "INDEX ix_trigger_due (ws=? AND due<?)" in db.read(steps, triggers._DUE, {"now": 1, "most": 5})
    assert "INDEX ix_trigger_due" in db.read(steps, triggers._NEXT, {})
    assert "INDEX ix_start_open (ws=? AND script=? AND key=?)" in db.read(
        steps, triggers._OPEN, {"script": "a", "key": "k"}
    )
    db.close()


def test_a_run_that_ends_in_this_very_transaction_is_open_no_more(db: Database) -> None:
    def write(tx: Transaction) -> tuple[list[str | None], list[str | None]]:
        row = RunRow(id="r", job="j", owner="o", plan=digest("p"), created=NOW)
        runs.add(tx, row)
        triggers.add(tx, script="s", event="e", state="live", key="k", job="j", at=NOW, run="r", version=1, why="x")
        before = [run for run, _ in triggers.open_of(tx, "s", "k")]
        row.ended, row.state = NOW, "done"
        runs.put(tx, row)
        return before, [run for run, _ in triggers.open_of(tx, "s", "k")]

    assert db.write(write) == (["r"], [])
