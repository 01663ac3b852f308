"""References in texts: `$name`, `$name.path[0]`, `${path}`, and the markdown surface's `{path}`.

Everything here works on the JSON surface's form; `brace_parse` turns the markdown form into it and `to_braces`
turns it back. Which names exist is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bot.domain.errors import OpError
from bot.domain.values import ErrorValue, type_of
from bot.domain.values import text as text_of

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_KEY = r"[^\W\d]\w*"
_STEP = rf"""(?:\.{_KEY}|\[-?[0-9]{{1,9}}\]|\["[^"\\\n]*"\]|\['[^'\\\n]*'\])"""
_PATH = rf"{NAME}(?:\??{_STEP})*"
_DOLLAR = re.compile(rf"\$(?:\$|\{{(?P<braced>[ ]*{_PATH}\??[ ]*)\}}|(?P<bare>{_PATH}))")
_WHOLE = re.compile(rf"\$(?P<path>{_PATH}\??)\Z")
_ONLY = re.compile(rf"{_PATH}\??\Z")
_BRACE = re.compile(rf"\{{(?P<path>{_PATH}\??)\}}")
_TOKEN = re.compile(rf"""(?P<name>{NAME})|\.(?P<key>{_KEY})|\[(?P<index>-?[0-9]+)\]|\[(?P<quoted>"[^"]*"|'[^']*')\]""")
_GOES_ON = re.compile(rf"\w|\??(?:\.{_KEY}|\[)")
_REFERS = re.compile(rf"\$|[A-Za-z_]|\{{[ ]*{_PATH}\??[ ]*\}}")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: a key of a record or an index of a list; `optional` where a `?` follows it."""

    key: str | int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference. `optional`: a `?` follows the name itself. `start`, `end`: its place in the text parsed, sign
    and braces included. `text`: the path as written (`user.mail`, `xs[2]`)."""

    name: str
    steps: tuple[Step, ...]
    optional: bool
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text taken apart. `whole`: it is exactly one reference, so its value keeps its type."""

    parts: tuple[str | Ref, ...]
    whole: bool

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(part for part in self.parts if isinstance(part, Ref))


@dataclass(frozen=True, slots=True)
class Braced:
    """A markdown text in the JSON surface's form; `offsets[i]` is where character `i` of `value` stood, with one
    more for the end."""

    value: str
    offsets: tuple[int, ...]


def path(text: str, start: int = 0, end: int | None = None) -> Ref | None:
    """The reference that a bare path (`user.mail?`) is, or None where it is no path."""
    if text.isascii() and text.isidentifier():
        return Ref(text, (), False, start, len(text) if end is None else end, text)
    if not _ONLY.match(text):
        return None
    steps: list[Step] = []
    name, optional = "", False
    for token in _TOKEN.finditer(text):
        asked = text[token.end() : token.end() + 1] == "?"
        if token["name"] is not None and not token.start():
            name, optional = token["name"], asked
        elif token["index"] is not None:
            steps.append(Step(int(token["index"]), asked))
        elif token["quoted"] is not None:
            steps.append(Step(token["quoted"][1:-1], asked))
        else:
            steps.append(Step(token["key"], asked))
    return Ref(name, tuple(steps), optional, start, len(text) if end is None else end, text)


@lru_cache(maxsize=8192)
def parse(text: str) -> Template:
    """The references of a text in the JSON surface's form (`$name`, `${path}`, `$$` for a dollar)."""
    if "$" not in text:
        return Template((text,) if text else (), False)
    parts = _scan(text)[0]
    return Template(parts, len(parts) == 1 and isinstance(parts[0], Ref))


def has_refs(value: Any) -> bool:
    """Whether any text in nested data holds a reference."""
    return next(refs(value), None) is not None


def refs(value: Any) -> Iterator[tuple[tuple[str | int, ...], Ref]]:
    """Every reference in nested data with the keys and indexes that lead to its text, in written order.
    Object keys are not read."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        where, item = stack.pop()
        if isinstance(item, str):
            if "$" in item:
                yield from ((where, ref) for ref in parse(item).refs)
        elif isinstance(item, dict):
            stack.extend([((*where, k), v) for k, v in item.items()][::-1])
        elif isinstance(item, (list, tuple)):
            stack.extend([((*where, i), v) for i, v in enumerate(item)][::-1])


def follow(ref: Ref, value: Any) -> Any:
    """What the path of `ref` leads to in the value of its name. A step that is not there and has a `?` gives None.

    Raises OpError naming the path and what was there."""
    walked = ref.name
    if value is None and ref.optional:
        return None
    for step in ref.steps:
        here = f"{walked}{_spelt(step.key)}"
        if isinstance(step.key, int) and step.key < 0:
            raise OpError(f"`{here}` is not there: indexes count from 0, and negative ones are not read")
        found, value_below = _step(step.key, value)
        if not found:
            if step.optional:
                return None
            raise OpError(f"`{here}` is not there: `{walked}` {_has(value)}")
        walked, value = here, value_below
        if value is None and step.optional:
            return None
    return value


def fill(value: Any, lookup: Callable[[Ref], Any]) -> Any:
    """Nested data with every reference replaced by what `lookup` gives for it: a whole one keeps its type,
    others are written into their text."""
    if isinstance(value, str):
        return _filled(value, lookup) if "$" in value else value
    if isinstance(value, dict):
        return {k: fill(v, lookup) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [fill(v, lookup) for v in value]
    return value


def literal(text: str) -> str:
    """The JSON form of a text that refers to nothing: `$name` becomes `$$name`."""
    return render((text,)).value if "$" in text else text


def canonical(text: str) -> str:
    """The one way to write what `text` says: `$path` where it can stand so, else `${path}`; `$` where it can."""
    return render(parse(text).parts).value if "$" in text else text


def respelt(text: str) -> Braced:
    """The canonical form of `text`, with the place in `text` of each of its characters."""
    return render(*_scan(text))


def render(parts: tuple[str | Ref, ...], origins: list[list[int]] | None = None) -> Braced:
    """Parts written in canonical form. `origins`: for each part where its characters stood and where it ended (a
    reference: its start, its path's start, its end); without it the offsets mean nothing."""
    out: list[str] = []
    offsets: list[int] = []
    for i, part in enumerate(parts):
        places = origins[i] if origins else None
        after = _opening(parts[i + 1]) if i + 1 < len(parts) else ""
        if isinstance(part, Ref):
            written = _written(part, after, len(parts) == 1, len(parts) == 2 and i == 0)
            out.append(written)
            offsets.extend(_spread(written, places or [part.start, part.start, part.end]))
            continue
        if "$" not in part:
            out.append(part)
            offsets.extend(places[: len(part)] if places else range(len(part)))
            continue
        joined = part + after
        for k, char in enumerate(part):
            place = places[k] if places else k
            double = char == "$" and _REFERS.match(joined, k + 1) is not None
            out.append("$$" if double else char)
            offsets.extend((place, place) if double else (place,))
    end = origins[-1][-1] if origins else len(offsets)
    return Braced("".join(out), (*offsets, end))


def brace_parse(text: str) -> Braced:
    """A markdown text (`{path}`, `{{`, `}}` after one, `$` plain) in the JSON surface's form, canonical."""
    if "{" not in text and "}" not in text and "$" not in text:
        return Braced(text, tuple(range(len(text) + 1)))
    parts: list[str | Ref] = []
    origins: list[list[int]] = []
    said: list[str] = []
    places: list[int] = []
    opened, at = 0, 0

    def close(end: int) -> None:
        if said:
            parts.append("".join(said))
            origins.append([*places, end])
            said.clear()
            places.clear()

    while at < len(text):
        char, pair = text[at], text[at : at + 2]
        if pair == "{{" or (pair == "}}" and opened):
            opened += 1 if char == "{" else -1
            said.append(char)
            places.append(at)
            at += 2
        elif char == "{" and (found := _BRACE.match(text, at)) and (ref := path(found["path"], at, found.end())):
            close(at)
            parts.append(ref)
            origins.append([at, at + 1, found.end()])
            at = found.end()
        else:
            said.append(char)
            places.append(at)
            at += 1
    close(at)
    return render(tuple(parts), origins) if parts else Braced("", (0,))


def to_braces(text: str) -> str | None:
    """The markdown form of a text in the JSON surface's, or None where none reads back as exactly `text`."""
    if "$" not in text and "{" not in text and "}" not in text:
        return text
    out = ""
    for part in parse(text).parts:
        if isinstance(part, Ref):
            out += f"{{{part.text}}}"
            continue
        escaped = re.sub(rf"\{{(?=\{{|{_PATH}\??\}})", "{{", part)
        out += escaped.replace("}}", "}}}}") if escaped != part else part
    return out if brace_parse(out).value == text else None


def _scan(text: str) -> tuple[tuple[str | Ref, ...], list[list[int]]]:
    parts: list[str | Ref] = []
    origins: list[list[int]] = []
    said: list[str] = []
    places: list[int] = []
    at = 0

    def close(end: int) -> None:
        if said:
            parts.append("".join(said))
            origins.append([*places, end])
            said.clear()
            places.clear()

    whole = _WHOLE.match(text)
    for found in (whole,) if whole else _DOLLAR.finditer(text):
        said.extend(text[at : found.start()])
        places.extend(range(at, found.start()))
        at = found.end()
        group = "path" if whole else "braced" if found["braced"] else "bare"
        ref = path((found[group] or "").strip(), found.start(), at)
        if ref is None:
            said.append("$")
            places.append(found.start())
            continue
        close(found.start())
        parts.append(ref)
        origins.append([found.start(), text.index(ref.text, found.start()), at])
    said.extend(text[at:])
    places.extend(range(at, len(text)))
    close(len(text))
    return tuple(parts), origins


def _written(ref: Ref, after: str, alone: bool, first_of_two: bool) -> str:
    """`alone`: the whole text. `first_of_two`: a lone `?` after it would be taken for its own."""
    bare = alone or not (_GOES_ON.match(after) or ref.text.endswith("?") or (first_of_two and after == "?"))
    return f"${ref.text}" if bare else f"${{{ref.text}}}"


def _opening(part: str | Ref) -> str:
    return "$" if isinstance(part, Ref) else part


def _spread(written: str, places: list[int]) -> list[int]:
    """Where each character of a written reference stood: its path one to one, sign and braces at the edges."""
    start, path_start, end = places
    lead = 2 if written.startswith("${") else 1
    return [start if k < lead else min(end - 1, path_start + k - lead) for k in range(len(written))]


def _filled(text: str, lookup: Callable[[Ref], Any]) -> Any:
    template = parse(text)
    if template.whole:
        return lookup(template.refs[0])
    return "".join(part if isinstance(part, str) else text_of(lookup(part)) for part in template.parts)


def _step(key: str | int, value: Any) -> tuple[bool, Any]:
    if isinstance(key, int):
        return (True, value[key]) if isinstance(value, (list, tuple)) and key < len(value) else (False, None)
    if isinstance(value, dict):
        return (True, value[key]) if key in value else (False, None)
    if isinstance(value, ErrorValue) and key == "error":
        return True, value.why
    return False, None


def _spelt(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if re.fullmatch(_KEY, key) else f'["{key}"]'


def _has(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(value)
        return f"has {', '.join(keys[:12])}{', …' if len(keys) > 12 else ''}" if keys else "has nothing in it"
    if isinstance(value, (list, tuple)):
        return f"has {len(value)} element{'' if len(value) == 1 else 's'}"
    if isinstance(value, ErrorValue):
        return f"is {value}"
    return f"is {type_of(value)}"
