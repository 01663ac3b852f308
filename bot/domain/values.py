"""Values of the language: JSON data, and the error values that stand in the place of an answer that failed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

ERROR_KEY = "\u0000error"
"""Marks an error value in stored JSON; no record that comes from outside can have this key."""


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """Stands in the place of an element whose agent failed: no text equals it."""

    why: str

    def __str__(self) -> str:
        return f"(error: {self.why})"


def normalise(value: Any) -> Any:
    """A value from outside as the language holds it: a number without a fraction is an integer, a key that could
    pass for ours is dropped, what JSON does not know becomes its text."""
    if value is None or isinstance(value, (bool, int, str, ErrorValue)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, dict):
        return {str(k): normalise(v) for k, v in value.items() if k != ERROR_KEY}
    if isinstance(value, (list, tuple)):
        return [normalise(v) for v in value]
    return str(value)


def whole(text: str) -> str:
    """A text with U+FFFD in place of NUL and of halves of characters: JSON can say them, but not every storage takes
    the one, and no encoding has the other."""
    return text if text.isascii() and "\0" not in text else _NO_TEXT.sub("\ufffd", text)


_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def _stored(value: Any) -> Any:
    if isinstance(value, ErrorValue):
        return {ERROR_KEY: value.why}
    raise TypeError(f"{type(value).__name__} is no value of the language")


def _loaded(record: dict[str, Any]) -> Any:
    return ErrorValue(record[ERROR_KEY]) if ERROR_KEY in record else record


_ENCODE = json.JSONEncoder(separators=(",", ":"), default=_stored).encode


def dump(value: Any) -> str:
    """The stored form: compact JSON in which error values keep what they are."""
    try:
        return orjson.dumps(value, default=_stored, option=_OURS).decode()
    except TypeError:  # numbers of more than 64 bits, halves of characters: the slower way, which says so by a blank
        return SLOW + _ENCODE(value)


def dumped(value: Any) -> bytes:
    """The stored form as bytes."""
    try:
        return orjson.dumps(value, default=_stored, option=_OURS)
    except TypeError:
        return dump(value).encode()


def load(text: str) -> Any:
    if ERROR_KEY_TEXT in text:
        return json.loads(text, object_hook=_loaded)
    return json.loads(text) if text.startswith(SLOW) else orjson.loads(text)


SLOW = " "
_OURS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


ERROR_KEY_TEXT = json.dumps(ERROR_KEY)[1:-1]


def _shown(value: Any) -> Any:
    if isinstance(value, ErrorValue):
        return {"error": value.why}
    raise TypeError(f"{type(value).__name__} is no value of the language")


def plain(value: Any) -> Any:
    """The value as plain JSON data, error values as `{"error": why}`: what leaves to tools, files and people."""
    if isinstance(value, ErrorValue):
        return {"error": value.why}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def text(value: Any) -> str:
    """The value as written into a text: a string as it is, null as nothing, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, ErrorValue):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_shown)


def type_of(value: Any) -> str:
    """The type of a held value, as people see it: `list<text>`, `record`, `number` …"""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, ErrorValue):
        return "error"
    if isinstance(value, list):
        kinds = {type_of(v) for v in value if not isinstance(v, ErrorValue)}
        return f"list<{kinds.pop()}>" if len(kinds) == 1 else "list<any>" if kinds else "list"
    return "record"


def size_of(value: Any) -> int:
    """Elements of a list, members of a record, characters of a text; 1 of anything else."""
    return len(value) if isinstance(value, (list, dict, str)) else 1


def errors_in(value: Any) -> int:
    """How many error values a list holds."""
    return sum(isinstance(v, ErrorValue) for v in value) if isinstance(value, list) else 0


def summary(value: Any) -> str:
    """What a value is and how large, never what it says: `list<text> 5, 2 errors`."""
    failed = errors_in(value)
    errors = f", {failed} error{'' if failed == 1 else 's'}" if failed else ""
    return f"{type_of(value)} {size_of(value)}{errors}"
