"""What agents leave: answers, costs, how far they are, proposals and wishes, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.domain.cost import Usage
from bot.domain.ids import digest
from bot.domain.record import RunRow
from bot.domain.values import ErrorValue
from store import proposals, runs, wishes, work
from store.proposals import Proposal
from store.transaction import Database
from store.wishes import Wish
from store.work import Progress

NOW = datetime(2026, 3, 2, 8, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
EACH: dict[str, Any] = {"run": "r1", "path": "2", "attempt": 1}
WISH = Wish(id="p_1", job="j", by="ana@acme.de", author="agent:claude", text="ship 🚀 it", at=NOW, holder="one")
PROPOSAL = Proposal(
    id="p_1", job="j", author="agent:claude", owner="ana@acme.de", text="- say\n  > é 🚀\n", at=NOW,
    wish="ship it", inputs={"big": 2**60, "none": None, "bad": ErrorValue("x")},
)  # fmt: skip


@pytest.fixture(autouse=True)
def run(db: Database) -> None:
    db.write(lambda tx: runs.add(tx, RunRow(id="r1", job="j", owner="ana@acme.de", plan=digest("p"), created=NOW)))


def test_an_answer_saved_twice_stays_as_it_was_first_and_another_attempt_has_none(db: Database) -> None:
    many = [(at, {"n": at} if at % 2 else ErrorValue("no")) for at in range(2_000)]
    db.write(lambda tx: work.add_elements(tx, EACH, many))
    db.write(lambda tx: work.add_elements(tx, EACH, [(0, "again"), (2_000, "new")]))
    assert db.read(work.elements, EACH) == dict(many) | {2_000: "new"}
    assert db.read(work.elements, EACH | {"attempt": 2}) == {}


def test_costs_add_up_by_step_and_by_run_and_hold_more_than_32_bits(db: Database) -> None:
    usage = Usage(calls=1, input=3_000_000_000, output=2, written=3, cached=4, usd=5_000_000_000, unpriced=1)
    for path in ("2", "2", "3[0].1"):
        db.write(lambda tx, path=path: work.spend(tx, "r1", path, usage))
    assert db.read(work.spent_by, "r1") == {"2": usage + usage, "3[0].1": usage}
    assert db.read(work.total_spent, "r1") == 15_000_000_000
    assert db.read(work.total_spent, "r2") == 0


def test_how_far_it_is_stands_until_it_is_over(db: Database) -> None:
    for done in (1, 2):
        way = Progress(done=done, total=9, failed=1, said=f"{done} of 9", since=NOW, at=LATER)
        db.write(lambda tx, way=way: work.put_progress(tx, "r1", "2", way))
    db.write(lambda tx: work.add_elements(tx, EACH, [(0, "x")]))
    found = db.read(work.progress_of, "r1")["2"]
    assert (found.done, found.said, found.since, found.at) == (2, "2 of 9", NOW, LATER)
    db.write(lambda tx: work.over(tx, EACH))
    assert db.read(work.progress_of, "r1") == {} and db.read(work.elements, EACH) == {}


def test_a_proposal_comes_back_as_it_was_and_is_decided_once(db: Database) -> None:
    assert db.write(lambda tx: proposals.put(tx, PROPOSAL)) and not db.write(lambda tx: proposals.put(tx, PROPOSAL))
    assert db.read(proposals.get, "p_1") == PROPOSAL
    assert db.write(lambda tx: proposals.rewrite(tx, "p_1", "- say\n  > other\n"))
    assert db.write(lambda tx: proposals.decide(tx, "p_1", "run", "bo@acme.de", LATER, "r_2"))
    assert not db.write(lambda tx: proposals.decide(tx, "p_1", "discarded", "ana@acme.de", LATER))
    assert not db.write(lambda tx: proposals.rewrite(tx, "p_1", "- say\n  > late\n"))
    (found,) = db.read(proposals.of_job, "j")
    assert (found.state, found.by, found.run, found.ended) == ("run", "bo@acme.de", "r_2", LATER)
    assert found.text == "- say\n  > other\n" and db.read(proposals.of_job, "elsewhere") == []


def test_a_wish_is_taken_over_by_one_process_and_answered_once(db: Database) -> None:
    assert db.write(lambda tx: wishes.put(tx, WISH)) and not db.write(lambda tx: wishes.put(tx, WISH))
    assert db.read(wishes.get, "p_1") == WISH and db.read(wishes.in_state, "open") == [WISH]
    assert db.write(lambda tx: wishes.take(tx, "p_1", "one", "two"))
    assert not db.write(lambda tx: wishes.take(tx, "p_1", "one", "three"))
    assert db.write(lambda tx: wishes.end(tx, "p_1", "no", LATER, failed=True, state="said"))
    assert not db.write(lambda tx: wishes.end(tx, "p_1", "yes", LATER, failed=False, state="said"))
    assert not db.write(lambda tx: wishes.take(tx, "p_1", "two", "three"))
    db.write(lambda tx: wishes.stands(tx, "p_1", "C1/17"))
    db.write(lambda tx: wishes.edited(tx, "p_1", "bo@acme.de"))
    db.write(lambda tx: wishes.shown(tx, "p_1"))
    (found,) = db.read(wishes.of_job, "j")
    assert (found.said, found.failed, found.state, found.ended) == ("no", True, "done", LATER)
    assert (found.ref, found.editor, found.holder) == ("C1/17", "bo@acme.de", "two")
