"""What a run may do before it does it: how many ops, who is asked, which writes, how many agent calls, until when."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.domain.catalog import Catalog, OpSpec, World
from bot.domain.plan import Op, Plan, Region
from bot.language import addressees, durations
from bot.language.check.context import Checking, streams_of
from bot.language.refs import has_refs, parse
from bot.language.scope import calls_agent
from bot.language.types import is_list

SENDING = timedelta(minutes=15)
"""How long a card may be on its way before that is a failure; a window counts from its delivery."""


def preflight(c: Checking) -> dict[str, Any]:
    """`ops`, `addressees` (as people know them), `writes` (`{op, path, approver}`), `agent_calls` and `latest_end`
    (None where it cannot be said), `deliveries` (how many messages at most, None likewise)."""
    return {
        "ops": len(c.scopes.ops),
        "addressees": _addressees(c),
        "writes": [
            {"op": op.op, "path": place, "approver": approver(c, op, spec)}
            for place, op, spec in c.ops()
            if writes(op, spec)
        ],
        "agent_calls": total(c, calls_of),
        "latest_end": latest_end(c),
        "deliveries": total(c, _messages),
    }


def writes(op: Op, spec: OpSpec) -> bool:
    """Whether an op changes something outside the run and the job's folder."""
    if spec.tool:
        return not spec.read_only
    if op.op == "save":
        path = op.params.get("path")
        return isinstance(path, str) and path.startswith("/")
    return False


def outward(op: Op, spec: OpSpec) -> bool:
    """Whether an op writes, or is a message to a customer."""
    return writes(op, spec) or spec.channel is not None or (op.op == "say" and _to_customer(op))


def acts(plan: Plan, catalog: Catalog, world: World) -> bool:
    """Whether a script does anything outside by itself: a write, words to anybody but the people here, another
    script's start, its own starts later on. What only its values will tell counts as if it did."""
    return bool(plan.on) or any(_acts(op, catalog.get(op.op), world) for op, _ in plan.walk())


def _acts(op: Op, spec: OpSpec | None, world: World) -> bool:
    if spec is None or op.op == "run" or outward(op, spec):
        return True
    if op.op == "save":
        return has_refs(op.params.get("path"))
    return op.op in ("ask", "say") and any(
        not _is_ours(to, world) for to in (op.to if is_list(op.to) else [op.to]) if to is not None
    )


def _is_ours(to: Any, world: World) -> bool:
    if not isinstance(to, str) or has_refs(to):
        return False
    try:
        (who,) = addressees.find(to, world)
    except ValueError:
        return False
    return who.kind in ("role", "agent") or (who.kind == "person" and who.known)


def _to_customer(op: Op) -> bool:
    to = op.to if is_list(op.to) else [op.to]
    return any(
        isinstance(t, str)
        and (t.startswith("$customer") or t.partition(":")[0] in ("line", "telegram", "slack", "web"))
        for t in to
    )


def gated(c: Checking, op: Op, spec: OpSpec) -> bool:
    """Whether policy puts an approval before an op."""
    policy = c.world.policy.approve
    if policy is not None:
        return any(fnmatch.fnmatchcase(op.op, pattern) for pattern in policy)
    if spec.tool:
        return not spec.read_only and spec.destructive is not False
    return writes(op, spec)


def approver(c: Checking, op: Op, spec: OpSpec) -> str | None:
    """Who approves an op: as policy names them, `anyone` where it names nobody, None where nothing is gated."""
    if not gated(c, op, spec):
        return None
    policy = c.world.policy.approve or {}
    named = next((who for pattern, who in policy.items() if fnmatch.fnmatchcase(op.op, pattern)), None)
    return named or "anyone"


def _addressees(c: Checking) -> list[str]:
    found: dict[str, None] = {}
    for _, op, spec in c.ops():
        if "to" not in spec.fields or spec.channel is not None:
            continue
        for to in op.to if is_list(op.to) else [op.to]:
            if isinstance(to, str):
                found[_who(c, to)] = None
            elif op.op == "ask":
                found["agent"] = None
    return list(found)


def _who(c: Checking, to: str) -> str:
    if has_refs(to):
        return to
    try:
        (who,) = addressees.find(to, c.world)
    except ValueError:
        return to
    if who.kind == "person":
        return c.world.name_of(who.ref)
    return (
        f"role:{who.ref}"
        if who.kind == "role"
        else (f"agent:{who.ref}" if who.ref else "agent")
        if who.kind == "agent"
        else who.ref
    )


def calls_of(c: Checking, op: Op) -> int | None:
    spec = c.catalog.get(op.op)
    if spec is None or not calls_agent(op, spec):
        return 0
    tries = 1 + (op.retry.max if op.retry else 0)
    if op.op != "each":
        return tries
    size = _size(c, op.place, op.params.get("list"))
    return None if size is None else size * tries


def _messages(c: Checking, op: Op) -> int | None:
    spec = c.catalog.get(op.op)
    if spec is None or (op.op not in ("ask", "say") and spec.channel is None):
        return 0
    if op.op == "ask" and calls_agent(op, spec):
        return 0
    total = 0
    for to in op.to if is_list(op.to) else [op.to]:
        if not isinstance(to, str):
            total += 1
            continue
        if has_refs(to):
            return None
        try:
            (who,) = addressees.find(to, c.world)
        except ValueError:
            total += 1
            continue
        total += len(c.world.roles.get(who.ref, ())) if who.kind == "role" else who.kind != "agent"
    return total


def _size(c: Checking, place: str, value: Any, depth: int = 8) -> int | None:
    """How many elements a list has at most: one that is written, or a name whose list is; None where it is known only
    later."""
    if is_list(value):
        return len(value)
    template = parse(value) if isinstance(value, str) else None
    if template is None or not template.whole or template.refs[0].steps or not depth:
        return None
    binding = c.scopes.resolve(place, template.refs[0].name)
    if binding.kind != "op" or len(binding.places) != 1:
        return None
    op = c.scopes.ops[binding.places[0]]
    match op.op:
        case "list":
            items = op.params.get("items")
            return len(items) if is_list(items) else None
        case "first":
            most, whole = op.params.get("n"), _size(c, op.place, op.params.get("list"), depth - 1)
            known = [n for n in (most, whole) if isinstance(n, int) and not isinstance(n, bool)]
            return min(known, default=None)
        case "keep" | "drop" | "each":
            return _size(c, op.place, op.params.get("list"), depth - 1)
        case "core.map":
            return _size(c, op.place, op.params.get("over"), depth - 1)
        case _:
            return None


def total(c: Checking, of: Any, *, capped: bool = True) -> int | None:
    """The sum over every op that could run, items and rounds counted; budgets cap agent calls (`capped`)."""

    def region(ops: Region, factor: int | None) -> int | None:
        total: int | None = 0
        budget: int | None = None
        for op in ops.ops:
            own = of(c, op)
            if op.op == "budget" and capped and of is calls_of and isinstance(op.params.get("calls"), int):
                budget = op.params["calls"] if budget is None else min(budget, op.params["calls"])
            inner = factor
            if op.op == "core.map":
                size = _size(c, op.place, op.params.get("over"))
                inner = None if size is None or factor is None else factor * size
            elif op.op == "core.repeat":
                rounds = op.params.get("max")
                inner = factor * rounds if isinstance(rounds, int) and factor is not None else None
            parts = [_times(own, factor)]
            parts += [region(r, inner if name == "body" else factor) for name, r in op.inner()]
            for part in parts:
                total = None if total is None or part is None else total + part
        if budget is not None and ops.ops and ops.ops[0].op == "budget":
            return _times(budget, factor) if total is None else min(total, _times(budget, factor) or total)
        return total

    main = region(c.plan.program, 1)
    rest = region(c.plan.on_error, 1) if c.plan.on_error is not None else 0
    return None if main is None or rest is None else main + rest


def _times(count: int | None, factor: int | None) -> int | None:
    if count == 0:
        return 0
    return None if count is None or factor is None else count * factor


def latest_end(c: Checking) -> datetime | None:
    """The instant by which the run has ended whatever happens; None where a window is known only later.

    The sum of every op's longest time: ops wait for each other at most in one row."""
    span = _region(c, c.plan.program)
    if span is None:
        return _own_deadline(c)
    if c.plan.on_error is not None:
        more = _region(c, c.plan.on_error)
        span = None if more is None else span + more
    own = _own_deadline(c)
    if span is None:
        return own
    try:
        end = c.now + span
    except OverflowError:
        return own
    return min(end, own) if own is not None and own < end else end


def _own_deadline(c: Checking) -> datetime | None:
    if c.plan.within is None or has_refs(c.plan.within):
        return None
    try:
        return durations.due_within(c.plan.within, c.now, c.world.workspace)
    except ValueError:
        return None


def _region(c: Checking, region: Region) -> timedelta | None:
    total = timedelta()
    for op in region.ops:
        span = op_span(c, op)
        if span is None:
            return None
        try:
            total += span
        except OverflowError:
            return None
    return total


def op_span(c: Checking, op: Op) -> timedelta | None:
    """The longest time from an op's start until it and all in it have ended, its branches included."""
    spec = c.catalog.get(op.op)
    if spec is None:
        return None
    own = _own(c, op, spec)
    if own is None:
        return None
    inner: timedelta = timedelta()
    times = 1
    if op.op == "core.repeat":
        times = op.params["max"] if isinstance(op.params.get("max"), int) else 100
    elif op.op == "core.map" and op.params.get("maxConcurrency") is not None:
        size = _size(c, op.place, op.params.get("over"))
        if size is None:
            return None
        times = max(size, 1)
    spans = [_region(c, region) for name, region in op.inner() if name not in ("onMiss", "onError")]
    branches = [_region(c, region) for name, region in op.inner() if name in ("onMiss", "onError")]
    if None in spans or None in branches:
        return None
    known = [s for s in spans if s is not None]
    inner = max(known, default=timedelta()) * times
    if op.op == "flow.parallel":
        inner = sum(known, timedelta())
    try:
        return own + inner + sum((b for b in branches if b is not None), timedelta())
    except OverflowError:
        return None


def _own(c: Checking, op: Op, spec: OpSpec) -> timedelta | None:
    """Without its regions: window, attempts, pauses, approval and doubt."""
    approval = _span(c, c.world.workspace.approval_window) or timedelta(days=3)
    if spec.kind == "wait":
        window = _window(c, op, spec)
        pauses = _pauses(c, op)
        if window is None or pauses is None:
            return None
        attempts = 1 + (op.retry.max if op.retry else 0)
        return window * attempts + pauses
    if spec.kind == "region":
        pause = op.params.get("every")
        if op.op == "core.repeat" and isinstance(pause, str):
            span = _span(c, pause)
            rounds = op.params.get("max")
            return None if span is None else span * (rounds if isinstance(rounds, int) else 100)
        return timedelta()
    if not spec.tool and not spec.agent:
        return timedelta()
    pauses = _pauses(c, op)
    if pauses is None:
        return None
    attempts = 1 + (op.retry.max if op.retry else 0)
    total = spec.timeout * attempts + pauses
    if gated(c, op, spec):
        total += approval + SENDING
    return total + (approval if spec.tool and not spec.idempotent and not spec.read_only else timedelta())


def _window(c: Checking, op: Op, spec: OpSpec) -> timedelta | None:
    if op.op == "ask" and calls_agent(op, spec) and op.within is None and op.by is None:
        return spec.timeout * 3
    sending = SENDING if op.op == "ask" else timedelta()
    if op.by is not None:
        if has_refs(op.by):
            return None
        try:
            return max(durations.due_by(op.by, c.now, c.world.workspace) - c.now, timedelta()) + sending
        except ValueError:
            return None
    written = op.within
    if written is None and op.op == "expect" and set(streams_of(op)) == {"clock"}:
        return _clock(c, op.params)
    if written is None:
        written = c.world.workspace.ask_window if op.op == "ask" else None
    if written is None:
        return durations.LIMIT if op.op == "run" else None
    span = _span(c, written)
    return None if span is None else span + sending


def _clock(c: Checking, params: Mapping[str, Any]) -> timedelta | None:
    at, in_ = params.get("at"), params.get("in")
    if isinstance(in_, str):
        return _span(c, in_)
    if not isinstance(at, str) or has_refs(at):
        return None
    try:
        return max(durations.clock_at(at, c.now, c.world.workspace) - c.now, timedelta())
    except ValueError:
        return None


def _pauses(c: Checking, op: Op) -> timedelta | None:
    if op.retry is None:
        return timedelta()
    first = _span(c, op.retry.backoff)
    most = _span(c, op.retry.max_delay) if op.retry.max_delay is not None else None
    if first is None:
        return None
    total = timedelta()
    pause = first
    for _ in range(op.retry.max):
        total += min(pause, most) if most is not None else min(pause, durations.LIMIT)
        pause = min(pause * 2, durations.LIMIT)
    return total


def _span(c: Checking, text: str) -> timedelta | None:
    """The longest that a duration may last; working time counts with room for weekends and holidays."""
    if has_refs(text):
        return None
    found = durations.parse(text)
    if found is None:
        return None
    if found.plain:
        return timedelta(seconds=found.seconds)
    days = found.working_days + (found.working_hours + 1) // 2
    free = len(c.world.workspace.holidays)
    return min(timedelta(days=days * 3 + 7 + min(free, days * 2)), durations.LIMIT)
