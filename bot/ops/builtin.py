"""The built-in ops, joined: what every workspace has before its tools."""

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.catalog import Catalog, OpSpec
from bot.ops.agents import AGENTS
from bot.ops.core import CORE
from bot.ops.files import FILES
from bot.ops.people import PEOPLE
from bot.ops.steps import STEPS, TOOL
from bot.ops.world import WORLD

BUILTIN: tuple[OpSpec, ...] = tuple(
    replace(spec, step=STEPS[spec.name]) for spec in (*CORE, *PEOPLE, *WORLD, *FILES, *AGENTS)
)


def catalog(tools: Iterable[OpSpec] = ()) -> Catalog:
    """The built-in ops and these tools, by name."""
    return Catalog(ops={spec.name: spec for spec in (*BUILTIN, *(replace(tool, step=TOOL) for tool in tools))})
