"""What an agent reads before it writes a plan: the language, the ops that exist here, whole examples."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot import examples
from bot.agents import guide
from bot.domain.catalog import Catalog, OpSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    uri: str
    name: str
    description: str
    kind: str = "text/markdown"


def pages() -> tuple[Page, ...]:
    return (
        Page(uri="waiton://language", name="language", description="The script language, by example: both surfaces."),
        Page(
            uri="waiton://ops",
            name="ops",
            description="Every op that exists here with its parameters' JSON Schema, tools included.",
            kind="application/json",
        ),
        *(
            Page(uri=f"waiton://examples/{name}", name=name, description=f"An example: {examples.title(name)}")
            for name in examples.NAMES
        ),
    )


def read(uri: str, catalog: Catalog) -> str | None:
    """A page's text; None where there is none of this address."""
    if uri == "waiton://language":
        return f"{guide.language()}\n\n## Every command\n\n{guide.commands(catalog)}\n"
    if uri == "waiton://ops":
        return json.dumps([op(spec) for spec in catalog.ops.values()], ensure_ascii=False)
    kind, _, name = uri.removeprefix("waiton://").partition("/")
    return examples.script(name) if kind == "examples" else None


def op(spec: OpSpec) -> dict[str, object]:
    """An op as data: how it is written, what it takes and gives, what it declares."""
    told: dict[str, object] = {
        "op": spec.name,
        "kind": "tool" if spec.tool else spec.kind,
        "summary": spec.summary,
        "markdown": spec.shape,
        "params": dict(spec.schema if spec.tool and spec.schema is not None else spec.params),
        "fields": list(spec.fields),
    }
    if spec.regions:
        told["regions"] = list(spec.regions)
    if spec.tool:
        told |= {"read_only": spec.read_only, "idempotent": spec.idempotent, "destructive": spec.destructive}
    if spec.output is not None:
        told["output"] = dict(spec.output)
    return told
