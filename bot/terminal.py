"""What the terminal does with runs: one run worked on here, or a word to those that the server works on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.config import load
from bot.domain.catalog import World
from bot.domain.errors import WaitonError
from bot.domain.plan import Op
from bot.domain.record import OpRow, RunRow
from bot.domain.values import summary, text
from bot.engine import tenses, verdicts
from bot.exits import FINE, OTHERWISE, REFUSED
from bot.people import directory
from bot.rehearse.lines import told
from bot.runtime import report
from bot.runtime.commit import world_of
from bot.runtime.desk import Desk, is_open
from bot.runtime.desk import said as said_ways
from bot.runtime.files import FolderFiles
from bot.wiring import Product
from store import outbox, people, runs, work
from store.dialect import Transaction

JOB = "terminal"


@asynccontextmanager
async def product(*, here: bool = False, stands_in: bool = False) -> AsyncGenerator[Product]:
    """A guest in the database: the server, if one runs, goes on with what is handed in; if none does, this process
    does where it `stands_in`."""
    _plain_logs()
    settings = load()
    files = FolderFiles(Path.cwd(), job_folders=False) if here else None
    one = Product(settings, guest=True, files=files)
    one.stands_in = stands_in
    await one.start()
    try:
        if not (await one.desk.world()).people:
            person = directory.default_person(settings)
            await one.committer.write(lambda tx: people.put(tx, person.email, person.name, person.timezone))
            one.people_changed()
        yield one
    finally:
        await one.stop()


def _plain_logs() -> None:
    """Faults are one line on stderr; what a command prints stays its own."""
    import logging

    import structlog

    structlog.configure(
        processors=[structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.CRITICAL, stream=sys.stderr)


async def acting(desk: Desk, as_: str | None) -> str:
    """Whom the terminal acts for: the person named, else the first."""
    world = await desk.world()
    if as_ is None:
        return world.people[0].email
    person = world.person(as_)
    if person is None:
        raise WaitonError(f"{as_} is nobody here; add them with `waiton people add {as_}`")
    return person.email


# --- a run at this terminal -----------------------------------------------------------------------------------------
async def run_here(script: bytes, inputs: dict[str, Any], as_: str | None, *, detach: bool) -> int:
    """Runs a script, asking at the prompt what is asked of this person."""
    async with product(here=not detach) as one:
        me = await acting(one.desk, as_)
        await one.committer.write(lambda tx: runs.add_job(tx, JOB, "Terminal", f"web:{JOB}", one.clock.now()))
        started = await one.desk.start(script, by=me, job=JOB, inputs=inputs)
        if started.refused:
            print(started.seen.rendered(), file=sys.stderr)
            return REFUSED
        if started.saved is not None:
            print(f"saved as {started.saved['name']}, version {started.saved['version']}")
            return FINE
        assert started.run is not None
        if detach:
            print(started.run)
            return FINE
        return await work_here(one, started.run, me)


async def resume_here(run_id: str, as_: str | None) -> int:
    """Goes on with a run at this terminal."""
    async with product(here=True) as one:
        me = await acting(one.desk, as_)
        if await one.committer.read(runs.get, run_id) is None:
            raise WaitonError(f"there is no run `{run_id}`; `waiton runs` lists them")
        return await work_here(one, run_id, me)


async def work_here(one: Product, run_id: str, me: str) -> int:
    """Works on a run at this terminal until it ends or is left waiting."""
    await one.hold_run(run_id)
    screen = _Screen(one, run_id, me)
    lines = _stdin()
    changes = one.listeners.changes()
    change = asyncio.ensure_future(anext(changes))
    line: asyncio.Future[str | None] = asyncio.ensure_future(lines.get())
    left = asyncio.ensure_future(_interrupted())
    try:
        while True:
            run = await screen.refresh()
            if run.ended is not None:
                return await screen.close(run)
            waiting: list[asyncio.Future[Any]] = [change, left, *([line] if screen.asked is not None else [])]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=2)
            if left in done:
                return screen.leave()
            if change in done:
                change = asyncio.ensure_future(anext(changes))
            if line in done:
                given = line.result()
                if given is None:
                    return screen.leave()
                line = asyncio.ensure_future(lines.get())
                await screen.typed(given)
    finally:
        for task in (change, line, left):
            task.cancel()


async def _interrupted() -> None:
    """Returns at Ctrl-C; a second one ends the process at once."""
    import signal

    loop, pressed = asyncio.get_running_loop(), asyncio.Event()
    with contextlib.suppress(NotImplementedError, RuntimeError):  # a platform or a thread without signals
        loop.add_signal_handler(signal.SIGINT, pressed.set)
    try:
        await pressed.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _stdin() -> asyncio.Queue[str | None]:
    """Lines typed, None at the end of the input."""
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(queue.put_nowait, line)

    def read() -> None:
        try:
            for line in sys.stdin:
                put(line.rstrip("\n"))
            put(None)
        except (ValueError, RuntimeError):
            return

    threading.Thread(target=read, daemon=True, name="stdin").start()
    return queue


NEXT = 5
"""Ops to come that the live list shows."""


class _Screen:
    """What has been printed of a run: what happened stays, what waits and what is next is drawn again below it where
    the output is a terminal; and the question that stands at the prompt."""

    def __init__(self, one: Product, run_id: str, me: str) -> None:
        self.one = one
        self.run_id = run_id
        self.me = me
        self.asked: OpRow | None = None
        self.live = sys.stdout.isatty()
        self._form: dict[str, Any] = {}
        self._answer: Any = None
        self._ended: set[str] = set()
        self._told: set[int] = set()
        self._line: str | None = None
        self._below: list[str] = []
        self._list: list[str] = []
        self._height = 0

    async def refresh(self) -> RunRow:
        """Prints what is new; puts the next question that is this person's."""
        plan, run, rows, _ = await self.one.desk.plan_of(self.run_id)
        rows = sorted(rows, key=lambda r: report.natural(r.path))
        world = world_of(self.one.site, run, self.one.clock.now())
        by_place = {op.place: op for op, _ in plan.walk()}
        new = self._happened(rows, by_place, await self._messages())
        ways = said_ways(await self.one.committer.read(work.progress_of, self.run_id))
        self._list = [] if run.ended else self._pending(rows, by_place, world, ways)
        line = tenses.line(rows, world, self.one.clock.now(), reader=self.me)
        mine = [r for r in rows if is_open(r) and self.me in _to(r)]
        put = self.asked is None or all(r.path != self.asked.path or r.rev != self.asked.rev for r in mine)
        if put:
            self.asked = mine[0] if mine else None
            self._form, self._answer = {}, None
        if not self.live and line != self._line and line is not None and run.ended is None and self.asked is None:
            new.append(f"… {line}")
        self._line = line
        self._draw(new, put)
        return run

    async def _messages(self) -> list[str]:
        """What was said to everyone or to this person, and has not been printed."""
        found: list[str] = []
        for row in await self.one.committer.read(lambda tx: outbox.find(tx, run_id=self.run_id)):
            if row["seq"] not in self._told and row["kind"] in ("say", "notice") and row["to"] in ("job", self.me):
                self._told.add(row["seq"])
                title, body = row["card"].get("title") or "", row["card"].get("text", "")
                found.append("  » " + (f"{title}: {body}" if title and body else title or body).replace("\n", "\n    "))
        return found

    def _happened(self, rows: list[OpRow], by_place: Mapping[str, Op], said: list[str]) -> list[str]:
        """A line for each op that has ended since; what a message says stands for the op that said it."""
        new: list[str] = []
        for row in rows:
            if row.open or row.path in self._ended or row.place not in by_place:
                continue
            self._ended.add(row.path)
            if row.op == "say" and row.state == "done":
                continue
            mark = {"done": "✓", "failed": "✗", "missed": "✗"}.get(row.state, "–")
            why = f": {row.error}" if row.error else ""
            if not why and row.has_value and row.op != "show":
                why = f" → {short(row.value)}"
            new.append(f"{mark} {row.path:<6} {told(by_place[row.place])}{why}")
        return new + said

    def _pending(
        self, rows: list[OpRow], by_place: Mapping[str, Op], world: World, ways: Mapping[str, str]
    ) -> list[str]:
        """What waits, on whom since when, and what is next, a line an op; regions at work are left out."""
        now = [r for r in rows if tenses.tense(r) == "waiting" and not (r.unclosed and r.state == "running")]
        later = [r for r in rows if tenses.tense(r) == "next"]
        lines: list[str] = []
        for row in now:
            since = ways.get(row.path) or tenses.line([row], world, self.one.clock.now(), reader=self.me)
            lines.append(f"● {row.path:<6} {_called(row, by_place)}{f' · {since}' if since else ''}")
        lines += [f"○ {row.path:<6} {_called(row, by_place)}" for row in later[:NEXT]]
        return lines + ([f"  … and {len(later) - NEXT} more"] if len(later) > NEXT else [])

    def _draw(self, new: list[str], put: bool) -> None:
        """What is new goes above the list; nothing is drawn over a line that is being typed unless it must."""
        below = self._list if self.live else []
        if not new and not put and (self.asked is not None or below == self._below):
            return
        self._erase()
        for line in new:
            print(line)
        for line in below:
            print(line[: _columns() - 1])
        self._below, self._height = below, len(below)
        if self.asked is not None and (put or self.live):
            self._put(self.asked)
        sys.stdout.flush()

    def _erase(self) -> None:
        if self.live and self._height:
            print(f"\r\x1b[{self._height}A\x1b[J", end="")
        self._height = 0

    def _print(self, line: str, end: str = "\n") -> None:
        """A line of the question, counted so that it can be erased."""
        print(line, end=end, flush=True)
        self._height += sum(max(1, -(-len(part) // _columns())) for part in line.split("\n")) - (end == "")

    def leave(self) -> int:
        """The run goes on waiting: what it waits on, what is next, how to come back."""
        if not self.live:
            print("\n" + "\n".join(self._list))
        elif self.asked is not None:
            print()
        print(f"left waiting; `waiton resume {self.run_id}` goes on", flush=True)
        return OTHERWISE

    def _put(self, row: OpRow) -> None:
        question, choices, fields = _question(row)
        self._print(f"\n? {question}")
        for number, label in enumerate(choices, 1):
            self._print(f"   {number}  {label}")
        self._prompt(fields)

    def _prompt(self, fields: list[dict[str, Any]]) -> None:
        left = [f for f in fields if f["name"] not in self._form]
        self._print(f"  {_field(left[0])}> " if left else "  > ", end="")

    async def typed(self, line: str) -> None:
        """One line typed at the prompt."""
        self._height += 1  # the line's own end has moved the cursor down
        if not sys.stdin.isatty():
            print(line)  # nobody typed it, so nothing has shown it
        row = self.asked
        if row is None:
            return
        _, choices, fields = _question(row)
        left = [f for f in fields if f["name"] not in self._form]
        reason: str | None = None
        if left:
            self._form[left[0]["name"]] = line.strip()
            if len(left) > 1:
                self._prompt(fields)
                return
            value: Any = dict(self._form)
        elif self._answer is not None:
            value, reason = self._answer, line.strip()
        else:
            value = choices[int(line) - 1] if line.strip().isdigit() and 0 < int(line) <= len(choices) else line
        said = await self.one.desk.answer(self.run_id, row.path, value, by=self.me, reason=reason)
        if said.status == 422 and "reason" in said.text and self._answer is None:
            self._answer = value
            self._print("  a reason> ", end="")
            return
        if not said.accepted:
            self._print(f"  {said.text}")
            self._form, self._answer = {}, None
            self._prompt(fields)
            return
        self.asked = None

    async def close(self, run: RunRow) -> int:
        """Erases the list, prints what the run shows and how it ended."""
        self._erase()
        shown = (await self.one.desk.show(self.run_id))["result"]
        if shown is not None:
            print(f"\n{shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)}")
        why = f": {run.data['error']}" if run.data.get("error") else ""
        print(f"\n{run.state}{why}")
        return FINE if run.state == "done" else OTHERWISE


def _called(row: OpRow, by_place: Mapping[str, Op]) -> str:
    return told(by_place[row.place]) if row.place in by_place else row.op


def _field(field: dict[str, Any]) -> str:
    """How a field is asked for: its label, and what fits."""
    choices = field.get("choices")
    fits = ", ".join(str(c) for c in choices) if choices else field["type"]
    return f"{field.get('label') or field['name']} ({fits})"


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _to(row: OpRow) -> list[str]:
    gate = row.data.get("gate")
    return list(gate["to"]) if gate else list(row.data.get("asked", []))


def _question(row: OpRow) -> tuple[str, list[str], list[dict[str, Any]]]:
    gate = row.data.get("gate")
    if gate and gate["kind"] == "approval":
        params = ", ".join(f"{k}: {text(v)}" for k, v in row.data.get("params", {}).items())
        return f"May `{row.op}` run? {params}", ["approve", "decline"], []
    if gate and gate["kind"] == "doubt":
        return f"Did `{row.op}` happen? {row.error or ''}", ["happened", "retry", "skip"], []
    if gate and gate["kind"] == "verdict":
        shown = text(gate["event"]["event"])
        return f"Does this show it: {row.data['check']}\n{shown}", [c["label"] for c in verdicts.CHOICES], []
    if gate:
        return f"`{row.id or row.path}` was missed and could not be replanned", ["go on", "stop"], []
    data = row.data
    return data["question"], [c["label"] for c in data.get("choices") or []], list(data.get("fields") or [])


def short(value: Any) -> str:
    """A value on one line, cut where it is long; of a list or a record what it is and how large."""
    if isinstance(value, (list, dict)):
        return summary(value)
    said = text(value).replace("\n", " ")
    return said if len(said) <= 60 else said[:59] + "…"


# --- a word to other runs -------------------------------------------------------------------------------------------
async def show_run(run_id: str, as_: str) -> int:
    """A run as it stands: as its card (three tenses), as JSON, or its plan on a surface."""
    async with product() as one:
        if await one.committer.read(runs.get, run_id) is None:
            raise WaitonError(f"{run_id} is neither a file here nor a run; `waiton runs` lists the runs")
        found = await one.desk.show(run_id)
        if as_ == "json":
            print(json.dumps(found, ensure_ascii=False, indent=1))
            return FINE
        plan, run, rows, _ = await one.desk.plan_of(run_id)
        if as_ != "card":
            from bot.language.write import as_markdown
            from bot.rehearse.lines import mermaid

            print(as_markdown(plan, one.catalog) if as_ == "markdown" else mermaid(plan))
            return FINE
        by_place = {op.place: op for op, _ in plan.walk()}
        print(f"{run.id}  {found['state']}  started by {run.owner}, {found['created'][:16].replace('T', ' ')}")
        if found["line"]:
            print(found["line"])
        marks = {"happened": "✓", "waiting": "●", "next": "○"}
        for row in sorted(rows, key=lambda r: report.natural(r.path)):
            why = f": {row.error}" if row.error else f" → {short(row.value)}" if row.has_value else ""
            name = told(by_place[row.place]) if row.place in by_place else row.op
            print(f" {marks[tenses.tense(row)]} {row.path:<10} {row.state:<9} {name}{why}")
        return FINE


async def answer_run(run_id: str, op: str, value: Any, reason: str | None, as_: str | None) -> int:
    async with product() as one:
        said = await one.desk.answer(run_id, op, value, by=await acting(one.desk, as_), reason=reason)
        print(said.text, file=sys.stdout if said.accepted else sys.stderr)
        return FINE if said.accepted else REFUSED


async def edit_run(
    run_id: str,
    edit: dict[str, Any],
    as_: str | None,
    why: str | None,
    *,
    rev: int | None = None,
    preview: bool = False,
    as_json: bool = False,
) -> int:
    """Makes an edit, or shows what it would do."""
    from bot.server import previewing

    async with product() as one:
        me = await acting(one.desk, as_)
        if preview:
            said, trial = await one.desk.try_edit(run_id, edit, by=me, why=why, rev=rev)
            seen = previewing.preview(said, trial, await one.desk.world(), one.catalog)
            found: dict[str, Any] = seen.report()
            lines = [f"{line.mark} {line.text}".rstrip() for line in (*seen.steps, *seen.script)]
            lines += [f"  {meant}" for meant in seen.means] + [seen.text]
        else:
            said = await one.desk.edit(run_id, edit, by=me, why=why, rev=rev)
            found = {"accepted": said.accepted, "text": said.text, "problems": list(said.problems)}
            lines = [said.text]
        if as_json:
            print(json.dumps(found, ensure_ascii=False, indent=1))
        else:
            shown = previewing.problem_lines(said.problems) if said.problems else lines
            print("\n".join(shown), file=sys.stdout if said.accepted else sys.stderr)
        return FINE if said.accepted else REFUSED


# --- people ---------------------------------------------------------------------------------------------------------
async def add_person(email: str, name: str | None, timezone: str | None, roles: list[str]) -> int:
    if "@" not in email.strip("@"):
        raise WaitonError(f"`{email}` is no email")

    def write(tx: Transaction) -> None:
        people.put(tx, email, name or email.partition("@")[0].capitalize(), timezone)
        for role in roles:
            people.put_role(tx, role, email)

    async with product() as one:
        await one.committer.write(write)
        print(f"{email} is here")
        return FINE


async def remove_person(email: str) -> int:
    async with product() as one:
        gone = await one.committer.write(lambda tx: people.remove(tx, email))
        if not gone:
            raise WaitonError(f"{email} is nobody here")
        print(f"{email} is no longer here; what they did stays on record")
        return FINE


async def login_link(email: str) -> int:
    async with product() as one:
        me = await acting(one.desk, email)
        print(await one.desk.login_link(me))
        return FINE


async def make_token(email: str, name: str | None, days: int | None) -> int:
    import secrets

    async with product() as one:
        me = await acting(one.desk, email)
        secret = "wt_" + secrets.token_urlsafe(32)
        now = one.clock.now()
        until = now + timedelta(days=days) if days else None
        await one.committer.write(lambda tx: people.add_token(tx, secret, me, name, now, until))
        print(f"a token of {me}" + (f", until {until:%d %b %Y}" if until else "") + "; it is not shown again")
        print(secret)
        return FINE
