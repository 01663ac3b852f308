"""Agents at the calls that ops make: ask, each, judge, replan. Takes a call's row, does it, reports its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from bot.agents import child, fan, prompts, replans
from bot.agents.child import Answer, NoAnswer, Task
from bot.agents.fan import Fan
from bot.agents.hands import Call, Files, Hands, held
from bot.agents.line import Line
from bot.domain import cost
from bot.domain.catalog import Agent, Catalog
from bot.domain.cost import Price, Usage
from bot.domain.facts import Returned, returned
from bot.domain.ids import token
from bot.domain.values import ErrorValue, text
from bot.engine import agents as engine
from bot.engine import asks
from bot.language.check.rights import may_call
from bot.runtime.clock import Clock
from bot.runtime.commit import Result
from bot.runtime.committer import Committer
from store import outbox, runs, work
from store.dialect import Transaction

log = structlog.get_logger()
SAVED_S = 0.05
"""How often answers of an `each` are saved: a kill loses no more than what came in that time, and was in flight."""
TOLD_S = 1.0
"""How often it is told how far an `each` is."""
TRIES = 3
"""Answers that are none of the choices before that element has failed."""

Work = dict[str, Any]


class Agency:
    """`perform` does one call. `progressed` is told of runs (and their jobs) whose ops are further on."""

    def __init__(
        self,
        committer: Committer,
        clock: Clock,
        line: Line,
        agents: Sequence[Agent],
        *,
        files: Files,
        catalog: Catalog,
        call: Call,
        fanout: int,
        prices: Mapping[str, Price],
        model: str,
    ) -> None:
        self.committer = committer
        self.clock = clock
        self.line = line
        self.agents = {agent.name: agent for agent in agents}
        self.default = next((a for a in agents if a.default), agents[0])
        self.files = files
        self.catalog = catalog
        self.call = call
        self.fanout = fanout
        self.prices = prices
        self.model = model
        self.progressed: Callable[[str, str], None] = lambda run, job: None
        self._kinds: dict[str, Callable[[Work, _Run], Awaitable[None]]] = {
            "agent": self._ask,
            "each": self._each,
            "judge": self._judge,
            "replan": self._replan,
        }
        self._fans: dict[tuple[str, str], Fan] = {}

    async def perform(self, call: Work) -> None:
        """Does one call and reports its end."""
        policy = self.committer.site.world(self.clock.now()).policy
        run = await self.committer.read(_run_of, call["run"], policy.max_cost)
        await self._kinds[call["kind"]](call, run)

    def stop(self, run: str, path: str, why: str = "the run was stopped") -> None:
        """The op begins nothing more; what is at work runs to its end."""
        found = self._fans.get((run, path))
        if found is not None:
            found.stop(why)

    async def aclose(self) -> None:
        await self.line.model.aclose()

    # --- one agent --------------------------------------------------------------------------------------------
    async def _ask(self, call: Work, run: _Run) -> None:
        body = call["body"]
        agent = self._agent(body["who"].partition(":")[2])
        choices = body.get("choices")
        prompt = prompts.marked(body["prompt"], body.get("outside", ()), self._mark(call))
        task = Task(
            model=self._model(body["model"], agent),
            system=prompts.system(prompts.CHILD, agent.prompt),
            prompt=f"{prompt}\n\n{prompts.choosing(choices)}" if choices else prompt,
            schema=prompts.choice_schema(choices) if choices else None,
            said=body.get("said"),
            then=prompts.again(body["said"], choices or ()) if "said" in body else None,
        )
        over = self._over(run, run.usage, task.model, 1, len(task.prompt))
        if over is not None:
            await self._report(call, error=over, who=body["who"])
            return
        try:
            answer = await self.line.hold(lambda: child.answer(self.line, task, self._hands(agent, run)))
        except NoAnswer as fault:
            await self._report(call, usage=fault.usage, error=str(fault), who=body["who"])
        else:
            value = child.picked(answer.text) if choices else answer.text
            await self._report(call, usage=answer.usage, value=value, who=body["who"])

    # --- one agent on each element ----------------------------------------------------------------------------
    async def _each(self, call: Work, run: _Run) -> None:
        body = call["body"]
        asked = min(body["most"], len(body["list"]))
        plan = self._element_plan(call, run)
        saved = await self.committer.read(work.elements, call)
        fresh = [at for at in range(asked) if at not in saved]
        over = self._over(run, run.usage, plan.model, len(fresh), self._prompt_chars(body, fresh))
        if over is not None:
            await self._report(call, error=over)
            return
        one = Fan(size=asked, answers=saved)
        key = (call["run"], call["path"])
        self._fans[key] = one
        hopeless: str | None = None
        keeping = asyncio.create_task(self._keep(call, run, one))
        try:
            alone = len(plan.shared) > fan.ALONE_FIRST_CHARS
            await fan.spread(one, partial(self._element, call, run, one, plan), self.fanout, first_alone=alone)
        except* NoAnswer as faults:
            hopeless = str(faults.exceptions[0])
        finally:
            self._fans.pop(key, None)
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        if hopeless is not None:
            await self._report(call, usage=one.take_fresh()[1], error=hopeless)
            return
        spent = ErrorValue("the budget of agent calls is spent")
        values = [*one.values(), *(spent for _ in range(len(body["list"]) - asked))]
        _, unsaved = one.take_fresh()
        await self._report(call, usage=unsaved, value=values)

    def _element_plan(self, call: Work, run: _Run) -> _Elements:
        agent = self.default
        choices = call["body"].get("choices")
        labels = [c["label"] for c in choices] if choices else None
        return _Elements(
            model=self._model(call["body"]["model"], agent),
            system=prompts.system(prompts.CHILD, agent.prompt),
            hands=self._hands(agent, run),
            mark=self._mark(call),
            choices=choices,
            labels=labels,
            schema=prompts.choice_schema(labels) if labels else None,
            shared=engine.shared_part(call["body"]),
        )

    async def _element(self, call: Work, run: _Run, one: Fan, plan: _Elements, at: int) -> tuple[Any, Usage]:
        if run.most is not None and run.usage.usd + one.usage.usd >= run.most:
            return ErrorValue(f"the {cost.dollars(run.most)} that a run may cost are spent"), Usage()
        try:
            task = self._element_task(call["body"], plan, at, many=one.size > 1)
        except Exception as fault:  # a path that this element does not have
            return ErrorValue(str(fault)), Usage()
        try:
            return await self.line.hold(lambda: self._answered(task, plan))
        except NoAnswer:
            raise
        except Exception:  # one element's failure is its own
            log.exception("an element broke", run=call["run"], path=call["path"], at=at)
            return ErrorValue("it broke inside; the log has more"), Usage()

    def _element_task(self, body: Mapping[str, Any], plan: _Elements, at: int, *, many: bool) -> Task:
        prompt, outside = engine.element_prompt(dict(body), body["list"][at], at)
        prefix = ""
        shared = plan.shared
        if many and len(shared) > fan.ALONE_FIRST_CHARS:
            inside = [span for span in outside if span[1] <= len(shared)]
            prefix = prompts.marked(shared, inside, plan.mark)
            outside = [[a - len(shared), b - len(shared)] for a, b in outside if a >= len(shared)]
            prompt = prompt[len(shared) :]
        prompt = prompts.marked(prompt, outside, plan.mark)
        if plan.labels:
            prompt = f"{prompt}\n\n{prompts.choosing(plan.labels)}"
        return Task(model=plan.model, system=plan.system, prompt=prompt, prefix=prefix, schema=plan.schema, cached=many)

    async def _answered(self, task: Task, plan: _Elements) -> tuple[Any, Usage]:
        usage = Usage()
        said = ""
        for _ in range(TRIES):
            try:
                answer: Answer = await child.answer(self.line, task, plan.hands)
            except NoAnswer as fault:
                if fault.hopeless:
                    raise
                return ErrorValue(str(fault)), usage + fault.usage
            usage += answer.usage
            if plan.choices is None or plan.labels is None:
                return answer.text, usage
            said = child.picked(answer.text)
            found = asks.pick(plan.choices, said)
            if found is not None:
                return found["value"], usage
            task = Task(
                model=task.model, system=task.system, prompt=task.prompt, prefix=task.prefix, schema=task.schema,
                cached=task.cached, said=said, then=prompts.again(said, plan.labels),
            )  # fmt: skip
        return ErrorValue(f"`{said}` is none of the choices, asked three times"), usage

    async def _keep(self, call: Work, run: _Run, one: Fan) -> None:
        """Saves answers as they come, and tells how far it is."""
        since = self.clock.now()
        ticks = 0
        while True:
            await asyncio.sleep(SAVED_S)
            ticks += 1
            tell = ticks % round(TOLD_S / SAVED_S) == 1
            if not one.fresh and not tell:
                continue
            await self._save(call, run, one, since, tell)

    async def _save(self, call: Work, run: _Run, one: Fan, since: Any, tell: bool) -> None:
        fresh, used = one.take_fresh()
        now = self.clock.now()
        done, failed = len(one.answers), one.failed
        gained, took = done - one.begun, (now - since).total_seconds()
        left = took / gained * (one.size - done) if gained else None
        spent = cost.dollars(one.usage.usd) if one.usage.usd and not one.usage.unpriced else None
        way = work.Progress(
            done=done, total=one.size, failed=failed, since=since, at=now,
            said=fan.said(done, one.size, failed, spent, left),
        )  # fmt: skip

        def write(tx: Transaction) -> None:
            work.add_elements(tx, call, fresh)
            if used.calls:
                work.spend(tx, call["run"], call["path"], used)
            if tell:
                work.put_progress(tx, call["run"], call["path"], way)

        await self.committer.insist(write)
        if tell:
            self.progressed(call["run"], run.job)

    # --- the judge --------------------------------------------------------------------------------------------
    async def _judge(self, call: Work, run: _Run) -> None:
        body = call["body"]
        task = Task(
            model=self._model(None, self.default),
            system=prompts.JUDGE,
            prompt=prompts.judgement(body["check"], body["event"], self._mark(call)),
            schema=prompts.VERDICT_SCHEMA,
        )
        over = self._over(run, run.usage, task.model, 1, len(task.prompt))
        if over is not None:
            await self._report(call, error=over)
            return
        usage = Usage()
        for _ in range(TRIES):
            try:
                answer = await self.line.hold(lambda: child.answer(self.line, task))
            except NoAnswer as fault:
                await self._report(call, usage=usage + fault.usage, error=str(fault))
                return
            usage += answer.usage
            if (verdict := prompts.verdict(answer.text)) is not None:
                await self._report(call, usage=usage, value=verdict)
                return
        await self._report(call, usage=usage, error="the judge gave no verdict, asked three times")

    # --- a plan that must change ------------------------------------------------------------------------------
    async def _replan(self, call: Work, run: _Run) -> None:
        brief = await self.committer.read(replans.brief, self.committer.site, call, self.clock.now(), self._mark(call))
        model = self._model(None, self.default)
        over = self._over(run, run.usage, model, 1, len(brief))
        if over is not None:
            await self._report(call, error=over)
            return
        try:
            edits = await self.line.hold(
                lambda: replans.propose(self.line, model, prompts.system(prompts.REPLAN, self.default.prompt), brief)
            )
        except NoAnswer as fault:
            await self._report(call, usage=fault.usage, error=str(fault))
            return
        by = f"agent:{self.default.name}"
        done = partial(self._done, call, edits.usage)
        await self.committer.insist(
            lambda tx: replans.apply(tx, self.committer.site, call, edits, by, self.clock.now(), done)
        )

    # --- what they share --------------------------------------------------------------------------------------
    def _agent(self, name: str) -> Agent:
        return self.agents.get(name, self.default) if name else self.default

    def _model(self, wanted: str | None, agent: Agent) -> str:
        return wanted or agent.model or self.model

    def _hands(self, agent: Agent, run: _Run) -> Hands:
        world = self.committer.site.world(self.clock.now())
        specs = held(self.catalog.ops.values(), agent.tools, lambda spec: may_call(world, run.owner, spec))
        return Hands(files=self.files, job=run.job, specs=tuple(specs), call=self.call)

    def _mark(self, call: Work) -> str:
        """A word that nobody outside knows: it tells where data ends."""
        site = self.committer.site
        return token(site.secret, "mark", call["run"], call["path"], str(call["attempt"]), chars=8)

    def _over(self, run: _Run, so_far: Usage, model: str, calls: int, chars: int) -> str | None:
        """Why so many calls may not be begun: what they will cost at least is over what a run may."""
        if run.most is None or not calls:
            return None
        price = cost.price_of(model, self.prices)
        if price is None:
            return f"a run may cost {cost.dollars(run.most)} here, and what `{model}` costs is not in the settings"
        wanted = cost.estimate(price, calls, chars)
        if so_far.usd + wanted <= run.most:
            return None
        spent = f" with the {cost.dollars(so_far.usd)} spent" if so_far.usd else ""
        return (
            f"{calls:,} agent call{'s' if calls > 1 else ''} would cost about {cost.dollars(wanted)}{spent}; "
            f"a run may cost {cost.dollars(run.most)}"
        )

    def _prompt_chars(self, body: Mapping[str, Any], which: Sequence[int]) -> int:
        """Characters of the elements' prompts, by the template and the elements' own size."""
        if not which:
            return 0
        first = len(engine.element_prompt(dict(body), body["list"][which[0]], which[0])[0])
        own = len(text(body["list"][which[0]]))
        return sum(first - own + len(text(body["list"][at])) for at in which)

    async def _report(self, call: Work, *, usage: Usage | None = None, **given: Any) -> None:
        def ended() -> Returned:
            return returned(call, self.clock.now(), **given)

        await self.committer.report(Result(call["run"], ended, lambda tx: self._done(call, usage or Usage(), tx)))

    def _done(self, call: Work, usage: Usage, tx: Transaction) -> None:
        outbox.call_done(tx, call, self.clock.now())
        if call["kind"] == "each":
            work.over(tx, call)
        if usage.calls:
            work.spend(tx, call["run"], call["path"], usage)


@dataclass(slots=True)
class _Elements:
    """What all elements of one `each` share."""

    model: str
    system: str
    hands: Hands
    mark: str
    choices: list[dict[str, Any]] | None
    labels: list[str] | None
    schema: Mapping[str, Any] | None
    shared: str


@dataclass(frozen=True, slots=True)
class _Run:
    """What a call's agents must know of its run. `most`: what it may cost, in millionths of a dollar."""

    job: str
    owner: str
    usage: Usage
    most: int | None = field(default=None)


def _run_of(tx: Transaction, run_id: str, most: float | None = None) -> _Run:
    run = runs.get(tx, run_id)
    assert run is not None
    spent = sum(work.spent_by(tx, run_id).values(), Usage())
    return _Run(run.job, run.owner, spent, None if most is None else round(most * cost.MICRO))
