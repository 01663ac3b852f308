"""Every edit, through one door: where it works, and that one which cannot stand changes nothing."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bot.domain.catalog import Policy
from bot.engine.edits import EDITS
from tests.engine.rows import ANA, BO, JONAS, WORLD, Drive, always

SCRIPT: list[dict[str, Any]] = [
    {"op": "ask", "id": "done", "to": "@jonas", "question": "Ready?", "choices": ["yes", "no"], "within": "1d"},
    {"op": "ask", "id": "open", "to": "@ana", "question": "Go?", "choices": ["yes", "no"], "within": "1d"},
    {"op": "ask", "id": "missed", "to": "@jonas", "question": "Early?", "choices": ["yes", "no"], "within": "10m",
     "onMiss": [{"op": "ask", "id": "branch", "to": "@ana", "question": "Then?", "within": "2d"}]},
    {"op": "write", "id": "running", "params": {}},
    {"op": "write", "id": "later", "params": {"x": "$open"}},
    {"op": "say", "id": "last", "body": "bye", "after": "later?"},
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`good` is an edit of `op` that works, `states` what it leaves; `bad` are ops that it is refused for, with why."""

    op: str
    good: Any
    state: tuple[str, str]
    bad: tuple[tuple[str, Any, str], ...]
    also: bool = False
    """An addressee may do it too."""


CASES: dict[str, Case] = {
    "to": Case("open", "jonas@acme.de", ("open", "waiting"),
               (("done", BO, "moved on"), ("running", BO, "moved on"), ("last", BO, "asks nobody"), ("open", "nobody@x.de", "is nobody here")),
               also=True),
    "within": Case("open", "3d", ("open", "waiting"),
                   (("done", "3d", "moved on"), ("open", "5m", "over already"), ("open", "500d", "400 days"), ("later", "3d", "no window")),
                   also=True),
    "until": Case("open", "Fri 17:00", ("open", "waiting"), (("done", "Fri 17:00", "moved on"), ("open", "2020-01-01", "past")), also=True),
    "skip": Case("later", True, ("later", "skipped"), (("done", True, "moved on"), ("running", True, "moved on"))),
    "withdraw": Case("open", True, ("later", "skipped"), (("later", True, "moved on"), ("done", True, "moved on"))),
    "replace": Case("last", {"op": "say", "body": "so long"}, ("last", "planned"),
                    (("open", {"op": "say", "body": "x"}, "moved on"), ("last", {"op": "say", "body": "$never"}, "never"),
                     ("last", [{"op": "say", "body": "a"}, {"op": "say", "body": "b"}], "one op replaces one op"))),
    "remove": Case("last", True, ("last", "cancelled"), (("open", True, "moved on"), ("later", True, "`later`"))),
    "insert": Case("done", [{"op": "say", "body": "hello"}], ("done", "done"),
                   (("done", [{"op": "sai", "body": "x"}], "sai"), ("done", [{"op": "say", "body": "$never"}], "never"))),
    "accept": Case("missed", True, ("missed", "done"), (("open", True, "no late answer"), ("done", True, "moved on"))),
}  # fmt: skip


def stood() -> Drive:
    """A run in every state: one ask done, one open, one missed with a late answer, a call on its way, two planned."""
    drive = Drive(SCRIPT, check=always)
    drive.answer("done", "yes", by=JONAS)
    drive.move(minutes=10)
    drive.move(minutes=5)
    drive.answer("3", "no", by=JONAS)
    return drive


def everything(drive: Drive) -> Any:
    return copy.deepcopy(
        (
            drive.rows.ops,
            drive.rows.regions,
            drive.timers,
            drive.plan,
            drive.edits,
            [c.key for c in drive.cards],
            drive.run.state,
            drive.outcomes,
        )
    )


def edit_of(key: str, op: str, value: Any) -> dict[str, Any]:
    return {"after" if key == "insert" else "op": "3" if op == "missed" else op, key: value}


def test_every_edit_has_its_case() -> None:
    assert {edit.key for edit in EDITS} == CASES.keys()


@pytest.mark.parametrize("key", CASES)
def test_an_edit_works_where_it_should_and_says_who_did_it_and_why(key: str) -> None:
    case, drive = CASES[key], stood()
    drive.edit(by=BO, why="a reason", **edit_of(key, case.op, case.good))
    assert drive.replies[-1].accepted, drive.reply
    assert drive.reply.startswith("Done: ")
    named, state = case.state
    assert drive.state("3" if named == "missed" else named) == state
    entry = drive.edits[-1]
    assert (entry["by"], entry["why"], bool(entry["what"])) == (BO, "a reason", True)


@pytest.mark.parametrize(
    ("key", "op", "value", "why"),
    [(k, *bad) for k, case in CASES.items() for bad in case.bad],
    ids=lambda v: str(v)[:20],
)
def test_a_refused_edit_changes_nothing_and_says_what_is_so(key: str, op: str, value: Any, why: str) -> None:
    drive = stood()
    before = everything(drive)
    drive.edit(by=BO, **edit_of(key, op, value))
    assert not drive.replies[-1].accepted
    assert why in drive.reply
    assert drive.reply.endswith("Nothing changed.")
    assert everything(drive) == before


@pytest.mark.parametrize("key", CASES)
def test_who_did_not_start_the_run_may_edit_only_what_is_put_to_them(key: str) -> None:
    case, drive = CASES[key], stood()
    before = everything(drive)
    drive.edit(by=ANA, **edit_of(key, case.op, case.good))
    assert drive.replies[-1].accepted is case.also
    if not case.also:
        assert drive.reply == "Not done: only Bo, who started the run, can do this. Nothing changed."
        assert everything(drive) == before


@pytest.mark.parametrize("key", CASES)
def test_an_edit_that_names_an_old_revision_is_refused(key: str) -> None:
    from bot.domain.facts import Edited

    case, drive = CASES[key], stood()
    before = everything(drive)
    drive.fact(Edited(at=drive.now, by=BO, edit=edit_of(key, case.op, case.good), rev=99))
    assert "has changed since" in drive.reply
    assert everything(drive) == before


def test_a_hand_over_closes_the_old_card_and_puts_a_new_one() -> None:
    drive = stood()
    drive.edit(op="open", to="jonas@acme.de")
    assert ("2", "handed over to Jonas") in drive.outcomes
    drive.answer("open", "yes", by=ANA)
    assert drive.reply == "This question is for Jonas. Nothing changed."
    drive.answer("open", "yes", by=JONAS)
    assert drive.row("open").by == JONAS


def test_a_card_handed_back_can_be_answered_again() -> None:
    drive = stood()
    drive.edit(op="open", to="jonas@acme.de")
    drive.edit(op="open", to="ana@acme.de")
    drive.answer("open", "yes", by=ANA)
    assert drive.row("open").by == ANA


def test_a_hand_over_moves_no_window_and_an_edited_window_counts_from_its_start() -> None:
    drive = stood()
    due = drive.row("open").due
    drive.edit(op="open", to="jonas@acme.de")
    assert drive.row("open").due == due
    drive.edit(op="open", within="2d")
    assert due is not None
    assert (drive.row("open").due - due).days == 1  # type: ignore[operator]


def test_inserted_ops_stand_where_they_were_inserted_and_keep_every_path() -> None:
    drive = stood()
    drive.edit(after="later", insert=[{"op": "say", "id": "one", "body": "1"}, {"op": "say", "body": "2"}])
    drive.answer("open", "yes")
    drive.returned("running", 1)
    drive.returned("later", 1)
    assert [p for p in drive.started if p.startswith(("5", "6"))] == ["5", "5+1", "5+2", "6"]


def test_an_insert_in_a_region_that_has_not_opened_is_there_when_it_opens() -> None:
    drive = Drive(
        [
            {"op": "ask", "id": "go", "to": "@ana", "question": "Go?", "choices": ["yes", "no"]},
            {"op": "core.if", "cond": "go == 'yes'", "then": [{"op": "say", "body": "a"}]},
        ],
        check=always,
    )
    drive.edit(after="2.then.1", insert=[{"op": "say", "body": "b"}])
    drive.answer("go", "yes")
    assert drive.said("say") == [("job", "a"), ("job", "b")]


def test_what_was_skipped_or_withdrawn_by_hand_stays_so_when_a_failed_run_is_taken_up_again() -> None:
    drive = stood()
    drive.edit(op="later", skip=True)
    drive.edit(op="open", withdraw=True)
    drive.returned("running", error="no")
    assert drive.run.state == "failed"
    drive.edit(run="retry")
    assert (drive.state("later"), drive.state("2"), drive.state("running")) == ("skipped", "cancelled", "running")


def test_a_late_answer_is_not_accepted_once_the_branch_has_done_something() -> None:
    drive = Drive([{**SCRIPT[2], "onMiss": [{"op": "say", "body": "gone"}, SCRIPT[1]]}], check=always)
    drive.move(minutes=15)
    drive.answer("1", "yes", by=JONAS)
    drive.edit(op="1", accept=True)
    assert "the miss branch has done something already" in drive.reply


def test_an_admin_changes_a_run_however_their_address_is_written() -> None:
    drive = stood()
    drive.world = replace(drive.world, policy=replace(drive.world.policy, admins=("Ana@Acme.de",)))
    drive.edit(by=ANA, op="later", skip=True)
    assert drive.reply.startswith("Done: ")
    drive.edit(by=ANA, run="pause")
    assert drive.run.state == "paused"


@pytest.mark.parametrize(
    ("what", "state"),
    [("cancel", "cancelled"), ("pause", "paused"), ("resume", "running"), ("retry", "running"), ("stop", "running")],
)
def test_edits_of_the_run(what: str, state: str) -> None:
    drive = stood()
    drive.edit(by=ANA, run=what)
    assert drive.reply == "Not done: only Bo, who started the run, can do this. Nothing changed."
    drive.edit(by=BO, run=what)
    if what == "cancel":
        drive.returned("running", 1)
    assert drive.run.state == state
    assert drive.replies[-1].accepted is (what in ("cancel", "pause"))


# --- replanning ----------------------------------------------------------------------------------------------------------
REPLAN: list[dict[str, Any]] = [
    {"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "onMiss": "replan"},
    {"op": "say", "body": "on", "after": "e?"},
]


def test_a_replan_goes_on_with_the_plan_as_it_was_edited() -> None:
    drive = Drive(REPLAN, check=always)
    drive.move(hours=1)
    drive.edit(by="agent:claude", after="1", insert=[{"op": "say", "body": "a nudge"}])
    drive.returned("e")
    assert ([t for _, t in drive.said("say")], drive.run.state) == (["a nudge", "on"], "done")


def test_refused_edits_go_back_twice_with_the_reasons_then_the_owner_is_asked() -> None:
    drive = Drive(REPLAN, check=always)
    drive.move(hours=1)
    for _ in range(3):
        drive.returned("e", refused=["`nevr` is no op"])
    assert drive.said("doubt")[0][0] == BO
    drive.answer("e", "go on", by=ANA)
    assert drive.reply == "This question is for Bo. Nothing changed."
    drive.answer("e", "go on", by=BO)
    assert drive.run.state == "done"


def test_a_missed_replan_that_is_taken_up_again_may_be_replanned_again() -> None:
    drive = Drive(REPLAN, check=always)
    drive.move(hours=1)
    drive.returned("e", error="no agent")
    drive.answer("e", "stop", by=BO)
    assert drive.run.state == "failed"
    drive.edit(run="retry")
    assert drive.state("e") == "waiting"
    drive.move(hours=1)
    drive.returned("e")
    assert drive.run.state == "done"


def test_ops_are_inserted_at_one_place_until_none_fits_and_then_it_says_so() -> None:
    drive = Drive([SCRIPT[1], SCRIPT[1] | {"id": "other"}], check=always)
    for _ in range(60):
        drive.edit(after="1", insert=[{"op": "say", "body": "x"}])
    ranks = [row.rank for row in drive.rows.in_region("")]
    assert len(set(ranks)) == len(ranks)
    assert "no further op fits" in drive.reply


def gated() -> Drive:
    """A write of Bo's that waits for an approval of the leads, Ana and Jonas."""
    world = replace(WORLD, policy=Policy(approve={"write": "role:leads"}))
    return Drive([{"op": "write", "id": "w", "params": {"x": 1}}], check=always, world=world)


def test_an_approval_is_handed_over_to_whoever_may_decide_it_and_to_nobody_else() -> None:
    drive = gated()
    drive.edit(by=ANA, op="w", to=BO)
    assert "Bo may not approve this; Ana or Jonas may" in drive.reply
    drive.edit(by=ANA, op="w", to=JONAS)
    assert ("1", "handed over to Jonas") in drive.outcomes
    drive.answer("w", "approve", by=ANA)
    assert drive.state("w") == "gated" and "is for Jonas" in drive.reply
    drive.edit(by=BO, op="w", to="role:leads")
    drive.answer("w", "approve", by=ANA)
    assert drive.state("w") == "running"


def test_an_approval_gets_more_time_from_its_start_and_is_declined_at_the_new_deadline() -> None:
    drive = gated()
    due = drive.row("w").due
    drive.edit(by=ANA, op="w", within="5d")
    assert due is not None and (drive.row("w").due - due).days == 2  # type: ignore[operator]
    drive.move(days=4)
    assert drive.state("w") == "gated"
    drive.move(days=1)
    assert drive.state("w") == "failed"
    drive.edit(by=BO, op="w", within="9d")
    assert "moved on" in drive.reply


def test_a_doubt_is_handed_to_somebody_who_knows() -> None:
    drive = Drive([{"op": "write", "id": "w", "params": {"x": 1}}], check=always)
    drive.returned("w", error="its answer was lost", lost=True)
    assert drive.state("w") == "uncertain"
    drive.edit(by=BO, op="w", to="jonas@acme.de")
    drive.answer("w", "happened", by=JONAS)
    assert drive.state("w") == "done"
