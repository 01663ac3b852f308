"""Ops of the markdown surface's own: files, lists, what is shown and saved. (The agents' are in agents.py.)"""

from bot.domain.catalog import Arg, OpSpec

TEXT = {"type": "string"}
LIST = {"anyOf": [{"type": "array"}, TEXT]}
NUMBER = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^\\$"}]}


def _object(required: tuple[str, ...], **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _kept(name: str, summary: str) -> OpSpec:
    return OpSpec(
        name=name,
        summary=summary,
        kind="effect",
        shape=f"{name} LIST TEXT [in LIST]",
        args=(Arg(name="list", kind="value"), Arg(name="text", kind="literal")),
        params={**_object(("list", "text"), list=LIST, text=TEXT, **{"in": LIST})},
        expects={"list": "list", "in": "list"},
        value="=list",
    )


GLOB = OpSpec(
    name="glob",
    summary="Finds files by pattern.",
    kind="effect",
    shape="glob PATTERN",
    args=(Arg(name="pattern", kind="literal"),),
    params=_object(("pattern",), pattern=TEXT),
    value="list<text>",
    read_only=True,
)
LIST_OP = OpSpec(
    name="list",
    summary="Writes a list of texts down.",
    kind="effect",
    shape="list TEXT TEXT …",
    args=(Arg(name="items", kind="literal", many=True),),
    params=_object(("items",), items=LIST),
    value="list<text>",
    read_only=True,
)
READ = OpSpec(
    name="read",
    summary="Reads a file as text.",
    kind="effect",
    shape="read PATH",
    args=(Arg(name="path", kind="literal"),),
    params=_object(("path",), path=TEXT),
    value="text",
    read_only=True,
)
LINES = OpSpec(
    name="lines",
    summary="Splits a text into its lines.",
    kind="effect",
    shape="lines TEXT",
    args=(Arg(name="text", kind="value"),),
    params=_object(("text",), text=TEXT),
    expects={"text": "text"},
    value="list<text>",
    read_only=True,
)
CHUNK = OpSpec(
    name="chunk",
    summary="Splits a text into pieces of so many lines.",
    kind="effect",
    shape="chunk TEXT COUNT",
    args=(Arg(name="text", kind="value"), Arg(name="n", kind="number", least=1)),
    params=_object(("text", "n"), text=TEXT, n=NUMBER),
    expects={"text": "text", "n": "number"},
    value="list<text>",
    read_only=True,
)
KEEP = _kept("keep", "Keeps the elements equal to a text.")
DROP = _kept("drop", "Drops the elements equal to a text.")
FIRST = OpSpec(
    name="first",
    summary="The first so many elements.",
    kind="effect",
    shape="first COUNT LIST",
    args=(Arg(name="n", kind="number"), Arg(name="list", kind="value")),
    params=_object(("n", "list"), n=NUMBER, list=LIST),
    expects={"n": "number", "list": "list"},
    value="=list",
    read_only=True,
)
COUNT = OpSpec(
    name="count",
    summary="How many elements.",
    kind="effect",
    shape="count LIST",
    args=(Arg(name="list", kind="value"),),
    params=_object(("list",), list=LIST),
    expects={"list": "list"},
    value="number",
    read_only=True,
)
SHOW = OpSpec(
    name="show",
    summary="Lets a value out of the run.",
    kind="effect",
    shape="show VALUE",
    args=(Arg(name="value", kind="value"),),
    params=_object(("value",), value={}),
    value="any",
    binds=False,
    read_only=True,
)
SAVE = OpSpec(
    name="save",
    summary="Writes a file.",
    kind="effect",
    shape="save PATH VALUE",
    args=(Arg(name="path", kind="literal"), Arg(name="value", kind="value")),
    params=_object(("path", "value"), path=TEXT, value={}),
    value="any",
    binds=False,
    idempotent=True,
)

FILES = (GLOB, LIST_OP, READ, LINES, CHUNK, KEEP, DROP, FIRST, COUNT, SHOW, SAVE)
