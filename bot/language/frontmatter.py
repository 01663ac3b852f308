"""The YAML before a markdown script: YAML 1.2, core schema, to nodes with places; `on` is a key, `18:30` a text."""

from __future__ import annotations

import re

from bot.language.problems import Problem
from bot.language.tree import Member

LIMIT = 32 * 1024
FRONT = re.compile(r"\s*---[ \t]*\n(?:(?P<body>.*?)\n)??---[ \t]*(?:\n|\Z)", re.DOTALL)


def split(text: str) -> int:
    """Where the front matter ends; 0 where there is none."""
    found = FRONT.match(text)
    return found.end() if found else 0


def read(text: str, problems: list[Problem]) -> dict[str, Member]:
    """The members of the front matter that `text` begins with."""
    from bot.language import yamlnodes  # only what begins with front matter pays for YAML

    return yamlnodes.read(text, problems)
