"""Rows as what a channel shows: cards, what they turned into, messages, the live message of a run.

The words are those of the room (`bot/server/conversation.py`): what a tap does, who asks, who else may answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from bot.chat import taps
from bot.domain.catalog import World
from bot.domain.changes import CARDS
from bot.domain.ids import tap_token
from bot.domain.record import RunRow
from bot.engine import waits, words
from bot.runtime.commit import Site
from bot.server import conversation, phrases, rail
from bot.server.entries import Item
from channels.base import Attached, Card, Choice, FormField, Line, Message, Settled, Status
from channels.web import render
from store import ops, runs
from store.dialect import Transaction

PAST, NEXT = 3, 3
"""Lines of a live message: what happened last, and what comes next; all that is waited for stands between."""
WAITS = 10
TONES: Mapping[str, Literal["", "first", "danger"]] = {"decline": "danger", "approve": "first", "happened": "first"}


def card(tx: Transaction, site: Site, world: World, row: Mapping[str, Any]) -> Card | None:
    """An open card for the person it was put to; None where there is nothing to answer any more."""
    item = conversation.card_item(tx, site, world, row["to"], dict(row))
    if item is None or item.state != "mine" or item.card is None:
        return None
    token = item.token or ""
    shown = item.card
    fields = _fields(row["card"], world)
    choices = tuple(
        Choice(
            label=label,
            data=taps.data(token, n),
            sure=_sure(item, label),
            tone=TONES.get(label, "first" if n == 0 and row["kind"] == "card" else "") if row["kind"] in CARDS else "",
        )
        for n, label in enumerate(shown.buttons)
    )
    known = world.person(row["to"]) is not None
    return Card(
        kind=row["kind"],
        token=token,
        title=shown.title,
        text="" if shown.params else shown.text,  # an approval's text is its parameters
        choices=choices,
        fields=fields,
        reason=shown.reason,
        params=shown.params,
        taps=_taps(item),
        asker=", ".join(said for said in (item.asker, item.meta) if said) if known else "",
        since=item.since,
        until=_until(tx, site, world, row, item) if known else None,
        more=tuple(Choice(label=label, data=taps.data(token, more=key)) for key, label in taps.MORE.items())
        if known
        else (),
        place=("in the room", f"{site.url}/a/{token}") if known else None,
    )


def _until(tx: Transaction, site: Site, world: World, row: Mapping[str, Any], item: Item) -> datetime | None:
    """When the window ends: it begins when the card is there, which is about now."""
    run = runs.get(tx, row["run"])
    op = ops.StoredRows(tx, row["run"], run.job).op(row["path"]) if run else None
    planned = site.index(tx, run.plan).ops.get(op.place) if run and op else None
    if item.until is not None or op is None or planned is None or row["kind"] != "card":
        return item.until
    return waits.expected(planned, op, world.now, world.workspace)


def _sure(item: Item, label: str) -> str | None:
    write = item.sure.get(label)
    return f"`{write}` starts at once, with nobody asked in between. Go on?" if write else None


def _taps(item: Item) -> str:
    """`approve: deploy api · decline: ends · no answer by Wed 10:32: tells the leads`."""
    return " · ".join(f"{label}: {does}" for label, does in item.taps.items())


def _fields(given: Mapping[str, Any], world: World) -> tuple[FormField, ...]:
    people = tuple((p.email, p.name) for p in world.people)
    found = render.shown(given, people).fields
    return tuple(
        FormField(
            name=field.name,
            label=field.label,
            kind=str(one.get("type", "text")),
            required=field.required,
            choices=field.choices,
            least=field.least,
            most=field.most,
            hint=field.hint,
        )
        for field, one in zip(found, given.get("fields") or (), strict=True)
    )


def settled(tx: Transaction, site: Site, world: World, row: Mapping[str, Any]) -> Settled:
    """What a card has turned into."""
    item = conversation.card_item(tx, site, world, row["to"], dict(row))
    shown = render.shown(row["card"])
    outcome = (item.outcome if item else None) or row["outcome"] or "withdrawn"
    known = world.person(row["to"]) is not None
    return Settled(
        title=shown.title,
        text=shown.text,
        outcome=outcome,
        at=item.ended if item else None,
        reason=item.reason if item else None,
        place=("the record", f"{site.url}/runs/{item.run}") if item and known else None,
    )


def message(
    site: Site, row: Mapping[str, Any], files: tuple[Attached, ...] = (), lost: tuple[str, ...] = ()
) -> Message:
    """Something said: by a `say`, by the op of a channel, a notice, a reminder."""
    token = tap_token(site.secret, row["seq"])
    shown = render.shown(row["card"])
    if row["kind"] == "send":
        return Message(parts=tuple(_part(token, n, one) for n, one in enumerate(shown.parts)))
    text = shown.text + "".join(f"\n(the file {name} is not there any more)" for name in lost)
    return Message(title=shown.title, text=text, files=files, note=row["kind"] in ("notice", "reminder"))


def _part(token: str, n: int, part: render.Part) -> Message:
    return Message(
        title=part.title,
        text=part.text,
        image=part.image,
        choices=tuple(
            Choice(label=label, url=url) if url else Choice(label=label, data=taps.data(token, at, part=n))
            for at, (label, _, url) in enumerate(part.buttons)
        ),
    )


def status(tx: Transaction, site: Site, world: World, run: RunRow) -> Status:
    """How a run stands, for everybody in its conversation."""
    item = next((i for i in conversation.run_items(tx, site, world, "", run) if i.kind == "status"), None)
    assert item is not None
    rows = {row.path: row for row in ops.StoredRows(tx, run.id, run.job).all()}
    plan = site.index(tx, run.plan).plan
    laid = rail.Rail(plan=plan, run=run, rows=rows, world=world, catalog=site.catalog).laid()
    past = [line for line in laid if line.shape in ("done", "bad", "off") and line.at is not None and line.title]
    ahead = [line for line in laid if line.shape == "next"] if run.ended is None else []
    waits = item.waits[:WAITS]
    done, of = item.progress or (0, 0)
    lines = [
        *(Line(tense="past", text=_line(line, world), at=line.at) for line in sorted(past, key=_when)[-PAST:]),
        *(Line(tense="now", text=f"{name}: {said}") for name, said in item.at_work),
        *(Line(tense="now", text=f"waiting on {wait.who}", at=wait.since, until=wait.until) for wait in waits),
        *(Line(tense="next", text=_line(line, world)) for line in ahead[:NEXT]),
    ]
    if len(item.waits) > WAITS:
        lines.append(Line(tense="now", text=f"and {len(item.waits) - WAITS} more"))
    if len(ahead) > NEXT:
        lines.append(Line(tense="next", text=f"and {len(ahead) - NEXT} more"))
    facts = list(item.facts) if run.ended is None and done == 0 else []
    if item.ends is not None and facts:
        facts.append(("Ends", f"by {words.clock(item.ends, world, world.now)} at the latest"))
    return Status(
        title=phrases.of_plan(plan, world),
        state=item.state,
        lines=tuple(lines),
        facts=tuple(facts),
        notes=tuple(item.notes) if facts else (),
        result=item.result,
        error=item.bad,
        done=done,
        of=of,
        place=("the record", f"{site.url}/runs/{run.id}"),
    )


def _when(line: rail.Line) -> Any:
    return line.at


def _line(line: rail.Line, world: World) -> str:
    """One line of the plan: what it is, and what became of it."""
    said = line.title
    if line.value:
        said += f": {phrases.short(line.value, 60)}"
    if line.by and line.state == "done" and not line.value:
        said += f", {words.called(line.by, world)}"
    return f"{said} ({line.bad})" if line.bad else said


def job_title(tx: Transaction, job: str) -> str:
    found = runs.get_job(tx, job)
    return (found["title"] if found else None) or job
