"""Notes on what reads otherwise than it runs: a step that seems to follow a wait, a brace that is not filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.domain.plan import Op
from bot.language.check.context import Checking, follows, note, streams_of
from bot.language.problems import Note
from bot.language.types import is_list, is_record

_EXPRESSION = re.compile(r"\{([\w.\[\] ]*[(+*/%<>=-][^{}\"':;\n]*)\}")
_WORDS = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_BRACES = re.compile(r"\{([A-Za-z_]\w*)\??((?:\.[A-Za-z_]\w*\??|\[\d+\]\??)*)\}")
EXPRESSIONS = frozenset({"be", "cond", "where", "until", "jq"})


def beside_a_wait(c: Checking) -> Iterator[Note]:
    """Steps written right below an `expect` that do not wait for it: they start at once."""
    for scope in c.scopes.scopes.values():
        after: dict[str, frozenset[str]] = {}
        wait: Op | None = None
        for op in scope.region.ops:
            awaits = follows(c, op, after)
            after[op.place] = awaits | {op.place} if op.op == "expect" else awaits
            if wait is not None and wait.place not in awaits and _acts(c, op):
                yield _beside(c, op, wait)
            wait = op if op.op == "expect" else None


def _acts(c: Checking, op: Op) -> bool:
    spec = c.catalog.get(op.op)
    return op.op in ("say", "ask", "run") or (spec is not None and (spec.tool or spec.channel is not None))


def _beside(c: Checking, op: Op, wait: Op) -> Note:
    streams = [s for s in streams_of(wait) if not s.startswith("$")]
    what = "the clock" if streams == ["clock"] else f"`{' or '.join(streams) or 'expect'}`"
    name = wait.id or "seen"
    written = f"`after {name}`" if c.markdown(op.place) else f'`after: "{name}"`'
    how = written if wait.id else f"a name for the `expect`, such as `{name}`, and {written}"
    said = f"starts without waiting for {what} above: {op.id or op.op}; {how} makes it wait"
    return note(c.name(op.place), "starts-beside-the-wait", said)


def unfilled(c: Checking) -> Iterator[Note]:
    """`{name}` inside a JSON value of a markdown step, where references are `$name`: it goes out as it stands."""
    for place, op, _ in c.ops():
        if not c.markdown(place):
            continue
        seen = {name for name, _ in c.scopes.visible(place)}
        for field, value in op.params.items():
            if field in EXPRESSIONS:
                continue
            for path, text in _texts(value, (field,)):
                if len(path) == 1:
                    yield from _reckoned(c, place, field, text, seen)
                    continue
                for found in _BRACES.finditer(text):
                    if found[1] in seen:
                        yield note(
                            c.span(place, *path),
                            "brace-not-filled",
                            f"`{found[0]}` goes out as it stands; in a JSON value it is written "
                            f"`${found[1]}{found[2]}`",
                        )


def _reckoned(c: Checking, place: str, field: str, text: str, seen: set[str]) -> Iterator[Note]:
    """An expression in braces, such as `{size(files)}`: braces hold a name or a path, so it is no reference."""
    for found in _EXPRESSION.finditer(text):
        doubled = c.source is not None and f"{{{found[0]}" in c.source.text
        if not doubled and seen & set(_WORDS.findall(found[1])):
            yield note(
                c.span(place, field),
                "brace-not-filled",
                f"`{found[0]}` goes out as it stands: braces hold a name or a path; `let` gives a name to what it says",
            )


def _texts(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif is_list(value):
        for at, one in enumerate(value):
            yield from _texts(one, (*path, at))
    elif is_record(value):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
