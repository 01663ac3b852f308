from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.catalog import OpSpec
from bot.domain.plan import RANK_STEP, Default, Input, Plan, Region, Retry, Trigger
from bot.language.read import Read, read
from bot.ops.builtin import catalog

CATALOG = catalog([OpSpec(name="deploy", summary="", kind="effect", shape="deploy key: value", tool=True)])
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def lowered(text: str) -> Read:
    found = read(text, CATALOG)
    assert not found.problems, found.source.render(found.problems)
    return found


def plan(text: str) -> Plan:
    found = lowered(text).plan
    assert found is not None
    return found


SAY = '{ op: "say", body: "hi" }'


@pytest.mark.parametrize(
    "text",
    [f"[{SAY}]", SAY, f"{SAY},", f"{{ program: [{SAY}] }}", f"run_program({{ program: [{SAY}] }})", f"```\n[{SAY}]\n```",
     f"{{ program: {SAY} }}", f"// a comment\n[{SAY}]"],
)  # fmt: skip
def test_a_program_is_taken_in_every_form(text: str) -> None:
    assert plan(text) == plan(f"[{SAY}]")


def test_several_ops_with_commas_are_a_program() -> None:
    assert [op.params["body"] for op in plan('{op:"say",body:"a"},\n{op:"say",body:"b"},').program.ops] == ["a", "b"]


def test_a_parameter_may_stand_at_the_op_or_inside_params() -> None:
    outside = '{ op: "ask", to: "@ana", within: "2d", question: "ok?", onMiss: "replan" }'
    inside = '{ op: "ask", params: { to: "@ana", within: "2d", question: "ok?", onMiss: "replan" } }'
    assert plan(outside) == plan(inside)


def test_everything_in_params_is_a_tools_own() -> None:
    (op,) = plan('{ op: "deploy", params: { to: "prod", after: "x", then: [] }, onError: { default: 0 } }').program.ops
    assert op.params == {"to": "prod", "after": "x", "then": []}
    assert op.to is None and op.after == () and op.on_error == Default(value=0)


def test_places_and_ranks_are_those_of_the_record() -> None:
    text = f"""[
      {{ op: "core.if", cond: "true", then: [{SAY}], else: [{SAY}, {SAY}] }},
      {{ op: "core.map", over: [1], body: [{SAY}] }},
      {{ op: "flow.parallel", branches: {{ left: [{SAY}], right: [] }} }},
      {{ op: "flow.parallel", branches: [[{SAY}], [{SAY}]] }},
      {{ op: "ask", question: "ok?", onMiss: [{SAY}], onError: [{SAY}] }}]"""
    found = plan(f"{{ program: {text}, onError: [{SAY}] }}")
    places = [op.place for op, _ in found.walk()]
    assert places == [
        "1", "1.then.1", "1.else.1", "1.else.2", "2", "2[].1", "3", "3.left.1", "4", "4.1.1", "4.2.1",
        "5", "5.onMiss.1", "5.onError.1", "onError.1",
    ]  # fmt: skip
    assert [op.rank for op in found.program.ops] == [RANK_STEP * n for n in range(1, 6)]
    assert found.program.ops[3].branches_listed and not found.program.ops[2].branches_listed
    assert found.program.ops[2].regions["right"] == Region(place="3.right", ops=())


def test_fields_become_what_they_mean() -> None:
    (op,) = plan(
        '{ op: "expect", evidence: "s", from: "$u", after: ["a", "b?"], by: "Fri 17:00", where: "event.x > $1" }'
    ).program.ops
    assert (op.from_, op.after, op.by, op.params["where"]) == ("$u", ("a", "b?"), "Fri 17:00", "event.x > $1")
    (op,) = plan('{ op: "deploy", retry: { max: 3, backoff: "2s", maxDelay: "1m" } }').program.ops
    assert op.retry == Retry(max=3, backoff="2s", max_delay="1m")


def test_texts_are_spelt_in_one_way_whatever_was_written() -> None:
    (op,) = plan('{ op: "say", body: "${a}, ${b}.c $5 $${d}" }').program.ops
    assert op.params["body"] == "$a, ${b}.c $5 $${d}"
    found = lowered('{ op: "say", body: "${ a } x" }')
    node = found.placed["1"].fields["body"]
    assert node.value == "$a x" and found.source.text[node.offset(3)] == "x"


def test_a_value_is_a_default_and_a_declaration_declares() -> None:
    text = """{ inputs: { repo: "acme/api", n: { type: "number", default: 3 },
                who: { type: "text", choices: ["a"], secret: true },
                d: { default: [1] }, rec: { type: "x", other: 1 }, e: {} }, program: [%s] }"""
    assert plan(text % SAY).inputs == (
        Input(name="repo", type="text", default="acme/api", has_default=True),
        Input(name="n", type="number", default=3, has_default=True),
        Input(name="who", type="text", choices=("a",), secret=True),
        Input(name="d", type="list<number>", default=[1], has_default=True),
        Input(name="rec", type="record", default={"type": "x", "other": 1}, has_default=True),
        Input(name="e", type="record", default={}, has_default=True),
    )


def test_a_program_with_inputs_is_sealed_and_one_without_is_bare() -> None:
    assert plan(f"{{ inputs: {{}}, program: [{SAY}] }}").sealed
    assert not plan(f"{{ program: [{SAY}] }}").sealed


def test_what_stands_around_the_ops_is_read() -> None:
    text = f"""{{ name: "x", title: "T", within: "2d", overlap: "skip", key: "k",
                on: [{{ event: "s", as: "tap" }}], program: [{SAY}] }}"""
    found = plan(text)
    assert (found.name, found.title, found.within, found.overlap, found.key) == ("x", "T", "2d", "skip", "k")
    assert found.on == (Trigger(event="s", as_="tap"),)


def test_an_ask_inside_an_on_miss_may_do_without_its_question() -> None:
    inner = '{ op: "core.if", cond: "true", then: [{ op: "ask", to: "@ana" }] }'
    assert plan(f'{{ op: "ask", question: "ok?", onMiss: [{inner}] }}')
    assert read('{ op: "ask", to: "@ana" }', CATALOG).problems


def test_what_could_not_be_understood_stays_as_far_as_it_was_read() -> None:
    found = read('[{ op: "depoy", id: "d", params: { a: "$x" } }, { op: "say", body: "$d" }]', CATALOG)
    assert [p.code for p in found.problems] == ["unknown-op"] and found.plan is not None
    assert [(op.op, op.id) for op in found.plan.program.ops] == [("depoy", "d"), ("say", None)]


def test_a_reference_passes_any_type() -> None:
    text = """{ op: "ask", question: "$q", choices: "$c", need: "$n",
                fields: [{ name: "$a", type: "$t" }], notOwner: "$o" }"""
    assert plan(text)


def test_every_op_is_placed_with_its_words() -> None:
    found = lowered(
        '[{ op: "ask", id: "go", to: "@ana", params: { question: "ok?" } }, { op: "deploy", params: { a: 1 } }]'
    )
    text = found.source.text
    ask, deploy = found.placed["1"], found.placed["2"]
    assert text[slice(*ask.name)] == '"ask"' and ask.ident and text[slice(*ask.ident)] == '"go"'
    assert set(ask.fields) == {"to", "question"} and deploy.fields["params"].plain() == {"a": 1}


@pytest.mark.parametrize(("ops", "fine"), [(2000, True), (2001, False)])
def test_a_script_may_have_2000_ops(ops: int, fine: bool) -> None:
    found = read("[" + ",".join(['{op:"say",body:"x"}'] * ops) + "]", CATALOG)
    assert [p.code for p in found.problems] == ([] if fine else ["limit-ops"])


@pytest.mark.parametrize(("levels", "fine"), [(32, True), (33, False)])
def test_regions_may_nest_32_deep(levels: int, fine: bool) -> None:
    inner: Any = SAY
    for _ in range(levels - 1):
        inner = f'{{op:"core.if",params:{{cond:"true",then:[{inner}]}}}}'
    assert [p.code for p in read(inner, CATALOG).problems] == ([] if fine else ["limit-levels"])
    lines = [f"{'  ' * n}- if true" for n in range(levels - 1)]
    lines += [f"{'  ' * (levels - 1)}- say", f"{'  ' * levels}> hi"]
    assert [p.code for p in read("\n".join(lines), CATALOG).problems] == ([] if fine else ["limit-levels"])
