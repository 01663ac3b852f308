"""The syntax tree that both surfaces are read into: JSON-like nodes, each with its place in the text.

Offsets count characters of `Source.text` (the mended text); `Source` turns them into lines and columns of the
text as pasted. A text node's `value` is in the JSON surface's form (`$name`, `${path}`, `$$`), whatever surface
it stood on; `offsets[i]` is where the i-th character of `value` stands, `offsets[len(value)]` where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

NodeKind = Literal["object", "array", "text", "number", "bool", "null"]


@dataclass(slots=True, kw_only=True)
class Member:
    """A key of an object with its place, and its value."""

    key: str
    start: int
    end: int
    value: Node


@dataclass(slots=True, kw_only=True)
class Node:
    kind: NodeKind
    start: int
    end: int
    value: Any = None
    """Of a scalar; objects and arrays give theirs by `plain`."""
    members: dict[str, Member] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    offsets: Sequence[int] | None = None
    markdown: bool = False
    """It stood on the markdown surface (`{path}` rather than `$path`): how a mend must be written."""

    def plain(self) -> Any:
        """The value as plain data."""
        if self.kind == "object":
            return {key: member.value.plain() for key, member in self.members.items()}
        if self.kind == "array":
            return [item.plain() for item in self.items]
        return self.value

    def offset(self, index: int) -> int:
        """Where the character at `index` of a text's value stands in the source."""
        if self.offsets is None:
            return min(self.start + index, self.end)
        return self.offsets[min(index, len(self.offsets) - 1)]


@dataclass(slots=True, kw_only=True)
class Placed:
    """An op of the plan, back to its places in the text.

    `name`: the word that names the op (in markdown the command). `ident`: the words of its id, if it has one.
    `fields`: every field and parameter by its name (`question`, `to`, `within`, `after`, `be` …), built-in ops'
    parameters flattened; of a tool or `run`, its parameters stand under `params` as one object node.
    `start`, `end`: the whole op, regions included.
    """

    place: str
    start: int
    end: int
    name: tuple[int, int]
    ident: tuple[int, int] | None = None
    fields: Mapping[str, Node] = field(default_factory=dict)
