"""What a name means where, and what an op waits for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.plan import Default, Input, Op, Plan, Region
from bot.language.scope import Scopes, analyse
from bot.ops.builtin import catalog

CATALOG = catalog()


def region(place: str, *ops: tuple[str, dict[str, Any]]) -> Region:
    """Ops of a region; those of inner regions are given as `then=[…]`, `onMiss=[…]`, `body=[…]`."""
    made: list[Op] = []
    for number, (name, written) in enumerate(ops, 1):
        here = f"{place}.{number}" if place else str(number)
        fields = dict(written)
        inner = {k: fields.pop(k) for k in ("then", "else", "body", "left", "right") if k in fields}
        for key, field in (("onMiss", "on_miss"), ("onError", "on_error")):
            if isinstance(fields.get(key), list):
                fields[field] = region(f"{here}.{key}", *fields.pop(key))
        regions = {k: region(f"{here}[]" if k == "body" else f"{here}.{k}", *v) for k, v in inner.items()}
        made.append(Op(op=name, place=here, rank=number, regions=regions, **fields))
    return Region(place=place, ops=tuple(made))


def scopes(*ops: tuple[str, dict[str, Any]], **head: Any) -> Scopes:
    return analyse(Plan(program=region("", *ops), **head), CATALOG)


def let(ident: str | None, be: str = "1", **more: Any) -> tuple[str, dict[str, Any]]:
    return "core.let", {"id": ident, "params": {"be": be}, **more}


def say(body: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return "say", {"params": {"body": body}, **more}


def ask(ident: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "ask", {"id": ident, "to": "ana@acme.de", "params": {"question": "?"}, **more}


def needs(found: Scopes, place: str) -> list[tuple[str, tuple[str, ...], bool, str]]:
    return [(n.name, n.binders, n.value, n.via) for n in found.needs(place)]


def test_an_op_needs_what_its_own_fields_name_and_not_what_its_regions_do() -> None:
    found = scopes(let("a"), let("b"), ("core.if", {"params": {"cond": "a > 0"}, "then": [say("$b")]}))
    assert needs(found, "3") == [("a", ("1",), True, "ref")]
    assert needs(found, "3.then.1") == [("b", ("2",), True, "ref")]


def test_the_right_side_sees_the_names_above() -> None:
    found = scopes(let("x"), let("y", "x + y"), let("z"))
    assert needs(found, "2") == [("x", ("1",), True, "ref")]
    assert found.resolve("2", "y").kind == "outside"


@pytest.mark.parametrize(
    ("fields", "need"),
    [
        ({"params": {"body": "${q?}"}}, ("q", ("1",), False, "ref")),
        ({"params": {"body": "x"}, "after": ("q?",)}, ("q", ("1",), False, "after")),
        ({"params": {"body": "x"}, "after": ("q",)}, ("q", ("1",), True, "after")),
        ({"params": {"body": "x"}, "after": ("1",)}, ("1", ("1",), True, "after")),
        ({"params": {"body": "$ops.q.state"}}, ("q", ("1",), False, "ops")),
        ({"params": {"body": "${ops.q.state} $q"}}, ("q", ("1",), True, "ref")),
        ({"params": {"body": ["a", {"k": "$q.x[0]"}]}}, ("q", ("1",), True, "ref")),
        ({"params": {"body": "x"}, "to": "$q"}, ("q", ("1",), True, "ref")),
        ({"params": {"body": "x"}, "on_error": Default(value="$q")}, ("q", ("1",), True, "ref")),
    ],
)
def test_a_plain_mention_needs_a_value_and_a_question_mark_only_the_end(fields: dict[str, Any], need: Any) -> None:
    assert needs(scopes(ask("q"), ("say", fields)), "2") == [need]


def test_jq_and_where_name_bindings_themselves() -> None:
    found = scopes(
        let("rows"), let("n"),
        ("core.transform", {"params": {"from": "$rows", "jq": ".[] as $r | $r + $n"}}),
        ("expect", {"params": {"evidence": "s", "where": "event.n == n && now > event.at"}}),
    )  # fmt: skip
    assert [n[0] for n in needs(found, "3")] == ["rows", "n"]
    assert [n[0] for n in needs(found, "4")] == ["n"]
    assert found.resolve("4", "event", "where").kind == "event"
    assert found.resolve("4", "event").kind == "event"
    assert found.resolve("4", "event", "from").kind == "outside"


def test_a_name_bound_again_inside_its_own_onmiss_has_several_binders() -> None:
    found = scopes(
        ask("pick", onMiss=[
            say("${ops.pick.miss}"), let("pick", "'x'"), say("$pick"),
            ("core.if", {"params": {"cond": "true"}, "then": [let("pick", "'y'")]}),
            ("core.map", {"params": {"over": [1]}, "body": [let("pick", "'z'")]}),
        ]),
        say("$pick"),
    )  # fmt: skip
    assert needs(found, "2") == [("pick", ("1", "1.onMiss.2", "1.onMiss.4.then.1"), True, "ref")]
    assert needs(found, "1.onMiss.1") == [("pick", ("1",), False, "ops")]
    assert needs(found, "1.onMiss.3") == [("pick", ("1.onMiss.2",), True, "ref")]
    assert found.resolve("1.onMiss.1", "pick").unseen


def test_what_a_region_binds_is_not_seen_outside_it() -> None:
    found = scopes(("core.if", {"params": {"cond": "true"}, "then": [let("y")]}), say("$y"))
    assert found.resolve("2", "y").kind == "outside"
    assert needs(found, "2") == []


def test_item_index_last_and_it_belong_to_the_nearest_op_that_has_them() -> None:
    inner = ("core.map", {"params": {"over": "$item.rows"}, "body": [say("$item $index")]})
    found = scopes(
        ("core.map", {"params": {"over": [1]}, "body": [inner, say("$item")]}),
        ("core.map", {"params": {"over": [1], "as": "pr"}, "body": [say("$pr $item")]}),
        ("core.repeat", {"params": {"max": 2, "until": "y > 1 && last == null"}, "body": [let("y", "last")]}),
        ("each", {"params": {"list": [1], "prompt": "$it"}}),
    )  # fmt: skip
    assert found.resolve("1[].1[].1", "item").owner == "1[].1"
    assert found.resolve("1[].1", "item").owner == "1"
    assert found.resolve("1[].2", "index").owner == "1"
    assert found.resolve("2[].1", "pr").owner == "2"
    assert found.resolve("2[].1", "item").kind == "outside"
    assert found.resolve("3[].1", "last").kind == "last"
    assert found.resolve("3", "y", "until").places == ("3[].1",)
    assert found.resolve("3", "y").kind == "outside"
    assert found.resolve("4", "it", "prompt").owner == "4"
    assert needs(found, "3") == []


def test_until_needs_what_stands_above_the_repeat() -> None:
    found = scopes(let("n"), ("core.repeat", {"params": {"max": 2, "until": "y > n"}, "body": [let("y")]}))
    assert needs(found, "2") == [("n", ("1",), True, "ref")]


def test_after_follows_an_op_above_by_name_or_by_path_and_none_other() -> None:
    found = scopes(
        ask("a", onMiss=[say("x", id="s"), say("y")]), ("show", {"id": "out", "params": {"value": "$a"}}),
        ("core.if", {"params": {"cond": "true"}, "then": [say("z")]}), say("w"), say("v"),
    )  # fmt: skip
    assert found.follows("4", "a") == ("1",)
    assert found.follows("4", "out?") == ("2",)
    assert found.follows("3.then.1", "2") == ("2",)
    assert found.follows("1.onMiss.2", "a.onMiss.1") == ("1.onMiss.1",)
    assert found.follows("1.onMiss.1", "a") == ()
    assert found.follows("1.onMiss.1", "a?") == ("1",)
    for below_or_inside in ("5", "3.then.1", "s", "nobody", "4"):
        assert found.follows("4", below_or_inside) == ()


def test_inputs_fixed_names_and_the_outside_are_told_apart() -> None:
    sealed = scopes(say("x"), inputs=(Input(name="repo"),))
    assert [sealed.resolve("1", n).kind for n in ("repo", "owner", "customer", "x")] == [
        "input",
        "fixed",
        "outside",
        "outside",
    ]
    assert scopes(say("x")).resolve("1", "customer").kind == "fixed"


def test_the_programs_error_region_sees_the_programs_names() -> None:
    plan = Plan(program=region("", let("a")), on_error=region("onError", say("${ops.a.error}")))
    assert needs(analyse(plan, CATALOG), "onError.1") == [("a", ("1",), False, "ops")]


def test_an_agent_call_under_a_budget_waits_for_those_above_it_there() -> None:
    each = ("each", {"params": {"list": [1], "prompt": "?"}})
    found = scopes(
        each, ask("n"), ("budget", {"params": {"calls": "$n"}}), each,
        ("core.if", {"params": {"cond": "true"}, "then": [each, say("x")]}), each, ask("p"),
    )  # fmt: skip
    assert needs(found, "1") == []
    assert needs(found, "4") == [("budget", ("3",), False, "budget")]
    assert [n[1] for n in needs(found, "5.then.1")] == [("3",), ("4",)]
    assert [n[1] for n in needs(found, "6")] == [("3",), ("4",), ("5",)]
    assert needs(found, "7") == []
    assert found.settings("6") == ("3",)


names = st.sampled_from(["a", "b", "c"])
texts = st.lists(names, max_size=2).map(lambda n: " ".join(f"${x}" for x in n))


@given(st.lists(st.tuples(names, texts, st.booleans()), max_size=8))
def test_needs_point_upwards_only(steps: list[tuple[str, str, bool]]) -> None:
    ops = [ask(n, onMiss=[let(n), say(t)]) if deep else say(t, id=n) for n, t, deep in steps]
    found = scopes(*ops)
    for place in found.ops:
        for need in found.needs(place):
            assert found.order[need.binders[0]] < found.order[place]
            assert list(need.binders) == sorted(need.binders, key=found.order.__getitem__)
