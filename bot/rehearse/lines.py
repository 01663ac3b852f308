"""What a check, a script and a rehearsal look like on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bot.domain import cost
from bot.domain.catalog import Catalog, World
from bot.domain.errors import WaitonError
from bot.domain.plan import Op, Plan, Region
from bot.domain.values import text
from bot.language import durations
from bot.language.read import Read
from bot.language.script import Examined


def in_zone(value: Any, zone: Any) -> Any:
    """Nested data with every instant as ISO 8601 in this zone."""
    if isinstance(value, datetime):
        return value.astimezone(zone).isoformat()
    if isinstance(value, Mapping):
        return {k: in_zone(v, zone) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_zone(v, zone) for v in value]
    return value


def timed(value: Any, world: World) -> Any:
    return in_zone(value, durations.zone(world.workspace))


def preflight_card(seen: Examined, world: World) -> str:
    """What a script will do at most, before it starts."""
    flight = seen.preflight
    steps = flight.get("ops", 0)
    rows = [("steps", str(steps))]
    if flight.get("addressees"):
        rows.append(("asks", ", ".join(world.name_of(str(who)) for who in flight["addressees"])))
    rows += [("" if at else "writes", said) for at, said in enumerate(_writes(flight.get("writes") or [], world))]
    rows += [("" if at else "starts", said) for at, said in enumerate(_starts(seen.plan, world))]
    if flight.get("agent_calls"):
        rows.append(("agents", cost.at_most(flight)))
    end = flight.get("latest_end")
    if isinstance(end, datetime):
        local = end.astimezone(durations.zone(world.workspace))
        rows.append(("ends", f"by {local:%a} {local.day} {local:%b %Y, %H:%M} at the latest"))
    name = seen.plan.title or seen.plan.name if seen.plan is not None else None
    lines = [f"{f'“{name}”' if name else 'The script'} reads well. Nothing has started.", ""]
    lines += [f"  {label:<8}{said}" for label, said in rows]
    notes = list(dict.fromkeys(note.message for note in seen.notes))
    if notes:
        lines += ["", "  Before you run it:", *(f"  · {note}" for note in notes)]
    return "\n".join(lines)


def flight_of(seen: Examined, world: World) -> dict[str, Any]:
    """The pre-flight as data, instants in the workspace's zone: also what starts a script that has `on`."""
    more: dict[str, Any] = {}
    if seen.plan is not None and seen.plan.on and not seen.refused:
        from bot.runtime.saved import starts

        more["starts"] = starts(seen.plan, world, world.now)
    return timed({**seen.preflight, **more}, world)


def _starts(plan: Plan | None, world: World) -> list[str]:
    """One line a trigger: what it is, and when it comes next where the clock says so."""
    if plan is None or not plan.on:
        return []
    from bot.runtime.saved import starts

    zone = durations.zone(world.workspace)
    found: list[str] = []
    for one in starts(plan, world, world.now):
        local = one["next"].astimezone(zone) if one["next"] else None
        coming = f", next {local:%a} {local.day} {local:%b %Y, %H:%M}" if local else ""
        found.append(one["on"].replace("`", "") + coming)
    return found


def _writes(writes: list[Mapping[str, Any]], world: World) -> list[str]:
    """One line a tool: where it stands, and who must approve it first."""
    places: dict[tuple[str, str], list[str]] = {}
    for write in writes:
        approver = write.get("approver")
        named = f", each once {world.name_of(str(approver))} approves it" if approver else ""
        places.setdefault((write["op"], named), []).append(str(write["path"]))
    return [
        f"{op} at {', '.join(paths)}{named if len(paths) > 1 else named.replace(', each once', ', once')}"
        for (op, named), paths in places.items()
    ]


def printed(got: Read, as_: str, catalog: Catalog, world: World) -> str:
    """A script on a surface, as its card, or as a picture in mermaid."""
    from bot.language.write import as_json, as_markdown

    assert got.plan is not None
    match as_:
        case "json":
            return as_json(got.plan)
        case "markdown":
            return as_markdown(got.plan, catalog).rstrip("\n")
        case "card":
            from bot.language.script import examine

            seen = examine(got.source.pasted, catalog, world, starting=False)
            return seen.rendered() if seen.refused else preflight_card(seen, world)
        case "mermaid":
            return mermaid(got.plan)
        case _:
            raise WaitonError(f"`--as {as_}` is not known; write markdown, json, card or mermaid")


def told(op: Op) -> str:
    """One op in a few words."""
    params = op.params
    what = {
        "ask": f"Ask {_who(op.to)}",
        "say": f"Say to {_who(op.to)}" if op.to is not None else "Say",
        "expect": f"Wait for {text(params.get('evidence'))}",
        "core.if": f"if {params.get('cond')}",
        "core.map": f"for each of {text(params.get('over'))}",
        "core.let": f"let {params.get('be')}",
        "core.transform": f"transform by {params.get('jq')}",
        "core.repeat": f"repeat until {params.get('until')}",
        "flow.parallel": "at once",
        "run": f"run {params.get('script')}",
    }.get(op.op, op.op)
    return f"{op.id} = {what}" if op.id else what


def _who(to: Any) -> str:
    if to is None:
        return "the agent"
    return ", ".join(map(str, to)) if isinstance(to, list) else str(to)


def mermaid(plan: Plan) -> str:
    """The plan as a mermaid flow chart: one box an op, one subgraph a region."""
    lines = ["flowchart TD"]

    def box(op: Op) -> str:
        return "n" + "".join(c if c.isalnum() else "_" for c in op.place)

    def region(of: Region, depth: int) -> None:
        before: str | None = None
        for op in of.ops:
            label = told(op).replace('"', "'").replace("\n", " ")[:60]
            lines.append(f'{"  " * depth}{box(op)}["{label}"]')
            if before is not None:
                lines.append(f"{'  ' * depth}{before} --> {box(op)}")
            for name, inner in op.inner():
                if inner.ops:
                    lines.append(f"{'  ' * depth}subgraph s{box(op)}_{name} [{name}]")
                    region(inner, depth + 1)
                    lines.append(f"{'  ' * depth}end")
                    lines.append(f"{'  ' * depth}{box(op)} -. {name} .-> {box(inner.ops[0])}")
            before = box(op)

    region(plan.program, 1)
    return "\n".join(lines)


def rehearsed(found: Mapping[str, Any]) -> str:
    """The report of a rehearsal, of a walk or of a coverage, as a person reads it."""
    if "refused" in found:
        return "\n".join(
            f"line {p['line']}, column {p['column']}: {p['message']} [{p['code']}]"
            + (f"\n  = {p['mend']}" if p["mend"] else "")
            for p in found["refused"]
        )
    if "outcomes" in found:
        return _walked(found)
    if "unreached" in found:
        return _covered(found)
    return transcript(found)


def _walked(found: Mapping[str, Any]) -> str:
    lines = []
    for one in found["outcomes"]:
        way = ", ".join(one["way"]) or "straight through"
        lines.append(
            f"{one['state']:<9} {way}" + (f"\n          says: {' / '.join(one['says'])}" if one["says"] else "")
        )
    if found["cut"]:
        lines.append(f"… and more: the walk stops at {len(found['outcomes'])} outcomes")
    return "\n".join(lines)


def _covered(found: Mapping[str, Any]) -> str:
    if not found["unreached"]:
        return f"every one of the {found['ops']} ops was reached"
    lines = [f"{len(found['unreached'])} of {found['ops']} ops were not reached:"]
    lines += [f"  {one['path']:<12} {one['told']}" for one in found["unreached"]]
    return "\n".join(lines)


def transcript(found: Mapping[str, Any]) -> str:
    """What happened, in order of time, then the ops as they stand."""
    lines = sorted(_events(found), key=lambda line: line[:2])
    out: list[str] = []
    day = ""
    for at, _, said in lines:
        if f"{at:%a %d %b %Y}" != day:
            day = f"{at:%a %d %b %Y}"
            out.append(day)
        out.append(f"  {at:%H:%M:%S}  {said}")
    out.append("")
    for op in found["ops"]:
        name = f"{op['id']} = {op['op']}" if op["id"] else op["op"]
        claim = f" ({op['claim']})" if op["claim"] else ""
        why = f": {op['error']}" if op["error"] else ""
        out.append(f"  {op['path']:<12} {op['state']:<9} {name}{claim}{why}")
    out.append("")
    out += [f"note: {note}" for note in found["notes"]]
    out += [f"missing: no agent answers {one['op']}: {one['prompt']}" for one in found.get("missing", [])]
    if found["result"] is not None:
        out.append(f"result: {text(found['result'])}")
    held = " · ".join(
        f"{h['name']} {h['type']} {h['size']}" + (f", {h['errors']} errors" if h["errors"] else "")
        for h in found["held"]
    )
    if held:
        out.append(f"held: {held}")
    out.append(f"the run is {found['state']}" + (f": {found['error']}" if found.get("error") else ""))
    return "\n".join(out)


def _events(found: Mapping[str, Any]) -> Iterator[tuple[datetime, int, str]]:
    """What happened: when, in which order at one instant, in words."""
    for one in found["edits"]:
        why = f": {one['why']}" if one["why"] else ""
        yield _line(one, f"edit     {one['op'] or 'the run'} {one['what']} by {one['by']}{why}")
    for one in found["replies"]:
        yield _line(one, f"reply    → {one['to']}: {one['text']}")
    for one in found["calls"]:
        again = f", attempt {one['attempt']}" if one["attempt"] > 1 else ""
        yield _line(one, f"call     {one['tool']} {text(one['params'])}{again}")
    for one in found["agent_calls"]:
        reply = _flat(one["reply"]) if one["error"] is None else f"({one['error']})"
        at = f"[{one['index']}]" if one["index"] is not None else ""
        yield _line(one, f"agent    {one['op']}{at}: {reply}")
    for one in found["deliveries"]:
        if one["kind"] == "status":
            yield _line(one, f"         … {one['text']}")
            continue
        said = " / ".join(part for part in (one["title"], one["text"]) if part).replace("\n", " · ")
        buttons = f"  [{'] ['.join(one['buttons'])}]" if one["buttons"] else ""
        yield _line(one, f"{one['kind']:<8} → {one['to']}: {said}{buttons}")


def _line(one: Mapping[str, Any], said: str) -> tuple[datetime, int, str]:
    return datetime.fromisoformat(one["at"]), getattr(one, "number", 0), said


def _flat(value: Any) -> str:
    """A text on one line."""
    return text(value).strip().replace("\n", " · ")
