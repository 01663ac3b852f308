"""Who people are on platforms, and what stands there, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.domain.changes import Delivery
from bot.domain.record import RunRow
from store import outbox, people, runs, status
from store.dialect import Transaction
from store.status import StatusRow
from store.transaction import Database

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_of_several_identities_the_latest_used_that_is_not_shut_counts(db: Database) -> None:
    def made(tx: Transaction) -> None:
        people.put(tx, "ana@acme.de", "Ana")
        people.link(tx, "ana@acme.de", "slack", "U1")
        people.link(tx, "ana@acme.de", "slack", "U2")
        people.link(tx, "ana@acme.de", "telegram", "7")
        people.met(tx, "slack", "U1", AT)
        people.met(tx, "slack", "U2", AT + timedelta(hours=1))
        people.met(tx, "telegram", "7", AT + timedelta(minutes=1))

    db.write(made)
    (ana,) = db.read(people.people)
    assert (dict(ana.identities), ana.latest, ana.prefers) == ({"slack": "U2", "telegram": "7"}, "slack", None)
    db.write(people.shut, "slack", "U2", "deactivated")
    assert db.write(people.prefer, "ana@acme.de", "telegram")
    (ana,) = db.read(people.people)
    assert (ana.identities["slack"], ana.latest, ana.prefers) == ("U1", "telegram", "telegram")
    db.write(people.met, "slack", "U2", AT + timedelta(hours=2))
    assert db.read(people.people)[0].latest == "slack"
    assert not db.write(people.prefer, "nobody@acme.de", "slack")


def test_where_somebody_is_written_to_is_kept_until_they_are_somebody_else(db: Database) -> None:
    db.write(people.link, "ana@acme.de", "slack", "U1")
    db.write(people.reached_at, "slack", "U1", "slack:D1")
    found = db.read(people.identity_of, "slack", "U1")
    assert found is not None and (found["email"], found["conversation"]) == ("ana@acme.de", "slack:D1")
    assert db.read(people.identity_of, "slack", "U9") is None


def test_a_link_counts_once_and_for_what_it_was_made(db: Database) -> None:
    db.write(people.add_login, "proof", "ana@acme.de", AT + timedelta(minutes=15), "link")
    assert db.write(people.use_login, "proof", AT) is None
    assert db.write(people.use_login, "proof", AT, "link") == "ana@acme.de"
    assert db.write(people.use_login, "proof", AT, "link") is None


def _run(tx: Transaction, ident: str, job: str) -> None:
    runs.add(tx, RunRow(id=ident, job=job, owner="bo@acme.de", plan="0" * 32, created=AT))


def test_a_live_message_is_behind_until_it_shows_the_latest_state(db: Database) -> None:
    def made(tx: Transaction) -> None:
        runs.add_job(tx, "s", "S", "slack:C1/1", AT)
        runs.add_job(tx, "w", "W", "web:w", AT)
        _run(tx, "one", "s")
        _run(tx, "other", "w")

    db.write(made)
    assert db.read(status.behind, "slack") == ["one"] and db.read(status.behind, "telegram") == []
    run = db.read(runs.get, "one")
    assert run is not None
    row = StatusRow(channel="slack", conversation="slack:C1/1", ref="2", said="x", rev=run.rev, at=AT)
    db.write(status.put, "one", row)
    assert db.read(status.behind, "slack") == [] and db.read(status.get, "one") == row


def test_what_a_platform_shows_is_found_by_its_own_name_for_it(db: Database) -> None:
    def made(tx: Transaction) -> None:
        _run(tx, "one", "s")
        card = Delivery(path="1", attempt=1, kind="card", to="ana@acme.de", card={"text": "?"}, at=AT, opens=True)
        outbox.deliver(tx, "one", [card], lambda _: False)
        (row,) = outbox.queued(tx)
        outbox.mark_done(tx, row["seq"], AT, ref="17.1", channel="slack", conversation="slack:D1")

    db.write(made)
    found = db.read(outbox.by_ref, "slack:D1", "17.1")
    assert found is not None and found["to"] == "ana@acme.de"
    assert db.read(outbox.by_ref, "slack:D2", "17.1") is None
    assert db.read(outbox.stale_of, "slack") == []
