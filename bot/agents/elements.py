"""One `each` at work: what every agent of it is told, its answers saved as they come, how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from bot.agents import child, fan, prompts
from bot.agents.child import NoAnswer, Task
from bot.agents.fan import Fan
from bot.agents.terms import Terms
from bot.domain import cost
from bot.domain.cost import Usage
from bot.domain.ids import digest
from bot.domain.values import ErrorValue, dump, text
from bot.engine import agents as engine
from bot.engine import asks
from store import ops, runs, work
from store.dialect import Transaction

if TYPE_CHECKING:
    from bot.agents.agency import Agency

log = structlog.get_logger()
SAVED_S = 0.05
"""How often answers are saved: a kill loses no more than what came in that time, and was in flight."""
TOLD_S = 1.0
"""How often it is told how far it is, and looked whether the run is paused or was stopped, here or by another
process."""
STOPPED = "the run was stopped"


class Elements:
    """`answered` puts agents on work and gives how the call ends: `value` or `error`."""

    def __init__(self, agency: Agency, call: dict[str, Any], run: Terms) -> None:
        body = call["body"]
        self.agency = agency
        self.call = call
        self.kept = {"run": call["run"], "path": call["path"], "attempt": fingerprint(body)}
        """What saved answers are found by: the very question, whichever attempt asks it."""
        self.run = run
        self.list: list[Any] = body["list"]
        self.asked = min(int(body["most"]), len(self.list))
        """The elements that the budgets let through."""
        self.fan = Fan(size=self.asked)
        self.fan.pause(run.paused)
        agent = agency.default
        self.model = agency.model_of(body["model"], agent)
        self.system = prompts.system(prompts.CHILD, agent.prompt)
        self.hands = agency.hands(agent, run)
        self.mark = agency.mark(call)
        self.choices: list[dict[str, Any]] | None = body.get("choices")
        self.labels = [str(c["label"]) for c in self.choices] if self.choices else None
        self.schema = prompts.choice_schema(self.labels) if self.labels else None
        shared = engine.shared_part(body)
        self.shared = shared if self.asked > 1 and len(shared) > fan.ALONE_FIRST_CHARS else ""
        """What every prompt begins with, where that is long."""
        self.since: datetime = agency.clock.now()

    async def answered(self) -> dict[str, Any]:
        """Asks for every element whose answer is not saved yet."""
        self.fan.answers = await self._saved()
        missing = [at for at in range(self.asked) if at not in self.fan.answers]
        if (refusal := self.run.refusal(self.model, len(missing), self._chars(missing))) is not None:
            return {"error": refusal}
        hopeless: str | None = None
        keeping = asyncio.create_task(self._keep())
        try:
            await fan.spread(self.fan, self._element, self.agency.fanout, first_alone=bool(self.shared))
        except NoAnswer as fault:
            hopeless = str(fault)
        except ExceptionGroup as faults:
            known, others = faults.split(NoAnswer)
            if known is None or others is not None:
                raise
            hopeless = str(known.exceptions[0])
        except asyncio.CancelledError:
            await asyncio.shield(self._save(tell=False))
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        if hopeless is not None:
            await self._save(tell=False)  # a further attempt asks for the rest alone
            return {"error": hopeless}
        beyond = ErrorValue("the budget of agent calls is spent")
        return {"value": [*self.fan.values(), *(beyond for _ in range(len(self.list) - self.asked))]}

    async def _saved(self) -> dict[int, Any]:
        """Answers that are there already: of a process that was killed, or of an attempt that failed; in a further
        attempt what had failed is asked again."""
        found = await self.agency.committer.read(work.elements, self.kept)
        first = self.call["attempt"] == 1
        return {at: answer for at, answer in found.items() if first or not isinstance(answer, ErrorValue)}

    # --- one of them ------------------------------------------------------------------------------------------
    async def _element(self, at: int) -> tuple[Any, Usage]:
        """An answer or an error in its place. Raises NoAnswer where no other element has one either."""
        try:
            task = self._task(at)
        except Exception as fault:  # a path that this element does not have
            return ErrorValue(str(fault)), Usage()
        try:
            return await self.agency.line.hold(lambda: self._answer(task))
        except NoAnswer:
            raise
        except Exception:  # one element's failure is its own
            log.exception("an element broke", run=self.call["run"], path=self.call["path"], at=at)
            return ErrorValue("it broke inside; the log has more"), Usage()

    def _task(self, at: int) -> Task:
        whole, outside = engine.element_prompt(self.call["body"], self.list[at], at)
        ahead = len(self.shared)
        own = [[start - ahead, end - ahead] for start, end in outside if start >= ahead]
        prompt = prompts.marked(whole[ahead:], own, self.mark)
        return Task(
            model=self.model,
            system=self.system,
            prompt=f"{prompt}\n\n{prompts.choosing(self.labels)}" if self.labels else prompt,
            prefix=prompts.marked(self.shared, [span for span in outside if span[1] <= ahead], self.mark),
            schema=self.schema,
            cached=self.asked > 1,
        )

    async def _answer(self, task: Task) -> tuple[Any, Usage]:
        # Looked at in its place, not in the queue for one: others spend and stop meanwhile.
        if (why := self.fan.stopped or self.run.spent_with(self.fan.unsaved)) is not None:
            return ErrorValue(why), Usage()
        usage = Usage()
        said = ""
        for _ in range(child.TRIES):
            try:
                answer = await child.answer(self.agency.line, task, self.hands)
            except NoAnswer as fault:
                if fault.hopeless:
                    raise
                return ErrorValue(str(fault)), usage + fault.usage
            usage += answer.usage
            if self.choices is None or self.labels is None:
                return answer.text, usage
            said = child.picked(answer.text)
            found = asks.pick(self.choices, said)
            if found is not None:
                return found["value"], usage
            task = task.corrected(said, prompts.again(said, "it is none of the choices", self.labels))
        return ErrorValue(f"`{said}` is none of the choices, asked three times"), usage

    def _chars(self, which: list[int]) -> int:
        """Characters of these elements' prompts together, by the first one's and the elements' own size."""
        if not which or self.run.most is None:
            return 0
        first = len(engine.element_prompt(self.call["body"], self.list[which[0]], which[0])[0])
        own = len(text(self.list[which[0]]))
        return sum(first - own + len(text(self.list[at])) for at in which)

    # --- saved as they come -----------------------------------------------------------------------------------
    async def _keep(self) -> None:
        ticks = 0
        while True:
            await asyncio.sleep(SAVED_S)
            ticks += 1
            tell = ticks % round(TOLD_S / SAVED_S) == 1
            if self.fan.fresh or tell:
                await self._save(tell=tell)

    async def _save(self, *, tell: bool) -> None:
        call, (fresh, used) = self.call, self.fan.take_fresh()
        self.run = self.run.after(used)
        way = self._way() if tell else None

        def write(tx: Transaction) -> tuple[tuple[bool, bool] | None, int | None]:
            work.add_elements(tx, self.kept, fresh)
            if used.calls:
                work.spend(tx, call["run"], call["path"], used)
            if way is not None:
                work.put_progress(tx, call["run"], call["path"], way)
            limited = self.run.most is not None
            return self._stands(tx) if tell else None, work.total_spent(tx, call["run"]) if limited else None

        stands, spent = await self.agency.committer.insist(write)
        if spent is not None:  # by agents of other steps, too
            self.run = replace(self.run, used=spent)
        if stands is not None:
            paused, wanted = stands
            if not wanted:
                self.fan.stop(STOPPED)
            self.fan.pause(paused)
            self.agency.progressed(call["run"], self.run.job)

    def _stands(self, tx: Transaction) -> tuple[bool, bool]:
        """Whether the run is paused, and whether this is still wanted: another process may have said so."""
        run = runs.get(tx, self.call["run"])
        row = ops.StoredRows(tx, self.call["run"], self.run.job).op(self.call["path"])
        return run is not None and run.state == "paused", row is not None and row.open and not row.data.get("stopped")

    def _way(self) -> work.Progress:
        now, done = self.agency.clock.now(), len(self.fan.answers)
        gained, took = done - self.fan.begun, (now - self.since).total_seconds()
        left = took / gained * (self.asked - done) if gained else None
        usage = self.fan.usage
        spent = cost.dollars(usage.usd) if usage.usd and not usage.unpriced else None
        return work.Progress(
            done=done,
            total=self.asked,
            failed=self.fan.failed,
            said=fan.said(done, self.asked, self.fan.failed, spent, left),
            since=self.since,
            at=now,
        )


def fingerprint(body: Mapping[str, Any]) -> int:
    """A number for what an `each` asks: the same list, prompt, values, model and choices give the same."""
    asked = [body.get(key) for key in ("list", "prompt", "names", "model", "choices")]
    return int(digest(dump(asked))[:12], 16)
