"""Ops that meet the world: expect, endpoint, run, and the sends of the channels."""

from bot.domain.catalog import Arg, OpSpec
from bot.ops.people import BUTTON

TEXT = {"type": "string"}
STREAMS = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}

EXPECT = OpSpec(
    name="expect",
    summary="Names the evidence and the window, and waits for the world.",
    kind="wait",
    shape="expect STREAM within DURATION [after NAME]",
    args=(Arg(name="evidence", kind="stream"),),
    quote="check",
    params={
        "type": "object",
        "properties": {"evidence": STREAMS, "where": TEXT, "check": TEXT, "at": TEXT, "in": TEXT},
        "required": ["evidence"],
    },
    fields=("from", "after", "within", "by", "onMiss", "onError"),
    window="required",
    expressions={"where": "cel"},
    value="event",
)

ENDPOINT = OpSpec(
    name="endpoint",
    summary="Mints an address for someone to call once.",
    kind="effect",
    shape="endpoint within DURATION",
    params={"type": "object", "properties": {}},
    fields=("after", "within", "by", "onError"),
    window="required",
    value="record{url: text, stream: text}",
)

RUN = OpSpec(
    name="run",
    summary="Runs a saved script and waits for it to end.",
    kind="wait",
    shape="run SCRIPT [INPUT: VALUE …]",
    args=(Arg(name="script", kind="name"),),
    params={"type": "object", "properties": {"script": TEXT, "inputs": {"type": "object"}}, "required": ["script"]},
    fields=("after", "within", "by", "onMiss", "onError", "retry"),
    window="optional",
)

MESSAGE = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"type": {"const": "text"}, "text": TEXT},
            "required": ["type", "text"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "type": {"const": "card"},
                "title": TEXT,
                "text": TEXT,
                "image": TEXT,
                "buttons": {"anyOf": [{"type": "array", "items": BUTTON}, TEXT]},
            },
            "required": ["type", "title"],
            "additionalProperties": False,
        },
    ]
}


def send_op(channel: str) -> OpSpec:
    """The `<channel>_send` op of a channel."""
    return OpSpec(
        name=f"{channel}_send",
        summary=f"Sends messages to a {channel} conversation; done when the platform has accepted them.",
        kind="effect",
        shape=f"{channel}_send [TO] messages: […]",
        args=(Arg(name="to", kind="addressee", optional=True),),
        params={
            "type": "object",
            "properties": {"messages": {"anyOf": [{"type": "array", "items": MESSAGE, "minItems": 1}, TEXT]}},
            "required": ["messages"],
        },
        fields=("to", "after", "onError", "retry"),
        value="delivered",
        channel=channel,
    )


CHANNELS = ("slack", "telegram", "line", "web")
WORLD = (EXPECT, ENDPOINT, RUN, *(send_op(channel) for channel in CHANNELS))
