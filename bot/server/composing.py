"""What the composer says of a text: its problems and their mends, or what it would do; and what is started."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.catalog import World
from bot.domain.plan import Input, Plan
from bot.engine import words
from bot.language.script import Examined
from bot.runtime.desk import Desk
from bot.runtime.saved import starts
from bot.server import phrases
from bot.server.rehearsing import Rehearsal, rehearsal


@dataclass(slots=True, kw_only=True)
class State:
    """The composer below its text. `title`: what it would start, in a line; `blocked`: Run does nothing now."""

    hint: str = ""
    title: str = ""
    problems: list[dict[str, Any]] = field(default_factory=list)
    prose: bool = False
    ready: bool = False
    saves: bool = False
    facts: list[tuple[str, str]] = field(default_factory=list)
    ends: datetime | None = None
    notes: list[str] = field(default_factory=list)
    waits: list[dict[str, Any]] = field(default_factory=list)
    """Effects that would start without waiting for an ask above them: the note, and what makes them wait."""
    inputs: tuple[Input, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    rehearsal: Rehearsal | None = None
    plan: Plan | None = None
    """What it would start, where it reads well."""
    agent: str | None = None
    """Who takes what is no script, if somebody does."""
    replaces: str | None = None
    """Whose proposal it would run in place of."""

    @property
    def label(self) -> str:
        return "Save" if self.saves else "Run as written" if self.waits else "Run"

    @property
    def word(self) -> str:
        """What the button posts: who runs what would not wait has seen that it would not."""
        return AS_WRITTEN if self.waits else RUN

    @property
    def blocked(self) -> bool:
        return not self.ready


RUN, AS_WRITTEN = "run", "run:as-written"
HOLDING = ("starts-without-waiting", "many-at-once")
"""Notes that hold a run at its pre-flight: whoever starts it lets it wait, runs it as written, or discards it."""
FIXES = 20
"""Mends that are made in one go."""
EMPTY = "A list of commands or JSON; it is checked as you type"


async def state_of(desk: Desk, world: World, text: str, *, by: str, job: str | None, given: Mapping[str, str]) -> State:
    """Checks a text as it would be started with these inputs."""
    if not text.strip():
        return State(hint=EMPTY)
    seen = await desk.check(text, by=by, job=job, starting=False)
    declared = (seen.plan.inputs or ()) if seen.plan is not None else ()
    if not seen.refused and declared:
        values = input_values(declared, given)
        seen = await desk.check(text, by=by, job=job, inputs=values)
    state = _state(seen, world, declared, given)
    if state.ready and not state.saves:
        await _overtaking(desk, seen, state, text, by=by, job=job)
    return state


async def rehearsed(
    desk: Desk,
    world: World,
    text: str,
    *,
    by: str,
    job: str | None,
    given: Mapping[str, str],
    turn: asyncio.Semaphore,
) -> Rehearsal:
    """Every branch of a text as it would be started with these inputs."""
    seen = await desk.check(text, by=by, job=job, starting=False)
    declared = (seen.plan.inputs or ()) if seen.plan is not None else ()
    return await rehearsal(desk, world, text, by=by, job=job, inputs=input_values(declared, given) or None, turn=turn)


async def _overtaking(desk: Desk, seen: Examined, state: State, text: str, *, by: str, job: str | None) -> None:
    """Nothing overtakes an ask, or reaches many people, unseen: what would is set apart from the other notes, with a
    way to let it wait."""
    for note in seen.notes:
        if note.code not in HOLDING or seen.plan is None:
            continue
        line, _ = seen.read.source.position(note.start)
        asked = [op.id for op, _ in seen.plan.walk() if op.op == "ask" and op.id is not None]
        found: dict[str, Any] = {"message": note.message, "fix": None}
        for name in reversed(asked) if seen.read.surface == "markdown" else ():
            lines = text.replace("\r\n", "\n").split("\n")
            fix = {"line": line, "column": len(lines[line - 1].rstrip()) + 1, "length": 0, "text": f" after {name}"}
            tried = await desk.check(mended(text, [{"fix": fix}], 0), by=by, job=job, starting=False)
            if not tried.refused and note.message not in [n.message for n in tried.notes]:
                found["fix"] = fix
                break
        state.notes = [said for said in state.notes if said != note.message]
        state.waits.append(found)
    if state.waits:
        state.hint = "It holds here until you choose"


def _state(seen: Examined, world: World, declared: tuple[Input, ...], given: Mapping[str, str]) -> State:
    reports = seen.reports()
    missing = [r for r in reports if r["code"] == "input-missing"]
    state = State(inputs=declared, given=dict(given))
    if [r["code"] for r in reports] == ["no-command"]:
        state.prose = True
        state.hint = "Nothing has started"
    elif missing and len(missing) == len(reports):
        state.hint = "It reads well; fill in what it is started with"
    elif reports:
        state.problems = reports
        state.hint = f"{len(reports)} problem{'' if len(reports) == 1 else 's'}; nothing has started"
    else:
        _ready(state, seen, world)
    return state


def _ready(state: State, seen: Examined, world: World) -> None:
    state.ready = True
    flight = seen.preflight
    assert seen.plan is not None
    state.plan = seen.plan
    state.title = phrases.of_plan(seen.plan, world)
    state.saves = bool(seen.plan.on)
    if flight.get("addressees"):
        state.facts.append(("Asks", ", ".join(phrases.named(str(w), world) for w in flight["addressees"])))
    if seen.plan.on:
        state.facts.append(("Starts by", "; ".join(_starts(seen, world))))
    state.facts += phrases.effects(flight, world)
    state.ends = flight.get("latest_end")
    state.notes = list(dict.fromkeys(note.message for note in seen.notes))
    steps = flight.get("ops", 0)
    state.hint = f"{steps} step{'' if steps == 1 else 's'}; it reads well" + (
        ", and is saved under its name" if state.saves else ""
    )


def _starts(seen: Examined, world: World) -> list[str]:
    assert seen.plan is not None
    found = starts(seen.plan, world, world.now)
    return [
        one["on"] + (f", next {words.clock(one['next'], world, world.now)}" if one["next"] else "") for one in found
    ]


def input_values(declared: tuple[Input, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """What was typed into the fields of a script's inputs, by their types; empty ones are not given."""
    found: dict[str, Any] = {}
    for one in declared:
        typed = given.get(one.name, "")
        if typed == "":
            continue
        found[one.name] = typed if one.type in ("text", "time") else _read(typed)
        if one.choices:
            found[one.name] = next((c for c in one.choices if str(c) == typed), typed)
    return found


def _read(typed: str) -> Any:
    try:
        return json.loads(typed)
    except ValueError:
        return typed


def mended(text: str, problems: list[dict[str, Any]], which: int) -> str:
    """The text with one problem's replacement applied."""
    if not 0 <= which < len(problems) or not problems[which]["fix"]:
        return text
    fix = problems[which]["fix"]
    lines = text.replace("\r\n", "\n").split("\n")
    start = sum(len(line) + 1 for line in lines[: fix["line"] - 1]) + fix["column"] - 1
    whole = "\n".join(lines)
    return whole[:start] + fix["text"] + whole[start + fix["length"] :]


async def all_mended(
    desk: Desk, text: str, state: State, *, by: str, job: str | None, of: Callable[[State], list[dict[str, Any]]]
) -> tuple[str, State]:
    """The text with every fix of its problems, or of what would not wait (`of`), from its end to its beginning, so
    that places stay right."""
    world = await desk.world()
    for _ in range(FIXES):
        fixes = [n for n, one in enumerate(of(state)) if one["fix"]]
        if not fixes:
            break
        text = mended(text, of(state), fixes[-1])
        state = await state_of(desk, world, text, by=by, job=job, given={})
    return text, state


def fields_of(form: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The fields of a form whose names begin so, without it."""
    return {name[len(prefix) :]: value for name, value in form.items() if name.startswith(prefix)}
