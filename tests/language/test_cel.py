"""What the expression reader takes, what it says of the rest, and that celpy takes what it takes."""

from __future__ import annotations

import celpy
import pytest
from celpy.celparser import CELParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.language.cel import CelSyntax, parse

ENVIRONMENT = celpy.Environment()


def celpy_takes(text: str) -> bool:
    try:
        ENVIRONMENT.compile(text)
    except CELParseError:
        return False
    return True


def reads(text: str) -> bool:
    try:
        parse(text)
    except CelSyntax:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("prs.filter(p, p.state == 'open')", [("prs",)]),
        ("pick.event.text + x", [("pick", "event", "text"), ("x",)]),
        ("ops.swap.state == 'done'", [("ops", "swap", "state")]),
        ("rows[0].n > rows[i].n", [("rows", 0, "n"), ("rows",), ("i",)]),
        ("a.map(x, b.map(y, x + y + c))", [("a",), ("b",), ("c",)]),
        ("x.map(x, x.n)", [("x",)]),
        ("a['b'].c.startsWith(d)", [("a", "b", "c"), ("d",)]),
        ("{'k': v}[w]", [("v",), ("w",)]),
        ("'$' + string(u)", [("u",)]),
        ("true && null == 1", []),
        (".5 + x // y", [("x",)]),
    ],
)
def test_free_names_come_with_their_static_path(text: str, names: list[tuple[object, ...]]) -> None:
    assert [name.path for name in parse(text).names] == names


def test_a_name_knows_where_each_step_ends() -> None:
    (name,) = parse("  pick.event[0]").names
    assert (name.start, name.ends, name.end) == (2, (6, 12, 15), 15)


def test_what_has_asks_for_may_be_absent() -> None:
    first, second = parse("has(doc.a.b) ? doc.owner : 'x'").names
    assert first.tested and not second.tested


def test_functions_come_with_their_arguments_counted() -> None:
    assert [(f.name, f.method, f.arguments) for f in parse("size(a) > b.size() && c.all(x, x.f(1, 2))").functions] == [
        ("size", False, 1), ("size", True, 0), ("f", True, 2), ("all", True, 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("a = b", "`=` compares nothing; `==` does", "="),
        ("a === b", "`===` is written `==` in an expression", "==="),
        ("a and b", "`and` is written `&&` in an expression", "and"),
        ("$x > 1", "names stand in an expression without `$`", "$"),
        ("{x} > 1", "names stand in an expression without braces", "{x}"),
        ("(a + b", "`(` is not closed", "("),
        ("(a + b]", "`]` does not close `(`", "]"),
        ("a ? b", "`?` has no `:` to go with it", "?"),
        ("a b", "an operator is missing before `b`", "b"),
        ("'abc", "the text that `'` opens is not closed", "'abc"),
        (r"'a\?'", r"`\?` escapes nothing; a backslash is written `\\`", r"\?"),
        ("a + ", "the expression breaks off", "+"),
        ("", "there is no expression", ""),
        ("a)", "`)` closes nothing", ")"),
        ("has(x)", "`has` asks for a key, as in `has(a.b)`", "has(x)"),
        ("if", "`if` is a word of the expression language, so it is no name", "if"),
        ("[1, ]", "`,` has nothing after it but `]`", ","),
        ("a & b", "`&` stands alone; `&&` joins conditions", "&"),
        ("größe", "`größe` is no name: names are of ASCII letters, digits and `_`", "größe"),
    ],
)
def test_what_does_not_read_is_said_at_its_place(text: str, message: str, span: str) -> None:
    with pytest.raises(CelSyntax) as caught:
        parse(text)
    said = caught.value
    assert message in said.message
    assert text[said.start : said.end].strip() == span


def test_a_replacement_makes_it_read() -> None:
    for text in ("a = b", "a === b", "a and b", "$x > 1", "{x} > 1", "[1, ]", "a & b", "not a", r"'a\?'", "a == None"):
        with pytest.raises(CelSyntax) as caught:
            parse(text)
        said = caught.value
        assert said.replacement is not None
        assert reads(text[: said.start] + said.replacement + text[said.end :]), text


def test_nesting_and_length_are_limited_and_chains_are_not() -> None:
    assert reads(" && ".join(["a"] * 500))
    assert reads("(" * 20 + "a" + ")" * 20)
    for text in ("(" * 30 + "a" + ")" * 30, "(" * 2000, "!" * 40 + "a", "a" * 5000):
        with pytest.raises(CelSyntax):
            parse(text)


names = st.sampled_from(["a", "b", "rows", "nullable", "inner", "truest", "x1"])
literals = st.sampled_from(["1", "2.5", "'t'", '"q"', "true", "null", "0x1F", "1u", ".5", "1e3", r"'\n'", "r'\\d'"])


def grown(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", " in ", "&&", "||"])
    return st.one_of(
        st.builds(lambda a, op, b: f"{a}{op}{b}", children, operators, children),
        st.builds(lambda a: f"({a})", children),
        st.builds(lambda a: f"!{a}", children),
        st.builds(lambda a: f"- {a}", children),
        st.builds(lambda a, b, c: f"({a}) ? ({b}) : {c}", children, children, children),
        st.builds(lambda a, b: f"[{a}, {b}]", children, children),
        st.builds(lambda a: f"{{'k': {a}}}.k", children),
        st.builds(lambda a, b: f"({a}).filter(v, {b})", children, children),
        st.builds(lambda a, b: f"({a})[{b}]", children, children),
        st.builds(lambda a: f"size({a})", children),
        st.builds(lambda n, a: f"{n}.startsWith({a})", names, children),
        st.builds(lambda n: f"has({n}.key)", names),
    )


@given(st.recursive(st.one_of(names, literals), grown, max_leaves=8))
@settings(max_examples=300, deadline=None)
def test_what_the_grammar_makes_both_read(text: str) -> None:
    assert reads(text)
    assert celpy_takes(text)


soup = st.lists(
    st.sampled_from(
        [
            "a",
            "b1",
            "in",
            "1",
            "2.5",
            "'t'",
            "true",
            "null",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "?",
            ".",
            "+",
            "-",
            "*",
            "!",
            "==",
            "&&",
            "||",
            "<",
            "size(",
            ".map(x,",
            "has(a.b)",
            " ",
            "//c\n",
        ]
    ),
    max_size=12,
)


@given(soup)
@settings(max_examples=600, deadline=None)
def test_what_reads_here_celpy_takes(parts: list[str]) -> None:
    text = " ".join(parts)
    if reads(text):
        assert celpy_takes(text), text


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_the_reader_raise_anything_else(text: str) -> None:
    reads(text)
