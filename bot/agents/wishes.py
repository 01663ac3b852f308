"""What people say to the bot's agent: kept, answered beside everything else, and taken up again after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bot.agents.author import Author
from bot.domain.values import whole
from bot.runtime.committer import database_away
from bot.runtime.desk import new_run_id
from bot.runtime.leases import lives
from store import leases, proposals, wishes
from store.dialect import Transaction
from store.wishes import Wish

log = structlog.get_logger()
PAUSE_S = 1.0
"""Until what the database did not take is tried again."""
BEFORE = 6
"""Wishes of the same job that the agent is reminded of."""
BEFORE_CHARS = 4_000
"""Of each answer that it is reminded of."""
BROKEN = "it broke off, and an operator finds why in the log"


class Wishes:
    """`ask` returns once a wish is stored; its answer is stored too, and told to `told`."""

    def __init__(self, author: Author, holder: str) -> None:
        self.author = author
        self.desk = author.desk
        self.holder = holder
        self.told: Callable[[Wish], Awaitable[None]] | None = None
        """Shows an answer in the conversation where it was asked for."""
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self.author.agent.name

    async def ask(
        self, text: str, *, by: str, job: str, ident: str | None = None, conversation: str | None = None
    ) -> Wish:
        """Puts the agent on work for somebody who may start scripts. `ident`: so that a repeat asks nothing again."""
        now = self.desk.clock.now()
        row = Wish(
            id=ident or f"p_{new_run_id(now)}", job=job, by=by, author=self.author.name, text=whole(text), at=now,
            holder=self.holder, conversation=conversation,
        )  # fmt: skip
        if await self.desk.committer.write(lambda tx: wishes.put(tx, row)):
            self.desk.listeners.tell(job, "*")
            return row
        return await self.desk.committer.read(wishes.get, row.id) or row

    def begin(self, row: Wish) -> None:
        """Has it answered, beside whatever else is done; once."""
        if row.id not in self._tasks and row.state == "open":
            task = self._tasks[row.id] = asyncio.create_task(self._answered(row), name=f"wish {row.id}")
            task.add_done_callback(lambda _: self._tasks.pop(row.id, None))

    async def look(self) -> None:
        """Takes up what a process that is gone has left."""
        left = [row for row in await self.desk.committer.read(wishes.in_state, "open") if row.id not in self._tasks]
        if left:
            standing = await self.desk.committer.read(leases.live, self.desk.clock.now())
            for row in left:
                if row.holder == self.holder or (not lives(row.holder or "", standing) and await self._mine(row)):
                    self.begin(row)

    async def stop(self) -> None:
        """What is at work is left: the next process takes it up."""
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _mine(self, row: Wish) -> bool:
        return await self.desk.committer.write(lambda tx: wishes.take(tx, row.id, row.holder or "", self.holder))

    async def _answered(self, row: Wish) -> None:
        while True:
            try:
                said, failed = await self._said(row)
                break
            except Exception as fault:
                if not database_away(fault):
                    log.exception("an agent's answer broke off", wish=row.id)
                    said, failed = BROKEN, True
                    break
                log.warning("database away, asking again", wish=row.id, fault=str(fault))
                await asyncio.sleep(PAUSE_S)
        state: wishes.State = "done" if row.conversation is None else "said"
        now = self.desk.clock.now()
        await self.desk.committer.insist(lambda tx: wishes.end(tx, row.id, said, now, failed=failed, state=state))
        self.desk.listeners.tell(row.job, "*")
        kept = await self.desk.committer.read(wishes.get, row.id)
        if self.told is not None and kept is not None and row.conversation is not None:
            await self.told(kept)

    async def _said(self, row: Wish) -> tuple[str, bool]:
        """The agent's words, and whether they say why there is no answer."""
        if await self.desk.committer.read(proposals.get, row.id) is not None:
            return "", False  # it was proposed, and the process died before it kept the words
        before = await self.desk.committer.read(_before, row)
        written = await self.author.answer(row.text, by=row.by, job=row.job, ident=row.id, before=before)
        return written.text, written.failed


def _before(tx: Transaction, row: Wish) -> str:
    """What was said before in the same job, so that "make it three days" means something."""
    found = [w for w in wishes.of_job(tx, row.job, BEFORE + 1) if w.id != row.id and w.state != "open" and not w.failed]
    lines: list[str] = []
    for one in reversed(found[:BEFORE]):
        made = proposals.get(tx, one.id)
        lines.append(f"{one.by} said: {one.text[:BEFORE_CHARS]}\nYou answered: {(one.said or '')[:BEFORE_CHARS]}")
        if made is not None:
            lines.append(f"and proposed this, which is {_became(made.state)}:\n{made.text[:BEFORE_CHARS]}")
    return "What was said here before:\n" + "\n".join(lines) if lines else ""


def _became(state: proposals.State) -> str:
    return {"open": "not decided yet", "run": "run", "discarded": "discarded", "replaced": "replaced"}[state]
