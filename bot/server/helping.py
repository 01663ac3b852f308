"""Help beside the composer: every command as it is written, made from the ops themselves; searched as one types."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.catalog import Catalog
from bot.server import examples
from bot.server.auth import Reader
from bot.server.respond import page
from bot.server.room import desk_of

NOTATION = (
    ("- name = command …", "A dash, a name for the result, a command. What belongs to it stands further right."),
    ("> text with {name}", "A quote below an item: its question or message. What stands in braces is filled in."),
    ("within 2d · 4h · 30m · 2bd · 4bh", "How long to wait: days, hours, minutes, working days, working hours."),
    ("within … by Fri 17:00", "Until a moment instead."),
    ("- miss", "Below a wait: what happens when nothing comes in time."),
    ("- error", "Below an item: what happens when it fails. A last one at the left is the script's own."),
    ("@ana · role:leads · agent", "Whom: a person, a role, an agent."),
    ("after name", "Waits until that has ended."),
    ("key: value", "Any further parameter, behind the words."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One way to write something, and what it does."""

    shape: str
    summary: str


def entries(catalog: Catalog) -> list[tuple[str, list[Entry]]]:
    """The reference by groups: how things are written, the commands, the tools of this workspace."""
    commands = [Entry(shape=o.shape, summary=o.summary) for o in catalog.ops.values() if not o.tool]
    tools = [
        Entry(shape=" ".join([o.name, *(f"{key}: …" for key in _parameters(o.schema or o.params))]), summary=o.summary)
        for o in catalog.ops.values()
        if o.tool
    ]
    groups = [
        ("How it is written", [Entry(shape=shape, summary=summary) for shape, summary in NOTATION]),
        ("Commands", commands),
        ("Tools here", tools),
    ]
    return [(title, found) for title, found in groups if found]


def _parameters(schema: object) -> list[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return [str(name) for name in properties or ()][:6]


async def show(request: Request, reader: Reader) -> Response:
    """The reference; `q` leaves only what has all its words."""
    wanted = request.query_params.get("q", "").casefold().split()
    groups = [
        (title, [e for e in found if all(word in f"{e.shape} {e.summary}".casefold() for word in wanted)])
        for title, found in entries(desk_of(request).catalog)
    ]
    return page(
        "help.html",
        reader.world,
        reader=reader,
        groups=[(title, found) for title, found in groups if found],
        q=request.query_params.get("q", ""),
        examples=examples.offered(reader.world),
    )
