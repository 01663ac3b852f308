"""Ops that compute and branch: core.let, core.transform, core.if, core.map, core.repeat, flow.parallel."""

from bot.domain.catalog import Arg, OpSpec

ANY: dict[str, object] = {}
TEXT = {"type": "string"}

LET = OpSpec(
    name="core.let",
    summary="Binds what a CEL expression gives.",
    kind="effect",
    shape="let EXPRESSION",
    args=(Arg(name="be", kind="expression"),),
    params={"type": "object", "properties": {"be": TEXT}, "required": ["be"]},
    expressions={"be": "cel"},
    value="expression",
)

TRANSFORM = OpSpec(
    name="core.transform",
    summary="Runs a jq filter over a value.",
    kind="effect",
    shape="transform VALUE | FILTER",
    args=(Arg(name="from", kind="value"), Arg(name="jq", kind="expression")),
    params={"type": "object", "properties": {"from": ANY, "jq": TEXT}, "required": ["from", "jq"]},
    expressions={"jq": "jq"},
    value="any",
)

IF = OpSpec(
    name="core.if",
    summary="Takes one of two regions by a condition.",
    kind="region",
    shape="if CONDITION",
    args=(Arg(name="cond", kind="expression"),),
    params={"type": "object", "properties": {"cond": TEXT}, "required": ["cond"]},
    expressions={"cond": "cel"},
    regions=("then", "else"),
    fields=("after", "onError"),
    value="regions",
)

MAP = OpSpec(
    name="core.map",
    summary="Runs its body once for every element of a list.",
    kind="region",
    shape="map LIST as NAME",
    args=(Arg(name="over", kind="value"),),
    params={
        "type": "object",
        "properties": {
            "over": {"anyOf": [{"type": "array"}, {"type": "string"}]},
            "as": TEXT,
            "maxConcurrency": {"type": "integer", "minimum": 1},
            "onItemError": {
                "anyOf": [
                    {"enum": ["halt", "continue"]},
                    {
                        "type": "object",
                        "properties": {"default": ANY},
                        "required": ["default"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "required": ["over"],
    },
    expects={"over": "list"},
    regions=("body",),
    fields=("after", "onError"),
    value="items",
)

PARALLEL = OpSpec(
    name="flow.parallel",
    summary="Runs independent branches at once.",
    kind="region",
    shape="parallel",
    params={
        "type": "object",
        "properties": {"failFast": {"type": "boolean"}, "until": {"type": "integer", "minimum": 1, "maximum": 1}},
    },
    regions=("branches",),
    fields=("after", "onError"),
    value="branches",
)

REPEAT = OpSpec(
    name="core.repeat",
    summary="Runs its body again until a condition holds, a bounded number of times.",
    kind="region",
    shape="repeat COUNT [every DURATION] until CONDITION",
    args=(Arg(name="max", kind="number", least=1), Arg(name="until", kind="expression")),
    params={
        "type": "object",
        "properties": {"max": {"type": "integer", "minimum": 1, "maximum": 100}, "until": TEXT, "every": TEXT},
        "required": ["max", "until"],
    },
    expressions={"until": "cel"},
    regions=("body",),
    fields=("after", "onError", "onMiss"),
    value="body",
)

CORE = (LET, TRANSFORM, IF, MAP, PARALLEL, REPEAT)
