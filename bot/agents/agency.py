"""Agents at the calls that ops make: ask, each, judge, replan. Takes a call's row, does it, reports its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bot.agents import child, elements, prompts, replans, terms
from bot.agents.child import NoAnswer, Task
from bot.agents.elements import Elements
from bot.agents.fan import Fan
from bot.agents.hands import Call, Files, Hands, held
from bot.agents.line import Line
from bot.agents.terms import Terms
from bot.domain.catalog import Agent, Catalog
from bot.domain.cost import Price, Usage
from bot.domain.facts import Returned, returned
from bot.domain.ids import token
from bot.language.check.rights import may_call
from bot.runtime.clock import Clock
from bot.runtime.commit import Result
from bot.runtime.committer import Committer
from store import outbox, work
from store.dialect import Transaction

Work = dict[str, Any]


class Agency:
    """`perform` does one call. `progressed` is told of runs (and their jobs) whose ops are further on.

    `line` leads to the model; `call` makes a read-only tool's call; `model` is that of agents that name none."""

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
        self._kinds: dict[str, Callable[[Work, Terms], Awaitable[None]]] = {
            "agent": self._ask,
            "each": self._each,
            "judge": self._judge,
            "replan": self._replan,
        }
        self._fans: dict[tuple[str, str], Fan] = {}

    async def perform(self, call: Work) -> None:
        """Does one call and reports its end."""
        most = self.committer.site.world(self.clock.now()).policy.max_cost
        found = await self.committer.read(terms.of_run, call["run"], self.prices, most)
        try:
            await self._kinds[call["kind"]](call, found)
        except NoAnswer as fault:
            await self.report(call, usage=fault.usage, error=str(fault))

    def stop(self, run: str, path: str) -> None:
        """The op begins nothing more; what is at work runs to its end."""
        found = self._fans.get((run, path))
        if found is not None:
            found.stop(elements.STOPPED)

    def pause(self, run: str, paused: bool) -> None:
        """Of a paused run's fan-outs none begins anything before it goes on."""
        for key, found in self._fans.items():
            if key[0] == run:
                found.pause(paused)

    async def aclose(self) -> None:
        await self.line.model.aclose()

    # --- the kinds of call ------------------------------------------------------------------------------------
    async def _ask(self, call: Work, run: Terms) -> None:
        body = call["body"]
        name = body["who"].partition(":")[2]
        agent = self.agents.get(name) if name else self.default
        if agent is None:
            raise NoAnswer(f"there is no agent `{name}` any more", Usage())
        choices = body.get("choices")
        prompt = prompts.marked(body["prompt"], body.get("outside", ()), self.mark(call))
        task = Task(
            model=self.model_of(body["model"], agent),
            system=prompts.system(prompts.CHILD, agent.prompt),
            prompt=f"{prompt}\n\n{prompts.choosing(choices)}" if choices else prompt,
            schema=prompts.answer_schema(body),
            said=body.get("said"),
            then=prompts.again(body["said"], body.get("wrong") or "", choices or ()) if "said" in body else None,
        )
        self._must_afford(run, task.model, task.prompt)
        answer = await self.line.hold(lambda: child.answer(self.line, task, self.hands(agent, run)))
        value, reason = child.given(answer.text, task.schema, fields=bool(body.get("fields")))
        await self.report(call, usage=answer.usage, value=value, reason=reason)

    async def _each(self, call: Work, run: Terms) -> None:
        key = (call["run"], call["path"])
        many = Elements(self, call, run)
        self._fans[key] = many.fan
        try:
            given = await many.answered()
        finally:
            self._fans.pop(key, None)
        await self.report(call, usage=many.fan.take_fresh()[1], **given)

    async def _judge(self, call: Work, run: Terms) -> None:
        body = call["body"]
        task = Task(
            model=self.model_of(None, self.default),
            system=prompts.JUDGE,
            prompt=prompts.judgement(body["check"], body["event"], self.mark(call)),
            schema=prompts.VERDICT_SCHEMA,
        )
        self._must_afford(run, task.model, task.prompt)
        usage = Usage()
        for _ in range(child.TRIES):
            try:
                answer = await self.line.hold(lambda: child.answer(self.line, task))
            except NoAnswer as fault:
                raise NoAnswer(str(fault), usage + fault.usage) from None
            usage += answer.usage
            if (verdict := prompts.verdict(answer.text)) is not None:
                await self.report(call, usage=usage, value=verdict)
                return
        raise NoAnswer("the judge gave no verdict, asked three times", usage)

    async def _replan(self, call: Work, run: Terms) -> None:
        brief = await self.committer.read(replans.brief, self.committer.site, call, self.clock.now(), self.mark(call))
        model = self.model_of(None, self.default)
        self._must_afford(run, model, brief)
        system = prompts.system(prompts.REPLAN, self.default.prompt)
        edits = await self.line.hold(lambda: replans.propose(self.line, model, system, brief))
        by, done = f"agent:{self.default.name}", partial(self._done, call, edits.usage)
        await self.committer.insist(
            lambda tx: replans.apply(tx, self.committer.site, call, edits, by, self.clock.now(), done)
        )

    # --- what they share --------------------------------------------------------------------------------------
    def _must_afford(self, run: Terms, model: str, prompt: str) -> None:
        """Raises NoAnswer where one more call would cost more than the run may."""
        if (refusal := run.refusal(model, 1, len(prompt))) is not None:
            raise NoAnswer(refusal, Usage())

    def model_of(self, wanted: str | None, agent: Agent) -> str:
        return wanted or agent.model or self.model

    def hands(self, agent: Agent, run: Terms) -> Hands:
        """What the agent reaches in a run: no more than whoever started it may."""
        world = self.committer.site.world(self.clock.now())
        specs = held(self.catalog.ops.values(), agent.tools, lambda spec: may_call(world, run.owner, spec))
        return Hands(files=self.files, job=run.job, specs=tuple(specs), call=self.call)

    def mark(self, call: Work) -> str:
        """A word that nobody outside knows: it tells where data ends."""
        site = self.committer.site
        return token(site.secret, "mark", call["run"], call["path"], str(call["attempt"]), chars=8)

    async def report(self, call: Work, *, usage: Usage | None = None, **given: Any) -> None:
        """The call has ended; what it used is written with it. Of an `ask` it says whose answer it is."""
        asked = {"who": call["body"]["who"]} if call["kind"] == "agent" else {}

        def ended() -> Returned:
            return returned(call, self.clock.now(), **asked, **given)

        done = partial(self._done, call, usage or Usage(), failed=given.get("error") is not None)
        await self.committer.report(Result(call["run"], ended, done))

    def _done(self, call: Work, usage: Usage, tx: Transaction, *, failed: bool = False) -> None:
        outbox.call_done(tx, call, self.clock.now())
        if call["kind"] == "each":
            work.over(tx, call, failed=failed)
        if usage.calls:
            work.spend(tx, call["run"], call["path"], usage)
