"""The ops of a process, as its tools become others."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

from bot.domain.catalog import OpSpec
from bot.ops.builtin import catalog
from bot.runtime.tools import Tools, tool_spec


class LiveOps(Mapping[str, OpSpec]):
    """The ops of a process, by name: all of them at one moment, others at the next, when a server lists other tools.

    A plan that was checked may name a tool that has gone since: such a name is looked up as a tool that takes
    anything (and fails when it is called), and is not found by whoever asks whether it is there."""

    def __init__(self, tools: Tools) -> None:
        self._ops: Mapping[str, OpSpec] = {}
        self.renew(tools)

    def renew(self, tools: Tools) -> None:
        self._ops = catalog(tools.specs).ops  # put in place of the old ones at once: other threads read them

    def __getitem__(self, name: str) -> OpSpec:
        known = self._ops.get(name)
        return known if known is not None else catalog([tool_spec(name)]).ops[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._ops.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._ops

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def items(self) -> ItemsView[str, OpSpec]:
        return self._ops.items()

    def values(self) -> ValuesView[OpSpec]:
        return self._ops.values()
