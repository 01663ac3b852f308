"""The one writer: what waits shares a transaction; a piece that fails takes nothing of the others with it; what is
alone waits for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import structlog

from bot.domain.facts import Fact
from bot.runtime.commit import Outcome, Site, take
from store.dialect import Transaction
from store.transaction import Database

log = structlog.get_logger()
T = TypeVar("T")
Work = Callable[[Transaction], Any]
BATCH = 64
"""Pieces of work that share one commit at most."""
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
        self._waiting: asyncio.Queue[tuple[Work, asyncio.Future[Any]]] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="reader")
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="committer")

    async def stop(self) -> None:
        """Ends once everything handed in is committed."""
        if self._task is not None:
            await self._waiting.join()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._thread.shutdown(wait=True)
        self._readers.shutdown(wait=True)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Does a piece of work in a transaction; returns after the commit."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((work, future))
        return await future

    async def insist(self, work: Callable[[Transaction], T]) -> T:
        """Writes, however long the database is away: what has happened outside must not be lost."""
        while True:
            try:
                return await self.write(work)
            except Exception as fault:
                if not database_away(fault):
                    raise
                log.warning("database away, trying again", fault=str(fault))
                await asyncio.sleep(DATABASE_PAUSE_S)

    async def fact(self, run_id: str, fact: Fact) -> Outcome:
        return await self.write(lambda tx: take(tx, self.site, run_id, fact))

    async def read(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: self.db.read(work, *args))

    async def _loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            works = [work for work, _ in batch]
            try:
                results = await loop.run_in_executor(self._thread, self._commit, works)
            except Exception as fault:  # the database is gone: everyone who waits is told, nothing was written
                results = [fault] * len(batch)
            outcomes: list[Outcome] = []
            for (_, future), result in zip(batch, results, strict=True):
                self._waiting.task_done()
                found = result if isinstance(result, list) else [result]
                outcomes += [o for o in found if isinstance(o, Outcome) and o.changed]
                if future.cancelled():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
            if outcomes:
                try:
                    self.after(outcomes)
                except Exception:  # it is committed; without this loop nothing would ever be again
                    log.exception("what follows a commit failed")

    def _commit(self, works: Sequence[Work]) -> list[Any]:
        if len(works) > 1:
            try:
                return self.db.write(lambda tx: [work(tx) for work in works])
            except Exception as fault:
                if database_away(fault):
                    raise
                # One of them failed and took the others with it: again, each in a savepoint of its own.
                return self.db.write(_each, works)
        return [self.db.write(works[0])]


def _each(tx: Transaction, works: Sequence[Work]) -> list[Any]:
    """Every piece of work in a savepoint: one that fails takes nothing of the others with it."""
    results: list[Any] = []
    for work in works:
        tx.savepoint()
        try:
            results.append(work(tx))
        except Exception as fault:
            tx.rollback_to()
            results.append(fault)
        else:
            tx.release()
    return results
