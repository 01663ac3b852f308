"""Ops that put agents on work, and the settings of that work: each, model, budget. (ask is in people.py.)"""

from bot.domain.catalog import Arg, OpSpec
from bot.ops.people import CHOICES

TEXT = {"type": "string"}

EACH = OpSpec(
    name="each",
    summary="Puts one agent on every element of a list and collects the answers in order.",
    kind="effect",
    shape="each LIST [CHOICE …]",
    args=(Arg(name="list", kind="value"), Arg(name="choices", kind="choices", many=True, optional=True)),
    quote="prompt",
    quote_needed=True,
    params={
        "type": "object",
        "properties": {"list": {"anyOf": [{"type": "array"}, TEXT]}, "prompt": TEXT, "choices": CHOICES},
        "required": ["list", "prompt"],
    },
    expects={"list": "list"},
    value="list<text|error>",
    agent=True,
)

MODEL = OpSpec(
    name="model",
    summary="Which model the agent calls below run on.",
    kind="setting",
    shape="model NAME",
    args=(Arg(name="name", kind="literal"),),
    params={"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
    fields=("after",),
    binds=False,
)

BUDGET = OpSpec(
    name="budget",
    summary="How many agent calls may be made below.",
    kind="setting",
    shape="budget COUNT",
    args=(Arg(name="calls", kind="number"),),
    params={
        "type": "object",
        "properties": {"calls": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^\\$"}]}},
        "required": ["calls"],
    },
    expects={"calls": "number"},
    fields=("after",),
    binds=False,
)

AGENTS = (EACH, MODEL, BUDGET)
