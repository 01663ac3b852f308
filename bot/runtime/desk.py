"""What people and programs can do, whatever surface they are at: start a script, answer, edit, send an event, look.

Everything here names who acts, checks that they may, and returns plain values. The surfaces only translate.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.config import Settings
from bot.domain import cost
from bot.domain.catalog import Catalog, World
from bot.domain.changes import CARDS
from bot.domain.errors import WaitonError
from bot.domain.facts import Answered, Edited, Fact
from bot.domain.ids import tapped
from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.domain.values import normalise, plain
from bot.engine import asks, tenses, verdicts
from bot.language.problems import Problem
from bot.language.script import Examined, examine
from bot.people import directory
from bot.runtime import report
from bot.runtime.clock import Clock
from bot.runtime.commit import Outcome, Site, accept, take, world_of
from bot.runtime.commit import named as rows_named
from bot.runtime.committer import Committer
from bot.runtime.inbox import Inbox
from bot.runtime.saved import Saved
from bot.runtime.starting import keep_told, names_for
from bot.runtime.trial import Trial, tried
from store import history, inbox, ops, outbox, people, runs, waits, work
from store.dialect import Transaction

LOGIN_MINUTES = 15
SESSION_DAYS = 30
STARTING = 8
"""Scripts that are checked and started at the same time: more wait, and what others do goes on beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A script that runs (`run`), was saved because it has `on` (`saved`), or was refused (`seen.problems`)."""

    seen: Examined
    run: str | None = None
    saved: dict[str, Any] | None = None

    @property
    def refused(self) -> bool:
        return self.run is None and self.saved is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What someone who acted gets back. `status`: 200 it counts, 403 not theirs, 404 nothing there, 409 settled
    otherwise, 422 no such choice. Of an edit: `rev` of what it names, as it stood before; `problems` as data."""

    text: str
    accepted: bool
    status: int
    rev: int | None = None
    problems: tuple[Mapping[str, Any], ...] = ()


class NotThere(WaitonError):
    """What was asked for is not there, or not to be seen by whoever asked."""


class Desk:
    """The product behind every surface."""

    def __init__(
        self,
        committer: Committer,
        catalog: Catalog,
        settings: Settings,
        clock: Clock,
        inbound: Inbox,
        listeners: Listeners,
    ) -> None:
        self.committer = committer
        self.catalog = catalog
        self.settings = settings
        self.clock = clock
        self.inbound = inbound
        self.listeners = listeners
        self._starting = asyncio.Semaphore(STARTING)
        self.saved = Saved(committer, catalog, settings, clock)

    @property
    def site(self) -> Site:
        return self.committer.site

    # --- scripts ----------------------------------------------------------------------------------------------
    async def check(
        self,
        text: str | bytes,
        *,
        by: str,
        job: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        escaping: Any = "plain",
        starting: bool = True,
    ) -> Examined:
        """Every problem of a text, or its plan with notes and pre-flight; nothing is stored."""
        world = await self.committer.read(self.saved.world_for, by, job)
        return await asyncio.to_thread(
            examine, text, self.catalog, world, inputs=inputs, escaping=escaping, starting=starting
        )

    async def start(
        self,
        text: str | bytes,
        *,
        by: str,
        job: str,
        inputs: Mapping[str, Any] | None = None,
        escaping: Any = "plain",
        author: str | None = None,
        run_id: str | None = None,
        claim: Callable[[Transaction], bool] | None = None,
    ) -> Started:
        """Checks a text and runs it in a job, as this person; refused scripts store nothing. `run_id`: so that a repeat
        starts nothing again; `claim`: what else must hold, asked in the transaction that starts it."""
        async with self._starting:
            seen = await self.check(text, by=by, job=job, inputs=inputs, escaping=escaping)
            if seen.refused or seen.plan is None:
                return Started(seen=seen)
            plan: Plan = seen.plan
            if plan.on:
                return Started(seen=seen, saved=await self.saved.keep(seen, by=by, job=job))
            begun = run_id or new_run_id(self.clock.now())

            def write(tx: Transaction) -> Outcome | None:
                if run_id is not None and runs.get(tx, run_id) is not None:
                    return Outcome(run=run_id)
                if claim is not None and not claim(tx):
                    return None
                now = self.clock.now()
                kept = runs.get_job(tx, job)
                customer = kept["customer"] if kept else None
                row = RunRow(
                    id=begun,
                    job=job,
                    owner=by,
                    plan="",
                    created=now,
                    customer=customer,
                    names=names_for(tx, self.catalog, plan, job, inputs or {}),
                    told=keep_told(
                        tx, seen.preflight, seen.notes, source=seen.read.source.pasted, surface=seen.read.surface
                    ),
                    ends=seen.preflight.get("latest_end"),
                    data={k: v for k, v in {"author": author, "script": plan.name}.items() if v},
                )
                return accept(tx, self.site, row, plan, source=seen.read.source.pasted, surface=seen.read.surface)

            outcome = await self.committer.write(write)
            return Started(seen=seen, run=begun if outcome is not None else None)

    async def run_saved(
        self, name: str, *, by: str, job: str, inputs: Mapping[str, Any] | None = None
    ) -> tuple[list[Problem], str | None]:
        """Starts the current version of a saved script: what stands against it, or the run."""
        run_id = new_run_id(self.clock.now())
        problems = await self.saved.start(name, run_id, by=by, job=job, inputs=normalise(dict(inputs or {})))
        return problems, None if problems else run_id

    # --- acting on what is pending ----------------------------------------------------------------------------
    async def answer(self, run_id: str, op: str, value: Any, *, by: str, reason: str | None = None) -> Said:
        """Answers an ask, an approval or a doubt: `op` is an id (the earliest open one that is theirs) or a path."""
        given, at = normalise(value), self.clock.now()

        def write(tx: Transaction) -> Outcome | None:
            path = self._find_open(tx, run_id, op, by)
            if path is None:
                return None
            fact = Answered(at=at, path=path, value=given, by=by, reason=reason)
            return take(tx, self.site, run_id, fact)

        outcome = await self.committer.write(write)
        if outcome is not None and outcome.missing:
            return Said(text=f"There is no run `{run_id}`.", accepted=False, status=404)
        if outcome is None:
            return Said(text=f"There is no question `{op}` in this run.", accepted=False, status=404)
        return said_of(outcome)

    async def answer_token(self, token: str, value: Any, *, by: str | None = None, reason: str | None = None) -> Said:
        """Answers the ask that a card's token stands for. Without `by` the card's own addressee answers: the token
        is theirs alone."""
        given, at = normalise(value), self.clock.now()

        def write(tx: Transaction) -> Outcome | None:
            row = self.card_of(tx, token)
            if row is None:
                return None
            fact = Answered(at=at, path=row["path"], value=given, by=by or row["to"], reason=reason)
            return take(tx, self.site, row["run"], fact)

        # By one piece of work, handed in at once: a deadline that passes meanwhile is written behind it.
        outcome = await self.committer.write(write)
        if outcome is None:
            return Said(text="This question is not known here.", accepted=False, status=404)
        if outcome.missing:
            return Said(text="There is no such run.", accepted=False, status=404)
        return said_of(outcome)

    def card_of(self, tx: Transaction, token: str) -> dict[str, Any] | None:
        """The card that a token stands for; None where it is none of ours."""
        number = tapped(self.site.secret, token)
        row = outbox.by_seq(tx, number) if number is not None else None
        return row if row is not None and row["kind"] in CARDS else None

    async def edit(
        self,
        run_id: str,
        edit: Mapping[str, Any],
        *,
        by: str,
        why: str | None = None,
        rev: int | None = None,
        ident: str | None = None,
    ) -> Said:
        """One edit of section 10 of the language. `ident`: the sender's own id of it, so that a repeat changes nothing
        and gets the same reply."""
        fact = Edited(at=self.clock.now(), by=by, edit=normalise(dict(edit)), why=why, rev=rev, id=ident)
        return await self.act(run_id, fact, by)

    async def try_edit(
        self, run_id: str, edit: Mapping[str, Any], *, by: str, why: str | None = None, rev: int | None = None
    ) -> tuple[Said, Trial | None]:
        """What an edit would get back, and the run before and after it (None where it is refused). Nothing changes."""
        fact = Edited(at=self.clock.now(), by=by, edit=normalise(dict(edit)), why=why, rev=rev)
        trial = await tried(self.committer, run_id, fact)
        if trial is None:
            return Said(text="There is no such run.", accepted=False, status=404), None
        told = said_of(trial.outcome)
        return told, trial if told.accepted else None

    async def act(self, run_id: str, fact: Fact, who: str) -> Said:
        outcome = await self.committer.fact(run_id, fact)
        if outcome.missing:
            return Said(text="There is no such run.", accepted=False, status=404)
        return said_of(outcome)

    def _find_open(self, tx: Transaction, run_id: str, named: str, by: str) -> str | None:
        if named[:1].isdigit() or "." in named:
            return named
        found = sorted(rows_named(tx, self.site, run_id, named), key=lambda r: report.natural(r.path))
        mine = [r for r in found if by.casefold() in asked_of(r)]
        open_ = [r for r in mine if is_open(r)] or [r for r in found if is_open(r)] or mine[-1:] or found[-1:]
        return open_[0].path if open_ else None

    # --- events -----------------------------------------------------------------------------------------------
    async def event(
        self,
        stream: str,
        body: Any,
        *,
        ident: str,
        sender: str | None = None,
        conversation: str | None = None,
        raw: Any = None,
    ) -> bool:
        """Stores an event and routes it; False where its sender's id was seen before."""
        return await self.inbound.receive(stream, body, ident=ident, sender=sender, conversation=conversation, raw=raw)

    async def endpoint(self, token: str) -> dict[str, Any] | None:
        """What a minted address is for: `{run, op, until, called, stream}`."""
        return await self.committer.read(self._endpoint, token)

    def _endpoint(self, tx: Transaction, token: str) -> dict[str, Any] | None:
        found = waits.get_endpoint(tx, token)
        return {**found, "stream": f"endpoint:{token}"} if found else None

    async def call_endpoint(self, token: str, body: Any) -> int:
        """Settles a minted address once: 202, 404 unknown, 409 called before, 410 past its window."""
        found = await self.endpoint(token)
        now = self.clock.now()
        if found is None:
            return 404
        if found["called"] is not None:
            return 409
        if now >= found["until"]:
            return 410

        def write(tx: Transaction) -> bool:
            if not waits.call_endpoint(tx, token, now):
                return False
            return inbox.add(
                tx,
                stream=f"endpoint:{token}",
                ident="call",
                sender=None,
                conversation=None,
                at=now,
                body=normalise(body),
            )

        if not await self.committer.write(write):
            return 409
        await self.inbound.route_all()
        return 202

    # --- looking ----------------------------------------------------------------------------------------------
    async def show(self, run_id: str) -> dict[str, Any]:
        """A run as the API and the record give it (the rehearsal's JSON, with `id job owner script version created
        ended`)."""
        return await self.committer.read(self._show, run_id)

    def _show(self, tx: Transaction, run_id: str) -> dict[str, Any]:
        run = runs.get(tx, run_id)
        if run is None:
            raise NotThere(f"there is no run `{run_id}`")
        rows = sorted(ops.StoredRows(tx, run_id, run.job).all(), key=lambda r: report.natural(r.path))
        world = world_of(self.site, run, self.clock.now())
        zone = asks.words.durations.zone(world.workspace)
        plan = self.site.index(tx, run.plan).plan
        shown = report.shown_values(rows)
        entries = history.of_run(tx, run_id)
        spent, ways = work.spent_by(tx, run_id), work.progress_of(tx, run_id)
        line = tenses.line(rows, world, self.clock.now(), ways=said(ways))
        found: dict[str, Any] = {
            "id": run.id,
            "job": run.job,
            "owner": run.owner,
            "author": run.data.get("author"),
            "script": run.data.get("script"),
            "version": run.data.get("version"),
            "created": _iso(run.created, zone),
            "ended": _iso(run.ended, zone),
            "state": report.state_of(run),
            "error": run.data.get("error"),
            "line": line,
            "result": plain(shown[0] if len(shown) == 1 else shown if shown else None),
            "held": [] if plan.sealed else history.held(tx, run.job),
            "ops": [
                report.op_report(row, zone)
                | ({"cost": cost.report(spent[row.path])} if row.path in spent else {})
                | ({"progress": ways[row.path].said} if row.path in ways else {})
                for row in rows
            ],
            "deliveries": [
                {
                    "at": _iso(d["at"], zone),
                    "to": d["to"],
                    "kind": d["kind"],
                    "state": d["state"],
                    "error": d["error"],
                    "outcome": d["outcome"],
                    "title": d["card"].get("title", ""),
                    "text": d["card"].get("text", ""),
                }
                for d in outbox.find(tx, run_id=run_id)
            ],
            "edits": [e["data"]["edit"] for e in entries if e["what"] == "edited"],
            "notes": report.error_notes(rows),
            "cost": cost.report(sum(spent.values(), cost.Usage())),
        }
        return found

    async def show_short(self, run: RunRow) -> dict[str, Any]:
        """A run in a list: without its ops and messages."""

        def read(tx: Transaction) -> dict[str, Any]:
            world = world_of(self.site, run, self.clock.now())
            zone = asks.words.durations.zone(world.workspace)
            rows = ops.StoredRows(tx, run.id, run.job).pending() if run.ended is None else []
            return {
                "id": run.id, "job": run.job, "owner": run.owner, "script": run.data.get("script"),
                "version": run.data.get("version"), "created": _iso(run.created, zone), "ended": _iso(run.ended, zone),
                "state": report.state_of(run), "error": run.data.get("error"),
                "line": tenses.line(rows, world, self.clock.now(), ways=said(work.progress_of(tx, run.id))),
            }  # fmt: skip

        return await self.committer.read(read)

    async def plan_of(self, run_id: str) -> tuple[Plan, RunRow, list[OpRow], list[dict[str, Any]]]:
        """For pages: the plan, the run, its ops and its history."""
        return await self.committer.read(self._plan_of, run_id)

    def _plan_of(self, tx: Transaction, run_id: str) -> tuple[Plan, RunRow, list[OpRow], list[dict[str, Any]]]:
        run = runs.get(tx, run_id)
        if run is None:
            raise NotThere(f"there is no run `{run_id}`")
        rows = ops.StoredRows(tx, run_id, run.job).all()
        return self.site.index(tx, run.plan).plan, run, rows, history.of_run(tx, run_id)

    async def find_runs(
        self, *, job: str | None = None, state: str | None = None, owner: str | None = None, limit: int = 50
    ) -> list[RunRow]:
        return await self.committer.read(lambda tx: runs.find(tx, job_id=job, state=state, owner=owner, limit=limit))

    async def world(self) -> World:
        return await self.committer.read(directory.read, self.settings, self.clock.now())

    # --- who ---------------------------------------------------------------------------------------------------
    async def serving_at(self, url: str) -> None:
        """The server stands at this address: links that other commands print lead there."""
        await self.committer.write(lambda tx: people.put_setting(tx, "url", url))

    async def login_link(self, email: str, *, base: str | None = None) -> str:
        """A link that logs this person in once, within 15 minutes; at `base`, else where the server stands."""
        secret = secrets.token_urlsafe(24)
        now = self.clock.now()
        await self.committer.write(
            lambda tx: people.add_login(tx, secret, email, now + timedelta(minutes=LOGIN_MINUTES))
        )
        base = base or await self.committer.read(people.setting_of, "url") or self.settings.url
        return f"{base}/login/{secret}"

    async def proof(self, email: str) -> str:
        """What proves on a platform that somebody is this person: once, within 15 minutes."""
        secret, until = secrets.token_urlsafe(18), self.clock.now() + timedelta(minutes=LOGIN_MINUTES)
        await self.committer.write(lambda tx: people.add_login(tx, secret, email, until, "link"))
        return secret

    async def log_in(self, secret: str) -> tuple[str, str] | None:
        """Uses a link up: the session's cookie and whose it is; None where the link is used, old or unknown."""
        now = self.clock.now()
        cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(16)

        def write(tx: Transaction) -> str | None:
            email = people.use_login(tx, secret, now)
            if email is not None:
                people.add_session(tx, cookie, email, csrf, now, now + timedelta(days=SESSION_DAYS))
            return email

        email = await self.committer.write(write)
        return (cookie, email) if email else None

    async def session(self, cookie: str) -> tuple[str, str] | None:
        """Email and CSRF token."""
        return await self.committer.read(people.session_of, cookie, self.clock.now())

    async def bearer(self, secret: str) -> str | None:
        return await self.committer.read(people.token_of, secret, self.clock.now())


class Listeners:
    """Who wants to know that a job or a run has moved: pages that are open. A reader that does not keep up is
    dropped; it comes back and reads the rows."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[tuple[str, str]]] = set()
        self.moved = 0

    def tell(self, job: str, run: str) -> None:
        self.moved += 1
        for queue in list(self._queues):
            if queue.full():
                self._queues.discard(queue)
            else:
                queue.put_nowait((job, run))

    def changes(self) -> AsyncGenerator[tuple[str, str]]:
        """(job, run) of whatever moves from this call on, until the reader goes."""
        queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue(500)
        self._queues.add(queue)
        return self._of(queue)

    async def _of(self, queue: asyncio.Queue[tuple[str, str]]) -> AsyncGenerator[tuple[str, str]]:
        try:
            while queue in self._queues:
                yield await queue.get()
        finally:
            self._queues.discard(queue)


def said(ways: Mapping[str, work.Progress]) -> dict[str, str]:
    """How far ops at work are, in words, by path."""
    return {path: way.said for path, way in ways.items() if way.said}


def said_of(outcome: Outcome) -> Said:
    """What a fact's outcome says to whoever acted."""
    if not outcome.replies:
        return Said(text="", accepted=False, status=422)
    reply = outcome.replies[-1]
    return Said(text=reply.text, accepted=reply.accepted, status=reply.status, rev=reply.rev, problems=reply.problems)


def is_open(row: OpRow) -> bool:
    """Whether an op asks somebody now: an ask, an approval, a doubt, evidence that the judge cannot tell, or what to do
    after a replan that failed."""
    gate = row.data.get("gate")
    if row.state == "missed":
        return bool(gate) and "by" not in gate
    if verdicts.is_asked(row):
        return True
    return row.state in ("gated", "uncertain") or (row.state == "waiting" and row.op == "ask")


def asked_of(row: OpRow) -> set[str]:
    """Who an open op was put to, in small letters."""
    gate = row.data.get("gate")
    to = gate["to"] if gate else row.data.get("asked", [])
    return {str(who).casefold() for who in to}


def new_run_id(now: datetime) -> str:
    """Sortable by time, unguessable at its end."""
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    number = int(now.timestamp() * 1000)
    stamp = ""
    for _ in range(9):
        number, digit = divmod(number, 32)
        stamp = alphabet[digit] + stamp
    return stamp + "".join(secrets.choice(alphabet) for _ in range(7))


def _iso(at: datetime | None, zone: Any) -> str | None:
    return at.astimezone(zone).isoformat() if at else None
