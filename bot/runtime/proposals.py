"""Scripts that agents wrote: they are put before a person, who runs, changes or discards them. Nothing of one starts
before that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.ids import digest
from bot.people import policy
from bot.runtime.desk import Desk, Started, new_run_id
from store import proposals
from store.dialect import Transaction
from store.proposals import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of a tap on a proposal. `text`: for whoever tapped; `run`: the run that it became."""

    text: str
    accepted: bool
    run: str | None = None
    started: Started | None = None
    """What the checks said of it, where it was to run."""


class Proposals:
    """`put` stores one, `run` and `discard` decide it: once, whoever comes first."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def put(
        self,
        text: str,
        *,
        job: str,
        author: str,
        owner: str,
        wish: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        ident: str | None = None,
    ) -> Proposal:
        """Stores a script that an agent wrote for somebody. `author`: `agent:NAME`; `ident`: so that a repeat is none.
        It has been checked: one with problems goes back to its author."""
        now = self.desk.clock.now()
        row = Proposal(
            id=ident or f"p_{new_run_id(now)}",
            job=job,
            author=author,
            owner=owner,
            text=text,
            at=now,
            wish=wish,
            inputs=dict(inputs) if inputs else None,
        )
        await self.desk.committer.write(lambda tx: proposals.put(tx, row))
        self.desk.listeners.tell(job, "*")
        found = await self.get(row.id)
        assert found is not None
        return found

    async def get(self, ident: str) -> Proposal | None:
        return await self.desk.committer.read(proposals.get, ident)

    async def run(self, ident: str, *, by: str, text: str | None = None) -> Decided:
        """Somebody lets it run, as their own: with their rights, and named beside the agent that wrote it. `text`: as
        they have changed it."""
        row = await self.get(ident)
        if (refused := await self._refused(row, by)) is not None or row is None:
            return refused or _NOT_THERE

        def claim(tx: Transaction) -> bool:
            return proposals.decide(tx, ident, "run", by, self.desk.clock.now(), run_id)

        run_id = run_of(ident)
        started = await self.desk.start(
            text if text is not None else row.text,
            by=by,
            job=row.job,
            inputs=row.inputs,
            author=row.author,
            run_id=run_id,
            claim=claim,
        )
        if started.refused:
            problems = len(started.seen.problems)
            if not problems:
                return self._stands(await self.get(ident))
            said = f"It has {problems} problem{'' if problems == 1 else 's'} as things are now. Nothing has started."
            return Decided(text=said, accepted=False, started=started)
        if started.saved is not None:
            await self.desk.committer.write(lambda tx: proposals.decide(tx, ident, "run", by, self.desk.clock.now()))
            return Decided(text=f"Saved as `{started.saved['name']}`.", accepted=True, started=started)
        self.desk.listeners.tell(row.job, "*")
        return Decided(text="It runs.", accepted=True, run=run_id, started=started)

    async def discard(self, ident: str, *, by: str) -> Decided:
        row = await self.get(ident)
        if (refused := await self._refused(row, by)) is not None or row is None:
            return refused or _NOT_THERE
        done = await self.desk.committer.write(
            lambda tx: proposals.decide(tx, ident, "discarded", by, self.desk.clock.now())
        )
        if not done:
            return self._stands(await self.get(ident))
        self.desk.listeners.tell(row.job, "*")
        return Decided(text="Discarded. Nothing has started.", accepted=True)

    async def replace(self, ident: str, *, by: str) -> bool:
        """A newer proposal stands in its place."""
        return await self.desk.committer.write(
            lambda tx: proposals.decide(tx, ident, "replaced", by, self.desk.clock.now())
        )

    async def _refused(self, row: Proposal | None, by: str) -> Decided | None:
        """Why somebody may not decide it; None where they may."""
        if row is None:
            return _NOT_THERE
        world = await self.desk.world()
        if not await self.desk.committer.read(policy.reads_job, row.job, by):
            return _NOT_THERE
        if not policy.may_paste(world, by):
            who = policy.who_pastes(world)
            return Decided(text=f"Scripts are started by {who} here. Nothing has started.", accepted=False)
        return None if row.state == "open" else self._stands(row)

    def _stands(self, row: Proposal | None) -> Decided:
        if row is None:
            return _NOT_THERE
        world = self.desk.site.world(self.desk.clock.now())
        who = world.name_of(row.by or "")
        match row.state:
            case "run":
                return Decided(text=f"{who} has run it. Nothing changed.", accepted=False, run=row.run)
            case "discarded":
                return Decided(text=f"{who} has discarded it. Nothing has started.", accepted=False)
            case _:
                return Decided(text="A newer proposal stands in its place. Nothing has started.", accepted=False)


def run_of(ident: str) -> str:
    """The id of the run that a proposal becomes: the same however often it is let run."""
    return "r_" + digest(f"proposal {ident}")[:14]


_NOT_THERE = Decided(text="There is no such proposal. Nothing has started.", accepted=False)
