"""One transaction a fact: the run is locked, the fact applied, what changed is written.

Plain functions here, run in a transaction by `Database.write`; `committer.py` queues facts for them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.changes import Call, Delivery, Reply, Step, Taken
from bot.domain.facts import Accepted, Continued, Delivered, Fact, Returned, applied
from bot.domain.ids import digest
from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.domain.values import plain
from bot.engine.apply import apply, apply_results
from bot.engine.index import PlanIndex, build
from bot.engine.view import View
from bot.language.write import from_program, to_program
from bot.runtime import report
from store import inbox, ops, runs, steps
from store.dialect import Transaction
from store.small import SmallRows

PLANS_KEPT = 512
"""Plans whose index stays in memory: a cache, nothing a waiting run needs."""


@dataclass(slots=True)
class Site:
    """What facts are applied with: the catalogue, the world as it is now, the secret of tokens, the address."""

    catalog: Catalog
    world: Callable[[datetime], World]
    secret: str
    url: str = "http://127.0.0.1:8484"
    here: Callable[[Transaction, str], Callable[[Delivery], bool]] = lambda tx, job: lambda row: False
    """Of a job: whether a delivery goes to the room, where its commit is its acceptance."""
    begins: Callable[[Call], str | None] = lambda _: None
    """Who makes a call as soon as it is committed; such a call is marked as begun by the commit that asks for it."""
    worlds: dict[str, tuple[World, World]] = field(default_factory=dict)
    """By owner: the world it was made of, and the world as that person's runs see it."""
    _plans: OrderedDict[str, PlanIndex] = field(default_factory=OrderedDict)

    def index(self, tx: Transaction, key: str) -> PlanIndex:
        known = self._plans.get(key)
        if known is None:
            known = build(from_program(json.loads(runs.plan_body(tx, key)), self.catalog), self.catalog)
            self._plans[key] = known
            if len(self._plans) > PLANS_KEPT:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a fact. `where`: it must be evaluated for these expectations first, then taken again."""

    run: str
    job: str = ""
    replies: tuple[Reply, ...] = ()
    step: Step | None = None
    where: Mapping[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    changed: bool = False
    missing: bool = False
    """There is no such run."""
    also: list[Outcome] = field(default_factory=list)
    """What else the fact moved, in the same transaction: other runs, deliveries of the room."""
    orphans: list[str] = field(default_factory=list)
    heard: bool = False
    """The end of a script's run is an event, stored and not yet routed."""

    def hears(self) -> bool:
        """Whether this or what it moved has put an event into the inbox."""
        return self.heard or any(other.hears() for other in self.also)

    def steps(self) -> list[tuple[str, Step]]:
        """Every step that was written, with its run."""
        found = [(self.run, self.step)] if self.step is not None else []
        return found + [pair for other in self.also for pair in other.steps()]


def plan_text(plan: Plan) -> str:
    """The stored form of a plan."""
    return json.dumps(to_program(plan), ensure_ascii=False, separators=(",", ":"))


def take(tx: Transaction, site: Site, run_id: str, fact: Fact) -> Outcome:
    """Applies one fact to one run. A fact that changes nothing writes nothing."""
    run = runs.lock(tx, run_id)
    if run is None:
        return Outcome(run=run_id, missing=True)
    return _apply(tx, site, run, fact)


@dataclass(frozen=True, slots=True)
class Result:
    """What ended outside, as a piece of work: results of one run that share a commit are taken as one step.

    `fact`: made when it is written, for that is its instant; `also`: what is written with it."""

    run: str
    fact: Callable[[], Returned]
    also: Callable[[Transaction], None]


def take_results(tx: Transaction, site: Site, results: Sequence[Result]) -> list[Outcome]:
    """Applies results of one run, in order."""
    run = runs.lock(tx, results[0].run)
    for result in results:
        result.also(tx)
    if run is None:
        return [Outcome(run=results[0].run, missing=True)]
    outcomes: list[Outcome] = []
    left = [result.fact() for result in results]
    while left:
        view, earlier = _view(tx, site, run, left[0])
        step, taken = apply_results(view, left)
        outcomes.append(_written(tx, site, view, step, left[taken - 1].at, earlier))
        left = left[taken:]
    return outcomes


def _apply(tx: Transaction, site: Site, run: RunRow, fact: Fact) -> Outcome:
    resumed = isinstance(fact, Continued) and "more" in run.data
    view, earlier = _view(tx, site, run, fact)
    step = apply(view, fact)
    if step.where:
        return Outcome(run=run.id, job=run.job, where=step.where, changed=bool(earlier), also=earlier)
    return _written(tx, site, view, step, applied(fact), earlier, resumed=resumed)


def _view(tx: Transaction, site: Site, run: RunRow, fact: Fact) -> tuple[View, list[Outcome]]:
    """What a fact may look at, once the rest of the step before is done: what that changed comes with it."""
    earlier: list[Outcome] = []
    if not isinstance(fact, Continued):
        while "more" in run.data:
            earlier.append(_apply(tx, site, run, Continued(at=applied(fact))))
    index = site.index(tx, run.plan)
    view = View(
        run=run,
        rows=(SmallRows if index.small else ops.StoredRows)(tx, run.id, run.job),
        index=index,
        world=world_of(site, run, applied(fact)),
        secret=site.secret,
        url=site.url,
    )
    return view, earlier


def _written(
    tx: Transaction, site: Site, view: View, step: Step, at: datetime, earlier: list[Outcome], *, resumed: bool = False
) -> Outcome:
    """Writes a step, and what follows from it at once."""
    run = view.run
    if steps.empty(step) and not resumed:
        return Outcome(run=run.id, job=run.job, replies=tuple(step.replies), changed=bool(earlier), also=earlier)
    written = steps.write(
        tx,
        step,
        plan_text,
        resumed=resumed,
        here=site.here(tx, run.job),
        begins=site.begins,
        now=at,
        crowded=view.index.crowded,
    )
    outcome = Outcome(
        run=run.id,
        job=run.job,
        replies=tuple(step.replies),
        step=step,
        changed=True,
        also=earlier,
        orphans=written.orphans,
        heard=bool(step.ended and run.data.get("script")),
    )
    for row in written.delivered:
        # What the room shows is accepted by the commit that writes it, so the op goes on in the same transaction.
        if row.opens:
            shown = Delivered(at=row.at, path=row.path, kind=row.kind, to=row.to, attempt=row.attempt)
            outcome.also.append(_apply(tx, site, run, shown))
    if step.ended and (run.parent is not None or run.data.get("script")):
        _tell_parent(tx, site, run, at, outcome)
    return outcome


def _tell_parent(tx: Transaction, site: Site, run: RunRow, at: datetime, outcome: Outcome) -> None:
    """A run that ended is an event of its script's, and the result of the op that started it."""
    value = report.result_of_run(tx, run.id, run.job)
    script = run.data.get("script")
    if script:
        inbox.add(
            tx,
            stream=f"script:{script}",
            ident=run.id,
            sender=script,
            conversation=None,
            at=at,
            body={"run": run.id, "state": run.state, "result": plain(value)},
        )
    if run.parent is None:
        return
    parent, path = run.parent.split(" ", 1)
    error = None if run.state == "done" else f"`{script}` {run.state}: {run.data.get('error') or 'it was cancelled'}"
    extra = {"child": run.id} if error else {"child": run.id, "state": run.state}
    fact = Returned(
        at=at, path=path, attempt=run.data.get("attempt", 1), kind="run", value=value, error=error, extra=extra
    )
    outcome.also.append(take(tx, site, parent, fact))


def named(tx: Transaction, site: Site, run_id: str, ident: str) -> list[OpRow]:
    """The rows of a run's ops with this id, as far as their regions have opened."""
    run = runs.get(tx, run_id)
    if run is None:
        return []
    return ops.StoredRows(tx, run_id, run.job).instances(site.index(tx, run.plan).named.get(ident, ()))


def world_of(site: Site, run: RunRow, now: datetime) -> World:
    """The world as a run sees it: its owner, its customer."""
    base = site.world(now)
    if run.customer is not None:
        return replace(base, owner=run.owner, customer=run.customer)
    known = site.worlds.get(run.owner)
    if known is None or known[0] is not base:
        known = site.worlds[run.owner] = (base, replace(base, owner=run.owner))
    return known[1]


def accept(
    tx: Transaction,
    site: Site,
    run: RunRow,
    plan: Plan,
    *,
    source: str | None = None,
    surface: str | None = None,
    taken: Sequence[Taken] = (),
) -> Outcome:
    """Starts a run of a plan whose checks have passed: its rows and its first step, at once. `taken`: events that no
    expectation of it takes."""
    body = plan_text(plan)
    run.plan = digest(body)
    runs.add_plan(tx, run.plan, body, source, surface)
    runs.add(tx, run)
    inbox.take(tx, run.id, list(taken))
    return _apply(tx, site, run, Accepted(at=run.created))
