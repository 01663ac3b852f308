"""Forms: what fits a field, and the value it gives."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from bot.domain.catalog import World
from bot.domain.errors import OpError
from bot.domain.values import normalise, text
from bot.language.addressees import AmbiguousAddressee, UnknownAddressee, find


def read(fields: Any, given: Any, world: World) -> dict[str, Any]:
    """A form's answer as a record; OpError names every field that does not fit."""
    if not isinstance(given, dict):
        names = ", ".join(str(f["name"]) for f in fields)
        raise OpError(f"This form has the fields {names}.")
    faults: list[str] = []
    found: dict[str, Any] = {}
    known = {str(f["name"]) for f in fields}
    for name in given:
        if name not in known:
            faults.append(f"`{name}` is no field of this form")
    for field in fields:
        name, label = str(field["name"]), str(field.get("label") or field["name"])
        value = given.get(name)
        if value is None or value == "":
            if field.get("required", True) and field["type"] != "bool":
                faults.append(f"`{label}` is missing")
            else:
                found[name] = False if field["type"] == "bool" else None
            continue
        try:
            found[name] = one(field, value, world)
        except OpError as fault:
            faults.append(f"`{label}` {fault}")
    if faults:
        raise OpError("; ".join(faults) + ".")
    return found


def one(field: Any, value: Any, world: World) -> Any:
    """The value of one field. OpError says what it must be."""
    match field["type"]:
        case "number":
            return _number(field, value)
        case "date":
            return _date(field, text(value))
        case "time":
            if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text(value)):
                raise OpError(f"must be a time such as `09:30`; it is `{text(value)}`")
            return text(value).zfill(5)
        case "bool":
            folded = text(value).casefold()
            if folded in ("true", "yes", "on", "1"):
                return True
            if folded in ("false", "no", "off", "0", ""):
                return False
            raise OpError(f"must be yes or no; it is `{text(value)}`")
        case "choice":
            return _choice(field, value)
        case "person":
            try:
                return find(text(value), world)[0].ref
            except (UnknownAddressee, AmbiguousAddressee) as fault:
                raise OpError(f"must be a person here: {fault}") from None
        case "file":
            if isinstance(value, dict) and "path" in value:
                return normalise(value)
            raise OpError("must be a file")
        case _:
            return _text(field, text(value))


def _number(field: Any, value: Any) -> int | float:
    try:
        number = normalise(float(text(value))) if not isinstance(value, (int, float)) else normalise(value)
    except ValueError:
        raise OpError(f"must be a number; it is `{text(value)}`") from None
    if isinstance(number, bool):
        raise OpError("must be a number")
    if not math.isfinite(number):
        raise OpError(f"must be a number; it is `{text(value)}`")
    if "min" in field and number < field["min"]:
        raise OpError(f"must be at least {field['min']}; it is {text(number)}")
    if "max" in field and number > field["max"]:
        raise OpError(f"must be at most {field['max']}; it is {text(number)}")
    return number


def _date(field: Any, value: str) -> str:
    try:
        day = dt.date.fromisoformat(value)
    except ValueError:
        raise OpError(f"must be a date such as `2026-06-12`; it is `{value}`") from None
    if "min" in field and day.isoformat() < str(field["min"]):
        raise OpError(f"must not be before {field['min']}")
    if "max" in field and day.isoformat() > str(field["max"]):
        raise OpError(f"must not be after {field['max']}")
    return day.isoformat()


def _choice(field: Any, value: Any) -> Any:
    from bot.engine.asks import choices_of, pick

    choices = choices_of(field.get("choices") or [])
    found = pick(choices, value)
    if found is None:
        raise OpError(f"must be one of {', '.join(c['label'] for c in choices)}; it is `{text(value)}`")
    return found["value"]


def _text(field: Any, value: str) -> str:
    if "min" in field and len(value) < field["min"]:
        raise OpError(f"must have at least {field['min']} characters")
    if "max" in field and len(value) > field["max"]:
        raise OpError(f"must have at most {field['max']} characters")
    return value.strip()
