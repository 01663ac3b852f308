"""A script is the same whatever a client made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.pasted import Pasted, pasted
from tests.doubles.telegram import composed, units

EXAMPLES = sorted((Path(__file__).parents[3] / "bot/examples").glob("*.md"))
SCRIPT = "- files = glob core/src/*.rs\n- yes = keep answers YES\n  - say ana@acme.de\n    > Go 🚀 and see README.md\n- show yes"


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def test_addresses_and_links_change_nothing() -> None:
    marked = [entity("email", SCRIPT.index("ana@"), 11), entity("url", units(SCRIPT[: SCRIPT.index("README")]), 9)]
    assert pasted(SCRIPT, marked) == Pasted(SCRIPT, False)


def test_a_code_block_that_is_all_of_a_message_is_the_script() -> None:
    assert pasted(SCRIPT, [entity("pre", 0, units(SCRIPT), language="markdown")]) == Pasted(SCRIPT, True)
    said = f"@Waiton_bot\n{SCRIPT}"
    assert pasted(said, [entity("pre", 12, units(SCRIPT))], aside="@waiton_bot").text == SCRIPT


def test_a_code_block_beside_other_words_gets_its_fence_back() -> None:
    said = "- x = tool\n{a: 1}\nafter"
    back = pasted(said, [entity("pre", 11, 6, language="json")]).text
    assert back == "- x = tool\n```json\n{a: 1}\n```\nafter"


def test_marks_are_put_back_where_they_stood_counted_in_utf_16_units() -> None:
    back = pasted("- 🚀 = glob src//a//*.rs", [entity("bold", 16, 3)])
    assert back == Pasted("- 🚀 = glob src/**/a/**/*.rs", True)


def test_marks_within_marks_open_and_close_in_order() -> None:
    assert pasted("abc", [entity("bold", 0, 3), entity("italic", 0, 3)]).text == "**__abc__**"
    assert pasted("abcd", [entity("bold", 0, 2), entity("code", 2, 2)]).text == "**ab**`cd`"
    assert pasted("abcd", [entity("bold", 0, 4), entity("italic", 1, 2)]).text == "**a__bc__d**"


def test_nothing_is_put_back_inside_a_code_block() -> None:
    assert pasted("a b", [entity("pre", 0, 3), entity("bold", 0, 1)]).text == "a b"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_survives_a_client(path: Path) -> None:
    text = path.read_text("utf-8")
    typed, entities = composed(text)
    assert pasted(typed, entities).text == text


@given(st.text(alphabet="ab \n*_`~>-🚀é", max_size=60))
def test_whatever_a_client_takes_out_is_put_back(text: str) -> None:
    typed, entities = composed(text)
    assert pasted(typed, entities).text == text
