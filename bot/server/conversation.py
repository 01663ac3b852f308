"""A job's conversation for one reader: who pasted what, how it stands, what was said, the cards that concern them.

Everything is read in one transaction and given as values for the templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.changes import CARDS
from bot.domain.ids import tap_token
from bot.domain.plan import Op, Plan, Region
from bot.domain.record import OpRow, RunRow
from bot.domain.values import text
from bot.engine import asks, edits, tenses, verdicts, words
from bot.runtime import report
from bot.runtime.commit import Site
from bot.runtime.desk import is_open
from bot.runtime.desk import said as said_ways
from bot.server import phrases, rail, rights
from bot.server.entries import Item, script_lines
from bot.server.waiting import wait_of, waits_of
from channels.web import render
from channels.web.limits import RUNS_SHOWN
from store import inbox, ops, outbox, proposals, runs, wishes, work
from store.dialect import Transaction

WAYS = 8
"""Ops at work whose progress is shown."""
PROPOSED = 50
"""Wishes and proposals of a job that are shown, the latest."""


@dataclass(slots=True, kw_only=True)
class JobLink:
    id: str
    title: str
    waiting: int
    private: bool


@dataclass(slots=True, kw_only=True)
class Talk:
    """A job as one reader sees it."""

    job: dict[str, Any]
    readers: str
    items: list[Item]
    run: RunRow | None
    rail: list[rail.Line]
    others: list[tuple[str, str]]
    """Further runs of the job: id and a line on each."""
    older: str | None
    held: list[dict[str, Any]] = field(default_factory=list)
    menu: list[edits.RunEdit] = field(default_factory=list)
    """What this reader can do to the run whose plan is shown."""


def sidebar(tx: Transaction, email: str) -> tuple[list[JobLink], int]:
    """The jobs this reader may read with what waits on them there, and how much that is in all."""
    counts: dict[str, int] = {}
    mine = open_cards(tx, email)
    for row in mine:
        run = runs.get(tx, row["run"])
        if run is not None:
            counts[run.job] = counts.get(run.job, 0) + 1
    found = [
        JobLink(id=j["id"], title=j["title"] or j["id"], waiting=counts.get(j["id"], 0), private=j["private"])
        for j in runs.jobs(tx)
        if not j["private"] or rights.reads_job(tx, j["id"], email)
    ]
    return found, len(mine)


def open_cards(tx: Transaction, email: str) -> list[dict[str, Any]]:
    """The open cards put to this person, oldest first, each question once; those they have answered wait on others."""
    latest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in outbox.find(tx, to=email, open_cards=True):
        op = ops.StoredRows(tx, row["run"], "").op(row["path"])
        if op is not None and is_open(op) and _given(op, email) is None:
            latest[row["run"], row["path"], row["kind"]] = row
    return sorted(latest.values(), key=lambda r: r["seq"])


def _given(op: OpRow, email: str) -> dict[str, Any] | None:
    """What this person has answered to an ask that is still open."""
    return next((a for a in op.data.get("answers") or [] if a["by"].casefold() == email.casefold()), None)


def talk(
    tx: Transaction,
    site: Site,
    world: World,
    email: str,
    job_id: str,
    *,
    chosen: str | None = None,
    before: datetime | None = None,
) -> Talk | None:
    """A job's page for this reader; None where there is no such job for them."""
    job = runs.get_job(tx, job_id)
    if job is None or not rights.reads_job(tx, job_id, email):
        return None
    found = runs.find(tx, job_id=job_id, before=before, limit=RUNS_SHOWN + 1)
    older = found[RUNS_SHOWN - 1].created.isoformat() if len(found) > RUNS_SHOWN else None
    shown = list(reversed(found[:RUNS_SHOWN]))
    items: list[Item] = []
    waiting: list[RunRow] = []
    lines: dict[str, str] = {}
    for run in shown:
        rows = ops.StoredRows(tx, run.id, run.job).all()
        seen = _seen(tx, site, world, email, run, rows, job["title"] or "")
        items += seen.items()
        lines[run.id] = seen.name()
        if run.ended is None:
            waiting.append(run)
    items += _messages(tx, world, job_id, shown[0].created if older else None)
    items += _proposed(tx, world, job_id, shown[0].created if older else None, before)
    items.sort(key=lambda item: (item.at, 0 if item.kind == "script" else 1))
    current = next((r for r in shown if r.id == chosen), None) or (
        waiting[-1] if waiting else shown[-1] if shown else None
    )
    return Talk(
        job=job,
        readers=readers(tx, world, job),
        items=items,
        run=current,
        rail=_rail(tx, site, world, current, email) if current else [],
        others=[(r.id, lines[r.id]) for r in reversed(shown) if current and r.id != current.id],
        older=older,
        menu=edits.run_menu(current) if current and edits.steers(current, world, email) else [],
    )


def run_items(tx: Transaction, site: Site, world: World, email: str, run: RunRow) -> list[Item]:
    """What one run said and asked, for its record."""
    rows = ops.StoredRows(tx, run.id, run.job).all()
    return _seen(tx, site, world, email, run, rows, _title(tx, run)).items()


def card_item(tx: Transaction, site: Site, world: World, email: str, row: dict[str, Any]) -> Item | None:
    """One card put to this person, as it stands now; None where its run is gone."""
    run = runs.get(tx, row["run"])
    if run is None:
        return None
    op = ops.StoredRows(tx, run.id, run.job).op(row["path"])
    return _seen(tx, site, world, email, run, [op] if op else [], _title(tx, run)).card(row)


def _title(tx: Transaction, run: RunRow) -> str:
    job = runs.get_job(tx, run.job)
    return (job["title"] if job else None) or run.job


def _seen(
    tx: Transaction, site: Site, world: World, email: str, run: RunRow, rows: Sequence[OpRow], title: str
) -> _Run:
    return _Run(
        tx=tx,
        site=site,
        world=world,
        email=email,
        run=run,
        plan=site.index(tx, run.plan).plan,
        rows={row.path: row for row in rows},
        title=title,
    )


def readers(tx: Transaction, world: World, job: dict[str, Any]) -> str:
    """Who reads along."""
    if not job["private"]:
        count = len(world.people)
        return (
            f"{words.names([p.email for p in world.people], world).replace(' or ', ' and ')} read along"
            if 1 < count < 5
            else (f"all {count} people of {world.workspace.name} read along" if count > 1 else "only you are here")
        )
    members = runs.members(tx, job["id"])
    return "private: " + words.names(members, world).replace(" or ", " and ")


def _rail(tx: Transaction, site: Site, world: World, run: RunRow, email: str) -> list[rail.Line]:
    rows = {r.path: r for r in ops.StoredRows(tx, run.id, run.job).all()}
    plan = site.index(tx, run.plan).plan
    return rail.Rail(plan=plan, run=run, rows=rows, world=world, catalog=site.catalog, reader=email).laid()


def _messages(tx: Transaction, world: World, job_id: str, after: datetime | None) -> list[Item]:
    """What people wrote in the room."""
    found: list[Item] = []
    for event in inbox.find(tx, stream="web:message", conversation=f"web:{job_id}", limit=200):
        at = datetime.fromisoformat(event["at"])
        if after is None or at >= after:
            found.append(
                Item(
                    kind="message",
                    key=f"e-{event['id']}",
                    at=at,
                    who=world.name_of(event["from"] or ""),
                    card=render.shown({"text": event["event"].get("text", "")}),
                )
            )
    return found


def _proposed(
    tx: Transaction, world: World, job_id: str, after: datetime | None, before: datetime | None
) -> list[Item]:
    """What people said to the agent, its answers, and what was proposed."""
    found: list[Item] = []
    notes: dict[str, str] = {}
    asked, made = wishes.of_job(tx, job_id, PROPOSED), proposals.of_job(tx, job_id, PROPOSED)
    mine = {row.id for row in made}
    for wish in reversed(asked):
        who, agent = phrases.by_whom(wish.by, world), phrases.by_whom(wish.author, world)
        found.append(Item(kind="message", key=f"w-{wish.id}", at=wish.at, who=who, card=_words(wish.text)))
        if wish.state == "open":
            found.append(Item(kind="writing", key=f"n-{wish.id}", at=wish.at, who=agent))
        elif wish.id in mine:
            notes[wish.id] = (wish.said or "").strip()
        else:
            said = Item(kind="said", key=f"n-{wish.id}", at=wish.ended or wish.at, who=agent)
            said.card = _words("" if wish.failed else wish.said or "")
            said.bad = f"No answer: {wish.said}" if wish.failed else None
            found.append(said)
    writing = {wish.id for wish in asked if wish.state == "open"}
    found += [
        Item(kind="proposal", key=f"p-{row.id}", at=row.at, who=phrases.by_whom(row.author, world), proposal=row,
             title=notes.get(row.id, ""), state=row.state, script=script_lines(row.text))
        for row in reversed(made) if row.id not in writing
    ]  # fmt: skip
    return [item for item in found if (after is None or item.at >= after) and (before is None or item.at < before)]


def _words(text: str) -> render.Shown:
    return render.shown({"text": text})


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run's part of the conversation."""

    tx: Transaction
    site: Site
    world: World
    email: str
    run: RunRow
    plan: Plan
    rows: dict[str, OpRow]
    title: str
    _told: dict[str, Any] | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What whoever started it was told before."""
        if self._told is None:
            self._told = runs.told(self.tx, self.run)
        return self._told

    @property
    def catalog(self) -> Catalog:
        return self.site.catalog

    def name(self) -> str:
        """The run in a line."""
        return f"{phrases.of_plan(self.plan, self.world)} ({report.state_of(self.run)})"

    def items(self) -> list[Item]:
        source, surface = self.told["source"], self.told["surface"]
        who = words.called(self.run.owner, self.world)
        out = []
        if source:
            out.append(
                Item(
                    kind="script",
                    key=f"s-{self.run.id}",
                    at=self.run.created,
                    run=self.run.id,
                    who=who,
                    script=script_lines(source),
                    surface=surface or "",
                    title=self.plan.title or self.plan.name or "",
                    meta=self._author(),
                )
            )
        out.append(self._status())
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in outbox.find(self.tx, run_id=self.run.id):
            asked = (
                (row["path"], row["kind"])
                if row["kind"] in CARDS
                else (
                    row["path"],
                    row["kind"],
                    row["attempt"],
                    row["n"] if row["kind"] == "notice" else "",
                )
            )
            groups.setdefault(asked, []).append(row)
        for group in groups.values():
            found = self._group(group)
            if found is not None:
                out.append(found)
        return out

    def _author(self) -> str:
        if self.run.data.get("author"):
            author = phrases.by_whom(self.run.data["author"], self.world)
            return f"written by {author}, run by {words.called(self.run.owner, self.world)}"
        if self.run.parent:
            return "started by another script"
        return ""

    def _mine(self, group: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in group if row["to"].casefold() == self.email.casefold()]

    def _group(self, group: list[dict[str, Any]]) -> Item | None:
        row = group[0]
        mine = self._mine(group)
        if row["kind"] in CARDS:
            return self.card(mine[-1]) if mine else self._line(group)
        if row["kind"] in ("notice", "reminder"):
            return self._said(mine[-1], "notice") if mine else None
        if row["kind"] == "say" and row["to"] != "job":
            item = self._said(mine[-1] if mine else row, "said")
            item.private = True
            item.meta = self._to(group)
            if not mine:
                item.card, item.kind = None, "line"
                item.meta = f"Something was said to {self._to(group)} alone"
            return item
        return self._said(row, "said")

    def _to(self, group: list[dict[str, Any]]) -> str:
        return words.names(dict.fromkeys(r["to"] for r in group), self.world).replace(" or ", " and ")

    def _said(self, row: dict[str, Any], kind: str) -> Item:
        lost = f"It could not be delivered: {row['error']}" if row["error"] else None
        return Item(
            kind=kind,
            key=f"d-{row['seq']}",
            at=row["at"],
            run=self.run.id,
            who="Waiton",
            card=render.shown(row["card"]),
            meta=f"to {row['to']}" if row["kind"] == "send" else "",
            bad=lost,
            path=row["path"],
        )

    def card(self, row: dict[str, Any]) -> Item:
        """A card that was put to this reader: open with its buttons, or what it has turned into."""
        op = self.rows.get(row["path"])
        people = tuple((p.email, p.name) for p in self.world.people)
        item = Item(
            kind="card",
            key=f"c-{row['seq']}",
            at=row["at"],
            run=self.run.id,
            card=render.shown(row["card"], people),
            what=row["kind"],
            token=tap_token(self.site.secret, row["seq"]),
            path=row["path"],
            job=self.run.job,
            title=self.title,
            who=words.called(self.run.owner, self.world),
            owner=self.run.owner.casefold() == self.email.casefold(),
        )
        open_ = op is not None and row["outcome"] is None and is_open(op)
        if op is None or not open_:
            item.state, item.outcome = "settled", row["outcome"] or "withdrawn"
            self._settled(item, op)
            return item
        given = _given(op, self.email) if row["kind"] == "card" else None
        if given is not None:
            item.state, item.outcome = (
                "settled",
                f"You answered `{words.answer(given['answer'])}`; others are still asked",
            )
            item.ended, item.reason = datetime.fromisoformat(given["at"]), given.get("reason")
            return item
        item.state = "mine"
        found = tenses.waiting_on(op, self.world, self.world.now, reader=self.email)
        item.since, item.until = (found[0] if found else row["at"]), op.due
        gate = op.data.get("gate") or {}
        item.several = len(gate["to"] if item.what != "card" and gate else op.data.get("asked", [])) > 1
        item.meta = self._who_answers(item, op, row)
        plan_op = self._plan_op(op)
        if plan_op is not None and row["kind"] == "card" and item.card is not None:
            approver = partial(rail.approver, self.catalog, self.world)
            item.taps = phrases.taps(
                self.plan, plan_op, list(item.card.buttons), self.world, approver, self._readers(plan_op)
            )
            item.sure = phrases.unapproved(self.plan, plan_op, list(item.card.buttons), self.catalog, approver)
            if plan_op.on_miss is not None and plan_op.on_miss != "replan":
                item.taps["no answer"] = phrases.outcome_of(plan_op.on_miss, self.world)
        if row["kind"] == "approval":
            item.taps = {
                "approve": f"runs `{op.op}` with exactly these parameters",
                "decline": "does not run it; its owner is told your reason",
            }
        return item

    def _plan_op(self, op: OpRow) -> Op | None:
        return self.site.index(self.tx, self.run.plan).ops.get(op.place)

    def _readers(self, op: Op) -> tuple[str, ...]:
        """The places of the ops that need this op's answer."""
        return self.site.index(self.tx, self.run.plan).dependents.get(op.place, ())

    def _settled(self, item: Item, op: OpRow | None) -> None:
        if op is None:
            return
        gate = op.data.get("gate") or {}
        if item.what == "card":
            item.ended = op.ended
            item.claim = op.data.get("claim")
            item.looked_for = op.id in rail.followed(self.plan)
            item.reason = op.data.get("reason") if op.state == "done" else None
            if op.state == "missed":
                item.outcome = "missed"
            self._late(item, op)
        else:
            item.reason = gate.get("reason")
            item.ended = datetime.fromisoformat(gate["at"]) if gate.get("at") else op.ended

    def _late(self, item: Item, op: OpRow) -> None:
        """Answers that came too late, and whether the reader may let the last one count."""
        for given in op.data.get("late") or []:
            who, answer = words.called(given["by"], self.world), phrases.short(words.answer(given["answer"]), 60)
            item.late.append(f"{who} answered `{answer}` {words.span(timedelta(seconds=given['late_s']))} late")
        plan_op, spec = self._plan_op(op), self.catalog.get(op.op)
        item.acceptable = bool(
            item.late
            and plan_op is not None
            and spec is not None
            and edits.steers(self.run, self.world, self.email)
            and any(kind.key == "accept" for kind in edits.menu(spec, plan_op, op))
        )

    def _who_answers(self, item: Item, op: OpRow, row: dict[str, Any]) -> str:
        owner = self.run.owner.casefold() == self.email.casefold()
        item.asker = f"{'You ask' if owner else words.called(self.run.owner, self.world) + ' asks'}"
        if row["kind"] == "approval":
            others = [w for w in (op.data.get("gate") or {}).get("to", []) if w.casefold() != self.email.casefold()]
            return (
                "you decide"
                if not others
                else f"you or {words.names(others, self.world)} decide" + ("s" if len(others) == 1 else "")
            )
        if row["kind"] == "doubt":
            return "you decide what it shows" if verdicts.is_asked(op) else "you know best whether it happened"
        spelt = asks.spelt(op)
        need = op.data.get("need")
        if need is not None:
            return f"asked are {words.names(spelt, self.world).replace(' or ', ' and ')}, {need_words(need)}"
        only = len(spelt) == 1 and not spelt[0].startswith("role:")
        return "only you can answer" if only else f"{words.names(spelt, self.world)}: the first answer counts"

    def _line(self, group: list[dict[str, Any]]) -> Item | None:
        """A card of others: one line."""
        row = group[-1]
        op = self.rows.get(row["path"])
        item = Item(
            kind="line", key=f"l-{row['seq']}", at=row["at"], run=self.run.id, path=row["path"], what=row["kind"]
        )
        if op is None:
            return None
        if is_open(op) and any(r["outcome"] is None for r in group):
            found = tenses.waiting_on(op, self.world, self.world.now)
            if found is None:
                return None
            item.waits = [wait_of(found, op)]
            item.state = "theirs"
            return item
        if row["kind"] == "doubt" and not any(r["outcome"] for r in group):
            return None
        item.state = "settled"
        item.outcome = next((r["outcome"] for r in reversed(group) if r["outcome"]), None)
        item.what = row["kind"]
        self._settled(item, op)
        item.meta = phrases.short(str(row["card"].get("title") or row["card"].get("text") or ""), 70)
        return item

    def _status(self) -> Item:
        run = self.run
        item = Item(
            kind="status",
            key=f"r-{run.id}",
            at=run.created,
            run=run.id,
            state=report.state_of(run),
            job=run.job,
            progress=rail.progress(self.plan, self.catalog, list(self.rows.values())),
            ended=run.ended,
            notes=list(self.told["notes"]),
            owner=run.owner.casefold() == self.email.casefold(),
        )
        item.waits = waits_of(self.rows.values(), self.world) if run.ended is None else []
        item.at_work = self._ways() if run.ended is None else []
        if run.ended is None and not item.waits and item.state == "waiting":
            item.pill = "at work"
        elif run.state == "failed":
            item.bad = str(run.data.get("error") or "")
        self._facts(item)
        shown = report.shown_values(list(self.rows.values()))
        if shown:
            item.result = "\n".join(rail.long_value(v) for v in shown)
        return item

    def _ways(self) -> list[tuple[str, str]]:
        """How far ops at work are, in written order."""
        ways = said_ways(work.progress_of(self.tx, self.run.id))
        found = sorted((row for row in self.rows.values() if row.path in ways), key=lambda r: report.natural(r.path))
        return [(row.id or row.op, ways[row.path]) for row in found[:WAYS]]

    def _facts(self, item: Item) -> None:
        flight = self.told["preflight"]
        if self.run.data.get("on"):
            item.facts.append(("Started by", str(self.run.data["on"])))
        if flight.get("addressees"):
            who = ", ".join(phrases.named(str(w), self.world) for w in flight["addressees"])
            missed = [
                phrases.outcome_of(op.on_miss, self.world)
                for op, _ in self.plan.walk()
                if op.op == "ask" and isinstance(op.on_miss, Region)
            ]
            item.facts.append(("Asks", f"{who}; without an answer: {missed[0]}" if len(missed) == 1 else who))
        # How many calls it may make is said before; what they cost stands on the record.
        effects = phrases.effects(flight, self.world)
        item.facts += [fact for fact in effects if self.run.ended is None or fact[0] != "Agents"]
        ends = self.run.ends
        # What was said at the start holds no more once somebody has given a wait more time than that.
        if self.run.ended is None and ends and not any(r.open and r.due and r.due > ends for r in self.rows.values()):
            item.ends = ends


def need_words(need: Any) -> str:
    """How many must answer, in words."""
    if need == "all":
        return "everyone must answer"
    if isinstance(need, dict):
        return "settled by " + words.either([f"{n} × `{text(label)}`" for label, n in need.items()])
    return f"{need} must answer"
