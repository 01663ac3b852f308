"""Reads jq filters for the static checks: the variables they need, the words that are refused, what jq says of them.

A filter is only compiled here, never run; running is `bot/runtime/jq_engine.py`, in a process of its own.
Offsets count characters of the filter, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from bot.language.problems import did_you_mean, nearest

MAX_BYTES = 4096
MAX_DEPTH = 24


class Variable(NamedTuple):
    name: str
    start: int
    end: int


class Fault(NamedTuple):
    """What is wrong with a filter. `mend`: the likely way out, as a sentence."""

    message: str
    start: int
    end: int
    mend: str | None = None


class _Read(NamedTuple):
    variables: tuple[Variable, ...]
    fault: Fault | None


REFUSED: Mapping[str, str] = {
    "env": "shows the surroundings of the process, so it is not to be had",
    "input": "reads further inputs, and there are none: name them as `$name`",
    "inputs": "reads further inputs, and there are none: name them as `$name`",
    "debug": "writes to a log that nobody reads here",
    "stderr": "writes to a log that nobody reads here",
    "now": "gives another value at every look; the run's own is `$now`",
    "localtime": "depends on the machine's zone; `gmtime` does not",
    "strflocaltime": "depends on the machine's zone; `strftime` does not",
    "input_filename": "reads files, and there are none",
    "input_line_number": "reads files, and there are none",
    "get_search_list": "reads files, and there are none",
    "import": "reads files, and there are none",
    "include": "reads files, and there are none",
    "modulemeta": "reads files, and there are none",
    "halt": "ends the whole process",
    "halt_error": "ends the whole process; `error` ends the filter",
}
"""Words of jq that a filter may not use, with the reason."""

_OWN = frozenset({"__loc__", "__prog_args"})
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<variable>\$(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)
    |(?P<field>\.[A-Za-z_]\w*)
    |(?P<format>@[A-Za-z0-9_]+)
    |(?P<word>(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<quote>")
    |(?P<op>\?//=?|//=?|\|=|[-+*/%=!<>]=|\.\.|.)""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ENDS = {"(": ")", "[": "]", "{": "}", "if": "end", "then": "end", "def": ";"}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Group:
    """An open bracket, `if` or `def` with the names that are bound in it."""

    def __init__(self, kind: str, bound: frozenset[str], start: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.base = bound
        self.bound = bound
        self.folds = 0
        """How many `reduce` or `foreach` await their `as`."""


def free_variables(text: str) -> tuple[Variable, ...]:
    """The variables that a filter needs from outside, each occurrence, in written order."""
    return _read(text).variables


def compile_problem(text: str, names: Iterable[str] = ()) -> Fault | None:
    """What is wrong with a filter, or None. `names` are taken as bound (besides those it binds itself)."""
    if not text.strip():
        return Fault("there is no filter", 0, len(text))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return Fault("a filter may be 4 KiB long; this one is longer", 0, len(text))
    fault = _read(text).fault
    return fault or _compiled(text, tuple(sorted(set(names))))


@lru_cache(maxsize=1024)
def _read(text: str) -> _Read:
    reader = _Reader(text)
    reader.whole()
    return _Read(tuple(reader.free), reader.fault)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.free: list[Variable] = []
        self.fault: Fault | None = None
        self.tokens = self.scan(0, len(text), 0)
        self.at = 0
        self.groups = [_Group("", frozenset())]
        self.defined: set[str] = set()

    def blame(self, message: str, start: int, end: int) -> None:
        if self.fault is None:
            self.fault = Fault(message, start, end)

    def scan(self, at: int, end: int, depth: int) -> list[_Token]:
        """The tokens; a text's interpolations come as a bracketed group in its place."""
        tokens: list[_Token] = []
        while at < end:
            match = _TOKEN.match(self.text, at, end)
            assert match is not None and match.lastgroup is not None
            kind, start, at = match.lastgroup, match.start(), match.end()
            if kind == "quote":
                at = self.quoted(tokens, start, end, depth)
            elif kind != "space":
                tokens.append(_Token(kind, match[0], start, at))
        return tokens

    def quoted(self, tokens: list[_Token], start: int, end: int, depth: int) -> int:
        at = start + 1
        pieces: list[_Token] = []
        while at < end and self.text[at] != '"':
            if self.text.startswith("\\(", at):
                inner_end = self.balanced(at + 2, end)
                if depth < MAX_DEPTH:
                    inner = self.scan(at + 2, inner_end, depth + 1)
                    pieces += [_Token("op", "(", at + 1, at + 2), *inner, _Token("op", ")", inner_end, inner_end + 1)]
                at = inner_end + 1
            else:
                at += 2 if self.text[at] == "\\" else 1
        if at >= end:
            self.blame('the text that `"` opens is not closed', start, min(start + 24, end))
        tokens.append(_Token("text", "", start, min(at + 1, end)))
        tokens += pieces
        return at + 1

    def balanced(self, at: int, end: int) -> int:
        """Where the bracket closes that was opened just before `at`, texts and comments stepped over."""
        open_, texts = 1, 0
        stack: list[int] = []
        while at < end:
            char = self.text[at]
            if texts:
                if char == "\\":
                    if self.text.startswith("\\(", at):
                        stack.append(open_)
                        open_, texts = 1, 0
                    at += 1
                elif char == '"':
                    texts = 0
            elif char == '"':
                texts = 1
            elif char in "([{":
                open_ += 1
            elif char in ")]}":
                open_ -= 1
                if not open_:
                    if not stack:
                        return at
                    open_, texts = stack.pop(), 1
            at += 1
        return end

    def peek(self, ahead: int = 0) -> _Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else _Token("end", "", len(self.text), len(self.text))

    def whole(self) -> None:
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            group = self.groups[-1]
            if token.kind == "variable":
                self.use(token, group)
            elif token.kind == "word":
                self.word(token, group)
            elif token.kind == "op":
                self.operator(token, group)

    def use(self, token: _Token, group: _Group) -> None:
        name = token.text[1:]
        if name == "ENV":
            self.blame(f"`$ENV` {REFUSED['env']}", token.start, token.end)
        elif name not in group.bound and name not in _OWN:
            self.free.append(Variable(name, token.start, token.end))

    def word(self, token: _Token, group: _Group) -> None:
        if group.kind == "{" and self.peek().text == ":":
            return
        match token.text:
            case "as":
                self.binding(group)
            case "reduce" | "foreach":
                group.folds += 1
            case "def":
                self.definition(token, group)
            case "if":
                self.open("if", group.bound, token)
            case "then" | "elif" | "else":
                if group.kind in ("if", "then"):
                    self.groups.pop()
                    self.open("then", group.base, token)
            case "end":
                if group.kind in ("if", "then"):
                    self.groups.pop()
            case "label" | "break":
                if self.peek().kind == "variable":
                    self.at += 1
            case word:
                if word in REFUSED and word not in self.defined:
                    self.blame(f"`{word}` {REFUSED[word]}", token.start, token.end)

    def operator(self, token: _Token, group: _Group) -> None:
        if token.text in "([{":
            self.open(token.text, group.bound, token)
        elif token.text in ")]}":
            while len(self.groups) > 1 and _ENDS[self.groups[-1].kind] != token.text:
                self.groups.pop()
            if len(self.groups) > 1:
                self.groups.pop()
        elif token.text == ";":
            if group.kind == "def":
                self.groups.pop()
            else:
                group.bound = group.base

    def open(self, kind: str, bound: frozenset[str], token: _Token) -> None:
        self.groups.append(_Group(kind, bound, token.start))
        if len(self.groups) > MAX_DEPTH + 1:
            self.blame(f"a filter may nest {MAX_DEPTH} levels; this one nests deeper", token.start, token.end)

    def binding(self, group: _Group) -> None:
        """After `as`: patterns, then either the brackets of a fold or the rest of the group."""
        names = set(self.pattern(group))
        while self.peek().text == "?//":
            self.at += 1
            names |= set(self.pattern(group))
        if group.folds and self.peek().text == "(":
            group.folds -= 1
            opener = self.tokens[self.at]
            self.at += 1
            # What a fold starts from does not see its variables; what stands after the first `;` does.
            self.open("(", group.bound, opener)
            self.groups[-1].base = group.bound | names
        else:
            group.bound = group.bound | names

    def pattern(self, group: _Group) -> list[str]:
        names: list[str] = []
        depth = 0
        while True:
            token = self.peek()
            if token.kind == "end":
                return names
            if token.kind == "variable":
                self.at += 1
                names.append(token.text[1:])
            elif token.text in ("[", "{"):
                self.at += 1
                depth += 1
            elif token.text in ("]", "}"):
                self.at += 1
                depth -= 1
            elif token.text == "(" and depth:
                # A computed key, or what stands inside a text: these are read as filters, not as patterns.
                self.at += 1
                level = 1
                while level and self.peek().kind != "end":
                    level += {"(": 1, ")": -1}.get(self.peek().text, 0)
                    if level and self.peek().kind == "variable":
                        self.use(self.peek(), group)
                    self.at += 1
            elif depth:
                self.at += 1
            if depth <= 0:
                return names

    def definition(self, token: _Token, group: _Group) -> None:
        name = self.peek()
        if name.kind == "word":
            self.at += 1
            self.defined.add(name.text)
        bound = set(group.bound)
        if self.peek().text == "(":
            while self.peek().kind != "end" and self.peek().text != ")":
                parameter = self.peek()
                if parameter.kind == "variable":
                    bound.add(parameter.text[1:])
                elif parameter.kind == "word":
                    self.defined.add(parameter.text)
                self.at += 1
            self.at += 1
        if self.peek().text == ":":
            self.at += 1
        self.open("def", frozenset(bound), token)


_UNKNOWN = re.compile(r"error: (?P<name>[\w:$*-]+)(?:/(?P<arity>\d+))? is not defined")
_PLACE = re.compile(r", line (?P<line>\d+), column (?P<column>\d+):")
_UNEXPECTED = re.compile(r"syntax error, unexpected (?P<what>.+?)(?:, expecting .*)?(?= at <top-level>|$)")


def _jq() -> Any:
    """The library, loaded by the first filter; it has no types."""
    import jq

    return jq


@lru_cache(maxsize=1024)
def _compiled(text: str, names: tuple[str, ...]) -> Fault | None:
    try:
        _jq().compile(text, args=dict.fromkeys(names))
    except ValueError as said:
        return _translated(text, str(said))
    return None


def _translated(text: str, said: str) -> Fault:
    first = said.splitlines()[0]
    place = _PLACE.search(first)
    start = _offset(text, int(place["line"]), int(place["column"])) if place else 0
    match = re.compile(r"\$?[A-Za-z_]\w*|\S", re.ASCII).match(text, start)
    end = match.end() if match else min(start + 1, len(text))
    if unknown := _UNKNOWN.search(first):
        return _unknown(unknown["name"], unknown["arity"], start, end)
    if unexpected := _UNEXPECTED.search(first):
        what = unexpected["what"]
        if what == "end of file":
            last = len(text.rstrip())
            return Fault("the filter breaks off", max(last - 1, 0), last)
        return Fault(f"`{text[start:end]}` cannot stand here", start, end)
    told = re.sub(r"^jq: error: ", "", first).partition(" at <top-level>")[0]
    return Fault(f"jq reads no filter here: {told}", start, end)


def _unknown(name: str, arity: str | None, start: int, end: int) -> Fault:
    if name.startswith("$*label-"):
        return Fault(f"no `label ${name[8:]}` stands above this `break`", start, end)
    if name.startswith("$"):
        return Fault(f"nothing binds `{name}`", start, end)
    known = _builtins()
    if name in known:
        takes = " or ".join(str(n) for n in sorted(known[name]))
        return Fault(f"`{name}` takes {takes} argument{'' if takes == '1' else 's'}, here it has {arity}", start, end)
    return Fault(f"jq has no `{name}`", start, start + len(name), did_you_mean(nearest(name, known)))


@lru_cache(maxsize=1)
def _builtins() -> dict[str, set[int]]:
    known: dict[str, set[int]] = {}
    entries: list[str] = _jq().compile("builtins").input_value(None).first()
    for entry in entries:
        name, _, arity = entry.partition("/")
        if name not in REFUSED:
            known.setdefault(name, set()).add(int(arity))
    return known


def _offset(text: str, line: int, column: int) -> int:
    """jq counts columns in bytes, from 1."""
    lines = text.split("\n")
    line = min(line, len(lines))
    before = sum(len(written) + 1 for written in lines[: line - 1])
    within = lines[line - 1].encode("utf-8", "replace")[: column - 1].decode("utf-8", "ignore")
    return min(before + len(within), len(text))
