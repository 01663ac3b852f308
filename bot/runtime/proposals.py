"""Scripts that agents wrote: they are put before a person, who runs, changes or discards them. Nothing of one starts
before that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bot.domain.ids import digest
from bot.language.check.preflight import acts
from bot.language.script import Examined
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What became of a script that an agent hands in: it was refused or has started (`started`), or holds until a
    person lets it run (`held`). `text`: for whoever works with that agent."""

    text: str
    seen: Examined
    started: Started | None = None
    held: Proposal | None = None


class Proposals:
    """`put` stores one, `run` and `discard` decide it: once, whoever comes first."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.changed: Callable[[Proposal], None] | None = None
        """Is told of what was put before people, decided, or written anew."""

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
        found = await self._moved(row.id)
        assert found is not None
        return found

    async def hold_or_start(
        self,
        text: str,
        *,
        by: str,
        job: str,
        author: str,
        inputs: Mapping[str, Any] | None = None,
        ident: str | None = None,
    ) -> Begun:
        """Takes a script that an agent (`author`, `agent:NAME`) starts for somebody who may start scripts here. One
        that does nothing outside starts at once, as theirs; one that does is put before people, unless the policy says
        otherwise (`agent_runs`). `ident`: the caller's own, so that a repeat gives what the first gave; of all callers
        together."""
        named = ident_of(ident) if ident is not None else None
        if named is not None and (kept := await self.get(named)) is not None:
            seen = await self.desk.check(kept.text, by=by, job=job, starting=False)
            return Begun(text=self._holds(kept), seen=seen, held=kept)
        seen = await self.desk.check(text, by=by, job=job, inputs=inputs)
        if seen.refused or seen.plan is None:
            return Begun(text="Nothing has started.", seen=seen, started=Started(seen=seen))
        world = await self.desk.world()
        if world.policy.agent_runs == "confirm" and acts(seen.plan, self.desk.catalog, world):
            row = await self.put(text, job=job, author=author, owner=by, inputs=inputs, ident=named)
            return Begun(text=self._holds(row), seen=seen, held=row)
        run_id = run_of(named) if named is not None else None
        started = await self.desk.start(text, by=by, job=job, inputs=inputs, author=author, run_id=run_id)
        if started.refused:
            return Begun(text="Nothing has started.", seen=seen, started=started)
        said = f"Saved as `{started.saved['name']}`." if started.saved is not None else "It runs."
        return Begun(text=said, seen=seen, started=started)

    def _holds(self, row: Proposal) -> str:
        if row.state != "open":
            return self._stands(row).text
        return f"It writes, so it holds until a person taps Run: {self.desk.site.url}/jobs/{quote(row.job)}"

    async def get(self, ident: str) -> Proposal | None:
        return await self.desk.committer.read(proposals.get, ident)

    async def run(
        self,
        ident: str,
        *,
        by: str,
        text: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        instead: bool = False,
    ) -> Decided:
        """Somebody lets it run, as their own: with their rights, and named beside the agent that wrote it. `text`: as
        they have changed it; `inputs`: in place of those that it was handed in with; `instead`: it is their own script,
        which runs in its place."""
        row = await self.get(ident)
        if (refused := await self.refused(row, by)) is not None or row is None:
            return refused or _NOT_THERE

        def claim(tx: Transaction) -> bool:
            return proposals.decide(tx, ident, state, by, self.desk.clock.now(), run_id)

        run_id = run_of(ident)
        state: proposals.State = "replaced" if instead else "run"
        started = await self.desk.start(
            text if text is not None else row.text,
            by=by,
            job=row.job,
            inputs=row.inputs if inputs is None else inputs,
            author=None if instead else row.author,
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
            await self.desk.committer.write(lambda tx: proposals.decide(tx, ident, state, by, self.desk.clock.now()))
            await self._moved(ident)
            return Decided(text=f"Saved as `{started.saved['name']}`.", accepted=True, started=started)
        await self._moved(ident)
        return Decided(text="It runs.", accepted=True, run=run_id, started=started)

    async def discard(self, ident: str, *, by: str) -> Decided:
        row = await self.get(ident)
        if (refused := await self.refused(row, by)) is not None or row is None:
            return refused or _NOT_THERE
        done = await self.desk.committer.write(
            lambda tx: proposals.decide(tx, ident, "discarded", by, self.desk.clock.now())
        )
        if not done:
            return self._stands(await self.get(ident))
        await self._moved(ident)
        return Decided(text="Discarded. Nothing has started.", accepted=True)

    async def replace(self, ident: str, *, by: str, run: str | None = None) -> bool:
        """Something newer stands in its place: another script, which has become this run."""
        done = await self.desk.committer.write(
            lambda tx: proposals.decide(tx, ident, "replaced", by, self.desk.clock.now(), run)
        )
        await self._moved(ident)
        return done

    async def rewrite(self, ident: str, text: str, *, by: str) -> Decided:
        """Somebody has changed its script, and it is to be decided anew."""
        row = await self.get(ident)
        if (refused := await self.refused(row, by)) is not None or row is None:
            return refused or _NOT_THERE
        done = await self.desk.committer.write(lambda tx: proposals.rewrite(tx, ident, text))
        await self._moved(ident)
        return Decided(text="Nothing has started.", accepted=True) if done else self._stands(await self.get(ident))

    async def _moved(self, ident: str) -> Proposal | None:
        found = await self.get(ident)
        if found is not None:
            self.desk.listeners.tell(found.job, "*")
            if self.changed is not None:
                self.changed(found)
        return found

    async def refused(self, row: Proposal | None, by: str) -> Decided | None:
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


def ident_of(key: str) -> str:
    """The id of what somebody hands in under a key of their own: the same however often they do."""
    return f"p_{digest(key)[:16]}"


def run_of(ident: str) -> str:
    """The id of the run that a proposal becomes: the same however often it is let run."""
    return "r_" + digest(f"proposal {ident}")[:14]


_NOT_THERE = Decided(text="There is no such proposal. Nothing has started.", accepted=False)
