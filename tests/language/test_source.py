import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.language.problems import Fix, Problem
from bot.language.source import mend


def problem(start: int, end: int, **more: object) -> Problem:
    return Problem(start=start, end=end, code="c", message="m", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pasted", "escaping", "text"),
    [
        ("\ufeff- a\r\n- b\rc", "plain", "- a\n- b\nc"),
        ("-\u00a0show\u00a0x", "plain", "- show x"),
        ("a &lt; b &amp;&amp; c &gt; d", "slack", "a < b && c > d"),
        ("&amp;lt;", "slack", "&lt;"),
        ("a &lt; b", "plain", "a &lt; b"),
        ("to <mailto:ana@acme.de|ana@acme.de>", "slack", "to ana@acme.de"),
        ("see <http://README.md|README.md>", "slack", "see README.md"),
        ("<https://x.y/z?a=1>", "slack", "https://x.y/z?a=1"),
        ("<https://x.y>", "plain", "<https://x.y>"),
        ("$<http://customer.email|customer.email>", "slack", "$customer.email"),
        ("```- a = list x```", "plain", "- a = list x"),
        ("```[ {} ]```", "plain", "[ {} ]"),
        ("Here:\n\n```json\n[]\n```\nThanks!", "plain", "[]\n"),
        ("~~~\n- show x\n~~~", "plain", "- show x\n"),
        ("````md\n- deploy\n  ```json\n  {}\n  ```\n````", "plain", "- deploy\n  ```json\n  {}\n  ```\n"),
        ("- deploy\n  ```json\n  {}\n  ```", "plain", "- deploy\n  ```json\n  {}\n  ```"),
        ('[{ body: "```x```" }]', "plain", '[{ body: "```x```" }]'),
        ("run_program({ program: [] });", "plain", "{ program: [] }"),
        ("```\nrun_program([])\n```", "plain", "[]"),
        ("`[{}]`", "plain", "[{}]"),
    ],
)
def test_what_chats_do_is_undone(pasted: str, escaping: str, text: str) -> None:
    assert mend(pasted, escaping).text == text  # type: ignore[arg-type]


def test_a_fence_with_a_command_outside_is_no_wrapping() -> None:
    pasted = "- files = glob x\n\n```\nnotes\n```"
    assert mend(pasted).text == pasted
    prose = "- as agreed\n\n```\n- show x\n```"
    assert mend(prose, is_command=lambda rest: rest.startswith("show")).text == "- show x\n"


@pytest.mark.parametrize(
    ("pasted", "escaping", "word"),
    [("\ufeff- a\r\n- fault", "plain", "fault"), ("x &lt; y\n&amp; fault", "slack", "fault"),
     ("see <mailto:a@b.c|a@b.c> fault", "slack", "fault"), ("Text\n```\n\n  fault\n```", "plain", "fault"),
     ("run_program(\n [fault] )", "plain", "fault"), ("<mailto:a@b.c|a@b.c>", "slack", "a@b.c")],
)  # fmt: skip
def test_a_place_is_that_of_the_pasted_text(pasted: str, escaping: str, word: str) -> None:
    source = mend(pasted, escaping)  # type: ignore[arg-type]
    start = source.text.index(word)
    line, column = source.position(start)
    lines = re.split(r"\r\n|\r|\n", pasted)
    assert lines[line - 1][column - 1 :].startswith(word)
    assert source.length(start, start + len(word)) == len(word)


def test_a_length_is_at_least_one_and_never_crosses_a_line_end() -> None:
    source = mend("ab\r\ncd")
    assert source.length(0, 5) == 2
    assert source.length(1, 1) == 1
    assert source.length(5, 5) == 1


def test_an_escaped_character_counts_as_it_was_pasted() -> None:
    source = mend("a &lt;&lt; b", "slack")
    assert source.length(2, 4) == len("&lt;&lt;")


def test_a_report_has_exactly_these_fields() -> None:
    source = mend("x &gt; y", "slack")
    found = source.report(problem(2, 3, mend="take `<`", fix=Fix(start=2, end=3, text="<")))
    assert found == {
        "line": 1, "column": 3, "length": 4, "code": "c", "message": "m", "mend": "take `<`",
        "fix": {"line": 1, "column": 3, "length": 4, "text": "&lt;"},
    }  # fmt: skip


def test_carets_follow_display_width_and_a_tab_is_one_space() -> None:
    source = mend("\t日本x")
    assert source.render([problem(1, 3), problem(3, 4)]).split("\n")[2::3] == ["  |  ^^^^", "  |      ^"]


def test_a_long_line_is_cut_around_the_fault() -> None:
    text = "a" * 150 + "FAULT" + "b" * 150
    _, excerpt, carets = mend(text).render([problem(150, 155)]).split("\n")
    assert excerpt[4] == "…" and excerpt.endswith("…") and len(excerpt) <= 106
    assert excerpt[carets.index("^") : carets.rindex("^") + 1] == "FAULT"


def test_bytes_that_are_no_text_are_a_problem_at_their_place() -> None:
    source = mend(b"- say\n> \xff\xfe!")
    (found,) = source.problems
    assert found.code == "text-encoding" and source.position(found.start) == (2, 3)


@pytest.mark.parametrize("pasted", ["- say hi\n- \0say", b"- say hi\n- \0say", "- say hi\n- \0s\0ay"])
def test_a_nul_is_a_problem_at_its_place(pasted: str | bytes) -> None:
    source = mend(pasted)
    (found,) = source.problems
    assert found.code == "text-encoding" and source.position(found.start) == (2, 3)
    assert "\0" not in source.pasted + source.text


@given(st.text(alphabet="a<>|&;ltgmp:/h\r\n\u00a0`\ufeff ", max_size=60), st.sampled_from(["plain", "slack"]))
def test_every_mended_character_has_its_place(pasted: str, escaping: str) -> None:
    source = mend(pasted, escaping)  # type: ignore[arg-type]
    assert len(source.origin) == len(source.text) + 1
    assert list(source.origin) == sorted(source.origin)
    for offset, char in enumerate(source.text):
        stood = source.pasted[source.origin[offset]]
        assert stood == char or (char == "\n" and stood == "\r") or (char == " " and stood == "\u00a0") or stood == "&"
