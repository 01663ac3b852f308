"""Every branch of a script, walked: each choice, each answer-or-miss, each condition, up to a bound."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bot.domain.facts import Answered, Overdue
from bot.domain.plan import Plan
from bot.rehearse.play import JOB, RUN, Chooser, Missing, Player
from bot.rehearse.scenario import Scenario
from bot.runtime.commit import Outcome
from bot.runtime.report import natural, state_of
from store import inbox, ops, runs, waits

BOUND = 64
"""Outcomes of one walk."""
TURNS = 400
"""Decisions and instants of one way; a loop that never ends is cut there."""


class OutOfTime(Exception):
    """Whoever asked for the walk waits no longer."""


class Walker(Player):
    """A rehearsal whose people and world do what the chooser says: when nothing else can happen, the earliest open
    wait is answered one way or another, or its window passes. `patience` says whether there is still time."""

    patience: Callable[[], bool] = staticmethod(lambda: True)

    def _follow(self, outcome: Outcome) -> None:
        if not self.patience():
            raise OutOfTime
        super()._follow(outcome)

    async def walk(self, plan: Plan, names: dict[str, Any]) -> None:
        self.scenario = replace_moves(self.scenario)
        self.db.write(self._set_up)
        from bot.domain.record import RunRow
        from bot.runtime.commit import accept

        run = RunRow(
            id=RUN,
            job=JOB,
            owner=self.scenario.owner,
            plan="",
            created=self.now,
            names=names,
            customer=self.scenario.customer,
        )
        self._follow(self.db.write(lambda tx: accept(tx, self.site, run, plan)))
        try:
            await self._come_to_rest()
            for _ in range(TURNS):
                if self._run_over() or not await self._turn():
                    return
        except Missing:
            return

    def _run_over(self) -> bool:
        run = self.db.read(runs.get, RUN)
        return run is None or run.ended is not None

    async def _turn(self) -> bool:
        assert self.chooser is not None
        due = self.db.read(waits.next_due)
        if self._in_flight and (due is None or self._in_flight[0].due <= due):
            done = heapq.heappop(self._in_flight)
            self.now = max(self.now, done.due)
            self._returned(done.work, done.result())
            await self._come_to_rest()
            return True
        rows = sorted(self.db.read(lambda tx: ops.StoredRows(tx, RUN, JOB).pending()), key=lambda r: natural(r.path))
        for row in rows:
            name = row.id or row.path
            gate = row.data.get("gate")
            if row.state in ("gated", "uncertain") and gate:
                ways = ["approve", "decline"] if gate["kind"] == "approval" else ["happened", "skip"]
                at = self.chooser.choose(f"{name}", [*ways, "nobody answers"])
                if at < len(ways):
                    self.fact(
                        RUN, Answered(at=self.now, path=row.path, value=ways[at], by=gate["to"][0], reason="rehearsed")
                    )
                else:
                    await self._let_pass(row.path)
                await self._come_to_rest()
                return True
            if row.op == "ask" and row.state == "waiting" and "tries" not in row.data:
                await self._ask(row, name)
                return True
            if row.op == "expect" and row.state == "waiting" and row.data.get("streams") not in (None, ["clock"]):
                at = self.chooser.choose(f"{name}", ["it comes", "nothing comes"])
                if at == 0:
                    self._arrive(row)
                    await self._come_to_rest()
                    again = self.db.read(lambda tx, p=row.path: ops.StoredRows(tx, RUN, JOB).op(p))
                    if again is not None and again.state == "waiting" and not again.data.get("judging"):
                        await self._let_pass(row.path)
                else:
                    await self._let_pass(row.path)
                await self._come_to_rest()
                return True
        if due is None:
            return False
        self.now = max(self.now, due)
        for one in self.db.read(waits.due, self.now):
            self._overdue(one)
        await self._come_to_rest()
        return True

    async def _ask(self, row: Any, name: str) -> None:
        assert self.chooser is not None
        choices = [c["label"] for c in row.data.get("choices") or []]
        ways = choices or ["an answer"]
        at = self.chooser.choose(name, [*ways, "no answer"])
        if at == len(ways):
            await self._let_pass(row.path)
        else:
            value: Any = choices[at] if choices else "an answer"
            if row.data.get("fields"):
                value = {f["name"]: _sample(f, self.scenario) for f in row.data["fields"]}
            for who in list(row.data.get("asked", [])):
                if who.startswith("agent"):
                    continue
                person = None if ":" in who and "@" not in who else who
                self.fact(
                    RUN,
                    Answered(
                        at=self.now,
                        path=row.path,
                        value=value,
                        by=person,
                        conversation=None if person else who,
                        reason="rehearsed",
                    ),
                )
                again = self.db.read(lambda tx, p=row.path: ops.StoredRows(tx, RUN, JOB).op(p))
                if again is None or again.state != "waiting":
                    break
        await self._come_to_rest()

    async def _let_pass(self, path: str) -> None:
        """The window of one op passes, with everything that is due before it."""
        row = self.db.read(lambda tx: ops.StoredRows(tx, RUN, JOB).op(path))
        if row is None or row.due is None:
            return
        self.now = max(self.now, row.due)
        for run, other, kind, due in self.db.read(waits.due, self.now):
            if other == path:
                self.fact(run, Overdue(at=self.now, path=other, kind=kind, due=due))
        await self._come_to_rest()

    def _arrive(self, row: Any) -> None:
        self._events += 1
        stream, sender = row.data["streams"][0], row.data.get("from")
        body: dict[str, Any] = {"text": "an answer", "user": {"id": sender}, "conversation": sender, "state": "done"}
        self.db.write(
            lambda tx: inbox.add(
                tx, stream=stream, ident=f"w{self._events}", sender=sender, conversation=sender, at=self.now, body=body
            )
        )


def replace_moves(scenario: Scenario) -> Scenario:
    return replace(scenario, moves=(), until=None)


def _sample(field: dict[str, Any], scenario: Scenario) -> Any:
    """What fits a field."""
    match field["type"]:
        case "number":
            return field.get("min", field.get("max", 1))
        case "date":
            return str(field.get("min", "2030-01-01"))
        case "time":
            return "09:00"
        case "bool":
            return True
        case "choice":
            return (field.get("choices") or ["an answer"])[0]
        case "person":
            return scenario.people[0].email if scenario.people else scenario.owner
        case "file":
            return {"name": "file.txt", "type": "text/plain", "size": 0, "path": "file.txt"}
        case _:
            return "an answer".ljust(field.get("min", 0), ".")[: field.get("max")]


def outcome(player: Walker, chooser: Chooser) -> dict[str, Any]:
    """One way through: what was decided, how it ended, what was said."""
    run = player.db.read(runs.get, RUN)
    assert run is not None
    state = "failed" if player.log.missing else state_of(run)
    told = [d for d in player.log.deliveries if d["kind"] in ("say", "send") and (d["text"] or d["title"])]
    says = [d["text"] for d in player.log.deliveries if d["kind"] in ("say", "send") and d["text"]]
    return {
        "way": [f"{about}: {ways[pick]}" for about, ways, pick in chooser.taken],
        "state": state,
        "error": run.data.get("error"),
        "says": says,
        "calls": [c["tool"] for c in player.log.calls],
        "told": [{"to": d["to"], "text": d["text"] or d["title"]} for d in told],
        "took_s": int(((run.ended or player.now) - run.created).total_seconds()),
    }


def next_way(chooser: Chooser) -> tuple[int, ...] | None:
    """The decisions of the next way, depth first; None once all are walked."""
    taken = [(len(ways), pick) for _, ways, pick in chooser.taken]
    while taken:
        ways, pick = taken.pop()
        if pick + 1 < ways:
            return (*(p for _, p in taken), pick + 1)
    return None
