"""Evaluates CEL: celpy's interpreter with what JSON data needs repaired. Runs in the sandbox's processes only.

Beside plain celpy: `==` never fails on unlike types and numbers compare and calculate across integers and
fractions; an index must be there; `&&`, `||`, `!`, `? :` and the predicates of macros take booleans only; a key that
is not there is named with its path; the string functions of the extension library are there.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import celpy
import lark
from celpy import celtypes as ct
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator, base_functions

from bot.domain.errors import OpError
from bot.domain.values import ErrorValue, normalise, type_of
from bot.language.cel import MACROS, CelSyntax, parse

Value = Any
"""A value of celpy's types, or one of its error values."""

_LONGEST = 1 << 26
"""Characters of a text that an expression may build."""


class ErrorRecord(ct.MapType):
    """An error value of the language inside an expression: a record with the one key `error`, and no text."""

    why: str = ""


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """What an expression gives, as a value of the language. Raises OpError in the script's words."""
    try:
        return from_cel(_program(text).evaluate({name: to_cel(value) for name, value in names.items()}))
    except CELEvalError as fault:
        raise OpError(_said(fault)) from None
    except RecursionError:
        raise OpError("the expression nests too deep") from None
    except OverflowError:
        raise OpError("a number is beyond what the expression can hold") from None


def to_cel(value: Any) -> Value:
    """A value of the language as celpy has it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ct.BoolType(value)
    if isinstance(value, int):
        try:
            return ct.IntType(value)
        except ValueError:
            raise OpError(f"{value} is beyond what an expression's integers hold (64 bits)") from None
    if isinstance(value, float):
        return ct.DoubleType(value)
    if isinstance(value, str):
        return ct.StringType(value)
    if isinstance(value, ErrorValue):
        record = ErrorRecord({ct.StringType("error"): ct.StringType(value.why)})
        record.why = value.why
        return record
    if isinstance(value, dict):
        return ct.MapType({ct.StringType(k): to_cel(v) for k, v in value.items()})
    return ct.ListType([to_cel(v) for v in value])


def from_cel(value: Value) -> Any:
    """A value of celpy as the language has it: numbers without a fraction are integers."""
    if value is None or isinstance(value, (bool, ErrorValue)):
        return value
    if isinstance(value, ct.BoolType):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OpError("the expression gives no finite number")
        return normalise(float(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, ErrorRecord):
        return ErrorValue(value.why)
    if isinstance(value, dict):
        return {_key(k): from_cel(v) for k, v in value.items()}
    if isinstance(value, list):
        return [from_cel(v) for v in cast("list[Any]", value)]
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.timedelta):
        total = value.total_seconds()
        return f"{int(total) if total.is_integer() else total}s"
    if isinstance(value, bytes):
        raise OpError("the expression gives bytes, and those are no value here")
    if isinstance(value, (type, ct.TypeType)):
        return _type_name(value)
    raise OpError("the expression gives nothing that could be kept")


def prime() -> None:
    """Builds the grammar and runs an expression, so that a process forked from this one is ready at once."""
    evaluate("xs.filter(x, x.n > 1.0 && has(x.n)).map(x, string(x.n) + 'a'.lowerAscii())", {"xs": [{"n": 2}]})


class _Runner(celpy.InterpretedRunner):
    def evaluate(self, context: Any) -> Any:
        return _Evaluator(ast=self.ast, activation=self.new_activation()).evaluate(context)


_ENVIRONMENT = celpy.Environment(runner_class=_Runner)


@functools.lru_cache(maxsize=256)
def _program(text: str) -> celpy.Runner:
    try:
        parse(text)
        return _ENVIRONMENT.program(_ENVIRONMENT.compile(text), functions=FUNCTIONS)
    except CelSyntax as said:
        raise OpError(said.message) from None
    except (CELParseError, ValueError):
        raise OpError("the expression does not read") from None


class _Evaluator(Evaluator):
    """celpy's evaluator where its rules are not ours."""

    def sub_evaluator(self, ast: lark.Tree[Any]) -> Evaluator:
        return _Evaluator(ast, activation=self.activation)

    def set_activation(self, values: Any) -> Evaluator:
        self.activation = self.base_activation.clone()
        self.activation.identifiers.load_values(values)
        return self

    def expr(self, tree: lark.Tree[Any]) -> Value:
        if len(tree.children) == 1:
            return self.visit(cast("lark.Tree[Any]", tree.children[0]))
        condition = self.visit(cast("lark.Tree[Any]", tree.children[0]))
        if isinstance(condition, CELEvalError):
            return condition
        if not isinstance(condition, ct.BoolType):
            return _fault(f"`{self.source(tree.children[0])}` before `?` is {_kind(condition)}, not a boolean")
        return self.visit(cast("lark.Tree[Any]", tree.children[1 if condition else 2]))

    def conditionalor(self, tree: lark.Tree[Any]) -> Value:
        return self.joined(tree, "||", True)

    def conditionaland(self, tree: lark.Tree[Any]) -> Value:
        return self.joined(tree, "&&", False)

    def joined(self, tree: lark.Tree[Any], sign: str, settles: bool) -> Value:
        """Either side may settle the whole, also where the other one is a fault."""
        sides = cast("list[lark.Tree[Any]]", tree.children)
        if len(sides) == 1:
            return self.visit(sides[0])
        fault: Value = None
        for side in sides:
            value = self.visit(side)
            if isinstance(value, CELEvalError):
                fault = fault or value
            elif not isinstance(value, ct.BoolType):
                fault = fault or _fault(f"`{self.source(side)}` beside `{sign}` is {_kind(value)}, not a boolean")
            elif bool(value) is settles:
                return value
        return fault or ct.BoolType(not settles)

    def member_dot(self, tree: lark.Tree[Any]) -> Value:
        record = self.visit(cast("lark.Tree[Any]", tree.children[0]))
        if isinstance(record, CELEvalError):
            return record
        key = str(cast("lark.Token", tree.children[1]).value)
        if isinstance(record, dict) and key in record:
            return record[key]
        return self.absent(tree, tree.children[0], record)

    def member_index(self, tree: lark.Tree[Any]) -> Value:
        record, index = self.visit_children(tree)
        for side in (record, index):
            if isinstance(side, CELEvalError):
                return side
        if isinstance(record, dict):
            found, value = _look(record, index)
            return value if found else self.absent(tree, tree.children[0], record)
        if not isinstance(record, list):
            return self.absent(tree, tree.children[0], record)
        if isinstance(index, float) and float(index).is_integer():
            index = int(index)
        if not isinstance(index, int) or isinstance(index, ct.BoolType):
            return _fault(f"`{self.source(tree)}`: an index is a whole number, not {_kind(index)}")
        if int(index) < 0:
            return _fault(f"`{self.source(tree)}` is not there: indexes count from 0, and negative ones are not read")
        if int(index) >= len(record):
            return self.absent(tree, tree.children[0], record)
        return record[int(index)]

    def member_dot_arg(self, tree: lark.Tree[Any]) -> Value:
        name = str(cast("lark.Token", tree.children[1]).value)
        if name not in MACROS:
            return super().member_dot_arg(tree)
        target = self.visit(cast("lark.Tree[Any]", tree.children[0]))
        if isinstance(target, CELEvalError):
            return target
        if not isinstance(target, (list, dict)):
            return _fault(f"`{name}` needs a list; `{self.source(tree.children[0])}` is {_kind(target)}")
        return self.macro(name, list(target), cast("lark.Tree[Any]", tree.children[2]))

    def macro(self, name: str, elements: list[Value], arguments: lark.Tree[Any]) -> Value:
        trees = cast("list[lark.Tree[Any]]", arguments.children)
        variable = str(next(trees[0].find_data("ident")).children[0])
        each: list[Callable[[Value], Value]] = [self.body(variable, body) for body in trees[1:]]
        if name == "map":
            return self.mapped(elements, each, trees[1])
        kept: list[Value] = []
        fault: Value = None
        for element in elements:
            verdict = each[0](element)
            if not isinstance(verdict, (ct.BoolType, CELEvalError)):
                verdict = _fault(f"`{self.source(trees[1])}` in `{name}` is {_kind(verdict)}, not a boolean")
            if isinstance(verdict, CELEvalError):
                if name in ("filter", "exists_one"):
                    return verdict
                fault = fault or verdict
            elif bool(verdict):
                if name == "exists":
                    return verdict
                kept.append(element)
            elif name == "all":
                return verdict
        if fault is not None:
            return fault
        match name:
            case "filter":
                return ct.ListType(kept)
            case "all":
                return ct.BoolType(True)
            case "exists":
                return ct.BoolType(False)
            case _:
                return ct.BoolType(len(kept) == 1)

    def mapped(self, elements: list[Value], each: list[Callable[[Value], Value]], predicate: lark.Tree[Any]) -> Value:
        out: list[Value] = []
        for element in elements:
            if len(each) == 2:
                verdict = each[0](element)
                if isinstance(verdict, CELEvalError):
                    return verdict
                if not isinstance(verdict, ct.BoolType):
                    return _fault(f"`{self.source(predicate)}` in `map` is {_kind(verdict)}, not a boolean")
                if not verdict:
                    continue
            value = each[-1](element)
            if isinstance(value, CELEvalError):
                return value
            out.append(value)
        return ct.ListType(out)

    def body(self, variable: str, tree: lark.Tree[Any]) -> Callable[[Value], Value]:
        nested = self.sub_evaluator(tree)

        def run(element: Value) -> Value:
            nested.set_activation({variable: element})
            return nested.visit(tree)

        return run

    def macro_has_eval(self, exprlist: lark.Tree[Any]) -> Any:
        value = self.visit_children(exprlist)[0]
        return ct.BoolType(not isinstance(value, CELEvalError))

    def source(self, tree: Any) -> str:
        """The text that a part of the expression was written as, shortened."""
        text: str = _written(tree)
        return text if len(text) <= 60 else text[:59] + "…"

    def absent(self, tree: lark.Tree[Any], of: Any, record: Value) -> CELEvalError:
        return _fault(f"`{self.source(tree)}` is not there: `{self.source(of)}` {_has(record)}")


def _written(tree: Any) -> str:
    """Tokens of a part, close to how they were written."""
    if isinstance(tree, lark.Token):
        return str(tree)
    children = [_written(child) for child in tree.children]
    match str(tree.data):
        case "member_dot":
            return f"{children[0]}.{children[1]}"
        case "member_dot_arg":
            return f"{children[0]}.{children[1]}({children[2] if len(children) > 2 else ''})"
        case "member_index":
            return f"{children[0]}[{children[1]}]"
        case "ident_arg":
            return f"{children[0]}({children[1] if len(children) > 1 else ''})"
        case "paren_expr":
            return f"({children[0]})"
        case "list_lit":
            return f"[{', '.join(children)}]"
        case "exprlist":
            return ", ".join(children)
        case "unary_not":
            return "!"
        case "unary_neg":
            return "-"
        case "expr" if len(children) == 3:
            return f"{children[0]} ? {children[1]} : {children[2]}"
        case "conditionalor" if len(children) == 2:
            return f"{children[0]} || {children[1]}"
        case "conditionaland" if len(children) == 2:
            return f"{children[0]} && {children[1]}"
        case data if (sign := _SIGNS.get(data)) is not None:
            return f"{children[0]} {sign} "
        case _:
            return "".join(children)


_SIGNS = {
    "relation_lt": "<", "relation_le": "<=", "relation_gt": ">", "relation_ge": ">=", "relation_eq": "==",
    "relation_ne": "!=", "relation_in": "in", "addition_add": "+", "addition_sub": "-", "multiplication_mul": "*",
    "multiplication_div": "/", "multiplication_mod": "%",
}  # fmt: skip


def _fault(message: str) -> CELEvalError:
    return CELEvalError(message)


def _said(fault: CELEvalError) -> str:
    message = str(fault.args[0]) if fault.args else "the expression has no value"
    unknown = re.match(r"undeclared reference to '?(\w+)", message)
    return f"`{unknown[1]}` is not there" if unknown else message


def _kind(value: Value) -> str:
    if isinstance(value, datetime.datetime):
        return "a time"
    if isinstance(value, datetime.timedelta):
        return "a duration"
    if isinstance(value, ErrorRecord):
        return f"(error: {value.why})"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a record"
    if isinstance(value, ct.BoolType):
        return "a boolean"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "a type" if isinstance(value, type) else "no value"


def _type_name(value: Any) -> str:
    names = {"IntType": "int", "UintType": "uint", "DoubleType": "double", "BoolType": "bool", "StringType": "string",
             "BytesType": "bytes", "ListType": "list", "MapType": "map", "ErrorRecord": "map", "NoneType": "null_type",
             "TimestampType": "timestamp", "DurationType": "duration", "TypeType": "type"}  # fmt: skip
    return names.get(getattr(value, "__name__", "") or type(value).__name__, "type")


def _has(value: Value) -> str:
    if isinstance(value, ErrorRecord):
        return f"is (error: {value.why})"
    if isinstance(value, dict):
        keys = [str(k) for k in value]
        return f"has {', '.join(keys[:12])}{', …' if len(keys) > 12 else ''}" if keys else "has nothing in it"
    if isinstance(value, list):
        return f"has {len(value)} element{'' if len(value) == 1 else 's'}"
    return f"is {type_of(from_cel(value))}"


def _key(key: Value) -> str:
    if isinstance(key, ct.BoolType):
        return "true" if key else "false"
    return str(key)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, (ct.BoolType, bool))


def _number(value: Any) -> int | float:
    return float(value) if isinstance(value, float) else int(value)


def _equal(a: Value, b: Value) -> bool:
    if a is None or b is None:
        return a is b
    if _is_number(a) and _is_number(b):
        return _number(a) == _number(b)
    if isinstance(a, ct.BoolType) or isinstance(b, ct.BoolType):
        return isinstance(a, ct.BoolType) and isinstance(b, ct.BoolType) and int(a) == int(b)
    if isinstance(a, list) and isinstance(b, list):
        left, right = cast("list[Any]", a), cast("list[Any]", b)
        return len(left) == len(right) and all(_equal(x, y) for x, y in zip(left, right, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        if len(a) != len(b) or isinstance(a, ErrorRecord) is not isinstance(b, ErrorRecord):
            return False
        for key, value in a.items():
            found, other = _look(b, key)
            if not found or not _equal(value, other):
                return False
        return True
    plain: Any
    for plain in (str, bytes, datetime.datetime, datetime.timedelta):
        if isinstance(a, plain) and isinstance(b, plain):
            return plain.__eq__(a, b) is True
    return a is b or (isinstance(a, type) and isinstance(b, type) and _type_name(a) == _type_name(b))


def _look(record: dict[Any, Any], key: Value) -> tuple[bool, Value]:
    if isinstance(key, str):
        return (True, record[key]) if key in record else (False, None)
    return next(((True, v) for k, v in record.items() if _equal(k, key)), (False, None))


def _first_fault(*values: Value) -> CELEvalError | None:
    return next((v for v in values if isinstance(v, CELEvalError)), None)


def _guarded(operation: Callable[..., Value]) -> Callable[..., Value]:
    """An operation that hands on the first argument that is a fault."""

    @functools.wraps(operation)
    def run(*values: Value) -> Value:
        return _first_fault(*values) or operation(*values)

    return run


def _wrapped(value: Any) -> Value:
    """celpy's own results lose their types here and there."""
    kind = type(value)
    for plain, own in (
        (bool, ct.BoolType), (int, ct.IntType), (float, ct.DoubleType), (str, ct.StringType), (list, ct.ListType),
        (dict, ct.MapType), (datetime.timedelta, ct.DurationType), (datetime.datetime, ct.TimestampType),
    ):  # fmt: skip
        if kind is plain:
            return own(value)
    return value


def _order(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Value]:
    def run(a: Value, b: Value) -> Value:
        if _is_number(a) and _is_number(b):
            return ct.BoolType(compare(_number(a), _number(b)))
        for kind in (str, datetime.datetime, datetime.timedelta, ct.BoolType, bytes):
            if isinstance(a, kind) and isinstance(b, kind):
                return ct.BoolType(compare(str(a), str(b)) if kind is str else compare(a, b))
        return _fault(f"`{sign}` compares two of one kind, not {_kind(a)} and {_kind(b)}")

    return _guarded(run)


_CALCULATE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
}  # fmt: skip


def _arithmetic(sign: str) -> Callable[..., Value]:
    base = base_functions[f"_{sign}_"]

    def run(a: Value, b: Value) -> Value:
        if _is_number(a) and _is_number(b):
            return _calculated(sign, a, b)
        joined = sign == "+" and any(isinstance(a, k) and isinstance(b, k) for k in (str, list, bytes))
        moments = isinstance(a, (datetime.datetime, datetime.timedelta)) and isinstance(
            b, (datetime.datetime, datetime.timedelta)
        )
        if joined and _size_of(a) + _size_of(b) > _LONGEST:
            return _fault("the expression builds a value that is too large")
        if joined or (moments and sign in "+-"):
            try:
                return _wrapped(base(a, b))
            except (TypeError, ValueError, OverflowError):
                return _fault(f"`{sign}` of {_kind(a)} and {_kind(b)} is beyond what can be written")
        what = {"+": "adds numbers or joins texts", "-": "subtracts numbers"}.get(sign, "calculates with numbers")
        return _fault(f"`{sign}` {what}, not {_kind(a)} and {_kind(b)}")

    return _guarded(run)


def _size_of(value: Value) -> int:
    return len(value)


def _calculated(sign: str, a: Value, b: Value) -> Value:
    """Two integers give an integer (`/` cuts towards zero), a fraction on either side a fraction."""
    whole = isinstance(a, int) and isinstance(b, int)
    x, y = _number(a), _number(b)
    if sign in "/%" and y == 0 and (whole or sign == "%"):
        return _fault(f"`{sign}` by zero")
    if not whole:
        if sign == "%":
            return _fault("`%` takes whole numbers")
        if sign == "/" and y == 0:
            return ct.DoubleType(math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x))
        return ct.DoubleType(_CALCULATE[sign](float(x), float(y)))
    value = _cut(int(x), int(y), sign) if sign in "/%" else _CALCULATE[sign](x, y)
    kind = ct.UintType if isinstance(a, ct.UintType) and isinstance(b, ct.UintType) else ct.IntType
    try:
        return kind(value)
    except ValueError:
        return _fault(f"`{sign}` goes beyond what an integer holds (64 bits)")


def _cut(x: int, y: int, sign: str) -> int:
    quotient = abs(x) // abs(y)
    quotient = quotient if (x < 0) == (y < 0) else -quotient
    return quotient if sign == "/" else x - quotient * y


def _in(item: Value, container: Value) -> Value:
    if isinstance(container, dict):
        return ct.BoolType(_look(container, item)[0])
    if isinstance(container, list):
        return ct.BoolType(any(_equal(item, x) for x in cast("list[Any]", container)))
    return _fault(f"`in` looks into a list or a record, not {_kind(container)}")


def _size(value: Value) -> Value:
    if isinstance(value, (str, list, dict, bytes)):
        return ct.IntType(len(value))
    return _fault(f"`size` counts a list, a record or a text, not {_kind(value)}")


def _not(value: Value) -> Value:
    return (
        ct.BoolType(not value) if isinstance(value, ct.BoolType) else _fault(f"`!` takes a boolean, not {_kind(value)}")
    )


def _negative(value: Value) -> Value:
    if isinstance(value, float):
        return ct.DoubleType(-float(value))
    if _is_number(value):
        return ct.IntType(-int(value))
    return (
        ct.DurationType(-value)
        if isinstance(value, datetime.timedelta)
        else _fault(f"`-` takes a number, not {_kind(value)}")
    )


def _string(value: Value) -> Value:
    if value is None:
        return _fault("`string` has no text for null")
    if isinstance(value, (list, dict)):
        return _fault(f"`string` has no text for {_kind(value)}; `transform … | tojson` writes one")
    if isinstance(value, ct.BoolType):
        return ct.StringType("true" if value else "false")
    if isinstance(value, (float, datetime.datetime, datetime.timedelta)):
        return ct.StringType(str(from_cel(cast("Any", value))))
    return ct.StringType(str(value))


def _converted(name: str) -> Callable[..., Value]:
    base = base_functions[name]

    def run(value: Value) -> Value:
        if isinstance(value, (datetime.datetime, datetime.timedelta)) and name in ("timestamp", "duration"):
            return value
        if name == "timestamp" and _is_number(value):
            value = ct.StringType(datetime.datetime.fromtimestamp(int(_number(value)), datetime.UTC).isoformat())
        try:
            return _wrapped(base(value))
        except (ValueError, TypeError, OverflowError, AttributeError):
            shown = f"`{value}`" if isinstance(value, (str, int, float)) else _kind(value)
            return _fault(f"`{name}` cannot read {shown[:80]}")

    return _guarded(run)


def _texts(name: str, run: Callable[..., Any], numbers: tuple[int, ...] = ()) -> Callable[..., Value]:
    """A function of a text whose arguments are texts, those at `numbers` integers."""

    def checked(*values: Value) -> Value:
        for at, value in enumerate(values):
            if at in numbers:
                if not _is_number(value):
                    return _fault(f"`{name}` takes a number there, not {_kind(value)}")
            elif not isinstance(value, str):
                return _fault(f"`{name}` takes text, not {_kind(value)}")
        try:
            result = run(*(int(v) if i in numbers else str(v) for i, v in enumerate(values)))
        except IndexError:
            return _fault(f"`{name}` reaches beyond the text")
        if isinstance(result, list):
            return ct.ListType([ct.StringType(v) for v in cast("list[str]", result)])
        return _wrapped(result)

    return _guarded(checked)


def _split(text: str, sign: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not sign:
        return list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]
    return text.split(sign, most - 1 if most > 0 else -1)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise IndexError
    return text[start:end]


def _char(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise IndexError
    return text[at : at + 1]


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() else c for c in text)


def _join(values: Value, between: Value = "") -> Value:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in cast("list[Any]", values)):
        return _fault("`join` takes a list of texts")
    return ct.StringType(str(between).join(str(v) for v in cast("list[Any]", values)))


def _reverse(value: Value) -> Value:
    if isinstance(value, str):
        return ct.StringType(str(value)[::-1])
    return (
        ct.ListType(list(value)[::-1])
        if isinstance(value, list)
        else _fault(f"`reverse` takes a list or a text, not {_kind(value)}")
    )


def _matches(text: Value, pattern: Value) -> Value:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return _fault("`matches` takes two texts")
    found = base_functions["matches"](text, pattern)
    return _fault(f"`{str(pattern)[:60]}` is no pattern") if isinstance(found, CELEvalError) else _wrapped(found)


def _dated(name: str) -> Callable[..., Value]:
    base = base_functions[name]

    def run(moment: Value, *zone: Value) -> Value:
        if not isinstance(moment, (datetime.datetime, datetime.timedelta)):
            return _fault(f"`{name}` takes a time, not {_kind(moment)}; `timestamp(…)` reads one from text")
        try:
            return _wrapped(base(moment, *zone))
        except (TypeError, ValueError, AttributeError, LookupError):
            return _fault(f"`{name}` cannot be asked of {_kind(moment)} so")

    return _guarded(run)


def _table() -> Iterator[tuple[str, Callable[..., Value]]]:
    yield "_==_", _guarded(lambda a, b: ct.BoolType(_equal(a, b)))
    yield "_!=_", _guarded(lambda a, b: ct.BoolType(not _equal(a, b)))
    for sign, compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
        yield f"_{sign}_", _order(sign, compare)
    for sign in _CALCULATE:
        yield f"_{sign}_", _arithmetic(sign)
    yield "_in_", _guarded(_in)
    yield "!_", _guarded(_not)
    yield "-_", _guarded(_negative)
    yield "size", _guarded(_size)
    yield "string", _guarded(_string)
    yield "dyn", _guarded(lambda value: value)
    for name in ("int", "uint", "double", "bool", "bytes", "timestamp", "duration"):
        yield name, _converted(name)
    for name in base_functions:
        if name.startswith("get"):
            yield name, _dated(name)
    yield "contains", _texts("contains", lambda text, part: part in text)
    yield "startsWith", _texts("startsWith", lambda text, part: text.startswith(part))
    yield "endsWith", _texts("endsWith", lambda text, part: text.endswith(part))
    yield "matches", _guarded(_matches)
    yield "split", _texts("split", _split, (2,))
    yield "replace", _texts("replace", _replace, (3,))
    yield "substring", _texts("substring", _substring, (1, 2))
    yield "charAt", _texts("charAt", _char, (1,))
    yield "indexOf", _texts("indexOf", lambda text, part, start=0: text.find(part, start), (2,))
    yield "lastIndexOf", _texts("lastIndexOf", lambda text, part, end=None: text.rfind(part, 0, end), (2,))
    yield "lowerAscii", _texts("lowerAscii", _ascii(str.lower))
    yield "upperAscii", _texts("upperAscii", _ascii(str.upper))
    yield "trim", _texts("trim", str.strip)
    yield "join", _guarded(_join)
    yield "reverse", _guarded(_reverse)


FUNCTIONS = dict(_table())
