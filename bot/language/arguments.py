"""One markdown command's arguments to members of its op node: places, keywords, `key: value`, expressions.

Faults of shape become problems here; what is missing or ill-typed is left to `lower`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.catalog import Arg, OpSpec
from bot.language import json5, words
from bot.language.addressees import CHANNELS, looks_like
from bot.language.lower import ALL_FIELDS
from bot.language.problems import Fix, Problem, did_you_mean, nearest
from bot.language.refs import path
from bot.language.shape import kinds
from bot.language.tree import Member, Node
from bot.language.words import INTEGER, Word

KEYWORDS = frozenset(
    ("to", "within", "by", "after", "from", "where", "at", "in", "as", "need", "reason", "retry", "onError", "until")
    + ("max", "every")
)
_COUNTED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COUNTS = {word: count for count, word in enumerate(_COUNTED)}

_KEY = re.compile(r"([A-Za-z_][\w-]*):\Z")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?\Z")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d*[1-9])?\Z")
_DAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*\Z|today\Z|tomorrow\Z", re.IGNORECASE)


@dataclass(slots=True)
class Arguments:
    """What one item's arguments gave. `params` only for tools, `run` and unknown commands: their own parameters."""

    text: str
    at: int
    stop: int
    spec: OpSpec | None
    name: str
    known: set[str]
    problems: list[Problem]
    members: dict[str, Member] = field(default_factory=dict)
    params: dict[str, Member] = field(default_factory=dict)
    plain: list[Word | Node] = field(default_factory=list)
    wounded: bool = False
    has_quote: bool = False

    def problem(
        self, start: int, end: int, code: str, message: str, mend: str | None = None, fix: Fix | None = None
    ) -> None:
        self.wounded = True
        self.problems.append(Problem(start=start, end=end, code=code, message=message, mend=mend, fix=fix))


def read(
    text: str,
    start: int,
    stop: int,
    spec: OpSpec | None,
    name: str,
    known: set[str],
    problems: list[Problem],
    *,
    quoted: bool = False,
) -> Arguments:
    """The arguments in `text[start:stop]` of the command `name`; `known`: names bound above; `quoted`: a quote
    stands below it."""
    given = Arguments(text, start, stop, spec, name, known, problems, has_quote=quoted)
    if spec is not None and spec.args and spec.args[0].kind == "expression":
        _expression(given, spec.args[0].name)
        return given
    if spec is not None and spec.name == "core.transform":
        _piped(given)
    _loop(given)
    if spec is not None and not spec.tool:
        _places(given, spec)
    elif spec is not None and given.plain:
        first, last = given.plain[0], given.plain[-1]
        if len(given.plain) > 1 and _misspelt(given, spec, first):
            return given
        said = _said(first)
        mend = f"name what it is: `key: {said}`"
        given.problem(first.start, last.end, "too-many-words", f"`{name}` takes its parameters as `key: value`", mend)
    return given


def put(given: Arguments, key: str, start: int, end: int, value: Node, *, keyword: bool = False) -> None:
    """Adds a member, to the op's own or to its `params`, as its spec says. `keyword`: written so that it can only
    be a field of the op (`after x`, not `after: x`)."""
    own = _is_own(given.spec, key) or (keyword and given.spec is not None and key in given.spec.fields)
    into = given.members if own else given.params
    if key in into:
        given.problem(start, end, "parameter-twice", f"`{key}` stands twice here", "keep one of the two")
        return
    into[key] = Member(key=key, start=start, end=end, value=value)


def holds_own(spec: OpSpec | None) -> bool:
    """Whether a block's `params` are the op's own ones together: of tools, unless one is called so."""
    return spec is None or (spec.tool and "params" not in (spec.schema or {}).get("properties", {}))


def field_of(spec: OpSpec | None, key: str) -> bool:
    """Whether `key: …` on this op's line is a field of the op, or a parameter of `run` itself."""
    return _is_own(spec, key)


def _is_own(spec: OpSpec | None, key: str) -> bool:
    if spec is None:
        return False
    if key == "inputs":
        return spec.name == "run" or not spec.tool
    if spec.tool:
        return key in spec.fields and key not in (spec.schema or {}).get("properties", {})
    if spec.name == "run":
        return key in (*spec.fields, "script")
    return True


def _expression(given: Arguments, key: str) -> None:
    if (node := words.rest(given.text, given.at, given.stop)) is not None:
        given.members[key] = Member(key=key, start=node.start, end=node.end, value=node)


def _piped(given: Arguments) -> None:
    """`transform V | JQ`: what stands behind the first `|`."""
    bar = given.text.find("|", given.at, given.stop)
    if bar < 0:
        return
    if (node := words.rest(given.text, bar + 1, given.stop)) is not None:
        given.members["jq"] = Member(key="jq", start=node.start, end=node.end, value=node)
    given.stop = bar


def _loop(given: Arguments) -> None:
    while (word := _next(given)) is not None:
        if not word.quoted and word.raw[0] in "[{" and word.lone is None and _takes_bracket(given):
            node, given.at = _bracket(given, word.start)
            given.plain.append(node)
            continue
        given.at = word.end
        if not word.quoted and (key := _KEY.match(word.raw)):
            _keyed(given, key[1], word)
        elif not word.quoted and word.raw in KEYWORDS and given.spec is not None:
            _keyword(given, word)
        else:
            given.plain.append(word)


def _next(given: Arguments) -> Word | None:
    word = words.next_word(given.text, given.at, given.stop)
    if word is not None and not word.closed:
        sign = word.raw[0]
        message = f"`{sign}` opens a text that its line does not close"
        given.problem(
            word.start, word.start + 1, "quote-open", message, f"close it with `{sign}`, or put it all in quotes"
        )
    return word


def _takes_bracket(given: Arguments) -> bool:
    """Whether the next place may hold a bracketed value: a value, a stream."""
    args = given.spec.args if given.spec else ()
    place = args[min(len(given.plain), len(args) - 1)] if args else None
    return place is not None and place.kind in ("value", "stream", "addressee")


def _bracket(given: Arguments, start: int) -> tuple[Node, int]:
    parsed = json5.read(given.text, start, given.stop, words=True, one=True)
    if parsed.problems:
        given.wounded = True
        given.problems.extend(parsed.problems)
    node = parsed.roots[0] if parsed.roots else Node(kind="null", start=start, end=parsed.end)
    return node, max(parsed.end, start + 1)


def _keyword(given: Arguments, word: Word) -> None:
    spec, key = given.spec, word.raw
    assert spec is not None
    takes = key in spec.fields or (not spec.tool and key in spec.params.get("properties", {}))
    if takes:
        _keyed(given, key, word)
        return
    if spec.tool or spec.name == "run":
        following = words.next_word(given.text, given.at, given.stop)
        fix = Fix(start=word.start, end=word.end, text=f"{key}:") if following else None
        mend = f"write `{key}: {following.raw if following else '…'}`"
        given.problem(
            word.start, word.end, "keyword-astray", f"`{given.name}` takes its parameters as `key: value`", mend, fix
        )
        given.at = following.end if following else given.at
        return
    fix = Fix(start=word.start, end=word.end, text=f'"{key}"') if _takes_texts(spec) else None
    message = f"`{key}` is a keyword, and `{given.name}` takes none such"
    given.problem(
        word.start, word.end, "keyword-astray", message, f'quote it if it is a text: `"{key}"`' if fix else None, fix
    )
    if fix:
        given.plain.append(word)
    elif (following := words.next_word(given.text, given.at, given.stop)) is not None:
        given.at = following.end


def _takes_texts(spec: OpSpec) -> bool:
    return any(arg.kind in ("literal", "choices") for arg in spec.args)


def _keyed(given: Arguments, key: str, word: Word) -> None:
    """`key: value` or `keyword value`."""
    spec = given.spec
    expressions: Mapping[str, str] = spec.expressions if spec else {}
    if key == "until" and key in expressions and word.raw == key:
        node = words.rest(given.text, given.at, given.stop)
        given.at = given.stop
    else:
        node = _value(given, key, word)
    if node is None:
        given.problem(word.start, word.end, "value-missing", f"`{word.raw}` has no value behind it")
        return
    put(given, key, word.start, word.end, node, keyword=word.raw == key)
    if key == "as" and node.kind == "text":
        given.known.add(str(node.value))


def _value(given: Arguments, key: str, keyword: Word) -> Node | None:
    word = words.next_word(given.text, given.at, given.stop)
    if word is None or (not word.quoted and _KEY.match(word.raw) and word.raw != "…"):
        return None
    if not word.quoted and word.raw[0] in "[{" and word.lone is None:
        node, given.at = _bracket(given, word.start)
        return node
    word = _next(given)
    assert word is not None
    given.at = word.end
    spec = given.spec
    is_field = key in ALL_FIELDS and (
        _is_own(spec, key) or (keyword.raw == key and spec is not None and key in spec.fields)
    )
    if spec is not None and key in spec.expressions and not spec.tool:
        return words.plain(word)
    if key == "after" and is_field:
        return _names(given, word)
    if key in ("by", "at") and not word.quoted and (is_field or (spec and not spec.tool)):
        word = _moment(given, word)
    if word.lone is not None:
        return words.bound(word.lone.text, word.start, word.end, 1)
    if spec is not None and not spec.tool and spec.expects.get(key) == "list" and keyword.raw == key:
        return _bound(given, word, Arg(name=key, kind="value"))
    if (is_field and key not in ("retry",)) or word.quoted:
        return words.literal(word)
    return _scalar(given, key, word)


def _names(given: Arguments, word: Word) -> Node:
    """`after a`, `after a, b`."""
    nodes: list[Node] = []
    current: Word | None = word
    while current is not None:
        more = current.raw.endswith(",") and not current.quoted
        value = current.value.rstrip(",")
        if current.lone is not None:
            value = current.lone.text
        end = current.start + len(current.raw.rstrip(","))
        braces = 1 if current.lone is not None else 0
        nodes.append(Node(kind="text", start=current.start + braces, end=end - braces, value=value, markdown=True))
        given.at = current.end
        current = words.next_word(given.text, given.at, given.stop) if more else None
    if len(nodes) == 1:
        return nodes[0]
    return Node(kind="array", start=nodes[0].start, end=nodes[-1].end, items=nodes, markdown=True)


def _moment(given: Arguments, first: Word) -> Word:
    """`Fri 17:00`, `2026-06-01 09:00`, `{start} + 14d 09:00`: the words that belong to one moment."""
    last = first
    following = words.next_word(given.text, last.end, given.stop)
    dated = bool(_DAY.match(first.raw) or re.match(r"\d{4}-\d{2}-\d{2}\Z", first.raw))
    if following is not None and dated and _CLOCK.match(following.raw):
        last = following
        following = words.next_word(given.text, last.end, given.stop)
    if following is not None and re.match(r"[+-]", following.raw):
        last = following
        if following.raw in "+-":
            last = words.next_word(given.text, last.end, given.stop) or last
        following = words.next_word(given.text, last.end, given.stop)
        if following is not None and _CLOCK.match(following.raw):
            last = following
    given.at = last.end
    raw = given.text[first.start : last.end]
    return Word(raw, first.start, last.end, raw, range(first.start, last.end + 1))


def _scalar(given: Arguments, key: str, word: Word) -> Node:
    """A bare scalar: of its parameter's schema type, else what it looks like."""
    allowed = kinds(_schema(given.spec, key))
    said = word.value
    numeric = bool(re.fullmatch(r"[+-]?\d{1,15}(\.\d+)?", said))
    if said in ("true", "false") and (not allowed or "boolean" in allowed):
        return Node(kind="bool", start=word.start, end=word.end, value=said == "true", markdown=True)
    if said == "null" and (not allowed or "null" in allowed):
        return Node(kind="null", start=word.start, end=word.end, markdown=True)
    if numeric and allowed & {"number", "integer"} and ("string" not in allowed or _NUMBER.match(said)):
        return _number(word)
    if not allowed and _NUMBER.match(said):
        return _number(word)
    return words.literal(word)


def _number(word: Word) -> Node:
    value = float(word.value) if "." in word.value else int(word.value)
    value = int(value) if value == int(value) else value
    return Node(kind="number", start=word.start, end=word.end, value=value, markdown=True)


def _schema(spec: OpSpec | None, key: str) -> Mapping[str, Any]:
    if spec is None:
        return {}
    if spec.tool:
        found = (spec.schema or {}).get("properties", {}).get(key, {})
        return found if isinstance(found, Mapping) else {}
    if spec.name == "run":
        return {}
    return spec.params.get("properties", {}).get(key, {})


def _places(given: Arguments, spec: OpSpec) -> None:
    """The words that stand without a key, in the places that the command has."""
    left = list(given.plain)
    args = list(spec.args)
    if args and args[0].kind == "addressee":
        arg = args.pop(0)
        if left and _addresses(left[0]):
            first = left.pop(0)
            node = first if isinstance(first, Node) else _addressee(first)
            put(given, arg.name, first.start, first.end, node)
        elif left and (meant := _misspelt_addressee(left)) is not None:
            first = left.pop(0)
            message = f"nobody is addressed as `{_said(first)[:60]}`"
            fix = Fix(start=first.start, end=first.end, text=meant)
            given.problem(first.start, first.end, "unknown-addressee", message, f"did you mean `{meant}`?", fix)
            node = Node(kind="text", start=first.start, end=first.end, value=meant, markdown=True)
            put(given, arg.name, first.start, first.end, node)
    if spec.name == "core.repeat":
        args = args[:1]
    if _swapped(given, args, left):
        return
    for arg in args:
        if not left:
            break
        if arg.many:
            _many(given, arg, left)
            return
        _place(given, arg, left.pop(0))
    if left:
        _too_many(given, spec, args, left)


def _addresses(word: Word | Node) -> bool:
    return isinstance(word, Node) or (not word.quoted and looks_like(word.value))


_KINDS = ("role", "agent", *CHANNELS)


def _misspelt_addressee(left: list[Word | Node]) -> str | None:
    """What the first word was meant to be, where it is a misspelt `role:…`, `agent:…` or conversation. Words that all
    begin with the same `x:` are choices."""
    first = left[0]
    if isinstance(first, Node) or first.quoted:
        return None
    kind, colon, rest = first.value.partition(":")
    alike = any(isinstance(word, Word) and word.value.startswith(f"{kind}:") for word in left[1:])
    if not colon or not rest or alike:
        return None
    near = [kind.casefold()] if kind.casefold() in _KINDS else nearest(kind, [k for k in _KINDS if len(k) > 3])
    # `wed:10` and `link:a` are choices.
    meant = [k for k in near if kind.casefold() == k or k not in ("line", "web")]
    return f"{meant[0]}:{rest}" if len(meant) == 1 else None


def _addressee(word: Word) -> Node:
    if word.lone is not None:
        return words.bound(word.lone.text, word.start, word.end, 1)
    return words.literal(word)


def _place(given: Arguments, arg: Arg, word: Word | Node) -> None:
    node: Node | None
    if isinstance(word, Node):
        node = word
    elif arg.kind == "value":
        node = _bound(given, word, arg)
    elif arg.kind == "number":
        node = _count(given, word, arg)
    elif word.lone is not None:
        node = words.bound(word.lone.text, word.start, word.end, 1)
    else:
        node = words.literal(word)
    if node is not None:
        put(given, arg.name, word.start, word.end, node)


def _many(given: Arguments, arg: Arg, left: list[Word | Node]) -> None:
    found = [word for word in left if isinstance(word, Word)]
    _commas(given, found)
    if arg.kind == "choices" and len(found) == 1 and found[0].lone is not None:
        lone = found[0].lone
        put(given, arg.name, found[0].start, found[0].end, words.bound(lone.text, found[0].start, found[0].end, 1))
        return
    items = [words.literal(word) for word in found]
    node = Node(kind="array", start=left[0].start, end=left[-1].end, items=items, markdown=True)
    put(given, arg.name, left[0].start, left[-1].end, node)


def _commas(given: Arguments, found: list[Word]) -> None:
    ending = [word for word in found if not word.quoted and word.raw.endswith(",") and len(word.raw) > 1]
    lone = [word for word in found if not word.quoted and word.raw == ","]
    if not ending and not lone:
        return
    first, last = (ending or lone)[0], found[-1]
    kept = [word.raw if word.quoted else word.raw.rstrip(",") for word in found if word.start >= first.start]
    mended = " ".join(word for word in kept if word)
    fix = Fix(start=first.start, end=last.end, text=mended)
    message = f"`{first.raw}` ends in a comma; blanks divide these"
    given.problem(first.start, first.end, "choice-comma", message, f"write `{mended}`", fix)


def _bound(given: Arguments, word: Word, arg: Arg) -> Node | None:
    """A word in a value place: a bound name, or a path from one."""
    if word.lone is not None:
        return words.bound(word.lone.text, word.start, word.end, 1)
    if not word.quoted and path(word.value) is not None:
        return words.bound(word.value, word.start, word.end)
    if word.quoted:
        fix = Fix(start=word.start, end=word.end, text=word.value) if word.value in given.known else None
        mend = f"write `{word.value}` without quotes" if fix else None
        given.problem(
            word.start,
            word.end,
            "value-place",
            f"`{given.name}` takes a bound name here; `{word.raw}` is text",
            mend,
            fix,
        )
        return None
    what = "a number" if INTEGER.match(word.value) else "no name"
    given.problem(
        word.start, word.end, "value-place", f"`{given.name}` takes a bound name here; `{word.raw}` is {what}"
    )
    return None


def _count(given: Arguments, word: Word, arg: Arg) -> Node | None:
    """A word in a number place: an integer, or a bound number."""
    if INTEGER.match(word.value) and not word.quoted:
        value = int(word.value)
        if value < arg.least:
            given.problem(word.start, word.end, "number-place", f"`{given.name}` counts from {arg.least}, not {value}")
            return None
        return Node(kind="number", start=word.start, end=word.end, value=value, markdown=True)
    folded = word.value.casefold()
    if folded in COUNTS and word.value not in given.known:
        fix = Fix(start=word.start, end=word.end, text=str(COUNTS[folded]))
        message = f"`{given.name}` takes a count in digits; `{word.raw}` is a word"
        given.problem(word.start, word.end, "number-place", message, f"write `{COUNTS[folded]}`", fix)
        return None
    if word.lone is not None:
        return words.bound(word.lone.text, word.start, word.end, 1)
    if not word.quoted and path(word.value) is not None:
        return words.bound(word.value, word.start, word.end)
    message = f"`{given.name}` takes a whole number here, or a name bound to one; `{word.raw}` is neither"
    given.problem(word.start, word.end, "number-place", message)
    return None


def _swapped(given: Arguments, args: list[Arg], left: list[Word | Node]) -> bool:
    """Two arguments the wrong way round, told once."""
    if len(args) != 2 or len(left) != 2:
        return False
    one, two = left
    if isinstance(one, Node) or isinstance(two, Node) or not _wrong_way(given, args[0].kind, args[1].kind, one, two):
        return False
    expects: Mapping[str, str] = given.spec.expects if given.spec else {}
    nouns = ["the count" if arg.kind == "number" else f"the {expects.get(arg.name, arg.name)}" for arg in args]
    mended = f"{two.raw} {one.raw}"
    message = f"`{given.name}` takes {nouns[0]} before {nouns[1]}"
    if args[0].kind == "value" and args[1].kind == "literal":
        message += f"; `{one.raw}` is bound nowhere above" if not one.quoted else ""
    fix = Fix(start=one.start, end=two.end, text=mended)
    given.problem(one.start, two.end, "arguments-swapped", message, f"write `{given.name} {mended}`", fix)
    return True


def _wrong_way(given: Arguments, first: str, second: str, one: Word, two: Word) -> bool:
    def known(word: Word) -> bool:
        return not word.quoted and re.split(r"[.\[?]", word.value)[0] in given.known

    def count(word: Word) -> bool:
        return not word.quoted and bool(INTEGER.match(word.value))

    if (first, second) == ("number", "value"):
        return count(two) and not count(one)
    if (first, second) == ("value", "number"):
        return count(one) and not count(two)
    if (first, second) == ("value", "literal"):
        return not known(one) and known(two)
    if (first, second) == ("literal", "value"):
        return known(one) and not known(two)
    return False


def _too_many(given: Arguments, spec: OpSpec, args: list[Arg], left: list[Word | Node]) -> None:
    start, end = left[0].start, left[-1].end
    said = given.text[start:end]
    if _misspelt(given, spec, left[0]):
        return
    if spec.quote is not None and not args and given.has_quote:
        one = len(left) == 1
        message = f"`{said[:60]}` is {'one word' if one else f'{len(left)} words'} too many for `{given.name}`"
        them = "it" if one else "them"
        mend = f"its {spec.quote} is the quote below: put {them} there, or take {them} out"
        given.problem(start, end, "too-many-words", message, mend)
        return
    if spec.quote is not None and not args:
        mend = f"write it below as `> {said}`" if "\n" not in said else "write it below as `> …`"
        given.problem(start, end, "too-many-words", f"`{given.name}` takes its {spec.quote} in a quote below it", mend)
        return
    last = given.plain[len(given.plain) - len(left) - 1] if len(given.plain) > len(left) else None
    mend, fix = None, None
    if args and args[-1].kind == "literal" and isinstance(last, Word) and not last.quoted and '"' not in said:
        whole = given.text[last.start : end]
        mend, fix = f'quote what is one text: `"{whole}"`', Fix(start=last.start, end=end, text=f'"{whole}"')
        mend, fix = (mend, fix) if "\n" not in whole and "\\" not in whole else (None, None)
    elif args:
        mend = f"it is written `{spec.shape}`; quote words that belong together"
    many = "one word" if len(left) == 1 else f"{len(left)} words"
    given.problem(start, end, "too-many-words", f"`{said[:60]}` is {many} too many for `{given.name}`", mend, fix)


def _misspelt(given: Arguments, spec: OpSpec, word: Word | Node) -> bool:
    """Reports a misspelt keyword, and takes what stands behind it as its value."""
    meant = _misspelt_keyword(given, spec, word)
    if meant is None or isinstance(word, Node):
        return False
    message = f"`{given.name}` has no `{word.raw}`"
    fix = Fix(start=word.start, end=word.end, text=meant)
    given.problem(word.start, word.end, "unknown-parameter", message, did_you_mean([meant]), fix)
    given.at = word.end
    _keyed(given, meant, replace(word, raw=meant))
    return True


def _misspelt_keyword(given: Arguments, spec: OpSpec, word: Word | Node) -> str | None:
    """The keyword that a word too many was likely meant to be, of those that the command takes and has not got."""
    if isinstance(word, Node) or word.quoted:
        return None
    takes = [k for k in KEYWORDS if k in spec.fields or k in spec.params.get("properties", {})]
    near = nearest(word.raw, [k for k in takes if k not in given.members])
    return near[0] if len(near) == 1 and len(word.raw) > 2 else None


def _said(word: Word | Node) -> str:
    return word.raw if isinstance(word, Word) else "…"
