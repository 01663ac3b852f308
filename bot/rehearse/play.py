"""A script run in virtual time: the same engine and store, with a clock that jumps and a world that is written down.

One instant after another; at one instant answers and edits come first, then events, then results, then deadlines.
Deterministic: the same script and scenario give the same bytes.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.domain.catalog import Catalog, SavedScript, World
from bot.domain.errors import OpError
from bot.domain.facts import Answered, Arrived, Continued, Delivered, Edited, Fact, Overdue, Returned, returned
from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.domain.values import normalise, plain, text
from bot.engine import tenses
from bot.language import refs
from bot.language.durations import seconds
from bot.rehearse.scenario import Move, Scenario
from bot.rehearse.scripted import JOB, Chooser, Log, Missing, ScriptedAgents
from bot.runtime import files
from bot.runtime.commit import Outcome, Site, accept, named, take, world_of
from bot.runtime.report import input_names, natural
from bot.runtime.sandbox import Sandbox
from store import history, inbox, ops, outbox, runs, waits
from store.dialect import Transaction
from store.transaction import Database

RUN = "r1"
MOST_STEPS = 200_000
"""Facts of one rehearsal; a script that never comes to rest ends there."""


@dataclass(order=True)
class _Pending:
    due: datetime
    order: int
    work: dict[str, Any] = field(compare=False)
    result: Callable[[], Returned] = field(compare=False)


class Player(ScriptedAgents):
    """One rehearsal. `play` runs it to its end; `log` and the store hold what came of it."""

    def __init__(
        self,
        scenario: Scenario,
        catalog: Catalog,
        saved: dict[str, Plan],
        sandbox: Sandbox,
        chooser: Chooser | None = None,
    ) -> None:
        self.scenario = scenario
        self.saved = saved
        self.sandbox = sandbox
        self.chooser = chooser
        self.now = scenario.now
        self.db = Database("sqlite:///:memory:")
        self.db.create()
        self.site = Site(catalog=catalog, world=self._world, secret="rehearsal")
        self.log = Log()
        self.ended = False
        self._in_flight: list[_Pending] = []
        self._order = 0
        self._used: dict[str, int] = {}
        self._replans = 0
        self._events = 0
        self._children = 0
        self._line: str | None = None
        self._facts = 0
        self._files = scenario.files

    def _world(self, at: datetime) -> World:
        world = self.scenario.world(at)
        return world

    def close(self) -> None:
        self.db.close()

    # --- the loop ---------------------------------------------------------------------------------------------
    async def play(
        self, plan: Plan, names: dict[str, Any], *, source: str | None = None, surface: str | None = None
    ) -> None:
        scenario = self.scenario
        self.db.write(self._set_up)
        run = RunRow(
            id=RUN, job=JOB, owner=scenario.owner, plan="", created=self.now, names=names, customer=scenario.customer
        )
        outcome = self.db.write(lambda tx: accept(tx, self.site, run, plan, source=source, surface=surface))
        self._replied(outcome)
        self._follow(outcome)
        moves = sorted(scenario.moves, key=lambda m: m.at)
        try:
            await self._come_to_rest()
            while True:
                instant = self._next(moves)
                if instant is None or (scenario.until is not None and instant > scenario.until):
                    break
                self.now = max(self.now, instant)
                while moves and moves[0].at <= self.now:
                    ready = [m for m in moves if m.at <= self.now]
                    moves = moves[len(ready) :]
                    for move in sorted(ready, key=lambda m: m.what == "event"):
                        await self._move(move)
                        await self._come_to_rest()
                while self._in_flight and self._in_flight[0].due <= self.now:
                    done = heapq.heappop(self._in_flight)
                    self._returned(done.work, done.result())
                    await self._come_to_rest()
                for due in self.db.read(waits.due, self.now):
                    self._overdue(due)
                    await self._come_to_rest()
        except Missing:
            pass
        if scenario.until is not None:
            self.now = max(self.now, scenario.until)

    def _set_up(self, tx: Any) -> None:
        runs.add_job(tx, JOB, "Rehearsal", "job", self.now, customer=self.scenario.customer)
        from bot.domain.changes import Bound

        history.bind(tx, JOB, "", [Bound(name=n, value=v, at=self.now) for n, v in self.scenario.bindings.items()])

    def _next(self, moves: list[Move]) -> datetime | None:
        """The next instant at which something happens. Once the run has ended, moves still get their replies."""
        found = [m.at for m in moves[:1]]
        found += [p.due for p in self._in_flight[:1]]
        due = self.db.read(waits.next_due)
        if due is not None:
            found.append(due)
        return min(found, default=None)

    async def _come_to_rest(self) -> None:
        """Does whatever can be done at this instant."""
        while True:
            self._facts += 1
            if self._facts > MOST_STEPS:
                raise Missing
            calls = [c for c in self.db.read(outbox.open_calls) if c["state"] == "queued"]
            queue = self.db.read(outbox.queued)
            events = self.db.read(inbox.unrouted)
            if not (calls or queue or events):
                break
            for row in queue:
                self._deliver(row)
            for number, event in events:
                await self._route(number, event)
            for work in sorted(calls, key=lambda c: (c["at"], natural(c["path"]), c["n"])):
                await self._begin(work)
        self._status()

    def fact(self, run: str, fact: Fact) -> Outcome:
        outcome = self.db.write(take, self.site, run, fact)
        self._replied(outcome)
        self._follow(outcome)
        return outcome

    def _follow(self, outcome: Outcome) -> None:
        """The rest of a step that was too long, and what a run's end does to the run that started it."""
        for run, step in outcome.steps():
            more = step.more
            while more:
                last = self.db.write(take, self.site, run, Continued(at=self.now))
                self._replied(last)
                more = last.step.more if last.step is not None else None

    def _replied(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            self.log.see(self.log.replies, {"at": self._at(), "to": reply.to, "text": reply.text})

    def _reply(self, to: str, words: str) -> None:
        self.log.see(self.log.replies, {"at": self._at(), "to": to, "text": words})

    def _at(self, at: datetime | None = None) -> str:
        return (at or self.now).astimezone(self.scenario.zone).isoformat()

    # --- deliveries and lines ---------------------------------------------------------------------------------
    def _deliver(self, row: dict[str, Any]) -> None:
        to, card = row["to"], row["card"]
        channel = to.partition(":")[0] if re.match(r"(slack|telegram|line|web):", to) else "rehearsal"
        self.db.write(lambda tx: outbox.mark_done(tx, row["seq"], self.now, channel=channel, conversation=to))
        if row["kind"] == "send":
            body, title, buttons = _messages(card["messages"])
        else:
            title, body = card.get("title") or "", card.get("text") or ""
            buttons = [b if isinstance(b, str) else b.get("label", "") for b in card.get("buttons") or []]
        self.log.see(
            self.log.deliveries,
            {
                "at": self._at(),
                "to": to,
                "conversation": to if channel != "rehearsal" else None,
                "channel": channel,
                "kind": row["kind"],
                "title": title,
                "text": body,
                "buttons": buttons,
            },
        )
        if row["opens"]:
            self.fact(
                row["run"],
                Delivered(at=self.now, path=row["path"], kind=row["kind"], to=to, attempt=row["attempt"]),
            )

    def _status(self) -> None:
        run = self.db.read(runs.get, RUN)
        if run is None:
            return
        rows = self.db.read(lambda tx: ops.StoredRows(tx, RUN, JOB).pending())
        line = tenses.line(rows, world_of(self.site, run, self.now), self.now)
        if line != self._line:
            self._line = line
            if line is not None:
                self.log.lines.append({"at": self._at(), "text": line})
                self.log.see(
                    self.log.deliveries,
                    {
                        "at": self._at(),
                        "to": "job",
                        "conversation": None,
                        "channel": "rehearsal",
                        "kind": "status",
                        "title": "",
                        "text": line,
                        "buttons": [],
                    },
                )

    # --- the world moves --------------------------------------------------------------------------------------
    async def _move(self, move: Move) -> None:
        match move.what:
            case "answer":
                self._answer(move.body)
            case "event":
                self._event(move.body)
            case "edit":
                self._edit(move.body)
            case _:
                await self._crash()

    def _answer(self, body: dict[str, Any]) -> None:
        by, conversation = body.get("by"), body.get("from")
        who = str(by or conversation)
        found = self._addressed(str(body["op"]), who)
        if found is None:
            self._reply(who, f"There is no question `{body['op']}` yet. Nothing changed.")
            return
        run, row = found
        self.fact(
            run,
            Answered(
                at=self.now,
                path=row.path,
                value=normalise(body["with"]),
                by=by,
                conversation=conversation,
                reason=body.get("reason"),
            ),
        )

    def _addressed(self, op: str, who: str) -> tuple[str, OpRow] | None:
        """The earliest open op of that name that this person may act on, else the latest that they could have, else
        any of that name."""
        mine: list[tuple[bool, bool, OpRow, str]] = []
        for run_id in self._runs():
            run = self.db.read(runs.get, run_id)
            assert run is not None
            for row in self.db.read(self._named, run_id, op):
                mine.append((_open(row), self._may(run, row, who), row, run_id))
        mine.sort(key=lambda m: natural(m[2].path))
        acting = [m for m in mine if m[0] and m[1]]
        if acting:
            return acting[0][3], acting[0][2]
        still_open = [m for m in mine if m[0]]
        could = [m for m in mine if m[1] and m[2].started]
        for group in (could, still_open, mine):
            if group:
                last = group[-1] if group is not still_open else group[0]
                return last[3], last[2]
        return None

    def _may(self, run: RunRow, row: OpRow, who: str) -> bool:
        gate = row.data.get("gate")
        if gate:
            return who.casefold() in [w.casefold() for w in gate["to"]]
        if row.op != "ask" or "to" not in row.data:
            return False
        world = self._world(self.now)
        for kind, ref in row.data["to"]:
            if kind == "role" and who in world.roles.get(ref, ()):
                return True
            if ref.casefold() == who.casefold():
                return True
        return False

    def _named(self, tx: Transaction, run_id: str, op: str) -> list[OpRow]:
        """The ops that a step names, by id or path."""
        found = named(tx, self.site, run_id, op)
        row = ops.StoredRows(tx, run_id, JOB).op(op)
        return found if row is None or any(r.path == row.path for r in found) else [*found, row]

    def _runs(self) -> list[str]:
        return [RUN, *(f"r{n + 2}" for n in range(self._children))]

    def _event(self, body: dict[str, Any]) -> None:
        self._events += 1
        stream, sender = str(body["stream"]), body.get("from")
        stream = self._resolved(stream)
        if not self._known_stream(stream):
            self._reply(str(sender or "the sender"), f"There is no stream `{stream}` here. Nothing changed.")
            return
        ident = str(body.get("id") or f"e{self._events}")
        data = normalise(body.get("data") or {})
        chat = stream.partition(":")[0] in ("slack", "telegram", "line", "web") and ":" in stream
        conversation = sender if chat else None
        if chat:
            data = {
                "text": "",
                "tap": False,
                "conversation": sender,
                "user": {"id": sender},
                "files": [],
                "data": {},
                "id": ident,
                "at": self._at(),
                **data,
            }
        self.db.write(
            lambda tx: inbox.add(
                tx,
                stream=stream,
                ident=ident,
                sender=str(sender) if sender is not None else None,
                conversation=conversation,
                at=self.now,
                body=data,
            )
        )
        if chat and data["tap"] and stream.endswith(":message"):
            other = stream.replace(":message", ":tap")
            self.db.write(
                lambda tx: inbox.add(
                    tx, stream=other, ident=ident, sender=str(sender), conversation=conversation, at=self.now, body=data
                )
            )

    def _known_stream(self, stream: str) -> bool:
        kind = stream.partition(":")[0]
        return stream in self.scenario.streams or kind in ("slack", "telegram", "line", "web", "script", "endpoint")

    def _resolved(self, stream: str) -> str:
        template = refs.parse(stream)
        if not template.whole:
            return stream
        ref = template.refs[0]
        rows = self.db.read(named, self.site, RUN, ref.name)
        bound = next((r.value for r in rows if r.has_value), self.scenario.bindings.get(ref.name))
        try:
            return text(refs.follow(ref, bound))
        except OpError:
            return stream

    def _edit(self, body: dict[str, Any]) -> None:
        by = str(body.get("by") or self.scenario.owner)
        edit = {k: v for k, v in body.items() if k not in ("by", "why", "at")}
        self.fact(RUN, Edited(at=self.now, by=by, edit=normalise(edit), why=body.get("why")))

    async def _crash(self) -> None:
        """The worker dies with what it had in flight, and another takes over."""
        lost = [p.work for p in sorted(self._in_flight)]
        self._in_flight.clear()
        self.site = Site(catalog=self.site.catalog, world=self._world, secret=self.site.secret)
        for work in lost:
            if work["idempotent"]:
                await self._begin(work, again=True)
            else:
                self._returned(work, returned(work, self.now, lost=True, error="its answer was lost in a crash"))
                await self._come_to_rest()

    # --- events and clocks ------------------------------------------------------------------------------------
    async def _route(self, number: int, event: dict[str, Any]) -> None:
        at = datetime.fromisoformat(event["at"])
        for run_id in self.db.read(
            lambda tx: list(
                dict.fromkeys(
                    r for r, _ in waits.waiting_for(tx, event["stream"], event["from"], event["conversation"])
                )
            )
        ):
            await self._arrived(run_id, event, at, None)
        self.db.write(inbox.routed, [number])

    async def _arrived(self, run_id: str, event: dict[str, Any], at: datetime, only: str | None) -> None:
        passes: dict[str, bool | str] = {}
        while True:
            outcome = self.fact(
                run_id, Arrived(at=at, now=self.now, stream=event["stream"], event=event, passes=passes, only=only)
            )
            if not outcome.where:
                return
            for path, (expression, names) in outcome.where.items():
                try:
                    value = await self.sandbox.cel(expression, names)
                    passes[path] = value if isinstance(value, bool) else f"`{expression}` gave no true or false"
                except OpError as fault:
                    passes[path] = str(fault)

    def _overdue(self, due: tuple[str, str, str, datetime]) -> None:
        run, path, kind, at = due
        self.fact(run, Overdue(at=self.now, path=path, kind=kind, due=at))

    # --- calls ------------------------------------------------------------------------------------------------
    async def _begin(self, work: dict[str, Any], *, again: bool = False) -> None:
        if not again and not self.db.write(outbox.call_sent, work, self.now):
            return
        body, kind = work["body"], work["kind"]
        try:
            match kind:
                case "cel":
                    value = await self._cel(work, body)
                    self._returned(work, returned(work, self.now, value=value))
                case "jq":
                    value = await self.sandbox.jq(body["text"], body["value"], body["variables"])
                    self._returned(work, returned(work, self.now, value=value))
                case "file":
                    self._returned(work, returned(work, self.now, value=files.perform(self._files, body)))
                case "early":
                    await self._early(work, body)
                case "tool":
                    self._tool(work, body)
                case "agent":
                    self._agent(work, body)
                case "each":
                    self._each(work, body)
                case "judge":
                    self._judge(work, body)
                case "replan":
                    self._replan(work)
                case "run":
                    await self._run(work, body)
                case _:
                    self._done(work)
                    if body.get("run"):
                        self.fact(body["run"], Edited(at=self.now, by=self.scenario.owner, edit={"run": "cancel"}))
        except OpError as fault:
            self._returned(work, returned(work, self.now, error=str(fault)))

    async def _cel(self, work: dict[str, Any], body: dict[str, Any]) -> Any:
        try:
            value = await self.sandbox.cel(body["text"], body["names"])
        except OpError:
            if self.chooser is None or not self._is_condition(work):
                raise
            value = None
        if self.chooser is not None and self._is_condition(work) and not isinstance(value, bool):
            return self.chooser.choose(f"if {body['text']}", ["true", "false"]) == 0
        return value

    def _is_condition(self, work: dict[str, Any]) -> bool:
        row = self.db.read(lambda tx: ops.StoredRows(tx, work["run"], JOB).op(work["path"]))
        return row is not None and row.op == "core.if"

    def _later(self, work: dict[str, Any], takes: Any, result: Callable[[], Returned]) -> None:
        span = seconds(str(takes)) if takes is not None else None
        if not span:
            self._returned(work, result())
            return
        self._order += 1
        heapq.heappush(self._in_flight, _Pending(self.now + timedelta(seconds=span), self._order, work, result))

    def _returned(self, work: dict[str, Any], fact: Returned) -> None:
        self._done(work)
        self.fact(work["run"], fact)

    def _done(self, work: dict[str, Any]) -> None:
        self.db.write(outbox.call_done, work, self.now)

    async def _early(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        for ident in body["events"]:
            event = self.db.read(inbox.get, ident)
            if event is not None:
                await self._arrived(work["run"], event, datetime.fromisoformat(event["at"]), work["path"])
        self._returned(work, returned(work, self.now))

    def _tool(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        name = body["tool"]
        self.log.see(
            self.log.calls,
            {"at": self._at(), "tool": name, "params": plain(body["params"]), "attempt": work["attempt"]},
        )
        tool = self.scenario.tools.get(name, {})
        used = self._used.get(name, 0)
        self._used[name] = used + 1
        failing = "fails" in tool
        if failing and "times" in tool and used >= int(tool["times"]):
            tool = {"takes": tool.get("takes"), **(tool.get("then") or {})}
            failing = "fails" in tool
        if failing:
            self._later(
                work,
                tool.get("takes"),
                lambda: returned(work, self.now, error=text(tool["fails"]), lost=bool(tool.get("lost"))),
            )
        else:
            self._later(work, tool.get("takes"), lambda: returned(work, self.now, value=normalise(tool.get("returns"))))

    # --- other scripts ----------------------------------------------------------------------------------------
    async def _run(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        plan = self.saved.get(body["script"])
        if plan is None:
            raise OpError(f"there is no saved script `{body['script']}`")
        names = input_names(plan, body["inputs"])
        if plan.inputs is None:
            names = {**self.db.read(history.bindings, JOB), **names}
        self._children += 1
        child = RunRow(
            id=f"r{self._children + 1}",
            job=JOB,
            owner=self.scenario.owner,
            plan="",
            created=self.now,
            names=names,
            customer=self.scenario.customer,
            parent=f"{work['run']} {work['path']}",
            data={"script": body["script"], "depth": body["depth"], "attempt": work["attempt"]},
        )
        self._done(work)
        self.fact(work["run"], returned(work, self.now, child=child.id))
        outcome = self.db.write(lambda tx: accept(tx, self.site, child, plan))
        self._replied(outcome)
        self._follow(outcome)


def _open(row: OpRow) -> bool:
    gate = row.data.get("gate")
    return row.state in ("waiting", "gated", "uncertain") or (row.state == "missed" and bool(gate) and "by" not in gate)


def _messages(messages: list[dict[str, Any]]) -> tuple[str, str, list[str]]:
    """Text, title and buttons of a channel's messages, as one."""
    texts = [str(m.get("text") or "") for m in messages if m.get("text")]
    titles = [str(m["title"]) for m in messages if m.get("title")]
    buttons = [text(b.get("label")) for m in messages for b in m.get("buttons") or []]
    return "\n".join(texts), "\n".join(titles), buttons


def saved_scripts(plans: dict[str, Plan]) -> dict[str, SavedScript]:
    """What the checks must know of saved scripts."""
    return {
        name: SavedScript(
            name=name,
            inputs=plan.inputs,
            calls=tuple(str(op.params.get("script")) for op, _ in plan.walk() if op.op == "run"),
        )
        for name, plan in plans.items()
    }
