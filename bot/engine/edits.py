"""Every edit of a running script, through one function with one set of checks (language.md, section 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from bot.domain.catalog import OpSpec, World
from bot.domain.errors import OpError
from bot.domain.facts import Edited
from bot.domain.ids import indexes_of
from bot.domain.plan import Op, Plan
from bot.domain.record import ENDED, OpRow, RunRow
from bot.domain.record import PENDING as PENDING_STATES
from bot.domain.values import plain, text, type_of
from bot.engine import asks, calls, gates, order, reopening, surgery, waits, words
from bot.engine import index as indexing
from bot.engine.turn import Turn
from bot.engine.typed import Refused, Typed, must_stand, read_ops
from bot.language import durations


class NotTheirs(Refused):
    """Somebody else may do this."""


EDITS_KEPT = 20
"""Replies to edits that a run keeps, for those that come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One kind of edit. `key`: what it is recognised by. `label`: how a menu names it; `takes`: what it is given
    there. `apply` changes rows or gives the edited plan; it returns what was before and what is after, for the
    record. `addressee`: whoever is asked may do it too. `fits`: whether a menu offers it for an op in such a state
    (`apply` alone decides)."""

    name: str
    key: str
    label: str
    summary: str
    apply: Callable[[Turn, OpRow, Any], tuple[Any, Any]]
    states: frozenset[str]
    takes: Literal["", "addressee", "window", "moment", "op", "ops"] = ""
    fits: Callable[[OpSpec, Op, OpRow | None], bool] = lambda spec, op, row: True
    addressee: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEdit:
    """An edit of a run as a whole. `states`: of the run, in which it can be done."""

    key: str
    label: str
    states: tuple[str, ...]
    after: str
    said: str


RUN_EDITS = (
    RunEdit(key="pause", label="Pause", states=("running",), after="paused", said="is paused"),
    RunEdit(key="resume", label="Go on", states=("paused",), after="running", said="goes on"),
    RunEdit(
        key="cancel", label="Cancel the run", states=("running", "paused"), after="cancelled", said="is cancelled"
    ),
    RunEdit(
        key="retry", label="Try again from where it failed", states=("failed",), after="running",
        said="goes on from where it halted",
    ),
)  # fmt: skip


PENDING = frozenset({"planned", "waiting"})
GATED = frozenset({"gated", "uncertain"})
"""An effect that waits for an approval, or for somebody's word whether it happened."""


def edited(turn: Turn, fact: Edited) -> None:
    """Applies one edit, whole or not at all, and records it with author and reason. An edit of the same id again
    changes nothing and gets the reply it had."""
    told = turn.run.data.get("edits", {})
    if fact.id is not None and fact.id in told:
        turn.reply(fact.by, told[fact.id], accepted=True)
        return
    _apply(turn, fact)
    reply = turn.step.replies[-1]
    if fact.id is not None and reply.accepted:
        turn.run.data["edits"] = dict([*told.items(), (fact.id, reply.text)][-EDITS_KEPT:])


def _apply(turn: Turn, fact: Edited) -> None:
    edit = dict(fact.edit)
    kept = turn.snapshot()
    path, rev = None, None
    try:
        if "run" in edit:
            _run_edit(turn, fact, str(edit["run"]))
            return
        kind = next((e for e in EDITS if e.key in edit), None)
        if kind is None:
            raise Refused(f"that is no edit; there are {', '.join(f'`{e.key}`' for e in EDITS)} and `run`")
        row = find(turn, str(edit.get("op") or edit.get("after")), kind, fact.by)
        path, rev = row.path, row.rev
        _allowed(turn, row, kind, fact.by)
        if row.state not in kind.states:
            if kind.key == "accept" and row.state in PENDING:
                raise Refused(f"`{row.id or row.path}` is still {row.state}, so there is no late answer to accept")
            raise Refused(f"`{row.id or row.path}` has moved on: {_stands(turn, row)}")
        if fact.rev is not None and fact.rev != row.rev:
            raise Refused(f"`{row.id or row.path}` has changed since: {_stands(turn, row)}")
        if by_agent(fact) and kind.key in ("withdraw", "skip") and row.state == "waiting" and not fact.why:
            raise Refused("an agent says why it takes a question back")
        known = set(turn.index.ops)
        before, after = kind.apply(turn, row, edit[kind.key])
        if by_agent(fact) and kind.key in ("insert", "replace"):
            _brought(turn, row, known)
        if not row.data.get("unopened"):
            turn.touch(row)
    except (Refused, OpError) as why:
        turn.restore(kept)
        problems = why.problems if isinstance(why, Refused) else ()
        status = 403 if isinstance(why, NotTheirs) else 422 if problems else 409
        turn.reply(fact.by, f"Not done: {why}. Nothing changed.", status=status)
        turn.step.replies[-1] = replace(turn.step.replies[-1], op=path, rev=rev, problems=problems)
        return
    _record(turn, fact, row.path, kind.name, before, after)
    turn.reply(
        fact.by,
        f"Done: {kind.summary.format(op=row.id or row.path, after=words.called(text(plain(after)), turn.world))}.",
        accepted=True,
    )
    turn.step.replies[-1] = replace(turn.step.replies[-1], op=path, rev=rev)


def by_agent(fact: Edited) -> bool:
    """Whether an edit is an agent's, be it for somebody."""
    return fact.by.startswith("agent:") or fact.via is not None


def _brought(turn: Turn, row: OpRow, known: set[str]) -> None:
    """What an agent's edit brings is kept in mind as an agent's: it sends nothing to customers by itself."""
    fresh = [place for place in turn.index.ops if place not in known] or [row.place]
    turn.run.data["brought"] = [*turn.run.data.get("brought", []), *fresh]


def menu(spec: OpSpec, op: Op, row: OpRow | None) -> list[Edit]:
    """What can be done to an op now, in the order of a menu. `row`: None where its region has not opened."""
    state = row.state if row is not None else "planned"
    return [kind for kind in EDITS if state in kind.states and kind.fits(spec, op, row)]


def run_menu(run: RunRow) -> list[RunEdit]:
    """What can be done to a run now."""
    return [kind for kind in RUN_EDITS if run.state in kind.states]


def steers(run: RunRow, world: World, by: str) -> bool:
    """A run is its owner's to change, and the admins'."""
    return by.casefold() in (who.casefold() for who in (run.owner, *world.policy.admins))


def find(turn: Turn, named: str, kind: Edit, by: str) -> OpRow:
    """The op that an edit names, by path or id: the earliest that it can still change, else the latest."""
    row = turn.op(named)
    if row is not None:
        return row
    rows = [turn.keep(r) for r in turn.rows.instances(turn.index.named.get(named, ()))]
    if rows:
        rows.sort(key=lambda r: turn.key(r.path))
        return next((r for r in rows if r.state in kind.states), rows[-1])
    planned = next((op for op in turn.index.ops.values() if named in (op.id, op.place)), None)
    if planned is not None and "[]" not in planned.place:
        return OpRow(
            path=planned.place,
            place=planned.place,
            region="",
            rank=planned.rank,
            op=planned.op,
            id=planned.id,
            data={"unopened": True},
        )
    raise Refused(f"there is no op `{named}` in this run")


def _allowed(turn: Turn, row: OpRow, kind: Edit, by: str) -> None:
    if by.startswith("agent:") or steers(turn.run, turn.world, by):
        return
    if kind.addressee and by.casefold() in [who.casefold() for who in _asked(turn, row)]:
        return
    raise NotTheirs(f"only {words.called(turn.run.owner, turn.world)}, who started the run, can do this")


def _asked(turn: Turn, row: OpRow) -> list[str]:
    """Whoever is asked now: they may hand over and ask for more time."""
    if row.state in GATED:
        return [str(who) for who in row.data["gate"]["to"]]
    return asks.voters(turn, row) if row.data.get("to") else []


def _stands(turn: Turn, row: OpRow) -> str:
    if row.op == "ask" and not row.open:
        return asks.what_stands(turn, row).rstrip(".")
    at = f" since {words.clock(row.ended, turn.world, turn.now)}" if row.ended else ""
    return f"it is {row.state}{at}"


def _record(turn: Turn, fact: Edited, path: str, what: str, before: Any, after: Any) -> None:
    entry = {
        "at": turn.now.isoformat(),
        "by": fact.via or fact.by,
        **({"for": fact.by} if fact.via else {}),
        "why": fact.why,
        "op": path,
        "what": what,
        "before": plain(before),
        "after": plain(after),
    }
    turn.record("edited", None, by=fact.via or fact.by, edit=entry)


# --- the edits -----------------------------------------------------------------------------------------------------
def _hand_over(turn: Turn, row: OpRow, to: Any) -> tuple[Any, Any]:
    op = turn.plan_op(row)
    if row.state in GATED:
        return _hand_over_gate(turn, row, to)
    if op.op != "ask":
        raise Refused(f"`{op.op}` asks nobody, so it cannot be handed over")
    before = asks.spelt(row) or op.to
    probe = replace(op, to=to)
    if row.state == "planned":
        _plan_op(turn, row, probe)
        return op.to, to
    pairs = [list(pair) for pair in asks.addressed(turn, row, to)]
    gone = [v for v in asks.voters(turn, row)]
    row.data["to"] = pairs
    row.data.setdefault("edited", {})["to"] = to
    now = asks.voters(turn, row)
    for who in gone:
        if who not in now:
            turn.settle_cards(row.path, f"handed over to {words.names(asks.spelt(row), turn.world)}", to=who)
    if not any(who.startswith("agent") for who in row.data.get("asked", []) if who in now):
        turn.drop_calls(row.path)
    row.data["asked"] = [w for w in row.data.get("asked", []) if w in now]
    row.data["round"] = row.data.get("round", 0) + 1
    row.rev += 1
    asks.put(turn, row)
    return before if len(before) != 1 else before[0], to


def _hand_over_gate(turn: Turn, row: OpRow, to: Any) -> tuple[Any, Any]:
    """An approval or a doubt goes to other people who may decide it."""
    people: dict[str, None] = {}
    for kind, ref in asks.addressed(turn, row, to):
        if kind not in ("person", "role"):
            raise Refused(f"`{text(to)}` is no person, so it cannot decide this")
        people.update(dict.fromkeys(turn.world.roles.get(ref, ()) if kind == "role" else [ref]))
    if not people:
        raise Refused("there is nobody to ask")
    before = gates.hand_over(turn, row, list(people))
    return before if len(before) != 1 else before[0], to


def _window(turn: Turn, row: OpRow, within: Any) -> tuple[Any, Any]:
    return _new_window(turn, row, {"within": text(within)})


def _by(turn: Turn, row: OpRow, by: Any) -> tuple[Any, Any]:
    return _new_window(turn, row, {"by": text(by)})


def _new_window(turn: Turn, row: OpRow, new: dict[str, str]) -> tuple[Any, Any]:
    op = turn.plan_op(row)
    if row.state in GATED:
        return _new_window_of_gate(turn, row, new)
    if turn.index.spec(op.op).window == "none":
        raise Refused(f"`{op.op}` has no window")
    if op.op == "expect" and op.within is None and op.by is None:
        raise Refused(f"`{row.id or row.path}` waits for a moment, not for anyone; replace it, or skip it")
    before = row.data.get("edited", {}).get("within") or op.within or op.by or turn.world.workspace.ask_window
    if row.state == "planned":
        _plan_op(turn, row, replace(op, within=new.get("within"), by=new.get("by")))
        return before, next(iter(new.values()))
    kept = row.data.get("edited", {})
    row.data["edited"] = {k: v for k, v in kept.items() if k not in ("within", "by")} | new
    try:
        due = waits.window(turn, row, waits.since(row))
    except OpError:
        row.data["edited"] = kept
        raise
    _must_fit(turn, due, waits.since(row))
    row.rev += 1
    if row.due is not None:
        waits.open_window(turn, row, due)
    return before, next(iter(new.values()))


def _new_window_of_gate(turn: Turn, row: OpRow, new: dict[str, str]) -> tuple[Any, Any]:
    since = datetime.fromisoformat(row.data["gate"]["since"])
    before = words.clock(row.due, turn.world, turn.now) if row.due else None
    try:
        if "within" in new:
            due = durations.due_within(new["within"], since, turn.world.workspace)
        else:
            due = durations.due_by(new["by"], turn.now, turn.world.workspace)
    except ValueError as fault:
        raise Refused(str(fault)) from None
    _must_fit(turn, due, since)
    gates.more_time(turn, row, due)
    return before, next(iter(new.values()))


def _must_fit(turn: Turn, due: datetime, since: datetime) -> None:
    if due <= turn.now:
        raise Refused(f"that window is over already: it would have ended at {words.clock(due, turn.world, turn.now)}")
    if due - since > timedelta(days=400):
        raise Refused("a window is 400 days at most")


def _skip(turn: Turn, row: OpRow, _: Any) -> tuple[Any, Any]:
    before = row.state
    if row.data.get("unopened"):
        raise Refused("its region has not opened yet; remove it instead")
    if row.state == "waiting":
        waits.withdraw(turn, row, "skipped")
    row.state = "skipped"
    row.data["error"] = "skipped by an edit"
    row.data["meant"] = True
    row.rev += 1
    order.close(turn, row)
    return before, "skipped"


def _withdraw(turn: Turn, row: OpRow, _: Any) -> tuple[Any, Any]:
    waits.withdraw(turn, row, "withdrawn")
    row.state = "cancelled"
    row.data["reason"] = "withdrawn"
    row.data["meant"] = True
    row.rev += 1
    order.close(turn, row)
    return "waiting", "cancelled"


def _remove(turn: Turn, row: OpRow, _: Any) -> tuple[Any, Any]:
    op = turn.plan_op(row)
    plan = surgery.changed(turn.index.plan, row.place, surgery.removed)
    if indexes_of(row.path):
        raise Refused("an op inside a loop cannot be removed while it runs; skip it instead")
    _check(turn, plan)
    if not row.data.get("unopened"):
        row.state = "cancelled"
        row.data["reason"] = "removed"
        order.close(turn, row)
    # The index of this step keeps the op, so that what follows its end still finds it.
    turn.step.plan = plan
    return op.op, None


def _replace(turn: Turn, row: OpRow, new: Any) -> tuple[Any, Any]:
    op = turn.plan_op(row)
    typed = read_ops([new] if isinstance(new, dict) else new, turn.index.catalog)
    if len(typed.ops) != 1:
        raise Refused("one op replaces one op")
    fresh = surgery.moved(typed.ops[0], op.place, op.rank)
    if fresh.id is None and op.id is not None:
        fresh = replace(fresh, id=op.id)
    _plan_op(turn, row, fresh, typed)
    return _told(op), _told(fresh)


def _insert(turn: Turn, row: OpRow, new: Any) -> tuple[Any, Any]:
    if indexes_of(row.path):
        raise Refused("ops cannot be inserted inside a loop while it runs")
    typed = read_ops(new, turn.index.catalog)
    standing = None if row.data.get("unopened") else turn.find_region(row.region)
    if standing is not None and standing.state != "open":
        raise Refused("its region has closed")
    plan = surgery.changed(turn.index.plan, row.place, surgery.inserted(typed.ops))
    known = set(turn.index.ops)
    places = [op.place for op, _ in plan.walk() if op.place not in known and op.place.startswith(f"{row.place}+")]
    tops = [place for place in places if "." not in place[len(row.place) :] and "[" not in place[len(row.place) :]]
    _check(turn, plan, typed, dict(zip([op.place for op in typed.ops], tops, strict=True)))
    _use(turn, plan)
    region = None if row.data.get("unopened") else turn.find_region(row.region)
    if region is not None and region.state == "open":
        fresh = [op for op in turn.region_plan(row.region).ops if op.place not in known]
        for op in fresh:
            path = f"{row.region}.{op.place[len(region.path) + 1 :]}" if row.region else op.place
            turn.add(OpRow(path=path, place=op.place, region=row.region, rank=op.rank, op=op.op, id=op.id))
            region.unended += 1
        for op in fresh:
            order.count_needs(
                turn, turn.must(f"{row.region}.{op.place[len(region.path) + 1 :]}" if row.region else op.place)
            )
        turn.touch_region(region)
        turn.mark(row.region)
    return None, [_told(op) for op in typed.ops]


def _accept(turn: Turn, row: OpRow, _: Any) -> tuple[Any, Any]:
    late = row.data.get("late")
    if not late:
        raise Refused(f"there is no late answer to `{row.id or row.path}`")
    branch = turn.find_region(f"{row.path}.onMiss")
    if not row.open or branch is None or _effects_started(turn, branch.path):
        raise Refused("the miss branch has done something already, so the late answer can no longer be accepted")
    from bot.engine import failure

    answer = late[-1]
    choice = asks.pick(row.data["choices"], answer["answer"]) if row.data.get("choices") else None
    if row.data.get("choices") and choice is None:
        raise Refused(f"the late answer `{text(answer['answer'])}` is none of the choices")
    row.data["accepted"] = answer
    failure.stop_region(turn, branch, "the late answer was accepted")
    row.state = "done"
    row.value = choice["value"] if choice else answer["answer"]
    row.has_value = True
    row.by = answer["by"]
    row.data["claim"] = "claimed"
    row.data["stopped"] = True
    row.data.pop("error", None)
    turn.touch(row)
    return "missed", row.value


def _effects_started(turn: Turn, region: str) -> bool:
    for row in turn.ops_in(region):
        if row.started is not None and turn.index.spec(row.op).kind == "effect":
            return True
        if row.unclosed and any(_effects_started(turn, r.path) for r in turn.regions_of(row.path)):
            return True
    return False


def _in_loop(row: OpRow | None) -> bool:
    return row is not None and bool(indexes_of(row.path))


def _asks(spec: OpSpec, op: Op, row: OpRow | None) -> bool:
    if row is not None and row.state in GATED:
        return True
    return op.op == "ask" and not (_in_loop(row) and row is not None and row.state == "planned")


def _has_window(spec: OpSpec, op: Op, row: OpRow | None) -> bool:
    if row is not None and row.state in GATED:
        return True
    if spec.window == "none" or (op.op == "expect" and op.within is None and op.by is None):
        return False
    return not (_in_loop(row) and row is not None and row.state == "planned")


EDITS: tuple[Edit, ...] = (
    Edit(
        name="handed over", key="to", label="Hand over", summary="`{op}` is {after}'s now", apply=_hand_over,
        states=PENDING | GATED, takes="addressee", fits=_asks, addressee=True,
    ),
    Edit(
        name="window", key="within", label="More or less time", summary="the window of `{op}` is {after} now",
        apply=_window, states=PENDING | GATED, takes="window", fits=_has_window, addressee=True,
    ),
    Edit(
        name="deadline", key="until", label="Another deadline", summary="`{op}` is due {after} now", apply=_by,
        states=PENDING | GATED, takes="moment", fits=_has_window, addressee=True,
    ),
    Edit(
        name="skipped", key="skip", label="Skip", summary="`{op}` is skipped", apply=_skip, states=PENDING,
        fits=lambda spec, op, row: row is not None,
    ),
    Edit(
        name="withdrawn", key="withdraw", label="Withdraw", summary="`{op}` is withdrawn", apply=_withdraw,
        states=frozenset({"waiting"}),
    ),
    Edit(
        name="replaced", key="replace", label="Replace", summary="`{op}` is replaced", apply=_replace,
        states=frozenset({"planned"}), takes="op", fits=lambda spec, op, row: not _in_loop(row),
    ),
    Edit(
        name="removed", key="remove", label="Remove", summary="`{op}` is removed", apply=_remove,
        states=frozenset({"planned"}), fits=lambda spec, op, row: not _in_loop(row),
    ),
    Edit(
        name="inserted", key="insert", label="Insert below", summary="inserted after `{op}`", apply=_insert,
        states=frozenset({"planned", *PENDING_STATES, *ENDED}), takes="ops",
        fits=lambda spec, op, row: not _in_loop(row),
    ),
    Edit(
        name="accepted", key="accept", label="Accept the late answer", summary="the late answer to `{op}` counts",
        apply=_accept, states=frozenset({"missed"}),
        fits=lambda spec, op, row: row is not None and row.open and bool(row.data.get("late")),
    ),
)  # fmt: skip


def _run_edit(turn: Turn, fact: Edited, what: str) -> None:
    run = turn.run
    if not steers(run, turn.world, fact.by):
        raise NotTheirs(f"only {words.called(run.owner, turn.world)}, who started the run, can do this")
    kind = next((k for k in RUN_EDITS if k.key == what), None)
    if kind is None:
        raise Refused(f"`{what}` is no edit of a run; there are {words.ticked(k.key for k in RUN_EDITS)}")
    if run.state not in kind.states or run.data.get("stopping"):
        raise Refused(f"the run is {'being cancelled' if run.data.get('stopping') else run.state}")
    before = run.state
    match what:
        case "cancel":
            _cancel(turn)
        case "pause":
            run.state = "paused"
        case "resume":
            run.state = "running"
            for row in turn.rows.pending():
                calls.release(turn, turn.keep(row))
            for path in turn.rows.open_regions():
                turn.mark(path)
        case _:
            reopening.reopen(turn)
    _record(turn, fact, "", what, before, kind.after)
    turn.reply(fact.by, f"Done: the run {kind.said}.", accepted=True)


def _cancel(turn: Turn) -> None:
    from bot.engine import failure

    run = turn.run
    run.data["stopping"] = True
    run.data.pop("held", None)
    if run.state == "paused":
        run.state = "running"
    for path in ("", "onError"):
        region = turn.find_region(path)
        if region is not None and region.state != "closed":
            failure.stop_region(turn, region, "the run was cancelled")


# --- the edited plan -----------------------------------------------------------------------------------------------
def _plan_op(turn: Turn, row: OpRow, op: Op, typed: Typed | None = None) -> None:
    """One planned op is another from now on."""
    if indexes_of(row.path):
        raise Refused("an op inside a loop cannot be changed before it starts; change it once it waits")
    plan = surgery.changed(turn.index.plan, row.place, surgery.replaced(op))
    _check(turn, plan, typed, {typed.ops[0].place: row.place} if typed is not None else None)
    _use(turn, plan)
    if row.data.get("unopened"):
        return
    row.op, row.id = op.op, op.id
    row.rev += 1
    order.count_needs(turn, row)
    turn.mark(row.region)


def _check(turn: Turn, plan: Plan, typed: Typed | None = None, moved: dict[str, str] | None = None) -> None:
    names = {n: type_of(v) for n, v in turn.run.names.items()}
    must_stand(plan, turn.index.catalog, replace(turn.world, now=turn.now), names, typed, moved)


def _use(turn: Turn, plan: Plan) -> None:
    turn.index = indexing.build(plan, turn.index.catalog)
    turn.step.plan = plan


def _told(op: Op) -> dict[str, Any]:
    """An op as the record tells it."""
    told: dict[str, Any] = {"op": op.op, **({"id": op.id} if op.id else {})}
    if op.to is not None:
        told["to"] = op.to
    if op.params:
        told["params"] = dict(op.params)
    return told
