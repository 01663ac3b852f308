"""What arrives from the world: stored once, then offered to every run with an expectation that it could settle, and to
the saved scripts that it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from bot.domain.facts import Arrived
from bot.domain.values import normalise
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, take
from bot.runtime.committer import Committer, database_away
from bot.runtime.performer import passes_by
from bot.runtime.sandbox import Sandbox
from bot.runtime.triggers import Triggers
from store import inbox, waits
from store.dialect import Transaction

log = structlog.get_logger()
AT_ONCE = 200
"""Events that are read at a time."""
Passes = dict[str, dict[str, bool | str]]
Work = Callable[[], Awaitable[None]]
HEARD_S = 5.0
"""How long the clock waits for what may be an answer: nobody stops it for good."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Work by which somebody may answer what has a deadline: the clock waits until it is done, or `Inbox.dealt` was
    told that what counts of it is committed."""

    work: Work


Doorman = Callable[[int, dict[str, Any]], Awaitable[bool | Work | Answering]]
"""Looks at an event by its number first: True, it is dealt with (and marked as routed); work that will deal with it;
False, it is for whatever waits for it."""


class Inbox:
    """`receive` returns once the event is stored. What needs no expression is settled in the same commit."""

    def __init__(self, committer: Committer, clock: Clock, sandbox: Sandbox, triggers: Triggers) -> None:
        self.committer = committer
        self.clock = clock
        self.sandbox = sandbox
        self.triggers = triggers
        self.doormen: dict[str, Doorman] = {}
        """By channel: who looks first at what came from it."""
        self.elsewhere: frozenset[str] = frozenset()
        """Channels that another process speaks to: what came from them is left to it."""
        self._routing = asyncio.Lock()
        self._busy: set[int] = set()
        self._answering: dict[int, asyncio.Event] = {}
        self.patience_s = HEARD_S
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """What is being dealt with is left, and nothing more is begun: it is in the inbox, and is taken up again."""
        self._stopped = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def receive(
        self,
        stream: str,
        body: Any,
        *,
        ident: str,
        sender: str | None = None,
        conversation: str | None = None,
        raw: Any = None,
    ) -> bool:
        at = self.clock.now()

        def write(tx: Transaction) -> tuple[bool, list[Outcome]]:
            new = inbox.add(
                tx,
                stream=stream,
                ident=ident,
                sender=sender,
                conversation=conversation,
                at=at,
                body=normalise(body),
                raw=raw,
            )
            return new, []

        new, _ = await self.committer.write(write)
        # Also for a repeat: the first time may have been cut off between storing and routing.
        await self.route_all()
        return new

    async def route_all(self) -> None:
        """Makes facts of every event that has not become one, oldest first; returns when all are applied."""
        async with self._routing:
            left: set[int] = set()
            while not self._stopped:
                passed = left | self._busy
                found = await self.committer.read(inbox.unrouted, AT_ONCE + len(passed))
                events = [(number, event) for number, event in found if number not in passed]
                if not events:
                    return
                for number, event in events:
                    if event["stream"].partition(":")[0] in self.elsewhere:
                        left.add(number)
                        continue
                    await self._routed(number, event)

    async def heard(self) -> None:
        """Returns once everything received until now is applied that could hold up what is due."""
        # Whatever was handed in before this is committed by then, so it is found.
        await self.committer.write(lambda tx: None)
        await self.route_all()
        if not self._answering:
            return
        waiting = {asyncio.create_task(one.wait()): number for number, one in self._answering.items()}
        _, late = await asyncio.wait(waiting, timeout=self.patience_s)
        for task in late:
            task.cancel()
            self.dealt(waiting[task])

    def dealt(self, number: int) -> None:
        """What counts of an event is committed, or nothing of it counts."""
        if (one := self._answering.pop(number, None)) is not None:
            one.set()

    async def _routed(self, number: int, event: dict[str, Any]) -> None:
        """Routes one; one that breaks whatever looks at it is set aside, so that it keeps nothing behind it."""
        try:
            await self._route(number, event)
        except Exception as fault:
            if database_away(fault):
                raise
            log.exception("an event could not be routed", received=event["id"])
            await self.committer.insist(lambda tx: inbox.routed(tx, [number]))

    async def _route(self, number: int, event: dict[str, Any]) -> None:
        doorman = self.doormen.get(event["stream"].partition(":")[0])
        if doorman is not None:
            verdict = await doorman(number, event)
            if not isinstance(verdict, bool):
                self._busy.add(number)
                work = verdict.work if isinstance(verdict, Answering) else verdict
                if isinstance(verdict, Answering):
                    self._answering[number] = asyncio.Event()
                task = asyncio.create_task(self._later(number, work))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            if verdict:
                return
        await self.spread(number, event)

    async def _later(self, number: int, work: Work) -> None:
        """What takes longer is dealt with beside the others; until it is done its event stays in the inbox."""
        try:
            await work()
        except Exception as fault:
            if database_away(fault):
                log.warning("database away, dealing with it again", number=number, fault=str(fault))
                self._busy.discard(number)
                return
            log.exception("what came could not be dealt with", number=number)
        finally:
            self.dealt(number)
        await self.committer.insist(lambda tx: inbox.routed(tx, [number]))
        self._busy.discard(number)

    async def spread(self, number: int, event: dict[str, Any]) -> bool:
        """Offers an event to whatever waits for it, and to what it starts; whether anything moved by it."""
        passes: Passes = {}
        starts: dict[str, bool | str] = {}
        while True:
            unknown: dict[str, dict[str, Any]] = {}
            outcomes = await self.committer.write(
                lambda tx, unknown=unknown: self._offer(tx, number, event, passes, starts, unknown)
            )
            wanted = [o for o in outcomes if o.where]
            if not wanted and not unknown:
                return any(outcome.changed for outcome in outcomes)
            for outcome in wanted:
                for path, (expression, names) in outcome.where.items():
                    passes.setdefault(outcome.run, {})[path] = await passes_by(self.sandbox, expression, names)
            for expression, names in unknown.items():
                starts[expression] = await passes_by(self.sandbox, expression, names)

    def _offer(
        self,
        tx: Transaction,
        number: int,
        event: dict[str, Any],
        passes: Passes,
        starts: dict[str, bool | str],
        unknown: dict[str, dict[str, Any]],
    ) -> list[Outcome]:
        """Gives the event to each run that could take it, and to what it starts; whoever took it before changes
        nothing. `unknown` gets the expressions of triggers that must be evaluated first."""
        at, now = datetime.fromisoformat(event["at"]), self.clock.now()
        outcomes: list[Outcome] = []
        for run_id in dict.fromkeys(
            r for r, _ in waits.waiting_for(tx, event["stream"], event["from"], event["conversation"])
        ):
            fact = Arrived(at=at, now=now, stream=event["stream"], event=event, passes=passes.get(run_id, {}))
            tx.savepoint("one")
            try:
                outcomes.append(take(tx, self.committer.site, run_id, fact))
            except Exception as fault:
                if database_away(fault):
                    raise
                # One run that cannot go on must not keep the event from the others, nor what comes after it.
                tx.rollback_to("one")
                log.exception("a run could not take an event", run=run_id, received=event["id"])
            else:
                tx.release("one")
        if any(o.where for o in outcomes):
            return outcomes
        begun, wheres = self.triggers.offer(tx, event, starts)
        unknown.update(wheres)
        if not wheres:
            inbox.routed(tx, [number])
        return outcomes + begun
