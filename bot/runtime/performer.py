"""Does the work that steps ask for, after their commit, and reports back: the sandbox, files, tools, other scripts."""

from __future__ import annotations

import asyncio
import io
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol

import structlog

from bot.domain.changes import Call, Step
from bot.domain.errors import OpError
from bot.domain.facts import Arrived, Edited, Returned, returned
from bot.domain.ids import digest
from bot.domain.values import plain
from bot.runtime import files as filing
from bot.runtime import starting
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, Result, take
from bot.runtime.committer import DATABASE_PAUSE_S, Committer, database_away
from bot.runtime.leases import lives, run_lease
from bot.runtime.sandbox import Sandbox
from bot.runtime.tools import ToolFailed, ToolLost, Tools
from bot.runtime.ways import Way
from store import inbox, leases, outbox, runs, scripts, triggers
from store.dialect import Transaction
from store.work import Progress, over, put_progress

log = structlog.get_logger()
AT_ONCE = 64
"""Tools and files at work at the same time."""
CANCELLED = "cancelled"
"""What became of a call whose result nobody wants any more."""
ENDING_S = 5
"""How long what is at work may take when the process ends."""

Work = dict[str, Any]


class Agents(Protocol):
    """Whoever does the calls of agents (`bot.agents.agency`)."""

    async def perform(self, call: Work) -> None:
        """Does one call and reports its end."""
        ...

    def stop(self, run: str, path: str) -> None:
        """The op begins nothing more; what is at work runs to its end."""
        ...

    def pause(self, run: str, paused: bool) -> None:
        """Nothing more begins in a run while it is paused."""
        ...


class Performer:
    """`take_up` gets the calls of a committed step. What a process that died had in flight is found by `look`:
    repeated where that is safe, put to its owner where it is not.

    `holder` names this process. `only`: a run that a terminal works on, with the runs that it has started (`below`);
    other runs' work is the server's."""

    def __init__(
        self,
        committer: Committer,
        clock: Clock,
        sandbox: Sandbox,
        tools: Tools,
        files: filing.Files,
        holder: str,
        only: str | None = None,
    ) -> None:
        self.holder = holder
        self.only = only
        self.below: set[str] = set()
        self.committer = committer
        self.clock = clock
        self.sandbox = sandbox
        self.tools = tools
        self.files = files
        self._ready: deque[Work] = deque()
        self._at_work = 0
        self._promised = 0
        self._marking = False
        self._ending = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: set[tuple[Any, ...]] = set()
        self._called: dict[tuple[Any, ...], asyncio.Task[None]] = {}
        self.progressed: Callable[[str, str], None] = lambda run, job: None
        """Told of runs (and their jobs) whose tools are further on."""
        self.agents: Agents | None = None
        """None where no agent is configured."""
        self._asked: dict[tuple[Any, ...], asyncio.Task[None]] = {}
        self._kinds: dict[str, Callable[[Work], Awaitable[Any]]] = {
            "cel": self._cel,
            "jq": self._jq,
            "file": self._file,
            "tool": self._tool,
        }

    async def look(self) -> None:
        """Takes up what nobody works on: left by a process that died, or handed in by one that does not work."""
        rows = await self.committer.read(outbox.open_calls, 10_000)
        rows = [w for w in rows if _key(w) not in self._busy]
        if not rows:
            return
        standing = await self.committer.read(leases.live, self.clock.now())
        for work in rows:
            other = standing.get(run_lease(work["run"]))
            if self._others(work["run"]) or (other not in (None, self.holder) and lives(other or "", standing)):
                continue
            if work["state"] == "sent" and work["holder"] == self.holder:
                # Marked by a commit whose acknowledgement was lost: marking it again says whether it is still open.
                self._spawn({**work, "state": "queued"})
                continue
            if work["state"] == "sent" and lives(work["holder"] or "", standing):
                continue
            if work["state"] == "sent" and not work["idempotent"]:
                self._busy.add(_key(work))
                lost = {**work, "progressed": True}
                await self._report(lost, error="its answer was lost: the process that made it has died", lost=True)
                self._busy.discard(_key(work))
            else:
                self._spawn({**work, "progressed": work["kind"] == "tool"})

    async def stop(self) -> None:
        """Waits for what is at work, a moment at most, and begins nothing more but what a commit has marked as begun:
        what is queued is the next process's, while a write that is cut off would be a doubt."""
        self._ending = True
        try:
            async with asyncio.timeout(ENDING_S):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            pass
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def begins(self, call: Call) -> str | None:
        """Whether this process makes a call as soon as it is committed: then the commit that asks for it marks it as
        begun, and no second one is needed. Asked by the writer, inside the transaction."""
        if call.kind != "tool" or call.idempotent or self.only is not None or self._ending or self._ready:
            return None
        if self._at_work + self._promised >= AT_ONCE:
            return None
        self._promised += 1
        return self.holder

    def take_up(self, run_id: str, step: Step) -> None:
        """The calls of a committed step."""
        self._promised = 0
        if self._others(run_id):
            return
        for call in step.calls:
            self._spawn(
                {
                    "run": run_id,
                    "path": call.path,
                    "attempt": call.attempt,
                    "kind": call.kind,
                    "n": call.n,
                    "body": call.body,
                    "at": call.at,
                    "state": "sent" if call.key in step.begun else "queued",
                    "idempotent": call.idempotent,
                    "timeout_s": call.timeout_s,
                }
            )

    def _others(self, run_id: str) -> bool:
        """Whether a run is not this terminal's to work on."""
        return self.only is not None and run_id != self.only and run_id not in self.below

    def _spawn(self, work: Work) -> None:
        key = _key(work)
        if key in self._busy or self._left(work):
            return
        self._busy.add(key)
        if work["kind"] in self._kinds:
            self._ready.append(work)
            self._advance()
        else:
            self._begin(work, self._pass_on(work))

    def _left(self, work: Work) -> bool:
        """Whether a call is the next process's: this one ends, and has not marked it."""
        return self._ending and work["state"] != "sent"

    def _advance(self) -> None:
        """Begins what is ready, so many at once. What may not be repeated is marked as begun first; what becomes ready
        meanwhile is marked together."""
        marked: list[Work] = []
        while self._ready and self._at_work < AT_ONCE and not self._marking:
            work = self._ready.popleft()
            if self._left(work):
                self._busy.discard(_key(work))
                continue
            self._at_work += 1
            if work["idempotent"] or work["state"] == "sent":
                self._begin(work, self._perform(work), self._room_again)
            else:
                marked.append(work)
        if marked:
            self._marking = True
            self._keep(asyncio.create_task(self._mark(marked)))

    async def _mark(self, works: list[Work]) -> None:
        def write(tx: Transaction) -> list[bool]:
            return outbox.calls_sent(tx, works, self.clock.now(), self.holder)

        try:
            mine = await self.committer.insist(write)
        finally:
            self._marking = False
        for work, begun in zip(works, mine, strict=True):
            if begun:
                self._begin(work, self._perform(work), self._room_again)
            else:  # somebody else has it, or it was dropped
                self._busy.discard(_key(work))
                self._at_work -= 1
        self._advance()

    def _room_again(self) -> None:
        self._at_work -= 1
        self._advance()

    def _begin(self, work: Work, doing: Coroutine[Any, Any, None], after: Callable[[], None] = lambda: None) -> None:
        def ended(_: asyncio.Task[None]) -> None:
            self._busy.discard(_key(work))
            after()

        task = asyncio.create_task(self._whole(work, doing))
        self._keep(task)
        task.add_done_callback(ended)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _whole(self, work: Work, doing: Coroutine[Any, Any, None]) -> None:
        try:
            await doing
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("call failed", run=work["run"], path=work["path"], kind=work["kind"])
            await self._report(work, error="it broke inside; the log has more")

    async def _pass_on(self, work: Work) -> None:
        """What is done by this process's own rows, at once."""
        if work["kind"] == "early":
            await self._early(work)
        elif work["kind"] == "run":
            await self.committer.insist(lambda tx: self._run(tx, work))
        elif work["kind"] == "stop-run":
            await self.committer.insist(lambda tx: self._stop_run(tx, work))
        elif self.agents is None:
            await self._report(work, error="no agent is configured")
        else:
            await self._agent(self.agents, work)

    async def _agent(self, agents: Agents, work: Work) -> None:
        key, task = _key(work), asyncio.current_task()
        assert task is not None
        if work["state"] != "sent" and not await self._mine(work):
            return
        self._asked[key] = task
        try:
            await agents.perform(work)
        finally:
            self._asked.pop(key, None)

    async def _mine(self, work: Work) -> bool:
        """Marks a call as this process's: agents are paid for, so no two do the same. False where another has it, or
        nobody wants it any more."""
        (mine,) = await self.committer.insist(lambda tx: outbox.calls_sent(tx, [work], self.clock.now(), self.holder))
        return mine

    def drop(self, run_id: str, step: Step) -> None:
        """What a committed step does not want any more is called back: agents that it drops, tools that it stops and
        that may be called again; of a fan-out that it stops, or whose run it pauses, none begins any more."""
        if not (self._called or self._ready or self._asked):
            return
        stopped = [row.path for row in step.ops if row.open and row.data.get("stopped")]
        for path in [*step.dropped_calls, *stopped]:
            self.cancel(run_id, path)
        if self._asked and self.agents is not None:
            if step.run is not None:
                self.agents.pause(run_id, step.run.state == "paused")
            for key in [k for k in self._asked if k[0] == run_id and k[1] in step.dropped_calls]:
                self._asked.pop(key).cancel()
            for path in stopped:
                self.agents.stop(run_id, path)

    async def _perform(self, work: Work) -> None:
        try:
            value = await self._kinds[work["kind"]](work)
        except OpError as fault:
            await self._report(work, error=str(fault))
        except ToolFailed as fault:
            await self._report(work, error=str(fault))
        except ToolLost as fault:
            await self._report(work, error=str(fault), lost=not work["idempotent"])
        else:
            await self._report(work, value=value)

    async def _cel(self, work: Work) -> Any:
        return await self.sandbox.cel(work["body"]["text"], work["body"]["names"])

    async def _jq(self, work: Work) -> Any:
        body = work["body"]
        return await self.sandbox.jq(body["text"], body["value"], body["variables"])

    async def _file(self, work: Work) -> Any:
        return await asyncio.to_thread(filing.perform, self.files, dict(work["body"]))

    async def _tool(self, work: Work) -> Any:
        body = work["body"]

        async def keep(name: str, data: bytes) -> tuple[str, int]:
            return await asyncio.to_thread(self.files.keep, await self._job(work["run"]), name, io.BytesIO(data))

        async def further(now: Progress) -> None:
            work["progressed"] = True
            await self.committer.insist(lambda tx: put_progress(tx, work["run"], work["path"], now))
            self.progressed(work["run"], await self._job(work["run"]))

        way = Way(self.clock, further)
        try:
            return await self._called_off(
                work,
                self.tools.call(
                    body["tool"], dict(body["params"]), body["key"], work["timeout_s"], progress=way.told, keep=keep
                ),
            )
        finally:
            if way.begun:
                await way.end()

    async def _job(self, run_id: str) -> str:
        run = await self.committer.read(runs.get, run_id)
        assert run is not None
        return run.job

    async def _called_off(self, work: Work, calling: Coroutine[Any, Any, Any]) -> Any:
        """A call, which `cancel` ends; but a write runs to its end, which is recorded."""
        if not work["idempotent"]:
            return await calling
        key, task = _key(work), asyncio.current_task()
        assert task is not None
        self._called[key] = task
        try:
            return await calling
        except asyncio.CancelledError:
            if self._called.get(key) is task:  # not by `cancel`: this process ends
                raise
            task.uncancel()
            raise ToolFailed(CANCELLED) from None
        finally:
            self._called.pop(key, None)

    def cancel(self, run_id: str, path: str) -> None:
        """Nobody wants the result of this op any more: what may be repeated is cancelled, or not begun."""
        for work in [w for w in self._ready if (w["run"], w["path"], w["kind"]) == (run_id, path, "tool")]:
            if work["idempotent"]:
                self._ready.remove(work)
                self._begin(work, self._report(work, error=CANCELLED))
        for key in [k for k in self._called if k[:2] == (run_id, path)]:
            self._called.pop(key).cancel()

    async def _early(self, work: Work) -> None:
        for ident in work["body"]["events"]:
            while True:
                try:
                    event = await self.committer.read(inbox.get, ident)
                    if event is not None:
                        await arrive(
                            self.committer, self.sandbox, work["run"], event, now=self.clock.now(), only=work["path"]
                        )
                    break
                except Exception as fault:  # an event offered twice is offered once
                    if not database_away(fault):
                        raise
                    await asyncio.sleep(DATABASE_PAUSE_S)
        await self._report(work)

    def _run(self, tx: Transaction, work: Work) -> list[Outcome]:
        """Starts a saved script as a run of its own; its end comes back with its own commit."""
        now = self.clock.now()
        parent = runs.get(tx, work["run"])
        assert parent is not None
        saved = scripts.get(tx, work["body"]["script"])
        outbox.call_done(tx, work, now)
        if saved is None:
            return [
                take(
                    tx,
                    self.committer.site,
                    work["run"],
                    returned(work, now, error=f"there is no saved script `{work['body']['script']}`"),
                )
            ]
        child = "r_" + digest(f"{work['run']} {work['path']} {work['attempt']}")[:14]
        if runs.get(tx, child) is not None:
            return []
        plan = self.committer.site.index(tx, saved["plan"]).plan
        if not self._others(parent.id) and self.only is not None:
            self.below.add(child)
        told = take(tx, self.committer.site, parent.id, returned(work, now, child=child))
        by = f"`{parent.data['script']}`" if parent.data.get("script") else f"`{parent.id}`"
        triggers.add(
            tx,
            script=saved["name"],
            event=f"run/{child}",
            state="live",
            key=child,
            job=parent.job,
            at=now,
            run=child,
            version=saved["version"],
            why=f"{by}, which runs it",
        )
        begun = starting.begin(
            tx,
            self.committer.site,
            saved,
            plan,
            run=child,
            job=parent.job,
            owner=parent.owner,
            at=now,
            given=work["body"]["inputs"],
            data={"depth": work["body"]["depth"], "attempt": work["attempt"]},
            parent=f"{parent.id} {work['path']}",
        )
        return [told, begun]

    def _stop_run(self, tx: Transaction, work: Work) -> list[Outcome]:
        outbox.call_done(tx, work, self.clock.now())
        child = work["body"].get("run")
        row = runs.get(tx, child) if child else None
        if row is None or row.ended is not None:
            return []
        fact = Edited(at=self.clock.now(), by=row.owner, edit={"run": "cancel"}, why="the run that started it went on")
        return [take(tx, self.committer.site, row.id, fact)]

    async def _report(self, work: Work, *, value: Any = None, error: str | None = None, lost: bool = False) -> None:
        def ended() -> Returned:
            return returned(work, self.clock.now(), value=value, error=error, lost=lost)

        def done(tx: Transaction) -> None:
            outbox.call_done(tx, work, self.clock.now())
            if work.get("progressed"):
                over(tx, work)

        await self.committer.report(Result(work["run"], ended, done))


def _key(work: Work) -> tuple[Any, ...]:
    return (work["run"], work["path"], work["attempt"], work["kind"], work["n"])


async def arrive(
    committer: Committer,
    sandbox: Sandbox,
    run_id: str,
    event: dict[str, Any],
    *,
    now: datetime,
    only: str | None = None,
) -> Outcome:
    """Offers one event to one run; evaluates what its expectations filter by, and takes it again."""
    passes: dict[str, bool | str] = {}
    while True:
        fact = Arrived(
            at=datetime.fromisoformat(event["at"]),
            now=now,
            stream=event["stream"],
            event=event,
            passes=dict(passes),
            only=only,
        )
        outcome = await committer.fact(run_id, fact)
        if not outcome.where:
            return outcome
        for path, (expression, names) in outcome.where.items():
            passes[path] = await passes_by(sandbox, expression, names)


async def passes_by(sandbox: Sandbox, expression: str, names: dict[str, Any]) -> bool | str:
    """What a `where` gives: true, false, or the reason why neither."""
    try:
        value = await sandbox.cel(expression, plain(names))
    except OpError as fault:
        return str(fault)
    return value if isinstance(value, bool) else f"`{expression}` gave no true or false"
