"""What stands around the ops: name, title, inputs, within, on, overlap, key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bot.domain.plan import Input, Plan, Retry, Trigger
from bot.domain.values import type_of
from bot.language.problems import Problem, did_you_mean, nearest
from bot.language.refs import NAME
from bot.language.shape import faults
from bot.language.tree import Member, Node

KEYS = ("program", "inputs", "name", "title", "within", "on", "overlap", "key", "onError")
TYPES = ("text", "number", "bool", "null", "time", "enum", "file", "error", "list", "record", "event", "any")
_DECLARES = {"type", "default", "choices", "of", "secret", "description"}
_FOREIGN = {
    "string": "text",
    "str": "text",
    "int": "number",
    "integer": "number",
    "float": "number",
    "boolean": "bool",
    "array": "list",
    "object": "record",
    "dict": "record",
    "date": "time",
    "datetime": "time",
}
_OVERLAP = {"enum": ["replace", "skip", "queue", "allow"]}
_TEXT = {"type": "string"}
_TRIGGER: Mapping[str, Any] = {
    "type": "object",
    "properties": {key: _TEXT for key in ("every", "zone", "event", "where", "as", "command", "script")},
    "additionalProperties": False,
}


def read(members: Mapping[str, Member], problems: list[Problem]) -> dict[str, Any]:
    """The fields of a Plan besides its regions, from a program's members."""
    head: dict[str, Any] = {}
    for key, schema in (("name", _TEXT), ("title", _TEXT), ("within", _TEXT), ("overlap", _OVERLAP), ("key", _TEXT)):
        member = members.get(key)
        if member is None or member.value.kind == "null":
            continue
        found = faults(schema, member.value, key, "")
        problems.extend(found)
        if not found:
            head[key] = str(member.value.value)
    if (inputs := members.get("inputs")) is not None:
        head["inputs"] = _inputs(inputs.value, problems)
    if (on := members.get("on")) is not None and on.value.kind != "null":
        nodes = on.value.items if on.value.kind == "array" else [on.value]
        triggers = [_trigger(node, problems) for node in nodes]
        head["on"] = tuple(trigger for trigger in triggers if trigger is not None)
    return head


def _inputs(node: Node, problems: list[Problem]) -> tuple[Input, ...]:
    if node.kind == "null":
        return ()
    if node.kind != "object":
        message = "`inputs` is an object of names with values or declarations"
        problems.append(Problem(start=node.start, end=node.end, code="inputs-shape", message=message))
        return ()
    found: list[Input] = []
    for name, member in node.members.items():
        if not re.fullmatch(NAME, name):
            message = f"`{name}` cannot be a name: letters, digits and `_`, no digit first"
            problems.append(Problem(start=member.start, end=member.end, code="id-form", message=message))
        found.append(_input(name, member.value, problems))
    return tuple(found)


def _input(name: str, node: Node, problems: list[Problem]) -> Input:
    keys = set(node.members)
    declares = node.kind == "object" and keys & {"type", "default"} and keys <= _DECLARES
    declares = declares and ("type" not in keys or node.members["type"].value.kind == "text")
    if not declares:
        value = node.plain()
        return Input(name=name, type=type_of(value), default=value, has_default=True)
    given: dict[str, Any] = node.plain()
    has_default = "default" in given
    said = given.get("type")
    if said is None:
        said = type_of(given["default"])
    elif not _known(said):
        where = node.members["type"].value
        meant = [_FOREIGN[said]] if said in _FOREIGN else nearest(said, TYPES)
        message = f"no type is called `{said}`"
        mend = did_you_mean(meant) or f"types are {', '.join(f'`{t}`' for t in TYPES)}"
        problems.append(Problem(start=where.start, end=where.end, code="unknown-type", message=message, mend=mend))
        said = "any"
    choices = node.members.get("choices")
    if choices is not None and choices.value.kind != "array":
        problems.extend(faults({"type": "array"}, choices.value, "choices", ""))
    return Input(
        name=name,
        type=said,
        default=given.get("default"),
        has_default=has_default,
        choices=tuple(given["choices"]) if isinstance(given.get("choices"), list) else (),
        of=given.get("of"),
        secret=given.get("secret") is True,
        description=given["description"] if isinstance(given.get("description"), str) else None,
    )


def _known(type_name: str) -> bool:
    return all(word in TYPES for word in re.findall(r"[A-Za-z_]+", re.sub(r"\{.*\}|\(.*\)", "", type_name))) and bool(
        re.match(r"[a-z]", type_name)
    )


def _trigger(node: Node, problems: list[Problem]) -> Trigger | None:
    found = faults(_TRIGGER, node, "on", "")
    kinds = [key for key in ("every", "event", "command", "script") if key in node.members]
    if not found and len(kinds) != 1:
        message = "a trigger of `on` has exactly one of `every`, `event`, `command`, `script`"
        found = [Problem(start=node.start, end=node.end, code="trigger-shape", message=message)]
    if found:
        problems.extend(found)
        return None
    given: dict[str, Any] = node.plain()
    given["as_"] = given.pop("as", None)
    return Trigger(**given)


def head(plan: Plan) -> dict[str, Any]:
    """What stands around the ops, as data, without the program and its `onError`."""
    out: dict[str, Any] = {}
    for key, value in (("name", plan.name), ("title", plan.title), ("within", plan.within)):
        if value is not None:
            out[key] = value
    if plan.inputs is not None:
        out["inputs"] = {given.name: _declared(given) for given in plan.inputs}
    if plan.on:
        out["on"] = [_fired(trigger) for trigger in plan.on]
    for key, value in (("overlap", plan.overlap), ("key", plan.key)):
        if value is not None:
            out[key] = value
    return out


def retry(given: Retry) -> dict[str, Any]:
    """`retry` as data."""
    out: dict[str, Any] = {"max": given.max, "backoff": given.backoff}
    return out if given.max_delay is None else {**out, "maxDelay": given.max_delay}


def _declared(given: Input) -> dict[str, Any]:
    out: dict[str, Any] = {"type": given.type}
    if given.has_default:
        out["default"] = given.default
    if given.choices:
        out["choices"] = list(given.choices)
    if given.of is not None:
        out["of"] = given.of
    if given.secret:
        out["secret"] = True
    if given.description is not None:
        out["description"] = given.description
    return out


def _fired(trigger: Trigger) -> dict[str, Any]:
    fields = ("every", "zone", "event", "where", "as_", "command", "script")
    return {key.rstrip("_"): value for key in fields if (value := getattr(trigger, key)) is not None}
