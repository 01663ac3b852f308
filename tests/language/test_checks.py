"""What the checks let through, what they note, and what the pre-flight says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.catalog import (
    Agent,
    Catalog,
    OpSpec,
    Person,
    Policy,
    SavedScript,
    StreamSpec,
    Workspace,
    World,
)  # fmt: skip
from bot.domain.plan import Input, Op, Plan, Region
from bot.language.script import Examined, check_plan, examine
from bot.ops.builtin import catalog

WORLD = World(
    now=datetime.fromisoformat("2026-03-02T09:00:00+01:00"),
    owner="bo@acme.de",
    people=(Person(email="ana@acme.de", name="Ana"), Person(email="bo@acme.de", name="Bo"),
            Person(email="jonas@acme.de", name="Jonas")),
    roles={"leads": ("ana@acme.de", "bo@acme.de")},
    agents=(Agent(name="scout", default=True),),
    streams={"auth.first_signin": StreamSpec(name="auth.first_signin"), "camera.line_2": StreamSpec(name="camera.line_2")},
    judge=True,
)  # fmt: skip


def tool(name: str, **more: Any) -> OpSpec:
    return OpSpec(name=name, summary="", kind="effect", shape=f"{name} key: value", tool=True, **more)


TOOLS: Catalog = catalog([
    tool("restart"), tool("look", read_only=True),
    tool("deploy", schema={
        "type": "object", "required": ["service"], "additionalProperties": False,
        "properties": {"service": {"type": "string"}, "replicas": {"type": "integer"}, "mode": {"enum": ["fast", "slow"]}},
    }, output={"type": "object", "properties": {"url": {"type": "string"}}}),
])  # fmt: skip


def seen(text: str, world: World = WORLD, **more: Any) -> Examined:
    return examine(text, TOOLS, world, **more)


def codes(text: str, world: World = WORLD, **more: Any) -> list[str]:
    return [p.code for p in seen(text, world, **more).problems]


def noted(text: str, world: World = WORLD) -> list[str]:
    found = seen(text, world)
    assert not found.problems, found.rendered()
    return [f"{n.code}: {n.message}" for n in found.notes]


@pytest.mark.parametrize(
    "text",
    [
        "- a = ask @ana yes no within 2d\n  > Ok?\n- if a == 'yes'\n  - say\n    > good\n- else\n  - say\n    > bad",
        "- a = ask @ana within 1h\n  > When?\n  - miss\n    - a = let 'never'\n- say\n  > {a}",
        "[{op:'core.let',id:'x',params:{be:'1'}},{op:'core.if',params:{cond:'x > 0',then:[{op:'core.let',id:'y',params:{be:'1'}}],else:[{op:'core.let',id:'y',params:{be:'2'}}]}}]",
        "- t = expect clock in: 20m\n- say after t\n  > {t.at}",
        "- e = expect line:message within 1h\n- say\n  > {e.event.text} {e.event.user.name}",
        "- s = run nudge\n- say\n  > {s}",
        "- a = look x: 1\n- say\n  > {a.anything.at[0].all}",
        "- a = deploy service: api replicas: 3\n- say\n  > {a.url}",
        "[{op:'deploy',id:'d',params:{service:'api',replicas:'$n'}},{op:'say',params:{body:'$d.extra'}}]",
        "- x = let type(1) == int\n- y = let x ? 'a' : 'b'",
        "- a = ask @ana yes no\n  > Ok?\n- b = let a == null || a == 'no'",
        "- say @customer\n  > {customer.name}",
        "- xs = list a b\n- xs2 = each xs YES NO\n  > {it}?\n- yes = keep xs YES in xs2\n- show yes",
        "{name:'n', on:[{event:'line:tap', where:\"event.text == 'book'\", as:'tap'}], program:[{op:'say',to:'$tap.conversation',params:{body:'x'}}]}",
    ],
)
def test_what_may_succeed_passes(text: str) -> None:
    world = replace(
        WORLD, bindings={"n": "any"}, customer={"id": "u1", "name": "Mika"}, roles={"customer": ("ana@acme.de",)},
        scripts={"nudge": SavedScript(name="nudge")},
    )  # fmt: skip
    assert codes(text, world) == [], seen(text, world).rendered()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a = deploy service: api replicas: many", ["argument-type"]),
        ("- a = deploy replicas: 3", ["argument-missing"]),
        ("- a = deploy service: api mode: fats", ["argument-value"]),
        ("- a = deploy service: api speed: 3", ["unknown-argument"]),
        ("- n = let 3\n- a = deploy service: {n}", ["argument-type"]),
        ("- x = run price n: 2 m: 3", ["input-missing", "unknown-input"]),
        ("- x = run price n: two k: a", ["type-mismatch"]),
        ("- model large", ["unknown-model"]),
        ("- x = run caller", ["script-circle"]),
    ],
)
def test_arguments_are_held_against_what_is_declared(text: str, expected: list[str]) -> None:
    price = SavedScript(name="price", inputs=(Input(name="n", type="number"), Input(name="k", type="text")))
    caller = SavedScript(name="caller", calls=("me",))
    world = replace(WORLD, scripts={"price": price, "caller": caller}, models=("small",))
    if "caller" in text:
        text = f"---\nname: me\n---\n{text}"
    assert codes(text, world) == expected, seen(text, world).rendered()


def test_what_follows_from_a_fault_is_not_told() -> None:
    found = seen("- yes = keep answers YES\n- total = count yes\n- if total > 1\n  - show total")
    assert [p.code for p in found.problems] == ["unknown-name"], found.rendered()


def test_without_an_agent_whoever_needs_one_is_told() -> None:
    world = replace(WORLD, agents=())
    assert codes("- a = ask\n  > Sum it up\n- xs = list a\n- b = each xs\n  > {it}?\n- c = ask @ana\n  > Ok?", world) == [
        "agent-missing", "agent-missing"]  # fmt: skip


def test_outside_rehearsal_a_channel_that_is_off_reaches_nobody() -> None:
    world = replace(WORLD, channels=frozenset({"slack"}))
    assert codes("- e = expect line:message within 1h\n- ask line:U1 yes\n  > Ok?", world) == [
        "channel-off",
        "channel-off",
    ]


def test_inputs_are_checked_when_a_script_is_started_and_only_then() -> None:
    text = "{inputs:{n:{type:'number'},s:'x'},program:[{op:'say',params:{body:'$n $s'}}]}"
    assert codes(text) == ["input-missing"]
    assert codes(text, inputs={"n": 1}) == []
    assert codes(text, inputs={"n": "one", "k": 1}) == ["unknown-input", "input-type"]
    assert codes(text, starting=False) == []


def test_what_the_job_holds_is_seen_with_its_type_by_a_bare_program_only() -> None:
    world = replace(WORLD, bindings={"prs": "list<record{title: text}>"})
    assert codes("- n = count prs\n- say\n  > {prs[0].title}", world) == []
    assert codes("- say\n  > {prs[0].titel}", world) == ["no-such-member"]
    assert codes("{inputs:{},program:[{op:'say',params:{body:'$prs'}}]}", world) == ["unknown-name"]


def test_effects_below_an_ask_that_do_not_wait_for_it_are_noted_with_the_person() -> None:
    start = "- swap = ask @jonas done\n  > Replace the filter\n"
    assert noted(start + "- restart") == ["starts-without-waiting: starts without waiting for Jonas: restart"]
    assert noted(start + "- restart after swap") == []
    assert noted(start + "- look") == []
    assert noted(start + "- x = let swap + '!'\n- restart after x") == []
    assert noted(start + "- if swap == 'done'\n  - restart") == []


def test_more_than_ten_people_who_would_get_something_at_once_are_noted() -> None:
    crew = tuple(f"p{n}@acme.de" for n in range(11))
    world = replace(
        WORLD,
        people=(*WORLD.people, *(Person(email=e, name=e[:-8]) for e in crew)),
        roles={"crew": crew, "ten": crew[:10]},
    )
    said = "many-at-once: 11 people get something at once: say"
    assert noted("- say role:crew\n  > Closed.", world) == [said]
    assert noted("- say role:ten\n  > Closed.", world) == []
    assert noted("- say role:ten\n  > Closed.\n- say @ana\n  > Closed.", world) == [said]
    first = "- go = ask @ana yes no\n  > Now?\n- show go\n"
    assert said in noted(first + "- say role:crew\n  > Closed.\n", world)[-1].replace("12", "11")
    assert noted(first + "- say role:ten after go\n  > Closed.\n", world) == []
    texts = ", ".join(f"'p{n}@acme.de'" for n in range(11))
    body = "body: [{op: 'say', to: '$who', body: 'Closed.'}]"
    assert "11 people" in noted(f"[{{op: 'core.map', over: [{texts}], as: 'who', {body}}}]", world)[-1]
    assert noted(f"[{{op: 'core.map', over: [{texts}], as: 'who', maxConcurrency: 5, {body}}}]", world) == []


def test_a_window_that_starts_before_the_answer_it_judges_is_noted() -> None:
    start = "- swap = ask @jonas done\n  > Replace the filter\n- seen = expect camera.line_2 within 10m"
    world = replace(WORLD, customer={"id": "u"})
    assert [n.partition(":")[0] for n in noted(start, world)] == ["window-before-answer"]
    assert noted(start + " after swap", world) == []


def test_a_step_below_a_wait_that_does_not_wait_for_it_is_noted_with_what_would() -> None:
    clock = "- pause = expect clock in: 20m\n"
    said = "starts-beside-the-wait: starts without waiting for the clock above: say; `after pause` makes it wait"
    assert noted(clock + "- say\n  > Later") == [said]
    assert noted(clock + "- say after pause\n  > Later") == []
    assert noted(clock + "- x = let pause.at\n- say\n  > {x}") == []
    named = noted("- expect clock in: 20m\n- ask @ana yes no\n  > Now?")
    assert named == [
        "starts-beside-the-wait: starts without waiting for the clock above: ask; "
        "a name for the `expect`, such as `seen`, and `after seen` makes it wait"]  # fmt: skip
    json = '[{op:"expect",id:"p",evidence:"clock",in:"1m"},{op:"say",body:"Later"}]'
    assert noted(json)[0].endswith('say; `after: "p"` makes it wait')


def test_a_brace_in_a_json_value_that_is_not_filled_in_is_noted() -> None:
    start = "- n = let 1\n- line_send to: line:U1 messages: "
    assert [n.partition(": ")[2] for n in noted(start + '[{type: text, text: "It is {n}."}]\n- say\n  > {n}')] == [
        "`{n}` goes out as it stands; in a JSON value it is written `$n`"]  # fmt: skip
    assert noted(start + '[{type: text, text: "It is $n."}]') == []
    assert noted(start + '[{type: text, text: "It is {m}, {ts,js} or {}: $n"}]') == []
    assert noted("- n = let 1\n- say\n  > {n} and {{n}}") == []


def test_an_expression_in_the_braces_of_a_text_is_noted() -> None:
    assert noted("- n = let 1\n- say\n  > {n} of {n + 1}") == [
        "brace-not-filled: `{n + 1}` goes out as it stands: braces hold a name or a path; `let` gives a name to what it says"
    ]
    assert len(noted("- files = list a b\n- say\n  > {size(files)} of {files}")) == 1
    assert noted("- n = let 1\n- say\n  > {n}: {ts,js}, {size(m)}, {}, {a-b}, {{n + 1}} and {{size(n)}}") == []


def test_further_notes() -> None:
    signin = "- e = expect auth.first_signin within 3d"
    assert noted(signin) == [
        "anyone-settles: any event on `auth.first_signin` by anyone settles this: `from` or `where` would narrow it"]  # fmt: skip
    assert noted("- e = expect auth.first_signin within 3d where: \"event.user == 'u'\"") == []
    assert noted("- n = let 1\n- say\n  > x") == ["name-never-used: `n` is bound and never used"]
    choose = (
        "- a = ask @ana yes no later\n  > Ok?\n- if a == 'yes'\n  - say\n    > good\n- if a == 'no'\n  - say\n    > bad"
    )
    assert noted(choose) == ["choice-unhandled: nothing below asks for `later` of `a`"]
    assert noted(choose + "\n- else\n  - say\n    > later") == []
    holiday = replace(WORLD, workspace=Workspace(holidays=frozenset({"2026-03-05"})))
    assert noted("- a = ask @ana yes within 3d\n  > Ok?", holiday) == [
        "window-on-holiday: `3d` ends on 2026-03-05, a holiday"
    ]
    assert noted("- t = expect clock at: 2026-03-01T09:00") == [
        "clock-past: `2026-03-01T09:00` is past, so this is done at once"
    ]
    live = replace(WORLD, channels=frozenset({"slack"}))
    assert noted("- say @ana\n  > x", live) == [
        "addressee-unreachable: Ana has no identity on a channel that is on here"
    ]


def test_a_line_that_reads_as_a_command_without_a_marker_is_noted_wherever_it_stands() -> None:
    def unmarked(text: str) -> list[str]:
        return [n.message.split("`")[1] for n in seen(text).notes if n.code == "no-marker"]

    good = "- say\n  > x"
    assert unmarked(f"say @ana\n  > important\n{good}") == ["say @ana"]
    assert unmarked(f"say\n  > important\n\n{good}") == ["say"]
    assert unmarked(f"{good}\nask @ana yes no\n  > Q") == ["ask @ana yes no"]
    assert unmarked(f"{good}\n\nask @ana yes no\n\n  > Q\n{good}") == ["ask @ana yes no"]
    assert unmarked(f"{good}\n\na = ask @ana yes no") == ["a = ask @ana yes no"]
    assert unmarked(f"- xs = list a\nshow xs\n{good}") == ["show xs"]
    assert unmarked(f"{good}\n\ndeploy service: api") == ["deploy service: api"]
    assert unmarked(f"{good}\n\nelse\n\nif x == 1") == ["else", "if x == 1"]
    prose = (
        "say hello to all of them\nlist of things\nif you want, show it\nread the docs first\nlet us go\nelse nothing"
    )
    assert unmarked(f"# say @ana\n{good}\n\n{prose}") == []


@pytest.mark.parametrize(
    ("handled", "left"),
    [
        ("- if a == 'yes'\n  - say\n    > y\n- else if a == 'no'\n  - say\n    > n", "`maybe`"),
        ("- if a == 'yes'\n  - say\n    > y", "`no` and `maybe`"),
        ("- if a == 'yes'\n  - say\n    > y\n- else if a == 'no'\n  - say\n    > n\n- else\n  - say\n    > m", None),
        ("- if a == 'yes'\n  - say\n    > y\n- else if now.year > 1\n  - say\n    > n", None),
        ("- if a == 'yes' || a == 'no'\n  - say\n    > y\n- else if a == 'maybe'\n  - say\n    > n", None),
    ],
)
def test_a_choice_that_no_condition_of_a_chain_asks_for_is_noted(handled: str, left: str | None) -> None:
    text = f"- a = ask @ana yes no maybe\n  > Ok?\n{handled}"
    said = [n.message for n in seen(text).notes if n.code == "choice-unhandled"]
    assert said == ([f"nothing below asks for {left} of `a`"] if left else []), seen(text).rendered()


def test_a_choice_of_a_chain_in_json_is_noted_alike() -> None:
    ask = "{op:'ask',id:'a',to:'@ana',question:'Ok?',choices:['yes','no','maybe']}"
    say = "{op:'say',body:'x'}"
    inner = f"{{op:'core.if',cond:\"a == 'no'\",then:[{say}]}}"
    chain = f"[{ask},{{op:'core.if',cond:\"a == 'yes'\",then:[{say}],else:[{inner}]}}]"
    assert noted(chain) == ["choice-unhandled: nothing below asks for `maybe` of `a`"]
    assert noted(chain.replace(inner, f"{inner},{say}")) == []


def test_choices_that_read_like_something_else_are_noted() -> None:
    quote = "\n  > Ok?"
    assert noted(f"- ask @ana yes no wihtin 2d{quote}") == [
        "choice-keyword: `wihtin` and `2d` are choices here; `within 2d` is a window"
    ]
    assert noted(f"- ask @ana @bo yes no{quote}") == [
        "choice-addressee: `@bo` is a choice here: only the first word is whom it asks; several are `to: [@ana, @bo]`"
    ]
    asked = "the question goes to an agent"
    assert noted(f"- a = ask ana yes no{quote}\n- show a") == [
        f"choice-addressee: `ana` is a choice here, and {asked}; `@ana` asks ana"
    ]
    assert noted(f'- a = ask "ana" bo{quote}\n- show a') == []
    assert noted(f'- ask @ana yes no "wihtin" "2d" "@bo"{quote}') == []
    assert noted(f"- ask @ana with 2d within 3h{quote}") == []
    assert noted(f"- why = ask @ana later never{quote}\n- show why") == []
    assert noted(f"- a = ask @ana yes no{quote}\n- b = ask @bo yes aftr a{quote}\n- show b\n- show a") == [
        "choice-keyword: `aftr` and `a` are choices here; `after a` is what it waits for"
    ]


def test_the_same_note_is_given_once() -> None:
    live = replace(WORLD, channels=frozenset({"slack"}))
    assert noted("\n".join(["- say @ana\n  > x"] * 3), live) == [
        "addressee-unreachable: Ana has no identity on a channel that is on here"
    ]


def test_the_preflight_counts_ops_people_writes_and_calls() -> None:
    world = replace(WORLD, policy=Policy(approve={"dep*": "role:leads"}))
    found = seen(
        "- a = ask @ana yes no within 2d\n  > Ok?\n  - miss\n    - say role:leads\n      > No answer\n- d = deploy service: api\n- l = look\n"
        "- xs = list a b c\n- b = ask\n  > Sum up\n- save /out.txt b",
        world,
    ).preflight
    assert found["ops"] == 7
    assert found["addressees"] == ["Ana", "role:leads", "agent"]
    assert found["writes"] == [
        {"op": "deploy", "path": "2", "approver": "role:leads"},
        {"op": "save", "path": "6", "approver": None},
    ]
    assert found["agent_calls"] == 1
    assert found["deliveries"] == 3
    assert found["latest_end"] is not None and found["latest_end"] > datetime(2026, 3, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("- a = ask @ana yes within 2d\n  > Ok?", "2026-03-04T09:00:00+01:00", "2026-03-04T10:00:00+01:00"),
        ("- e = expect camera.line_2 within 1h\n  - miss\n    - f = expect camera.line_2 within 2h", "2026-03-02T12:00:00+01:00",
         "2026-03-02T12:00:00+01:00"),
        ("- t = expect clock at: 2026-03-10T09:00", "2026-03-10T10:00:00+01:00", "2026-03-10T10:00:00+01:00"),
        ("---\nwithin: 1d\n---\n- a = ask @ana yes\n  > Ok?", "2026-03-03T09:00:00+01:00", "2026-03-03T09:00:00+01:00"),
        ("- repeat 3 every 1h until true\n  - e = expect camera.line_2 within 1h", "2026-03-02T15:00:00+01:00", "2026-03-02T15:00:00+01:00"),
    ],
)  # fmt: skip
def test_the_latest_end_bounds_every_window(text: str, least: str, most: str) -> None:
    found = seen(text)
    assert not found.problems, found.rendered()
    assert datetime.fromisoformat(least) <= found.preflight["latest_end"] <= datetime.fromisoformat(most)


def test_a_plan_without_a_text_is_checked_alike() -> None:
    say = Op(op="say", place="1", rank=1, params={"body": "$who and $x"})
    problems = check_plan(Plan(program=Region(place="", ops=(say,))), TOOLS, WORLD, {"x": None})
    assert [p.message for p in problems] == ["nothing above binds `who`"]


def test_a_schema_never_leads_to_a_fetch() -> None:
    tools = catalog([tool("odd", schema={"$ref": "http://127.0.0.1:9/x.json"})])
    assert examine("- odd a: 1", tools, WORLD).problems == ()


def test_two_thousand_ops_are_checked() -> None:
    ops = [
        f'{{op:"core.let",id:"v{i}",params:{{be:"{f"v{i - 10}" if i else "1"} + {i}"}}}}' if i % 10 == 0
        else f'{{op:"ask",id:"a{i}",to:"@ana",within:"1d",question:"Is it $v{i - 1}?",choices:["yes","no"]}}' if i % 10 == 1
        else f'{{op:"say",body:"It is $v{i - i % 10}"}}'
        for i in range(2000)
    ]  # fmt: skip
    text = "[" + ",\n".join(ops) + "]"
    assert not seen(text).problems


def test_the_language_imports_nothing_heavy() -> None:
    heavy = "celpy", "sqlalchemy", "anthropic", "jq", "jsonschema_rs"
    code = f"import bot.language.script, sys; print([m for m in {heavy!r} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
