"""The plan as one rail in written order: what happened, what waits on whom since when, what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.ids import place_of
from bot.domain.plan import Op, Plan, Region
from bot.domain.record import OpRow, RunRow
from bot.domain.values import ErrorValue, text
from bot.engine import asks, edits, tenses, verdicts, words
from bot.engine.gates import approver_of
from bot.engine.turn import owner_of
from bot.server import phrases
from channels.web.limits import ITEMS_SHOWN, VALUE_SHOWN

SHAPES = {"done": "done", "failed": "bad", "missed": "bad", "skipped": "off", "cancelled": "off", "planned": "next"}


@dataclass(slots=True, kw_only=True)
class Line:
    """One line of the rail. `shape`: done, wait, next, bad, off, `label` (a region's) or `now`. `since`, `until`,
    `at`: instants; `sub` short lines below; `menu`: what this reader can do to it, as key and label; `late`: the
    late answer that may still be accepted."""

    depth: int
    shape: str
    title: str
    path: str = ""
    id: str | None = None
    state: str = ""
    by: str | None = None
    at: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    claim: str | None = None
    value: str | None = None
    looked_for: bool = False
    sub: list[str] = field(default_factory=list)
    bad: str | None = None
    menu: list[tuple[str, str]] = field(default_factory=list)
    late: str | None = None


@dataclass(slots=True, kw_only=True)
class Rail:
    """A plan being laid out. `whole`: the record, which leaves nothing out. `reader`: whose menus stand at it."""

    plan: Plan
    run: RunRow
    rows: Mapping[str, OpRow]
    world: World
    catalog: Catalog
    whole: bool = False
    reader: str | None = None
    lines: list[Line] = field(default_factory=list)
    items: dict[str, list[int]] = field(default_factory=dict)

    @property
    def followed(self) -> set[str]:
        """Ops that an expectation follows: what they claim is looked for."""
        return followed(self.plan)

    def laid(self) -> list[Line]:
        self.lines.append(
            Line(
                depth=0,
                shape="done",
                title="Accepted",
                at=self.run.created,
                by=self.run.owner,
                state="done",
                sub=[_steps(len(list(self.plan.walk())))],
            )
        )
        for path in self.rows:
            self._note_items(path)
        self._region("", self.plan.program, 0)
        if self.plan.on_error is not None and (self._opened("onError") or self.run.ended is None):
            self._label(0, "if the run fails")
            self._region("onError", self.plan.on_error, 1)
        if self.run.ended is None:
            self._now()
        else:
            good = self.run.state == "done"
            self.lines.append(
                Line(
                    depth=0,
                    shape="done" if good else "bad" if self.run.state == "failed" else "off",
                    title={"done": "Done", "failed": "Failed", "cancelled": "Cancelled"}.get(self.run.state, "Ended"),
                    at=self.run.ended,
                    state=self.run.state,
                    bad=self.run.data.get("error"),
                )
            )
        return self.lines

    def _now(self) -> None:
        """The line for now stands below the last op that has begun."""
        last = max(i for i, line in enumerate(self.lines) if line.shape not in ("next", "label"))
        self.lines.insert(last + 1, Line(depth=0, shape="now", title="now", at=self.world.now))

    def _note_items(self, path: str) -> None:
        at = path.find("[")
        while at >= 0:
            end = path.index("]", at)
            known = self.items.setdefault(path[:at], [])
            index = int(path[at + 1 : end])
            if index not in known:
                known.append(index)
            at = path.find("[", end)

    def _opened(self, region: str) -> bool:
        return any(p.startswith(f"{region}.") for p in self.rows)

    def _other_taken(self, path: str, name: str) -> bool:
        """Whether an `if` went the other way: this one will never be."""
        other = {"then": "else", "else": "then"}.get(name)
        return other is not None and self._opened(f"{path}.{other}")

    def _region(self, path: str, region: Region, depth: int, never: bool = False) -> None:
        """`never`: it can open no more."""
        for op in region.ops:
            suffix = op.place[len(region.place) + 1 :] if region.place else op.place
            self._op(f"{path}.{suffix}" if path else suffix, op, depth, never)

    def _op(self, path: str, op: Op, depth: int, never: bool) -> None:
        row = self.rows.get(path)
        self.lines.append(self._line(path, op, row, depth, never))
        ended = never or (row is not None and not row.open) or self.run.ended is not None
        for name, region in op.inner():
            if name == "body":
                self._items(path, op, region, depth, ended)
                continue
            inner = f"{path}.{name}"
            opened = self._opened(inner)
            gone = not opened and (ended or self._other_taken(path, name))
            if gone and not self.whole:
                continue
            if name in ("onMiss", "onError") and not opened and len(region.ops) == 1 and not any(region.ops[0].inner()):
                said = phrases.phrase(region.ops[0], self.world)
                self._label(
                    depth + 1,
                    f"{phrases.region_words(name, op, self.world)}: {said[:1].lower()}{said[1:]}",
                    "off" if gone else "next",
                )
                continue
            if name != "then":
                self._label(
                    depth + 1 if name in ("onMiss", "onError") else depth, phrases.region_words(name, op, self.world)
                )
            self._region(inner, region, depth + (2 if name in ("onMiss", "onError") else 1), gone)

    def _items(self, path: str, op: Op, region: Region, depth: int, ended: bool) -> None:
        found = sorted(self.items.get(path, []))
        if not found:
            if not ended or self.whole:
                self._region(f"{path}[]", region, depth + 1, ended)
            return
        word = "round" if op.op == "core.repeat" else str(op.params.get("as") or "item")
        shown = found if self.whole and len(found) <= 200 else found[:ITEMS_SHOWN]
        for index in shown:
            if len(region.ops) > 1 or len(found) > 1:
                self._label(depth + 1, f"{word} {index + 1 if op.op == 'core.repeat' else index}", "label")
            self._region(f"{path}[{index}]", region, depth + 1)
        if len(found) > len(shown):
            self._label(depth + 1, f"and {len(found) - len(shown)} more")

    def _label(self, depth: int, title: str, shape: str = "label") -> None:
        self.lines.append(Line(depth=depth, shape=shape, title=title))

    def _line(self, path: str, op: Op, row: OpRow | None, depth: int, never: bool) -> Line:
        to = asks.spelt(row) if row is not None and row.data.get("to") else None
        line = Line(
            depth=depth,
            shape="next",
            title=phrases.phrase(op, self.world, to),
            path=path,
            id=op.id,
        )
        if not never:
            self._menu(op, row, line)
        if row is None:
            self._gate_words(op, line)
            line.shape = "off" if never or self.run.ended is not None else "next"
            return line
        line.state, line.by = row.state, row.by
        line.claim = row.data.get("claim")
        line.looked_for = self.whole or op.id in self.followed
        waiting = tenses.tense(row) == "waiting" or (row.state == "missed" and row.open)
        line.shape = "wait" if waiting else SHAPES.get(row.state, "next")
        if row.state == "planned":
            self._gate_words(op, line)
            if op.within or op.by:
                line.sub.append(f"within {op.within}" if op.within else f"by {phrases.plain(str(op.by))}")
        elif waiting and row.state == "missed":
            line.shape, line.at, line.bad = "inside", row.ended or row.due, row.data.get("error")
        elif waiting and row.state == "running" and op.regions:
            line.shape = "inside"
            if (far := how_far(op, row)) is not None:
                line.sub.append(far)
        elif waiting:
            self._waiting(op, row, line)
        else:
            line.at = row.ended
            self._ended(op, row, line)
        return line

    def _menu(self, op: Op, row: OpRow | None, line: Line) -> None:
        """What this reader can do to an op, from the one table of edits."""
        spec = self.catalog.get(op.op)
        if self.reader is None or spec is None or self.run.ended is not None or "[]" in line.path:
            return
        if not edits.steers(self.run, self.world, self.reader):
            return
        owner = owner_of(row.region) if row is not None else ""
        standing = not owner or ((above := self.rows.get(owner)) is not None and above.open)
        line.menu = [(kind.key, kind.label) for kind in edits.menu(spec, op, row) if kind.key != "insert" or standing]
        if any(key == "accept" for key, _ in line.menu) and row is not None:
            given = row.data["late"][-1]
            line.late = (
                f"{words.called(given['by'], self.world)} answered `{phrases.short(words.answer(given['answer']), 40)}`"
            )

    def _gate_words(self, op: Op, line: Line) -> None:
        who = approver(self.catalog, self.world, op)
        if who is not None:
            line.sub.append(
                f"{phrases.named(who, self.world)} {'approve' if who.startswith('role:') else 'approves'} it first"
            )

    def _waiting(self, op: Op, row: OpRow, line: Line) -> None:
        gate = row.data.get("gate")
        found = tenses.waiting_on(row, self.world, self.world.now)
        if found is not None:
            line.since, line.until = found[0], row.due
        else:
            line.since = row.started
        if row.state == "gated" and gate:
            to = [gate["named"]] if gate.get("named") and not gate.get("alone") else gate["to"]
            line.sub.append(f"waits for {words.names(to, self.world)} to approve")
        elif row.state == "uncertain":
            line.bad = row.data.get("error")
            line.sub.append("unknown whether it happened; its owner is asked")
        elif row.state == "running":
            line.sub.append(f"attempt {row.attempt}" if row.attempt > 1 else "at work")
        elif verdicts.is_asked(row):
            line.sub.append("the judge cannot tell; its owner is asked")
        for given in row.data.get("answers") or []:
            line.sub.append(
                f"{words.called(given['by'], self.world)}: `{phrases.short(words.answer(given['answer']), 40)}`"
            )
        passed = row.data.get("passed")
        if passed:
            line.sub.append(
                f"{sum(passed.values())} passed over: " + ", ".join(f"{n} {why}" for why, n in passed.items())
            )

    def _ended(self, op: Op, row: OpRow, line: Line) -> None:
        gate = row.data.get("gate")
        if gate and gate.get("by"):
            line.sub.append(
                f"{words.called(gate['by'], self.world)} chose `{gate.get('choice')}`"
                + (f": {gate['reason']}" if gate.get("reason") else "")
            )
        if row.data.get("reason"):
            line.sub.append(str(row.data["reason"]))
        if row.state != "done" or row.data.get("tolerated"):
            line.bad = row.data.get("error")
        if row.has_value and row.state == "done" and op.op not in ("say", "core.if", "flow.parallel"):
            line.value = value_words(row.value)
        if op.op == "expect" and row.state == "done" and isinstance(row.value, dict):
            sender = row.value.get("from")
            line.value = f"{row.value.get('stream', '')}" + (
                f" from {words.called(str(sender), self.world)}" if sender else ""
            )


def how_far(op: Op, row: OpRow) -> str | None:
    """How far a map or a repeat has come."""
    data = row.data
    if op.op == "core.map" and "size" in data:
        return f"{data['next'] - data['begun']} of {data['size']}"
    if op.op == "core.repeat" and data.get("next"):
        return f"round {data['next']} of {data['max']} at most"
    return None


def followed(plan: Plan) -> set[str]:
    """The ids that some expectation stands `after`."""
    return {name.rstrip("?") for op, _ in plan.walk() if op.op == "expect" for name in op.after}


def approver(catalog: Catalog, world: World, op: Op) -> str | None:
    """Who approves an op before it runs, None where nobody needs to."""
    if catalog.get(op.op) is None:
        return None
    outside = op.op == "save" and str(op.params.get("path", "")).startswith("/")
    found = approver_of(catalog, world, op.op, outside)
    return None if found is False else found if isinstance(found, str) else "anyone"


def value_words(value: Any, most: int = 80) -> str:
    """A value in a line: a short text as it is, a list by its size, a file by its name."""
    if isinstance(value, ErrorValue):
        return f"(error: {value.why})"
    if isinstance(value, dict) and value.keys() == {"name", "type", "size", "path"}:
        return phrases.short(str(value["name"]), most)
    if isinstance(value, dict) and value:
        return phrases.short(", ".join(f"{k} {value_words(v, 30)}" for k, v in value.items()), most)
    if isinstance(value, list) and len(text(value)) > most:
        return f"a list of {len(value)}"
    return phrases.short(text(value), most)


def long_value(value: Any) -> str:
    """A value on the record."""
    import json

    from bot.domain.values import plain

    said = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, indent=1)
    return said if len(said) <= VALUE_SHOWN else f"{said[:VALUE_SHOWN]}…"


def progress(plan: Plan, catalog: Catalog, rows: list[OpRow]) -> tuple[int, int]:
    """Steps that have ended with a value, and how many there are; settings are no steps."""
    steps = {op.place for op, _ in plan.walk() if (spec := catalog.get(op.op)) is None or spec.kind != "setting"}
    seen: dict[str, bool] = {}
    for row in rows:
        place = place_of(row.path)
        if place in steps:
            seen[place] = seen.get(place, True) and row.state == "done"
    return sum(seen.values()), len(steps)


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"
