"""The JSON surface's reader: JSON5 with a place for every key and value, and several problems where one would do.

No recursion, one pass over a tokenizer. With `words` a bare word is a text (bracketed values on the markdown
surface); else it is a problem with the quotes as its mend.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.language.problems import Fix, Problem
from bot.language.tree import Member, Node

DEPTH = 200
"""How deep brackets may nest."""

MOST_PROBLEMS = 20
DOUBLE = "“”„‟«»"
SINGLE = "‘’‚‛‹›"

_TOKEN = re.compile(
    r"""(?P<ws>(?:[\s\ufeff]+|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)+)
    |(?P<p>[\[\]{}:,;])
    |(?P<str>"[^"\\\n]*(?:\\[^\r][^"\\\n]*)*"|'[^'\\\n]*(?:\\[^\r][^'\\\n]*)*')
    |(?P<num>[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w$.:@-]|/(?![/*])))
    |(?P<word>/\*|(?:(?!/[/*])[^\s\[\]{}:,;"'“”„‟«»‘’‚‛‹›])+)""",
    re.VERBOSE,
)
_LOOSE = re.compile(r"""[^\s\[\]{},;"'“”„‟«»‘’‚‛‹›]+""")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\s\S]))")
_SIMPLE = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\n": "",
    "\u2028": "",
    "\u2029": "",
}
_ENDS = re.compile(r"\s*(?:[:,\]};]|//|/\*|\Z)")
_KEYLIKE = re.compile(r"""\s*(?:"[^"\n]*"|'[^'\n]*'|[“„«][^”“»\n]*[”“»]|[\w$-]+)\s*:""")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_FOREIGN = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}

_TO_ITS_END = re.compile(r"""[^,{}\[\]"'\\\n]*""")
Want = Literal["value", "key", "colon", "comma"]


@dataclass(slots=True)
class Parsed:
    """`roots`: the values read, divided by commas. `end`: where reading stopped."""

    roots: list[Node]
    problems: list[Problem]
    end: int


@dataclass(slots=True)
class _Reader:
    text: str
    at: int
    stop: int
    words: bool
    one: bool
    roots: list[Node] = field(default_factory=list)
    stack: list[Node] = field(default_factory=list)
    keys: list[tuple[str, int, int]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    want: Want = "value"
    last: int = 0
    """Where the latest token ended: a missing comma goes there."""


def read(text: str, start: int = 0, end: int | None = None, *, words: bool = False, one: bool = False) -> Parsed:
    """Reads values from `text[start:end]`; offsets are those of `text`. With `one` it stops behind the first."""
    reader = _Reader(text, start, len(text) if end is None else end, words, one, last=start)
    match = _TOKEN.match
    while reader.at < reader.stop and len(reader.problems) < MOST_PROBLEMS:
        token = match(text, reader.at, reader.stop)
        if token is None:
            _odd(reader)
            continue
        kind = token.lastgroup
        if kind == "ws":
            reader.at = token.end()
            continue
        if kind == "p":
            _punctuation(reader, token[0])
        elif kind == "str":
            _scalar(reader, _text(reader, token.start() + 1, token.end() - 1, token.start(), token.end()))
        elif kind == "num" and reader.want != "key":
            _scalar(reader, _number(reader, token[0], token.end()))
        else:
            _word(reader, token[0])
        if one and reader.roots and not reader.stack:
            break
    _finish(reader)
    return Parsed(reader.roots, reader.problems, reader.at)


def _problem(
    reader: _Reader,
    start: int,
    end: int,
    code: str,
    message: str,
    mend: str | None = None,
    fix: Fix | None = None,
    also: tuple[tuple[int, int, str], ...] = (),
) -> None:
    reader.problems.append(Problem(start=start, end=end, code=code, message=message, mend=mend, fix=fix, also=also))


def _punctuation(reader: _Reader, sign: str) -> None:
    at = reader.at
    reader.at = at + 1
    if sign in "[{":
        _open(reader, Node(kind="array" if sign == "[" else "object", start=at, end=at + 1))
    elif sign in "]}":
        _close(reader, sign, at)
    elif sign == ":":
        if reader.want == "colon":
            reader.want = "value"
        else:
            _problem(reader, at, at + 1, "json-syntax", "`:` stands where none goes")
    elif sign == ",":
        _comma(reader, at)
    elif reader.stack:
        _problem(reader, at, at + 1, "json-syntax", f"`{sign}` stands where none goes")
    reader.last = reader.at


def _comma(reader: _Reader, at: int) -> None:
    if reader.want == "comma":
        reader.want = "key" if reader.stack and reader.stack[-1].kind == "object" else "value"
        return
    in_object = bool(reader.stack) and reader.stack[-1].kind == "object"
    if in_object and reader.want in ("value", "colon"):
        key, start, end = reader.keys.pop()
        _problem(reader, start, end, "json-syntax", f"`{key}` has no value")
        reader.want = "key"
        return
    fix = Fix(start=at, end=at + 1, text="")
    message = "a comma stands where a value must" if reader.last <= at and not reader.roots else "a comma too many"
    _problem(reader, at, at + 1, "json-syntax", message, "take it out", fix)


def _open(reader: _Reader, node: Node) -> None:
    if not _ready(reader, node.start, node.end):
        return
    if len(reader.stack) >= DEPTH:
        message = f"brackets nest more than {DEPTH} deep here"
        _problem(reader, node.start, node.end, "limit-depth", message)
        reader.at = reader.stop
        return
    _add(reader, node)
    reader.stack.append(node)
    reader.want = "value" if node.kind == "array" else "key"


def _close(reader: _Reader, sign: str, at: int) -> None:
    kind = "array" if sign == "]" else "object"
    if reader.want == "colon" or (reader.want == "value" and reader.stack and reader.stack[-1].kind == "object"):
        key, start, end = reader.keys.pop()
        _problem(reader, start, end, "json-syntax", f"`{key}` has no value")
        reader.want = "key"
    if not any(node.kind == kind for node in reader.stack):
        _problem(reader, at, at + 1, "json-syntax", f"`{sign}` closes what was never opened")
        return
    while reader.stack[-1].kind != kind:
        lost = reader.stack.pop()
        lost.end = at
        opening = "{" if lost.kind == "object" else "["
        also = ((lost.start, lost.start + 1, "opened here"),)
        _problem(reader, at, at + 1, "json-syntax", f"`{opening}` is not closed before this `{sign}`", None, None, also)
    reader.stack.pop().end = at + 1
    reader.want = "comma"


def _ready(reader: _Reader, start: int, end: int) -> bool:
    """Makes room for a value: says what is missing before it, if anything. False: it cannot stand here."""
    if reader.want == "value":
        return True
    said = reader.text[start : min(end, start + 30)]
    if reader.want == "colon":
        key = reader.keys[-1][0]
        fix = Fix(start=reader.last, end=reader.last, text=":")
        _problem(reader, start, end, "json-syntax", f"a `:` is missing between `{key}` and its value", None, fix)
        reader.want = "value"
        return True
    if reader.want == "key":
        message = f"a key must stand here, such as `op:`; `{said}` is none"
        _problem(reader, start, end, "json-syntax", message)
        if said in ("{", "["):
            reader.at = _past(reader, start)
        return False
    if reader.stack and reader.stack[-1].kind == "object":
        _unclosed(reader, start, end)
        return _ready(reader, start, end) if len(reader.problems) < MOST_PROBLEMS else False
    _missing_comma(reader, start, end)
    reader.want = "value"
    return True


def _unclosed(reader: _Reader, start: int, end: int) -> None:
    """A value begins where a key or `}` must stand: the object before it lost its end."""
    lost = reader.stack.pop()
    lost.end = reader.last
    reader.want = "comma"
    outer = reader.stack[-1].kind if reader.stack else "array"
    text = "}," if outer == "array" else "}"
    fix = Fix(start=reader.last, end=reader.last, text=text)
    also = ((lost.start, lost.start + 1, "opened here"),)
    _problem(
        reader, start, end, "json-syntax", "the object above is not closed before this", "close it with `}`", fix, also
    )
    if outer == "array":
        reader.want = "value"


def _missing_comma(reader: _Reader, start: int, end: int) -> None:
    said = reader.text[start : min(end, start + 30)]
    fix = Fix(start=reader.last, end=reader.last, text=",")
    _problem(reader, start, end, "json-syntax", f"a comma is missing before `{said}`", "put `,` before it", fix)


def _scalar(reader: _Reader, node: Node) -> None:
    """A text or number just read: a key or a value."""
    start, end = node.start, node.end
    reader.at = end
    in_object = bool(reader.stack) and reader.stack[-1].kind == "object"
    if reader.want == "comma" and in_object and _KEYLIKE.match(reader.text, start, reader.stop):
        _missing_comma(reader, start, end)
        reader.want = "key"
    if reader.want == "key":
        reader.keys.append((str(node.value), start, end))
        reader.want = "colon"
    elif _ready(reader, start, end):
        _add(reader, node)
        reader.want = "comma"
    reader.last = reader.at


def _add(reader: _Reader, node: Node) -> None:
    if not reader.stack:
        reader.roots.append(node)
        return
    holder = reader.stack[-1]
    if holder.kind == "array":
        holder.items.append(node)
        return
    key, start, end = reader.keys.pop()
    first = holder.members.get(key)
    if first is None:
        holder.members[key] = Member(key=key, start=start, end=end, value=node)
        return
    also = ((first.start, first.end, "first here"),)
    _problem(reader, start, end, "key-twice", f"`{key}` stands twice in one object", "keep one of the two", None, also)


def _text(reader: _Reader, start: int, end: int, outer: int, outer_end: int) -> Node:
    body = reader.text[start:end]
    if "\\" not in body:
        return Node(kind="text", start=outer, end=outer_end, value=body, offsets=range(start, end + 1))
    out: list[str] = []
    offsets: list[int] = []
    at = 0
    for found in _ESCAPE.finditer(body):
        out.append(body[at : found.start()])
        offsets.extend(range(start + at, start + found.start()))
        code = found[1] or found[2] or found[3]
        char = (
            (chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ufffd") if code else _SIMPLE.get(found[4], found[4])
        )
        out.append(char)
        offsets.extend([start + found.start()] * len(char))
        at = found.end()
    out.append(body[at:])
    offsets.extend(range(start + at, end + 1))
    value, places = "".join(out), offsets
    if any("\ud800" <= c <= "\udfff" for c in value):
        value, places = _joined(reader, value, offsets)
    return Node(kind="text", start=outer, end=outer_end, value=value, offsets=places)


def _joined(reader: _Reader, value: str, offsets: list[int]) -> tuple[str, list[int]]:
    """Halves of characters (`\\ud83d\\ude80`) put together; a half alone is a problem."""
    out: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(value):
        pair = value[at : at + 2]
        char, step = value[at], 1
        if len(pair) == 2 and "\ud800" <= pair[0] < "\udc00" <= pair[1] <= "\udfff":
            char, step = pair.encode("utf-16", "surrogatepass").decode("utf-16"), 2
        elif "\ud800" <= char <= "\udfff":
            _problem(reader, offsets[at], offsets[at] + 6, "json-syntax", "this is half of a character")
            char = "\ufffd"
        out.append(char)
        places.append(offsets[at])
        at += step
    return "".join(out), [*places, offsets[-1]]


def _number(reader: _Reader, said: str, end: int) -> Node:
    start = reader.at
    digits = said.lstrip("+-")
    sign = -1 if said[0] == "-" else 1
    value: Any = 0
    if digits[:2] in ("0x", "0X"):
        value = sign * int(digits, 16)
    elif len(digits) > 400:
        _problem(reader, start, end, "json-syntax", "this number has too many digits")
    elif digits.isdigit():
        value = sign * int(digits)
    else:
        value = sign * float(digits)
        if value in (float("inf"), float("-inf")):
            _problem(reader, start, end, "json-syntax", f"`{said[:30]}` is beyond what a number holds")
            value = 0
        elif value.is_integer() and abs(value) < 1e15:
            value = int(value)
    return Node(kind="number", start=start, end=end, value=value)


def _word(reader: _Reader, said: str) -> None:
    start = reader.at
    if said.startswith("/*"):
        _problem(
            reader, start, start + 2, "json-syntax", "`/*` opens a comment that is never closed", "close it with `*/`"
        )
        reader.at = reader.stop
        reader.stack.clear()
        return
    in_object = bool(reader.stack) and reader.stack[-1].kind == "object"
    key_next = reader.want == "key" or (
        reader.want == "comma" and in_object and _KEYLIKE.match(reader.text, start, reader.stop)
    )
    if key_next:
        end = start + len(said)
        _scalar(reader, Node(kind="text", start=start, end=end, value=said, offsets=range(start, end + 1)))
        return
    if reader.words and reader.want == "comma" and in_object and _several(reader, start):
        return
    if reader.words and (loose := _LOOSE.match(reader.text, start, reader.stop)):
        said = loose[0]
    end = start + len(said)
    if said in _WORDS:
        kind = "null" if said == "null" else "bool"
        _scalar(reader, Node(kind=kind, start=start, end=end, value=_WORDS[said]))
        return
    if not reader.stack and not reader.words:
        _stray(reader, start)
        return
    node = Node(kind="text", start=start, end=end, value=said, offsets=range(start, end + 1))
    if not reader.words and reader.want != "colon":
        meant = _FOREIGN.get(said, f'"{said}"')
        mend = f"write `{meant}`"
        _problem(
            reader,
            start,
            end,
            "json-syntax",
            f"`{said[:40]}` stands without quotes",
            mend,
            Fix(start=start, end=end, text=meant),
        )
    _scalar(reader, node)


def _several(reader: _Reader, start: int) -> bool:
    """A bare word right behind a bare value of an object: both were meant as one text, which is said with its mend."""
    members = reader.stack[-1].members
    held = next(reversed(members.values())).value if members else None
    if held is None or held.end != reader.last or reader.text[held.start] in "\"'[{":
        return False
    if not reader.text[reader.last : start].isspace() or "\n" in reader.text[reader.last : start]:
        return False
    rest = _TO_ITS_END.match(reader.text, held.start, reader.stop)
    said = rest[0].rstrip() if rest else ""
    end = held.start + len(said)
    if end <= start:
        return False
    message = f"`{said[:60]}` is a text of several words, which stands in quotes here"
    fix = Fix(start=held.start, end=end, text=f'"{said}"')
    _problem(reader, held.start, end, "json-syntax", message, f'write `"{said[:60]}"`', fix)
    held.kind, held.value, held.end, held.offsets = "text", said, end, range(held.start, end + 1)
    reader.at = reader.last = end
    return True


def _stray(reader: _Reader, start: int) -> None:
    """Words outside of every bracket: no part of a program, told once."""
    line_end = reader.text.find("\n", start, reader.stop)
    end = reader.stop if line_end < 0 else line_end
    _problem(
        reader, start, len(reader.text[:end].rstrip()), "json-syntax", "this is no part of the program", "take it out"
    )
    reader.at = reader.stop


def _odd(reader: _Reader) -> None:
    """What no token begins with: a curly quote, or a quote that its line does not close."""
    text, at = reader.text, reader.at
    char = text[at]
    if char in DOUBLE or char in SINGLE:
        closed = _curly_end(text, at, reader.stop)
        if closed is not None:
            _scalar(reader, _text(reader, at + 1, closed, at, closed + 1))
            return
    line_end = text.find("\n", at, reader.stop)
    end = reader.stop if line_end < 0 else line_end
    if char in "\"'" or char in DOUBLE or char in SINGLE:
        mend = "close it, or write a line break as `\\n`"
        _problem(reader, at, at + 1, "json-syntax", f"`{char}` opens a text that its line does not close", mend)
        stop = at + 1 + len(text[at + 1 : end].rstrip(" \t,]}"))
        _scalar(
            reader,
            Node(
                kind="text", start=at, end=max(at + 1, stop), value=text[at + 1 : stop], offsets=range(at + 1, stop + 2)
            ),
        )
        return
    _problem(reader, at, at + 1, "json-syntax", f"`{char}` stands where none goes")
    reader.at = at + 1


def _curly_end(text: str, start: int, stop: int) -> int | None:
    """Where a text closes that a curly quote opens: the first closing one that the text's surroundings allow, so
    that curly quotes inside stay; else the first at all."""
    closers = DOUBLE + '"' if text[start] in DOUBLE else SINGLE + "'"
    first: int | None = None
    at = start + 1
    while at < stop and text[at] != "\n":
        if text[at] == "\\":
            at += 2
            continue
        if text[at] in closers:
            if _ENDS.match(text, at + 1, stop):
                return at
            first = at if first is None else first
        at += 1
    return first


def _past(reader: _Reader, start: int) -> int:
    """Behind a bracketed value that cannot stand where it is."""
    depth, at = 0, start
    while at < reader.stop:
        token = _TOKEN.match(reader.text, at, reader.stop)
        at = token.end() if token else at + 1
        if token and token[0] in "[{":
            depth += 1
        elif token and token[0] in "]}":
            depth -= 1
            if depth <= 0:
                break
    return at


def _finish(reader: _Reader) -> None:
    if len(reader.problems) >= MOST_PROBLEMS or (reader.at < reader.stop and not (reader.one and reader.roots)):
        return
    if any(problem.code in ("limit-depth",) for problem in reader.problems):
        return
    if reader.want == "colon" or (reader.want == "value" and reader.stack and reader.stack[-1].kind == "object"):
        key, start, end = reader.keys.pop()
        if not reader.stack:
            _problem(reader, start, end, "json-syntax", f"`{key}` has no value")
    if reader.stack:
        lost = reader.stack[-1]
        sign, closing = ("[", "]") if lost.kind == "array" else ("{", "}")
        mend = f"close it with `{closing}`"
        _problem(reader, lost.start, lost.start + 1, "json-syntax", f"`{sign}` is never closed", mend)
        for node in reader.stack:
            node.end = reader.last
