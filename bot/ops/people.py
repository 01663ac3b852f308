"""Ops that put something to people: ask, say."""

from bot.domain.catalog import Arg, OpSpec

TEXT = {"type": "string"}
CHOICE = {
    "anyOf": [
        TEXT,
        {"type": "number"},
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {"label": TEXT, "value": {}},
            "required": ["label"],
            "additionalProperties": False,
        },
    ]
}
CHOICES = {"anyOf": [{"type": "array", "items": CHOICE}, TEXT]}
FIELD = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "type": {"enum": ["text", "number", "date", "time", "bool", "choice", "person", "file"]},
        "label": TEXT,
        "required": {"type": "boolean"},
        "choices": CHOICES,
        "min": {},
        "max": {},
    },
    "required": ["name", "type"],
    "additionalProperties": False,
}
BUTTON = {
    "anyOf": [
        TEXT,
        {
            "type": "object",
            "properties": {"label": TEXT, "value": {}, "url": TEXT},
            "required": ["label"],
            "additionalProperties": False,
        },
    ]
}
CARD = {
    "type": "object",
    "properties": {
        "title": TEXT,
        "text": TEXT,
        "image": TEXT,
        "buttons": {"anyOf": [{"type": "array", "items": BUTTON}, TEXT]},
    },
    "additionalProperties": False,
}

ASK = OpSpec(
    name="ask",
    summary="Puts a question to a person, a role, an agent or a conversation and waits for the answer.",
    kind="wait",
    shape="ask [TO] [CHOICE …] [within DURATION]",
    args=(
        Arg(name="to", kind="addressee", optional=True),
        Arg(name="choices", kind="choices", many=True, optional=True),
    ),
    quote="question",
    quote_needed=True,
    params={
        "type": "object",
        "properties": {
            "question": TEXT,
            "choices": CHOICES,
            "fields": {"anyOf": [{"type": "array", "items": FIELD, "minItems": 1}, TEXT]},
            "need": {
                "anyOf": [
                    {"type": "integer", "minimum": 1},
                    {"const": "all"},
                    {"type": "string", "pattern": "^\\$"},
                    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}, "minProperties": 1},
                ]
            },
            "reason": {"anyOf": [{"enum": ["optional", "required"]}, {"type": "array", "items": TEXT}]},
            "remind": {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "boolean"}]},
            "notOwner": {"type": "boolean"},
            "cards": {"enum": ["direct", "thread"]},
        },
        "required": ["question"],
    },
    fields=("to", "after", "within", "by", "onMiss", "onError", "retry"),
    window="optional",
    value="answer",
)

SAY = OpSpec(
    name="say",
    summary="Delivers a message: to an addressee, or to everyone reading the job.",
    kind="effect",
    shape="say [TO]",
    args=(Arg(name="to", kind="addressee", optional=True),),
    quote="body",
    quote_needed=True,
    params={
        "type": "object",
        "properties": {"body": {}, "card": CARD, "files": {"anyOf": [{"type": "array"}, TEXT]}},
        "anyOf": [{"required": ["body"]}, {"required": ["card"]}],
    },
    fields=("to", "after", "onError", "retry"),
    value="delivered",
    on_error="continue",
)

PEOPLE = (ASK, SAY)
