"""The syntax tree of either surface to a Plan: which fields and parameters an op has, its regions, the program's own.

Here are the faults of an op taken by itself; what needs the world or the other ops (names, people, windows,
expressions) is checked in `check/`. What could not be understood stays in the plan as far as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.domain.catalog import Catalog, OpSpec
from bot.domain.plan import RANK_STEP, Default, Op, Plan, Region, Retry
from bot.language import program, refs
from bot.language.problems import Problem, did_you_mean, nearest, respelling
from bot.language.shape import faults, instead
from bot.language.tree import Member, Node, Placed

OPS = 2000
LEVELS = 32
NAME = re.compile(rf"{refs.NAME}\Z")
ALL_FIELDS = ("to", "from", "after", "within", "by", "onMiss", "onError", "retry")
REGIONS = ("then", "else", "body", "branches")
COMMANDS = {
    "let": "core.let",
    "transform": "core.transform",
    "if": "core.if",
    "map": "core.map",
    "parallel": "flow.parallel",
    "repeat": "core.repeat",
}
"""Names of ops on the markdown surface, where they differ."""

_MARKDOWN_NAMES = {op: command for command, op in COMMANDS.items()}


@dataclass(frozen=True, slots=True)
class Lowered:
    plan: Plan | None
    placed: Mapping[str, Placed]
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Lowering:
    catalog: Catalog
    wounded: Collection[int]
    placed: dict[str, Placed] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    ops: int = 0
    too_many: Node | None = None
    too_deep: bool = False
    meant: set[str] = field(default_factory=set)
    """Parameters of the op being read that were likely misspelt: not missing besides."""

    def problem(self, node: Node | Member, code: str, message: str, mend: str | None = None, **more: Any) -> None:
        self.problems.append(Problem(start=node.start, end=node.end, code=code, message=message, mend=mend, **more))


def command(op: str) -> str:
    """An op's name as the markdown surface writes it."""
    return _MARKDOWN_NAMES.get(op, op)


def lower(roots: Sequence[Node], catalog: Catalog, wounded: Collection[int] = ()) -> Lowered:
    """The plan that `roots` say: one array, one op, several ops, or one object with `program`.

    `wounded`: `id`s of op nodes whose arguments a problem was reported for already; what misses there follows."""
    at = _Lowering(catalog, wounded)
    members: Mapping[str, Member] = {}
    if len(roots) == 1 and roots[0].kind == "array":
        ops = roots[0].items
    elif len(roots) == 1 and roots[0].kind == "object" and "op" not in roots[0].members:
        members, ops = _wrapper(at, roots[0])
    else:
        ops = list(roots)
    region = _region(at, ops, "", 1, missing=False)
    on_error: Region | None = None
    if (written := members.get("onError")) is not None:
        on_error = _listed(at, written.value, "onError", 1, missing=False, what="onError")
    if at.too_many is not None:
        message = f"a script may have {OPS:,} ops; this one has {at.ops:,}, and here stands number {OPS + 1:,}"
        at.problem(at.too_many, "limit-ops", message)
    head = program.read(members, at.problems)
    if not region.ops and not at.problems:
        at.problems.append(_nothing(roots))
    plan = Plan(program=region, on_error=on_error, **head) if region.ops or head else None
    return Lowered(plan, at.placed, tuple(at.problems))


def _nothing(roots: Sequence[Node]) -> Problem:
    start, end = (roots[0].start, roots[-1].end) if roots else (0, 1)
    return Problem(start=start, end=min(end, start + 1), code="no-command", message="there is no op in this script")


def _wrapper(at: _Lowering, node: Node) -> tuple[Mapping[str, Member], list[Node]]:
    written = node.members.get("program")
    if written is None:
        known = [*program.KEYS, "op"]
        near = next((key for key in node.members if nearest(key, ("program", "op"))), None)
        mend = did_you_mean(nearest(near, known)) if near else "an op starts `{ op: …`, a program `{ program: […] }`"
        where = node.members[near] if near else Node(kind="object", start=node.start, end=node.start + 1)
        meant = nearest(near, known) if near else []
        fix = respelling(node.members[near].start, node.members[near].end, near, meant[0]) if near and meant else None
        at.problem(where, "op-missing", "here is neither `op` nor `program`", mend, fix=fix)
        return {}, []
    for key, member in node.members.items():
        if key not in program.KEYS:
            near = nearest(key, [k for k in program.KEYS if k not in node.members])
            fix = respelling(member.start, member.end, key, near[0]) if len(near) == 1 else None
            at.problem(member, "unknown-field", f"a program has no `{key}`", did_you_mean(near), fix=fix)
    if written.value.kind == "object":
        return node.members, [written.value]
    if written.value.kind != "array":
        at.problem(written.value, "op-shape", "`program` is a list of ops", "write `program: [{ op: … }]`")
    return node.members, written.value.items


def _region(at: _Lowering, nodes: Sequence[Node], place: str, level: int, *, missing: bool) -> Region:
    """`missing`: somewhere inside an `onMiss`, where an ask may do without its question."""
    ops: list[Op] = []
    for node in nodes:
        at.ops += 1
        if at.ops > OPS:
            at.too_many = at.too_many or node
            continue
        if level > LEVELS:
            if not at.too_deep:
                at.problem(
                    Node(kind="null", start=node.start, end=node.start + 1),
                    "limit-levels",
                    f"regions nest more than {LEVELS} deep here",
                )
            at.too_deep = True
            continue
        where = f"{place}.{len(ops) + 1}" if place else str(len(ops) + 1)
        if (op := _op(at, node, where, RANK_STEP * (len(ops) + 1), level, missing=missing)) is not None:
            ops.append(op)
    return Region(place=place, ops=tuple(ops))


def _op(at: _Lowering, node: Node, place: str, rank: int, level: int, *, missing: bool) -> Op | None:
    if node.kind != "object":
        start = Node(kind=node.kind, start=node.start, end=node.start + 1 if node.kind == "array" else node.end)
        at.problem(start, "op-shape", f'an op must stand here, such as `{{ op: "say" }}`; this is {_a(node)}')
        return None
    named = node.members.get("op")
    if named is None:
        near = next((key for key in node.members if nearest(key, ("op",))), None)
        where = node.members[near] if near else Node(kind="null", start=node.start, end=node.start + 1)
        at.problem(
            where,
            "op-missing",
            "this has no `op`",
            f"did you mean `op` for `{near}`?" if near else None,
            fix=respelling(where.start, where.end, near, "op") if near else None,
        )
        return None
    if named.value.kind != "text":
        at.problem(named.value, "op-shape", f"`op` is a name in quotes; this is {_a(named.value)}")
        return None
    name = str(named.value.value)
    spec = at.catalog.get(name)
    if spec is None:
        _unknown(at, named.value, name, markdown=node.markdown)
    fields, params, regions = _sorted(at, node, spec)
    op = Op(
        op=name,
        place=place,
        rank=rank,
        id=_id(at, fields),
        params=_params(at, node, spec, params, missing=missing),
        to=_to(at, fields, "to"),
        from_=_to(at, fields, "from"),
        after=_after(at, fields),
        within=_window(at, fields, "within"),
        by=_window(at, fields, "by"),
        on_miss=_on_miss(at, fields, place, level),
        on_error=_on_error(at, fields, place, level, missing=missing),
        retry=_retry(at, fields),
        regions=_regions(at, node, spec, regions, place, level, missing=missing),
        branches_listed="branches" in regions and regions["branches"].value.kind == "array",
    )
    at.placed[place] = _placed(node, place, named.value, fields, params, spec)
    return op


def _unknown(at: _Lowering, node: Node, name: str, *, markdown: bool) -> None:
    if markdown:
        near = nearest(name, [*(command(op) for op in at.catalog.ops), "else", "branch", "miss", "error"])
        said = f"no command is called `{name}`"
    else:
        near = [COMMANDS[name]] if name in COMMANDS else nearest(name, at.catalog.ops)
        said = f"no op is called `{name}`"
    at.problem(node, "unknown-op", said, did_you_mean(near), fix=instead(node, near))


Members = dict[str, Member]


def _sorted(at: _Lowering, node: Node, spec: OpSpec | None) -> tuple[Members, Members, Members]:
    """An op's members as fields, parameters and regions; what nothing knows is reported."""
    fields: Members = {}
    params: Members = {}
    regions: Members = {}
    at.meant = set()
    stray: list[tuple[bool, str, Member]] = []
    _misspelt_params(at, node, spec)
    inner = _inner(at, node, spec)
    own = spec.params.get("properties", {}) if spec else {}
    for at_op, members in ((True, node.members), (False, inner)):
        for key, member in members.items():
            if at_op and key in ("op", "params"):
                continue
            is_tool = spec is None or spec.tool
            if at_op and (key == "id" or _is_field(key, spec)):
                _put(at, fields, key, member)
            elif not at_op and is_tool:
                params[key] = member
            elif spec is not None and key in own:
                _put(at, params, key, member)
            elif (key in spec.regions) if spec else (at_op and key in REGIONS and member.value.kind == "array"):
                _put(at, regions, key, member)
            elif not at_op and _is_field(key, spec):
                _put(at, fields, key, member)
            elif spec is not None:
                stray.append((at_op, key, member))
    present = {*fields, *params, *regions, *node.members} if stray else set[str]()
    for at_op, key, member in stray if spec is not None else ():
        assert spec is not None
        meant = _stray(at, spec, key, member, present, at_op=at_op)
        if meant is not None:
            is_param = meant in own or (spec.tool and meant != "id" and meant not in spec.fields)
            into = params if is_param else regions if meant in spec.regions else fields
            into.setdefault(meant, member)
            present.add(meant)
    return fields, params, regions


def _misspelt_params(at: _Lowering, node: Node, spec: OpSpec | None) -> None:
    """`parms: {…}` is read as the `params` that it was meant to be, so that only its key is at fault."""
    if "params" in node.members or (spec is not None and spec.tool and spec.schema is None and node.markdown):
        return
    taken = {"id", *ALL_FIELDS, *(spec.params.get("properties", {}) if spec else ()), *(spec.regions if spec else ())}
    for key, member in node.members.items():
        if member.value.kind != "object" or key in taken or key == "op":
            continue
        if nearest(key, {*taken, "params"}) == ["params"]:
            message = f"an op has no `{key}`"
            fix = respelling(member.start, member.end, key, "params")
            at.problem(member, "unknown-field", message, did_you_mean(["params"]), fix=fix)
            node.members["params"] = node.members.pop(key)
            return


def _inner(at: _Lowering, node: Node, spec: OpSpec | None) -> Mapping[str, Member]:
    member = node.members.get("params")
    if member is None:
        return {}
    if member.value.kind != "object":
        at.problem(member.value, "parameter-type", f"`params` is an object; this is {_a(member.value)}")
        at.meant.update(spec.params.get("properties", {}) if spec else ())
        return {}
    return member.value.members


def _is_field(key: str, spec: OpSpec | None) -> bool:
    return key in (spec.fields if spec else ALL_FIELDS)


def _put(at: _Lowering, into: Members, key: str, member: Member) -> None:
    first = into.get(key)
    if first is None:
        into[key] = member
        return
    also = ((first.start, first.end, "first here"),)
    at.problem(member, "parameter-twice", f"`{key}` stands twice on this op", "keep one of the two", also=also)


def _stray(
    at: _Lowering, spec: OpSpec, key: str, member: Member, present: Collection[str], *, at_op: bool
) -> str | None:
    """Reports a key that nothing knows. Returns the field, parameter or region that it was plainly meant to be."""
    name = command(spec.name) if member.value.markdown else spec.name
    frame = [k for k in (*spec.fields, *spec.regions, "id", *(("params",) if at_op else ())) if k not in present]
    if spec.tool:
        taken = (spec.schema or {}).get("properties", {})
        near = [] if key in taken or (spec.schema is None and len(key) < 5) else nearest(key, frame)
        mend = did_you_mean(near)
        meant = near[0] if len(near) == 1 else None
        if mend is None and (key in taken or spec.schema is None):
            at.problem(member, "unknown-field", f"`{key}` is no field of an op", "put it into `params`")
            return key
        if mend is None and len(inside := nearest(key, taken)) == 1:
            mend = f"put it into `params`, as `{inside[0]}`"
            at.problem(member, "unknown-field", f"`{key}` is no field of an op", mend)
            return inside[0]
        fix = respelling(member.start, member.end, key, meant) if meant else None
        at.problem(member, "unknown-field", f"`{key}` is no field of an op", mend, fix=fix)
        return meant if meant != "params" else None
    near = nearest(key, [*(k for k in spec.params.get("properties", {}) if k not in present), *frame])
    at.meant.update(near)
    mend = did_you_mean(near)
    if mend is None and key in (*ALL_FIELDS, *REGIONS):
        at.problem(member, "unknown-field", f"`{name}` takes no `{key}`")
        return None
    listed = ", ".join(f"`{k}`" for k in spec.params.get("properties", {}))
    mend = mend or (f"it has {listed}" if listed else None)
    meant = near[0] if len(near) == 1 else None
    fix = respelling(member.start, member.end, key, meant) if meant else None
    at.problem(member, "unknown-parameter", f"`{name}` has no `{key}`", mend, fix=fix)
    return meant if meant != "params" else None


def _id(at: _Lowering, fields: Members) -> str | None:
    member = fields.get("id")
    if member is None or member.value.kind == "null":
        return None
    value = member.value
    if value.kind != "text" or not NAME.match(value.value):
        said = value.value if value.kind == "text" else _a(value)
        mended = re.sub(r"\W+", "_", str(said), flags=re.ASCII).strip("_")
        mend = f"write `{mended}`" if NAME.match(mended) and value.kind == "text" else None
        at.problem(value, "id-form", f"`{said}` cannot be a name: letters, digits and `_`, no digit first", mend)
        return mended if mend else None
    return str(value.value)


def _params(at: _Lowering, node: Node, spec: OpSpec | None, params: Members, *, missing: bool) -> dict[str, Any]:
    if spec is not None and not spec.tool and id(node) not in at.wounded:
        _required(at, node, spec, params, missing=missing)
    expressions = spec.expressions if spec else {}
    for key, member in params.items():
        if key not in expressions:
            _respell(member.value)
        schema = spec.params.get("properties", {}).get(key) if spec and not spec.tool else None
        if spec is not None and schema is not None:
            name = command(spec.name) if node.markdown else spec.name
            at.problems.extend(faults(schema, member.value, key, name))
    if spec is not None and spec.name == "core.map" and (as_ := params.get("as")) is not None:
        _branch_name(at, as_.value, str(as_.value.value))
    return {key: member.value.plain() for key, member in params.items()}


def _required(at: _Lowering, node: Node, spec: OpSpec, params: Members, *, missing: bool) -> None:
    needed = [key for key in spec.params.get("required", ()) if key not in params and key not in at.meant]
    if missing and spec.name == "ask":
        needed = [key for key in needed if key != "question"]
    ways = [way["required"] for way in spec.params.get("anyOf", ()) if "required" in way]
    if ways and not any(all(key in params or key in at.meant for key in way) for way in ways):
        needed.append(" or ".join(f"`{key}`" for way in ways for key in way).strip("`"))
    where = node.members["op"].value
    name = command(spec.name) if node.markdown else spec.name
    for key in needed:
        if node.markdown and (key == spec.quote or key.split("`")[0] == spec.quote):
            at.problem(
                where,
                "quote-missing",
                f"`{name}` needs its {spec.quote} in a quote below it",
                "write it below as `> …`",
            )
        elif node.markdown:
            at.problem(where, "parameter-missing", f"`{name}` needs `{key}`", f"write it as `{spec.shape}`")
        else:
            at.problem(
                where, "parameter-missing", f"`{name}` needs `{key}`", f"add `{key.split('`')[0]}` to its `params`"
            )


def _respell(node: Node) -> None:
    """Every text below in the one canonical spelling of its references, places kept."""
    stack = [node]
    while stack:
        here = stack.pop()
        if here.kind == "text" and not here.markdown and "$" in here.value:
            spelt = refs.respelt(here.value)
            if spelt.value != here.value:
                here.offsets = [here.offset(index) for index in spelt.offsets]
                here.value = spelt.value
        stack.extend(here.items)
        stack.extend(member.value for member in here.members.values())


def _to(at: _Lowering, fields: Members, key: str) -> Any:
    member = fields.get(key)
    if member is None or member.value.kind == "null":
        return None
    value = member.value
    if value.kind == "text" or (value.kind == "array" and value.items and all(n.kind == "text" for n in value.items)):
        _respell(value)
        return value.plain()
    wanted = "an addressee or a list of them" if key == "to" else "a conversation or a sender"
    at.problem(value, "field-type", f"`{key}` is {wanted}; this is {_a(value)}")
    return None


_NAMED = re.compile(rf"(?:{refs.NAME}|\d+(?:\+\d+)?)(?:(?:\[\d*\])?\.\w+(?:\+\d+)?)*\??")
"""A name, or a path, whose first part may be an id (`pick.onMiss.2`)."""


def _after(at: _Lowering, fields: Members) -> tuple[str, ...]:
    member = fields.get("after")
    if member is None or member.value.kind == "null":
        return ()
    value = member.value
    names = value.items if value.kind == "array" else [value]
    good: list[str] = []
    for node in names:
        text = str(node.value).strip().removeprefix("$") if node.kind == "text" else ""
        if _NAMED.fullmatch(text):
            good.append(text)
        else:
            said = f"`{node.value}`" if node.kind == "text" else _a(node)
            at.problem(node, "field-type", f"`after` takes the name of an op above, or a list of names; this is {said}")
    return tuple(good)


def _window(at: _Lowering, fields: Members, key: str) -> str | None:
    member = fields.get(key)
    if member is None or member.value.kind == "null":
        return None
    if member.value.kind != "text":
        example = '`within: "3d"`' if key == "within" else '`by: "Fri 17:00"`'
        at.problem(
            member.value, "field-type", f"`{key}` is a text; this is {_a(member.value)}", f"write it such as {example}"
        )
        return None
    _respell(member.value)
    return str(member.value.value)


def _listed(at: _Lowering, node: Node, place: str, level: int, *, missing: bool, what: str) -> Region | None:
    """A region as written: a list of ops, or one op."""
    if node.kind == "array" or (node.kind == "object" and "op" in node.members):
        ops = node.items if node.kind == "array" else [node]
        return _region(at, ops, place, level, missing=missing)
    at.problem(node, "region-shape", f"`{what}` is a list of ops; this is {_a(node)}")
    return None


def _on_miss(at: _Lowering, fields: Members, place: str, level: int) -> Any:
    member = fields.get("onMiss")
    if member is None or member.value.kind == "null":
        return None
    value = member.value
    if value.kind == "text":
        if value.value == "replan":
            return "replan"
        at.problem(
            value,
            "region-shape",
            f'`onMiss` is a list of ops or `"replan"`; this is `{value.value}`',
            did_you_mean(near := nearest(str(value.value), ["replan"])),
            fix=instead(value, near),
        )
        return None
    return _listed(at, value, f"{place}.onMiss", level + 1, missing=True, what="onMiss")


def _on_error(at: _Lowering, fields: Members, place: str, level: int, *, missing: bool) -> Any:
    member = fields.get("onError")
    if member is None or member.value.kind == "null":
        return None
    value = member.value
    if value.kind == "text":
        if value.value in ("halt", "continue"):
            return value.value
        near = nearest(str(value.value), ["halt", "continue"])
        ways = '`"halt"`, `"continue"`, `{ default: … }` or a list of ops'
        at.problem(
            value,
            "field-type",
            f"`onError` is {ways}; this is `{value.value}`",
            did_you_mean(near),
            fix=instead(value, near),
        )
        return None
    if value.kind == "object" and "op" not in value.members:
        return _default(at, value)
    return _listed(at, value, f"{place}.onError", level + 1, missing=missing, what="onError")


def _default(at: _Lowering, node: Node) -> Default | None:
    member = node.members.get("default")
    others = [m for key, m in node.members.items() if key != "default"]
    if member is None or others:
        where = others[0] if others else node
        key = others[0].key if others else ""
        message = f"`onError` has no `{key}`" if key else "`onError` as an object has `default`"
        at.problem(where, "field-type", message, did_you_mean(nearest(key, ["default"])))
        return None
    _respell(member.value)
    return Default(value=member.value.plain())


_RETRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "max": {"type": "integer", "minimum": 0, "maximum": 100},
        "backoff": {"type": "string"},
        "maxDelay": {"type": "string"},
    },
    "required": ["max"],
    "additionalProperties": False,
}


def _retry(at: _Lowering, fields: Members) -> Retry | None:
    member = fields.get("retry")
    if member is None or member.value.kind == "null":
        return None
    found = faults(_RETRY, member.value, "retry", "")
    at.problems.extend(found)
    if found:
        return None
    given = member.value.plain()
    if not isinstance(given, dict) or refs.has_refs(given):
        at.problem(
            member.value,
            "field-type",
            "`retry` is written out, not taken from a name",
            "write it such as `retry: { max: 3, backoff: 2s }`",
        )
        return None
    return Retry(max=given["max"], backoff=given.get("backoff", "1s"), max_delay=given.get("maxDelay"))


def _regions(
    at: _Lowering, node: Node, spec: OpSpec | None, regions: Members, place: str, level: int, *, missing: bool
) -> dict[str, Region]:
    found: dict[str, Region] = {}
    for key in spec.regions if spec else [k for k in REGIONS if k in regions]:
        member = regions.get(key)
        if member is None:
            if key != "else" and id(node) not in at.wounded and key not in at.meant:
                _region_missing(at, node, spec, key)
            continue
        if key == "branches":
            found.update(_branches(at, member.value, place, level, missing=missing))
            continue
        inner = f"{place}[]" if key == "body" else f"{place}.{key}"
        if (region := _listed(at, member.value, inner, level + 1, missing=missing, what=key)) is not None:
            found[key] = region
    return found


def _region_missing(at: _Lowering, node: Node, spec: OpSpec | None, key: str) -> None:
    where = node.members["op"].value
    name = command(spec.name) if spec and node.markdown else spec.name if spec else ""
    if node.markdown:
        what = "branches" if key == "branches" else "commands"
        mend = "indent what belongs to it by two" if key != "branches" else "indent `- branch NAME` below it"
        at.problem(where, "region-missing", f"no {what} stand below `{name}`", mend)
        return
    at.problem(where, "parameter-missing", f"`{name}` needs `{key}`", f"add `{key}: […]` to its `params`")


def _branches(at: _Lowering, node: Node, place: str, level: int, *, missing: bool) -> dict[str, Region]:
    if node.kind not in ("array", "object") or (node.kind == "object" and "op" in node.members):
        at.problem(
            node, "region-shape", f"`branches` is a list of lists of ops, or an object of them; this is {_a(node)}"
        )
        return {}
    if node.kind == "array":
        named = [(str(i), branch) for i, branch in enumerate(node.items, 1)]
    else:
        named = [(key, member.value) for key, member in node.members.items()]
        for key, member in node.members.items():
            _branch_name(at, member, key)
    found: dict[str, Region] = {}
    for key, branch in named:
        region = _listed(at, branch, f"{place}.{key}", level + 1, missing=missing, what=key)
        if region is not None:
            found[key] = region
    return found


def _branch_name(at: _Lowering, where: Node | Member, name: str) -> None:
    if not NAME.match(name):
        at.problem(where, "id-form", f"`{name}` cannot be a name: letters, digits and `_`, no digit first")


def _placed(node: Node, place: str, name: Node, fields: Members, params: Members, spec: OpSpec | None) -> Placed:
    given = {key: member.value for key, member in fields.items() if key != "id"}
    if spec is None or spec.tool:
        written = node.members.get("params")
        empty = Node(kind="object", start=name.start, end=name.end, markdown=node.markdown)
        given["params"] = written.value if written and written.value.kind == "object" else empty
    else:
        given |= {key: member.value for key, member in params.items()}
        if spec.name == "run" and "inputs" in given:
            given["params"] = given["inputs"]
    ident = fields.get("id")
    return Placed(
        place=place,
        start=node.start,
        end=node.end,
        name=(name.start, name.end),
        ident=(ident.value.start, ident.value.end) if ident else None,
        fields=given,
    )


_KINDS = {"object": "an object", "array": "a list", "text": "text", "number": "a number", "null": "null"}


def _a(node: Node) -> str:
    if node.kind == "bool":
        return "`true`" if node.value else "`false`"
    return _KINDS[node.kind]
