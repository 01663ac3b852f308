"""Windows and moments as written: `3d`, `1h30m`, `P3D`, `2bd`; `Fri 17:00`, `2026-06-12`, `2026-06-01 + 14d 09:00`.

Every function takes the moment it counts from and gives an aware datetime; nothing here knows what time it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.domain.catalog import Workspace

LIMIT = timedelta(days=400)
"""The longest window, and the furthest moment."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_PLAIN = re.compile(r"(-)?((?:\d{1,9}[wdhms])+)\Z")
_PART = re.compile(r"(\d+)([wdhms])")
_ISO = re.compile(
    r"(-)?P(?=[\dT])(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?\Z"
)
_WORKING = re.compile(r"(-)?(\d{1,5})b([dh])\Z")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\Z")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z")
_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d+)?[ ]?(Z|z|[+-]\d{2}:?\d{2})?\Z")
_ANCHORED = re.compile(r"(.+?)\s+([+-])\s*(\S+)(?:\s+(\S+))?\Z")
_DAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*\Z", re.IGNORECASE)
_HOURS = re.compile(r"(\d{1,2}:\d{2})\s*[-–]\s*(\d{1,2}:\d{2})")
_DAYS = re.compile(r"([A-Za-z]{3,9})(?:\s*[-–]\s*([A-Za-z]{3,9}))?")


class BadDuration(ValueError):
    """No duration or moment that the language knows; the message is a sentence in the script's words."""


class TooFar(BadDuration):
    """Beyond 400 days."""


class NoSuchDate(ValueError):
    """A date or time of day that does not exist."""


class PastMoment(ValueError):
    """A deadline that is over."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration as written: plain seconds, or so many working days, or so many working hours."""

    seconds: int = 0
    working_days: int = 0
    working_hours: int = 0

    @property
    def plain(self) -> bool:
        return not (self.working_days or self.working_hours)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        total = self.seconds + self.working_days + self.working_hours
        return (total > 0) - (total < 0)


@dataclass(frozen=True, slots=True)
class _Week:
    """Working hours of each weekday (Monday first), in order, and the days off."""

    hours: tuple[tuple[tuple[time, time], ...], ...]
    holidays: frozenset[str]

    def on(self, day: date) -> tuple[tuple[time, time], ...]:
        return () if day.isoformat() in self.holidays else self.hours[day.weekday()]


@lru_cache(maxsize=4096)
def parse(text: str) -> Duration | None:
    """The duration that `text` writes (fractions are none), or None."""
    text = text.strip()
    if found := _PLAIN.match(text):
        total = sum(int(n) * _UNITS[unit] for n, unit in _PART.findall(found[2]))
        return Duration(seconds=-total if found[1] else total)
    if found := _WORKING.match(text):
        count = -int(found[2]) if found[1] else int(found[2])
        return Duration(working_days=count) if found[3] == "d" else Duration(working_hours=count)
    if found := _ISO.match(text):
        weeks, days, hours, minutes, rest = (int(g or 0) for g in found.groups()[1:])
        total = weeks * 604800 + days * 86400 + hours * 3600 + minutes * 60 + rest
        return Duration(seconds=-total if found[1] else total)
    return None


def seconds(text: str) -> float | None:
    """Seconds of a plain duration; None for working time and for what is no duration."""
    found = parse(text)
    return float(found.seconds) if found and found.plain else None


def due_within(text: str, start: datetime, workspace: Workspace) -> datetime:
    """When a window that opens at `start` ends, in the zone of `start`.

    Raises BadDuration for what is no duration, TooFar beyond 400 days."""
    found = parse(text)
    if found is None:
        raise BadDuration(f"`{text}` is no duration: write `30s`, `10m`, `36h`, `3d`, `2w`, `1h30m`, `2bd` or `4bh`")
    try:
        return _limited(_plus(start, found, workspace), start, text)
    except OverflowError:
        raise TooFar(f"`{text}` is more than 400 days") from None


def at_work(moment: datetime, workspace: Workspace) -> datetime:
    """The moment itself inside working hours, else their next start, in the zone of `moment`."""
    week = _week(workspace.working_hours, workspace.holidays)
    return _next_start(moment.astimezone(zone(workspace)), week, workspace).astimezone(moment.tzinfo)


def due_by(text: str, now: datetime, workspace: Workspace) -> datetime:
    """The next moment that `text` names; a date means its end.

    Raises BadDuration, NoSuchDate, PastMoment, TooFar."""
    due = _moment(text, now, workspace, end_of_day=True)
    if due <= now:
        raise PastMoment(f"`{text}` is past")
    return _limited(due, now, text)


def clock_at(text: str, now: datetime, workspace: Workspace) -> datetime:
    """The moment that a clock's `at` names, which may be past; a date means its start. In a gap of the clock the
    first instant after, in an overlap the earlier one.

    Raises BadDuration, NoSuchDate, TooFar."""
    return _limited(_moment(text, now, workspace, end_of_day=False), now, text)


def spell(span: timedelta) -> str:
    """A span as people write it, the two largest units: `3d`, `1h 30m`, `45s`; below a second `0s`."""
    total = abs(int(span.total_seconds()))
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, total = divmod(total, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return ("-" if span < timedelta(0) and parts else "") + (" ".join(parts[:2]) or "0s")


def zone(workspace: Workspace) -> tzinfo:
    """The workspace's zone: an IANA name, or an offset such as `+02:00`. An unknown one is UTC."""
    name = workspace.timezone
    if re.fullmatch(r"[+-]\d{2}:\d{2}", name):
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def is_holiday(moment: datetime, workspace: Workspace) -> bool:
    """Whether a moment falls on one of the workspace's days off (holidays; not weekends)."""
    return moment.astimezone(zone(workspace)).date().isoformat() in workspace.holidays


def _moment(text: str, now: datetime, workspace: Workspace, *, end_of_day: bool) -> datetime:
    try:
        return _read_moment(text, now, workspace, end_of_day=end_of_day)
    except OverflowError:
        raise TooFar(f"`{text}` is further away than the calendar goes") from None


def _read_moment(text: str, now: datetime, workspace: Workspace, *, end_of_day: bool) -> datetime:
    stripped = text.strip()
    if instant := _instant(stripped, workspace):
        return instant
    here = now.astimezone(zone(workspace))
    if found := _DATE.match(stripped):
        day = _date(found[0])
        return local(day + timedelta(days=1) if end_of_day else day, time(0), workspace)
    if found := _CLOCK.match(stripped):
        at = _time(stripped)
        today = local(here.date(), at, workspace)
        return today if today > now else local(here.date() + timedelta(days=1), at, workspace)
    words = stripped.split()
    if words and len(words) < 3 and (day := _named_day(words[0], here.date())) is not None:
        return _named(words, day, here, now, workspace, end_of_day=end_of_day)
    if found := _ANCHORED.match(stripped):
        return _anchored(found, now, workspace, end_of_day=end_of_day)
    raise BadDuration(f"`{text}` is no moment: write `Fri 17:00`, `18:00`, `2026-06-12` or `2026-06-12T09:00`")


def _named(
    words: list[str], day: date, here: datetime, now: datetime, workspace: Workspace, *, end_of_day: bool
) -> datetime:
    """`Fri 17:00`, `Fri`, `tomorrow 09:00`: the next one."""
    weekly = bool(_DAY.match(words[0]))

    def on(that: date) -> datetime:
        if len(words) == 2:
            return local(that, _time(words[1]), workspace)
        return local(that + timedelta(days=1) if end_of_day else that, time(0), workspace)

    due = on(day)
    return on(day + timedelta(days=7)) if weekly and due <= now else due


def _named_day(word: str, today: date) -> date | None:
    if word.lower() in ("today", "tomorrow"):
        return today + timedelta(days=word.lower() == "tomorrow")
    if not _DAY.match(word) or not any(full.startswith(word.lower()) for full in _FULL_DAYS):
        return None
    return today + timedelta(days=(DAYS.index(word[:3].lower()) - today.weekday()) % 7)


_FULL_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _anchored(found: re.Match[str], now: datetime, workspace: Workspace, *, end_of_day: bool) -> datetime:
    """`2026-06-01 + 14d 09:00`: an anchor, an offset, a time of day; without the time a date's, or the anchor's."""
    anchor, sign, span, at = found.groups()
    offset = parse(span)
    if offset is None or offset.sign < 0:
        raise BadDuration(f"`{span}` is no duration to count from `{anchor}`: write `14d`, `3bd`")
    only_date = bool(_DATE.match(anchor.strip()))
    base = _moment(anchor, now, workspace, end_of_day=False).astimezone(zone(workspace))
    way = 1 if sign == "+" else -1
    if not only_date and at is None:
        return _plus(
            base, Duration(way * offset.seconds, way * offset.working_days, way * offset.working_hours), workspace
        )
    if offset.working_hours or offset.seconds % 86400:
        raise BadDuration(f"`{span}` is not in whole days, so `{found[0]}` names no day")
    day = base.date() + timedelta(seconds=way * offset.seconds)
    if offset.working_days:
        day = _working_day(day, way * offset.working_days, _week(workspace.working_hours, workspace.holidays))
    if at is not None:
        return local(day, _time(at), workspace)
    return local(day + timedelta(days=1) if end_of_day else day, time(0), workspace)


def _instant(text: str, workspace: Workspace) -> datetime | None:
    found = _INSTANT.match(text)
    if not found:
        return None
    day, at = _date(found[1]), _time(found[2])
    if found[3] is None:
        return local(day, at, workspace)
    if found[3] in "Zz":
        return datetime.combine(day, at, UTC)
    digits = found[3].replace(":", "")
    offset = timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5]))
    if offset >= timedelta(hours=24):
        raise NoSuchDate(f"`{text}` does not exist: no zone is {found[3]} from UTC")
    shift = -offset if digits[0] == "-" else offset
    return (datetime.combine(day, at, UTC) - shift).astimezone(UTC)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise NoSuchDate(f"`{text}` does not exist in the calendar") from None


def _time(text: str) -> time:
    found = _CLOCK.match(text)
    if not found:
        raise BadDuration(f"`{text}` is no time of day: write `09:00`")
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise NoSuchDate(f"`{text}` does not exist: a day ends at 23:59")
    return time(hour, minute, second)


def local(day: date, at: time, workspace: Workspace) -> datetime:
    """A wall clock's moment in the workspace: in a gap the first instant after it, in an overlap the earlier."""
    there = zone(workspace)
    wall = datetime.combine(day, at)
    moment = wall.replace(tzinfo=there)
    if moment.astimezone(UTC).astimezone(there).replace(tzinfo=None) == wall:
        return moment
    before, after = (wall - timedelta(days=1)).replace(tzinfo=there), (wall + timedelta(days=1)).replace(tzinfo=there)
    low, high = before.astimezone(UTC), after.astimezone(UTC)
    offset = low.astimezone(there).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        low, high = (middle, high) if middle.astimezone(there).utcoffset() == offset else (low, middle)
    return high.replace(microsecond=0).astimezone(there)


def _plus(start: datetime, span: Duration, workspace: Workspace) -> datetime:
    if span.plain:
        return (start.astimezone(UTC) + timedelta(seconds=span.seconds)).astimezone(start.tzinfo)
    week = _week(workspace.working_hours, workspace.holidays)
    here = start.astimezone(zone(workspace))
    if span.working_hours:
        return _work(here, timedelta(hours=span.working_hours), week, workspace).astimezone(start.tzinfo)
    here = _next_start(here, week, workspace)
    day = _working_day(here.date(), span.working_days, week)
    return local(day, here.timetz().replace(tzinfo=None), workspace).astimezone(start.tzinfo)


def _next_start(here: datetime, week: _Week, workspace: Workspace) -> datetime:
    """The moment itself inside working hours, else their next start."""
    day = here.date()
    for _ in range(800):
        for opens, closes in week.on(day):
            if here < local(day, closes, workspace):
                return max(here, local(day, opens, workspace))
        day += timedelta(days=1)
    return here


def _working_day(day: date, count: int, week: _Week) -> date:
    """`count` working days after (or before) a day."""
    step = timedelta(days=1 if count > 0 else -1)
    left = abs(count)
    for _ in range(4000):
        if not left:
            break
        day += step
        left -= bool(week.on(day))
    return day


def _work(here: datetime, left: timedelta, week: _Week, workspace: Workspace) -> datetime:
    """The moment by which `left` of working hours have passed (before `here` where negative)."""
    back = left < timedelta(0)
    left, day = abs(left), here.date()
    for _ in range(4000):
        spans = [(local(day, a, workspace), local(day, b, workspace)) for a, b in week.on(day)]
        for opens, closes in reversed(spans) if back else spans:
            low, high = (opens, min(closes, here)) if back else (max(opens, here), closes)
            length = high.astimezone(UTC) - low.astimezone(UTC)
            if length <= timedelta(0):
                continue
            if length >= left:
                return ((high.astimezone(UTC) - left) if back else (low.astimezone(UTC) + left)).astimezone(here.tzinfo)
            left -= length
        day += timedelta(days=-1 if back else 1)
    return here + LIMIT * 2


@lru_cache(maxsize=256)
def _week(hours: str, holidays: frozenset[str]) -> _Week:
    """`Mon-Fri 09:00-17:00`, `Mon,Tue 09:00-12:00; Fri 10:00-16:00`. What cannot be read is Mon-Fri, nine to five."""
    table: list[list[tuple[time, time]]] = [[] for _ in DAYS]
    at = 0
    for found in _HOURS.finditer(hours):
        opens, closes = _time(found[1]), time(23, 59, 59) if found[2] == "24:00" else _time(found[2])
        for index in _days(hours[at : found.start()]):
            if closes > opens:
                table[index].append((opens, closes))
        at = found.end()
    if not any(table):
        table = [[(time(9), time(17))] if i < 5 else [] for i in range(7)]
    return _Week(tuple(tuple(sorted(spans)) for spans in table), holidays)


def _days(text: str) -> list[int]:
    found: list[int] = []
    for first, last in _DAYS.findall(text):
        low = first[:3].lower()
        high = (last or first)[:3].lower()
        if low in DAYS and high in DAYS:
            a, b = DAYS.index(low), DAYS.index(high)
            found.extend(i % 7 for i in range(a, (b if b >= a else b + 7) + 1))
    return found or list(range(7))


def _limited(due: datetime, start: datetime, text: str) -> datetime:
    if due.astimezone(UTC) - start.astimezone(UTC) > LIMIT:
        raise TooFar(f"`{text}` is more than 400 days away")
    return due
