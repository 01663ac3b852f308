"""The built-in ops as the language sees them, joined: what a check needs. What they do is joined in builtin.py."""

from collections.abc import Iterable

from bot.domain.catalog import Catalog, OpSpec
from bot.ops.agents import AGENTS
from bot.ops.core import CORE
from bot.ops.files import FILES
from bot.ops.people import PEOPLE
from bot.ops.world import WORLD

SPECS: tuple[OpSpec, ...] = (*CORE, *PEOPLE, *WORLD, *FILES, *AGENTS)


def catalog(tools: Iterable[OpSpec] = ()) -> Catalog:
    """The ops and these tools by name, without what they do: for reading and checking, not for running."""
    return Catalog(ops={spec.name: spec for spec in (*SPECS, *tools)})
