"""What the terminal does with runs: one run worked on here, or a word to those that the server works on."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.config import load
from bot.domain.errors import WaitonError
from bot.domain.record import OpRow, RunRow
from bot.domain.values import text
from bot.engine import tenses, words
from bot.exits import FINE, OTHERWISE, REFUSED
from bot.people import directory
from bot.rehearse.lines import told
from bot.runtime import report
from bot.runtime.commit import world_of
from bot.runtime.desk import Desk, is_open
from bot.runtime.files import FolderFiles
from bot.wiring import Product
from store import ops, outbox, people, runs
from store.dialect import Transaction

JOB = "terminal"


@asynccontextmanager
async def product(*, here: bool = False) -> AsyncGenerator[Product]:
    """A guest in the database: the server, if one runs, goes on with what is handed in."""
    settings = load()
    files = FolderFiles(Path.cwd(), job_folders=False) if here else None
    one = Product(settings, guest=True, files=files)
    await one.start()
    try:
        if not (await one.desk.world()).people:
            person = directory.default_person(settings)
            await one.committer.write(lambda tx: people.put(tx, person.email, person.name, person.timezone))
            one.people_changed()
        yield one
    finally:
        await one.stop()


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
        return await _work(one, started.run, me)


async def resume_here(run_id: str, as_: str | None) -> int:
    """Goes on with a run at this terminal."""
    async with product(here=True) as one:
        me = await acting(one.desk, as_)
        if await one.committer.read(runs.get, run_id) is None:
            raise WaitonError(f"there is no run `{run_id}`; `waiton runs` lists them")
        return await _work(one, run_id, me)


async def _work(one: Product, run_id: str, me: str) -> int:
    await one.hold_run(run_id)
    screen = _Screen(one, run_id, me)
    lines = _stdin()
    changes = one.listeners.changes()
    change = asyncio.ensure_future(anext(changes))
    line: asyncio.Future[str | None] = asyncio.ensure_future(lines.get())
    try:
        while True:
            run = await screen.refresh()
            if run.ended is not None:
                return await screen.close(run)
            waiting: list[asyncio.Future[Any]] = [change, *([line] if screen.asked is not None else [])]
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=2)
            if change in done:
                change = asyncio.ensure_future(anext(changes))
            if line in done:
                given = line.result()
                if given is None:
                    print(f"\nleft waiting; `waiton resume {run_id}` goes on")
                    return OTHERWISE
                line = asyncio.ensure_future(lines.get())
                await screen.typed(given)
    except asyncio.CancelledError:
        print(f"\nleft waiting; `waiton resume {run_id}` goes on")
        raise
    finally:
        change.cancel()
        line.cancel()


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


class _Screen:
    """What has been printed of a run, and the question that stands at the prompt."""

    def __init__(self, one: Product, run_id: str, me: str) -> None:
        self.one = one
        self.run_id = run_id
        self.me = me
        self.asked: OpRow | None = None
        self._form: dict[str, Any] = {}
        self._answer: Any = None
        self._ended: set[str] = set()
        self._told: set[str] = set()
        self._line: str | None = None

    async def refresh(self) -> RunRow:
        """Prints what is new; puts the next question that is this person's."""
        plan, run, rows, _ = await self.one.desk.plan_of(self.run_id)
        world = world_of(self.one.site, run, self.one.clock.now())
        by_place = {op.place: op for op, _ in plan.walk()}
        for row in await self.one.committer.read(lambda tx: outbox.find(tx, run_id=self.run_id)):
            if row["id"] not in self._told and row["kind"] in ("say", "notice") and row["to"] in ("job", self.me):
                self._told.add(row["id"])
                print(f"  » {row['card'].get('title') or ''}{row['card'].get('text', '')}")
        for row in sorted(rows, key=lambda r: report.natural(r.path)):
            if not row.open and row.path not in self._ended and row.place in by_place:
                self._ended.add(row.path)
                mark = {"done": "✓", "failed": "✗", "missed": "✗"}.get(row.state, "–")
                why = (
                    f": {row.error}"
                    if row.error
                    else f" → {_short(row.value)}"
                    if row.has_value and row.op != "say"
                    else ""
                )
                print(f"{mark} {row.path:<8} {told(by_place[row.place])}{why}")
        line = tenses.line(rows, world, self.one.clock.now(), reader=self.me)
        if line != self._line and line is not None and run.ended is None:
            print(f"… {line}")
        self._line = line
        mine = [r for r in sorted(rows, key=lambda r: report.natural(r.path)) if is_open(r) and self.me in _to(r)]
        if self.asked is None or all(r.path != self.asked.path or r.rev != self.asked.rev for r in mine):
            self.asked = mine[0] if mine else None
            self._form, self._answer = {}, None
            if self.asked is not None:
                self._put(self.asked)
        return run

    def _put(self, row: OpRow) -> None:
        question, choices, fields = _question(row)
        print(f"\n? {question}")
        for number, label in enumerate(choices, 1):
            print(f"   {number}  {label}")
        self._prompt(fields)

    def _prompt(self, fields: list[dict[str, Any]]) -> None:
        left = [f for f in fields if f["name"] not in self._form]
        print(
            f"  {left[0].get('label') or left[0]['name']} ({left[0]['type']})> " if left else "  > ", end="", flush=True
        )

    async def typed(self, line: str) -> None:
        """One line typed at the prompt."""
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
            print("  a reason> ", end="", flush=True)
            return
        if not said.accepted:
            print(f"  {said.text}")
            self._form, self._answer = {}, None
            self._prompt(fields)
            return
        self.asked = None

    async def close(self, run: RunRow) -> int:
        shown = (await self.one.desk.show(self.run_id))["result"]
        if shown is not None:
            print(f"\n{text(shown) if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)}")
        why = f": {run.data['error']}" if run.data.get("error") else ""
        print(f"\n{run.state}{why}")
        return FINE if run.state == "done" else OTHERWISE


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
    if gate:
        return f"`{row.id or row.path}` was missed and could not be replanned", ["go on", "stop"], []
    data = row.data
    return data["question"], [c["label"] for c in data.get("choices") or []], list(data.get("fields") or [])


def _short(value: Any) -> str:
    said = text(value).replace("\n", " ")
    return said if len(said) <= 60 else said[:59] + "…"


# --- a word to other runs -------------------------------------------------------------------------------------------
async def show_run(run_id: str, as_: str) -> int:
    """A run as it stands: as its card (three tenses), as JSON, or its plan on a surface."""
    async with product() as one:
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
            why = f": {row.error}" if row.error else f" → {_short(row.value)}" if row.has_value else ""
            name = told(by_place[row.place]) if row.place in by_place else row.op
            print(f" {marks[tenses.tense(row)]} {row.path:<10} {row.state:<9} {name}{why}")
        return FINE


async def list_runs(state: str | None, as_json: bool) -> int:
    async with product() as one:
        found = await one.desk.find_runs(state=state)
        if as_json:
            print(
                json.dumps(
                    [
                        {
                            "id": r.id,
                            "job": r.job,
                            "owner": r.owner,
                            "state": report.state_of(r),
                            "created": r.created.isoformat(),
                            "ended": r.ended.isoformat() if r.ended else None,
                            "error": r.data.get("error"),
                        }
                        for r in found
                    ],
                    indent=1,
                )
            )
            return FINE
        world = await one.desk.world()
        for run in found:
            pending = await one.committer.read(lambda tx, r=run: ops.StoredRows(tx, r.id, r.job).pending())
            line = tenses.line(pending, world, one.clock.now()) if run.ended is None else run.data.get("error")
            since = words.clock(run.created, world, one.clock.now())
            said = f"  {line}" if line else ""
            print(f"{run.id}  {since:>12}  {report.state_of(run):<9} {run.owner}{said}")
        if not found:
            print("no runs yet; `waiton run FILE` starts one")
        return FINE


async def list_inbox(as_: str | None, as_json: bool) -> int:
    async with product() as one:
        me = await acting(one.desk, as_)
        rows = await one.committer.read(lambda tx: outbox.find(tx, to=me, open_cards=True))
        if as_json:
            print(
                json.dumps(
                    [
                        {
                            "run": r["run"],
                            "op": r["path"],
                            "kind": r["kind"],
                            "since": r["at"].isoformat(),
                            "title": r["card"].get("title"),
                            "text": r["card"].get("text"),
                            "choices": r["card"].get("buttons"),
                        }
                        for r in rows
                    ],
                    ensure_ascii=False,
                    indent=1,
                )
            )
            return FINE
        world = await one.desk.world()
        for row in rows:
            card = row["card"]
            print(
                f"{row['run']}  {row['path']:<8} since {words.clock(row['at'], world, one.clock.now())}: "
                f"{card.get('title') or ''} {_short(card.get('text', ''))}  [{'] ['.join(card.get('buttons') or [])}]"
            )
        if not rows:
            print("nothing waits on you")
        return FINE


async def answer_run(run_id: str, op: str, value: Any, reason: str | None, as_: str | None) -> int:
    async with product() as one:
        said = await one.desk.answer(run_id, op, value, by=await acting(one.desk, as_), reason=reason)
        print(said.text, file=sys.stdout if said.accepted else sys.stderr)
        return FINE if said.accepted else REFUSED


async def edit_run(run_id: str, edit: dict[str, Any], as_: str | None, why: str | None) -> int:
    async with product() as one:
        said = await one.desk.edit(run_id, edit, by=await acting(one.desk, as_), why=why)
        print(said.text, file=sys.stdout if said.accepted else sys.stderr)
        return FINE if said.accepted else REFUSED


# --- people ---------------------------------------------------------------------------------------------------------
async def list_people(as_json: bool) -> int:
    async with product() as one:
        world = await one.desk.world()
        found: list[dict[str, Any]] = [
            {
                "email": p.email,
                "name": p.name,
                "timezone": p.timezone,
                "roles": [r for r, members in world.roles.items() if p.email in members],
            }
            for p in world.people
        ]
        if as_json:
            print(json.dumps(found, ensure_ascii=False, indent=1))
        for person in found if not as_json else []:
            print(f"{person['email']:<28} {person['name']:<16} {', '.join(person['roles'])}".rstrip())
        return FINE


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
