"""What is known of a value before it is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.language.cel import parse
from bot.language.types import (
    ANY,
    BOOL,
    NULL,
    NUMBER,
    TEXT,
    Enum,
    List,
    Record,
    Type,
    UnknownType,
    disjoint,
    examine_expression,
    from_schema,
    from_value,
    member,
    of_expression,
    parse_type,
    spell,
    union,
)  # fmt: skip

words = st.sampled_from(["text", "number", "bool", "null", "time", "file", "error", "any"]).map(parse_type)
keys = st.sampled_from(["a", "b", "c d", "ö"])


def grown(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        inner.map(List),
        st.builds(Record, st.dictionaries(keys, inner).map(lambda d: tuple(d.items())), st.booleans()),
        st.lists(st.sampled_from(["yes", "not now", 3, True, None]), min_size=1, unique=True).map(
            lambda v: Enum(tuple(v))
        ),
        st.lists(inner, min_size=2, max_size=3).map(union),
    )


types = st.recursive(words, grown, max_leaves=6)


@given(types)
def test_a_type_spelt_and_read_back_is_the_same(type_: Type) -> None:
    assert parse_type(spell(type_)) == type_


@given(types, types)
def test_disjoint_asks_both_ways_alike_and_any_is_never(a: Type, b: Type) -> None:
    assert disjoint(a, b) == disjoint(b, a)
    assert not disjoint(a, a)
    assert not disjoint(a, ANY)


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        ("text", "list<text>", True),
        ("text|null", "text", False),
        ("enum(approve, decline)", "enum(aproved)", True),
        ("enum(approve, decline)", "text", False),
        ("enum(approve)", "number", True),
        ("time", "text", False),
        ("list<text>", "list<number>", False),
        ("record{a: text}", "list<any>", True),
        ("file", "record", False),
    ],
)
def test_types_that_share_no_value_are_disjoint(a: str, b: str, apart: bool) -> None:
    assert disjoint(parse_type(a), parse_type(b)) is apart


def test_a_step_leads_to_a_members_type_or_nowhere() -> None:
    record = parse_type("record{url: text, rows: list<record{n: number}>}")
    assert member(record, "url") == TEXT
    assert member(record, "host") is None
    rows = member(record, "rows")
    assert rows is not None and member(member(rows, 0) or ANY, "n") == NUMBER
    assert member(rows, -1) is None
    assert member(parse_type("record{url: text, …}"), "host") == ANY
    assert member(TEXT, "x") is None
    assert member(union((TEXT, record)), "url") == TEXT


def test_a_schema_and_a_value_give_a_type() -> None:
    assert spell(from_value({"a": [1, "x"], "b": None})) == "record{a: list<number|text>, b: null}"
    schema = {"type": "object", "properties": {"u": {"type": ["string", "null"]}, "k": {"enum": ["a", "b"]}}}
    assert spell(from_schema(schema)) == "record{u: text|null, k: enum(a, b), …}"
    assert from_schema({"$ref": "http://x"}) == ANY == from_schema(True)
    assert from_schema({"type": "array", "items": {"type": "boolean"}}) == List(BOOL)


@pytest.mark.parametrize("text", ["", "texts", "list<", "record{a}", "list<text>>", "enum()"])
def test_what_spells_no_type_is_refused(text: str) -> None:
    with pytest.raises(UnknownType):
        parse_type(text)


NAMES = {
    "prs": parse_type("list<record{title: text, n: number}>"),
    "total": NUMBER,
    "content": TEXT,
    "scope": parse_type("enum(approve, decline)"),
    "x": ANY,
}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("prs.filter(p, p.n > 1)", "list<record{title: text, n: number}>"),
        ("prs.map(p, p.title)", "list<text>"),
        ("size(prs) + total", "number"),
        ("total > 3 ? 'a' : 1", "enum(a)|number"),
        ("prs[0].title", "text"),
        ("content + '!'", "text"),
        ("{'a': total, 'b': [1, 2]}", "record{a: number, b: list<number>}"),
        ("has(x.y) && !x.z", "bool"),
        ("x.y.z", "any"),
        ("content.split(',')", "list<text>"),
        ("prs.exists(p, p.n == 2)", "bool"),
        ("null", "null"),
    ],
)
def test_an_expression_has_a_type(text: str, type_: str) -> None:
    found, issues = examine_expression(parse(text), lambda name: NAMES.get(name, ANY))
    assert spell(found) == type_
    assert not issues


@pytest.mark.parametrize(
    ("text", "kind", "at"),
    [
        ("scope == 'aproved'", "never", "scope == 'aproved'"),
        ("scope in ['x', 'y']", "never", "scope in ['x', 'y']"),
        ("total == '5'", "never", "total == '5'"),
        ("prs[0].titel", "member", ".titel"),
        ("content.length", "member", ".length"),
        ("prs.filter(p, p.titel == 'x')", "member", ".titel"),
        ("total && true", "boolean", "total"),
        ("!content", "boolean", "content"),
        ("content + total", "operand", "content + total"),
        ("total > '5'", "operand", "total > '5'"),
        ("total.filter(t, true)", "list", "total"),
        ("size(total)", "list", "total"),
        ("total.startsWith('x')", "operand", "total"),
    ],
)
def test_what_cannot_succeed_in_an_expression_is_found(text: str, kind: str, at: str) -> None:
    _, issues = examine_expression(parse(text), lambda name: NAMES.get(name, ANY))
    assert [(i.kind, text[i.start : i.end]) for i in issues] == [(kind, at)]


def test_null_may_be_asked_for_anywhere() -> None:
    assert not examine_expression(parse("content == null || total != null"), lambda name: NAMES[name])[1]
    assert of_expression(parse("[]"), lambda name: ANY) == List(ANY)
    assert NULL != ANY
