"""The exact script, whatever Slack's composer made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bot.language.read import read
from bot.ops.builtin import catalog
from channels.slack.pasted import Pasted, mentions, pasted
from tests.doubles import slack_composer as composer

BOT = "UBOT"
HERE = Path(__file__).parent
CAPTURED = json.loads((HERE / "pasted.json").read_text(encoding="utf-8"))
ROOT = Path(__file__).parents[3]


def nobody(kind: str, ident: str) -> str | None:
    return None


def back(message: dict[str, Any], names: Any = nobody) -> Pasted:
    return pasted(message, BOT, names)


def shape(text: str) -> list[str]:
    """What must be equal where the composer took blank lines and the indent of quotes away."""
    text = text.replace(":rocket:", "🚀")
    return [re.sub(r"^\s+>", ">", line.rstrip()) for line in text.split("\n") if line.strip()]


PAGE = """- prs = github_list_prs repo: acme/api
- open = let prs.filter(p, p.state == 'open')
- names = transform prs | map(.title)
- scope = ask @ana approve decline within 2d
  > Extend the pilot to include S/4 writes?
  - miss
    - say role:leads
      > No answer from Ana on the pilot.
- if scope == 'approve'
  - rollout = deploy service: s4 mode: writes
  - say
    > Rolling out: {rollout.url}
- else
  - say @ana
    > Understood, we leave it.
- swap = ask @jonas done
  > Replace the filter on line 2
- seated = expect camera.line_2 within 10m after swap
  > new filter seated, housing closed
- reviews = map open as pr
  - verdict = ask @lead ship hold
    > {pr.title}
- parallel
  - branch docs
    - say
      > docs
  - branch site
    - say
      > *bold* and _more_, `code` and ~gone~ at https://acme.de/x?a=1&b=2 <now> & 👍
"""
SCRIPT = re.compile(r"^(`{3,})script\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
JSON = """run_program({
  program: [
    { op: "ask", id: "scope", to: "ana@acme.de",
      params: { question: "Extend the pilot to S/4 & more?", choices: ["approve", "decline"] } },
    { op: "core.let", id: "long", params: { be: "scope.size() > 3 && scope.size() < 9" } }
  ]
})"""


def scripts() -> dict[str, str]:
    """Every example that people are shown: those that come along, those of the guide and of the golden pages."""
    found = {"language.md": PAGE, "json": JSON}
    found |= {file.name: file.read_text("utf-8") for file in sorted((ROOT / "bot/examples").glob("*.md"))}
    for file in (ROOT / "docs/language.md", *sorted((ROOT / "tests/rehearsals").glob("*.md"))):
        for n, match in enumerate(SCRIPT.finditer(file.read_text("utf-8"))):
            found[f"{file.name} {n + 1}"] = match[2]
    return found


SCRIPTS = scripts()


@pytest.mark.parametrize("name", CAPTURED["events"])
def test_every_form_that_was_seen_gives_the_same_script(name: str) -> None:
    event = CAPTURED["events"][name]
    if event.get("files"):
        assert back(event) == Pasted("", undone=False, mentioned=True)
        return
    got = back(event)
    assert shape(got.text) == shape(CAPTURED["script"]) and got.undone


@pytest.mark.parametrize("name", CAPTURED["events"])
def test_what_lost_nothing_comes_back_to_the_letter(name: str) -> None:
    if name in ("plain paste, composer left it as text", "in a code block", "mention, then a code block"):
        assert back(CAPTURED["events"][name]).text == CAPTURED["script"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_the_same_plan_as_text_as_code_and_as_rich_text(name: str) -> None:
    script = SCRIPTS[name]
    want = read(script, catalog())
    assert want.plan is not None
    for form in (composer.as_text, composer.as_code, composer.as_rich):
        got = back({"blocks": form(script, BOT)})
        assert got.mentioned
        plan = read(got.text, catalog())
        assert plan.plan == want.plan, form.__name__
        assert [p.code for p in plan.problems] == [p.code for p in want.problems], form.__name__


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_and_code_are_the_script_to_the_letter(name: str) -> None:
    script = SCRIPTS[name]
    assert back({"blocks": composer.as_text(script, BOT)}).text == script
    assert back({"blocks": composer.as_code(script)}).text == script


def test_a_language_after_the_fence_and_words_before_it_are_no_script() -> None:
    for language in ("markdown", "json", "md", "yaml"):
        got = back({"blocks": composer.as_code("- a = list x", BOT, words="please run", language=language)})
        assert got == Pasted("- a = list x", undone=True, mentioned=True)


def test_a_code_block_below_an_item_stays_where_it_is() -> None:
    item = composer.section([composer.text("- pay = deploy\n")])
    code = {"type": "rich_text_preformatted", "elements": [composer.text('json\n{"service": "s4"}')]}
    after = composer.section([composer.text("- show pay")])
    got = back({"blocks": composer.rich_text(item, code, after)})
    assert got.text == '- pay = deploy\n```json\n{"service": "s4"}\n```\n- show pay'


def test_only_what_was_changed_is_said_to_be() -> None:
    assert back({"blocks": composer.as_text("- a = list x", BOT)}) == Pasted("- a = list x", mentioned=True)
    assert back({"blocks": composer.as_code("- a = list x")}) == Pasted("- a = list x")
    assert back({"text": "- a = list x"}) == Pasted("- a = list x")
    assert back({"text": "a &lt; b"}) == Pasted("a < b", undone=True)
    assert back({"blocks": composer.as_rich("- a = list x")}).undone


def test_marks_that_became_formatting_are_put_back_around_words() -> None:
    bold = composer.section([composer.text("src/"), composer.text(" a ", bold=True), composer.text("b", italic=True)])
    assert back({"blocks": composer.rich_text(bold)}).text == "src/ *a* _b_"
    both = composer.section([composer.text("x", bold=True), composer.text("y", bold=True, code=True)])
    assert back({"blocks": composer.rich_text(both)}).text == "*x`y`*"


def test_a_numbered_list_goes_on_counting_after_a_quote() -> None:
    parts = composer.as_rich("1. ask @ana\n  > why\n2. show x")[0]["elements"]
    assert [part.get("offset") for part in parts] == [None, None, 1]
    assert back({"blocks": composer.rich_text(*parts)}).text == "1. ask @ana\n> why\n2. show x\n"


def test_somebody_picked_from_the_menu_is_written_as_scripts_name_them() -> None:
    names = {("user", "UANA"): "ana@acme.de", ("group", "S1"): "@oncall"}
    elements = [composer.text("- ask "), {"type": "user", "user_id": "UANA"}, composer.text(" and ")]
    elements += [{"type": "usergroup", "usergroup_id": "S1"}, {"type": "broadcast", "range": "here"}]
    message = {"blocks": composer.rich_text(composer.section(elements))}
    got = back(message, lambda kind, ident: names.get((kind, ident)))
    assert got.text == "- ask ana@acme.de and @oncall@here" and mentions(message) == ["UANA"]
    text = {"text": "<@UBOT> - ask <@UANA|ana> and <!subteam^S1> in <#C1|ops> <!here>"}
    got = back(text, lambda kind, ident: names.get((kind, ident)))
    assert got.text == "- ask ana@acme.de and @oncall in #ops @here" and mentions(text) == ["UBOT", "UANA"]


def test_a_mention_is_dropped_at_the_beginning_and_the_end_and_named_in_between() -> None:
    bot = {"type": "user", "user_id": BOT}
    for lead in ([bot, composer.text(" help")], [composer.text("help "), bot]):
        assert back({"blocks": composer.rich_text(composer.section(lead))}) == Pasted("help", mentioned=True)
    between = [composer.text("does "), bot, composer.text(" run?")]
    assert back({"blocks": composer.rich_text(composer.section(between))}).text == "does @waiton run?"
