"""A form where a platform has none: one field after the other, each answered by a reply, sent when the last is in.

What was answered so far is kept with the message that asks next, so that a process may end in between."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.chat import forms, senders, sending, taps
from bot.runtime.desk import Desk
from channels.base import Card, Channel, Form, FormField, Inbound, Sent
from store import people
from store.dialect import Transaction

BACK, CANCEL = "back", "cancel"
"""Words in place of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A form half way: what it is about, whom it is asked, which field is asked, what is in already."""

    data: str
    by: str
    at: int
    values: Mapping[str, str]


LAST = "last"
"""In place of a message's name: the field that was asked last in a conversation."""


def _key(conversation: str, ref: str) -> str:
    return f"form {conversation} {ref}"


class Questions:
    """`begin` asks for the first field, `reply` takes an answer and asks for the next."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def begin(self, channel: Channel, given: Inbound) -> bool:
        """False where the tap opens no form."""
        form = await self._form(channel, given)
        if form is None:
            return False
        await self._ask(channel, given, form, Asked(data=given.data, by=given.sender.ref, at=0, values={}))
        return True

    async def _form(self, channel: Channel, given: Inbound) -> Form | None:
        site, now = self.desk.site, self.desk.clock.now()
        return await self.desk.committer.read(forms.of, site, site.world(now), channel.name, given)

    async def _ask(self, channel: Channel, given: Inbound, form: Form, asked: Asked, wrong: str = "") -> bool:
        field = form.fields[asked.at]
        tap = taps.read(asked.data)
        count = f" ({asked.at + 1} of {len(form.fields)})" if len(form.fields) > 1 else ""
        words = "\n".join(filter(None, (wrong, f"{field.label}{count}", _hint(field))))
        card = Card(kind="card", token=tap.token if tap else "", title="", text=words)
        where = given.conversation
        answer = await sending.put(channel, where, card, ident=f"f/{given.ident}/{asked.at}")
        if not isinstance(answer, Sent):
            await channel.tell(given, f"The next question could not be put: {answer.why}.", alert=True)
            return False
        if answer.ref is not None:
            kept = json.dumps({"data": asked.data, "by": asked.by, "at": asked.at, "values": dict(asked.values)})
            ref = answer.ref

            def keep(tx: Transaction) -> None:
                people.put_setting(tx, _key(where, ref), kept)
                people.put_setting(tx, _key(where, LAST), ref)

            await self.desk.committer.write(keep)
        return True

    async def asked(self, given: Inbound, words: Callable[[], Awaitable[bool]]) -> str | None:
        """The question about a field that this answers: as a reply to it, or as the next words where nobody else is
        (`words`: whether they are nothing else, looked into only where a question is open). What somebody else says to
        it is no answer."""
        where, ref = given.conversation, given.reply_to
        if not ref and given.direct and given.kind == "message":
            ref = await self.desk.committer.read(people.setting_of, _key(where, LAST))
        asked = await self._kept(where, ref) if ref else None
        if asked is None or asked.by != given.sender.ref:
            return None
        return ref if given.reply_to or await words() else None

    async def _kept(self, where: str, ref: str) -> Asked | None:
        kept = await self.desk.committer.read(people.setting_of, _key(where, ref))
        return Asked(**json.loads(kept)) if kept else None

    async def reply(self, channel: Channel, given: Inbound, who: senders.Who, ref: str, received: datetime) -> None:
        """Takes an answer to a field, as of when it was received. It is forgotten last: cut off in between, it is taken
        once more."""
        asked = await self._kept(given.conversation, ref)
        form = await self._form(channel, _about(given, asked.data)) if asked is not None else None
        if asked is None or form is None or asked.at >= len(form.fields):
            await channel.tell(given, "This question is not open any more. Nothing changed.", alert=True)
        elif not await self._taken(channel, given, who, form, asked, received):
            return
        await self.desk.committer.write(lambda tx: _forget(tx, given.conversation, ref))

    async def _taken(
        self, channel: Channel, given: Inbound, who: senders.Who, form: Form, asked: Asked, received: datetime
    ) -> bool:
        """False where the field is still open: what comes next could not be asked."""
        word = given.text.strip().casefold()
        if word == CANCEL:
            await channel.tell(given, "Nothing was sent; the question is still open.")
            return True
        if word == BACK:
            return await self._ask(channel, given, form, replace(asked, at=max(0, asked.at - 1)))
        field = form.fields[asked.at]
        value = "" if given.text.strip() in ("-", "–") and not field.required else given.text.strip()
        values = {**asked.values, field.name: _picked(field, value)}
        if asked.at + 1 < len(form.fields):
            return await self._ask(channel, given, form, replace(asked, at=asked.at + 1, values=values))
        return await self._send(channel, given, who, form, replace(asked, values=values), received)

    async def _send(
        self, channel: Channel, given: Inbound, who: senders.Who, form: Form, asked: Asked, received: datetime
    ) -> bool:
        sent = _about(given, asked.data, asked.values)
        wrong = await forms.submit(self.desk, channel.name, sent, who, received)
        for at, field in enumerate(form.fields):
            if field.name in wrong:
                return await self._ask(channel, given, form, replace(asked, at=at), wrong[field.name])
        if wrong:
            await channel.tell(given, "\n".join(wrong.values()), alert=True)
        return True


def _forget(tx: Transaction, where: str, ref: str) -> None:
    people.drop_setting(tx, _key(where, ref))
    if people.setting_of(tx, _key(where, LAST)) == ref:
        people.drop_setting(tx, _key(where, LAST))


def _about(given: Inbound, data: str, values: Mapping[str, Any] | None = None) -> Inbound:
    """What was sent, as the form of another message."""
    return Inbound(
        kind="form", ident=given.ident, conversation=given.conversation, sender=given.sender, direct=given.direct,
        data=data, values=values or {}, at=given.at, raw=given.raw,
    )  # fmt: skip


def _hint(field: FormField) -> str:
    """What may be answered."""
    if field.choices:
        return "one of: " + ", ".join(label for _, label in field.choices[:40])
    if field.kind == "bool":
        return "yes or no"
    if field.kind == "date":
        return "as 2026-03-02"
    hint = field.hint or ""
    return hint if field.required else f"{hint}{'; ' if hint else ''}`-` for nothing"


def _picked(field: FormField, value: str) -> str:
    """A choice by its label, whatever its case."""
    return next((key for key, label in field.choices if label.casefold() == value.casefold()), value)
