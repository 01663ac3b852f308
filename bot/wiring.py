"""Builds one process from its settings: the only module that knows every class."""

from __future__ import annotations

import asyncio
import gc
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from bot.agents.agency import Agency
from bot.agents.author import Author
from bot.agents.claude import Claude
from bot.agents.line import Line
from bot.agents.model import Model
from bot.agents.wishes import Wishes
from bot.config import Settings
from bot.domain.catalog import Catalog, World
from bot.domain.changes import Delivery, Timer
from bot.domain.errors import Misconfigured
from bot.domain.facts import Continued, Overdue
from bot.people import directory, reach
from bot.runtime.clock import Clock, SystemClock
from bot.runtime.commit import Outcome, Site, take
from bot.runtime.committer import Committer, database_away
from bot.runtime.desk import Desk, Listeners
from bot.runtime.displays import Displays
from bot.runtime.files import FolderFiles
from bot.runtime.inbox import Inbox
from bot.runtime.leases import LASTS, RENEWED_S, lives, new_holder, run_lease
from bot.runtime.live_ops import LiveOps
from bot.runtime.mcp_listing import Listed, kept, known, setting_name
from bot.runtime.outbox import Held, NoPost, Outbox, Post
from bot.runtime.performer import Performer
from bot.runtime.proposals import Proposals
from bot.runtime.sandbox import Sandbox
from bot.runtime.toolbox import configured_tools
from bot.runtime.tools import Clash, Tools
from bot.runtime.triggers import Triggers
from bot.runtime.waker import Waker
from store import leases, ops, people, runs, triggers, waits
from store.dialect import Transaction
from store.transaction import Database, upgrade

if TYPE_CHECKING:
    from bot.runtime.mcp_tools import McpServer

log = structlog.get_logger()
FIRST_LIST_S = 10.0
"""How long a start waits for MCP servers that have never listed their tools."""
POLL_S = 1.0
"""How often a process looks for what others have written; no faster when idle."""
DUE_AT_ONCE = 100
"""Due rows that one sweep takes to a commit."""
SERVES = "serves:"
"""Leases of processes that serve, not guests: one each."""
CHANNELS = "channels"
"""The setting in the database that has the names of the platforms that are on."""
JOBS_KEPT = 4096
"""Jobs whose conversation stays in memory: a cache."""
START_OF_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""For the world where its time is no matter."""
FAULTY_AGAIN = timedelta(minutes=5)
"""Until a run that broke inside is offered its due row again."""


class Product:
    """One process: what it is built of, started and stopped in order."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        database: Database | None = None,
        files: Any = None,
        tools: Tools | None = None,
        guest: bool = False,
        model: Model | None = None,
    ) -> None:
        self.settings = settings
        self.model = model
        self.guest = guest
        """Another process may serve this database: this one works on its own run at most."""
        self.stands_in = False
        """Of a guest: it works on everything while no process serves. Before `start`."""
        self.clock = clock or SystemClock()
        if database is None:
            upgrade(settings.database)
            database = Database(settings.database)
        self.db = database
        self.tools = tools or configured_tools(settings, self._shelf)
        self._ops = LiveOps(self.tools)
        self.catalog = Catalog(ops=self._ops)
        secret = settings.secret_key or self.db.write(people.secret_key, secrets.token_urlsafe(32))
        self.db.write(directory.settle, settings)
        self._world = _World(self.db, settings)
        self.listeners = Listeners()
        self.site = Site(catalog=self.catalog, world=self._world.at, secret=secret, url=settings.url, here=self._here)
        self.committer = Committer(self.db, self.site, self._committed)
        self.sandbox = Sandbox()
        self.holder = new_holder()
        self.performer = Performer(
            self.committer,
            self.clock,
            self.sandbox,
            self.tools,
            files or FolderFiles(settings.files),
            self.holder,
            "" if guest else None,
        )
        self.site.begins = self.performer.begins
        self.agency = self._agents(settings)
        self.performer.agents = self.agency
        self.performer.progressed = self._progressed
        self.triggers = Triggers(self.committer, self.clock)
        self.inbox = Inbox(self.committer, self.clock, self.sandbox, self.triggers)
        self._surfaces: OrderedDict[str, str | None] = OrderedDict()
        self.attach(NoPost())
        self.waker = Waker(self.clock, self.sweep)
        self.desk = Desk(self.committer, self.catalog, settings, self.clock, self.inbox, self.listeners)
        self.desk.saved.changed = self.scripts_changed
        self.proposals = Proposals(self.desk)
        self.author: Author | None = None
        if self.agency is not None:
            agency = self.agency
            self.author = Author(self.desk, self.proposals, agency.line, agency.default, self.catalog, agency.model)
        self.wishes = Wishes(self.author, self.holder) if self.author is not None else None
        self._unrouted = False
        self._routing: asyncio.Task[None] | None = None
        self._following: set[Any] = set()
        self._beat: asyncio.Task[None] | None = None

    def _agents(self, settings: Settings) -> Agency | None:
        """Who does the agents' work; None where no agent is configured."""
        if settings.model is None or not settings.agents:
            return None
        fanout = settings.workspace.fanout
        claude = Claude(settings.model.key, settings.model.base_url, settings.model.prices, connections=fanout + 8)
        agency = Agency(
            self.committer,
            self.clock,
            Line(self.model or claude, fanout, self.clock),
            settings.agents,
            files=self.performer.files,
            catalog=self.catalog,
            call=self._read_for_agent,
            fanout=fanout,
            prices=settings.model.prices,
            model=settings.model.name,
        )
        agency.progressed = self._progressed
        return agency

    async def _read_for_agent(self, tool: str, params: dict[str, Any]) -> Any:
        """A read-only tool that an agent calls while at work; a read may be repeated, so its key is its own."""
        spec = self.catalog[tool]
        return await self.tools.call(tool, params, secrets.token_hex(8), spec.timeout.total_seconds())

    def _progressed(self, run_id: str, job: str) -> None:
        """An op of a run is further on, without a fact of its own."""
        self.displays.further(reach.surface(self._surfaces.get(job)), run_id)
        self.listeners.tell(job, run_id)

    def attach(self, post: Post) -> None:
        """The chat platforms of this process: what goes out to them, and what they show. Before `start`."""
        self.post = post
        self.on = frozenset(post.channels) | self.settings.platforms.keys()
        """Chat platforms that this workspace has, whichever process speaks to them."""
        held = Held()
        self.outbox = Outbox(self.committer, self.clock, post, held)
        self.displays = Displays(self.committer, self.clock, post, held)

    async def start(self) -> None:
        """Ready to take facts: first what a process before this one left, then what is due."""
        await self.committer.start()
        await self.committer.write(lambda tx: self._hold(tx))
        await self._start_tools()
        self.on |= await self.committer.write(self._platforms)
        if self.guest:
            self.inbox.elsewhere = self.on - self.inbox.doormen.keys()
        for run_id in await self.committer.read(runs.with_more):
            await self.committer.fact(run_id, Continued(at=self.clock.now()))
        await self.inbox.route_all()
        if self.stands_in:
            await self._stand_in()
        await self.performer.look()
        await self._look_at_wishes()
        if self._posts:
            await self.outbox.start()
            await self.displays.start()
        await self.waker.start()
        self._beat = asyncio.create_task(self._beating(), name="heartbeat")

    async def _start_tools(self) -> None:
        """Connects the MCP servers in the background; whose tools nobody knows yet is waited for, a moment."""
        for server in self.tools.servers:
            server.heard, server.lost = self._listed, _lost
            if not self.guest or server.listed is None:
                server.start()
        unknown = [server.known() for server in self.tools.servers if server.listed is None]
        if unknown:
            _, late = await asyncio.wait([asyncio.ensure_future(one) for one in unknown], timeout=FIRST_LIST_S)
            for task in late:
                task.cancel()
            if (clash := next((s.clash for s in self.tools.servers if s.clash), None)) is not None:
                raise Misconfigured(clash)

    async def _listed(self, server: McpServer, listed: Sequence[Listed]) -> None:
        """A server's tools are these from now on: for every check and every process."""
        before = server.listed
        try:
            server.take(listed)
            _ = self.tools.tools
        except Clash as fault:
            if before is None:
                raise  # it has none yet: a start says so
            server.take(before)
            log.warning("tools of an MCP server are not taken", server=server.name, why=str(fault))
            return
        if server.listed != before:
            stored = kept(listed, server.table)
            await self.committer.write(lambda tx: people.put_setting(tx, setting_name(server.name), stored))
            self._keep(asyncio.create_task(self._nudge()))
        self._ops.renew(self.tools)

    def _shelf(self, name: str) -> str | None:
        return self.db.read(people.setting_of, name)

    async def _reshelve(self) -> None:
        """Takes the lists that another process has kept."""
        for server in self.tools.servers:
            stored = await self.committer.read(people.setting_of, setting_name(server.name))
            if (listed := known(stored, server.table)) is not None and listed != server.listed:
                server.take(listed)
                self._ops.renew(self.tools)

    @property
    def _posts(self) -> bool:
        """Whether this process sends: what goes to platforms that only another one has is left to that."""
        return not self.guest or not self.on

    async def hold_run(self, run_id: str) -> None:
        """This process works on one run, alone."""
        now = self.clock.now()
        self.performer.only = run_id
        self.performer.below = set(await self.committer.read(_started_by, run_id))
        await self.committer.write(lambda tx: leases.take(tx, run_lease(run_id), self.holder, now, now + LASTS))
        await self.performer.look()

    def _platforms(self, tx: Transaction) -> frozenset[str]:
        """What the process that serves has on; one that serves says so to the others."""
        if not self.guest:
            people.put_setting(tx, CHANNELS, " ".join(sorted(self.on)))
        return frozenset((people.setting_of(tx, CHANNELS) or "").split())

    def _hold(self, tx: Transaction) -> None:
        now = self.clock.now()
        leases.take(tx, f"worker:{self.holder}", self.holder, now, now + LASTS)
        if not self.guest:
            leases.take(tx, f"{SERVES}{self.holder}", self.holder, now, now + LASTS)

    async def _stand_in(self) -> None:
        """A guest that stands in works on everything while no process serves, and on nothing while one does."""
        standing = await self.committer.read(leases.live, self.clock.now())
        served = any(name.startswith(SERVES) and lives(holder, standing) for name, holder in standing.items())
        if served != (self.performer.only is not None):
            self.performer.only = "" if served else None
            await self.performer.look()

    async def _beating(self) -> None:
        """Renews what this process holds, and sees what other processes have written: a net under the wake-ups."""
        seen, renewed = None, time.monotonic()
        while True:
            await asyncio.sleep(POLL_S)
            try:
                if time.monotonic() - renewed > RENEWED_S:
                    renewed = time.monotonic()
                    now = self.clock.now()
                    await self.committer.write(lambda tx, now=now: leases.renew(tx, self.holder, now + LASTS))
                    # Whoever died on another machine says nothing: its lease runs out, and its work is taken up here.
                    await self.performer.look()
                if self.stands_in:
                    await self._stand_in()
                    await self._look_at_wishes()
                word = await self.committer.read(leases.nudged)
                if word != seen:
                    seen = word
                    await self._look_around()
            except Exception as fault:
                log.warning("database away", fault=str(fault))

    async def _look_around(self) -> None:
        await self.inbox.route_all()
        await self.performer.look()
        if self._posts:
            self.outbox.wake()
            await self.displays.look()
        self.people_changed()
        await self._reshelve()
        await self._look_at_clock()
        self.listeners.tell("*", "*")

    async def _look_at_wishes(self) -> None:
        if self.wishes is not None and not self.guest:
            await self.wishes.look()

    async def _look_at_clock(self) -> None:
        if (due := await self.committer.read(_next_due)) is not None:
            self.waker.due(due)

    async def stop(self) -> None:
        """Stops intake, ends what is at work, commits what was handed in, closes."""
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.gather(self._beat, return_exceptions=True)
        await asyncio.gather(*self._following, return_exceptions=True)
        if self.wishes is not None:
            await self.wishes.stop()
        await self.waker.stop()
        await self.displays.stop()
        await self.outbox.stop()
        await self.inbox.stop()
        await self.performer.stop()
        await self.committer.write(lambda tx: leases.drop(tx, self.holder))
        await self.committer.stop()
        await self.sandbox.aclose()
        if self.agency is not None:
            await self.agency.aclose()
        await self.tools.aclose()
        self.db.close()

    async def sweep(self) -> datetime | None:
        """Applies what is due, in due order, events and answers that came before first; gives when the next row is
        due."""
        await self.inbox.route_all()
        await self.triggers.sweep()
        while await self.committer.read(waits.due, self.clock.now(), 1):
            until = self.clock.now()
            await self.inbox.heard()
            while due := await self.committer.read(waits.due, until, DUE_AT_ONCE):
                now = self.clock.now()
                await self.committer.write(lambda tx, due=due, now=now: _overdue(tx, self.site, due, now))
        return await self.committer.read(_next_due)

    def people_changed(self) -> None:
        """People, roles or saved scripts have changed: the next fact sees them."""
        self._world.forget()

    def scripts_changed(self) -> None:
        """A saved script is new, another, paused or resumed: checks know it, and the clock its next firing."""
        self.people_changed()
        self._keep(asyncio.create_task(self._look_at_clock()))
        if self.guest:
            self._keep(asyncio.create_task(self._nudge()))

    def _committed(self, outcomes: list[Outcome]) -> None:
        sends = False
        for outcome in outcomes:
            for run_id, step in outcome.steps():
                self.performer.drop(run_id, step)
                if step.calls:
                    self.performer.take_up(run_id, step)
                sends = sends or (bool(step.deliveries) and self._sends(step.deliveries, outcome.job))
                self.displays.moved(reach.surface(self._surfaces.get(outcome.job)), run_id, step)
                for timer in step.timers:
                    if timer.due is not None:
                        self.waker.due(timer.due)
                if step.more:
                    self._keep(asyncio.create_task(self._go_on(run_id)))
            if outcome.hears():
                self._route_soon()
            self._tell(outcome)
            for orphan in outcome.orphans:
                self._keep(asyncio.create_task(self._cancel(orphan)))
        if sends and self._posts:
            self.outbox.wake()
        if self.guest:
            self._keep(asyncio.create_task(self._nudge()))

    def _route_soon(self) -> None:
        """What a run has put into the inbox itself is routed at once, by one task however many there are."""
        self._unrouted = True
        if self._routing is None or self._routing.done():
            self._routing = asyncio.create_task(self._route_all())
            self._keep(self._routing)

    async def _route_all(self) -> None:
        while self._unrouted:
            self._unrouted = False
            try:
                await self.inbox.route_all()
            except Exception as fault:  # it stays in the inbox: the next sweep routes it
                log.warning("events could not be routed, trying again", fault=str(fault))

    def _tell(self, outcome: Outcome) -> None:
        self.listeners.tell(outcome.job, outcome.run)
        for other in outcome.also:
            self._tell(other)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _nudge(self) -> None:
        """A guest in another process's database says that it has written."""

        def write(tx: Transaction) -> None:
            leases.nudge(tx, secrets.token_hex(6))

        await self.committer.write(write)

    async def _go_on(self, run_id: str) -> None:
        await self.committer.insist(lambda tx: take(tx, self.site, run_id, Continued(at=self.clock.now())))

    async def _cancel(self, run_id: str) -> None:
        row = await self.committer.read(runs.get, run_id)
        if row is not None and row.ended is None:
            await self.desk.edit(run_id, {"run": "cancel"}, by=row.owner, why="the run that started it was stopped")

    def _here(self, tx: Transaction, job: str) -> Callable[[Delivery], bool]:
        """Of a job: whether a delivery is the room's, by the one rule of where people are reached."""
        conversation = self._conversation(tx, job)
        world, on = self._world.at(START_OF_TIME), self.on

        def here(row: Delivery) -> bool:
            way = reach.way(world, row.to, conversation, on, card=reach.card(world, row.kind, row.card))
            return way is not None and way.channel == reach.WEB

        return here

    def _sends(self, rows: list[Delivery], job: str) -> bool:
        """Whether something of these leaves for a platform, as far as is known without looking."""
        conversation = self._surfaces.get(job)
        world, on = self._world.at(START_OF_TIME), self.on
        ways = (reach.way(world, r.to, conversation, on, card=reach.card(world, r.kind, r.card)) for r in rows)
        return any(way is None or way.channel != reach.WEB for way in ways)

    def _conversation(self, tx: Transaction, job: str) -> str | None:
        """Where a job is; it stays there."""
        if job not in self._surfaces:
            found = runs.get_job(tx, job) if job else None
            self._surfaces[job] = found["conversation"] if found else None
            while len(self._surfaces) > JOBS_KEPT:
                self._surfaces.popitem(last=False)
        return self._surfaces[job]


class _World:
    """The world as facts see it, read again when people change."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings
        self._kept: World | None = None
        self._lock = threading.Lock()

    def at(self, now: datetime) -> World:
        return self._read(now)

    def _read(self, now: datetime) -> World:
        with self._lock:
            if self._kept is None:
                self._kept = self._db.read(directory.read, self._settings, now)
            return self._kept

    def forget(self) -> None:
        with self._lock:
            self._kept = None


def _lost(server: McpServer, why: str) -> None:
    log.warning("an MCP server is not there", server=server.name, why=why)


def _started_by(tx: Transaction, run_id: str) -> list[str]:
    """The runs that a run has started, and those that they have, as far as they have not ended."""
    found: list[str] = []
    for child in runs.children_below(tx, run_id, ""):
        found += [child, *_started_by(tx, child)]
    return found


def _next_due(tx: Transaction) -> datetime | None:
    """When the clock must wake: the next timer of a run, or the next firing of a cron line."""
    return min((at for at in (waits.next_due(tx), triggers.next_due(tx)) if at is not None), default=None)


def _overdue(tx: Transaction, site: Site, due: list[tuple[str, str, str, datetime]], now: datetime) -> list[Outcome]:
    """Applies what is due. One run that cannot go on must not stop the clock of all the others."""
    tx.savepoint("every")
    try:
        outcomes = _together(tx, site, due, now)
    except Exception as fault:
        if database_away(fault):
            raise
        tx.rollback_to("every")
    else:
        tx.release("every")
        return outcomes
    outcomes = []
    for one in due:
        tx.savepoint("one")
        try:
            outcomes.append(_past(tx, site, one, now))
        except Exception as fault:
            if database_away(fault):
                raise
            tx.rollback_to("one")
            run_id, path, kind, _ = one
            log.exception("a run could not take what is due", run=run_id, path=path)
            waits.put(tx, run_id, [Timer(path=path, kind=kind, due=now + FAULTY_AGAIN)], [], [], [])
        else:
            tx.release("one")
    return outcomes


def _together(tx: Transaction, site: Site, due: list[tuple[str, str, str, datetime]], now: datetime) -> list[Outcome]:
    """Applies what is due, all or nothing: read and written for all the runs together."""
    plans = runs.ahead(tx, [run_id for run_id, *_ in due])
    ops.ahead(tx, [run_id for run_id, plan in plans.items() if site.index(tx, plan).small])
    tx.gathers = True
    # What a batch makes goes all at once, by its counts: the collector would walk over it, and all that is older.
    gc.disable()
    try:
        outcomes = [_past(tx, site, one, now) for one in due]
        tx.flush()
    finally:
        gc.enable()
        tx.gathers = False
    return outcomes


def _past(tx: Transaction, site: Site, due: tuple[str, str, str, datetime], now: datetime) -> Outcome:
    run_id, path, kind, at = due
    outcome = take(tx, site, run_id, Overdue(at=now, path=path, kind=kind, due=at))
    if not outcome.changed:
        # Nothing waits for it any more: the row goes, or the sweep would find it for ever.
        waits.put(tx, run_id, [Timer(path=path, kind=kind, due=None)], [], [], [])
    return outcome
