"""Which variables a filter needs from outside, and what is said of one that does not compile."""

from __future__ import annotations

import jq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.language.jq import compile_problem, free_variables


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("map(.title)", []),
        ("map(select(.n > $limit))", ["limit"]),
        ("[.[] as $r | $r.n * 2]", []),
        ("reduce .[] as {n: $n} (0; . + $n)", []),
        ("reduce .[] as [$a, {b: $c}] (0; . + $a + $c + $d)", ["d"]),
        ("foreach .[] as $x (0; . + $x; [$x, .])", []),
        ("(reduce .[] as $x (0; . + $x)) + $x", ["x"]),
        ("def f($y): $y + $z; f(1) + $y", ["z", "y"]),
        ("def f: 1 as $q | $q; $q", ["q"]),
        ('"a $no \\($x + "\\($y)") b"', ["x", "y"]),
        ('@base64 "\\($y)"', ["y"]),
        ('{$a, b: $c, "d": 1, if: 2}', ["a", "c"]),
        ("if . as $x | $x then $x else . end", ["x"]),
        (". as [$a] ?// $a | $a", []),
        ('. as {("k", $key): $v} | $v', ["key"]),
        (". as {$name} | $name", []),
        ("label $out | (.[] | if . > 3 then ., break $out else . end)", []),
        ("$__loc__.line", []),
        ("# $c\n.", []),
        ("(1 as $x | 2), $x", ["x"]),
        ("[limit(1 as $n | $n; .[])] | $n", ["n"]),
        (".a.as.b as $x | $x", []),
    ],
)
def test_free_variables_are_those_no_pattern_binds(text: str, names: list[str]) -> None:
    assert [v.name for v in free_variables(text)] == names
    assert all(text[v.start : v.end] == f"${v.name}" for v in free_variables(text))
    jq.compile(text, args=dict.fromkeys(names))


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("map(.a", "the filter breaks off", "a"),
        ("map(.a))", "`)` cannot stand here", ")"),
        ("mapp(.a)", "jq has no `mapp`", "mapp"),
        ("map(.a; .b)", "`map` takes 1 argument, here it has 2", "map"),
        (".é | foo", "`é` cannot stand here", "é"),
        ('"é" | fooo', "jq has no `fooo`", "fooo"),
        ('.\n| "x', 'the text that `"` opens is not closed', '"x'),
        ("env.HOME", "`env` shows the surroundings of the process, so it is not to be had", "env"),
        ("$ENV.HOME", "`$ENV` shows the surroundings of the process, so it is not to be had", "$ENV"),
        ("[inputs]", "`inputs` reads further inputs", "inputs"),
        ("now", "`now` gives another value at every look", "now"),
        ('import "a" as a; .', "`import` reads files, and there are none", "import"),
        ("debug", "`debug` writes to a log", "debug"),
        ("", "there is no filter", ""),
        ("break $x", "no `label $x` stands above this `break`", "break"),
        ("(" * 30 + "." + ")" * 30, "a filter may nest 24 levels", "("),
    ],
)
def test_what_does_not_compile_is_said_at_its_place(text: str, message: str, span: str) -> None:
    fault = compile_problem(text)
    assert fault is not None
    assert message in fault.message
    assert text[fault.start : fault.end] == span


def test_the_nearest_function_is_offered() -> None:
    fault = compile_problem("selct(.a)")
    assert fault is not None and fault.mend == "did you mean `select`?"


def test_keys_and_own_functions_may_have_refused_names() -> None:
    for text in ("{now: .now}", "def env: 1; env", ".input | .env"):
        assert compile_problem(text) is None


def test_names_from_outside_count_as_bound() -> None:
    assert compile_problem("$a + $b", ["a", "b"]) is None


bits = st.sampled_from(
    [".", "$a", "$b", "as", "|", "(", ")", "[", "]", "{", "}", ",", ";", ":", "reduce", "def f:", "if", "then", "else", "end",
     '"', "\\(", "1", ".x", "map", "+", "?//", "label"]
)  # fmt: skip


@given(st.one_of(st.lists(bits, max_size=14).map(" ".join), st.text(max_size=30)))
@settings(max_examples=500, deadline=None)
def test_no_text_makes_the_reader_raise(text: str) -> None:
    variables = free_variables(text)
    compile_problem(text, [v.name for v in variables])


def filters(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    patterns = st.sampled_from(["$a", "[$a, $b]", "{$a}", "{k: $b}", "{$a: [$b]}", "$a ?// [$b]"])
    return st.one_of(
        st.builds(lambda x, p, y: f"({x} as {p} | {y})", children, patterns, children),
        st.builds(lambda x, y: f"({x} | {y})", children, children),
        st.builds(lambda x, y: f"({x}, {y})", children, children),
        st.builds(lambda x, y: f"[{x} as $a | {y}]", children, children),
        st.builds(lambda x, p, y, z: f"(reduce {x} as {p} ({y}; {z}))", children, patterns, children, children),
        st.builds(lambda x, y: f"(def f($a): {x}; f(1) | {y})", children, children),
        st.builds(lambda x, y, z: f"(if {x} then {y} else {z} end)", children, children, children),
        st.builds(lambda x: f'"\\({x})"', children),
        st.builds(lambda x: f"{{k: ({x}), $c}}", children),
    )


@given(st.recursive(st.sampled_from([".", "$a", "$b", "$c", "1"]), filters, max_leaves=7))
@settings(max_examples=300, deadline=None)
def test_jq_agrees_on_what_is_free(text: str) -> None:
    free = {v.name for v in free_variables(text)}
    jq.compile(text, args=dict.fromkeys(free))
    for name in free:
        with pytest.raises(ValueError, match=rf"\${name} is not defined"):
            jq.compile(text, args=dict.fromkeys(free - {name}))
