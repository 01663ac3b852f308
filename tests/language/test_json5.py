import json
import re
from typing import Any

import pyjson5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.language import json5
from bot.language.tree import Node

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def value(text: str, **how: Any) -> Any:
    parsed = json5.read(text, **how)
    assert not parsed.problems, parsed.problems
    (root,) = parsed.roots
    return root.plain()


def codes(text: str) -> list[str]:
    return [problem.message for problem in json5.read(text).problems]


@given(VALUES)
def test_json_reads_as_json_does(data: Any) -> None:
    assert value(json.dumps(data, ensure_ascii=False)) == data
    assert value(json.dumps(data, indent=1)) == data


SNIPPETS = ["{", "}", "[", "]", ":", ",", "a", "'b'", '"c"', "1", "-2.5", "0x1F", ".5", "5.", "+3", "true", "null", " ", "\n",
            "// c\n", "/* c */", "'\\n'", '"\\x41"', '"\\u0042"', "$d", "_e"]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(SNIPPETS), max_size=12).map("".join))
def test_what_another_reader_takes_is_taken_the_same(text: str) -> None:
    try:
        expected = pyjson5.decode(text)
    except pyjson5.Json5Exception:
        return
    if re.search(r"\.\d*\.|\d[+.]\d*[+-]|\d_", text):
        return  # pyjson5 takes numbers with two points, and with a low line inside
    parsed = json5.read(text)
    if any(problem.code == "key-twice" for problem in parsed.problems):
        return
    assert [root.plain() for root in parsed.roots] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a: 'x', b: [1, 2,], }", {"a": "x", "b": [1, 2]}),
        ("{“op”: „say“, «id»: ‘it’s’}", {"op": "say", "id": "it’s"}),
        ("[“he said “hi” twice”]", ["he said “hi” twice"]),
        ('["“kept”"]', ["“kept”"]),
        ("[5.0, 0x10, 1e3, 1.5]", [5, 16, 1000, 1.5]),
        (r'["\ud83d\ude80", "a\
b"]', ["🚀", "ab"]),
        ('{"$a": "$x ${y} $$"}', {"$a": "$x ${y} $$"}),
    ],
)  # fmt: skip
def test_json5_and_what_chats_make_of_it_are_read(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected and json.dumps(found) == json.dumps(expected)


def test_a_bare_word_or_duration_is_a_text_where_words_are_taken() -> None:
    text = "{max: 3, backoff: 2s, to: [role:x, @ana, https://a.b/c], n: 4, ok: true}"
    expected = {"max": 3, "backoff": "2s", "to": ["role:x", "@ana", "https://a.b/c"], "n": 4, "ok": True}
    assert value(text, words=True) == expected


def test_every_key_and_value_has_its_place() -> None:
    text = "{ op: \"say\", 'b': [1, “x\\n y”] }"
    (root,) = json5.read(text).roots
    op, b = root.members["op"], root.members["b"]
    assert text[op.start : op.end] == "op" and text[op.value.start : op.value.end] == '"say"'
    assert text[b.start : b.end] == "'b'" and text[b.value.start : b.value.end] == "[1, “x\\n y”]"
    inner: Node = b.value.items[1]
    assert inner.value == "x\n y" and text[inner.offset(3)] == "y" and text[inner.offset(1)] == "\\"


def test_one_value_is_read_from_within_a_text() -> None:
    parsed = json5.read("key: [a, b] rest", 5, words=True, one=True)
    assert parsed.roots[0].plain() == ["a", "b"] and parsed.end == 11


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ('{"a": 1, "a": 2}', ["`a` stands twice in one object"]),
        ("[{a: 1} {b: 2} {c: 3}]", ["a comma is missing before `{`"] * 2),
        ("{a: yes, b: no}", ["`yes` stands without quotes", "`no` stands without quotes"]),
        ("[" * 300, ["brackets nest more than 200 deep here"]),
        ("[1e999]", ["`1e999` is beyond what a number holds"]),
        ("{a: [1, 2}", ["`[` is not closed before this `}`"]),
    ],
)
def test_several_faults_are_told_at_once_and_each_once(text: str, messages: list[str]) -> None:
    assert codes(text) == messages


@pytest.mark.parametrize("more", ["", ", b: 2", "\n"])
def test_words_that_were_meant_as_one_text_are_told_once_and_mended_by_quotes(more: str) -> None:
    text = f"[{{label: Your best paper{more}}}]"
    parsed = json5.read(text, words=True)
    (problem,) = parsed.problems
    assert problem.message == "`Your best paper` is a text of several words, which stands in quotes here"
    assert problem.fix is not None and text[problem.start : problem.end] == "Your best paper"
    mended = text[: problem.fix.start] + problem.fix.text + text[problem.fix.end :]
    again = json5.read(mended, words=True)
    assert not again.problems and again.roots[0].plain() == parsed.roots[0].plain()


def test_a_long_program_is_read_whole() -> None:
    ops = ",".join(f'{{op:"core.let",id:"v{i}",params:{{be:"{i} + 1", x:[1,2.5,\'a\\nb\']}}}}' for i in range(4600))
    assert not json5.read(f"[{ops}]").problems
