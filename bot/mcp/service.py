"""What the tools of `waiton mcp` do, as a person's agent: plain values in, plain values out, no protocol.

A refusal is an answer like any other: it says what is wrong and that nothing has started.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.catalog import World
from bot.domain.facts import Answered, Edited
from bot.domain.ids import digest
from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.domain.values import normalise
from bot.engine.edits import EDITS
from bot.language.check.preflight import outward
from bot.language.script import Examined
from bot.mcp import reports
from bot.people import policy
from bot.rehearse.lines import flight_of
from bot.runtime import report
from bot.runtime.desk import Desk, is_open
from bot.runtime.proposals import Proposals, ident_of, run_of
from bot.runtime.trial import tried
from store import ops, proposals, runs, scripts
from store.dialect import Transaction

LONGEST_WAIT_S = 50.0
LOOKS_S = 0.25
"""Between looks at a run that another process may work on."""
JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}\Z")
NOTHING = "Nothing has started."


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent and the person whom it acts for. `session`: which of its connections."""

    email: str
    agent: str
    session: str = ""

    @property
    def name(self) -> str:
        return f"agent:{self.agent}"


NOBODY = Caller("", "")


def agent_name(said: str | None) -> str:
    """How a client is named in records, of what it calls itself."""
    cleaned = re.sub(r"[^A-Za-z0-9_.-]+", "-", said or "").strip("-.")[:40]
    return cleaned or "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A run as it stands, and which of its ops have moved since they were told."""

    run: RunRow
    rows: list[OpRow]
    moved: list[OpRow]

    @property
    def rests(self) -> bool:
        """Nothing is at work: it waits for others."""
        return not any(row.state == "running" and row.unclosed == 0 for row in self.rows)


class Service:
    """The tools, by name. `may_answer_asks`: what is put to the person may be answered by their agent too."""

    def __init__(self, desk: Desk, held: Proposals, *, may_answer_asks: bool = False) -> None:
        self.desk = desk
        self.proposals = held
        self.may_answer_asks = may_answer_asks
        self._seen: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
        """What a connection has been told of a run: by path the state and revision."""

    # --- scripts --------------------------------------------------------------------------------------------------
    async def check(self, who: Caller, script: Any) -> dict[str, Any]:
        seen = await self.desk.check(_text(script), by=who.email, starting=False)
        if seen.refused:
            return _refused(seen)
        return {"preflight": flight_of(seen, await self._world(who)), "notes": [note.message for note in seen.notes]}

    async def run_program(
        self,
        who: Caller,
        program: Any,
        inputs: Mapping[str, Any] | None = None,
        job: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        return await self._start(who, _text(program), inputs, job, key)

    async def run_script(
        self, who: Caller, script: str, job: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """`script`: markdown, or the name of a saved one."""
        saved = script.strip()
        if re.fullmatch(r"[\w.-]+", saved) and await self.desk.committer.read(scripts.get, saved) is not None:
            script = json.dumps([{"op": "run", "id": "ran", "params": {"script": saved}}])
        return await self._start(who, script, None, job, key)

    async def _start(
        self, who: Caller, text: str, inputs: Mapping[str, Any] | None, job: str | None, key: str | None
    ) -> dict[str, Any]:
        world = await self._world(who)
        if not policy.may_paste(world, who.email):
            return {"refused": [], "text": f"Scripts are started by {policy.who_pastes(world)} here. {NOTHING}"}
        mine = f"mcp {who.email} {who.agent} {key}" if key is not None else None
        if mine is not None and (before := await self._repeated(who, ident_of(mine))) is not None:
            return before
        if job is not None and not await self._usable(who, job):
            return {"refused": [], "text": f"There is no job `{job}` here. {NOTHING}"}
        where = job or f"{who.agent}-{digest(who.email)[:8]}".lower()
        seen = await self.desk.check(text, by=who.email, job=where, inputs=inputs)
        if seen.refused or seen.plan is None:
            return _refused(seen)
        await self._make_job(who, where, world)
        begun = await self.proposals.hold_or_start(
            text, by=who.email, job=where, author=who.name, inputs=inputs, ident=mine
        )
        if begun.held is not None:
            return await self._held(who, begun.held.id)
        started = begun.started
        if started is None or started.refused:
            return _refused(begun.seen)
        if started.saved is not None:
            return {"saved": started.saved, "text": f"Saved as `{started.saved['name']}`; nothing has run."}
        assert started.run is not None
        await self._settled(started.run, 1.0)
        told = await self._report(who, started.run)
        return told | ({"notes": [n.message for n in seen.notes]} if seen.notes else {})

    async def _repeated(self, who: Caller, ident: str) -> dict[str, Any] | None:
        """What a call with the same key has become."""
        if await self.desk.committer.read(proposals.get, ident) is not None:
            return await self._held(who, ident) | {"repeated": True}
        if await self.desk.committer.read(runs.get, run_of(ident)) is not None:
            return await self._report(who, run_of(ident)) | {"repeated": True}
        return None

    async def _held(self, who: Caller, ident: str) -> dict[str, Any]:
        """A run that waits for a person's tap; or what has become of it."""
        row = await self.desk.committer.read(proposals.get, ident)
        assert row is not None
        if row.run is not None:
            return await self._report(who, row.run)
        name = (await self._world(who)).name_of(row.by or who.email)
        match row.state:
            case "open":
                said = f"It writes, so it waits until a person taps Run in the job `{row.job}`. {NOTHING}"
            case "run":
                return {"run": ident, "state": "saved", "job": row.job, "text": f"{name} has let it be saved."}
            case "discarded":
                said = f"{name} has discarded it. {NOTHING}"
            case _:
                said = f"A newer one stands in its place. {NOTHING}"
        state = "held" if row.state == "open" else "discarded"
        return {"run": ident, "state": state, "job": row.job, "text": said}

    async def _make_job(self, who: Caller, job: str, world: World) -> None:
        title = f"{who.agent} for {world.name_of(who.email)}"

        def write(tx: Transaction) -> None:
            if runs.get_job(tx, job) is None:
                runs.add_job(tx, job, title, f"web:{job}", self.desk.clock.now())

        await self.desk.committer.write(write)

    async def _usable(self, who: Caller, job: str) -> bool:
        def read(tx: Transaction) -> bool:
            there = runs.get_job(tx, job) is not None
            return policy.reads_job(tx, job, who.email) if there else bool(JOB.match(job))

        return await self.desk.committer.read(read)

    # --- looking --------------------------------------------------------------------------------------------------
    async def show_run(self, who: Caller, run: str) -> dict[str, Any]:
        found = await self._find(who, run)
        return found if isinstance(found, dict) else await self._report(who, found.id)

    async def wait_for_run(self, who: Caller, run: str, seconds: float = 30.0) -> dict[str, Any]:
        """What has changed since this connection's last look: at once where the run has ended, or where it has moved
        and waits for others now."""
        until = time.monotonic() + max(0.0, min(float(seconds), LONGEST_WAIT_S))
        look: Look | None = None
        while True:
            found = await self._find(who, run)
            if not isinstance(found, RunRow):
                if found.get("state") != "held" or time.monotonic() >= until:
                    return found
            else:
                if look is None or look.run.rev != found.rev:
                    look = await self._look(who, found)
                if found.ended is not None or (look.moved and look.rests) or time.monotonic() >= until:
                    return await self._told(who, look)
            await asyncio.sleep(min(LOOKS_S, max(0.0, until - time.monotonic())))

    async def _look(self, who: Caller, run: RunRow) -> Look:
        rows = await self._rows(run)
        told = self._seen.get((who.session, run.id), {})
        moved = [r for r in rows if told.get(r.path, ("planned", r.rev)) != (r.state, r.rev)]
        return Look(run=run, rows=rows, moved=moved)

    async def _told(self, who: Caller, look: Look) -> dict[str, Any]:
        """What has changed; of a run that has ended its whole report besides."""
        changed: dict[str, Any] = {
            "changed": [reports.of_op(row, self.desk.catalog) for row in look.moved[: reports.MOST_OPS]]
        }
        if len(look.moved) > reports.MOST_OPS:
            changed["changed_left_out"] = len(look.moved) - reports.MOST_OPS
        if look.run.ended is not None:
            return await self._report(who, look.run.id) | changed
        self._tell(who, look.run.id, look.rows)
        short = await self.desk.show_short(look.run)
        return {"run": look.run.id, "state": short["state"], "line": short["line"], **changed}

    async def _report(self, who: Caller, run_id: str) -> dict[str, Any]:
        found = await self.desk.show(run_id)
        run = await self.desk.committer.read(runs.get, run_id)
        assert run is not None
        rows = await self._rows(run)
        self._tell(who, run_id, rows)
        return reports.of_run(found, rows, self.desk.catalog)

    def _tell(self, who: Caller, run_id: str, rows: list[OpRow]) -> None:
        self._seen[who.session, run_id] = {r.path: (r.state, r.rev) for r in rows}
        while len(self._seen) > 200:  # the runs of one that goes on for days
            self._seen.pop(next(iter(self._seen)))

    async def _rows(self, run: RunRow) -> list[OpRow]:
        rows = await self.desk.committer.read(lambda tx: ops.StoredRows(tx, run.id, run.job).all())
        return sorted(rows, key=lambda r: report.natural(r.path))

    async def _settled(self, run_id: str, seconds: float) -> None:
        """A moment for what ends at once, so that its first report says so."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            run = await self.desk.committer.read(runs.get, run_id)
            if run is None or run.ended is not None:
                return
            if (await self._look(NOBODY, run)).rests:
                return
            await asyncio.sleep(0.02)

    async def _find(self, who: Caller, run: str) -> RunRow | dict[str, Any]:
        """A run that this person may read; or what there is to say in its place."""

        def read(tx: Transaction) -> tuple[RunRow | None, bool]:
            held = proposals.get(tx, run) if run.startswith("p_") else None
            ident = run_of(run) if held is not None else run
            row = runs.get(tx, ident)
            job = row.job if row is not None else held.job if held is not None else None
            reads = job is not None and policy.reads_job(tx, job, who.email)
            mine = row is not None and row.owner.casefold() == who.email.casefold()
            return (row, held is not None) if reads or mine else (None, False)

        row, held = await self.desk.committer.read(read)
        if row is not None:
            return row
        return await self._held(who, run) if held else {"text": f"There is no run `{run}`. Nothing changed."}

    # --- acting ---------------------------------------------------------------------------------------------------
    async def answer(self, who: Caller, run: str, op: str, with_: Any, reason: str | None = None) -> dict[str, Any]:
        found = await self._find(who, run)
        if isinstance(found, dict):
            return {"accepted": False, "text": found["text"]}
        named = [r for r in await self._rows(found) if op in (r.id, r.path)]
        row = next((r for r in named if is_open(r)), named[-1] if named else None)
        if row is None:
            return {"accepted": False, "text": f"There is no question `{op}` in this run. Nothing changed."}
        by = self._voice(who, row, await self._world(who))
        if isinstance(by, Refusal):
            return {"accepted": False, "text": f"{by} Nothing changed."}
        fact = Answered(
            at=self.desk.clock.now(), path=row.path, value=normalise(with_), by=by, reason=reason,
            via=None if by.startswith("agent") else who.name,
        )  # fmt: skip
        said = await self.desk.act(found.id, fact, by)
        return {"accepted": said.accepted, "text": said.text}

    def _voice(self, who: Caller, row: OpRow, world: World) -> str | Refusal:
        """By whose voice an agent may answer this: its own, or its person's where that is allowed."""
        if row.data.get("gate"):
            return Refusal("Approvals and doubts are for people; this one waits for a person's word.")
        asked = [str(one).casefold() for one in row.data.get("asked", [])]
        default = next((a.name for a in world.agents if a.default), None)
        for mine in (who.name, "agent" if default == who.agent else None):
            if mine is not None and mine.casefold() in asked:
                return mine
        if who.email.casefold() in asked and self.may_answer_asks:
            return who.email
        to = ", ".join(world.name_of(str(one)) for one in row.data.get("asked", [])) or "nobody any more"
        return Refusal(f"`{row.id or row.path}` is put to {to}, not to you.")

    async def edit(self, who: Caller, run: str, **given: Any) -> dict[str, Any]:
        found = await self._find(who, run)
        if isinstance(found, dict):
            return {"accepted": False, "text": found["text"]}
        why, rev = given.pop("why", None), given.pop("rev", None)
        change = {"run": given.pop("do")} if "do" in given else {}
        change |= given
        kinds = [key for key in change if key not in ("op", "after")]
        if len(kinds) != 1:
            listed = ", ".join(f"`{e.key}`" for e in EDITS if e.key in EDITED)
            return {"accepted": False, "text": f"One edit at a time: one of {listed}, or `do`. Nothing changed."}
        fact = Edited(
            at=self.desk.clock.now(), by=who.email, edit=normalise(change), why=why, rev=rev, via=who.name
        )  # fmt: skip
        if (await self._world(who)).policy.agent_runs != "free" and {"insert", "replace"} & set(change):
            trial = await tried(self.desk.committer, found.id, fact)
            if trial is not None and self._writes(trial.after.plan) > self._writes(trial.before.plan):
                text = "It would bring a write, and writes of an agent wait for a person. Nothing changed."
                return {"accepted": False, "text": f"{text} A person can make this edit, or start the rest as a run."}
        said = await self.desk.act(found.id, fact, who.email)
        told: dict[str, Any] = {"accepted": said.accepted, "text": said.text}
        return told | ({"problems": list(said.problems)} if said.problems else {})

    def _writes(self, plan: Plan) -> int:
        found = ((op, self.desk.catalog.get(op.op)) for op, _ in plan.walk())
        return sum(op.op == "run" or outward(op, spec) for op, spec in found if spec is not None)

    async def _world(self, who: Caller) -> World:
        return await self.desk.world()


EDITED = frozenset({e.key for e in EDITS} - {"accept"})
"""Edits that an agent may make: whether a late answer counts is its owner's to say."""


class Refusal(str):
    """Why not, in a sentence."""


def _text(program: Any) -> str:
    return program if isinstance(program, str) else json.dumps(program, ensure_ascii=False)


def _refused(seen: Examined) -> dict[str, Any]:
    return {"refused": seen.reports(), "text": NOTHING}
