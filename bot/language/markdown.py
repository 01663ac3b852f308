"""The markdown surface's reader: lines to items, items to the op nodes that the JSON surface would give.

CommonMark's list rules do not apply: nesting is by the column of the marker, quotes belong to the item above.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.domain.catalog import Catalog, OpSpec
from bot.language import arguments, frontmatter, json5, words
from bot.language.items import IDENT, Item, every, lay_out, op_name, reads_as_command, rests
from bot.language.lower import COMMANDS, LEVELS, OPS, command
from bot.language.problems import Fix, Note, Problem, did_you_mean, nearest
from bot.language.tree import Member, Node

_WORD = re.compile(r"\S+")
DEEPEST = 2 * LEVELS + 4


@dataclass(slots=True)
class Surface:
    """`roots` as `lower` takes them; `wounded`: `id`s of op nodes whose arguments are reported already."""

    roots: list[Node]
    problems: list[Problem]
    notes: list[Note]
    wounded: set[int]


@dataclass(slots=True)
class _Reader:
    text: str
    catalog: Catalog
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    wounded: set[int] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    top: list[Item] = field(default_factory=list)
    deep: bool = False
    ops: int = 0

    def problem(
        self, start: int, end: int, code: str, message: str, mend: str | None = None, fix: Fix | None = None
    ) -> None:
        self.problems.append(Problem(start=start, end=end, code=code, message=message, mend=mend, fix=fix))


def is_json(text: str) -> bool:
    """Whether a mended text is on the JSON surface: it begins as an object or as a list of something."""
    begins = re.match(r"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*([\[{])", text)
    if begins is None:
        return False
    return re.match(r"""\{|\[\s*(?:[\[{\]/"'“„«]|\Z)""", text[begins.start(1) :]) is not None


def is_markdown(text: str, catalog: Catalog) -> bool:
    """Whether a mended text is a markdown script: front matter, or an item that reads as a command."""
    return frontmatter.split(text) > 0 or any(reads_as_command(rest, catalog) for rest in rests(text))


def read(text: str, catalog: Catalog) -> Surface:
    """The op nodes of a script, as one array, or as one object where front matter or a last `error` stands."""
    reader = _Reader(text, catalog)
    body = frontmatter.split(text)
    members = frontmatter.read(text, reader.problems) if body else {}
    if (inputs := members.get("inputs")) is not None:
        reader.known.update(inputs.value.members)
    layout = lay_out(text, body, catalog)
    reader.problems.extend(layout.problems)
    reader.notes.extend(layout.notes)
    reader.top = layout.top
    items = every(reader.top)
    if not any(reads_as_command(text[item.at : item.end], catalog) for item in items):
        if not reader.problems:
            _no_command(reader, items)
        return Surface([], reader.problems, reader.notes, reader.wounded)
    if reader.top and _head(reader, reader.top[-1]) == "error":
        _program_error(reader, reader.top.pop(), members)
    nodes = _region(reader, reader.top, 1)
    program = _array(nodes, reader.top, body)
    if not members:
        return Surface([program], reader.problems, reader.notes, reader.wounded)
    members["program"] = Member(key="program", start=program.start, end=program.end, value=program)
    root = Node(kind="object", start=0, end=len(text), members=members, markdown=True)
    return Surface([root], reader.problems, reader.notes, reader.wounded)


def _no_command(reader: _Reader, items: list[Item]) -> None:
    start = items[0].at if items else len(reader.text) - len(reader.text.lstrip())
    line_end = reader.text.find("\n", start)
    end = items[0].end if items else len(reader.text) if line_end < 0 else line_end
    word = _WORD.match(reader.text, start, end) if items else None
    commands = [*(command(op) for op in reader.catalog.ops), "else", "branch", "miss", "error"]
    near = nearest(word[0], commands) if word else []
    if word and near:
        fix = Fix(start=word.start(), end=word.end(), text=near[0]) if len(near) == 1 else None
        message = f"no command is called `{word[0]}`"
        reader.problem(word.start(), word.end(), "unknown-op", message, did_you_mean(near), fix)
        return
    mend = "a command is an item such as `- files = glob src/*.py`"
    if reader.text.count("```") > 2:
        mend = "a script stands in one fence, or in none"
    reader.problem(start, max(end, start + 1), "no-command", "there is no command in this text", mend)


def _program_error(reader: _Reader, item: Item, members: dict[str, Member]) -> None:
    _bare(reader, item, "error")
    nodes = _region(reader, item.children, 1)
    word_end = item.at + len("error")
    array = _array(nodes, item.children, item.at)
    members["onError"] = Member(key="onError", start=item.at, end=word_end, value=array)


def _array(nodes: list[Node], items: Sequence[Item], start: int) -> Node:
    begin = items[0].start if items else start
    return Node(kind="array", start=begin, end=max([begin, *(node.end for node in nodes)]), items=nodes, markdown=True)


def _text(reader: _Reader, item: Item) -> tuple[int, int]:
    """An item's text without the backticks around it."""
    text, start, end = reader.text, item.at, item.end
    if end - start > 1 and text[start] == "`" and text[end - 1] == "`":
        while end - start > 1 and text[start] == "`" and text[end - 1] == "`":
            start, end = start + 1, end - 1
        start, end = words.skip(text, start, end), start + len(text[start:end].rstrip())
    return start, max(start, end)


def _head(reader: _Reader, item: Item) -> str:
    """The first word of an item, unless it is a name that the item binds."""
    start, end = _text(reader, item)
    word = None if IDENT.match(reader.text, start, end) else _WORD.match(reader.text, start, end)
    return word[0] if word else ""


def _bare(reader: _Reader, item: Item, word: str) -> None:
    """Nothing may stand behind a structural word."""
    start, end = _text(reader, item)
    after = words.skip(reader.text, start + len(word), end)
    if after < end:
        said = reader.text[after:end]
        reader.problem(after, end, "too-many-words", f"`{word}` takes no words; here stands `{said[:60]}`")
    _no_quotes(reader, item, word)


def _no_quotes(reader: _Reader, item: Item, name: str, mend: str | None = None) -> None:
    if item.quotes:
        start, end = item.quotes[0][0]
        at = reader.text.rfind(">", 0, start)
        reader.problem(max(at, 0), end, "quote-astray", f"`{name}` takes no quote", mend)


def _region(reader: _Reader, items: list[Item], depth: int) -> list[Node]:
    """The op nodes of a list of items; `else` joins the `if` above it."""
    nodes: list[Node] = []
    if depth > DEEPEST:
        if not reader.deep:
            start = items[0].at
            reader.problem(start, items[0].end, "limit-levels", f"regions nest more than {LEVELS} deep here")
        reader.deep = True
        return nodes
    branching: Node | None = None
    for item in items:
        head = _head(reader, item)
        if head == "else":
            branching = _else(reader, item, branching, depth)
            continue
        if head in ("miss", "error", "branch"):
            _astray(reader, item, head)
            _region(reader, item.children, depth + 1)
            continue
        node = _op(reader, item, depth)
        nodes.append(node)
        op = node.members["op"].value.value
        branching = node if op == "core.if" or reader.catalog.get(op) is None else None
    return nodes


def _astray(reader: _Reader, item: Item, head: str) -> None:
    start, _ = _text(reader, item)
    messages = {
        "miss": "`miss` stands below no command that waits",
        "error": "`error` stands below no command, and is not the script's last item",
        "branch": "`branch` stands below no `parallel`",
    }
    mend = "indent it below the command that it belongs to" if head != "branch" else "indent it below `- parallel`"
    reader.problem(start, start + len(head), f"{head}-astray", messages[head], mend)


def _else(reader: _Reader, item: Item, branching: Node | None, depth: int) -> Node | None:
    start, end = _text(reader, item)
    behind = words.skip(reader.text, start + 4, end)
    nested = re.match(r"if(?=\s|\Z)", reader.text[behind:end])
    inner: list[Node]
    if nested:
        node = _op(reader, Item(item.column, item.start, behind, end, item.children, item.quotes, item.fences), depth)
        inner = [node]
    else:
        _bare(reader, item, "else")
        others, errors = _split(reader, item, ("error", "miss"))
        for extra in errors:
            _astray(reader, extra, _head(reader, extra))
        node, inner = None, _region(reader, others, depth + 1)
    if branching is None or "else" in branching.members:
        message = "`else` has no `if` above it" if branching is None else "this `if` has an `else` already"
        reader.problem(start, start + 4, "else-without-if", message, "put it directly below the items of an `if`")
        return node
    array = _array(inner, item.children if node is None else [item], start)
    branching.members["else"] = Member(key="else", start=start, end=start + 4, value=array)
    return node if node is not None else branching


def _split(reader: _Reader, item: Item, heads: Sequence[str]) -> tuple[list[Item], list[Item]]:
    """The items below `item`: those that are its regions' content, and those that begin with one of `heads`."""
    own = [child for child in item.children if _head(reader, child) not in heads]
    return own, [child for child in item.children if _head(reader, child) in heads]


def _op(reader: _Reader, item: Item, depth: int) -> Node:
    text = reader.text
    start, end = _text(reader, item)
    node = Node(kind="object", start=start, end=item.last, markdown=True)
    reader.ops += 1
    if reader.ops > OPS:  # it is refused as a whole: what its rest says is read no further
        reader.wounded.add(id(node))
        value = Node(kind="text", start=start, end=end, value="core.let", markdown=True)
        node.members["op"] = Member(key="op", start=start, end=end, value=value)
        return node
    ident = IDENT.match(text, start, end)
    if ident is not None:
        name_start, name_end = ident.span("name")
        value = Node(kind="text", start=name_start, end=name_end, value=ident["name"], markdown=True)
        node.members["id"] = Member(key="id", start=name_start, end=name_end, value=value)
    word = _WORD.match(text, ident.end() if ident else start, end)
    if word is None:
        at = ident.start() if ident else start
        reader.problem(at, end, "command-missing", f"no command stands behind `{text[at:end]}`")
        value = Node(kind="text", start=at, end=end, value="core.let", markdown=True)
        node.members["op"] = Member(key="op", start=at, end=end, value=value)
        reader.wounded.add(id(node))
        return node
    op = COMMANDS.get(word[0], word[0])
    spec = reader.catalog.get(op)
    value = Node(kind="text", start=word.start(), end=word.end(), value=op if spec else word[0], markdown=True)
    node.members["op"] = Member(key="op", start=word.start(), end=word.end(), value=value)
    if spec is None and _hinted(reader, item, node, ident, word, end):
        return node
    given = arguments.read(
        text, word.end(), end, spec, word[0], reader.known, reader.problems, quoted=bool(item.quotes)
    )
    _quotes(reader, item, spec, given)
    for fence in item.fences:
        _parameters(reader, fence, given)
    if given.wounded:
        reader.wounded.add(id(node))
    node.members.update(given.members)
    _own_params(node, spec, given, word)
    if ident is not None:
        reader.known.add(ident["name"])
    _below(reader, item, node, spec, word[0], depth)
    return node


def _hinted(
    reader: _Reader, item: Item, node: Node, ident: re.Match[str] | None, word: re.Match[str], end: int
) -> bool:
    """An unknown command whose likely meaning is plain: `files glob x` lost its `=`, `x = 5` its `let`."""
    text, start, said = reader.text, word.start(), word[0]
    following = _WORD.match(text, words.skip(text, word.end(), end), end)
    colon = said.removesuffix(":")
    if (
        ident is None
        and following is not None
        and re.fullmatch(r"[A-Za-z_]\w*", colon)
        and op_name(following[0], reader.catalog)
    ):
        rest = text[following.start() : end]
        fix = Fix(start=start, end=following.start(), text=f"{colon} = ")
        message = f"no command is called `{said}`"
        reader.problem(start, word.end(), "unknown-op", message, f"write `{colon} = {rest[:60]}`", fix)
    elif ident is not None and not re.match(r"[A-Za-z_][\w.]*\Z", said):
        fix = Fix(start=start, end=start, text="let ")
        message = f"`{said[:40]}` is no command"
        reader.problem(start, word.end(), "unknown-op", message, f"write `let {text[start:end][:60]}`", fix)
    else:
        return False
    node.members["op"].value.value = "core.let"
    reader.wounded.add(id(node))
    name = ident["name"] if ident else colon
    reader.known.add(name)
    if ident is None:
        value = Node(kind="text", start=start, end=word.end(), value=colon, markdown=True)
        node.members["id"] = Member(key="id", start=start, end=word.end(), value=value)
    _region(reader, item.children, 2)
    return True


def _own_params(node: Node, spec: OpSpec | None, given: arguments.Arguments, word: re.Match[str]) -> None:
    """A tool's parameters, and the inputs of a `run`, as an object of their own."""
    if not given.params:
        return
    start = min(member.start for member in given.params.values())
    end = max(member.value.end for member in given.params.values())
    value = Node(kind="object", start=start, end=end, members=given.params, markdown=True)
    key = "inputs" if spec is not None and spec.name == "run" else "params"
    node.members[key] = Member(key=key, start=word.start(), end=word.end(), value=value)


def _quotes(reader: _Reader, item: Item, spec: OpSpec | None, given: arguments.Arguments) -> None:
    if not item.quotes or spec is None:
        return
    if spec.quote is None:
        mend = 'give it as `key: "…"`' if spec.tool else None
        _no_quotes(reader, item, given.name, mend)
        return
    said: list[str] = []
    places: list[int] = []
    for block in item.quotes:
        if said:
            said.append("\n\n")
            places.extend([places[-1] + 1] * 2)
        for number, (start, end) in enumerate(block):
            if number:
                said.append("\n")
                places.append(start - 1)
            said.append(reader.text[start:end])
            places.extend(range(start, end))
    begin, finish = item.quotes[0][0][0], item.quotes[-1][-1][1]
    node = words.text_node("".join(said), [*places, finish], begin, finish)
    arguments.put(given, spec.quote, begin, finish, node)


def _parameters(reader: _Reader, fence: tuple[int, int], given: arguments.Arguments) -> None:
    """A fenced JSON block: the op's remaining parameters."""
    parsed = json5.read(reader.text, *fence, words=True)
    reader.problems.extend(parsed.problems)
    given.wounded = given.wounded or bool(parsed.problems)
    for root in parsed.roots:
        if root.kind != "object" or len(parsed.roots) > 1:
            start = parsed.roots[0].start
            reader.problem(
                start, start + 1, "fence-shape", "a block below a command gives its parameters as one object"
            )
            return
        inner = root.members.get("params") if arguments.holds_own(given.spec) else None
        inner = inner if inner is not None and inner.value.kind == "object" else None
        for key, member in inner.value.members.items() if inner is not None else ():
            given.params[key] = member
        for key, member in root.members.items():
            if member is not inner:
                arguments.put(given, key, member.start, member.end, member.value, keyword=inner is not None)


def _below(reader: _Reader, item: Item, node: Node, spec: OpSpec | None, name: str, depth: int) -> None:
    """The items below a command: its regions, its `miss`, its `error`."""
    own, special = _split(reader, item, ("miss", "error"))
    for child in special:
        _special(reader, child, node, spec, name, depth)
    if spec is not None and "branches" in spec.regions:
        _branches(reader, item, own, node, depth)
    elif own:
        if spec is None:  # a misspelt `parallel` is what is told
            own = [below for one in own for below in (one.children if _head(reader, one) == "branch" else [one])]
        nodes = _region(reader, own, depth + 1)
        key = "then" if spec is None else next((r for r in spec.regions if r in ("then", "body")), None)
        if key is None:
            start, end = own[0].at, own[0].end
            mend = "move it left, or put it below an `if`, `map`, `repeat`, `branch`, `miss` or `error`"
            reader.problem(start, end, "nested-astray", f"`{name}` holds no commands, but this stands below it", mend)
            return
        array = _array(nodes, own, node.start)
        node.members[key] = Member(key=key, start=array.start, end=array.end, value=array)
    node.end = max([node.end, *(child.last for child in every(item.children))])


def _special(reader: _Reader, child: Item, node: Node, spec: OpSpec | None, name: str, depth: int) -> None:
    start, end = _text(reader, child)
    head = _head(reader, child)
    key = "onMiss" if head == "miss" else "onError"
    if spec is not None and key not in spec.fields:
        message = f"`{name}` never waits, so it cannot miss" if head == "miss" else f"`{name}` takes no `error`"
        reader.problem(start, start + len(head), f"{head}-astray", message, "put it below what it is meant for")
        _region(reader, child.children, depth + 1)
        return
    if key in node.members:
        reader.problem(
            start, start + len(head), "parameter-twice", f"`{name}` has its `{head}` twice", "keep one of the two"
        )
        _region(reader, child.children, depth + 1)
        return
    after = words.skip(reader.text, start + len(head), end)
    if head == "miss" and reader.text[after:end] == "replan":
        value = Node(kind="text", start=after, end=end, value="replan", markdown=True)
        _no_quotes(reader, child, "miss replan")
        for below in child.children[:1]:
            reader.problem(
                below.at, below.end, "nested-astray", "`miss replan` holds no commands, but this stands below it"
            )
    else:
        near = nearest(reader.text[after:end], ["replan"]) if head == "miss" and after < end else []
        if near:
            fix = Fix(start=after, end=end, text="replan")
            reader.problem(
                after,
                end,
                "too-many-words",
                f"`miss` takes no `{reader.text[after:end]}`",
                "did you mean `replan`?",
                fix,
            )
        else:
            _bare(reader, child, head)
        if not child.children and after >= end:
            reader.problem(
                start,
                start + len(head),
                "region-missing",
                f"no commands stand below `{head}`",
                "indent what belongs to it by two",
            )
        value = _array(_region(reader, child.children, depth + 1), child.children, start)
    node.members[key] = Member(key=key, start=start, end=start + len(head), value=value)


def _branches(reader: _Reader, item: Item, own: list[Item], node: Node, depth: int) -> None:
    named: dict[str, Member] = {}
    listed: list[Node] = []
    for child in own:
        start, end = _text(reader, child)
        if _head(reader, child) != "branch":
            reader.problem(
                child.at,
                child.end,
                "nested-astray",
                "below `parallel` stand only branches, and this is none",
                "write `- branch NAME` and indent this below it",
            )
            _region(reader, [child], depth + 1)
            reader.wounded.add(id(node))
            continue
        _no_quotes(reader, child, "branch")
        _branch(reader, child, start, end, named, listed, depth)
    if not own:
        return
    if named and listed:
        reader.problem(
            own[0].at,
            own[0].end,
            "branch-names",
            "some of these branches have names and some have none",
            "name all of them, or none",
        )
    kind: Literal["object", "array"] = "object" if named else "array"
    end = max(child.last for child in every(own))
    value = Node(kind=kind, start=own[0].start, end=end, members=named, items=listed, markdown=True)
    if named or listed:
        node.members["branches"] = Member(key="branches", start=own[0].start, end=end, value=value)


def _branch(
    reader: _Reader, child: Item, start: int, end: int, named: dict[str, Member], listed: list[Node], depth: int
) -> None:
    name = words.next_word(reader.text, start + len("branch"), end)
    children, special = _split(reader, child, ("miss", "error"))
    for extra in special:
        _astray(reader, extra, _head(reader, extra))
    array = _array(_region(reader, children, depth + 1), children, start)
    if name is None:
        listed.append(array)
        return
    if words.skip(reader.text, name.end, end) < end:
        said = reader.text[name.start : end]
        reader.problem(name.start, end, "too-many-words", f"a branch has one word as its name, not `{said[:60]}`")
    if name.value in named:
        reader.problem(
            name.start, name.end, "key-twice", f"two branches are called `{name.value}`", "name one differently"
        )
        return
    named[name.value] = Member(key=name.value, start=name.start, end=name.end, value=array)
