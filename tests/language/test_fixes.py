"""Every mend that replaces something: applied, the text is exactly the one that was meant."""

from __future__ import annotations

import html

import pytest

from bot.language.script import Examined, examine
from tests.language.test_checks import TOOLS, WORLD

RIGHT, WRONG = "scope", "scpe"


def applied(text: str, found: Examined) -> str:
    """The text with every fix, last first."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
    fixes = [report["fix"] for report in found.reports() if report["fix"]]
    for fix in sorted(fixes, key=lambda fix: (fix["line"], fix["column"]), reverse=True):
        at = starts[fix["line"] - 1] + fix["column"] - 1
        text = text[:at] + fix["text"] + text[at + fix["length"] :]
    return text


_BOUND = "- scope = look x: 1\n"
_LOOK = "{op:'look',id:'scope',params:{x:1}}"


def _json(*, body: str = "x", **more: str) -> str:
    extra = "".join(f",{key}:{value}" for key, value in more.items())
    return f'[{_LOOK},\n {{op:"say",body:"{body}"{extra}}}]'


PLACES = [
    *(f"{_BOUND}- say\n  > {said}" for said in (
        "{NAME}", "{NAME}, ok", "a {NAME}", "{NAME?}", "{NAME?}x", "{NAME.y[0]}", "{NAME.y[0]}!", "{NAME[0]}{NAME[1]}",
        "{NAME.y?.z}", "{NAME[\"k\"]}", "{{x}} {NAME}", "$ {NAME} }", "one\n  > {NAME}\n  > {NAME}", "{ops.NAME.state}",
        "寿{NAME}寿", "{now}{NAME}{now}",
    )),
    *(f"{_BOUND}{item}" for item in (
        "- show NAME", "- show {NAME}", "- n = count NAME", "- n = count NAME.y", "- n = count {NAME.y}", "- b = first 2 NAME",
        "- b = keep NAME x", "- b = let NAME", "- b = let size(NAME) + 1", "- b = let [NAME.x, 'NAM'][0]",
        "- b = let ops.NAME.state", "- b = transform NAME | .", "- if NAME == 1\n  - say\n    > x",
        "- map NAME as one\n  - show one", "- say {NAME}\n  > x", "- say after NAME\n  > x", "- say after {NAME}\n  > x",
        "- look a: {NAME}", "- look a: \"b {NAME}\"", "- look a: [$NAME, b]", "- look a: {b: $NAME}",
        "- look\n  ```json\n  {a: \"$NAME\"}\n  ```", "- b = list {NAME} a{NAME}b", "- save {NAME}.txt scope", "- save x NAME",
    )),
    *(_json(body=said) for said in (
        "$NAME", "$NAME, ok", "a $NAME", "${NAME}", "${NAME}, ok", "${NAME}x", "${NAME?}", "${NAME?}y", "$NAME.y[0]", "${NAME.y[0]}",
        "${NAME.y[0]}z", "${ NAME }!", "$NAME$NAME", "$$x $NAME", "\\u0041$NAME\\n", "\\\"$NAME\\\"", "${ops.NAME.state}", "$ops.NAME.state",
    )),
    _json(after="'NAME'"), _json(after="['NAME', 'scope']"), _json(to="'$NAME'"), _json(to="['@ana','${NAME}']"),
    f"[{_LOOK}, {{op:'core.let',be:'NAME'}}]", f"[{_LOOK}, {{op:'core.let',be:\"size(NAME) + \\\"a\\\".size()\"}}]",
    f"[{_LOOK}, {{op:'core.let',be:'NAME.x == 1'}}]", f"[{_LOOK}, {{op:'look',params:{{a:['$NAME',{{b:'${{NAME}}c'}}]}}}}]",
]  # fmt: skip


@pytest.mark.parametrize("text", PLACES)
def test_a_wrong_name_is_replaced_by_exactly_the_right_one(text: str) -> None:
    right, wrong = text.replace("NAME", RIGHT), text.replace("NAME", WRONG)
    assert not examine(right, TOOLS, WORLD).problems, examine(right, TOOLS, WORLD).rendered()
    found = examine(wrong, TOOLS, WORLD)
    assert found.problems
    assert applied(wrong, found) == right, found.rendered()
    for report in found.reports():
        line = wrong.splitlines()[report["line"] - 1]
        assert line[report["column"] - 1 :][: report["length"]] == WRONG, found.rendered()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("- xs = list a\n- shw xs", "- xs = list a\n- show xs"),
        ("- shw xs", "- show xs"),
        ("- deplyo service: api", "- deploy service: api"),
        ("- a = aks @ana yes\n  > Ok?", "- a = ask @ana yes\n  > Ok?"),
        ("[{op: 'aks', params: {question: 'x'}}]", "[{op: 'ask', params: {question: 'x'}}]"),
        ("[{op: 'let', params: {be: '1'}}]", "[{op: 'core.let', params: {be: '1'}}]"),
        ('[{op: "ask", parms: {question: "x"}}]', '[{op: "ask", params: {question: "x"}}]'),
        ('[{op: "ask", "parms": {"question": "x"}}]', '[{op: "ask", "params": {"question": "x"}}]'),
        ("[{op: 'deploy', parms: {service: 'a'}}]", "[{op: 'deploy', params: {service: 'a'}}]"),
        ("[{op: 'ask', params: {queston: 'x'}}]", "[{op: 'ask', params: {question: 'x'}}]"),
        ("[{op: 'ask', to: '@ana', question: 'x', 'withn': '2d'}]", "[{op: 'ask', to: '@ana', question: 'x', 'within': '2d'}]"),
        ("[{op: 'expect', evidence: 'camera.line_2', withn: '2d'}]", "[{op: 'expect', evidence: 'camera.line_2', within: '2d'}]"),
        ("[{op: 'deploy', params: {service: 'a'}, aftr: []}]", "[{op: 'deploy', params: {service: 'a'}, after: []}]"),
        ("[{op: 'core.if', cond: 'true', thn: [{op: 'say', body: 'x'}]}]", "[{op: 'core.if', cond: 'true', then: [{op: 'say', body: 'x'}]}]"),
        ("- expect camera.line_2 withn 2d", "- expect camera.line_2 within 2d"),
        ("- expect camera.line_2 withn: 2d", "- expect camera.line_2 within: 2d"),
        ("- deploy servic: api", "- deploy service: api"),
        ("- deploy service: api mode: fats", "- deploy service: api mode: fast"),
        ("- say rol:leads\n  > x", "- say role:leads\n  > x"),
        ("- ask rolle:leads yes no\n  > x", "- ask role:leads yes no\n  > x"),
        ("- paralel\n  - branch a\n    - say\n      > x", "- parallel\n  - branch a\n    - say\n      > x"),
        ("- iff true\n  - say\n    > x\n- else\n  - say\n    > y", "- if true\n  - say\n    > x\n- else\n  - say\n    > y"),
        ("[{opp: 'say', body: 'x'}]", "[{op: 'say', body: 'x'}]"),
        ("{progam: [{op: 'say', body: 'x'}]}", "{program: [{op: 'say', body: 'x'}]}"),
        ("[{op: 'ask', to: '@ana', question: 'x', within: '1d', onMiss: 'repln'}]", "[{op: 'ask', to: '@ana', question: 'x', within: '1d', onMiss: 'replan'}]"),
        ("[{op: 'look', onError: 'contine'}]", "[{op: 'look', onError: 'continue'}]"),
        ("---\nnaem: x\n---\n- say\n  > x", "---\nname: x\n---\n- say\n  > x"),
        (html.escape('[{"op": "aks", "question": "it\'s <b>"}]'), html.escape('[{"op": "ask", "question": "it\'s <b>"}]')),
    ],
)  # fmt: skip
def test_one_misspelling_is_one_problem_with_its_replacement(wrong: str, right: str) -> None:
    found = examine(wrong, TOOLS, WORLD)
    assert len(found.problems) == 1, found.rendered()
    assert applied(wrong, found) == right, found.rendered()


def test_a_tools_parameter_beside_its_params_is_one_problem() -> None:
    for text in ("[{op: 'deploy', service: 'api'}]", "[{op: 'deploy', servce: 'api', params: {replicas: 2}}]"):
        found = examine(text, TOOLS, WORLD)
        assert [p.code for p in found.problems] == ["unknown-field"], found.rendered()
        assert (found.problems[0].mend or "").startswith("put it into `params`")


def test_what_is_far_from_every_name_has_no_replacement() -> None:
    for text in ("- let foo(1)", "- a = xyz 1\n- say\n  > x", "[{op: 'ask', zzz: 1, question: 'x'}]"):
        (problem,) = examine(text, TOOLS, WORLD).problems
        assert problem.fix is None
        assert "did you mean" not in (problem.mend or "")


def test_choices_that_share_a_word_before_their_colon_are_no_addressee() -> None:
    for text in ("- ask rule:1 rule:2\n  > x", "- ask wed:10 thu:10\n  > x"):
        assert not examine(text, TOOLS, WORLD).problems


def test_a_text_that_came_html_escaped_is_read_as_what_it_says() -> None:
    found = examine(html.escape('[{"op": "say", "body": "1 < 2 & it\'s"}]'), TOOLS, WORLD)
    assert not found.problems, found.rendered()
    assert found.plan is not None
    assert found.plan.program.ops[0].params["body"] == "1 < 2 & it's"
    kept = examine("- say\n  > write &quot;x&quot;", TOOLS, WORLD).plan
    assert kept is not None
    assert kept.program.ops[0].params["body"] == "write &quot;x&quot;"
