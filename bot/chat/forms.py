"""Forms that a tap opens, on platforms that have forms: of a card, of a comment, of handing over, of more time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.chat import senders, taps, things
from bot.domain.catalog import World
from bot.domain.facts import Answered
from bot.domain.ids import tapped
from bot.domain.values import normalise
from bot.engine import edits
from bot.runtime.commit import Site
from bot.runtime.desk import Desk, Said, asked_of
from bot.server import changing
from bot.server.auth import Reader
from channels.base import Form, FormField, Inbound
from channels.web.render import shown
from store import ops, outbox, runs
from store.dialect import Transaction

ANSWER, REASON, TO, MORE = "answer", "reason", "to", "more"
"""Names of the fields that a card's form has besides its own."""


def about(data: str) -> taps.Tap | None:
    """What a form was about; None where it is none of a card's."""
    return taps.read(data)


def row_of(tx: Transaction, site: Site, token: str) -> dict[str, Any] | None:
    number = tapped(site.secret, token)
    return outbox.by_seq(tx, number) if number is not None else None


def needs_reason(card: Mapping[str, Any], label: str) -> bool | None:
    """Whether a comment must go with a choice; None where a form asks for one that need not be given, as where somebody
    declines."""
    wanted = card.get("reason")
    if isinstance(wanted, list):
        return label in wanted
    if wanted == "required":
        return True
    return None if wanted == "optional" and label.casefold() in ("decline", "no", "reject") else False


def is_for(tx: Transaction, world: World, row: Mapping[str, Any], tap: taps.Tap, channel: str, given: Inbound) -> bool:
    """Whether a tap is by somebody whom it concerns: they are asked, or are where it was put; what can be done besides
    answering is also for whose run it is."""
    email = senders.known(tx, world, channel, given.sender)
    op = ops.StoredRows(tx, row["run"], "").op(row["path"])
    asked = asked_of(op) if op is not None else set[str]()
    if row["to"] == given.conversation or given.conversation.casefold() in asked:
        return True
    if email is None or email.casefold() in {*asked, row["to"].casefold()}:
        return email is not None
    run = runs.get(tx, row["run"])
    return tap.more is not None and run is not None and edits.steers(run, world, email)


def of(tx: Transaction, site: Site, world: World, channel: str, given: Inbound) -> Form | None:
    """The form that a tap opens; None where the tap itself is the answer, there is nothing to answer any more, or it is
    none of whoever tapped."""
    tap = taps.read(given.data)
    row = row_of(tx, site, tap.token) if tap else None
    if tap is None or row is None or row["outcome"] or not is_for(tx, world, row, tap, channel, given):
        return None
    title = shown(row["card"]).text or shown(row["card"]).title
    if tap.more == "hand":
        people = tuple((who, name) for who, name in changing.whom(world) if who != row["to"])
        fields = (FormField(name=TO, label="To whom", kind="choice", choices=people), _comment("Why", required=False))
        return Form(title="Hand over", text=title, data=given.data, fields=fields, submit="Hand over")
    if tap.more == "later":
        spans = FormField(name=MORE, label="How much more time", kind="choice", choices=changing.LATER)
        return Form(title="Later", text=title, data=given.data, fields=(spans,), submit="Ask for time")
    if tap.more is not None:
        return None
    card = things.card(tx, site, world, row)
    if card is None:
        return None
    if tap.choice is not None:
        label = card.choices[tap.choice].label if tap.choice < len(card.choices) else ""
        needed = needs_reason(row["card"], label)
        if needed is False or not label:
            return None
        return Form(
            title=label[:1].upper() + label[1:], text=title, data=given.data,
            fields=(_comment("Why", required=bool(needed)),), submit=label,
        )  # fmt: skip
    fields = card.fields or (FormField(name=ANSWER, label="Your answer"),)
    if card.reason:
        fields = (*fields, _comment("A comment", required=card.reason == "required"))
    return Form(title="Answer", text=title, data=given.data, fields=fields)


def _comment(label: str, *, required: bool) -> FormField:
    return FormField(name=REASON, label=label, required=required)


async def submit(desk: Desk, channel: str, given: Inbound, who: senders.Who, now: datetime) -> Mapping[str, str]:
    """Takes a card's form, received `now`: what is wrong with which field, or nothing where it counts."""
    tap = about(given.data)
    row = await desk.committer.read(row_of, desk.site, tap.token) if tap else None
    if tap is None or row is None:
        return {"": "This question is not known here. Nothing changed."}
    values = {name: value for name, value in given.values.items() if value not in (None, "")}
    reason = str(values.pop(REASON, "") or "").strip() or None
    if tap.more is not None:
        said = await edited(desk, row, tap.more, str(values.get(TO) or values.get(MORE) or ""), who, reason)
        field = TO if tap.more == "hand" else MORE
    else:
        said = await answered(desk, row, _value(row, tap, values), who, given, now, reason)
        field = REASON if reason is None and "reason" in said.text else next(iter(values), ANSWER)
    if said.accepted:
        return {}
    named = next((name for name in values if f"`{name}`" in said.text), field)
    return {named: said.text}


def _value(row: Mapping[str, Any], tap: taps.Tap, values: Mapping[str, Any]) -> Any:
    if tap.choice is not None:
        buttons = shown(row["card"]).buttons
        return buttons[tap.choice] if tap.choice < len(buttons) else ""
    return dict(values) if row["card"].get("fields") else values.get(ANSWER, "")


async def answered(
    desk: Desk, row: Mapping[str, Any], value: Any, who: senders.Who, given: Inbound, at: datetime, reason: str | None
) -> Said:
    """An answer to a card, as whoever the platform says it is; `at`: when it was received."""
    fact = fact_of(row, value, who, given, at, desk.clock.now(), reason)
    return await desk.act(row["run"], fact, who.email or given.conversation)


def fact_of(
    row: Mapping[str, Any], value: Any, who: senders.Who, given: Inbound, at: datetime, now: datetime,
    reason: str | None,
) -> Answered:  # fmt: skip
    """An answer to a card by whoever the platform says it is: a person, or the conversation that was asked. `at`: when
    it was received."""
    return Answered(
        at=at, now=now, path=row["path"], value=normalise(value), by=who.email,
        conversation=given.conversation if row["to"] == given.conversation else None, reason=reason,
        id=f"{given.conversation}/{given.ident}",
    )  # fmt: skip


async def edited(
    desk: Desk, row: Mapping[str, Any], what: str, value: str, who: senders.Who, why: str | None = None
) -> Said:
    """Not mine, hand over, later: an edit by whoever was asked."""
    if who.person is None:
        return Said(text="Only people of this workspace can do that. Nothing changed.", accepted=False, status=403)
    world = await desk.world()
    reader = Reader(email=who.person.email, name=who.person.name, csrf="", world=world)
    form = {"op": row["path"], "do": {"not": "not-mine", "hand": "to", "later": "later"}[what], "value": value}
    change, rev = await changing.change_of(desk, reader, row["run"], form)
    if isinstance(change, str):
        return Said(text=f"{change} Nothing changed.", accepted=False, status=422)
    return await desk.edit(row["run"], change, by=reader.email, why=why, rev=rev)
