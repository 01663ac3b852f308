"""Cron lines: five fields, their names and short forms. What moments they come to is the shell's arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "weekday": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """The values of each field, ascending; None where it takes any. `weekday` counts as cron does: Sunday is 0.

    `either`: day and weekday are both restricted, so that either of them is enough, as in every cron. `hourly`: the
    hour is free, so the line means a distance in time and not a time of day."""

    minute: tuple[int, ...] | None
    hour: tuple[int, ...] | None
    day: tuple[int, ...] | None
    month: tuple[int, ...] | None
    weekday: tuple[int, ...] | None
    either: bool
    hourly: bool


def fault(text: str) -> str | None:
    """What is wrong with a cron line, or None."""
    if text.strip().lower() in _SHORT:
        return None
    fields = text.split()
    if len(fields) != 5:
        return f"`{text}` has {len(fields)} field{'s' * (len(fields) != 1)}; a cron line has 5"
    for field, (name, low, high) in zip(fields, FIELDS, strict=True):
        for part in field.lower().split(","):
            if _values(part, name, low, high) is None:
                return f"`{part or field}` is no {name} of a cron line"
    return f"`{text}` never comes: no such day is in those months" if _never(_read(fields)) else None


def read(text: str) -> Cron:
    """The fields of a line that `fault` finds right."""
    return _read(_SHORT.get(text.strip().lower(), text).split())


def _read(fields: list[str]) -> Cron:
    found: dict[str, tuple[int, ...] | None] = {}
    for field, (name, low, high) in zip(fields, FIELDS, strict=True):
        values: set[int] = set()
        for part in field.lower().split(","):
            values |= _values(part, name, low, high) or set()
        whole = len(values) == (7 if name == "weekday" else high - low + 1)
        found[name] = None if whole else tuple(sorted(values))
    stars = [fields[at].startswith("*") for at in (2, 4)]
    return Cron(
        minute=found["minute"],
        hour=found["hour"],
        day=found["day"],
        month=found["month"],
        weekday=found["weekday"],
        either=not any(stars) and found["day"] is not None and found["weekday"] is not None,
        hourly=fields[1].startswith("*"),
    )


def _values(part: str, name: str, low: int, high: int) -> set[int] | None:
    """What one part of a field names; None where it names nothing. A range of weekdays may go past Saturday."""
    span, _, step = part.partition("/")
    if "/" in part and not (step.isdigit() and int(step) > 0):
        return None
    by = int(step) if step else 1
    if span == "*":
        return set(range(low, (high if name != "weekday" else 6) + 1, by))
    ends = [_value(end, name) for end in span.split("-")]
    if len(ends) > 2 or any(end is None or not low <= end <= high for end in ends):
        return None
    first, last = ends[0] or 0, ends[-1] or 0
    if len(ends) == 1 and step:
        last = high if name != "weekday" else 6
    if name != "weekday":
        return set(range(first, last + 1, by)) if first <= last else None
    return {day % 7 for day in range(first, (last if first <= last else last + 7) + 1, by)}


def _value(word: str, name: str) -> int | None:
    names = _NAMES.get(name, ())
    if word in names:
        return names.index(word) + (name == "month")
    return int(word) if word.isascii() and word.isdigit() else None


def _never(line: Cron) -> bool:
    if line.day is None or line.either:
        return False
    months = line.month or tuple(range(1, 13))
    return all(_LONGEST[month - 1] < line.day[0] for month in months)
