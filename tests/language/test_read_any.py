import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.catalog import OpSpec
from bot.language.read import is_script, read
from bot.ops.builtin import catalog

CATALOG = catalog([OpSpec(name="deploy", summary="", kind="effect", shape="deploy key: value", tool=True)])
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*"))

PIECES = st.lists(
    st.sampled_from(
        [
            "- ",
            "  - ",
            "\t* ",
            "1. ",
            "\n",
            "\n\n",
            "> ",
            "  > ",
            "```",
            "```json\n",
            "---\n",
            "ask ",
            "say ",
            "if ",
            "else",
            "miss",
            "error",
            "branch ",
            "parallel",
            "map ",
            "x = ",
            "let ",
            "repeat 3 until ",
            "transform x | ",
            "@ana ",
            "within 2d ",
            "by Fri ",
            "retry: {max: 2} ",
            "key: [1, {a",
            "}",
            "]",
            '"',
            "'",
            "“",
            "{x}",
            "{{",
            "}}",
            "$x",
            "${",
            "\\",
            ",",
            ":",
            "\u00a0",
            "\r\n",
            "&lt;",
            "<mailto:a@b.c|a@b.c>",
            "run_program(",
            ")",
            '{ op: "say", ',
            "params: {",
            "after a, b ",
            "deploy ",
            "list a, b ",
            "first five x ",
            "else if y",
            "expect s at {x} + 3d 09:00",
            "\u200b",
            "\ufeff",
            "# h",
            "inputs:\n  a: &x 1\n  b: *x\n",
        ]
    ),
    max_size=40,
).map("".join)


def holds(text: str | bytes, escaping: str = "plain") -> None:
    found = read(text, CATALOG, escaping)  # type: ignore[arg-type]
    assert found.problems or found.plan is not None
    for problem in found.problems:
        report = found.source.report(problem)
        assert report["line"] >= 1 and report["column"] >= 1 and report["length"] >= 1
        json.dumps(report).encode()
    found.source.render(found.problems).encode()


@settings(max_examples=200, deadline=None)
@given(PIECES, st.sampled_from(["plain", "slack", "telegram"]))
def test_no_script_like_text_makes_the_reader_raise(text: str, escaping: str) -> None:
    holds(text, escaping)
    is_script(text, CATALOG)


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    holds(text)


@settings(max_examples=100, deadline=None)
@given(st.binary())
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    holds(data)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_every_text_of_the_corpus_is_read_or_refused(path: Path) -> None:
    holds(path.read_bytes())
    holds(path.read_bytes(), "slack")


LONG = {
    "brackets": "[" * 200_000,
    "keys": '{"a":' * 50_000,
    "objects": "[{" * 100_000,
    "quotes": '"' * 200_000,
    "curly quotes": "[" + "“a " * 60_000,
    "comments": "[" + "/* " * 80_000,
    "backslashes": '["' + "\\" * 200_000,
    "fences": "- say\n" + "```\n" * 60_000,
    "nesting": "\n".join("  " * n + "- if x" for n in range(480)),
    "items": "- say\n> a\n" * 2_500,
    "spaces": "- say " + " " * 200_000 + "x",
    "braces": "- ask\n  > " + "{a." * 80_000,
    "dollars": '[{op: "say", body: "' + "$a." * 60_000 + '"}]',
    "links": "<http://" * 30_000,
    "equals": "- " + "a=" * 100_000,
    "dashes": "-" * 200_000,
    "dashes apart": "- " * 100_000,
    "quoted words": "- list " + "'a" * 100_000,
    "words in quotes": "- list " + "'a " * 80_000,
    "words in curly quotes": "- list " + "“a “b” " * 40_000,
    "expression": "- let a" + " " * 200_000 + "\n  b",
    "unclosed lines": "[" + '"a   ' * 50_000,
    "front matter": "---\n" + "a: " * 5_000 + "\n---\n- say\n",
    "front fences": "---\n" * 60_000,
    "keyed": "- deploy " + "a: {" * 50_000,
    "misspelt": "- xsay\n" * 2_500,
}


@pytest.mark.parametrize("name", LONG)
def test_nothing_makes_the_reader_hang(name: str) -> None:
    """What is not linear here does not end within the suite's bound of a test."""
    holds(LONG[name])
    holds(LONG[name], "slack")


def test_a_text_beyond_the_limit_is_refused_at_once() -> None:
    found = read("x" * (256 * 1024 + 1), CATALOG)
    assert [problem.code for problem in found.problems] == ["limit-text"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- files = glob *.md", True),
        ("[{op: 'say'}]", True),
        ("---\nname: x\n---\n", True),
        ("hello", False),
        ("- milk\n- bread", False),
        ("- milk\n- show x", True),
        ("run_program([])", True),
        ("```\n- show x\n```", True),
        ("", False),
        ("[x] done", False),
        ("[milk](https://a.b) is out", False),
    ],
)
def test_a_text_is_a_script_when_it_begins_as_one_or_an_item_reads_as_a_command(text: str, expected: bool) -> None:
    assert is_script(text, CATALOG) is expected
