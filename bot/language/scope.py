"""What each name means at each op of a plan, and what each op needs before it may start.

Pure and without a source: the checks ask it what to refuse, the engine what to wait for and where a value is.
A name that nothing binds resolves to `outside`; whether anything there has it is for the checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from bot.domain.catalog import Catalog, OpSpec
from bot.domain.plan import Default, Op, Plan, Region
from bot.language import cel, jq
from bot.language.refs import Step
from bot.language.refs import refs as references

FIXED = frozenset({"owner", "job", "run", "now", "templates", "history", "ops"})
"""Names the language binds itself."""

BRANCHES = ("onMiss", "onError")
BUDGET_WAITS = 64
"""An agent call under a budget waits for at most so many calls above it."""

_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

BindingKind = Literal["op", "item", "index", "last", "input", "fixed", "outside", "event"]
Via = Literal["ref", "after", "ops", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a name means at a place.

    `places`: of "op", the op that binds it and those that bind it again in its `onMiss` or `onError`, in written
    order: the last that has a value counts. `owner`: of "item", "index" and "last", the op whose element it is.
    `unseen`: an op binds it, but is not seen from here (its own `onMiss` before it is bound again).
    """

    kind: BindingKind
    places: tuple[str, ...] = ()
    owner: str = ""
    unseen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an op waits for: `binders[0]` to have ended, for those outside it. `value`: with a value, its own or that
    of one of the other binders; else the op is skipped."""

    name: str
    binders: tuple[str, ...]
    value: bool
    via: Via


class Use(NamedTuple):
    """One mention of a name in an op's own fields.

    `field`: the field or parameter; `keys` lead inside it to the text, in which it stands from `start` to `end`.
    `path`: name and static steps. `optional`: `$x?`. `ends`: of CEL, where each step ends.
    `tested`: the last step may be absent (`has(…)`, `$a.b?`).
    """

    field: str
    keys: tuple[str | int, ...]
    path: tuple[str | int, ...]
    start: int
    end: int
    how: Literal["ref", "cel", "jq", "after"]
    optional: bool = False
    tested: bool = False
    ends: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return str(self.path[0])


Entry = tuple[int, tuple[str, ...]]
"""Where in its region an op stands, and the places that bind its id."""


@dataclass(slots=True)
class Scope:
    """One region's names. `at`: where in `parent` its op stands; `ids` every id in it, also of ops that bind
    nothing; `bound` name → (position, places), in order."""

    region: Region
    owner: Op | None
    kind: str
    """`then`, `body`, `onMiss`, a branch's name …; "" for the program, `onError` for its error region."""
    parent: Scope | None
    at: int
    extra: dict[str, Binding] = field(default_factory=dict[str, Binding])
    bound: dict[str, list[Entry]] = field(default_factory=dict[str, "list[Entry]"])
    ids: dict[str, list[Entry]] = field(default_factory=dict[str, "list[Entry]"])

    @property
    def branch(self) -> bool:
        """It is the `onMiss` or `onError` of an op."""
        return self.owner is not None and self.kind in BRANCHES


_OUTSIDE = Binding(kind="outside")
_INPUT = Binding(kind="input")
_FIXED = Binding(kind="fixed")
_EVENT = Binding(kind="event")
_END = 1 << 60


class Scopes:
    """The names of one plan. Places that do not exist raise KeyError."""

    def __init__(self, plan: Plan, catalog: Catalog) -> None:
        self.plan = plan
        self.catalog = catalog
        self.ops: dict[str, Op] = {}
        self.scope_of: dict[str, Scope] = {}
        self.position: dict[str, int] = {}
        self.order: dict[str, int] = {}
        """Every op's number in written order."""
        self.scopes: dict[str, Scope] = {}
        self._inputs = frozenset(i.name for i in plan.inputs or ())
        self._uses: dict[str, tuple[Use, ...]] = {}
        self._needs: dict[str, tuple[Need, ...]] = {}
        self.in_force: dict[str, tuple[str, ...]] = {}
        self._binders: dict[str, list[str]] = {}
        self._known = 0
        self.calls_above: dict[str, tuple[str, ...]] = {}

    def needs(self, place: str) -> tuple[Need, ...]:
        """What an op waits for, in the order its fields name it, each binder once."""
        found = self._needs.get(place)
        if found is None:
            found = self._needs[place] = tuple(self._needed(self.ops[place]))
        return found

    def uses(self, place: str) -> tuple[Use, ...]:
        """Every mention of a name in an op's own fields (not in its regions)."""
        found = self._uses.get(place)
        if found is None:
            op = self.ops[place]
            found = self._uses[place] = tuple(uses(op, self.catalog.get(op.op)))
        return found

    def settings(self, place: str) -> tuple[str, ...]:
        """The `model` and `budget` ops in force at a place, outer ones first."""
        return self.in_force.get(place, ())

    def resolve(self, place: str, name: str, field: str | None = None) -> Binding:
        """What a name means in an op's own fields. `field` tells `where`, `prompt` and `until` apart, which see
        `event`, `it` and the body's names besides."""
        op = self.ops[place]
        if field == "where" and name == "event" and op.op == "expect":
            return _EVENT
        if field == "prompt" and name == "it" and op.op == "each":
            return Binding(kind="item", owner=place)
        if field == "until" and "body" in op.regions:
            return self._seen(self.scopes[op.regions["body"].place], _END, name)
        found = self._seen(self.scope_of[place], self.position[place], name)
        if field is None and found.kind == "outside" and not found.unseen:
            if name == "event" and op.op == "expect":
                return _EVENT
            if name == "it" and op.op == "each":
                return Binding(kind="item", owner=place)
        return found

    def record(self, place: str, name: str, field: str | None = None) -> tuple[str, ...]:
        """The ops whose record `ops.name` is at a place; none where no op of that name is seen."""
        op = self.ops[place]
        if field == "until" and "body" in op.regions:
            return self._named(self.scopes[op.regions["body"].place], _END, name)
        return self._named(self.scope_of[place], self.position[place], name)

    def follows(self, place: str, after: str) -> tuple[str, ...]:
        """The ops that one entry of `after` names (its `?` apart), or none where no op above is called so."""
        wanted = after.removesuffix("?")
        if _IDENT.match(wanted):
            found = self.resolve(place, wanted)
            if found.kind == "op":
                return found.places
            named = self._named(self.scope_of[place], self.position[place], wanted)
            # Inside its own branch an op's record is there, its value is not.
            return named if not found.unseen or after.endswith("?") else ()
        target = self.placed(wanted)
        if target is None:
            return ()
        scope: Scope | None = self.scope_of[place]
        at = self.position[place]
        while scope is not None:
            if self.scope_of[target] is scope:
                return (target,) if self.position[target] < at else ()
            scope, at = scope.parent, scope.at
        return ()

    def placed(self, path: str) -> str | None:
        """The place of an op that a path names; its first part may be an id (`pick.onMiss.2`)."""
        if path in self.ops:
            return path
        head, _, rest = path.partition(".")
        for place, op in self.ops.items():
            if rest and op.id == head and f"{place}.{rest}" in self.ops:
                return f"{place}.{rest}"
        return None

    def visible(self, place: str, field: str | None = None) -> Iterator[tuple[str, Binding]]:
        """Every name that the plan itself binds and that is seen at a place, nearest first."""
        op = self.ops[place]
        scope: Scope | None = self.scope_of[place]
        at = self.position[place]
        if field == "until" and "body" in op.regions:
            scope, at = self.scopes[op.regions["body"].place], _END
        hidden: set[str] = set()
        while scope is not None:
            for name, entries in scope.bound.items():
                if name not in hidden and (places := _above(entries, at)):
                    yield name, Binding(kind="op", places=places)
            yield from ((name, binding) for name, binding in scope.extra.items() if name not in hidden)
            if scope.branch and scope.owner is not None and scope.owner.id:
                hidden.add(scope.owner.id)
            scope, at = scope.parent, scope.at
        for name in self._inputs:
            yield name, _INPUT

    def binders(self, name: str) -> list[str]:
        """Every op of the plan with that id, in written order, wherever it stands."""
        if self._known != len(self.ops):
            self._binders = {}
            for place, op in self.ops.items():
                if op.id is not None:
                    self._binders.setdefault(op.id, []).append(place)
            self._known = len(self.ops)
        return self._binders.get(name, [])

    def _seen(self, scope: Scope | None, at: int, name: str) -> Binding:
        while scope is not None:
            entries = scope.bound.get(name)
            if entries and (places := _above(entries, at)):
                return Binding(kind="op", places=places)
            if name in scope.extra:
                return scope.extra[name]
            if scope.branch and scope.owner is not None and scope.owner.id == name:
                return Binding(kind="outside", places=(scope.owner.place,), unseen=True)
            scope, at = scope.parent, scope.at
        if name in self._inputs:
            return _INPUT
        if name in FIXED or (name == "customer" and not self.plan.sealed):
            return _FIXED
        return _OUTSIDE

    def _named(self, scope: Scope | None, at: int, name: str) -> tuple[str, ...]:
        while scope is not None:
            entries = scope.ids.get(name)
            if entries and (places := _above(entries, at)):
                return places
            if scope.branch and scope.owner is not None and scope.owner.id == name:
                return (scope.owner.place,)
            scope, at = scope.parent, scope.at
        return ()

    def _needed(self, op: Op) -> list[Need]:
        found: dict[tuple[str, ...], Need] = {}

        def add(name: str, binders: tuple[str, ...], value: bool, via: Via) -> None:
            if not binders or binders[0] == op.place:
                return
            had = found.get(binders)
            if had is None:
                found[binders] = Need(name=name, binders=binders, value=value, via=via)
            elif value and not had.value:
                found[binders] = Need(name=name, binders=binders, value=True, via=via)

        body = op.regions["body"].place + "." if "body" in op.regions else ""
        for use in self.uses(op.place):
            if use.how == "after":
                name = use.name
                add(name.removesuffix("?"), self.follows(op.place, name), not name.endswith("?"), "after")
                continue
            inner = body if use.field == "until" and op.op == "core.repeat" else ""
            if use.name == "ops" and self.resolve(op.place, "ops", use.field).kind == "fixed":
                if len(use.path) > 1 and isinstance(use.path[1], str):
                    places = self.record(op.place, use.path[1], use.field)
                    if not (inner and places and _inside(places[0], op.regions["body"].place)):
                        add(use.path[1], places, False, "ops")
                continue
            binding = self.resolve(op.place, use.name, use.field)
            if binding.kind == "op" and not (inner and _inside(binding.places[0], op.regions["body"].place)):
                add(use.name, binding.places, not use.optional, "ref")
        if calls_agent(op, self.catalog.get(op.op)):
            for place in self.settings(op.place):
                if self.needs(place):
                    add(self.ops[place].op, (place,), False, "budget")
            for place in self.calls_above.get(op.place, ()):
                add(self.ops[place].id or place, (place,), False, "budget")
        return list(found.values())


def analyse(plan: Plan, catalog: Catalog) -> Scopes:
    """The names of a plan. It need not have passed the checks."""
    scopes = Scopes(plan, catalog)
    program = _enter(scopes, plan.program, None, "", None, 0)
    if plan.on_error is not None:
        _enter(scopes, plan.on_error, None, "onError", program, _END)
    _settings(scopes)
    return scopes


def calls_agent(op: Op, spec: OpSpec | None) -> bool:
    """Whether an op puts an agent on work, as far as its addressee is written literally."""
    if spec is not None and spec.agent:
        return True
    if op.op != "ask":
        return False
    if op.to is None:
        return True
    named: list[Any] = op.to if isinstance(op.to, list) else [op.to]
    return any(isinstance(to, str) and (to == "agent" or to.startswith("agent:")) for to in named)


def uses(op: Op, spec: OpSpec | None) -> Iterator[Use]:
    """Every mention of a name in an op's own fields, in the order addressee, parameters, window, `after`.
    An expression that does not read mentions nothing."""
    yield from _templates("to", op.to)
    yield from _templates("from", op.from_)
    expressions: Mapping[str, str] = spec.expressions if spec is not None else {}
    for name, value in op.params.items():
        language = expressions.get(name)
        if language is None or not isinstance(value, str):
            if name != "as" or spec is None or spec.tool:
                yield from _templates(name, value)
        elif language == "cel":
            yield from _cel(name, value)
        else:
            for variable in jq.free_variables(value):
                yield Use(name, (), (variable.name,), variable.start, variable.end, "jq")
    yield from _templates("within", op.within)
    yield from _templates("by", op.by)
    if isinstance(op.on_error, Default):
        for use in _templates("onError", op.on_error.value):
            yield use._replace(keys=("default", *use.keys))
    for at, after in enumerate(op.after):
        yield Use("after", (at,), (after,), 0, len(after), "after")


def item_name(op: Op) -> str:
    """What the element of a map is called in its body."""
    written = op.params.get("as")
    return written if isinstance(written, str) and _IDENT.match(written) else "item"


def _cel(name: str, value: str) -> Iterator[Use]:
    try:
        read = cel.parse(value)
    except cel.CelSyntax:
        return
    for found in read.names:
        yield Use(name, (), found.path, found.start, found.end, "cel", False, found.tested, found.ends)


def _templates(name: str, value: Any) -> Iterator[Use]:
    if value is None or isinstance(value, (bool, int, float)):
        return
    for keys, ref in references(value):
        yield Use(
            name,
            keys,
            (ref.name, *_static(ref.steps)),
            ref.start,
            ref.end,
            "ref",
            ref.optional,
            bool(ref.steps) and ref.steps[-1].optional,
        )


def _static(steps: tuple[Step, ...]) -> Iterator[str | int]:
    return (step.key for step in steps)


def _inside(place: str, region: str) -> bool:
    return place.startswith((region + ".", region + "["))


def _above(entries: list[Entry], at: int) -> tuple[str, ...]:
    """The places of the last entry above a position."""
    for position, places in reversed(entries):
        if position < at:
            return places
    return ()


def _enter(scopes: Scopes, region: Region, owner: Op | None, kind: str, parent: Scope | None, at: int) -> Scope:
    scope = Scope(region=region, owner=owner, kind=kind, parent=parent, at=at)
    scopes.scopes[region.place] = scope
    if owner is not None and kind == "body":
        if owner.op == "core.map":
            scope.extra[item_name(owner)] = Binding(kind="item", owner=owner.place)
            scope.extra["index"] = Binding(kind="index", owner=owner.place)
        elif owner.op == "core.repeat":
            scope.extra["last"] = Binding(kind="last", owner=owner.place)
    for position, op in enumerate(region.ops):
        scopes.ops[op.place] = op
        scopes.order[op.place] = len(scopes.order)
        scopes.scope_of[op.place] = scope
        scopes.position[op.place] = position
        for name, inner in op.inner():
            _enter(scopes, inner, op, name, scope, position)
        if op.id is None:
            continue
        spec = scopes.catalog.get(op.op)
        places = (op.place, *(again.place for again in rebinders(op)))
        scope.ids.setdefault(op.id, []).append((position, places))
        if spec is None or spec.binds:
            scope.bound.setdefault(op.id, []).append((position, places))
    return scope


def rebinders(op: Op) -> Iterator[Op]:
    """The ops inside the `onMiss` and `onError` of `op` that bind its name again, in written order (not those in a
    map or a parallel in there, which may not)."""
    regions = [inner for name, inner in op.inner() if name in BRANCHES]
    for region in regions:
        yield from _binding(region, op.id)


def _binding(region: Region, name: str | None) -> Iterator[Op]:
    for op in region.ops:
        if op.id == name:
            yield op
        for kind, inner in op.inner():
            if kind in BRANCHES or op.op not in ("core.map", "flow.parallel"):
                yield from _binding(inner, name)


def _settings(scopes: Scopes) -> None:
    """Which settings are in force where, and which agent calls stand above each call under a budget."""
    if not any(op.op in ("model", "budget") for op in scopes.ops.values()):
        return

    def visit(region: Region, outer: tuple[str, ...], budgets: list[tuple[str, list[str]]]) -> bool:
        """`budgets`: those in force, with what stands above under each, as ops that a call here may wait for."""
        here = list(outer)
        mine = [(place, list(above)) for place, above in budgets]
        any_call = False
        for op in region.ops:
            if op.op in ("model", "budget"):
                here.append(op.place)
                if op.op == "budget":
                    mine.append((op.place, []))
                continue
            call = calls_agent(op, scopes.catalog.get(op.op))
            scopes.in_force[op.place] = tuple(here)
            if call and mine:
                above = dict.fromkeys(place for _, places in mine for place in places)
                scopes.calls_above[op.place] = tuple(above)[-BUDGET_WAITS:]
            for _, inner in op.inner():
                call = visit(inner, tuple(here), mine) or call
            if call:
                any_call = True
                for _, places in mine:
                    places.append(op.place)
        return any_call

    visit(scopes.plan.program, (), [])
    if scopes.plan.on_error is not None:
        visit(scopes.plan.on_error, (), [])
