"""The types of the language: what a value may be, as far as the script and the workspace say.

`any` is everything; a union is one of several. Only what cannot succeed is worth a refusal, so the questions asked
here are `disjoint` and `member`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeGuard

from bot.domain.values import ErrorValue
from bot.language import cel

Word = Literal["text", "number", "bool", "null", "time", "file", "error", "any"]
WORDS: tuple[Word, ...] = ("text", "number", "bool", "null", "time", "file", "error", "any")


@dataclass(frozen=True, slots=True)
class Plain:
    """A type of one word."""

    word: Word


@dataclass(frozen=True, slots=True)
class Enum:
    """One of these values, which may be of any kind."""

    values: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash(repr(self.values))


@dataclass(frozen=True, slots=True)
class List:
    of: Type


@dataclass(frozen=True, slots=True)
class Record:
    """Members in written order. `open`: there may be others."""

    members: tuple[tuple[str, Type], ...] = ()
    open: bool = False

    def get(self, key: str) -> Type | None:
        return next((t for k, t in self.members if k == key), None)


@dataclass(frozen=True, slots=True)
class Event:
    """What an expectation gives: `{event, stream, from, at}`."""

    stream: str
    event: Type


@dataclass(frozen=True, slots=True)
class Union:
    of: tuple[Type, ...]


Type = Plain | Enum | List | Record | Event | Union

TEXT, NUMBER, BOOL, NULL = Plain("text"), Plain("number"), Plain("bool"), Plain("null")
TIME, FILE, ERROR, ANY = Plain("time"), Plain("file"), Plain("error"), Plain("any")
_FILE = Record((("name", TEXT), ("type", TEXT), ("size", NUMBER), ("path", TEXT)))


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value of the language is a list."""
    return isinstance(value, (list, tuple))


def is_record(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value of the language is a record."""
    return isinstance(value, Mapping)


class UnknownType(ValueError):
    """A text that names no type."""


def union(types: Iterable[Type]) -> Type:
    """One of several: flat, each once, `any` where one is."""
    flat: dict[Type, None] = {}
    for each in types:
        for one in each.of if isinstance(each, Union) else (each,):
            flat[one] = None
    if ANY in flat:
        return ANY
    if TEXT in flat:
        flat = {t: None for t in flat if not (isinstance(t, Enum) and all(isinstance(v, str) for v in t.values))}
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat)) if flat else ANY


def parse_type(text: str) -> Type:
    """The type that a text spells. Raises UnknownType."""
    reader = _Reader(text)
    found = reader.whole()
    reader.blank()
    if reader.at < len(text):
        raise UnknownType(text)
    return found


def spell(type_: Type) -> str:
    """The type as people see it; `parse_type` reads it back."""
    match type_:
        case Plain(word):
            return word
        case Enum(values):
            return f"enum({', '.join(_spelt(v) for v in values)})"
        case List(of):
            return f"list<{spell(of)}>"
        case Record(members, open_):
            if not members and open_:
                return "record"
            inside = [f"{_key(k)}: {spell(t)}" for k, t in members]
            return f"record{{{', '.join([*inside, *(['…'] if open_ else [])])}}}"
        case Event(stream):
            return f"event<{stream}>"
        case Union(of):
            return "|".join(spell(t) for t in of)


def disjoint(a: Type, b: Type) -> bool:
    """Whether no value is of both types."""
    if ANY in (a, b) or a == b:
        return False
    if isinstance(a, Union):
        return all(disjoint(one, b) for one in a.of)
    if isinstance(b, Union):
        return disjoint(b, a)
    if isinstance(a, Enum) and isinstance(b, Enum):
        return not any(_same(x, y) for x in a.values for y in b.values)
    if isinstance(a, Enum):
        return all(disjoint(from_value(value), b) for value in a.values)
    if isinstance(b, Enum):
        return disjoint(b, a)
    return _family(a) != _family(b)


def member(type_: Type, key: str | int) -> Type | None:
    """What a step of a path leads to, None where no value of the type has it."""
    match type_:
        case Plain("any"):
            return ANY
        case Plain("file"):
            return _FILE.get(str(key))
        case Plain("error"):
            return TEXT if key == "error" else None
        case Plain():
            return None
        case List(of):
            return of if isinstance(key, int) and key >= 0 else None
        case Record(_, open_):
            if not isinstance(key, str):
                return ANY if open_ else None
            return type_.get(key) or (ANY if open_ else None)
        case Event(_, event):
            return {"event": event, "stream": TEXT, "from": ANY, "at": TIME}.get(str(key))
        case Enum(values):
            return _some(member(from_value(value), key) for value in values)
        case Union(of):
            return _some(member(one, key) for one in of)


def keys(type_: Type) -> list[str]:
    """The members a value of the type is known to may have."""
    match type_:
        case Record(members):
            return [k for k, _ in members]
        case Event():
            return ["event", "stream", "from", "at"]
        case Plain("file"):
            return [k for k, _ in _FILE.members]
        case Plain("error"):
            return ["error"]
        case Union(of):
            return list(dict.fromkeys(k for one in of for k in keys(one)))
        case _:
            return []


def from_value(value: Any) -> Type:
    """The type of a value that is known."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, (int, float)):
        return NUMBER
    if isinstance(value, ErrorValue):
        return ERROR
    if is_record(value):
        return Record(tuple((str(k), from_value(v)) for k, v in value.items()))
    if is_list(value):
        return List(union(from_value(v) for v in value[:200]) if value else ANY)
    return TIME if isinstance(value, datetime) else TEXT


def from_schema(schema: Any) -> Type:
    """What a JSON Schema lets through, `any` where it says too little or too much."""
    if not is_record(schema):
        return ANY
    if "const" in schema:
        return Enum((schema["const"],))
    if is_list(schema.get("enum")) and schema["enum"]:
        return Enum(tuple(schema["enum"]))
    for word in ("anyOf", "oneOf"):
        if is_list(schema.get(word)) and schema[word]:
            return union(from_schema(one) for one in schema[word])
    if "$ref" in schema or "allOf" in schema:
        return ANY
    kind = schema.get("type")
    if is_list(kind):
        return union(from_schema({**schema, "type": one}) for one in kind) if kind else ANY
    match kind:
        case "string":
            return TIME if schema.get("format") in ("date-time", "date", "time") else TEXT
        case "integer" | "number":
            return NUMBER
        case "boolean":
            return BOOL
        case "null":
            return NULL
        case "array":
            return List(from_schema(schema.get("items", {})))
        case "object":
            properties = schema.get("properties")
            known = properties.items() if is_record(properties) else ()
            return Record(
                tuple((str(k), from_schema(v)) for k, v in known), schema.get("additionalProperties") is not False
            )
        case _:
            return ANY


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in an expression that cannot succeed. `kind`: `member` (`key` is not in `type`), `never` (two sides
    that are never equal), `boolean` (`type` where a boolean belongs), `operand` (`sign` takes no such), `list`."""

    kind: Literal["member", "never", "boolean", "operand", "list"]
    start: int
    end: int
    type: Type
    key: str | int = ""
    other: Type = ANY
    sign: str = ""


def of_expression(expression: cel.Expr, names: Callable[[str], Type]) -> Type:
    """The type of what an expression gives. `names` gives the type of each free variable."""
    return _Typer(names).of(expression.tree, {})


def examine_expression(expression: cel.Expr, names: Callable[[str], Type]) -> tuple[Type, tuple[Issue, ...]]:
    """The type of what an expression gives, and what in it cannot succeed, in written order."""
    typer = _Typer(names)
    found = typer.of(expression.tree, {})
    return found, tuple(sorted(typer.issues, key=lambda issue: issue.start))


_TEXT_METHODS = {
    "contains": BOOL,
    "startsWith": BOOL,
    "endsWith": BOOL,
    "matches": BOOL,
    "split": List(TEXT),
    "lowerAscii": TEXT,
    "upperAscii": TEXT,
    "trim": TEXT,
    "replace": TEXT,
    "substring": TEXT,
    "charAt": TEXT,
    "indexOf": NUMBER,
    "lastIndexOf": NUMBER,
}
_FUNCTIONS: Mapping[str, Type] = {
    "has": BOOL,
    "size": NUMBER,
    "string": TEXT,
    "int": NUMBER,
    "uint": NUMBER,
    "double": NUMBER,
    "bool": BOOL,
    "timestamp": TIME,
    "join": TEXT,
    "matches": BOOL,
}


class _Typer:
    """One pass over a tree. Deep trees are `any` below a point: nothing here needs more."""

    def __init__(self, names: Callable[[str], Type]) -> None:
        self.names = names
        self.issues: list[Issue] = []
        self.depth = 0

    def of(self, tree: cel.Tree, bound: Mapping[str, Type]) -> Type:
        if self.depth > 80:
            return ANY
        self.depth += 1
        try:
            return self.typed(tree, bound)
        finally:
            self.depth -= 1

    def typed(self, tree: cel.Tree, bound: Mapping[str, Type]) -> Type:
        match tree:
            case cel.Literal(value):
                return (
                    ANY if isinstance(value, bytes) else Enum((value,)) if isinstance(value, str) else from_value(value)
                )
            case cel.Ident(name):
                return bound[name] if name in bound else self.names(name)
            case cel.Member(of, name):
                return self.step(tree, self.of(of, bound), name)
            case cel.Index(of, index):
                return self.index(tree, self.of(of, bound), index, bound)
            case cel.Call():
                return self.call(tree, bound)
            case cel.Macro():
                return self.macro(tree, bound)
            case cel.Unary(op, operand):
                inner = self.of(operand, bound)
                self.want(operand, inner, BOOL if op == "!" else Union((NUMBER, ANY)))
                return BOOL if op == "!" else inner
            case cel.Binary():
                return self.binary(tree, bound)
            case cel.Conditional(condition, then, other):
                self.want(condition, self.of(condition, bound), BOOL)
                return union((self.of(then, bound), self.of(other, bound)))
            case cel.ListOf(items):
                return List(union(_widened(self.of(item, bound)) for item in items) if items else ANY)
            case cel.RecordOf(entries):
                return self.record(entries, bound)

    def want(self, tree: cel.Tree, found: Type, wanted: Type) -> None:
        if wanted == BOOL and disjoint(found, BOOL):
            self.issues.append(Issue("boolean", tree.start, tree.end, found))

    def step(self, tree: cel.Member | cel.Index, of: Type, key: str | int) -> Type:
        found = member(of, key)
        if found is None:
            self.issues.append(Issue("member", tree.of.end, tree.end, of, key))
            return ANY
        return found

    def index(self, tree: cel.Index, of: Type, index: cel.Tree, bound: Mapping[str, Type]) -> Type:
        if isinstance(index, cel.Literal) and type(index.value) in (int, str):
            assert isinstance(index.value, (int, str))
            return self.step(tree, of, index.value)
        self.of(index, bound)
        return of.of if isinstance(of, List) else ANY

    def call(self, tree: cel.Call, bound: Mapping[str, Type]) -> Type:
        if tree.name == "has" and tree.of is None:
            argument = tree.arguments[0] if tree.arguments else None
            if isinstance(argument, cel.Member):
                quiet, self.issues = self.issues, []
                self.of(argument.of, bound)
                self.issues = quiet
            return BOOL
        of = None if tree.of is None else self.of(tree.of, bound)
        given = [self.of(argument, bound) for argument in tree.arguments]
        if tree.name == "size":
            subject = of if of is not None else given[0] if given else ANY
            where = tree.of or (tree.arguments[0] if tree.arguments else tree)
            if disjoint(subject, Union((TEXT, List(ANY), Record(open=True)))):
                self.issues.append(Issue("list", where.start, where.end, subject, sign="size"))
            return NUMBER
        if tree.of is not None and of is not None and tree.name in _TEXT_METHODS:
            if disjoint(of, TEXT):
                self.issues.append(Issue("operand", tree.of.start, tree.of.end, of, sign=tree.name, other=TEXT))
            return _TEXT_METHODS[tree.name]
        if tree.of is not None and tree.name.startswith("get"):
            return NUMBER
        if tree.name == "reverse" and of is not None:
            return _widened(of)
        return _FUNCTIONS.get(tree.name, ANY)

    def macro(self, tree: cel.Macro, bound: Mapping[str, Type]) -> Type:
        of = self.of(tree.of, bound)
        if disjoint(of, Union((List(ANY), Record(open=True)))):
            self.issues.append(Issue("list", tree.of.start, tree.of.end, of, sign=tree.name))
            return ANY
        element = of.of if isinstance(of, List) else ANY
        inner = {**bound, tree.variable: element}
        given = [self.of(argument, inner) for argument in tree.arguments]
        predicates = tree.arguments if tree.name != "map" else tree.arguments[:-1]
        for argument, found in zip(predicates, given, strict=False):
            self.want(argument, found, BOOL)
        if tree.name == "map":
            return List(_widened(given[-1]))
        return List(element) if tree.name == "filter" else BOOL

    def binary(self, tree: cel.Binary, bound: Mapping[str, Type]) -> Type:
        left, right = self.of(tree.left, bound), self.of(tree.right, bound)
        if tree.op in ("&&", "||"):
            self.want(tree.left, left, BOOL)
            self.want(tree.right, right, BOOL)
            return BOOL
        if tree.op in ("==", "!="):
            if NULL not in (left, right) and disjoint(left, right):
                self.issues.append(Issue("never", tree.start, tree.end, left, other=right, sign=tree.op))
            return BOOL
        if tree.op == "in":
            return self.contained(tree, left, right)
        if tree.op in ("<", "<=", ">", ">="):
            if disjoint(left, right):
                self.issues.append(Issue("operand", tree.start, tree.end, left, other=right, sign=tree.op))
            return BOOL
        return self.calculated(tree, _widened(left), _widened(right))

    def contained(self, tree: cel.Binary, left: Type, right: Type) -> Type:
        if disjoint(right, Union((List(ANY), Record(open=True)))):
            self.issues.append(Issue("list", tree.right.start, tree.right.end, right, sign="in"))
        elif isinstance(tree.right, cel.ListOf) and tree.right.items:
            options = union(self.of(item, {}) if isinstance(item, cel.Literal) else ANY for item in tree.right.items)
            if disjoint(left, options):
                self.issues.append(Issue("never", tree.start, tree.end, left, other=options, sign="in"))
        return BOOL

    def calculated(self, tree: cel.Binary, left: Type, right: Type) -> Type:
        if ANY in (left, right) or TIME in (left, right):
            known = left if left != ANY else right
            return known if tree.op == "+" and known in (TEXT, NUMBER) and TIME not in (left, right) else ANY
        takes: Type = Union((NUMBER, TEXT, List(ANY))) if tree.op == "+" else NUMBER
        if disjoint(left, right) or disjoint(left, takes):
            self.issues.append(Issue("operand", tree.start, tree.end, left, other=right, sign=tree.op))
            return ANY
        if isinstance(left, List) and isinstance(right, List):
            return List(union((left.of, right.of)))
        return left if isinstance(left, Plain) else right if isinstance(right, Plain) else ANY

    def record(self, entries: Iterable[tuple[cel.Tree, cel.Tree]], bound: Mapping[str, Type]) -> Type:
        members: list[tuple[str, Type]] = []
        open_ = False
        for key, value in entries:
            found = _widened(self.of(value, bound))
            if isinstance(key, cel.Literal) and isinstance(key.value, str):
                members.append((key.value, found))
            else:
                open_ = True
        return Record(tuple(members), open_)


def _widened(type_: Type) -> Type:
    """A text literal's type where it is one value among others."""
    if isinstance(type_, Enum):
        return union(from_value(v) for v in type_.values)
    if isinstance(type_, Union):
        return union(_widened(one) for one in type_.of)
    return type_


def widened(type_: Type) -> Type:
    """The type with `text` in place of an enum of texts: what may be calculated with, joined or shown."""
    return _widened(type_)


def _some(found: Iterable[Type | None]) -> Type | None:
    there = [t for t in found if t is not None]
    return union(there) if there else None


def _family(type_: Type) -> str:
    match type_:
        case Plain("time"):
            return "text"
        case Plain("file") | Record() | Event():
            return "record"
        case Plain(word):
            return word
        case List():
            return "list"
        case _:
            return ""


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _spelt(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[^\W\d][\w.-]*", value) and value not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if re.fullmatch(r"\w+", key) else json.dumps(key, ensure_ascii=False)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, sign: str) -> bool:
        self.blank()
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def need(self, sign: str) -> None:
        if not self.take(sign):
            raise UnknownType(self.text)

    def word(self, pattern: str = r"[A-Za-z_]\w*") -> str:
        self.blank()
        found = re.compile(pattern).match(self.text, self.at)
        if not found:
            raise UnknownType(self.text)
        self.at = found.end()
        return found[0]

    def whole(self) -> Type:
        types = [self.one()]
        while self.take("|"):
            types.append(self.one())
        return union(types)

    def one(self) -> Type:
        word = self.word()
        if word == "list":
            if not self.take("<"):
                return List(ANY)
            inner = self.whole()
            self.need(">")
            return List(inner)
        if word == "record":
            return self.record() if self.take("{") else Record(open=True)
        if word == "enum":
            self.need("(")
            values = [self.value()]
            while self.take(","):
                values.append(self.value())
            self.need(")")
            return Enum(tuple(values))
        if word == "event":
            self.need("<")
            stream = self.word(r"[^>]+")
            self.need(">")
            return Event(stream, ANY)
        for known in WORDS:
            if known == word:
                return Plain(known)
        raise UnknownType(self.text)

    def record(self) -> Type:
        members: list[tuple[str, Type]] = []
        open_ = False
        while not self.take("}"):
            if self.take("…") or self.take("..."):
                open_ = True
            else:
                self.blank()
                key = self.value() if self.text[self.at : self.at + 1] == '"' else self.word(r"\w+")
                self.take("?")
                self.need(":")
                members.append((str(key), self.whole()))
            if not self.take(","):
                self.need("}")
                break
        return Record(tuple(members), open_)

    def value(self) -> Any:
        self.blank()
        try:
            value, end = json.JSONDecoder().raw_decode(self.text, self.at)
        except ValueError:
            return self.word(r"[^\s,()]+")
        self.at = end
        return value
