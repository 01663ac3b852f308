"""The YAML of front matter to nodes with places."""

from __future__ import annotations

from typing import Any

import yaml

from bot.language.frontmatter import FRONT, LIMIT
from bot.language.problems import Problem
from bot.language.tree import Member, Node
from bot.language.yamlcore import Core


def read(text: str, problems: list[Problem]) -> dict[str, Member]:
    """The members of the front matter that `text` begins with."""
    found = FRONT.match(text)
    if found is None or found["body"] is None:
        return {}
    start = found.start("body")
    body = found["body"]
    if len(body) > LIMIT:
        problems.append(_problem(start, start + 1, f"front matter may have {LIMIT // 1024} KiB"))
        return {}
    try:
        root = yaml.compose(body, Loader=Core)
        return _mapping(root, start, problems).members if root is not None else {}
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        at = start + min(mark.index if mark else 0, max(0, len(body) - 1))
        at, said, mend = _in_words(fault, start, body, at)
        problems.append(_problem(at, at + 1, f"the front matter cannot be read: {said}", mend))
    except (yaml.YAMLError, RecursionError, ValueError):
        problems.append(_problem(start, start + 1, "the front matter cannot be read as YAML"))
    return {}


def _mapping(root: Any, base: int, problems: list[Problem]) -> Node:
    if not isinstance(root, yaml.MappingNode):
        problems.append(_problem(base, base + 1, "front matter holds `key: value` lines"))
        return Node(kind="object", start=base, end=base)
    return _node(root, base, problems, set())


def _node(node: Any, base: int, problems: list[Problem], seen: set[int]) -> Node:
    start, end = base + node.start_mark.index, base + node.end_mark.index
    if id(node) in seen:
        problems.append(_problem(start, end, "`&` and `*` of YAML are not read here"))
        return Node(kind="null", start=start, end=end)
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        items = [_node(item, base, problems, seen) for item in node.value]
        return Node(kind="array", start=start, end=end, items=items)
    if isinstance(node, yaml.MappingNode):
        made = Node(kind="object", start=start, end=end)
        for key, value in node.value:
            _member(made, key, value, base, problems, seen)
        return made
    return _scalar(node, start, end)


def _member(made: Node, key: Any, value: Any, base: int, problems: list[Problem], seen: set[int]) -> None:
    start, end = base + key.start_mark.index, base + key.end_mark.index
    name = key.value if isinstance(key.value, str) else ""
    if not isinstance(key, yaml.ScalarNode):
        problems.append(_problem(start, end, "a key is a word"))
        return
    if name in made.members:
        first = made.members[name]
        problems.append(
            Problem(
                start=start,
                end=end,
                code="key-twice",
                message=f"`{name}` stands twice in one object",
                mend="keep one of the two",
                also=((first.start, first.end, "first here"),),
            )
        )
        return
    made.members[name] = Member(key=name, start=start, end=end, value=_node(value, base, problems, seen))


def _scalar(node: Any, start: int, end: int) -> Node:
    kind = node.tag.rpartition(":")[2]
    said: str = node.value
    if kind == "bool":
        return Node(kind="bool", start=start, end=end, value=said.lower() == "true")
    if kind == "null":
        return Node(kind="null", start=start, end=max(end, start))
    if kind in ("int", "float"):
        value = int(said, 0) if said[:2] in ("0o", "0x") else float(said) if kind == "float" else int(said)
        if value in (float("inf"), float("-inf")):
            return Node(kind="text", start=start, end=end, value=said)
        return Node(kind="number", start=start, end=end, value=int(value) if value == int(value) else value)
    quoted = 1 if node.style in ("'", '"') else 0
    return Node(kind="text", start=start, end=end, value=said, offsets=_offsets(said, start + quoted, end))


def _offsets(said: str, start: int, end: int) -> list[int]:
    return [min(start + k, max(start, end)) for k in range(len(said) + 1)]


_WORDS: tuple[tuple[str, str, str | None], ...] = (
    ("while parsing a flow sequence", "this `[` is never closed", "close it with `]`"),
    ("while parsing a flow mapping", "this `{` is never closed", "close it with `}`"),
    ("while scanning a quoted scalar", "this quote is never closed", "close it on its line"),
    ("while scanning a simple key", "this line has no `:` behind its key", "write it as `key: value`"),
    ("mapping values are not allowed", "a `:` stands inside a value here", "put the value in quotes"),
    ("'\\t' that cannot start", "a tab stands here", "indent with blanks"),
    ("cannot start any token", "no value begins with this character", "put the value in quotes"),
    ("but found '<block mapping start>'", "this line is indented otherwise than those around it", "align it with them"),
    ("expected <block end>", "this does not go on what stands above it", "align it, or put the value in quotes"),
    ("undefined alias", "`&` and `*` of YAML are not read here", "put the value in quotes"),
    ("alias", "`&` and `*` of YAML are not read here", "put the value in quotes"),
    ("anchor", "`&` and `*` of YAML are not read here", "put the value in quotes"),
    ("tag", "`!` of YAML is not read here", "put the value in quotes"),
    ("escape", "`\\` in double quotes begins an escape that is not known", "use single quotes"),
    ("unacceptable character", "a character stands here that cannot be shown", "take it out"),
)
"""What PyYAML says of a fault, in its context or its problem, and our words for it."""
_OPENED = ("while parsing a flow", "while scanning a quoted scalar")


def _in_words(fault: Any, start: int, body: str, at: int) -> tuple[int, str, str | None]:
    """Where a fault of the YAML is, what it is, and the mend."""
    context, problem = str(fault.context or ""), str(fault.problem or "")
    opener = start + fault.context_mark.index if fault.context_mark is not None else at
    if problem.startswith("expected the node content") and (found := _unclosed(body[: at - start + 1])) is not None:
        opener, context = start + found, f"while parsing a flow {'sequence' if body[found] == '[' else 'mapping'}"
    if context.startswith("while parsing a flow") and _unclosed(body) is None:
        bracket = "]" if "sequence" in context else "}"
        return at, f"`,` or `{bracket}` is missing before this", None
    for said, ours, mend in _WORDS:
        if said in context or said in problem:
            return (
                (opener if context.startswith(_OPENED) or said.startswith("while scanning a simple") else at),
                ours,
                mend,
            )
    return at, "this is no `key: value`", "put the value in quotes"


def _unclosed(body: str) -> int | None:
    """The innermost bracket that is open at the end of `body`."""
    opened: list[int] = []
    for at, char in enumerate(body):
        if char in "[{":
            opened.append(at)
        elif char in "]}" and opened:
            opened.pop()
    return opened[-1] if opened else None


def _problem(start: int, end: int, message: str, mend: str | None = None) -> Problem:
    return Problem(start=start, end=max(end, start + 1), code="front-matter", message=message, mend=mend)
