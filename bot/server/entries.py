"""What a conversation is made of: its entries, as values for the templates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from channels.web import render
from store.proposals import Proposal

_BOUND = re.compile(r"^(\s*(?:[-*+•◦▪–]|\d{1,9}[.)])\s+`?)([A-Za-z_]\w*)(\s*=\s.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One thing that is waited for: on whom, since and until when."""

    who: str
    since: datetime
    until: datetime | None


@dataclass(slots=True, kw_only=True)
class Item:
    """One entry of the conversation. `kind`: script, status, card, line (a card of others), said, message, notice,
    writing (an agent is at work on an answer), proposal.

    `state` of a card: `mine` (open, this reader may answer), `settled`, `theirs`."""

    kind: str
    key: str
    at: datetime
    run: str = ""
    who: str = ""
    state: str = ""
    pill: str = ""
    waits: list[Wait] = field(default_factory=list)
    progress: tuple[int, int] | None = None
    at_work: list[tuple[str, str]] = field(default_factory=list)
    """Ops that say how far they are: which, and their words."""
    facts: list[tuple[str, str]] = field(default_factory=list)
    ends: datetime | None = None
    notes: list[str] = field(default_factory=list)
    script: list[tuple[str, str, str, str]] = field(default_factory=list)
    surface: str = ""
    result: str | None = None
    bad: str | None = None
    card: render.Shown | None = None
    what: str = ""
    token: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    claim: str | None = None
    meta: str = ""
    asker: str = ""
    looked_for: bool = False
    sure: dict[str, str] = field(default_factory=dict)
    taps: dict[str, str] = field(default_factory=dict)
    path: str = ""
    job: str = ""
    title: str = ""
    private: bool = False
    ended: datetime | None = None
    owner: bool = False
    several: bool = False
    """Of a card: others are asked the same."""
    late: list[str] = field(default_factory=list)
    proposal: Proposal | None = None
    acceptable: bool = False
    """The last late answer may still be accepted, by this reader."""


def script_lines(source: str, most: int = 400) -> list[tuple[str, str, str, str]]:
    """A script's lines as (kind, lead, bound name, rest): `quote` lines stand back, names stand out."""
    out: list[tuple[str, str, str, str]] = []
    for line in source.replace("\r\n", "\n").rstrip().split("\n")[:most]:
        if line.lstrip().startswith(">"):
            out.append(("quote", line, "", ""))
        elif found := _BOUND.match(line):
            out.append(("item", found[1], found[2], found[3]))
        else:
            out.append(("item" if line.lstrip()[:1] in "-*+•[{" else "text", line, "", ""))
    return out
