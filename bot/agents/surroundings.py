"""What an agent that plans may know of where it is: who and what there is, what has happened, which values are held.
Names, types and sizes; never what a value says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.record import OpRow
from bot.domain.values import summary


def op_line(row: OpRow) -> str:
    """One op with its state: `3 ask scope: waiting on ana@acme.de until 2026-06-12T17:00+02:00`."""
    name = f" {row.id}" if row.id else ""
    said = f"{row.path} {row.op}{name}: {row.state}"
    if row.state in ("waiting", "gated", "uncertain"):
        gate = row.data.get("gate") or {}
        to = gate.get("to") or [":".join(p for p in pair if p) for pair in row.data.get("to", [])]
        said += f" on {', '.join(str(t).removeprefix('person:') for t in to)}" if to else ""
    if row.due is not None:
        said += f" until {row.due.isoformat(timespec='minutes')}"
    if row.has_value and row.id:
        said += f", a value: {summary(row.value)}"
    return said


def held(names: Iterable[Mapping[str, Any]]) -> str:
    """The names that the job holds."""
    lines = [
        f"- {n['name']}: {n['type']} {n['size']}" + (f", {n['errors']} errors" if n.get("errors") else "")
        for n in names
    ]
    return "Names that the job holds (type and size; a script sees their values):\n" + "\n".join(lines) if lines else ""


def of(world: World, catalog: Catalog) -> str:
    """People, roles, agents, streams, saved scripts, templates and tools, as a script may name them."""
    parts = [
        _listed("People", (f"{p.email} ({p.name})" for p in world.people)),
        _listed("Roles", (f"role:{name}: {', '.join(members)}" for name, members in world.roles.items())),
        _listed("Agents", (f"agent:{a.name}" for a in world.agents)),
        _listed("Streams", (_stream(world, name) for name in world.streams)),
        _listed("Channels that are on", sorted(world.channels or ())),
        _listed("Saved scripts", (_script(world, name) for name in world.scripts)),
        _listed("Templates", (f"templates.{name}" for name in world.templates)),
        _listed("Tools (each is an op)", (_tool(catalog, spec.name) for spec in catalog.ops.values() if spec.tool)),
    ]
    if world.customer:
        parts.append(f"The job has a customer: {', '.join(f'customer.{key}' for key in world.customer)}.")
    return "\n\n".join(part for part in parts if part)


def _listed(title: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return f"{title}:\n" + "\n".join(found) if found else ""


def _stream(world: World, name: str) -> str:
    spec = world.streams[name]
    schema = f": events {_json(spec.schema)}" if spec.schema else ""
    return f"{name}{schema}"


def _script(world: World, name: str) -> str:
    inputs = world.scripts[name].inputs
    return f"{name}" + (f" ({', '.join(i.name for i in inputs)})" if inputs else "")


def _tool(catalog: Catalog, name: str) -> str:
    spec = catalog[name]
    kind = "reads only" if spec.read_only else "writes"
    return f"{name} ({kind}): {spec.summary} Parameters {_json(spec.schema or {})}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
