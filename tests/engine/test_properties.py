"""What section 4 of the language promises of every plan and every order of the same facts."""

from __future__ import annotations

import json
from itertools import groupby
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.facts import Accepted, Continued, Returned
from bot.domain.ids import below
from bot.domain.plan import Plan
from bot.language.script import check_plan, examine
from bot.language.write import as_json
from tests.engine.plans import WORLD_OF_PLANS, Life, Planner
from tests.engine.rows import CATALOG, START, Drive, always, plan_of

SEEDS = st.integers(min_value=0, max_value=1 << 40)
OUTSIDE = ("tool", "cel", "jq", "file")
"""Kinds of calls whose results may share a step."""
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


def bounded(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)


def planned(seed: int, **how: Any) -> Plan:
    """A plan that passes every check."""
    plan = plan_of(Planner(Random(seed), **how).program())
    assert not check_plan(plan, CATALOG, WORLD_OF_PLANS)
    return plan


def begun(plan: Plan) -> Drive:
    """A run of the plan in which all that must always hold is looked at after every fact."""
    drive = Drive(plan, world=WORLD_OF_PLANS, check=always, accept=False)
    drive.fact(Accepted(at=START))
    return drive


def ended(drive: Drive) -> dict[str, tuple[str, Any]]:
    """State and value of every op; an event's value tells when it came, so its state alone."""
    return {path: (row.state, _comparable(row.value)) for path, row in drive.rows.ops.items()}


def _comparable(value: Any) -> str:
    told = json.dumps(value, sort_keys=True, default=str)
    return "an event" if '"stream"' in told else told


@bounded(220)
@given(SEEDS)
def test_whatever_happens_in_whatever_order_every_invariant_holds_and_a_repeat_is_no_second_fact(seed: int) -> None:
    drive = begun(planned(seed, halting=True, until=True))
    Life(drive, Random(seed), seed, fails=0.3, agents_fail=True, repeats=True).play()


@bounded(120)
@given(SEEDS)
def test_without_halting_failures_every_order_of_the_same_facts_gives_equal_states_and_values(seed: int) -> None:
    plan = planned(seed)
    first, other = (ended(Life(begun(plan), Random(seed + n), seed).play()) for n in (1, 2))
    assert first == other


@bounded(160)
@given(SEEDS)
def test_the_clock_alone_ends_every_run_not_later_than_the_preflight_said(seed: int) -> None:
    plan = planned(seed, halting=True, windows=("1h", "2d", "30m"))
    drive = Life(begun(plan), Random(seed), seed, fails=0.3, agents_fail=True, silent=0.6).play()
    latest = examine(as_json(plan), CATALOG, WORLD_OF_PLANS).preflight["latest_end"]
    assert drive.run.ended is not None
    assert latest is None or drive.run.ended <= latest


@bounded(160)
@given(SEEDS)
def test_edits_at_any_moment_hold_whole_or_change_nothing(seed: int) -> None:
    drive = begun(planned(seed, halting=True))
    Life(drive, Random(seed), seed, fails=0.2, agents_fail=True, meddles=0.2, retries=1).play()


@bounded(120)
@given(SEEDS)
def test_a_failed_run_can_be_taken_up_again_and_makes_no_done_call_twice(seed: int) -> None:
    drive = begun(planned(seed, halting=True))
    life = Life(drive, Random(seed), seed, fails=0.35, agents_fail=True, retries=3)
    done: dict[str, int] = {}

    def watched(of: Drive, step: Any, before: Any) -> None:
        always(of, step, before)
        for call in step.calls:
            if call.kind == "tool":
                assert call.path not in done, f"{call.path} had happened and is called again"
        for row in step.ops:
            if row.op == "write" and row.state == "done" and "tolerated" not in row.data:
                done[row.path] = row.attempt

    drive.check = watched
    life.play()


@bounded(60)
@given(SEEDS)
def test_replaying_the_facts_gives_the_same_rows(seed: int) -> None:
    plan = planned(seed, halting=True, until=True)
    drive = Life(begun(plan), Random(seed), seed, fails=0.3, meddles=0.1).play()
    again = Drive(plan, world=WORLD_OF_PLANS, accept=False)
    for event in drive.rows.stored:
        again.rows.stored.append(event)
    for fact in drive.facts:
        again._apply(fact)
    assert again.rows.ops == drive.rows.ops
    assert again.rows.regions == drive.rows.regions
    assert [c.key for c in again.cards] == [c.key for c in drive.cards]


@bounded(100)
@given(SEEDS)
def test_results_that_share_a_step_change_what_they_change_one_after_the_other(seed: int) -> None:
    drive = Life(begun(planned(seed, halting=True, until=True)), Random(seed), seed, fails=0.3).play()
    again = Drive(drive.script, world=WORLD_OF_PLANS, accept=False)
    again.rows.stored += drive.rows.stored
    facts = [fact for fact in drive.facts if not isinstance(fact, Continued)]
    for together, group in groupby(facts, key=lambda f: isinstance(f, Returned) and f.kind in OUTSIDE):
        if together:
            again.results([fact for fact in group if isinstance(fact, Returned)])
        else:
            for fact in group:
                again.fact(fact)
    assert again.rows.ops == drive.rows.ops
    assert again.rows.regions == drive.rows.regions
    assert again.bound == drive.bound
    assert again.run.state == drive.run.state


@bounded(60)
@given(SEEDS)
def test_whom_an_ask_addresses_changes_no_order(seed: int) -> None:
    program = Planner(Random(seed), agents=False, gates=False).program()
    people, agents = (
        json.dumps(program),
        json.dumps(program).replace('"ana@acme.de", "question"', '"agent", "question"'),
    )
    orders: list[list[str]] = []
    for text in (people, agents):
        drive = Drive(
            plan_of(text),
            world=WORLD_OF_PLANS,
            returns={"agent": "yes"},
            held=frozenset({"tool", "agent"}),
            accept=False,
        )
        drive.fact(Accepted(at=START))
        _settle_in_order(drive, seed)
        orders.append(drive.started)
    assert orders[0] == orders[1]


def _settle_in_order(drive: Drive, seed: int) -> None:
    """What can be done at once is; then the first op by path that waits for someone gets `yes`."""
    life = Life(drive, Random(0), seed, fails=0.0)
    for _ in range(2_000):
        if drive.queue:
            drive.deliver(drive.queue.pop(0))
        elif found := [k for k, c in sorted(drive.calls.items()) if c.kind not in ("agent", "stop-run")]:
            life.perform(found[0], drive.calls[found[0]])
        elif found := sorted(r.path for r in drive.rows.ops.values() if r.state == "waiting" and r.op == "ask"):
            if any(k[0] == found[0] for k in drive.calls):
                drive.perform(next(k for k in drive.calls if k[0] == found[0]))
            else:
                drive.answer(
                    found[0],
                    "yes",
                    next(
                        v
                        for v in ("ana@acme.de", "jonas@acme.de")
                        if v not in {a["by"] for a in drive.rows.ops[found[0]].data["answers"]}
                    ),
                )
        elif found := sorted(
            r.path
            for r in drive.rows.ops.values()
            if r.state == "waiting" and r.op == "expect" and r.data["streams"] != ["clock"]
        ):
            life.event(drive.rows.ops[found[0]].data["streams"][0])
        elif drive.timers:
            life.strike(min(drive.timers, key=lambda k: (drive.timers[k], k)))
        else:
            return


@bounded(60)
@given(SEEDS)
def test_a_tolerated_failure_changes_nothing_outside_but_its_value(seed: int) -> None:
    rng = Random(seed)
    before, after = Planner(rng, gates=False).program(), Planner(rng, gates=False, names=50, streams=20).program()
    tolerated = {"op": "pay", "params": {}, "onError": {"default": 5}}
    plan = plan_of([*before, tolerated, *after])
    found: list[dict[str, tuple[str, Any]]] = []
    for outcome in (5, RuntimeError("it broke")):
        drive = Drive(plan, world=WORLD_OF_PLANS, accept=False)
        drive.fact(Accepted(at=START))
        found.append(ended(Life(drive, Random(1), seed, outcomes={"pay": outcome}).play()))
    path = str(len(before) + 1)
    assert found[0].pop(path) == ("done", "5")
    assert found[1].pop(path) == ("failed", "5")
    assert found[0] == found[1]


# --- the cost of a fact --------------------------------------------------------------------------------------------------
def _cost(drive: Drive, act: Any) -> tuple[int, int]:
    """Rows read and written by one fact."""
    drive.rows.reads = 0
    act()
    return drive.rows.reads, drive.written


def _asks_in_a_map(count: int, **more: Any) -> Drive:
    ask = {"op": "ask", "to": "ana@acme.de", "question": "go?", "choices": ["yes", "no"]}
    return Drive([{"op": "core.map", "over": list(range(count)), "body": [ask, {"op": "core.let", "be": "1"}], **more}])


@pytest.mark.parametrize("most", [None, 5])
def test_an_answer_in_a_map_of_a_thousand_costs_what_it_costs_in_a_map_of_ten(most: int | None) -> None:
    more = {} if most is None else {"maxConcurrency": most}
    small, large = _asks_in_a_map(10, **more), _asks_in_a_map(1_000, **more)
    for at in range(4):
        path = f"1[{at}].1"
        costs = [_cost(d, lambda d=d, path=path: d.answer(path, "yes")) for d in (small, large)]
        assert costs[0] == costs[1]
    assert (
        len(json.dumps(small.row("1").data))
        <= len(json.dumps(large.row("1").data))
        <= len(json.dumps(small.row("1").data)) + 8
    )


def test_an_answer_in_a_flat_plan_of_two_thousand_costs_what_it_costs_in_one_of_twenty() -> None:
    ask = {"op": "ask", "to": "ana@acme.de", "question": "go?"}
    small, large = Drive([ask] * 20), Drive([ask] * 2_000)
    costs = [_cost(d, lambda d=d: d.answer("7", "yes")) for d in (small, large)]
    assert costs[0] == costs[1]


def test_an_event_costs_what_it_can_settle_however_many_other_ops_there_are() -> None:
    def plan(count: int) -> Drive:
        asks = [{"op": "ask", "to": "ana@acme.de", "question": "go?"}] * count
        return Drive([*asks, {"op": "expect", "evidence": "camera", "within": "1h"}])

    costs = [_cost(d, lambda d=d: d.event("camera")) for d in (plan(20), plan(1_000))]
    assert costs[0] == costs[1]


def test_one_event_settles_one_op_of_a_run() -> None:
    drive = Drive(
        [{"op": "core.map", "over": [1, 2, 3], "body": [{"op": "expect", "evidence": "camera", "within": "1h"}]}]
    )
    drive.event("camera")
    assert [p for p, s in drive.states().items() if s == "done"] == ["1[0].1"]
    drive.event("camera")
    assert [p for p, s in drive.states().items() if s == "done"] == ["1[0].1", "1[1].1"]
    assert not any(below(p, "1[2]") and s == "done" for p, s in drive.states().items())
