import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.catalog import OpSpec
from bot.domain.plan import Op, Plan, Region
from bot.language import refs
from bot.language.read import read
from bot.language.write import as_json, as_markdown, from_program, to_program
from bot.ops.builtin import catalog

CATALOG = catalog(
    [
        OpSpec(name="deploy", summary="", kind="effect", shape="deploy key: value", tool=True),
        OpSpec(
            name="tune",
            summary="",
            kind="effect",
            shape="tune key: value",
            tool=True,
            schema={
                "type": "object",
                "properties": {"port": {"type": "string"}, "level": {"type": "integer"}, "after": {}},
            },
        ),
    ]
)

NAMES = st.sampled_from(["a", "b", "files", "to", "in", "x1", "if", "miss", "max"])
PLAIN = st.sampled_from(
    [
        "yes",
        "no",
        "two words",
        "5",
        "4.10",
        "007",
        "true",
        "null",
        "",
        " ",
        "a,",
        "key:",
        "within",
        "to",
        '"',
        "'",
        "it's",
        '"a" b',
        "$5",
        "$$x",
        "$x",
        "${x}.y",
        "$x.y?",
        "hi $x, bye",
        "{x}",
        "{{x}}",
        "{ts,js}",
        "}}",
        "a\nb",
        "a\\nb",
        "\\",
        "a\n\n> b\n",
        "“q”",
        "- show x",
        "```json",
        "tab\there",
        "line\rend",
        "\u00a0",
        "<mailto:a@b.c|a@b.c>",
        "<https://a.b>",
        "&lt;",
        "@ana",
        "role:x",
        "#ops",
        "line:U1",
        "src/**/*.py",
        "2d",
        "Fri 17:00",
        "é 日本 🚀",
        "[a]",
        "{a: 1}",
        "a|b",
        "--",
        "---",
        "\ufeffx",
        "…",
        "`a`",
        "`",
        "<!-- x",
        "a  b",
        "x ",
    ]
)
TEXTS = (PLAIN | st.text(max_size=12)).map(lambda text: refs.canonical(text.encode("utf-8", "replace").decode()))
NUMBERS = st.integers(-5, 10**6) | st.sampled_from([0.5, 1.25, -2.5, 1e300, 123456789.125])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
WHOLE = st.sampled_from(["$a", "$a.b[0]", "$to", "$a.b?", '$a["two words"]'])
LISTS = WHOLE | st.lists(TEXTS, max_size=4)
COUNTS = st.integers(1, 50) | WHOLE
CEL = st.sampled_from(
    [
        "a",
        "a > 1 && b",
        "a == 'x y'",
        "'to' in a ? 1 : 2",
        " a",
        "a\n|| b",
        "{'x': a}",
        "a `b`",
        "a | b",
        '"q"',
        "$x",
        "",
    ]
)
JQ = st.sampled_from([".", "map(.a) | length", ".[] | select(. > 1)", "$a | .b", '"x|y"'])


def built(**optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


FIELDS = built(after=NAMES | st.lists(NAMES, min_size=2, max_size=3), id=NAMES)
WINDOWS = built(within=TEXTS, by=TEXTS)
TO = built(to=TEXTS.filter(bool) | st.lists(TEXTS, min_size=1, max_size=2))
ERRORS = st.sampled_from(["halt", "continue"]) | VALUES.map(lambda value: {"default": value})
TRIES = st.fixed_dictionaries(
    {"max": st.integers(0, 9), "backoff": st.sampled_from(["1s", "2m"])}, optional={"maxDelay": st.just("1h")}
)
TRIED = built(onError=ERRORS, retry=TRIES)


def op(
    name: str, params: dict[str, Any], optional: dict[str, Any] | None = None, *more: st.SearchStrategy[dict[str, Any]]
) -> Any:
    own = st.fixed_dictionaries(params, optional=optional or {})
    return st.tuples(own, FIELDS, *more).map(lambda parts: _merged(name, parts))


def _merged(name: str, parts: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    out: dict[str, Any] = {"op": name}
    for part in parts[1:]:
        out.update(part)
    return {**out, "params": parts[0]} if parts[0] else out


LEAVES = st.one_of(
    op("core.let", {"be": CEL}, None, TRIED),
    op("core.transform", {"from": VALUES, "jq": JQ}, None, TRIED),
    op(
        "ask",
        {"question": TEXTS},
        {
            "choices": LISTS,
            "need": st.integers(1, 3) | st.just("all") | st.just({"yes": 2}),
            "reason": st.sampled_from(["optional", "required"]),
            "notOwner": st.booleans(),
            "remind": TEXTS,
            "fields": st.just([{"name": "day", "type": "date"}]),
        },
        TO,
        WINDOWS,
        TRIED,
        built(onMiss=st.just("replan") | st.just([])),
    ),
    op(
        "say",
        {"body": VALUES},
        {"card": st.just({"title": "T", "buttons": ["a", {"label": "$a", "url": "https://x.y"}]})},
        TO,
        TRIED,
    ),
    op(
        "expect",
        {"evidence": TEXTS | st.lists(TEXTS, min_size=1, max_size=2)},
        {"where": CEL, "check": TEXTS, "at": TEXTS, "in": TEXTS},
        WINDOWS,
        built(**{"from": TEXTS.filter(bool), "onMiss": st.just("replan")}),
    ),
    op("endpoint", {}, None, WINDOWS),
    op(
        "run",
        {"script": TEXTS},
        {"inputs": st.dictionaries(NAMES | TEXTS | st.just("within"), VALUES, max_size=3)},
        WINDOWS,
        TRIED,
    ),
    op("line_send", {"messages": st.just([{"type": "text", "text": "a $b"}])}, None, TO),
    op("glob", {"pattern": TEXTS}),
    op("list", {"items": LISTS}),
    op("read", {"path": TEXTS}),
    op("lines", {"text": TEXTS}),
    op("chunk", {"text": WHOLE, "n": COUNTS}),
    op("each", {"list": LISTS, "prompt": TEXTS}, {"choices": LISTS}),
    op("keep", {"list": LISTS, "text": TEXTS}, {"in": LISTS}),
    op("first", {"n": COUNTS, "list": LISTS}),
    op("count", {"list": LISTS}),
    op("show", {"value": VALUES}),
    op("save", {"path": TEXTS, "value": VALUES}),
    op("deploy", {}, {"service": VALUES, "two words": VALUES, "to": VALUES}, TRIED),
    op("tune", {}, {"port": VALUES, "level": VALUES, "after": VALUES, "other": VALUES}, TRIED),
    op("tune", {}, {"retry": VALUES, "port": VALUES}, TRIED),
).filter(lambda given: given["op"] not in ("model", "budget"))


def holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    region = st.lists(inner, max_size=3)
    full = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        op(
            "core.if",
            {"cond": CEL},
            None,
            built(**{"else": region, "onError": region}),
            st.fixed_dictionaries({"then": region}),
        ),
        op(
            "core.map",
            {"over": LISTS},
            {"as": NAMES, "maxConcurrency": st.integers(1, 4), "onItemError": ERRORS},
            st.fixed_dictionaries({"body": region}),
        ),
        op(
            "core.repeat",
            {"max": st.integers(1, 100), "until": CEL},
            {"every": TEXTS},
            st.fixed_dictionaries({"body": full}, optional={"onMiss": region}),
        ),
        op(
            "flow.parallel",
            {},
            {"failFast": st.booleans(), "until": st.just(1)},
            st.fixed_dictionaries(
                {"branches": st.lists(region, max_size=3) | st.dictionaries(NAMES, region, max_size=3)}
            ),
        ),
        op(
            "ask",
            {"question": TEXTS},
            None,
            TO,
            st.fixed_dictionaries({"onMiss": region}, optional={"onError": region}),
        ),
    )


REGION = st.lists(st.recursive(LEAVES, holding, max_leaves=6), min_size=1, max_size=5)
HEAD = built(
    inputs=st.dictionaries(
        NAMES,
        st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "list<text>", "any"])},
            optional={
                "default": VALUES,
                "choices": st.lists(TEXTS, min_size=1, max_size=2),
                "secret": st.just(True),
                "description": TEXTS,
            },
        ),
        max_size=2,
    ),
    name=TEXTS,
    title=TEXTS,
    within=TEXTS,
    key=TEXTS,
    overlap=st.sampled_from(["skip", "queue"]),
    on=st.lists(
        st.sampled_from([{"every": "0 9 * * 1", "zone": "UTC"}, {"event": "s", "where": "a > 1", "as": "tap"}]),
        min_size=1,
        max_size=2,
    ),
    onError=REGION,
)
PLANS = st.tuples(HEAD, REGION).map(lambda parts: from_program({**parts[0], "program": parts[1]}, CATALOG))


@settings(max_examples=80, deadline=None)
@given(PLANS)
def test_a_plan_as_data_is_the_same_plan(plan: Plan) -> None:
    data = json.loads(json.dumps(to_program(plan)))
    assert from_program(data, CATALOG) == plan


@settings(max_examples=80, deadline=None)
@given(PLANS)
def test_a_plan_printed_as_json_reads_back_the_same(plan: Plan) -> None:
    found = read(as_json(plan), CATALOG)
    assert not found.problems, found.source.render(found.problems)
    assert found.plan == plan


@settings(max_examples=150, deadline=None)
@given(PLANS)
def test_a_plan_printed_as_markdown_reads_back_the_same(plan: Plan) -> None:
    text = as_markdown(plan, CATALOG)
    found = read(text, CATALOG)
    assert not found.problems, text + found.source.render(found.problems)
    assert found.plan == plan, text


def test_what_an_edit_inserted_keeps_its_place_in_data() -> None:
    first, second = Op(op="show", place="2", rank=7, params={"value": 1}), Op(op="show", place="2+1", rank=9)
    plan = Plan(program=Region(place="", ops=(first, second)))
    assert from_program(to_program(plan), CATALOG) == plan


SCRIPT = """\
---
inputs:
  repo: {"type": "text", "default": "acme/api"}
---

- prs = github_list_prs repo: {repo}
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
- else if scope == 'later'
  - say @ana
    > We ask again.
- else
  - say @ana
    > Understood, we leave it.
- swap = ask @jonas done within 3d
  > Replace the filter on line 2
- seated = expect camera.line_2 within 10m after swap
  > new filter seated, housing closed
  - miss replan
- reviews = map open as pr
  - verdict = ask @lead ship hold need: 2
    > {pr.title}
- parallel
  - branch docs
    - show names
  - branch site
    - show open
- r = repeat 3 every: 10m until p.up
  - p = deploy onError: continue retry: {max: 3, backoff: 2s}
- hits = keep files YES in answers
- error
  - say
    > It did not work out.
"""


def test_what_is_printed_is_what_one_would_write() -> None:
    tools = [OpSpec(name=n, summary="", kind="effect", shape=n, tool=True) for n in ("github_list_prs", "deploy")]
    known = catalog(tools)
    found = read(SCRIPT, known)
    assert not found.problems and found.plan is not None
    assert as_markdown(found.plan, known) == SCRIPT


@pytest.mark.parametrize("write", [as_json, lambda plan: as_markdown(plan, CATALOG)])
def test_texts_that_chats_would_change_are_printed_so_that_they_stay(write: Any) -> None:
    data = [{"op": "say", "params": {"body": "<mailto:a@b.c|a@b.c> \u00a0 <https://x.y> \r\n"}}]
    plan = from_program(data, CATALOG)
    assert read(write(plan), CATALOG).plan == plan
