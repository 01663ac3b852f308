"""Ops in plain words, for the rail, the cards and the record: "Ask Ana", "Say “…”", "Demo deploy web".

Words between backticks are the script's own; the page sets them apart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain import cost
from bot.domain.catalog import Catalog, World
from bot.domain.plan import Op, Plan, Region
from bot.engine import words
from bot.language.refs import Ref, parse

SHORT = 60
_IS = re.compile(r"^\s*([A-Za-z_]\w*)\s*==\s*(?:'([^']*)'|\"([^\"]*)\")\s*$")


def phrase(op: Op, world: World, to: list[str] | None = None) -> str:
    """One op in plain words. `to`: its addressees as they are now, where it has started."""
    said = _WORDS.get(op.op)
    if said is not None:
        return said(op, world, to)
    if op.op.endswith("_send"):
        return f"Send to {_who(op, world, to) or 'a conversation'}"
    name = op.op.replace("_", " ").strip()
    first = next((v for v in op.params.values() if isinstance(v, str) and v), None)
    return f"{name[:1].upper()}{name[1:]}" + (f" {short(plain(first), 30)}" if first else "")


def of_plan(plan: Plan, world: World) -> str:
    """A plan in a line: its title or name, else what it does first."""
    if plan.title or plan.name:
        return str(plan.title or plan.name)
    if not plan.program.ops:
        return "A run"
    first = plan.program.ops[0]
    question = first.params.get("question") if first.op == "ask" else None
    return phrase(first, world) + (f": {short(plain(question), 50)}" if isinstance(question, str) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One op of a plan that is read before it runs. `depth`: inside how many others; `lead`: when it comes at all (`if
    missed`), above the first of its region."""

    depth: int
    said: str
    lead: str = ""


def outline(plan: Plan, world: World) -> list[Step]:
    """A plan to read: its ops in written order, branches below what opens them."""
    found = list(_outlined(plan.program, world, 0, ""))
    if plan.on_error is not None:
        found += _outlined(plan.on_error, world, 0, "if anything fails")
    return found


def _outlined(region: Region, world: World, depth: int, lead: str) -> Iterator[Step]:
    for n, op in enumerate(region.ops):
        yield Step(depth=depth, said=_detailed(op, world), lead=lead if n == 0 else "")
        for name, inner in op.inner():
            yield from _outlined(inner, world, depth + 1, region_words(name, op, world))


def _detailed(op: Op, world: World) -> str:
    """An op in plain words with what it asks, its choices and its window."""
    said = phrase(op, world)
    question, choices = op.params.get("question"), op.params.get("choices")
    if isinstance(question, str):
        said += f": “{short(plain(question), 90)}”"
    if isinstance(choices, (list, tuple)) and choices:
        said += ", " + words.either([f"`{plain(str(_label(one)))}`" for one in choices])
    return said + (f", within {op.within}" if op.within else f", by {op.by}" if op.by else "")


def _label(choice: Any) -> Any:
    return choice.get("label", choice.get("value", "")) if isinstance(choice, Mapping) else choice


def effects(flight: Mapping[str, Any], world: World) -> list[tuple[str, str]]:
    """What a pre-flight says that a run will do to the outside, by heading: what it writes, the agents it calls."""
    found: list[tuple[str, str]] = []
    if writes := [_write(w, world) for w in flight.get("writes") or []]:
        found.append(("Writes", "; ".join(dict.fromkeys(writes))))
    if flight.get("agent_calls"):
        found.append(("Agents", cost.at_most(flight)))
    elif flight.get("agent_calls", 0) is None:
        found.append(("Agents", "as many calls as its lists are long"))
    return found


def _write(write: Mapping[str, Any], world: World) -> str:
    approver = write.get("approver")
    if not approver:
        return f"`{write['op']}`"
    verb = "approve" if approver.startswith("role:") else "approves"
    return f"`{write['op']}`, after {named(approver, world)} {verb} it"


def region_words(name: str, op: Op, world: World) -> str:
    """What a region is for, as the rail says it above the region's ops."""
    if name == "onMiss":
        return "if nothing comes" if op.op == "expect" else "if missed"
    if name == "onError":
        return "if it fails"
    if op.op == "core.if":
        return "then" if name == "then" else "else"
    if op.op in ("core.map", "core.repeat"):
        return "each time"
    return f"`{name}`"


def outcome_of(region: Region | None, world: World) -> str:
    """What a branch does first, in a few words; `goes on` where it is empty or not there."""
    if region is None or not region.ops:
        return "goes on"
    said = phrase(region.ops[0], world)
    more = f" and {len(region.ops) - 1} more" if len(region.ops) > 1 else ""
    return f"{said[:1].lower()}{said[1:]}{more}"


def taps(
    plan: Plan,
    op: Op,
    labels: list[str],
    world: World,
    approver: Callable[[Op], str | None],
    readers: Iterable[str] = (),
) -> dict[str, str]:
    """What each choice of an ask does, as far as the plan says it plainly: an `if` on exactly this choice.
    `readers`: the places of the ops that need its answer."""
    told: dict[str, str] = {}
    beside = set(readers) - {test.place for _, test in _tests(plan, op)}
    for label, region in _branches(plan, op, labels).items():
        said = outcome_of(region, world)
        if region is not None and (who := approver(region.ops[0])):
            said += f" ({named(who, world)} {'approve' if who.startswith('role:') else 'approves'} it first)"
        told[label] = said if region is not None or beside else "nothing more hangs on it"
    return told


def unapproved(
    plan: Plan, op: Op, labels: list[str], catalog: Catalog, approver: Callable[[Op], str | None]
) -> dict[str, str]:
    """The choices that let a write start with nobody asked in between, each with the write's name."""
    found: dict[str, str] = {}
    for label, region in _branches(plan, op, labels).items():
        for other in region.ops if region is not None else ():
            spec = catalog.get(other.op)
            if other.op == "ask":
                break
            if spec is not None and spec.tool and not spec.read_only and approver(other) is None:
                found[label] = other.op
                break
    return found


def _branches(plan: Plan, op: Op, labels: list[str]) -> dict[str, Region | None]:
    """The region that each choice opens; nothing where no `if` asks for exactly a choice of this op."""
    tests = _tests(plan, op)
    opened: dict[str, Region | None] = {}
    for label in labels if tests else []:
        taken = [test.regions.get("then" if value == label else "else") for value, test in tests]
        opened[label] = next((r for r in taken if r is not None and r.ops), None)
    return opened


def _tests(plan: Plan, op: Op) -> list[tuple[str, Op]]:
    """Every `if` on exactly one choice of an ask, behind that choice."""
    tests: list[tuple[str, Op]] = []
    for other, _ in plan.walk():
        if other.op == "core.if" and (found := _IS.match(str(other.params.get("cond", "")))) and found[1] == op.id:
            tests.append((found[2] if found[2] is not None else found[3], other))
    return tests


def named(who: str, world: World) -> str:
    """An approver or an addressee of the pre-flight in words."""
    if who == "anyone":
        return "somebody else"
    return words.called(who, world)


def by_whom(who: str, world: World) -> str:
    """Who did something, in words: a person or an agent by name."""
    return who[6:] if who.startswith("agent:") else words.called(who, world)


def plain(text: str) -> str:
    """A text of the plan with its references as people write them: `{rollout.url}`."""
    return "".join(f"{{{part.text}}}" if isinstance(part, Ref) else part for part in parse(text).parts)


def short(text: str, most: int = SHORT) -> str:
    """The first line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _value(value: Any) -> str:
    if isinstance(value, str):
        template = parse(value)
        return f"`{template.refs[0].text}`" if template.whole else short(plain(value), 40)
    return short(json.dumps(value, ensure_ascii=False), 40)


def _list(value: Any) -> str:
    if isinstance(value, list):
        return short(", ".join(plain(str(v)) for v in value), 40)
    return _value(value)


def _who(op: Op, world: World, to: list[str] | None) -> str:
    entries = to if to is not None else op.to if isinstance(op.to, (list, tuple)) else [] if op.to is None else [op.to]
    return words.either([_one(str(e), world) for e in entries])


def _one(who: str, world: World) -> str:
    if who in ("agent", "agent:"):
        return "the agent"
    if who.startswith("agent:"):
        return f"the agent {who[6:]}"
    if who.startswith("$"):
        return plain(who)
    bare = who.removeprefix("@")
    person = next(
        (
            p
            for p in world.people
            if bare.casefold() in (p.email.casefold(), p.name.casefold(), p.email.partition("@")[0].casefold())
        ),
        None,
    )
    if person is not None:
        return person.name
    return words.called(f"role:{bare}" if bare in world.roles else who, world)


def _ask(op: Op, world: World, to: list[str] | None) -> str:
    return f"Ask {_who(op, world, to) or 'the agent'}"


def _say(op: Op, world: World, to: list[str] | None) -> str:
    card = op.params.get("card")
    body = op.params.get("body", (card.get("title") or card.get("text", "")) if isinstance(card, Mapping) else "")
    whom = _who(op, world, to)
    said = f"“{short(plain(str(body)), 44)}”"
    return f"Tell {whom} {said}" if whom else f"Say {said}"


def _expect(op: Op, world: World, to: list[str] | None) -> str:
    evidence = op.params.get("evidence")
    streams = [str(s) for s in evidence] if isinstance(evidence, (list, tuple)) else [str(evidence)]
    if streams == ["clock"]:
        moment = op.params.get("at")
        return f"Wait until {plain(str(moment))}" if moment else f"Wait {plain(str(op.params.get('in', '')))}".rstrip()
    sender = f" from {plain(str(op.from_))}" if op.from_ else ""
    return f"Expect {words.either([plain(s) for s in streams])}{sender}"


def _repeat(op: Op, world: World, to: list[str] | None) -> str:
    until = op.params.get("until")
    most = op.params.get("max")
    return (
        "Repeat" + (f" until `{short(str(until), 40)}`" if until else "") + (f", {most} times at most" if most else "")
    )


_WORDS: dict[str, Callable[[Op, World, list[str] | None], str]] = {
    "ask": _ask,
    "say": _say,
    "expect": _expect,
    "endpoint": lambda op, w, to: "Open an address to be called",
    "run": lambda op, w, to: f"Run the script `{op.params.get('script')}`",
    "core.let": lambda op, w, to: f"Work out `{short(str(op.params.get('be', '')), 44)}`",
    "core.transform": lambda op, w, to: (
        f"Reshape {_value(op.params.get('from'))} by `{short(str(op.params.get('jq', '')), 36)}`"
    ),
    "core.if": lambda op, w, to: f"If `{short(str(op.params.get('cond', '')), 44)}`",
    "core.map": lambda op, w, to: f"For each `{op.params.get('as') or 'item'}` of {_list(op.params.get('over'))}",
    "core.repeat": _repeat,
    "flow.parallel": lambda op, w, to: "At the same time",
    "glob": lambda op, w, to: f"Find files {_value(op.params.get('pattern'))}",
    "list": lambda op, w, to: f"List {_list(op.params.get('items'))}",
    "read": lambda op, w, to: f"Read {_value(op.params.get('path'))}",
    "lines": lambda op, w, to: f"Lines of {_value(op.params.get('text'))}",
    "chunk": lambda op, w, to: f"Cut {_value(op.params.get('text'))} every {op.params.get('n')} lines",
    "each": lambda op, w, to: f"Ask the agent about each of {_value(op.params.get('list'))}",
    "keep": lambda op, w, to: f"Keep {_value(op.params.get('text'))} of {_value(op.params.get('list'))}",
    "drop": lambda op, w, to: f"Drop {_value(op.params.get('text'))} from {_value(op.params.get('list'))}",
    "first": lambda op, w, to: f"First {_value(op.params.get('n'))} of {_value(op.params.get('list'))}",
    "count": lambda op, w, to: f"Count {_value(op.params.get('list'))}",
    "show": lambda op, w, to: f"Show {_value(op.params.get('value'))}",
    "save": lambda op, w, to: f"Save {_value(op.params.get('value'))} to {_value(op.params.get('path'))}",
    "model": lambda op, w, to: f"Use the model {_value(op.params.get('name'))}",
    "budget": lambda op, w, to: f"At most {_value(op.params.get('calls'))} agent calls",
}
