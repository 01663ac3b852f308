"""The one writer: what waits shares a transaction; a piece that fails takes nothing of the others with it; what is
alone waits for nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

import structlog

from bot.domain.facts import Fact
from bot.runtime.commit import Outcome, Result, Site, take, take_results
from store.dialect import Transaction
from store.transaction import Busy, Database

log = structlog.get_logger()
T = TypeVar("T")
Work = Callable[[Transaction], Any] | Result
_Piece = tuple[Work, asyncio.Future[Any]]
BATCH = 64
"""Pieces of work that share one commit at most."""
QUICK_S = 0.005
"""A commit that usually takes less may be made on the loop's own thread."""
DATABASE_PAUSE_S = 1.0
"""Between attempts to write what must not be lost while the database is away."""


def database_away(fault: Exception) -> bool:
    """Whether a write failed because the database could not be reached or was busy."""
    return type(fault).__name__ in ("OperationalError", "InterfaceError", "AdminShutdown", "TimeoutError")


class Committer:
    """Runs pieces of work in order, many to a commit. `after` gets every outcome once it is committed.

    A piece of work may be run more than once (it was rolled back before): what it does outside of its transaction must
    not count."""

    def __init__(self, db: Database, site: Site, after: Callable[[list[Outcome]], None]) -> None:
        self.db = db
        self.site = site
        self.after = after
        self._arrived: list[_Piece] = []
        self._waiting: SimpleQueue[_Piece | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="writer", daemon=True)
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="reader")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = 0
        self._usual_s = 0.0
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        """Begins to write; once is enough."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._writer.start()

    async def stop(self) -> None:
        """Ends once everything handed in is committed."""
        if self._loop is not None:
            await self._idle.wait()
            self._waiting.put(None)
            await asyncio.to_thread(self._writer.join)
            self._loop = None
        self._readers.shutdown(wait=True)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Does a piece of work in a transaction; returns after the commit."""
        return await self._write(work)

    def _write(self, work: Work) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open += 1
        self._idle.clear()
        if not self._arrived:
            future.get_loop().call_soon(self._hand_in)
        self._arrived.append((work, future))
        return future

    def _hand_in(self) -> None:
        """Gives the writer what came in during one turn of the loop. A result that comes alone, while nothing is being
        written, is written here: the way to the writer's thread and back would cost as much as the commit."""
        arrived, self._arrived = self._arrived, []
        if len(arrived) == self._open == 1 and isinstance(arrived[0][0], Result) and self._usual_s < QUICK_S:
            try:
                results = [self._timed(lambda: self.db.write_at_once(_together, self.site, [arrived[0][0]])[0])]
            except Busy:
                pass
            except Exception as fault:
                self._committed(arrived, [fault])
                return
            else:
                self._committed(arrived, results)
                return
        for piece in arrived:
            self._waiting.put(piece)

    def _timed(self, work: Callable[[], T]) -> T:
        """Does it, and keeps in mind how long a commit usually takes."""
        begun = time.perf_counter()
        found = work()
        self._usual_s += (time.perf_counter() - begun - self._usual_s) / 8
        return found

    async def report(self, result: Result) -> None:
        """Writes what ended outside, however long the database is away."""
        await self._insist(result)

    async def insist(self, work: Callable[[Transaction], T]) -> T:
        """Writes, however long the database is away: what has happened outside must not be lost."""
        return await self._insist(work)

    async def _insist(self, work: Work) -> Any:
        while True:
            try:
                return await self._write(work)
            except Exception as fault:
                if not database_away(fault):
                    raise
                log.warning("database away, trying again", fault=str(fault))
                await asyncio.sleep(DATABASE_PAUSE_S)

    async def fact(self, run_id: str, fact: Fact) -> Outcome:
        return await self.write(lambda tx: take(tx, self.site, run_id, fact))

    async def read(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: self.db.read(work, *args))

    def _write_all(self) -> None:
        """The writer's thread: what has come in while it was at work shares the next commit."""
        assert self._loop is not None
        loop = self._loop
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < BATCH:
                try:
                    further = self._waiting.get_nowait()
                except Empty:
                    break
                if further is None:
                    self._waiting.put(None)
                    break
                batch.append(further)
            try:
                results = self._commit([work for work, _ in batch])
            except Exception as fault:  # the database is gone: everyone who waits is told, nothing was written
                results = [fault] * len(batch)
            loop.call_soon_threadsafe(self._committed, batch, results)

    def _committed(self, batch: list[_Piece], results: list[Any]) -> None:
        outcomes: list[Outcome] = []
        for (_, future), result in zip(batch, results, strict=True):
            found = result if isinstance(result, list) else [result]
            outcomes += [o for o in found if isinstance(o, Outcome) and o.changed]
            if future.cancelled():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._open -= len(batch)
        if outcomes:
            try:
                self.after(outcomes)
            except Exception:  # it is committed; without this nothing would ever be again
                log.exception("what follows a commit failed")
        if not self._open:
            self._idle.set()

    def _commit(self, works: Sequence[Work]) -> list[Any]:
        try:
            return self._timed(lambda: self.db.write(_together, self.site, works))
        except Exception as fault:
            if len(works) == 1 or database_away(fault):
                raise
            # One of them failed and took the others with it: again, each in a savepoint of its own.
            return self.db.write(_each, self.site, works)


def _together(tx: Transaction, site: Site, works: Sequence[Work]) -> list[Any]:
    """Every piece of work in turn; results of one run that stand side by side as one step."""
    results: list[Any] = []
    at = 0
    while at < len(works):
        work, after = works[at], at + 1
        if isinstance(work, Result):
            while after < len(works) and getattr(works[after], "run", None) == work.run:
                after += 1
            results.append(take_results(tx, site, cast("Sequence[Result]", works[at:after])))
            results += [None] * (after - at - 1)
        else:
            results.append(work(tx))
        at = after
    return results


def _each(tx: Transaction, site: Site, works: Sequence[Work]) -> list[Any]:
    """Every piece of work in a savepoint: one that fails takes nothing of the others with it."""
    results: list[Any] = []
    for work in works:
        tx.savepoint()
        try:
            results += _together(tx, site, [work])
        except Exception as fault:
            tx.rollback_to()
            results.append(fault)
        else:
            tx.release()
    return results
