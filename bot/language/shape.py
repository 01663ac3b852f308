"""A parameter's value against the JSON Schema that its op declares, with the place of every fault.

Knows the keywords that op declarations use. A text that holds a reference passes wherever it stands: what it will
be is for the types to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bot.language.problems import Fix, Problem, did_you_mean, nearest, respelling
from bot.language.refs import parse
from bot.language.tree import Node

Schema = Mapping[str, Any]

_KIND = {"object": "object", "array": "array", "text": "string", "number": "number", "bool": "boolean", "null": "null"}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "`true` or `false`",
    "null": "null",
}


def faults(schema: Schema, node: Node, name: str, owner: str) -> list[Problem]:
    """What is wrong with the value `node` of parameter `name` of op `owner` (`""`: no op's), in order of place."""
    found: list[Problem] = []
    _check(schema, node, f"`{name}` of `{owner}`" if owner else f"`{name}`", found)
    return found


def kinds(schema: Schema) -> set[str]:
    """The JSON types that a schema lets pass; empty where it names none."""
    if "anyOf" in schema:
        return set().union(*(kinds(way) for way in schema["anyOf"]))
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    if "enum" in schema or "const" in schema:
        return {_json_type(value) for value in schema.get("enum", [schema.get("const")])}
    return set()


def _check(schema: Schema, node: Node, name: str, found: list[Problem]) -> None:
    if node.kind == "text" and "$" in node.value and parse(node.value).refs:
        return
    if "anyOf" in schema:
        _any_of(schema, node, name, found)
        return
    said = kinds(schema)
    if said and not _is(node, said):
        _fault(node, "parameter-type", f"{name} must be {_one_of(schema)}; this is {_a(node)}", found)
        return
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None and node.value not in values:
        near = nearest(str(node.value), [v for v in values if isinstance(v, str)])
        _fault(
            node,
            "parameter-value",
            f"{name} is {_one_of(schema)}, not `{node.value}`",
            found,
            did_you_mean(near),
            instead(node, near),
        )
    elif node.kind == "number":
        _bounds(schema, node, name, found)
    elif node.kind == "text" and "pattern" in schema and not re.search(schema["pattern"], node.value):
        _fault(node, "parameter-type", f"{name} cannot be `{node.value}`", found)
    elif node.kind == "array":
        _array(schema, node, name, found)
    elif node.kind == "object":
        _object(schema, node, name, found)


def _any_of(schema: Schema, node: Node, name: str, found: list[Problem]) -> None:
    """Passes if one way does; else the faults of the way that was meant, by its type."""
    best: list[Problem] | None = None
    for way in schema["anyOf"]:
        tried: list[Problem] = []
        _check(way, node, name, tried)
        if not tried:
            return
        if _is(node, kinds(way)) and "pattern" not in way and (best is None or len(tried) < len(best)):
            best = tried
    if best is None:
        _fault(node, "parameter-type", f"{name} must be {_one_of(schema)}; this is {_a(node)}", found)
        return
    if node.kind in ("object", "array"):
        found.extend(best)
        return
    near = nearest(str(node.value), _texts(schema)) if node.kind == "text" else []
    bounds = best if node.kind == "number" else []
    if bounds:
        found.extend(bounds)
        return
    said = f"`{node.value}`" if node.kind == "text" else _a(node)
    _fault(
        node,
        "parameter-value",
        f"{name} is {_one_of(schema)}, not {said}",
        found,
        did_you_mean(near),
        instead(node, near),
    )


def _bounds(schema: Schema, node: Node, name: str, found: list[Problem]) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if (least is None or node.value >= least) and (most is None or node.value <= most):
        return
    if least is not None and least == most:
        _fault(node, "parameter-value", f"{name} can only be {least}", found)
        return
    where = (
        f"from {least} to {most}"
        if None not in (least, most)
        else f"{least} or more"
        if most is None
        else f"at most {most}"
    )
    _fault(node, "parameter-value", f"{name} must be {where}, not {node.value}", found)


def _array(schema: Schema, node: Node, name: str, found: list[Problem]) -> None:
    if len(node.items) < schema.get("minItems", 0):
        _fault(node, "parameter-value", f"{name} is empty", found)
    if "items" in schema:
        for item in node.items:
            _check(schema["items"], item, f"each of {name}" if not name.startswith("each") else name, found)


def _object(schema: Schema, node: Node, name: str, found: list[Problem]) -> None:
    properties: Schema = schema.get("properties", {})
    if len(node.members) < schema.get("minProperties", 0):
        _fault(node, "parameter-value", f"{name} is empty", found)
    extra = schema.get("additionalProperties", True)
    meant: set[str] = set()
    for key, member in node.members.items():
        if key in properties:
            _check(properties[key], member.value, f"`{key}` in {name}", found)
        elif extra is False:
            near = nearest(key, [k for k in properties if k not in node.members])
            meant.update(near)
            fix = respelling(member.start, member.end, key, near[0]) if len(near) == 1 else None
            mend = did_you_mean(near) or "it has " + ", ".join(f"`{k}`" for k in properties)
            where = Node(kind="text", start=member.start, end=member.end)
            _fault(where, "unknown-parameter", f"{name} has no `{key}`", found, mend, fix)
        elif isinstance(extra, Mapping):
            _check(extra, member.value, f"`{key}` in {name}", found)
    for key in schema.get("required", ()):
        if key not in node.members and key not in meant:
            where = Node(kind="object", start=node.start, end=node.start + 1)
            _fault(where, "parameter-missing", f"{name} needs `{key}`", found)


def _fault(
    node: Node, code: str, message: str, found: list[Problem], mend: str | None = None, fix: Fix | None = None
) -> None:
    found.append(Problem(start=node.start, end=node.end, code=code, message=message, mend=mend, fix=fix))


def instead(node: Node, near: list[str]) -> Fix | None:
    """A text's replacement, inside its quotes."""
    if len(near) != 1 or node.kind != "text" or not node.value:
        return None
    return Fix(start=node.offset(0), end=node.offset(len(node.value)), text=near[0])


def _is(node: Node, allowed: set[str]) -> bool:
    kind = _KIND[node.kind]
    if kind == "number":
        return "number" in allowed or ("integer" in allowed and isinstance(node.value, int))
    return not allowed or kind in allowed


def _texts(schema: Schema) -> list[str]:
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    texts = [v for v in values if isinstance(v, str)]
    return texts + [text for way in schema.get("anyOf", ()) for text in _texts(way)]


def _one_of(schema: Schema) -> str:
    """What a schema takes, in words."""
    words: list[str] = []
    for way in schema.get("anyOf", [schema]):
        values = way.get("enum", [way["const"]] if "const" in way else None)
        if values is not None:
            words.extend(f"`{v}`" for v in values)
        elif "pattern" in way:
            words.append("a reference")
        else:
            words.extend(_WORDS.get(kind, kind) for kind in sorted(kinds(way)))
    words = list(dict.fromkeys(words))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _a(node: Node) -> str:
    if node.kind == "bool":
        return f"`{str(node.value).lower()}`"
    if node.kind == "number":
        return f"the number {node.value}"
    return {"object": "an object", "array": "a list", "text": "text", "null": "null"}[node.kind]


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "null" if value is None else "object"
