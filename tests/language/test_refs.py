import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.errors import OpError
from bot.domain.values import ErrorValue
from bot.language import refs
from bot.language.refs import Ref, Step


def names(text: str) -> list[str]:
    return [ref.text for ref in refs.parse(text).refs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a", ["a"]),
        ("See you at $pick.event.text.", ["pick.event.text"]),
        ("${host}.example.com", ["host"]),
        ("Is this for $customer.name?", ["customer.name"]),
        ("$a.b?", ["a.b?"]),
        ("[${user.mail?}] [${user.address?.city?}]", ["user.mail?", "user.address?.city?"]),
        ("$a?.b and $c?[0]", ["a?.b", "c?[0]"]),
        ("$5, $$a, $, $$", []),
        ("$$$a", ["a"]),
        ("${not a path} ${1}", []),
        ("$xs[2].name$y", ["xs[2].name", "y"]),
        ('$a["two words"]', ['a["two words"]']),
    ],
)
def test_a_reference_ends_where_the_path_syntax_ends(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_steps_say_what_is_optional() -> None:
    (ref,) = refs.parse("$a?.b[0]?").refs
    assert ref == Ref("a", (Step("b"), Step(0, True)), True, 0, 9, "a?.b[0]?")


def test_a_whole_reference_keeps_the_type_and_others_are_written_into_the_text() -> None:
    held = {"n": 3, "none": None, "xs": ["a", {"b": True}], "bad": ErrorValue("no")}

    def lookup(ref: Ref) -> object:
        return refs.follow(ref, held[ref.name])

    given_ = {"n": "$n", "text": "n=$n [$none] $xs $bad", "$n": ["$xs[1].b", "$$n"]}
    assert refs.fill(given_, lookup) == {
        "n": 3,
        "text": 'n=3 [] ["a",{"b":true}] (error: no)',
        "$n": [True, "$n"],
    }


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("$xs[2]", ["a", "b"], "`xs[2]` is not there: `xs` has 2 elements"),
        ("$user.mail", {"name": "A"}, "`user.mail` is not there: `user` has name"),
        ("$user.a.b", {"a": None}, "`user.a.b` is not there: `user.a` is null"),
        ("$xs[-1]", ["a"], "`xs[-1]` is not there: indexes count from 0, and negative ones are not read"),
        ("$t.x", "word", "`t.x` is not there: `t` is text"),
    ],
)
def test_an_absent_path_names_itself_and_what_was_there(text: str, value: object, message: str) -> None:
    with pytest.raises(OpError) as caught:
        refs.follow(refs.parse(text).refs[0], value)
    assert str(caught.value) == message


def test_a_question_mark_makes_an_absent_step_null() -> None:
    assert refs.follow(refs.parse("$user.mail?").refs[0], {}) is None
    assert refs.follow(refs.parse("$user?.mail").refs[0], None) is None
    assert refs.follow(refs.parse("$user.a?.b.c").refs[0], {"x": 1}) is None
    assert refs.follow(refs.parse("$user.a?.b").refs[0], {"a": {"b": 2}}) == 2


def test_references_of_nested_data_come_in_written_order_and_not_from_keys() -> None:
    found = list(refs.refs({"a": ["$x", {"$k": "hi $y and $z"}], "b": "$w"}))
    assert [(where, ref.name) for where, ref in found] == [
        (("a", 0), "x"),
        (("a", 1, "$k"), "y"),
        (("a", 1, "$k"), "z"),
        (("b",), "w"),
    ]


@pytest.mark.parametrize(
    ("markdown", "json"),
    [
        ("{it}", "$it"),
        ("Read {it}.", "Read $it."),
        ("{it}.md", "${it}.md"),
        ('{"ok": true} {ts,js}', '{"ok": true} {ts,js}'),
        ("{{raw", "{raw"),
        ("{{a}} }}", "{a} }}"),
        ("costs $5, $x", "costs $5, $$x"),
        ("{a.b?}", "$a.b?"),
        ("{{{n}}}", "{$n}"),
        ("${n}", "$$$n"),
    ],
)
def test_braces_become_references_and_dollars_stay_plain(markdown: str, json: str) -> None:
    read = refs.brace_parse(markdown)
    assert read.value == json
    assert len(read.offsets) == len(json) + 1 and read.offsets[-1] == len(markdown)


PIECES = st.lists(st.sampled_from(["$", "{", "}", "a", "b.c", "?", ".", "[0]", " ", "5", "$x", "${y}", "{z}"]))


@given(PIECES.map("".join))
def test_the_canonical_form_says_the_same(text: str) -> None:
    def said(t: str) -> list[object]:
        return [p if isinstance(p, str) else p.text for p in refs.parse(t).parts]

    once = refs.canonical(text)
    assert said(once) == said(text)
    assert refs.canonical(once) == once
    spelt = refs.respelt(text)
    assert spelt.value == once and len(spelt.offsets) == len(once) + 1
    assert list(spelt.offsets) == sorted(spelt.offsets)


@given(PIECES.map("".join))
def test_what_braces_say_is_said_back(text: str) -> None:
    value = refs.brace_parse(text).value
    assert refs.canonical(value) == value
    back = refs.to_braces(value)
    assert back is None or refs.brace_parse(back).value == value


@given(st.text())
def test_a_literal_refers_to_nothing(text: str) -> None:
    assert refs.parse(refs.literal(text)).parts == ((text,) if text else ())
