"""One run's rows over dictionaries, and a driver that applies facts to them: the engine's own bench, without SQL.

`MemoryRows` is a value: it can be copied, compared, and counts what is read of it. `Drive` keeps what a step asks for
(deliveries, calls, timers, waits) and answers what can be known at once.
"""

from __future__ import annotations

import copy
import itertools
import json
from bisect import insort
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.catalog import Agent, Catalog, OpSpec, Person, StreamSpec, World
from bot.domain.changes import Call, CancelledUnder, Delivery, Reply, Step
from bot.domain.facts import (
    Accepted,
    Answered,
    Arrived,
    Continued,
    Delivered,
    Edited,
    Fact,
    Overdue,
    Returned,
)
from bot.domain.ids import below
from bot.domain.plan import Plan
from bot.domain.record import ENDED, PENDING, OpRow, RegionRow, RunRow
from bot.engine.apply import apply, apply_results
from bot.engine.index import PlanIndex, build
from bot.engine.view import View
from bot.language.read import read
from bot.language.write import from_program, to_program
from bot.ops.builtin import catalog

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANA, BO, JONAS = "ana@acme.de", "bo@acme.de", "jonas@acme.de"
WORLD = World(
    now=START,
    owner=BO,
    people=(
        Person(email=ANA, name="Ana"),
        Person(email=BO, name="Bo"),
        Person(email=JONAS, name="Jonas"),
    ),
    roles={"leads": (ANA, JONAS), "all": (ANA, BO, JONAS)},
    agents=(Agent(name="claude", default=True),),
    streams={name: StreamSpec(name=name) for name in ("camera", "door", "mail")},
    judge=True,
)


def tool(name: str, **more: Any) -> OpSpec:
    """A tool that takes anything; gated by nothing unless the world's policy says so."""
    return OpSpec(
        name=name, summary="A tool.", kind="effect", shape=f"{name} key: value", tool=True, destructive=False, **more
    )


TOOLS = (
    tool("fetch", read_only=True),
    tool("look", idempotent=True),
    tool("write"),
    tool("pay"),
    tool("deploy"),
)
CATALOG = catalog(TOOLS)


@dataclass(slots=True)
class MemoryRows:
    """`bot.engine.view.Rows` over dictionaries. `reads` counts the rows that were handed out."""

    ops: dict[str, OpRow] = field(default_factory=dict)
    regions: dict[str, RegionRow] = field(default_factory=dict)
    waits: dict[tuple[str, str], str | None] = field(default_factory=dict)
    stored: list[dict[str, Any]] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    past: list[dict[str, Any]] = field(default_factory=list)
    reads: int = 0
    by_region: dict[str, list[str]] = field(default_factory=dict)
    by_owner: dict[str, list[str]] = field(default_factory=dict)

    def op(self, path: str) -> OpRow | None:
        row = self.ops.get(path)
        return self._out(row) if row is not None else None

    def region(self, path: str) -> RegionRow | None:
        row = self.regions.get(path)
        return self._region(row) if row is not None else None

    def in_region(self, region: str, but: Container[str] = ()) -> list[OpRow]:
        return [self._out(row) for row in self._of(region) if row.path not in but]

    def ready(self, region: str) -> Iterator[OpRow]:
        return (self._out(row) for row in self._of(region) if row.state == "planned" and row.needs == 0 and row.open)

    def active(self, region: str) -> Iterator[OpRow]:
        return (self._out(row) for row in self._of(region) if row.own or row.hot > 0)

    def planned_at(self, place: str, top: str) -> list[OpRow]:
        return [
            self._out(row)
            for row in self.ops.values()
            if row.place == place and row.state == "planned" and below(row.path, top)
        ]

    def regions_of(self, owner: str, *, hot: bool = False, still_open: bool = False) -> list[RegionRow]:
        if not owner:
            return []
        rows = [self.regions[path] for path in self.by_owner.get(owner, ())]
        return [self._region(r) for r in rows if (not hot or r.hot > 0) and (not still_open or r.state != "closed")]

    def expecting(self, stream: str) -> list[str]:
        found = [path for path, name in self.waits if name == stream]
        self.reads += len(found)
        return found

    def events(self, streams: Sequence[str], key: str | None, since: datetime, until: datetime) -> list[dict[str, Any]]:
        found = [
            e
            for e in self.stored
            if e["stream"] in streams
            and (key is None or key in (e["from"], e.get("conversation")))
            and since <= datetime.fromisoformat(e["at"]) <= until
        ]
        self.reads += len(found)
        return [dict(e) for e in reversed(found)][:1000]

    def taker(self, event: str) -> str | None:
        return self.taken.get(event)

    def history(self) -> list[dict[str, Any]]:
        return copy.deepcopy(self.past)

    def instances(self, places: Sequence[str]) -> list[OpRow]:
        return [self._out(row) for row in self.ops.values() if row.place in places]

    def pending(self) -> list[OpRow]:
        return [self._out(row) for row in self.ops.values() if row.state in PENDING]

    def open_regions(self) -> list[str]:
        return [row.path for row in self.regions.values() if row.state == "open"]

    def planned_count(self) -> int:
        return len(self.ops)

    # --- writing ----------------------------------------------------------------------------------------------
    def put(self, step: Step) -> int:
        """Writes a step's rows; gives how many."""
        for change in step.cancelled:
            self._cancel_under(change)
        for region in step.regions:
            if region.new:
                assert region.path not in self.regions, f"region {region.path!r} is added twice"
                self.by_owner.setdefault(region.owner, []).append(region.path)
            self.regions[region.path] = replace(copy.deepcopy(region), new=False)
        for row in step.ops:
            if row.new:
                assert row.path not in self.ops, f"op {row.path} is added twice"
                insort(
                    self.by_region.setdefault(row.region, []),
                    row.path,
                    key=lambda p, r=row: r.rank if p == r.path else self.ops[p].rank,
                )
            self.ops[row.path] = replace(copy.deepcopy(row), new=False)
        for path in step.disarmed:
            self._disarm(path)
        for wait in step.waits:
            self.waits[(wait.path, wait.stream)] = wait.key
        for one in step.taken:
            self.taken[one.event] = one.path
        return len(step.ops) + len(step.regions)

    def _disarm(self, path: str) -> None:
        for key in [k for k in self.waits if k[0] == path]:
            del self.waits[key]

    def _cancel_under(self, change: CancelledUnder) -> None:
        def goes(path: str) -> bool:
            return below(path, change.path) and not any(below(path, k) or path == k for k in change.keep)

        for path, row in self.ops.items():
            if row.open and goes(path):
                self.ops[path] = replace(
                    row,
                    state=row.state if row.state in ("missed", "failed") else "cancelled",
                    open=False,
                    own=False,
                    hot=0,
                    unclosed=0,
                    due=None,
                    ended=row.ended or change.at,
                    rev=row.rev + 1,
                )
        for path, region in self.regions.items():
            if region.state != "closed" and goes(path):
                self.regions[path] = replace(
                    region, state="closed", unended=0, hot=0, error=region.error or "(stopped)"
                )
        for path, _ in list(self.waits):
            if goes(path):
                self._disarm(path)

    # --- what goes out is a copy ------------------------------------------------------------------------------
    def _of(self, region: str) -> list[OpRow]:
        return [self.ops[path] for path in self.by_region.get(region, ())]

    def _out(self, row: OpRow) -> OpRow:
        self.reads += 1
        return replace(row, data=copy.deepcopy(row.data), value=copy.deepcopy(row.value))

    def _region(self, row: RegionRow) -> RegionRow:
        self.reads += 1
        return replace(row, value=copy.deepcopy(row.value))


class Names(dict[str, Any]):
    """A record of CEL's in Python's eyes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def evaluated(text: str, names: Mapping[str, Any]) -> Any:
    """A few forms of CEL, read as Python: literals, names, members, `==`, `+`, `&&`, `||`. Raises on anything else."""

    def seen(value: Any) -> Any:
        if isinstance(value, Mapping):
            return Names({k: seen(v) for k, v in value.items()})
        return [seen(v) for v in value] if isinstance(value, list) else value

    written = text.replace("&&", " and ").replace("||", " or ")
    allowed = {"true": True, "false": False, "null": None, "size": len, "string": str, "__builtins__": {}}
    return eval(written, allowed, {k: seen(v) for k, v in names.items()})


def plan_of(script: Any, ops: Catalog = CATALOG) -> Plan:
    """The plan of a script, written as JSON data or as text of either surface."""
    text = script if isinstance(script, str) else json.dumps(script)
    found = read(text, ops)
    assert found.plan is not None and not found.problems, [p.message for p in found.problems]
    return found.plan


@dataclass(slots=True)
class Drive:
    """One run under a clock that is moved. `rest` does what can be done at once; everything else is a method.

    `held`: kinds of calls that are not answered by themselves. `returns`: what a tool gives, a value, an exception
    (its words are the error) or a function of (path, attempt).
    """

    script: Any
    world: World = WORLD
    ops: Catalog = CATALOG
    held: frozenset[str] = frozenset({"tool", "agent", "judge", "each", "run", "replan"})
    returns: dict[str, Any] = field(default_factory=dict)
    undelivered: frozenset[str] = frozenset()
    names: dict[str, Any] = field(default_factory=dict)
    customer: dict[str, Any] | None = None
    now: datetime = START
    check: Callable[[Drive, Step, dict[str, OpRow]], None] | None = None
    accept: bool = True
    rows: MemoryRows = field(default_factory=MemoryRows)
    run: RunRow = field(init=False)
    index: PlanIndex = field(init=False)
    plan: Plan = field(init=False)
    calls: dict[tuple[str, int, str, int], Call] = field(default_factory=dict)
    cards: list[Delivery] = field(default_factory=list)
    queue: list[Delivery] = field(default_factory=list)
    timers: dict[tuple[str, str], datetime] = field(default_factory=dict)
    bound: dict[str, Any] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    edits: list[dict[str, Any]] = field(default_factory=list)
    made: set[tuple[str, int, str, int]] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    written: int = 0
    _events: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.plan = self.script if isinstance(self.script, Plan) else plan_of(self.script, self.ops)
        self.plan = from_program(json.loads(json.dumps(to_program(self.plan))), self.ops)
        self.index = build(self.plan, self.ops)
        self.run = RunRow(
            id="r1",
            job="job",
            owner=self.world.owner,
            plan="",
            created=self.now,
            names=dict(self.names),
            customer=self.customer,
        )
        if self.accept:
            self.fact(Accepted(at=self.now))
            self.rest()

    # --- facts ------------------------------------------------------------------------------------------------
    def fact(self, fact: Fact) -> Step:
        """Applies one fact and writes its step, with whatever it left for later."""
        step = self._apply(fact)
        while "more" in self.run.data:
            self._apply(Continued(at=fact.at))
        return step

    def _apply(self, fact: Fact) -> Step:
        while True:
            step = apply(self.view(fact.at), fact)
            if not step.where:
                break
            assert isinstance(fact, Arrived)
            fact = replace(fact, passes={**fact.passes, **{p: self._where(*w) for p, w in step.where.items()}})
        self.facts.append(fact)
        before = dict(self.rows.ops)
        self._write(step)
        if self.check is not None:
            self.check(self, step, before)
        return step

    def results(self, facts: list[Returned]) -> None:
        """Applies results as one step, as far as they go together, and so on."""
        while facts:
            step, taken = apply_results(self.view(facts[0].at), facts)
            self._write(step)
            while "more" in self.run.data:
                self._apply(Continued(at=facts[0].at))
            facts = facts[taken:]

    def view(self, at: datetime | None = None) -> View:
        """What the engine may look at, at this instant; its run may be changed."""
        world = replace(self.world, now=at or self.now, owner=self.run.owner, customer=self.customer)
        return View(run=copy.deepcopy(self.run), rows=self.rows, index=self.index, world=world, secret="s")

    def _where(self, text: str, names: dict[str, Any]) -> bool | str:
        try:
            return bool(evaluated(text, names))
        except Exception as fault:
            return str(fault)

    def _write(self, step: Step) -> None:
        assert step.run is not None
        self.run = step.run
        for row in sorted(step.ops, key=lambda r: r.path):
            had = self.rows.ops.get(row.path)
            if row.started is not None and (had is None or had.started is None):
                self.started.append(row.path)
        for change in step.cancelled:
            for table in (self.timers,):
                for key in [k for k in table if below(k[0], change.path) and not _spared(k[0], change)]:
                    del table[key]
            for key in [k for k in self.calls if below(k[0], change.path) and not _spared(k[0], change)]:
                del self.calls[key]
        self.written = self.rows.put(step)
        for path in step.disarmed:
            for key in [k for k in self.timers if k[0] == path]:
                del self.timers[key]
        for timer in step.timers:
            if timer.due is None:
                self.timers.pop((timer.path, timer.kind), None)
            else:
                self.timers[(timer.path, timer.kind)] = timer.due
        self.outcomes += [(s.path, s.outcome) for s in step.settled]
        for delivery in step.deliveries:
            assert delivery.key not in self.ids, f"{delivery.key} is delivered twice"
            self.ids.add(delivery.key)
            self.cards.append(delivery)
            self.queue.append(delivery)
        for path in step.dropped_calls:
            for key in [k for k in self.calls if k[0] == path]:
                del self.calls[key]
        for call in step.calls:
            key = (call.path, call.attempt, call.kind, call.n)
            assert key not in self.made, f"{key} is called twice"
            self.made.add(key)
            self.calls[key] = call
        self.bound |= {b.name: b.value for b in step.bound}
        self.replies += step.replies
        self.edits += [dict(e.data["edit"]) for e in step.entries if e.what == "edited"]
        if step.plan is not None:
            self.plan = from_program(json.loads(json.dumps(to_program(step.plan))), self.ops)
            self.index = build(self.plan, self.ops)
        if step.ended:
            self.rows.waits.clear()

    # --- what happens by itself -------------------------------------------------------------------------------
    def rest(self) -> Drive:
        """Delivers what is queued and answers every call that is not held, until nothing is left."""
        while True:
            if self.queue:
                self.deliver(self.queue.pop(0))
                continue
            ready = [key for key, call in self.calls.items() if self._known(call)]
            if not ready:
                return self
            self.perform(min(ready, key=lambda k: (k[0], k[3])))

    def _known(self, call: Call) -> bool:
        if call.kind == "tool":
            return call.body["tool"] in self.returns
        return call.kind in self.returns or call.kind not in self.held

    def deliver(self, delivery: Delivery) -> None:
        lost = delivery.to in self.undelivered
        if delivery.opens or lost:
            self.fact(
                Delivered(
                    at=self.now,
                    path=delivery.path,
                    kind=delivery.kind,
                    to=delivery.to,
                    attempt=delivery.attempt,
                    error="no such chat" if lost else None,
                )
            )

    def perform(self, key: tuple[str, int, str, int]) -> None:
        """Answers one call as `returns` says, or as the sandbox would."""
        call = self.calls.pop(key)
        match call.kind:
            case "cel":
                try:
                    self._returned(call, value=evaluated(call.body["text"], call.body["names"]))
                except Exception as fault:
                    self._returned(call, error=str(fault))
            case "early":
                for ident in call.body["events"]:
                    event = next(e for e in self.rows.stored if e["id"] == ident)
                    self.fact(
                        Arrived(
                            at=datetime.fromisoformat(event["at"]),
                            now=self.now,
                            stream=event["stream"],
                            event=event,
                            only=call.path,
                        )
                    )
                self._returned(call)
            case "stop-run":
                pass
            case _:
                given = self.returns.get(call.body.get("tool") or call.kind)
                value = given(call.path, call.attempt) if callable(given) else given
                if isinstance(value, Exception):
                    self._returned(call, error=str(value))
                else:
                    self._returned(call, value=value, **({"who": call.body["who"]} if call.kind == "agent" else {}))

    def _returned(
        self, call: Call, *, value: Any = None, error: str | None = None, lost: bool = False, **extra: Any
    ) -> Step:
        return self.fact(
            Returned(
                at=self.now,
                path=call.path,
                attempt=call.attempt,
                kind=call.kind,
                value=value,
                error=error,
                lost=lost,
                extra=extra,
            )
        )

    # --- what people and the world do -------------------------------------------------------------------------
    def path(self, named: str) -> str:
        """The path of an op by path or id: the first that is open."""
        if named in self.rows.ops:
            return named
        found = [r for r in self.rows.ops.values() if r.id == named]
        assert found, f"there is no op {named}"
        return min(found, key=lambda r: (not r.open, r.path)).path

    def answer(self, named: str, value: Any, by: str | None = ANA, **more: Any) -> Step:
        step = self.fact(Answered(at=self.now, path=self.path(named), value=value, by=by, **more))
        self.rest()
        return step

    def event(self, stream: str, data: Any = None, sender: str | None = None, ident: str | None = None) -> Step:
        event = {
            "id": ident or f"{stream}/e{next(self._events)}",
            "stream": stream,
            "from": sender,
            "conversation": None,
            "at": self.now.isoformat(),
            "event": data or {},
        }
        self.rows.stored.append(event)
        step = self.fact(Arrived(at=self.now, stream=stream, event=event))
        self.rest()
        return step

    def returned(
        self, named: str, value: Any = None, *, error: str | None = None, lost: bool = False, **extra: Any
    ) -> Step:
        """The call that an op has in flight comes back."""
        path = self.path(named)
        key = next((k for k in self.calls if k[0] == path), None)
        assert key is not None, f"{path} has no call in flight"
        call = self.calls.pop(key)
        if call.kind == "agent":
            extra.setdefault("who", call.body["who"])
        step = self._returned(call, value=value, error=error, lost=lost, **extra)
        self.rest()
        return step

    def edit(self, by: str | None = None, why: str | None = None, **edit: Any) -> Step:
        step = self.fact(Edited(at=self.now, by=by or self.world.owner, edit=edit, why=why))
        self.rest()
        return step

    def move(self, **span: float) -> Drive:
        """Moves the clock, and applies what comes due on the way, in due order."""
        until = self.now + timedelta(**span)
        while due := [(at, key) for key, at in self.timers.items() if at <= until]:
            self.strike(*min(due))
        self.now = until
        return self

    def strike(self, at: datetime, key: tuple[str, str]) -> None:
        self.now = max(self.now, at)
        self.timers.pop(key)
        self.fact(Overdue(at=self.now, path=key[0], kind=key[1], due=at))
        self.rest()

    # --- looking ----------------------------------------------------------------------------------------------
    def row(self, named: str) -> OpRow:
        return self.rows.ops[self.path(named)]

    def state(self, named: str) -> str:
        return self.row(named).state

    def value(self, named: str) -> Any:
        return self.row(named).value

    def states(self) -> dict[str, str]:
        return {path: row.state for path, row in sorted(self.rows.ops.items())}

    def said(self, kind: str | None = None) -> list[tuple[str, str]]:
        """(to, text) of what went out."""
        return [(d.to, d.card.get("text", "")) for d in self.cards if kind is None or d.kind == kind]

    @property
    def reply(self) -> str:
        return self.replies[-1].text


def _spared(path: str, change: CancelledUnder) -> bool:
    return any(below(path, k) or path == k for k in change.keep)


# --- what must always hold --------------------------------------------------------------------------------------------
def counters(drive: Drive) -> list[str]:
    """Every counter that differs from what the rows themselves say."""
    rows, faults = drive.rows, list[str]()

    def same(what: str, stored: Any, counted: Any) -> None:
        if stored != counted:
            faults.append(f"{what} is {stored}, counted {counted}")

    for path, region in rows.regions.items():
        inside = [rows.ops[p] for p in rows.by_region.get(path, ())]
        if region.state == "closed":
            same(f"region {path!r}: open ops", [r.path for r in inside if r.open], [])
            same(f"region {path!r}: hot", region.hot, 0)
            continue
        same(f"region {path!r}: unended", region.unended, sum(r.open for r in inside))
        same(f"region {path!r}: hot", region.hot, sum(r.active for r in inside))
    for path, row in rows.ops.items():
        own = [rows.regions[p] for p in rows.by_owner.get(path, ())]
        same(f"op {path}: hot", row.hot, sum(r.hot > 0 for r in own))
        if row.open:
            same(f"op {path}: unclosed", row.unclosed, sum(r.state not in ("closed", "ahead") for r in own))
        else:
            same(f"op {path}: has ended, open regions", [r.path for r in own if r.state != "closed"], [])
            same(f"op {path}: has ended, own", row.own, False)
        if row.state == "planned" and path.count("[") == row.place.count("[]") and row.place in drive.index.primary:
            open_needs = set[str]()
            for _, first in drive.index.primary[row.place]:
                other = rows.ops.get(_instance(first, path))
                if other is None or other.open:
                    open_needs.add(first)
            same(f"op {path}: needs", row.needs, len(open_needs))
    return faults


def _instance(place: str, reader: str) -> str:
    from bot.domain.ids import indexes_of, instance

    return instance(place, indexes_of(reader))


def standing(drive: Drive) -> list[str]:
    """What must hold whenever a fact has been applied to its end, besides the counters."""
    rows, run, faults = drive.rows, drive.run, list[str]()
    for row in rows.ops.values():
        if (
            row.open
            and row.state in ENDED
            and not row.unclosed
            and not row.data.get("replanning")
            and not row.data.get("gate")
        ):
            faults.append(f"{row.path} is {row.state} but open")
        if not row.open and row.state not in ENDED and not row.data.get("detached"):
            faults.append(f"{row.path} is closed but {row.state}")
        if row.state in ("waiting", "gated", "uncertain") and row.open and not _wakes(drive, row):
            faults.append(f"{row.path} is {row.state} and nothing would wake it")
    if run.ended is not None:
        faults += [
            f"the run has ended, region {r.path!r} is {r.state}" for r in rows.regions.values() if r.state != "closed"
        ]
        faults += [f"the run has ended, {key} is armed" for key in drive.timers if not _detached(rows, key[0])]
        return faults
    if run.state == "paused":
        return faults
    alive = any(r.open and (r.active or r.state in PENDING or r.data.get("gate")) for r in rows.ops.values())
    if not alive:
        faults.append(f"nothing is active and nothing waits, but the run is {run.state}")
    if run.state == "running":
        faults += [f"{path} may start and has not" for path in startable(rows)]
    return faults


def startable(rows: MemoryRows) -> list[str]:
    """Planned ops that nothing holds."""
    found: list[str] = []
    for path, region in rows.regions.items():
        if region.state != "open":
            continue
        for row in (rows.ops[p] for p in rows.by_region.get(path, ())):
            if row.active:
                break
            if row.state == "planned" and row.needs == 0:
                found.append(row.path)
                break
    return found


def _wakes(drive: Drive, row: OpRow) -> bool:
    if any(path == row.path for path, _ in drive.timers):
        return True
    return any(key[0] == row.path for key in drive.calls)


def _detached(rows: MemoryRows, path: str) -> bool:
    row = rows.ops.get(path)
    return row is not None and bool(row.data.get("detached"))


def moved_on(drive: Drive, step: Step, before: dict[str, OpRow]) -> list[str]:
    """What a step may not do: change what has ended, start below its needs, past an active op or in a failing region."""
    faults: list[str] = []
    for row in step.ops:
        had = before.get(row.path)
        if had is not None and had.state in ENDED and not had.open:
            again = isinstance(drive.facts[-1], Edited) and drive.facts[-1].edit.get("run") == "retry"
            if (
                (row.state, row.value, row.ended) != (had.state, had.value, had.ended)
                and not had.data.get("detached")
                and not again
            ):
                faults.append(f"{row.path} had ended as {had.state} and is {row.state} now")
        if row.started is not None and (had is None or had.started is None):
            faults += _started(drive, row, before)
    for row in drive.rows.ops.values():
        most = drive.index.ops[row.place].params.get("maxConcurrency") if row.place in drive.index.ops else None
        if row.op == "core.map" and most:
            begun = sum(
                drive.rows.regions[p].state not in ("closed", "ahead")
                for p in drive.rows.by_owner.get(row.path, ())
                if p.endswith("]")
            )
            if begun > most:
                faults.append(f"{row.path} has {begun} items begun, {most} at most")
    return faults


def _started(drive: Drive, row: OpRow, before: dict[str, OpRow]) -> list[str]:
    faults: list[str] = []
    for need, first in drive.index.primary.get(row.place, ()):
        other = drive.rows.ops.get(_instance(first, row.path))
        if other is None or other.open:
            faults.append(f"{row.path} started before {need.name} ended")
    for path in drive.rows.by_region.get(row.region, ()):
        above, had = drive.rows.ops[path], before.get(path)
        if above.rank < row.rank and above.active and had is not None and had.active and had.started == above.started:
            faults.append(f"{row.path} overtook {path}")
    return faults


def always(drive: Drive, step: Step, before: dict[str, OpRow]) -> None:
    """The `check` that holds all of it after every step (not between the parts of a long one)."""
    faults = moved_on(drive, step, before)
    if "more" not in drive.run.data:
        faults += counters(drive) + standing(drive)
    assert not faults, f"after {drive.facts[-1]}:\n  " + "\n  ".join(faults)
