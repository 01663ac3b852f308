"""Whole scripts to begin with, each with a scenario to rehearse it by; they are for the example workspace."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("ask", "approval", "evidence", "form", "release", "onboarding", "weekly", "function", "booking", "fanout")
"""In the order of a first acquaintance."""
NEEDS = {"booking": "line", "fanout": "agents"}
"""What some need of a workspace: a channel that is on, or an agent."""


def script(name: str) -> str | None:
    """An example's text; None where there is none of this name."""
    return (HERE / f"{name}.md").read_text("utf-8") if name in NAMES else None


def scenario(name: str) -> str:
    """The scenario that an example is rehearsed with."""
    return (HERE / f"{name}.yaml").read_text("utf-8")


def title(name: str) -> str:
    """An example in a line: its heading."""
    text = script(name) or ""
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))
