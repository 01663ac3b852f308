"""The built-in ops with what they do, joined: what every workspace has before its tools."""

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.catalog import Catalog, OpSpec
from bot.ops.specs import SPECS
from bot.ops.steps import STEPS, TOOL

BUILTIN: tuple[OpSpec, ...] = tuple(replace(spec, step=STEPS[spec.name]) for spec in SPECS)


def catalog(tools: Iterable[OpSpec] = ()) -> Catalog:
    """The built-in ops and these tools, by name."""
    return Catalog(ops={spec.name: spec for spec in (*BUILTIN, *(replace(tool, step=TOOL) for tool in tools))})
