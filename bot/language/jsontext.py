"""JSON as we print it: readable, and such that no chat client and no mending changes it."""

from __future__ import annotations

import json
import re
from typing import Any

WIDTH = 100
_UNSAFE = re.compile("[\x00-\x1f\x7f-\xa0\u200b\u2028\u2029\u2060\ufeff\ud800-\udfff]|<(?=(?:https?://|mailto:|tel:))")


def quote(value: Any) -> str:
    """Compact JSON that no chat changes: what a client or the mending would touch is escaped."""
    return _UNSAFE.sub(_escape, json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def pretty(value: Any) -> str:
    """JSON over several lines where one would be too long."""
    return _pretty(value, 0)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _pretty(value: Any, indent: int) -> str:
    """JSON with what fits a line on one line."""
    flat = quote(value)
    if not isinstance(value, (dict, list)) or not value or (len(flat) + indent <= WIDTH and _shallow(value)):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, list):
        inner = [_pretty(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(pad + item for item in inner) + "\n" + " " * indent + "]"
    lines = [f"{pad}{quote(key)}: {_pretty(item, indent + 2)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def _shallow(value: Any) -> bool:
    """Whether data holds at most one op: two never share a line."""
    if isinstance(value, dict):
        return not any(key in value for key in ("then", "else", "body", "branches", "program")) and all(
            not (isinstance(item, list) and item and isinstance(item[0], dict) and "op" in item[0])
            for item in value.values()
        )
    return not any(isinstance(item, dict) and "op" in item for item in value)
