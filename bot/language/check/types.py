"""Types: what each op gives, and what of it cannot succeed where it goes."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bot.domain.catalog import OpSpec
from bot.domain.plan import Default, Op, Region
from bot.language import cel, types
from bot.language.check.context import Checking, Span, problem
from bot.language.problems import Problem, did_you_mean, nearest, respelling
from bot.language.refs import has_refs, refs
from bot.language.scope import Use
from bot.language.types import Type, is_list, is_record

_FIELD_TYPES: Mapping[str, Type] = {
    "text": types.TEXT,
    "number": types.NUMBER,
    "date": types.TIME,
    "time": types.TIME,
    "bool": types.BOOL,
    "choice": types.ANY,
    "person": types.TEXT,
    "file": types.FILE,
}
_DELIVERED = types.Record((("delivered", types.List(types.TEXT)),))
_WANTED = {"list": types.List(types.ANY), "text": types.TEXT, "number": types.NUMBER}
_BOOLEANS = ("cond", "until", "where")


def check(c: Checking) -> Iterator[Problem]:
    """One pass in written order; fills `c.types`."""
    yield from _region(c, c.plan.program)
    if c.plan.on_error is not None:
        yield from _region(c, c.plan.on_error)


def _region(c: Checking, region: Region) -> Iterator[Problem]:
    for op in region.ops:
        spec = c.catalog.get(op.op)
        yield from _paths(c, op)
        if spec is not None:
            yield from _expressions(c, op, spec, late=False)
            yield from _expected(c, op, spec)
            if spec.tool:
                yield from _arguments(c, op, spec)
        for _, inner in op.inner():
            yield from _region(c, inner)
        if spec is not None:
            yield from _expressions(c, op, spec, late=True)
        c.types[op.place] = op_type(c, op, spec)


def op_type(c: Checking, op: Op, spec: OpSpec | None) -> Type:
    """What an op gives, its `onError` included."""
    found = types.ANY if spec is None else _value(c, op, spec)
    how = op.on_error if op.on_error is not None else (spec.on_error if spec else "halt")
    if how == "continue":
        return types.union((found, types.NULL))
    if isinstance(how, Default):
        return types.union((found, c.value_type(op.place, "onError", how.value)))
    return found


def _value(c: Checking, op: Op, spec: OpSpec) -> Type:
    if spec.tool:
        return types.from_schema(spec.output) if spec.output is not None else types.ANY
    if spec.value.startswith("="):
        of = c.value_type(op.place, spec.value[1:], op.params.get(spec.value[1:]))
        return of if isinstance(of, types.List) else types.List(types.ANY)
    match spec.value:
        case "answer":
            return _answer(c, op)
        case "event":
            return c.evidence_type(op)
        case "delivered":
            return _DELIVERED
        case "regions":
            ways = [region_type(c, op.regions[name]) for name in op.regions]
            return types.union(ways if "else" in op.regions else [*ways, types.NULL])
        case "items":
            inner = region_type(c, op.regions["body"]) if "body" in op.regions else types.ANY
            tolerated = op.params.get("onItemError")
            if tolerated == "continue":
                inner = types.union((inner, types.NULL))
            elif is_record(tolerated) and "default" in tolerated:
                inner = types.union((inner, c.value_type(op.place, "onItemError", tolerated["default"])))
            return types.List(inner)
        case "body":
            return region_type(c, op.regions["body"]) if "body" in op.regions else types.ANY
        case "branches":
            lost = () if op.params.get("until") is None else (types.NULL,)
            ways = {name: types.union((region_type(c, region), *lost)) for name, region in op.regions.items()}
            return types.List(types.union(ways.values())) if op.branches_listed else types.Record(tuple(ways.items()))
        case "expression":
            return _let(c, op)
        case word:
            return _named(word)


@functools.lru_cache(maxsize=64)
def _named(word: str) -> Type:
    try:
        return types.parse_type(word)
    except types.UnknownType:
        return types.ANY


def region_type(c: Checking, region: Region) -> Type:
    """What a region gives: one of its ops' values, or null."""
    given = [c.types.get(op.place, types.ANY) for op in region.ops if (s := c.catalog.get(op.op)) is None or s.binds]
    return types.union(given) if given else types.NULL


def _answer(c: Checking, op: Op) -> Type:
    choices, fields, need = op.params.get("choices"), op.params.get("fields"), op.params.get("need")
    if is_list(fields):
        members = tuple(
            (str(f.get("name")), _FIELD_TYPES.get(str(f.get("type")), types.ANY)) for f in fields if is_record(f)
        )
        picked: Type = types.Record(members)
    elif fields is not None:
        picked = types.ANY
    elif is_list(choices) and choices:
        picked = types.ANY if has_refs(choices) else types.Enum(tuple(_bound(choice) for choice in choices))
    elif isinstance(choices, str):
        of = c.value_type(op.place, "choices", choices)
        picked = of.of if isinstance(of, types.List) else types.ANY
    else:
        picked = types.TEXT
    if isinstance(need, str) and need != "all":
        return types.ANY
    if need == "all" or (isinstance(need, int) and need > 1):
        return types.List(types.Record((("by", types.TEXT), ("answer", picked))))
    return picked if need != 1 else types.ANY


def _bound(choice: Any) -> Any:
    return choice.get("value", choice.get("label")) if is_record(choice) else choice


def _let(c: Checking, op: Op) -> Type:
    text = op.params.get("be")
    if not isinstance(text, str):
        return types.ANY
    try:
        return types.of_expression(cel.parse(text), c.env(op.place, "be"))
    except cel.CelSyntax:
        return types.ANY


def _paths(c: Checking, op: Op) -> Iterator[Problem]:
    """References that step into what has no such member."""
    for use in c.scopes.uses(op.place):
        if use.how != "ref" or len(use.path) < 2:
            continue
        found = c.name_type(op.place, use.field, use.name)
        for at, step in enumerate(use.path[1:], 1):
            inner = types.member(found, step)
            if inner is None:
                if not (use.tested and at == len(use.path) - 1):
                    yield _no_member(c, op.place, use, at, found)
                break
            found = inner


def _no_member(c: Checking, place: str, use: Use, at: int, of: Type) -> Problem:
    step = use.path[at]
    node = c.node(place, use.field, *use.keys)
    start, end = use.start, use.end
    if node is not None and isinstance(node.value, str):
        found = re.compile(rf"(?:\.|\[[\"']?){re.escape(str(step))}").search(node.value, use.start)
        if found:
            start, end = found.end() - len(str(step)), found.end()
    span = c.within(place, (use.field, *use.keys), start, end)
    before = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" if i else str(s) for i, s in enumerate(use.path[:at]))
    return _member_problem(c, place, span, before, of, step)


def _member_problem(c: Checking, place: str, span: Span, before: str, of: Type, step: str | int) -> Problem:
    if isinstance(step, int) and step < 0:
        return problem(
            span, "no-such-member", f"`{before}[{step}]`: indexes count from 0, and negative ones are not read"
        )
    known = types.keys(of)
    near = nearest(str(step), known) if isinstance(step, str) else []
    spelt = f"[{step}]" if isinstance(step, int) else f".{step}"
    what = f"`{before}` is {article(of)}" if not known else f"`{before}` has {', '.join(f'`{k}`' for k in known[:12])}"
    return problem(
        span,
        "no-such-member",
        f"`{before}{spelt}` is not there: {what}",
        did_you_mean(near),
        near[0] if len(near) == 1 else None,
    )


def _expressions(c: Checking, op: Op, spec: OpSpec, *, late: bool) -> Iterator[Problem]:
    """What cannot succeed in an op's CEL. `until` sees the body, so it comes after the body."""
    for name, language in spec.expressions.items():
        text = op.params.get(name)
        if language != "cel" or (name == "until") is not late or not isinstance(text, str):
            continue
        try:
            read = cel.parse(text)
        except cel.CelSyntax:
            continue
        found, issues = types.examine_expression(read, c.env(op.place, name))
        for issue in issues:
            yield _issue(c, op, name, text, issue)
        if name in _BOOLEANS and not issues and types.disjoint(found, types.BOOL):
            span = c.within(op.place, (name,), 0, len(text))
            yield _not_boolean(c, op.place, span, text, found)


def _not_boolean(c: Checking, place: str, span: Span, text: str, found: Type) -> Problem:
    where = "" if not re.fullmatch(r"\w+", text) else _bound_at(c, place, text)
    mend = None
    if re.fullmatch(r"[\w.]+", text):
        test = {"number": f"{text} > 0", "text": f"{text} != ''", "list": f"size({text}) > 0"}.get(_kind(found))
        mend = f"did you mean `{test}`?" if test else None
    return problem(
        span, "not-boolean", f"a condition must be a boolean; `{_short(text)}` is {article(found)}{where}", mend
    )


def _issue(c: Checking, op: Op, name: str, text: str, issue: types.Issue) -> Problem:
    span = c.within(op.place, (name,), issue.start, issue.end)
    said = text[issue.start : issue.end]
    match issue.kind:
        case "member":
            before = _before(text, issue.start)
            step = issue.key
            if isinstance(step, str) and said.startswith("."):
                span = c.within(op.place, (name,), issue.end - len(step), issue.end)
            return _member_problem(c, op.place, span, before, issue.type, step)
        case "boolean":
            return _not_boolean(c, op.place, span, said, issue.type)
        case "list":
            wants = "a list, a record or a text" if issue.sign == "size" else "a list"
            return problem(
                span, "type-mismatch", f"`{issue.sign}` needs {wants}; `{_short(said)}` is {article(issue.type)}"
            )
        case "never":
            return _never(span, said, issue)
        case "operand":
            return _operand(c, op, name, text, span, issue)


def _never(span: Span, said: str, issue: types.Issue) -> Problem:
    always = "always" if issue.sign == "!=" else "never"
    if issue.sign == "in" and (options := _options(issue.type)):
        listed = ", ".join(f"`{v}`" for v in options[:8])
        return problem(span, "never-true", f"`{_short(said)}` is never true: it can be {listed}")
    for literal, options in ((issue.other, issue.type), (issue.type, issue.other)):
        one = literal.values[0] if isinstance(literal, types.Enum) and len(literal.values) == 1 else None
        choices = _options(options)
        if isinstance(one, str) and choices:
            near = nearest(one, choices)
            listed = ", ".join(f"`{v}`" for v in choices[:8])
            mend = did_you_mean(near)
            fix = said.replace(one, near[0]) if near and said.count(one) == 1 else None
            return problem(span, "never-true", f"`{_short(said)}` is {always} true: it can be {listed}", mend, fix)
    return problem(
        span,
        "never-true",
        f"`{_short(said)}` is {always} true: {article(issue.type)} and {article(issue.other)} are never equal",
    )


def _operand(c: Checking, op: Op, name: str, text: str, span: Span, issue: types.Issue) -> Problem:
    said = text[issue.start : issue.end]
    if issue.other == types.TEXT and issue.sign not in ("+", "-", "*", "/", "%", "<", "<=", ">", ">="):
        return problem(span, "type-mismatch", f"`{issue.sign}` needs text; `{_short(said)}` is {article(issue.type)}")
    kinds = {_kind(issue.type), _kind(issue.other)}
    mend = (
        "`string(…)` makes a text of a number"
        if kinds == {"text", "number"} and issue.sign == "+"
        else ("`int(…)` reads a number from text" if kinds == {"text", "number"} else None)
    )
    what = (
        "compares two of one kind"
        if issue.sign in ("<", "<=", ">", ">=")
        else ("adds numbers or joins texts" if issue.sign == "+" else "calculates with numbers")
    )
    return problem(
        span,
        "type-mismatch",
        f"`{issue.sign}` {what}; here stand {article(issue.type)} and {article(issue.other)}",
        mend,
    )


def _expected(c: Checking, op: Op, spec: OpSpec) -> Iterator[Problem]:
    """`count content`: a list is needed, and a text is there."""
    for name, word in spec.expects.items():
        if name not in op.params or (node := c.node(op.place, name)) is None:
            continue
        value = op.params[name]
        found = c.value_type(op.place, name, value)
        if not types.disjoint(found, _WANTED[word]):
            continue
        span = (node.start, node.end)
        needs = f"`{c.spelt(op.place)}` needs {article(_WANTED[word])}"
        ref = _whole(c, op.place, name, value)
        if ref is None:
            if spec.params.get("properties", {}).get(name, {}).get("type") == "string" and not isinstance(value, str):
                continue
            yield problem(span, "type-mismatch", f"{needs}; this is {article(found)}")
            continue
        path = str(value)[1:].strip("{}")
        where = _bound_at(c, op.place, ref.name) if len(ref.path) == 1 else ""
        mend = None
        if word == "list" and _kind(found) == "text" and c.catalog.get("lines") is not None:
            mend = f"did you mean `lines {path}` first?"
        elif word == "number" and _kind(found) == "list":
            mend = f"did you mean `count {path}` first?"
        yield problem(
            c.use(op.place, ref) if len(ref.path) == 1 else span,
            "type-mismatch",
            f"{needs}; `{path}` is {article(found)}{where}",
            mend,
        )


def _whole(c: Checking, place: str, name: str, value: Any) -> Use | None:
    if not isinstance(value, str):
        return None
    return next(
        (
            u
            for u in c.scopes.uses(place)
            if u.field == name and not u.keys and u.how == "ref" and (u.start, u.end) == (0, len(value))
        ),
        None,
    )


def _bound_at(c: Checking, place: str, name: str) -> str:
    binding = c.scopes.resolve(place, name)
    return c.on_line(binding.places[0]) if binding.kind == "op" else ""


def article(type_: Type) -> str:
    """A type in words: `a list`, `text`, `a number`."""
    match type_:
        case types.Plain("text" | "null" as word):
            return word
        case types.Plain("bool"):
            return "a boolean"
        case types.Plain("error"):
            return "a failed answer"
        case types.Plain("any"):
            return "anything"
        case types.Plain(word):
            return f"a {word}"
        case types.Enum(values):
            shown = [f"`{v}`" for v in values[:4]]
            return (
                ("text" if all(isinstance(v, str) for v in values) else "one of " + ", ".join(shown))
                if len(values) > 1
                else (f"the {_kind(type_)} {shown[0]}")
            )
        case types.List():
            return "a list"
        case types.Record() | types.Event():
            return "a record"
        case types.Union(of):
            words = list(dict.fromkeys(article(one) for one in of))
            return " or ".join(words) if len(words) < 4 else f"`{types.spell(type_)}`"


def _kind(type_: Type) -> str:
    for kind, sample in (("text", types.TEXT), ("number", types.NUMBER), ("list", types.List(types.ANY))):
        if type_ != types.ANY and not types.disjoint(type_, sample):
            return kind
    return ""


def _options(type_: Type) -> list[str]:
    if isinstance(type_, types.Enum):
        return [v for v in type_.values if isinstance(v, str)] if len(type_.values) > 0 else []
    if isinstance(type_, types.Union):
        return [v for one in type_.of for v in _options(one)]
    return []


def _before(text: str, at: int) -> str:
    found = re.search(r"[\w.\[\]'\"()]+$", text[:at])
    return found[0] if found else text[:at]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _arguments(c: Checking, op: Op, spec: OpSpec) -> Iterator[Problem]:
    """A tool's arguments against its JSON Schema; what refers is known by its type only."""
    if spec.schema is None:
        return
    validator = _validator(json.dumps(spec.schema, sort_keys=True, default=str))
    if validator is None:
        return
    params = dict(op.params)
    referring = {where for where, _ in refs(params)}
    told: set[tuple[str | int, ...]] = set()
    for fault in validator.iter_errors(params):
        path = tuple(fault.instance_path)
        # A fault of the whole cannot be judged while a part of it is not known.
        if not _structural(fault) and (path in told or any(where[: len(path)] == path for where in referring)):
            continue
        yield from _argument(c, op, spec, fault, path)
        told.add(path if not _structural(fault) else (*path, fault.message))
    for where, ref in refs(params):
        whole = _at(params, where)
        if ref.start or ref.end != len(str(whole)):
            continue
        wanted = types.from_schema(_subschema(spec.schema, where))
        use = next((u for u in c.scopes.uses(op.place) if (u.field, *u.keys) == where and u.start == 0), None)
        if use is None or types.disjoint(found := c.path_type(op.place, use), wanted) is False:
            continue
        name = str(where[-1] if where else "")
        yield problem(
            c.span(op.place, *where),
            "argument-type",
            f"`{name}` of `{op.op}` is {types.spell(wanted)}; `{ref.text}` is {article(found)}",
        )


def _structural(fault: Any) -> bool:
    return type(fault.kind).__name__ in ("Required", "AdditionalProperties", "UnevaluatedProperties")


def _argument(c: Checking, op: Op, spec: OpSpec, fault: Any, path: tuple[str | int, ...]) -> Iterator[Problem]:
    kind = type(fault.kind).__name__
    of = f"`{op.op}`" if not path else f"`{'.'.join(map(str, path))}` of `{op.op}`"
    if kind == "Required":
        if _misspelt(op, spec, path, fault.kind.property):
            return
        yield problem(
            c.span(op.place, *path) if path else c.name(op.place),
            "argument-missing",
            f"{of} needs `{fault.kind.property}`",
        )
    elif kind in ("AdditionalProperties", "UnevaluatedProperties"):
        properties: Mapping[str, Any] = (_subschema(spec.schema or {}, path) or {}).get("properties", {})
        for key in fault.kind.unexpected:
            near = nearest(key, [k for k in properties if k not in op.params or path])
            listed = f"it takes {', '.join(f'`{k}`' for k in properties)}" if properties else "it takes none"
            span = c.key_span(op.place, path, key)
            fix = respelling(*span, key, near[0]) if len(near) == 1 and c.node(op.place, *path, key) else None
            mend = did_you_mean(near) or listed
            yield replace(problem(span, "unknown-argument", f"{of} takes no `{key}`", mend), fix=fix)
    else:
        wanted = _subschema(spec.schema or {}, path)
        said = types.spell(types.from_schema(wanted)) if kind == "Type" and wanted else ""
        if kind == "Type" and is_record(wanted) and wanted.get("type") == "integer":
            said = "a whole number"
        value = _at(dict(op.params), path) if path else None
        shown = f"`{_short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}`"
        if kind == "Enum":
            options = [o for o in fault.kind.options if isinstance(o, str)]
            near = nearest(str(value), options)
            listed = ", ".join(f"`{o}`" for o in fault.kind.options)
            yield problem(
                c.span(op.place, *path),
                "argument-value",
                f"{of} is one of {listed}, not {shown}",
                did_you_mean(near),
                near[0] if len(near) == 1 and isinstance(value, str) else None,
                fix_at=c.inner(op.place, *path),
            )
        elif said:
            yield problem(c.span(op.place, *path), "argument-type", f"{of} must be {said}, not {shown}")
        else:
            message = re.sub(r"\"([^\"]*)\"", r"`\1`", fault.message)
            yield problem(c.span(op.place, *path), "argument-value", f"{of}: {message}")


def _misspelt(op: Op, spec: OpSpec, path: tuple[str | int, ...], wanted: str) -> bool:
    """Whether a missing argument is there under a likely misspelling, which is told as such."""
    within = _subschema(spec.schema or {}, path) or {}
    given = _at(dict(op.params), path)
    if within.get("additionalProperties") is not False or not is_record(given):
        return False
    properties: Mapping[str, Any] = within.get("properties", {})
    return any(wanted in nearest(key, properties) for key in given if key not in properties)


def _at(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _subschema(schema: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if not is_record(schema):
            return {}
        schema = schema.get("items", {}) if isinstance(step, int) else schema.get("properties", {}).get(step, {})
    return schema


@functools.lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """A validator that fetches nothing, or None where the schema itself cannot be used."""
    import jsonschema_rs

    def refuse(uri: str) -> Any:
        raise ValueError(f"{uri} is not fetched")

    try:
        return jsonschema_rs.validator_for(json.loads(schema), retriever=refuse)
    except (jsonschema_rs.ValidationError, ValueError):
        return None
