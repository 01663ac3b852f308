from typing import Any

import pytest

from bot.domain.catalog import OpSpec
from bot.domain.plan import Default, Op, Region, Retry
from bot.language.read import Read, read
from bot.ops.builtin import catalog

SCHEMA = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "level": {"type": "integer"}, "dry": {"type": "boolean"}},
}
CATALOG = catalog(
    [
        OpSpec(name="deploy", summary="", kind="effect", shape="deploy key: value", tool=True),
        OpSpec(name="tune", summary="", kind="effect", shape="tune key: value", tool=True, schema=SCHEMA),
    ]
)


def script(text: str) -> Read:
    found = read(text, CATALOG)
    assert not found.problems, found.source.render(found.problems)
    return found


def ops(text: str) -> tuple[Op, ...]:
    found = script(text).plan
    assert found is not None
    return found.program.ops


def one(text: str) -> Op:
    (op,) = ops(text)
    return op


def codes(text: str) -> list[str]:
    return [problem.code for problem in read(text, CATALOG).problems]


@pytest.mark.parametrize("marker", ["-", "*", "+", "•", "◦", "▪", "–", "1.", "12)", "- [ ]", "- [x]"])
def test_every_marker_begins_an_item(marker: str) -> None:
    assert one(f"{marker} n = glob a").id == "n"


@pytest.mark.parametrize(
    "text",
    [
        "- `n = glob a`",
        "-\tn = glob a",
        "-   n=glob a",
        "  - n = glob   a  ",
        "# T\n\nSome words.\n- n = glob a\n---\nmore",
    ],
)
def test_what_is_around_a_command_is_ignored(text: str) -> None:
    assert (one(text).id, one(text).params) == ("n", {"pattern": "a"})


@pytest.mark.parametrize(
    ("line", "op", "params"),
    [
        ("glob src/**/*.py", "glob", {"pattern": "src/**/*.py"}),
        ('list a "b c" \'d "e"\' “f g” "h\\"i\\\\"', "list", {"items": ["a", "b c", 'd "e"', "f g", 'h"i\\']}),
        ("list it's {who} '{who}' {{raw", "list", {"items": ["it's", "$who", "$who", "{raw"]}),
        ('read "notes/{day}.md"', "read", {"path": "notes/${day}.md"}),
        ("chunk text 20", "chunk", {"text": "$text", "n": 20}),
        ("first n files", "first", {"n": "$n", "list": "$files"}),
        ("count {a.b[0]}", "count", {"list": "$a.b[0]"}),
        ("count pr.files", "count", {"list": "$pr.files"}),
        ("keep files YES in answers", "keep", {"list": "$files", "text": "YES", "in": "$answers"}),
        ("save out/{n}.txt answers", "save", {"path": "out/${n}.txt", "value": "$answers"}),
        ("budget 0", "budget", {"calls": 0}),
        ("model opus", "model", {"name": "opus"}),
        ("let who in vips ? 'a' : b", "core.let", {"be": "who in vips ? 'a' : b"}),
        ("core.let 1", "core.let", {"be": "1"}),
        ("transform xs | map(. | x) | length", "core.transform", {"from": "$xs", "jq": "map(. | x) | length"}),
        ("show [a, b, 2]", "show", {"value": ["a", "b", 2]}),
        ("expect clock in: 20s", "expect", {"evidence": "clock", "in": "20s"}),
        ("expect clock at {start} + 14d 09:00", "expect", {"evidence": "clock", "at": "$start + 14d 09:00"}),
        ('expect [a.b, c] where: "event.x > $1"', "expect", {"evidence": ["a.b", "c"], "where": "event.x > $1"}),
        ("run nightly repo: {repo} n: 3", "run", {"script": "nightly", "inputs": {"repo": "$repo", "n": 3}}),
    ],
)
def test_arguments_stand_in_their_places(line: str, op: str, params: dict[str, Any]) -> None:
    found = one(f"- x = {line}")
    assert (found.op, found.params) == (op, params)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("4.10", "4.10"),
        ("007", "007"),
        ("3", 3),
        ("0.5", 0.5),
        ("-2", -2),
        ("1e3", "1e3"),
        ("true", True),
        ("null", None),
        ('"12"', "12"),
        ("2026-06-08", "2026-06-08"),
        ("{x}", "$x"),
        ("a{x}b", "a${x}b"),
        ("{max: 3, of: 2s}", {"max": 3, "of": "2s"}),
        ("[$x, {y}]", None),
        ("$x", "$$x"),
        ('["$x", "{y}"]', ["$x", "{y}"]),
    ],
)
def test_a_bare_scalar_is_what_it_prints_back_as(said: str, value: Any) -> None:
    if said == "[$x, {y}]":
        assert codes(f"- deploy key: {said}")
        return
    assert one(f"- deploy key: {said}").params == {"key": value}


def test_a_bare_scalar_has_its_schemas_type() -> None:
    assert one("- tune port: 8080 level: 2 dry: true").params == {"port": "8080", "level": 2, "dry": True}


def test_the_first_word_is_the_addressee_if_it_looks_like_one() -> None:
    quote = "\n  > ok?"
    assert (one(f"- ask @ana yes no{quote}").to, one(f"- ask yes no{quote}").to) == ("@ana", None)
    assert one(f'- ask @"Two Words" a{quote}').to == '@"Two Words"'
    assert one(f"- ask {{who}} a{quote}").to == "$who"
    assert one(f"- ask agent a{quote}").params["choices"] == ["agent", "a"]
    assert one(f"- ask yes no to agent{quote}").to == "agent"
    assert one(f"- ask [@ana, role:x] yes{quote}").to == ["@ana", "role:x"]
    assert one(f"- ask @ana {{slots}}{quote}").params["choices"] == "$slots"


def test_keywords_end_the_choices_and_quoted_ones_do_not() -> None:
    op = one('- cost = ask @ana "within budget" stop within 36h after a, b need 2 reason required\n  > ok?')
    assert op.params == {"choices": ["within budget", "stop"], "need": 2, "reason": "required", "question": "ok?"}
    assert (op.within, op.after) == ("36h", ("a", "b"))
    assert one("- ask @ana by Fri 17:00 need: all\n  > ok?").by == "Fri 17:00"


def test_fields_take_keys_too() -> None:
    op = one("- deploy onError: continue retry: {max: 3, backoff: 2s} after: x?")
    assert (op.on_error, op.retry, op.after) == ("continue", Retry(max=3, backoff="2s"), ("x?",))
    assert one("- deploy onError: {default: [1]}").on_error == Default(value=[1])


@pytest.mark.parametrize(
    ("below", "question"),
    [
        ("  > one", "one"),
        ("> one\n>   two \n>\n> three", "one\n  two \n\nthree"),
        ("\n> one\n\n   > two", "one\n\ntwo"),
        ("  > one\n  two", "one\ntwo"),
        ('  > {"ok": true} {x} $5 {{y}}', '{"ok": true} $x $5 {y}'),
        ("  >one\n  > - show x", "one\n- show x"),
    ],
)
def test_a_quote_is_the_items_text_exactly_as_written(below: str, question: str) -> None:
    assert one(f"- ask @ana\n{below}").params["question"] == question


def test_a_line_directly_below_an_item_continues_it() -> None:
    assert one("- n = let a +\n    b +\n    c").params == {"be": "a + b + c"}
    assert one("- list a\n  b").params == {"items": ["a", "b"]}


def test_a_fenced_block_gives_the_remaining_parameters() -> None:
    text = """- d = deploy service: s4
  ```json
  { window: 10m, "note": "for $region.", shape: "{region}", onError: "continue" }
  ```
- ask @ana
  > When?
  ```json
  { fields: [{ name: day, type: date }], within: 2d }
  ```"""
    deploy, ask = ops(text)
    assert deploy.params == {"service": "s4", "window": "10m", "note": "for $region.", "shape": "{region}"}
    assert deploy.on_error == "continue"
    assert (ask.within, ask.params["fields"]) == ("2d", [{"name": "day", "type": "date"}])


def test_a_block_of_another_language_is_a_comment() -> None:
    assert one("- deploy a: 1\n  ```python\n  - show x\n  ```").params == {"a": 1}


def test_nesting_is_by_the_column_of_the_marker() -> None:
    text = "- if a\n  - show b\n   - show c\n  * show d\n- if a\n\t- show e\n > note\n"
    first, second = ops(text.replace(" > note\n", ""))
    assert [op.params["value"] for op in first.regions["then"].ops] == ["$b", "$c", "$d"]
    assert len(second.regions["then"].ops) == 1


def test_regions_are_nested_items() -> None:
    text = """
- go = ask @ana yes
  > ok?
  - miss
    - show a
  - error
    - show b
- if go == 'yes'
  - show c
- else if go == 'no'
  - show d
- else
  - show e
- m = map xs as x maxConcurrency: 2
  - show x
- parallel failFast: false
  - branch left
    - show f
  - branch right
    - show g
- parallel
  - branch
    - show h
- repeat 3 every 10m until p.up && q
  - p = deploy
  - miss
    - show i
- e = expect s within 2d
  - miss replan
- error
  - show j
"""
    found = script(text).plan
    assert found is not None
    go, cond, mapped, named, listed, again, waits = found.program.ops
    assert isinstance(go.on_miss, Region) and isinstance(go.on_error, Region)
    (nested,) = cond.regions["else"].ops
    assert nested.op == "core.if" and set(nested.regions) == {"then", "else"}
    assert mapped.params == {"over": "$xs", "as": "x", "maxConcurrency": 2}
    assert list(named.regions) == ["left", "right"] and not named.branches_listed
    assert list(listed.regions) == ["1"] and listed.branches_listed
    assert again.params == {"max": 3, "every": "10m", "until": "p.up && q"} and isinstance(again.on_miss, Region)
    assert waits.on_miss == "replan" and found.on_error is not None


def test_front_matter_is_yaml_in_which_on_is_a_key_and_a_time_a_text() -> None:
    text = "---\nname: weekly\non:\n  - every: 0 9 * * 1\ninputs:\n  at: 18:30\n  yes: no\n  n: 3\n---\n- say\n  > hi"
    found = script(text).plan
    assert found is not None and found.inputs is not None
    assert (found.name, found.on[0].every) == ("weekly", "0 9 * * 1")
    assert [(given.name, given.default) for given in found.inputs] == [("at", "18:30"), ("yes", "no"), ("n", 3)]


def test_a_command_without_a_marker_is_a_note() -> None:
    found = script("- a = list x y\n\nb = count a\n")
    assert [note.code for note in found.notes] == ["no-marker"]


def test_places_inside_a_prompt_are_those_of_its_words() -> None:
    found = script("- ask @ana\n  > one {{\n  > see {topik}, ok?")
    node = found.placed["1"].fields["question"]
    at = node.value.index("topik")
    assert found.source.position(node.offset(at)) == (3, 10)
    assert node.markdown


def test_both_surfaces_give_one_plan() -> None:
    markdown = (
        "- go = ask @ana yes no within 2d\n  > Ship {x}?\n  - miss\n    - say role:leads\n      > Nothing from Ana."
    )
    json = """[{ op: "ask", id: "go", to: "@ana", within: "2d", params: { question: "Ship $x?", choices: ["yes", "no"] },
      onMiss: [{ op: "say", to: "role:leads", params: { body: "Nothing from Ana." } }] }]"""
    assert script(markdown).plan == script(json).plan


def test_one_cause_is_one_problem_and_what_was_read_stays() -> None:
    found = read("- files = glob a\n- n = cuont files\n- show n\n- kept = keep YES files\n- show kept", CATALOG)
    assert [p.code for p in found.problems] == ["unknown-op", "arguments-swapped"]
    assert found.plan is not None and [op.id for op in found.plan.program.ops] == ["files", "n", None, "kept", None]
