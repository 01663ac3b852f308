"""Reads CEL for the static checks: the tree, the names an expression needs, the functions it calls.

Evaluation is celpy's (`bot/runtime/cel_engine.py`, in a process of its own); what is read here, celpy accepts.
Refused besides: what celpy does not honour (some escapes, line breaks in long strings, message literals).
Offsets count characters of the expression, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

MAX_BYTES = 4096
MAX_DEPTH = 24

Step = str | int


class CelSyntax(Exception):
    """The expression does not read. `replacement`: what likely belongs in place of `start` to `end`."""

    def __init__(self, message: str, start: int, end: int, replacement: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = max(end, start)
        self.replacement = replacement


class Name(NamedTuple):
    """A free variable with its path as far as it is static: `ops.swap.state`, `rows[0].n`.

    `ends[i]` is where the step `path[i]` ends. `tested`: the last step stands in `has(…)`, so it may be absent.
    """

    path: tuple[Step, ...]
    start: int
    end: int
    ends: tuple[int, ...] = ()
    tested: bool = False

    @property
    def root(self) -> str:
        return str(self.path[0])


class Function(NamedTuple):
    """A call by name. `method`: written `x.name(…)`; `arguments`: how many stand in the brackets."""

    name: str
    start: int
    end: int
    method: bool = False
    arguments: int = 0


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | bytes | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Ident:
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Member:
    of: Tree
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Index:
    of: Tree
    index: Tree
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments)`, or `of.name(arguments)`."""

    name: str
    of: Tree | None
    arguments: tuple[Tree, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Macro:
    """`of.name(variable, arguments)`: `all`, `exists`, `exists_one`, `filter`, `map`."""

    name: str
    of: Tree
    variable: str
    arguments: tuple[Tree, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Tree
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Tree
    right: Tree
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Tree
    then: Tree
    other: Tree
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Tree, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RecordOf:
    entries: tuple[tuple[Tree, Tree], ...]
    start: int
    end: int


Tree = Literal | Ident | Member | Index | Call | Macro | Unary | Binary | Conditional | ListOf | RecordOf


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression as read. `names` and `functions` in written order, each occurrence its own entry."""

    text: str
    tree: Tree
    names: tuple[Name, ...]
    functions: tuple[Function, ...]

    @property
    def roots(self) -> tuple[str, ...]:
        """The free variables, each once."""
        return tuple(dict.fromkeys(name.root for name in self.names))


MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
"""Words of CEL that cannot be names."""


class Arity(NamedTuple):
    """With how many arguments a function is called, plain and as a method."""

    plain: tuple[int, ...] = ()
    method: tuple[int, ...] = ()


_TIME = Arity(method=(0, 1))
FUNCTIONS: Mapping[str, Arity] = {
    "size": Arity((1,), (0,)),
    "has": Arity((1,)),
    "all": Arity((), (2,)),
    "exists": Arity((), (2,)),
    "exists_one": Arity((), (2,)),
    "filter": Arity((), (2,)),
    "map": Arity((), (2, 3)),
    "string": Arity((1,)),
    "int": Arity((1,)),
    "uint": Arity((1,)),
    "double": Arity((1,)),
    "bool": Arity((1,)),
    "bytes": Arity((1,)),
    "type": Arity((1,)),
    "dyn": Arity((1,)),
    "timestamp": Arity((1,)),
    "duration": Arity((1,)),
    "contains": Arity((), (1,)),
    "startsWith": Arity((), (1,)),
    "endsWith": Arity((), (1,)),
    "matches": Arity((2,), (1,)),
    "getDate": _TIME,
    "getDayOfMonth": _TIME,
    "getDayOfWeek": _TIME,
    "getDayOfYear": _TIME,
    "getFullYear": _TIME,
    "getMonth": _TIME,
    "getHours": _TIME,
    "getMinutes": _TIME,
    "getSeconds": _TIME,
    "getMilliseconds": _TIME,
    # Ours; see bot/runtime/cel_engine.py.
    "split": Arity((), (1, 2)),
    "join": Arity((), (0, 1)),
    "lowerAscii": Arity((), (0,)),
    "upperAscii": Arity((), (0,)),
    "trim": Arity((), (0,)),
    "replace": Arity((), (2, 3)),
    "substring": Arity((), (1, 2)),
    "charAt": Arity((), (1,)),
    "indexOf": Arity((), (1, 2)),
    "lastIndexOf": Arity((), (1, 2)),
    "reverse": Arity((), (0,)),
}
"""Every function and macro an expression may call."""

TYPE_NAMES = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
"""Names of CEL's types: `type(x) == string`. A name that the script binds comes first."""

_TOKEN = re.compile(
    r"""(?P<space>[\t\n\f\r ]+|//[^\n]*)
    |(?P<text>(?P<prefix>[rR][bB]?|[bB][rR]?)?(?P<quote>\"{3}|'{3}|"|'))
    |(?P<number>0x[0-9a-fA-F]+[uU]?|\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>&&|\|\||[=!<>]=|[-+*/%<>!?:.,(){}\[\]])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:[abfnrtv\"'\\]|[0-3][0-7]{2}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LEVELS: Mapping[str, int] = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "in": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    value: bool | int | float | str | bytes | None = None


@lru_cache(maxsize=4096)
def parse(text: str) -> Expr:
    """Reads an expression. Raises `CelSyntax` where it does not read."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise CelSyntax("an expression may be 4 KiB long; this one is longer", 0, len(text))
    parser = _Parser(text, _tokens(text))
    tree = parser.whole()
    return Expr(text, tree, tuple(sorted(parser.names, key=lambda n: n.start)), tuple(parser.functions))


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _stray(text, at)
        start, at = at, match.end()
        if match["space"] is not None:
            continue
        if match["text"] is not None:
            token = _text(text, start, match["prefix"] or "", match["quote"], at)
            at = token.end
        elif match["number"] is not None:
            token = _number(match["number"], start, at)
            if at < len(text) and (text[at].isalnum() or text[at] == "_"):
                word = re.compile(r"\w+").match(text, start)
                raise CelSyntax(
                    f"`{word[0] if word else text[start:at]}` is no number and no name",
                    start,
                    word.end() if word else at,
                )
        elif match["ident"] is not None:
            token = _Token("ident", match["ident"], start, at)
        else:
            token = _Token(match["op"], match["op"], start, at)
        tokens.append(token)
    tokens.append(_Token("end", "", len(text.rstrip()), len(text.rstrip())))
    return tokens


def _stray(text: str, at: int) -> CelSyntax:
    char = text[at]
    if char == "=" and text[at - 2 : at] in ("==", "!=") and at >= 2:
        written = text[at - 2 : at]
        return CelSyntax(f"`{written}=` is written `{written}` in an expression", at - 2, at + 1, written)
    if char == "=":
        return CelSyntax("`=` compares nothing; `==` does", at, at + 1, "==")
    if char in "&|":
        return CelSyntax(f"`{char}` stands alone; `{char * 2}` joins conditions", at, at + 1, char * 2)
    if char == "$":
        return CelSyntax("names stand in an expression without `$`", at, at + 1, "")
    if char == "`":
        return CelSyntax("a name in back quotes is not read here", at, at + 1)
    if char == ";":
        return CelSyntax("an expression is one value; `;` divides nothing", at, at + 1)
    if char in "“”„‘’«»":
        return CelSyntax(f"`{char}` opens no text; a straight quote does", at, at + 1, '"' if char in "“”„«»" else "'")
    if char.isalpha():
        while at and (text[at - 1].isalnum() or text[at - 1] == "_"):
            at -= 1
        word = re.compile(r"\w+").match(text, at)
        return CelSyntax(
            f"`{word[0] if word else char}` is no name: names are of ASCII letters, digits and `_`",
            at,
            word.end() if word else at + 1,
        )
    return CelSyntax(f"`{char}` means nothing in an expression", at, at + 1)


def _number(word: str, start: int, end: int) -> _Token:
    unsigned = word[-1] in "uU"
    digits = word[:-1] if unsigned else word
    if digits.startswith("0x"):
        value: int | float = int(digits, 16)
    elif digits.isdigit():
        value = int(digits)
    else:
        value = float(digits)
    if isinstance(value, int) and value > (2**64 - 1 if unsigned else 2**63):
        raise CelSyntax(f"`{word}` is beyond what an integer holds", start, end)
    return _Token("literal", word, start, end, value)


def _text(text: str, start: int, prefix: str, quote: str, at: int) -> _Token:
    """The string literal whose opening quote ends at `at`."""
    raw = "r" in prefix.lower()
    if raw and "b" in prefix.lower():
        raise CelSyntax(f"`{prefix}` is no prefix of a text", start, at)
    parts: list[str] = []
    while True:
        if at >= len(text):
            raise CelSyntax(f"the text that `{quote}` opens is not closed", start, len(text))
        if text.startswith(quote, at):
            break
        char = text[at]
        if char in "\r\n" and len(quote) == 1:
            raise CelSyntax(f"the text that `{quote}` opens is not closed on its line", start, at)
        if char in "\r\n" and not raw:
            raise CelSyntax("a line break inside a text is written `\\n`", at, at + 1, "\\n")
        if char != "\\":
            parts.append(char)
            at += 1
        elif raw:
            if text[at + 1 : at + 2] == quote[0]:
                raise CelSyntax("a raw text cannot hold a backslash before its quote", at, at + 2)
            parts.append(char)
            at += 1
        else:
            match = _ESCAPE.match(text, at)
            if match is None:
                raise CelSyntax(
                    f"`{text[at : at + 2]}` escapes nothing; a backslash is written `\\\\`",
                    at,
                    min(at + 2, len(text)),
                    "\\\\" + text[at + 1 : at + 2],
                )
            parts.append(_expanded(match[0], at))
            at = match.end()
    end = at + len(quote)
    body = "".join(parts)
    value: str | bytes = body.encode("utf-8", "replace") if prefix.lower() == "b" else body
    return _Token("literal", text[start:end], start, end, value)


def _expanded(escape: str, at: int) -> str:
    kind = escape[1]
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind in "xuU":
        digits = escape[2:]
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise CelSyntax(f"`{escape}` is no character", at, at + len(escape))
        return chr(code)
    return chr(int(escape[1:], 8)) if kind.isdigit() else kind


class _Parser:
    """Precedence climbing over the tokens; names and functions are gathered on the way."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.bound: list[str] = []
        self.names: list[Name] = []
        self.functions: list[Function] = []

    def peek(self) -> _Token:
        return self.tokens[self.position]

    def next(self) -> _Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def whole(self) -> Tree:
        if self.peek().kind == "end":
            raise CelSyntax("there is no expression", 0, len(self.text))
        tree = self.expression()
        if self.peek().kind != "end":
            raise self.trailing(self.peek())
        return tree

    def trailing(self, token: _Token) -> CelSyntax:
        word = {"and": "&&", "AND": "&&", "or": "||", "OR": "||", "is": "=="}.get(token.text)
        if token.kind == "ident" and word:
            return CelSyntax(f"`{token.text}` is written `{word}` in an expression", token.start, token.end, word)
        if token.kind in ")]}":
            return CelSyntax(f"`{token.text}` closes nothing", token.start, token.end)
        if token.kind in ("ident", "literal"):
            return CelSyntax(f"an operator is missing before `{_short(token.text)}`", token.start, token.end)
        return CelSyntax(f"`{token.text}` cannot stand here", token.start, token.end)

    def expect(self, kind: str, opener: _Token) -> _Token:
        token = self.peek()
        if token.kind == kind:
            return self.next()
        if token.kind == "end":
            raise CelSyntax(f"`{opener.text}` is not closed", opener.start, opener.end)
        if token.kind in (")", "]", "}"):
            raise CelSyntax(f"`{token.text}` does not close `{opener.text}`", token.start, token.end, kind)
        raise self.trailing(token)

    def expression(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CelSyntax(
                f"an expression may nest {MAX_DEPTH} levels; this one nests deeper", self.peek().start, self.peek().end
            )
        condition = self.binary(1)
        if self.peek().kind == "?":
            opener = self.next()
            if self.peek().kind == ".":
                raise CelSyntax(
                    "`?.` is not read here; `has(…) ? … : …` asks whether a key is there", opener.start, self.peek().end
                )
            then = self.expression_flat()
            if self.peek().kind != ":":
                if self.peek().kind == "end":
                    raise CelSyntax("`?` has no `:` to go with it", opener.start, opener.end)
                raise self.trailing(self.peek())
            self.next()
            other = self.expression()
            condition = Conditional(condition, then, other, condition.start, other.end)
        self.depth -= 1
        return condition

    def expression_flat(self) -> Tree:
        """Between `?` and `:` stands no bare conditional."""
        return self.binary(1)

    def binary(self, level: int) -> Tree:
        left = self.unary()
        while True:
            token = self.peek()
            mine = _LEVELS.get(token.text, 0) if token.kind not in ("literal", "end") else 0
            if mine < level:
                return left
            self.next()
            right = self.binary(mine + 1)
            left = Binary(token.text, left, right, left.start, right.end)

    def unary(self) -> Tree:
        token = self.peek()
        if token.kind not in ("!", "-"):
            return self.postfix()
        self.next()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CelSyntax(f"an expression may nest {MAX_DEPTH} levels; this one nests deeper", token.start, token.end)
        operand = self.unary()
        self.depth -= 1
        if token.kind == "-" and isinstance(operand, Literal) and type(operand.value) in (int, float):
            assert isinstance(operand.value, (int, float))
            return Literal(-operand.value, token.start, operand.end)
        return Unary(token.kind, operand, token.start, operand.end)

    def postfix(self) -> Tree:
        tree, chain = self.primary()
        while True:
            token = self.peek()
            if token.kind == ".":
                self.next()
                name = self.peek()
                if name.kind != "ident":
                    what = f"`{_short(name.text)}`" if name.text else "nothing"
                    raise CelSyntax(f"a name belongs after the dot, not {what}", token.start, name.end)
                if name.text in ("true", "false"):
                    raise CelSyntax(
                        f"`{name.text}` as a key is written `['{name.text}']`",
                        token.start,
                        name.end,
                        f"['{name.text}']",
                    )
                self.next()
                if self.peek().kind == "(":
                    chain = self.flush(chain)
                    tree = self.method(tree, name)
                else:
                    tree = Member(tree, name.text, tree.start, name.end)
                    chain = chain and self.longer(chain, name.text, name.end)
            elif token.kind == "[":
                self.next()
                index = self.expression()
                end = self.expect("]", token).end
                tree = Index(tree, index, tree.start, end)
                if chain and isinstance(index, Literal) and type(index.value) in (int, str):
                    assert isinstance(index.value, (int, str))
                    chain = self.longer(chain, index.value, end)
                else:
                    chain = self.flush(chain)
            elif token.kind == "{" and isinstance(tree, (Ident, Member)):
                raise CelSyntax("`{` cannot follow a name", token.start, token.end)
            else:
                self.flush(chain)
                return tree

    @staticmethod
    def longer(chain: Name, step: Step, end: int) -> Name:
        return Name((*chain.path, step), chain.start, end, (*chain.ends, end))

    def flush(self, chain: Name | None) -> None:
        if chain is not None:
            self.names.append(chain)

    def primary(self) -> tuple[Tree, Name | None]:
        token = self.next()
        match token.kind:
            case "literal":
                return Literal(token.value, token.start, token.end), None
            case "ident":
                return self.word(token)
            case "(":
                tree = self.expression()
                self.expect(")", token)
                return tree, None
            case "[":
                items, end = self.items("]", token)
                return ListOf(tuple(items), token.start, end), None
            case "{":
                return self.record(token), None
            case "end":
                raise CelSyntax("the expression breaks off", max(token.start - 1, 0), token.end)
            case ")" | "]" | "}":
                raise CelSyntax(f"a value is missing before `{token.text}`", token.start, token.end)
            case _:
                if self.position > 1 and token.kind == ">" and self.tokens[self.position - 2].kind == "=":
                    raise CelSyntax("`=>` is read nowhere here", token.start, token.end)
                raise CelSyntax(f"a value belongs here, not `{token.text}`", token.start, token.end)

    def word(self, token: _Token) -> tuple[Tree, Name | None]:
        if token.text in ("true", "false"):
            return Literal(token.text == "true", token.start, token.end), None
        if token.text == "null":
            return Literal(None, token.start, token.end), None
        if token.text == "not" and self.peek().kind in ("ident", "(", "literal"):
            raise CelSyntax("`not` is written `!` in an expression", token.start, self.peek().start, "!")
        if token.text in ("True", "False", "None") and token.text not in self.bound:
            plain = "null" if token.text == "None" else token.text.lower()
            raise CelSyntax(f"`{token.text}` is written `{plain}` in an expression", token.start, token.end, plain)
        if token.text in RESERVED:
            raise CelSyntax(
                f"`{token.text}` is a word of the expression language, so it is no name", token.start, token.end
            )
        if self.peek().kind == "(":
            return self.call(token), None
        tree = Ident(token.text, token.start, token.end)
        if token.text in self.bound:
            return tree, None
        return tree, Name((token.text,), token.start, token.end, (token.end,))

    def items(self, closer: str, opener: _Token) -> tuple[list[Tree], int]:
        items: list[Tree] = []
        if self.peek().kind == closer:
            return items, self.next().end
        while True:
            items.append(self.expression())
            if self.peek().kind != ",":
                return items, self.expect(closer, opener).end
            comma = self.next()
            if self.peek().kind == closer:
                raise CelSyntax(f"`,` has nothing after it but `{closer}`", comma.start, comma.end, "")

    def record(self, opener: _Token) -> Tree:
        entries: list[tuple[Tree, Tree]] = []
        if self.peek().kind == "}":
            return RecordOf((), opener.start, self.next().end)
        while True:
            key = self.expression()
            if self.peek().kind != ":":
                if self.peek().kind == "}" and isinstance(key, (Ident, Member)) and not entries:
                    end = self.peek().end
                    raise CelSyntax(
                        "names stand in an expression without braces", opener.start, end, self.text[key.start : key.end]
                    )
                if self.peek().kind == "end":
                    raise CelSyntax("`{` is not closed", opener.start, opener.end)
                raise CelSyntax("a key and its value are divided by `:`", key.start, key.end)
            self.next()
            entries.append((key, self.expression()))
            if self.peek().kind != ",":
                end = self.expect("}", opener).end
                return RecordOf(tuple(entries), opener.start, end)
            comma = self.next()
            if self.peek().kind == "}":
                raise CelSyntax("`,` has nothing after it but `}`", comma.start, comma.end, "")

    def call(self, name: _Token) -> Tree:
        opener = self.next()
        before = len(self.names)
        arguments, end = self.items(")", opener)
        self.functions.append(Function(name.text, name.start, name.end, False, len(arguments)))
        if name.text == "has" and len(arguments) == 1:
            argument = arguments[0]
            if not isinstance(argument, Member):
                raise CelSyntax("`has` asks for a key, as in `has(a.b)`", name.start, end)
            for at in range(before, len(self.names)):
                if self.names[at].start == argument.start and self.names[at].end == argument.end:
                    self.names[at] = self.names[at]._replace(tested=True)
        return Call(name.text, None, tuple(arguments), name.start, end)

    def method(self, of: Tree, name: _Token) -> Tree:
        opener = self.next()
        if name.text not in MACROS:
            arguments, end = self.items(")", opener)
            self.functions.append(Function(name.text, name.start, name.end, True, len(arguments)))
            return Call(name.text, of, tuple(arguments), of.start, end)
        variable = self.peek()
        if variable.kind != "ident" or variable.text in RESERVED or self.tokens[self.position + 1].kind != ",":
            raise CelSyntax(
                f"`{name.text}` takes a name for the element and what to do with it, as in "
                f"`{name.text}(x, {'x.name' if name.text == 'map' else 'x > 1'})`",
                name.start,
                variable.end if variable.kind != "end" else opener.end,
            )
        self.position += 2
        self.bound.append(variable.text)
        arguments, end = self.items(")", opener)
        self.bound.pop()
        if len(arguments) + 1 not in FUNCTIONS[name.text].method:
            raise CelSyntax(f"`{name.text}` takes a name and one expression", name.start, end)
        self.functions.append(Function(name.text, name.start, name.end, True, len(arguments) + 1))
        return Macro(name.text, of, variable.text, tuple(arguments), of.start, end)


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"
