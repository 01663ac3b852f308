"""What each fact does, one sentence a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.domain.catalog import Policy, Workspace
from tests.engine.rows import ANA, BO, JONAS, WORLD, Drive, always

ASK: dict[str, Any] = {"op": "ask", "to": "@ana", "question": "Go?", "choices": ["yes", "no"], "within": "1h"}
BROKEN = RuntimeError("it broke")


def ask(ident: str, **more: Any) -> dict[str, Any]:
    return {**ASK, "id": ident, **more}


def let(be: str, ident: str | None = None, **more: Any) -> dict[str, Any]:
    return {"op": "core.let", "be": be, **({"id": ident} if ident else {}), **more}


def tool(name: str = "write", ident: str | None = None, **more: Any) -> dict[str, Any]:
    return {"op": name, "params": {}, **({"id": ident} if ident else {}), **more}


def drive(*ops: Any, **how: Any) -> Drive:
    script = ops[0] if len(ops) == 1 and isinstance(ops[0], (str, dict)) and "program" in ops[0] else list(ops)
    return Drive(script, check=always, **how)


def gated(op: str = "pay", who: str | None = "role:leads", **how: Any) -> Any:
    return replace(WORLD, policy=Policy(approve={op: who}, **how))


# --- order ---------------------------------------------------------------------------------------------------------------
def test_ops_start_in_written_order_and_an_effect_holds_those_below_it() -> None:
    d = drive(tool("write"), tool("pay"), {"op": "say", "body": "after"})
    assert d.started == ["1"]
    d.returned("1", 1)
    assert d.started == ["1", "2"]
    d.returned("2", 1)
    assert d.started == ["1", "2", "3"]


def test_a_wait_holds_only_what_needs_it() -> None:
    d = drive(ask("go"), {"op": "say", "body": "meanwhile"}, {"op": "say", "body": "it is $go"})
    assert d.states() == {"1": "waiting", "2": "done", "3": "planned"}
    d.answer("go", "yes")
    assert d.said("say")[-1] == ("job", "it is yes")


def test_a_region_op_with_an_active_op_inside_holds_those_below_it_and_one_that_waits_does_not() -> None:
    d = drive({"op": "core.if", "cond": "true", "then": [tool("write"), ask("go")]}, {"op": "say", "body": "next"})
    assert d.state("2") == "planned"
    d.returned("1.then.1", 1)
    assert (d.state("1.then.2"), d.state("2")) == ("waiting", "done")


def test_a_pause_between_attempts_is_active() -> None:
    d = drive(tool("write", retry={"max": 1, "backoff": "2s"}), {"op": "say", "body": "next"})
    d.returned("1", error="busy")
    assert d.state("2") == "planned"
    d.move(seconds=2)
    d.returned("1", 1)
    assert d.state("2") == "done"


def test_what_needs_a_value_that_will_not_come_is_skipped_and_says_why() -> None:
    d = drive(
        ask("go", onMiss=[]), {"op": "say", "body": "$go"}, {"op": "say", "body": "still"}, let("ops.go.miss", "why")
    )
    d.move(hours=1)
    assert d.row("2").error == "skipped: go missed"
    assert d.state("2") == "skipped"
    assert d.value("why") == "late"


def test_a_missed_op_has_ended_for_those_outside_when_its_branch_has_closed() -> None:
    d = drive(ask("go", onMiss=[ask("inner", to="@jonas")]), {"op": "say", "body": "x", "after": "go?"})
    d.move(hours=1)
    assert d.state("2") == "planned"
    d.answer("inner", "yes", by=JONAS)
    assert d.state("2") == "done"


def test_the_binding_of_a_branch_counts_below() -> None:
    d = drive(ask("go", onMiss=[let("'late'", "go")]), {"op": "say", "body": "$go"})
    d.move(hours=1)
    assert d.said("say") == [("job", "late")]
    assert d.bound["go"] == "late"


# --- regions -------------------------------------------------------------------------------------------------------------
def test_a_map_begins_the_next_item_when_one_has_closed_and_reads_its_element_then() -> None:
    body = [{**ASK, "question": "take $item"}]
    d = drive({"op": "core.map", "id": "m", "over": ["a", "b", "c"], "maxConcurrency": 2, "body": body})
    assert d.said("card") == [(ANA, "take a"), (ANA, "take b")]
    d.answer("1[1].1", "yes")
    assert d.said("card")[-1] == (ANA, "take c")
    d.answer("1[0].1", "no")
    d.answer("1[2].1", "yes")
    assert d.value("m") == ["no", "yes", "yes"]


@pytest.mark.parametrize(
    ("rule", "state", "value"),
    [("halt", "failed", None), ("continue", "done", [None, 1]), ({"default": 0}, "done", [0, 1])],
)
def test_a_failed_item_does_what_the_map_says(rule: Any, state: str, value: Any) -> None:
    d = drive(
        {"op": "core.map", "id": "m", "over": [1, 2], "onItemError": rule, "body": [tool("write")]},
        returns={"write": lambda path, attempt: BROKEN if path == "1[0].1" else 1},
    )
    assert (d.state("m"), d.value("m")) == (state, value)


def test_a_map_that_halts_withdraws_the_other_items_and_begins_no_more() -> None:
    d = drive({"op": "core.map", "over": [1, 2, 3], "maxConcurrency": 2, "body": [ask("go")]})
    d.move(hours=1)
    assert d.run.state == "failed"
    assert d.states() == {"1": "failed", "1[0].1": "missed", "1[1].1": "cancelled"}


def test_a_halting_map_lets_an_effect_on_its_way_run_to_its_end() -> None:
    d = drive({"op": "core.map", "over": [1, 2], "body": [tool("write", retry={"max": 3, "backoff": "1s"})]})
    d.returned("1[0].1", error="no")
    d.move(seconds=1)
    for _ in range(3):
        d.returned("1[0].1", error="no")
        d.move(seconds=10)
    assert (d.state("1[0].1"), d.state("1[1].1"), d.run.state) == ("failed", "running", "running")
    d.returned("1[1].1", error="too")
    assert (d.state("1[1].1"), d.run.state) == ("failed", "failed")
    assert not d.timers


def test_a_stopped_region_that_halts_a_second_time_counts_once() -> None:
    inner = {"op": "flow.parallel", "branches": {"a": [tool("pay")], "b": [ask("go")]}}
    d = drive({"op": "flow.parallel", "branches": {"left": [inner], "right": [tool("write")]}})
    d.returned("1.right.1", error="no")
    assert d.state("go") == "cancelled"
    d.edit(run="cancel")
    d.returned("1.left.1.a.1", 1)
    assert (d.state("1.left.1.a.1"), d.run.state) == ("done", "cancelled")


def test_the_first_branch_wins_while_the_others_run_out() -> None:
    d = drive({"op": "flow.parallel", "id": "p", "until": 1, "branches": {"a": [let("1")], "b": [tool("write")]}})
    assert d.state("p") == "running"
    d.returned("1.b.1", 5)
    assert d.value("p") == {"a": 1, "b": None}


def test_without_fail_fast_the_branches_end_before_the_parallel_fails() -> None:
    d = drive({"op": "flow.parallel", "failFast": False, "branches": {"a": [tool("write")], "b": [ask("go")]}})
    d.returned("1.a.1", error="no")
    assert d.state("go") == "waiting"
    d.answer("go", "yes")
    assert (d.state("1"), d.run.state) == ("failed", "failed")


def test_rounds_see_the_value_before_and_a_spent_repeat_misses() -> None:
    body = [let("last == null ? 1 : last")]
    d = drive(
        {
            "op": "core.repeat",
            "id": "r",
            "max": 2,
            "until": "false",
            "every": "1m",
            "onMiss": [let("ops.r.miss")],
            "body": [let("1", "n")],
        },
        let("ops.r.state", "s"),
    )
    assert d.state("r") == "waiting"
    d.move(minutes=1)
    assert (d.state("r"), d.value("s"), d.value("1.onMiss.1")) == ("missed", "missed", "spent")
    assert body


# --- failure -------------------------------------------------------------------------------------------------------------
def test_pauses_double_up_to_their_limit() -> None:
    d = drive(tool("write", retry={"max": 3, "backoff": "10s", "maxDelay": "15s"}))
    pauses: list[float] = []
    for _ in range(3):
        d.returned("1", error="busy")
        pauses.append((d.row("1").due - d.now).total_seconds())  # type: ignore[operator]
        d.move(seconds=pauses[-1])
    d.returned("1", error="busy")
    assert pauses == [10, 15, 15]
    assert (d.row("1").attempt, d.run.state, d.run.data["error"]) == (4, "failed", "busy")


@pytest.mark.parametrize(("rule", "value"), [("continue", None), ({"default": 7}, 7)])
def test_a_tolerated_failure_gives_its_value(rule: Any, value: Any) -> None:
    d = drive(tool("write", "w", onError=rule), {"op": "say", "body": "on"}, returns={"write": BROKEN})
    assert (d.state("w"), d.value("w"), d.run.state) == ("failed", value, "done")


def test_an_error_region_sees_the_error_and_binds_again() -> None:
    d = drive(
        tool("write", "w", onError=[let("ops.w.error", "w")]), {"op": "say", "body": "$w"}, returns={"write": BROKEN}
    )
    assert d.said("say") == [("job", "it broke")]


def test_a_failing_region_withdraws_what_waits_and_starts_nothing() -> None:
    d = drive(ask("go"), tool("write"), {"op": "say", "body": "never"})
    d.returned("2", error="no")
    assert d.states() == {"1": "cancelled", "2": "failed", "3": "cancelled"}
    assert ("1", "withdrawn") in d.outcomes
    d.answer("go", "yes")
    assert d.reply == "This question was withdrawn at 09:00. Nothing changed."


def test_the_programs_own_error_region_runs_and_the_run_still_fails() -> None:
    d = drive({"program": [tool("write")], "onError": [{"op": "say", "body": "sorry"}]}, returns={"write": BROKEN})
    assert (d.said("say"), d.run.state) == ([("job", "sorry")], "failed")


def test_a_runs_own_window_fails_its_outermost_region() -> None:
    d = drive({"program": [ask("go")], "within": "30m"})
    d.move(minutes=30)
    assert (d.run.state, d.state("go")) == ("failed", "cancelled")
    assert d.run.data["error"] == "the run's own window (30m) is over"


def test_a_paused_run_starts_nothing_takes_answers_and_lets_windows_go_on() -> None:
    d = drive(ask("go"), ask("other"), {"op": "say", "body": "$go"})
    d.edit(run="pause")
    d.answer("go", "yes")
    d.move(hours=1)
    assert d.states() == {"1": "done", "2": "missed", "3": "cancelled"}


def test_a_resumed_run_starts_what_became_ready_meanwhile() -> None:
    d = drive(ask("go"), {"op": "say", "body": "$go"})
    d.edit(run="pause")
    d.answer("go", "yes")
    assert d.state("2") == "planned"
    d.edit(run="resume")
    assert d.run.state == "done"


# --- asks ----------------------------------------------------------------------------------------------------------------
def test_only_an_addressee_may_answer_and_the_first_answer_settles() -> None:
    d = drive(ask("go", to="role:leads"))
    d.answer("go", "yes", by=BO)
    assert d.reply == "This question is for the leads. Nothing changed."
    d.answer("go", "maybe", by=JONAS)
    assert d.reply == "`maybe` is none of the choices: `yes` or `no`. Nothing changed; the question is still open."
    d.answer("go", "no", by=JONAS)
    d.answer("go", "yes", by=ANA)
    assert d.reply == "Jonas answered `no` at 09:00. Nothing changed."
    assert (d.value("go"), d.row("go").by) == ("no", JONAS)


def test_who_holds_the_role_when_answering_counts() -> None:
    d = drive(ask("go", to="role:leads"))
    d.world = replace(WORLD, roles={"leads": (BO,)})
    d.answer("go", "yes", by=ANA)
    assert d.state("go") == "waiting"
    d.answer("go", "yes", by=BO)
    assert d.state("go") == "done"


@pytest.mark.parametrize(
    ("need", "words", "state", "value"),
    [
        (2, ("yes", "no"), "done", [{"by": ANA, "answer": "yes"}, {"by": JONAS, "answer": "no"}]),
        ("all", ("yes", "no"), "done", [{"by": ANA, "answer": "yes"}, {"by": JONAS, "answer": "no"}]),
        ({"yes": 2, "no": 1}, ("yes", "no"), "done", "no"),
        ({"yes": 2}, ("no", None), "missed", None),
    ],
)
def test_a_quorum(need: Any, words: tuple[Any, Any], state: str, value: Any) -> None:
    d = drive(ask("go", to="role:leads", need=need, onMiss=[]))
    for by, word in zip((ANA, JONAS), words, strict=True):
        if word:
            d.answer("go", word, by=by)
    assert (d.state("go"), d.value("go")) == (state, value)
    if state == "missed":
        assert d.row("go").data["miss"] == "out of reach"


def test_a_person_and_an_agent_make_a_quorum_together() -> None:
    d = drive(ask("go", to=["@ana", "agent"], need="all"))
    d.returned("go", "yes")
    d.answer("go", "no")
    assert [a["by"] for a in d.value("go")] == ["agent", ANA]


def test_an_agent_that_fails_leaves_the_question_to_the_others() -> None:
    d = drive(ask("go", to=["@ana", "agent"]))
    d.returned("go", error="overloaded")
    assert d.state("go") == "waiting"
    d.answer("go", "yes")
    assert d.run.state == "done"


def test_an_agents_failed_attempt_is_retried_with_a_new_call() -> None:
    d = drive(ask("go", to="agent", retry={"max": 1, "backoff": "1s"}))
    d.returned("go", error="overloaded")
    d.move(seconds=1)
    d.returned("go", "yes")
    assert (d.value("go"), d.row("go").attempt) == ("yes", 2)


def test_an_agents_word_off_the_list_is_asked_again_twice_then_fails() -> None:
    d = drive(ask("go", to="agent"))
    for _ in range(3):
        d.returned("go", "perhaps")
    assert d.row("go").error == "`perhaps` is none of the choices `yes` or `no`, asked three times"


def test_a_window_counts_from_the_first_accepted_card() -> None:
    d = drive(ask("go", to="role:leads"), undelivered=frozenset({ANA}))
    assert d.said("notice")[0][1].startswith("The question “Go?” could not be delivered to Ana")
    d.move(minutes=59)
    assert d.state("go") == "waiting"
    d.move(minutes=1)
    assert d.state("go") == "missed"


def test_a_card_that_nobody_accepts_in_a_quarter_of_an_hour_is_a_failure() -> None:
    d = Drive([ask("go")], check=always, accept=False)
    from bot.domain.facts import Accepted

    d.fact(Accepted(at=d.now))
    d.queue.clear()
    d.move(minutes=15)
    assert d.row("go").error == "not delivered to Ana within 15 minutes"


def test_a_late_answer_is_kept_and_its_owner_may_accept_it() -> None:
    d = drive(ask("go", onMiss=[ask("again", to="@jonas")]), {"op": "say", "body": "$go"})
    d.move(minutes=90)
    d.answer("1", "yes")
    assert d.reply == "Thank you. It was missed at 10:00. Your answer came 30m late; it is kept, and Bo is told."
    d.edit(op="go", accept=True)
    assert (d.state("1"), d.state("again"), d.said("say")) == ("done", "cancelled", [("job", "yes")])


def test_what_would_have_been_no_answer_is_not_kept_when_it_comes_late() -> None:
    d = drive(ask("go", onMiss=[ask("again", to="@jonas")]))
    d.move(minutes=90)
    d.answer("1", {})
    assert d.reply == "`{}` is none of the choices: `yes` or `no`. The window is over, too. Nothing changed."
    assert "late" not in d.row("1").data


@pytest.mark.parametrize("given", ["nan", "inf", "-Infinity", "1e999", float("nan")])
def test_a_number_of_a_form_is_a_finite_one(given: Any) -> None:
    form = {"op": "ask", "id": "go", "to": "@ana", "question": "How many?"}
    d = drive({**form, "fields": [{"name": "n", "type": "number", "max": 3}]})
    d.answer("go", {"n": given})
    assert d.state("go") == "waiting"
    assert d.reply.startswith("`n` must be a number; it is `")


def test_reminders_come_at_work_to_those_who_have_not_answered() -> None:
    d = drive(ask("go", to="role:leads", need=2, within="9d", remind=["1d", "5d"]))
    d.answer("go", "yes", by=JONAS)
    d.move(days=8)
    reminders = [(c.to, f"{c.at:%a %H:%M}") for c in d.cards if c.kind == "reminder"]
    assert reminders == [(ANA, "Tue 09:00"), (ANA, "Mon 09:00")]


def test_the_workspaces_reminders_hold_where_the_ask_says_nothing_and_none_where_it_says_no() -> None:
    world = replace(WORLD, workspace=Workspace(reminders=("10m",)))
    d = drive(ask("go"), ask("quiet", remind=False), world=world)
    d.move(minutes=30)
    assert [c.path for c in d.cards if c.kind == "reminder"] == ["1"]


def test_a_window_that_cannot_be_read_fails_the_ask_and_sends_no_card() -> None:
    d = drive(let("'soon'", "when"), ask("go", within="$when"))
    assert d.row("go").error is not None
    assert "`soon` is no duration" in d.row("go").error
    assert d.cards == []


# --- evidence ------------------------------------------------------------------------------------------------------------
def test_where_passes_over_what_is_not_for_it_and_says_how_many() -> None:
    d = drive({"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "where": "event.n == 2"})
    d.event("mail", {"n": 1})
    d.event("mail", {"m": 1})
    assert sum(d.row("e").data["passed"].values()) == 2
    d.event("mail", {"n": 2})
    assert d.value("e")["event"] == {"n": 2}


def test_evidence_that_beats_its_expectation_is_not_lost() -> None:
    d = drive(ask("go"), {"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "after": "go"})
    d.event("mail", {"n": 1})
    d.move(minutes=1)
    d.answer("go", "yes")
    assert d.state("e") == "done"


def test_early_disagreement_is_passed_over_and_later_disagreement_misses_at_once() -> None:
    d = drive(
        ask("go"),
        {"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "after": "go", "check": "is it?", "onMiss": []},
    )
    d.event("mail", {"n": 1})
    d.move(minutes=1)
    d.answer("go", "yes")
    d.returned("e", {"verdict": "disagrees", "reason": "no"})
    assert d.state("e") == "waiting"
    d.event("mail", {"n": 2})
    d.returned("e", {"verdict": "disagrees", "reason": "no"})
    assert (d.state("e"), d.row("e").data["miss"], d.row("go").data["claim"]) == ("missed", "disagreed", "contradicted")


def test_events_before_the_judge_are_taken_one_at_a_time_and_a_deadline_waits_for_the_verdict() -> None:
    d = drive({"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "check": "is it?", "onMiss": []})
    d.event("mail", {"n": 1})
    d.event("mail", {"n": 2})
    assert len(d.calls) == 1
    d.returned("e", {"verdict": "unclear", "reason": None})
    d.move(hours=1)
    assert d.state("e") == "waiting"
    d.returned("e", {"verdict": "agrees", "reason": "yes"})
    assert d.value("e")["event"] == {"n": 2}


def test_an_event_at_the_deadline_is_too_late() -> None:
    d = drive({"op": "expect", "id": "e", "evidence": "mail", "within": "1h", "onMiss": []})
    d.now = d.row("e").due  # type: ignore[assignment]
    d.event("mail")
    assert d.state("e") == "waiting"
    d.move()
    assert (d.state("e"), d.row("e").ended) == ("missed", d.now)


def test_a_clock_strikes_at_its_moment_and_one_that_is_past_says_so() -> None:
    d = drive({"op": "expect", "id": "c", "evidence": "clock", "in": "2h"})
    d.move(hours=2)
    assert d.state("c") == "done"
    d = drive({"op": "expect", "id": "c", "evidence": "clock", "at": "2026-03-01"})
    assert (d.state("c"), d.row("c").data["reason"]) == ("done", "the moment was past when it started")


# --- approvals and doubts ------------------------------------------------------------------------------------------------
def test_a_gated_op_asks_others_than_its_owner_and_shows_what_it_would_send() -> None:
    d = drive(let("2", "n"), {"op": "pay", "id": "p", "params": {"sum": "$n"}}, world=gated(who=None))
    assert d.said("approval") == [(ANA, "sum: 2"), (JONAS, "sum: 2")]
    d.answer("p", "approve", by=BO)
    assert d.reply.startswith("You started this run, so your word does not count here.")
    d.answer("p", "approve")
    assert d.returned("p", 1) and d.state("p") == "done"


def test_a_decline_needs_a_reason_and_fails_the_op_with_it() -> None:
    d = drive(tool("pay", "p"), world=gated())
    d.answer("p", "decline")
    assert d.state("p") == "gated"
    d.answer("p", "decline", reason="over the limit")
    assert d.row("p").error == "declined by Ana: over the limit"


def test_silence_declines() -> None:
    d = drive(tool("pay", "p"), world=gated())
    d.move(days=3)
    assert d.row("p").error == "declined: no answer within 3d"


def test_an_approval_holds_for_every_attempt_of_the_same_call() -> None:
    d = drive(tool("pay", "p", retry={"max": 1, "backoff": "1s"}), world=gated())
    d.answer("p", "approve")
    d.returned("p", error="busy")
    d.move(seconds=1)
    assert d.state("p") == "running"
    d.returned("p", 1)
    assert (d.state("p"), len(d.said("approval"))) == ("done", 2)


def test_a_declined_op_that_is_planned_again_asks_again() -> None:
    d = drive(tool("pay", "p"), world=gated())
    d.answer("p", "decline", reason="no")
    d.edit(run="retry")
    assert (d.state("p"), len(d.said("approval"))) == ("gated", 4)
    assert not d.calls


def test_an_approved_op_that_is_planned_again_needs_no_second_approval() -> None:
    d = drive(tool("pay", "p"), world=gated())
    d.answer("p", "approve")
    d.returned("p", error="no funds")
    d.edit(run="retry")
    assert (d.state("p"), len(d.said("approval"))) == ("running", 2)


def test_approvals_that_one_step_asks_for_name_each_other_and_are_decided_one_by_one() -> None:
    d = drive({"op": "core.map", "over": [1, 2], "body": [tool("pay")]}, world=gated())
    cards = [c for c in d.cards if c.to == ANA]
    assert [c.card["with"] for c in cards] == [[c.path for c in cards]] * 2
    d.answer("1[1].1", "approve")
    assert (d.state("1[0].1"), d.state("1[1].1")) == ("gated", "running")


def test_a_call_whose_answer_was_lost_is_put_to_its_owner() -> None:
    d = drive(tool("pay", "p"), {"op": "say", "body": "on"})
    d.returned("p", error="its answer was lost", lost=True)
    assert (d.state("p"), d.state("2")) == ("uncertain", "planned")
    d.answer("p", "happened", by=ANA)
    assert d.reply == "This question is for Bo. Nothing changed."
    d.answer("p", {"happened": 5}, by=BO)
    assert (d.state("p"), d.value("p"), d.run.state) == ("done", 5, "done")


@pytest.mark.parametrize(("word", "state"), [("skip", "skipped"), ("happened", "done")])
def test_a_doubt_is_settled(word: str, state: str) -> None:
    d = drive(tool("pay", "p"))
    d.returned("p", lost=True)
    d.answer("p", word, by=BO)
    assert d.state("p") == state


def test_a_doubt_that_nobody_settles_fails_the_op() -> None:
    d = drive(tool("pay", "p"))
    d.returned("p", lost=True)
    d.move(days=3)
    assert d.row("p").error == "unknown whether it happened"


def test_a_doubt_outlives_a_cancelled_run() -> None:
    d = drive(tool("pay", "p"))
    d.returned("p", lost=True)
    d.edit(run="cancel")
    assert (d.run.state, d.state("p")) == ("cancelled", "uncertain")
    d.answer("p", "happened", by=BO)
    assert d.state("p") == "done"


# --- names ---------------------------------------------------------------------------------------------------------------
def test_a_bare_program_binds_in_the_job_and_a_sealed_one_does_not() -> None:
    assert drive(let("1", "x")).bound == {"x": 1}
    assert drive({"inputs": {}, "program": [let("1", "x")]}).bound == {}


def test_what_one_step_asks_and_withdraws_is_not_sent() -> None:
    d = drive(
        {"op": "flow.parallel", "until": 1, "branches": {"a": [ask("go")], "b": [let("1")]}}, held=frozenset({"cel"})
    )
    assert d.state("go") == "waiting"
    d = drive(
        {"op": "flow.parallel", "until": 1, "branches": {"a": [ask("go")], "b": [{"op": "list", "items": ["x"]}]}}
    )
    assert (d.cards, d.timers, d.state("go")) == ([], {}, "cancelled")


# --- taking a failed run up again ----------------------------------------------------------------------------------------
def test_a_retry_plans_again_what_halted_and_what_was_cancelled_or_skipped_because_of_it() -> None:
    d = drive(tool("write", "w"), tool("deploy", "d"), ask("go"), {"op": "say", "body": "$d"})
    d.returned("w", 1)
    d.returned("d", error="no quota")
    assert d.states() == {"1": "done", "2": "failed", "3": "cancelled", "4": "cancelled"}
    d.edit(run="retry")
    assert d.states() == {"1": "done", "2": "running", "3": "planned", "4": "planned"}
    d.returned("d", 5)
    d.answer("go", "yes")
    assert (d.run.state, d.said("say")) == ("done", [("job", "5")])


def test_a_retry_goes_on_inside_the_branch_that_was_chosen() -> None:
    d = drive(ask("go", onMiss=[tool("write"), tool("deploy")]))
    d.move(hours=1)
    d.returned("1.onMiss.1", 1)
    d.returned("1.onMiss.2", error="no")
    d.edit(run="retry")
    assert d.states() == {"1": "missed", "1.onMiss.1": "done", "1.onMiss.2": "running"}
    d.returned("1.onMiss.2", 1)
    assert d.run.state == "done"


def test_a_spent_repeat_gets_as_many_rounds_again() -> None:
    d = drive({"op": "core.repeat", "max": 2, "until": "n == 'up'", "body": [tool("look", "n")]})
    for _ in range(2):
        d.returned("n", "down")
    assert d.run.state == "failed"
    d.edit(run="retry")
    assert d.state("1[2].1") == "running"
    d.returned("1[2].1", "up")
    assert d.run.state == "done"


def test_a_paused_run_makes_no_further_attempt_and_no_approved_call_until_it_goes_on() -> None:
    d = drive(tool("write", retry={"max": 1, "backoff": "1s"}), tool("pay", "p"), world=gated())
    d.returned("1", error="busy")
    d.edit(run="pause")
    d.move(seconds=5)
    assert not d.calls
    d.edit(run="resume")
    d.returned("1", 1)
    d.edit(run="pause")
    d.answer("p", "approve")
    assert not d.calls
    d.edit(run="resume")
    d.returned("p", 1)
    assert (d.row("1").attempt, d.run.state) == (2, "done")


def test_a_paused_run_that_is_cancelled_never_makes_what_it_held() -> None:
    d = drive(tool("pay", "p"), world=gated())
    d.edit(run="pause")
    d.answer("p", "approve")
    d.edit(run="cancel")
    assert (d.state("p"), d.run.state, d.calls) == ("cancelled", "cancelled", {})


def test_a_doubt_in_a_failing_region_makes_no_further_attempt() -> None:
    d = drive({"op": "flow.parallel", "branches": {"a": [tool("pay", "p")], "b": [tool("write", "w")]}})
    d.returned("p", lost=True)
    d.returned("w", error="no")
    d.answer("p", "retry", by=BO)
    assert (d.state("p"), d.run.state, d.calls) == ("cancelled", "failed", {})


def test_a_conversation_gets_its_question_again_three_times_and_then_silence() -> None:
    d = drive(ask("go", to="line:U1"))
    for _ in range(5):
        d.answer("go", "what?", by=None, conversation="line:U1")
    assert (len(d.said("card")), len(d.replies)) == (4, 3)
    d.answer("go", " YES ", by=None, conversation="line:U1")
    assert d.value("go") == "yes"
    d.answer("go", "no", by=None, conversation="line:U1")
    assert d.reply == "You answered `yes` at 09:00. Nothing changed."


def test_the_same_answer_twice_gets_the_same_reply() -> None:
    d = drive(ask("go", to="role:leads", need=2))
    for by in (ANA, ANA, JONAS, JONAS, ANA):
        d.answer("go", "yes", by=by)
    assert [r.text for r in d.replies] == ["Your answer `yes` is in."] * 5
    assert len(d.value("go")) == 2


def test_a_send_that_policy_gates_goes_out_when_it_is_approved() -> None:
    send = {"op": "line_send", "id": "s", "to": "line:U1", "messages": [{"type": "text", "text": "hello"}]}
    d = drive(send, world=gated("line_send"))
    assert (d.state("s"), d.said("send")) == ("gated", [])
    d.answer("s", "approve")
    assert (d.state("s"), [c.to for c in d.cards if c.kind == "send"]) == ("done", ["line:U1"])
