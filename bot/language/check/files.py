"""Literal paths that lead out of the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.language.check.context import Checking, problem
from bot.language.problems import Problem
from bot.language.refs import has_refs


def check(c: Checking) -> Iterator[Problem]:
    for place, op, _ in c.ops():
        path = op.params.get("path")
        if op.op not in ("read", "save") or not isinstance(path, str) or has_refs(path):
            continue
        if leads_out(path):
            yield problem(
                c.span(place, "path"),
                "path-outside",
                f"`{path}` leads out of the sandbox",
                "paths are looked up in the job's folder, then in the workspace's",
            )
        elif op.op == "save" and (path.endswith("/") or not path.strip()):
            yield problem(c.span(place, "path"), "path-empty", f"`{path}` names a folder, not a file")


def leads_out(path: str) -> bool:
    """Whether a path steps above where it starts, on any system's reading."""
    if re.match(r"[A-Za-z]:[\\/]|\\\\|~", path) or "\0" in path:
        return True
    depth = 0
    for part in re.split(r"[\\/]+", path):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return False
