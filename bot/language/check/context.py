"""What every check is given, and how it finds the places it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.catalog import Catalog, OpSpec, World
from bot.domain.plan import Op, Plan, Trigger
from bot.language import types
from bot.language.problems import Fix, Note, Problem
from bot.language.refs import has_refs
from bot.language.scope import Scopes, Use
from bot.language.source import Source
from bot.language.tree import Node, Placed
from bot.language.types import is_list, is_record

Span = tuple[int, int]

COMMANDS = {
    "core.let": "let",
    "core.transform": "transform",
    "core.if": "if",
    "core.map": "map",
    "core.repeat": "repeat",
    "flow.parallel": "parallel",
}


@dataclass(slots=True, kw_only=True)
class Checking:
    """One plan under check. `placed` leads back to the text; what it does not know stands at the text's start.

    `source` is None where no text exists (an edit of a running plan). `given`: the inputs it is started with, None
    where it is not being started. `types` fills as the types are told, op by op.
    """

    plan: Plan
    placed: Mapping[str, Placed]
    source: Source | None
    world: World
    catalog: Catalog
    scopes: Scopes
    given: Mapping[str, Any] | None
    now: datetime
    surface: str = "json"
    types: dict[str, types.Type] = field(default_factory=dict[str, types.Type])

    def ops(self) -> Iterator[tuple[str, Op, OpSpec]]:
        """Every op that is known here, in written order."""
        for place, op in self.scopes.ops.items():
            spec = self.catalog.get(op.op)
            if spec is not None:
                yield place, op, spec

    def node(self, place: str, *path: str | int) -> Node | None:
        """The node of a field or parameter, and inside it."""
        placed = self.placed.get(place)
        if placed is None or not path:
            return None
        node = placed.fields.get(str(path[0]))
        if node is None and "params" in placed.fields:
            return _inside(placed.fields["params"], path)
        return _inside(node, path[1:]) if node is not None else None

    def name(self, place: str) -> Span:
        """The word that names the op."""
        placed = self.placed.get(place)
        return placed.name if placed else (0, 0)

    def ident(self, place: str) -> Span:
        """The op's id, else its name."""
        placed = self.placed.get(place)
        return (placed.ident or placed.name) if placed else (0, 0)

    def span(self, place: str, *path: str | int) -> Span:
        """A field or parameter, or a part of it; the op's name where it has none."""
        node = self.node(place, *path)
        if node is None and len(path) > 1:
            return self.span(place, *path[:-1])
        return (node.start, node.end) if node is not None else self.name(place)

    def key_span(self, place: str, path: tuple[str | int, ...], key: str) -> Span:
        """The key itself, of the op's parameters or, with `path`, of a record in them."""
        placed = self.placed.get(place)
        parent = self.node(place, *path) if path else placed.fields.get("params") if placed else None
        member = parent.members.get(key) if parent is not None else None
        return (member.start, member.end) if member is not None else self.span(place, *path, key)

    def within(self, place: str, path: tuple[str | int, ...], start: int, end: int) -> Span:
        """Characters of a text value."""
        node = self.node(place, *path)
        if node is None or node.kind != "text":
            return self.span(place, *path)
        return (node.offset(start), self._end(node, start, end))

    def _end(self, node: Node, start: int, end: int) -> int:
        """Where the last of a text's characters ends: what follows it may be a brace, or an end of line, that the
        text does not have. One written as an escape ends where the next begins."""
        last = node.offset(max(start, end - 1))
        escaped = self.source is not None and self.source.text[last : last + 1] == "\\"
        return max(node.offset(end) if escaped else last + 1, last + 1)

    def use(self, place: str, use: Use, steps: int | None = None) -> Span:
        """The name that a use mentions; with `steps`, the path up to and including so many."""
        if use.how == "after":
            node = self.node(place, "after", *use.keys) or self.node(place, "after")
            return (node.start, node.end) if node is not None else self.name(place)
        start = use.start
        node = self.node(place, use.field, *use.keys)
        value = node.value if node is not None and node.kind == "text" else None
        if use.how in ("ref", "jq") and isinstance(value, str):
            start = max(value.find(use.name, start), start)
        end = start + len(use.name)
        if steps is not None:
            end = use.ends[steps] if use.ends else use.end
        return self.within(place, (use.field, *use.keys), start, end)

    def inner(self, place: str, *path: str | int) -> Span:
        """The characters of a text value, without its quotes."""
        node = self.node(place, *path)
        if node is None or node.kind != "text":
            return self.span(place, *path)
        return (node.offset(0), node.offset(len(node.value)))

    def literal(self, word: str) -> Span:
        """Where a word of the program's head stands, as a key or as a value."""
        if self.source is None or not word:
            return (0, 0)
        said = rf"(?<!\w){re.escape(word)}(?!\w)"
        found = re.search(rf"{said}(?=[\"']?\s*:)", self.source.text) or re.search(said, self.source.text)
        return found.span() if found else (0, 0)

    def line(self, place: str) -> int | None:
        """The line on which an op is named."""
        if self.source is None or place not in self.placed:
            return None
        return self.source.position(self.ident(place)[0])[0]

    def on_line(self, place: str) -> str:
        """` (line 2)`, or nothing where there are no lines."""
        line = self.line(place)
        return f" (line {line})" if line is not None else ""

    def markdown(self, place: str) -> bool:
        """Whether an op stood on the markdown surface."""
        return self.surface == "markdown" and place in self.placed

    def spelt(self, place: str) -> str:
        """The op's name as its surface writes it."""
        op = self.scopes.ops[place].op
        return COMMANDS.get(op, op) if self.markdown(place) else op

    @property
    def held(self) -> frozenset[str]:
        """Names from outside that a bare program sees: the job's, and what its triggers bind."""
        if self.plan.sealed:
            return frozenset()
        triggers = {t.as_ for t in self.plan.on if t.as_}
        return frozenset(self.world.bindings) | triggers

    def value_type(self, place: str, field: str, value: Any) -> types.Type:
        """The type of a parameter's value, references followed."""
        if isinstance(value, str) and "$" in value:
            for use in self.scopes.uses(place):
                if use.field == field and not use.keys and use.how == "ref" and (use.start, use.end) == (0, len(value)):
                    return self.path_type(place, use)
            return types.TEXT
        if not has_refs(value):
            return types.from_value(value)
        if is_list(value):
            return types.List(types.ANY)
        return types.Record(open=True) if is_record(value) else types.ANY

    def path_type(self, place: str, use: Use) -> types.Type:
        """What a use gives, `any` from where its path cannot be followed."""
        found = self.name_type(place, use.field, use.name)
        for step in use.path[1:]:
            found = types.member(found, step) or types.ANY
        if use.optional or use.tested:
            return types.union((found, types.NULL))
        return found

    def env(self, place: str, field: str) -> Callable[[str], types.Type]:
        """The types of the names that an expression in that field sees."""
        return lambda name: self.name_type(place, field, name)

    def name_type(self, place: str, field: str, name: str) -> types.Type:
        binding = self.scopes.resolve(place, name, field)
        match binding.kind:
            case "op":
                return types.union(self.types.get(binder, types.ANY) for binder in binding.places)
            case "item":
                owner = self.scopes.ops[binding.owner]
                source = "list" if owner.op == "each" else "over"
                of = self.value_type(binding.owner, source, owner.params.get(source))
                return of.of if isinstance(of, types.List) else types.ANY
            case "index":
                return types.NUMBER
            case "input":
                return self.input_type(name)
            case "event":
                return self.event_type(place)
            case "fixed":
                return self.fixed_type(name)
            case _:
                return self.held_type(name) if name in self.held else types.ANY

    def input_type(self, name: str) -> types.Type:
        declared = next((i for i in self.plan.inputs or () if i.name == name), None)
        if declared is None:
            return types.ANY
        if declared.choices and not any(is_record(c) for c in declared.choices):
            return types.Enum(tuple(declared.choices))
        return input_type(declared.type, declared.of)

    def held_type(self, name: str) -> types.Type:
        triggers = [trigger for trigger in self.plan.on if trigger.as_ == name]
        if triggers:
            return types.union(self.trigger_type(trigger) for trigger in triggers)
        said = self.world.bindings.get(name)
        return read_type(said) if said else types.ANY

    def trigger_type(self, trigger: Trigger) -> types.Type:
        """What a trigger binds: its event, with what came around it."""
        if trigger.every is not None:
            return types.Record((("at", types.TEXT),))
        if trigger.command is not None:
            found: types.Type = CHAT
        else:
            stream = trigger.event or f"script:{trigger.script}"
            found = types.member(self.stream_type(stream), "event") or types.ANY
        if not isinstance(found, types.Record):
            return types.ANY
        around = [(key, types.TEXT) for key in ("stream", "from", "at") if types.member(found, key) is None]
        return types.Record((*found.members, *around), open=found.open)

    def fixed_type(self, name: str) -> types.Type:
        if name == "templates":
            known = types.from_value(dict(self.world.templates))
            return known if self.world.templates else types.ANY
        if name == "history":
            return types.List(_HISTORY)
        return types.TIME if name == "now" else types.ANY

    def event_type(self, place: str) -> types.Type:
        """What `event` is in the `where` of an expectation."""
        return types.member(self.evidence_type(self.scopes.ops[place]), "event") or types.ANY

    def evidence_type(self, op: Op) -> types.Type:
        """What an expectation gives."""
        return types.union(self.stream_type(stream) for stream in streams_of(op))

    def stream_type(self, stream: str) -> types.Type:
        if "$" in stream:
            return types.Event(stream, types.ANY)
        declared = self.world.streams.get(stream)
        if (declared is not None and declared.chat) or (declared is None and stream.partition(":")[2] in CHAT_KINDS):
            return types.Event(stream, CHAT)
        if declared is not None and declared.schema:
            return types.Event(stream, types.from_schema(declared.schema))
        if stream.startswith("script:"):
            return types.Event(stream, _ENDED)
        return types.Event(stream, types.ANY)


CHAT_KINDS = ("message", "tap", "reaction", "follow")
CHAT = types.Record(
    (
        ("text", types.TEXT),
        ("tap", types.BOOL),
        ("conversation", types.TEXT),
        ("user", types.Record((("id", types.TEXT), ("name", types.TEXT), ("email", types.TEXT)))),
        ("files", types.List(types.FILE)),
        ("data", types.ANY),
        ("id", types.TEXT),
        ("at", types.TIME),
    )
)
"""The one event shape of chats."""
_ENDED = types.Record((("run", types.ANY), ("state", types.TEXT), ("result", types.ANY)), open=True)
_HISTORY = types.Record(
    (
        ("op", types.TEXT),
        ("id", types.ANY),
        ("state", types.TEXT),
        ("value", types.ANY),
        ("by", types.ANY),
        ("at", types.TIME),
    )
)


def streams_of(op: Op) -> list[str]:
    """The streams that an expectation names."""
    named = op.params.get("evidence")
    return [s for s in (named if is_list(named) else [named]) if isinstance(s, str)]


def read_type(said: str) -> types.Type:
    """A type as a job or a declaration spells it; what cannot be read is any."""
    try:
        return types.parse_type(said)
    except types.UnknownType:
        return types.ANY


def input_type(said: str, of: Any) -> types.Type:
    """A declared input's type."""
    if said == "enum":
        return types.ANY
    if said == "list" and isinstance(of, str):
        return types.List(read_type(of))
    return read_type(said)


def problem(
    span: Span,
    code: str,
    message: str,
    mend: str | None = None,
    fix: str | None = None,
    also: tuple[tuple[int, int, str], ...] = (),
    fix_at: Span | None = None,
) -> Problem:
    """A problem at a span; `fix` replaces what stands at `fix_at`, else exactly that span."""
    start, end = span
    from_, to = fix_at or span
    return Problem(
        start=start,
        end=max(end, start + 1),
        code=code,
        message=message,
        mend=mend,
        also=also,
        fix=Fix(start=from_, end=to, text=fix) if fix is not None and to > from_ else None,
    )


def note(span: Span, code: str, message: str) -> Note:
    """A note at a span."""
    return Note(start=span[0], end=max(span[1], span[0] + 1), code=code, message=message)


def follows(c: Checking, op: Op, after: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The waits of the same region that must have ended before `op` starts. `after`: for each op above, those that it
    follows, and itself where it is one."""
    found: frozenset[str] = frozenset()
    for need in c.scopes.needs(op.place):
        for binder in need.binders[:1]:
            found |= after.get(binder, frozenset())
    return found


@dataclass(frozen=True, slots=True)
class Written:
    """A literal text of a field with its place, quotes included, and without them."""

    text: str
    span: Span
    inner: Span


def literal_texts(c: Checking, place: str, field: str, value: Any) -> Iterator[Written]:
    """The texts of a field that is a text or a list of texts, without those that refer."""
    items = list(enumerate(value)) if is_list(value) else [(None, value)]
    for at, item in items:
        if isinstance(item, str) and not has_refs(item):
            path = (field,) if at is None else (field, at)
            yield Written(item, c.span(place, *path), c.inner(place, *path))


def _inside(node: Node | None, path: tuple[str | int, ...]) -> Node | None:
    for step in path:
        if node is None:
            return None
        if node.kind == "object":
            found = node.members.get(str(step))
            node = found.value if found is not None else None
        elif node.kind == "array" and isinstance(step, int):
            node = node.items[step] if step < len(node.items) else None
        else:
            return None
    return node
