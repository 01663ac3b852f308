"""The language reference as text: what agents that write scripts are given, and what any other reader is."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from bot.domain.catalog import Catalog


@lru_cache(maxsize=1)
def language() -> str:
    """The guide's page on the language: in an installed package beside this module, else where the guide is."""
    packaged = files("bot.agents").joinpath("language.md")
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")


def commands(catalog: Catalog) -> str:
    """Every built-in op as it is written, with what it does."""
    lines = [f"- `{op.name}`: `{op.shape}`. {op.summary}" for op in catalog.ops.values() if not op.tool]
    return "\n".join(lines)
