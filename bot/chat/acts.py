"""What somebody did in a chat, dealt with: a tap on a card, a reply in words, a script, a command; what is none of
these is an event for whatever waits for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog

from bot.chat import commands, forms, scripts, senders, taps
from bot.chat.cleaning import cleaned
from bot.chat.door import ChatDoor
from bot.chat.proposing import PREFIX
from bot.chat.questions import Questions
from bot.chat.scripts import Pasted, Scripts
from bot.domain.changes import CARDS
from bot.engine import asks
from bot.runtime.commit import Outcome, take
from bot.runtime.desk import Desk, Said, said_of
from bot.runtime.inbox import Answering, Work
from channels.base import Channel, Inbound, Linking
from channels.events import CARD
from channels.web.render import shown
from store import inbox, outbox, people, runs
from store.dialect import Transaction

log = structlog.get_logger()
_LINK = re.compile(r"^/?link\s+([\w-]{16,64})$", re.IGNORECASE)
"""What proves who somebody is, typed where nobody else reads it."""
EDITS = 500
"""How far back a message's last edit is looked for, among what was done in its conversation."""


class Acts:
    """`doorman` looks at every event of a channel first (`bot/runtime/inbox.py`)."""

    def __init__(self, desk: Desk, channels: Mapping[str, Channel], door: ChatDoor) -> None:
        self.desk = desk
        self.channels = channels
        self.door = door
        self.scripts = Scripts(desk, door.people_changed)
        self.scripts.started = door.proposing.pasted
        self.questions = Questions(desk)
        asked = door.proposing.wishes
        self.commands = commands.Commands(desk, self.scripts, asked.name if asked is not None else None)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _in_turn(self, given: Inbound, work: Work | Answering) -> Work | Answering:
        """What somebody says is dealt with after what was said before it in the same conversation."""
        if isinstance(work, Answering):
            return Answering(self._after(given, work.work))
        return self._after(given, work)

    def _after(self, given: Inbound, work: Work) -> Work:
        turn = self._turns.get(given.conversation) or asyncio.Lock()
        self._turns[given.conversation] = turn

        async def worked() -> None:
            async with turn:
                await work()

        return worked

    async def doorman(self, number: int, event: dict[str, Any]) -> bool | Work | Answering:
        name, _, kind = event["stream"].partition(":")
        channel = self.channels.get(name)
        given = await self._given(channel, number, event) if channel is not None else None
        if channel is None or given is None:
            if kind == "card":
                await self._routed(number)
            return kind == "card"
        who, received = await self._who(channel.name, given), datetime.fromisoformat(event["at"])
        if kind == "card" or given.kind in ("edited", "form", "linked"):
            work = partial(self._card, channel, number, given, who, received)
            if given.kind == "edited":
                return self._in_turn(given, work)
            return work if given.kind == "linked" or given.data.startswith("s:") else Answering(work)
        if kind == "message" and given.kind in ("message", "command") and not event["event"].get("tap"):
            work = await self._message(channel, number, given, who, received)
            return self._in_turn(given, work) if work is not None else False
        return False

    async def _given(self, channel: Channel | None, number: int, event: Mapping[str, Any]) -> Inbound | None:
        ident = event["id"].partition("/")[2]
        kept = self.door.read.pop((event["stream"], ident), None)
        if kept is not None or channel is None:
            return kept
        raw = await self.desk.committer.read(inbox.raw_of, number)
        return self._read(channel, raw)

    def _read(self, channel: Channel, raw: Any) -> Inbound | None:
        """What was brought in, out of what is kept of it."""
        given = channel.read(raw) if raw is not None else None
        return cleaned(given) if given is not None else None

    async def _who(self, channel: str, given: Inbound) -> senders.Who:
        def read(tx: Transaction) -> senders.Who:
            world = self.desk.site.world(self.desk.clock.now())
            email = senders.known(tx, world, channel, given.sender)
            return senders.Who(person=world.person(email) if email else None)

        return await self.desk.committer.read(read)

    async def _routed(self, number: int) -> None:
        await self.desk.committer.insist(lambda tx: inbox.routed(tx, [number]))

    # --- cards ------------------------------------------------------------------------------------------------
    async def _card(self, channel: Channel, number: int, given: Inbound, who: senders.Who, received: datetime) -> None:
        """A tap on a card or under a script, a form that was sent, an identity that was proved."""
        if given.kind == "linked":
            await channel.tell(given, await self._link(channel.name, given))
            return
        if given.kind == "edited":
            await self._edited(channel, given, who)
            return
        if given.data.startswith("s:"):
            await self._script_act(channel, given, who)
            return
        if given.data.startswith(PREFIX):
            await self.door.proposing.tapped(channel, given, who)
            return
        tap = taps.read(given.data)
        row = await self.desk.committer.read(forms.row_of, self.desk.site, tap.token) if tap else None
        if tap is None or row is None:
            await channel.tell(given, "This question is not known here. Nothing changed.", alert=True)
            return
        if await self._is_others(row, tap, channel, given):
            said = await self._answer(row, "", given, who, number, received)
            await channel.tell(given, said.text, alert=True)
            return
        formless = not channel.capabilities.forms and (tap.choice is None or self._wants_reason(row, tap))
        if formless and tap.more != "not" and await self.questions.begin(channel, given):
            return
        if tap.more is not None:
            said = await forms.edited(self.desk, row, tap.more, "", who)
            await channel.tell(given, said.text, alert=not said.accepted)
            return
        buttons = shown(row["card"]).buttons
        if tap.choice is None or tap.choice >= len(buttons):
            said = Said(text=f"Answer it here: {self.desk.site.url}/a/{tap.token}", accepted=False, status=422)
        else:
            said = await self._answer(row, buttons[tap.choice], given, who, number, received)
        if not said.accepted:
            await channel.tell(given, self._how(said, row, given), alert=True)

    async def _is_others(self, row: Mapping[str, Any], tap: taps.Tap, channel: Channel, given: Inbound) -> bool:
        """Whether a tap that would open a form is by somebody whom the card does not concern."""
        opens = tap.choice is None or self._wants_reason(row, tap)
        if not opens or row["outcome"]:
            return False
        return not await self.desk.committer.read(forms.is_for, await self.desk.world(), row, tap, channel.name, given)

    def _wants_reason(self, row: Mapping[str, Any], tap: taps.Tap) -> bool:
        """Whether a comment must go with what was tapped."""
        buttons = shown(row["card"]).buttons
        return (
            tap.choice is not None
            and tap.choice < len(buttons)
            and bool(forms.needs_reason(row["card"], buttons[tap.choice]))
        )

    def _how(self, said: Said, row: Mapping[str, Any], given: Inbound) -> str:
        """What to do about a refusal, where the card itself does not offer it."""
        tap = taps.read(given.data)
        if said.status == 422 and "reason" in said.text and tap is not None and tap.choice is not None:
            label = shown(row["card"]).buttons[tap.choice]
            return f"A reason is needed with it: reply to the card with `{label}: ` and your reason. Nothing changed."
        return said.text

    async def _answer(
        self,
        row: Mapping[str, Any],
        value: Any,
        given: Inbound,
        who: senders.Who,
        number: int,
        received: datetime,
        reason: str | None = None,
    ) -> Said:
        """An answer, in the transaction that marks its event as dealt with."""
        fact = forms.fact_of(row, value, who, given, received, self.desk.clock.now(), reason)

        def write(tx: Transaction) -> Outcome:
            inbox.routed(tx, [number])
            return take(tx, self.desk.site, row["run"], fact)

        outcome = await self.desk.committer.insist(write)
        self.desk.inbound.dealt(number)
        if outcome.missing:
            return Said(text="There is no such run. Nothing changed.", accepted=False, status=404)
        return said_of(outcome)

    async def _script_act(self, channel: Channel, given: Inbound, who: senders.Who) -> None:
        """A button under a script that has not started."""
        found = scripts.read(self.desk.site.secret, given.data)
        event = await self.desk.committer.read(inbox.by_number, found[0]) if found else None
        raw = await self.desk.committer.read(inbox.raw_of, found[0]) if found else None
        first = self._read(channel, raw)
        if found is None or event is None or first is None:
            await channel.tell(given, "This script is not known here. Nothing changed.", alert=True)
            return
        author = event["event"]["user"].get("email")
        if who.email is None or author is None or who.email.casefold() != author.casefold():
            name = event["event"]["user"].get("name") or "somebody else"
            await channel.tell(given, f"This is for {name}, who pasted it. Nothing changed.", alert=True)
            return
        if (over := await self.desk.committer.read(scripts.over, first, found[0])) is not None:
            await channel.tell(given, over, alert=True)
            return
        done = "It was discarded. Nothing has started."
        if found[1] == "off":
            await self.desk.committer.write(lambda tx: scripts.discard(tx, found[0]))
        else:
            first = await self._as_edited(channel, first)
            text = await scripts.text_of(channel, first)
            if isinstance(text, str):
                await channel.tell(given, text, alert=True)
                return
            pasted = Pasted(number=found[0], text=text[0], given=first, by=who.email, file=text[1])
            if not await self._taken(channel, given, pasted, found[1]):
                return
            done = ""
        if given.ref is not None:
            await channel.edit(given.conversation, given.ref, commands.closed(scripts.ACTS[found[1]], who, done))

    async def _as_edited(self, channel: Channel, first: Inbound) -> Inbound:
        """A message as its author changed it last: what they see is what they mean."""
        stream = f"{channel.name}:{CARD}"
        for _, raw in await self.desk.committer.read(inbox.recent, stream, first.conversation, EDITS):
            given = self._read(channel, raw)
            if given is not None and given.kind == "edited" and first.ref is not None:
                if (given.ref, given.sender.ref) == (first.ref, first.sender.ref):
                    return replace(first, text=given.text, undone=given.undone)
        return first

    async def _link(self, channel: str, given: Inbound) -> str:
        now = self.desk.clock.now()

        def write(tx: Transaction) -> str | None:
            email = people.use_login(tx, given.data, now, "link")
            if email is not None and self.desk.site.world(now).person(email) is None:
                return None
            if email is not None:
                people.link(tx, email, channel, given.sender.ref)
                people.met(tx, channel, given.sender.ref, now)
            return email

        email = await self.desk.committer.insist(write)
        if email is None:
            return "This link was used before, or is too old. Ask for a new one. Nothing changed."
        self.door.people_changed()
        world = await self.desk.world()
        return f"You are {world.name_of(email)} here now. What waits on you comes to this chat."

    async def _proved(self, channel: Channel, given: Inbound) -> None:
        await channel.tell(given, await self._link(channel.name, given))

    async def _to_link(self, channel: Channel, given: Inbound) -> None:
        """How whoever asks becomes somebody here."""
        site = self.desk.site.url
        said = f"Log in at {site}/me for words to send here, or ask an operator for them (`waiton people link`)."
        if isinstance(channel, Linking):
            found = await channel.link(given.sender.ref, f"{site}/link/{channel.name}")
            if isinstance(found, str):
                said = f"Open this where you are logged in, within 10 minutes: {found}"
        await channel.tell(given, said)

    async def _edited(self, channel: Channel, given: Inbound, who: senders.Who) -> None:
        """A message was changed: one that was refused as a script is checked again, and its reply changes with it; of
        one that runs it is said that the edited text does not."""
        if given.ref is None or who.person is None:
            return
        stream = f"{channel.name}:message"
        for number, raw in await self.desk.committer.read(inbox.recent, stream, given.conversation):
            first = self._read(channel, raw)
            if first is None or first.ref != given.ref or first.sender.ref != given.sender.ref:
                continue
            if await self.desk.committer.read(runs.get, scripts.run_id(first, number)) is not None:
                await channel.tell(given, "This script runs already; the edited text is not run. Paste it again.")
            elif self.scripts.refused(number):
                await self.desk.committer.write(lambda tx, number=number: scripts.take_up(tx, number))
                pasted = Pasted(number=number, text=given.text, given=given, by=who.person.email)
                await self._taken(channel, given, pasted)
            return

    # --- words ------------------------------------------------------------------------------------------------
    async def _message(
        self, channel: Channel, number: int, given: Inbound, who: senders.Who, received: datetime
    ) -> Work | Answering | None:
        """What is to be done about words; None where they are an event for whatever waits for it."""
        if given.direct and (proof := _LINK.match(given.text.strip())) is not None:
            return partial(self._proved, channel, replace(given, data=proof[1]))
        meant = given.direct or given.mentioned or given.kind == "command"
        if (ref := await self.questions.asked(given, lambda: self._mere_words(given, who))) is not None:
            return Answering(partial(self.questions.reply, channel, given, who, ref, received))
        row = await self.desk.committer.read(self._replied, given, who)
        if row is not None and (given.reply_to is not None or given.direct or not given.mentioned):
            return Answering(partial(self._reply, channel, row, given, who, number, received))
        if given.direct and given.text.strip().casefold().lstrip("/") == "link":
            return partial(self._to_link, channel, given)
        if who.person is None or not meant:
            return None
        file = scripts.script_file(given)
        if file is None and (command := self.commands.named(given)) is not None:
            return partial(self._command, channel, given, who, number, command)
        if file is not None or given.kind == "message":
            script = file is not None or await self.scripts.looks_like_one(given.text, who.person.email)
            if script:
                return partial(self._paste, channel, given, who, number)
        if given.mentioned or (given.direct and given.kind == "message"):
            return partial(self._aside, channel, given, who, number)
        return None

    async def _mere_words(self, given: Inbound, who: senders.Who) -> bool:
        """Whether a text is neither a command nor a script."""
        return self.commands.named(given) is None and not await self.scripts.looks_like_one(given.text, who.email or "")

    async def _reply(
        self,
        channel: Channel,
        row: Mapping[str, Any],
        given: Inbound,
        who: senders.Who,
        number: int,
        received: datetime,
    ) -> None:
        value, reason = self._worded(row, given.text)
        said = await self._answer(row, value, given, who, number, received, reason)
        if not said.accepted:
            await channel.tell(given, said.text, alert=True)

    def _replied(self, tx: Transaction, given: Inbound, who: senders.Who) -> dict[str, Any] | None:
        """The card that a text answers: the one it replies to; else the only one open here for whoever wrote it, where
        the text is one of its choices, or where there is nobody else to talk to."""
        here = {given.conversation, given.conversation.partition("/")[0]}
        if given.reply_to is not None:
            for place in sorted(here):
                row = outbox.by_ref(tx, place, given.reply_to)
                if row is not None and row["kind"] in CARDS:
                    return row
        mine = {who.email.casefold()} if who.email else {given.conversation.casefold()}
        cards = [
            row
            for place in sorted(here)
            for row in outbox.find(tx, conversation=place, open_cards=True)
            if row["to"].casefold() in mine
        ]
        if len(cards) != 1 or (given.files and not given.text.strip()):
            return None
        (row,) = cards
        if self._worded(row, given.text)[0] in shown(row["card"]).buttons:
            return row
        alone = who.person is None and row["to"] == given.conversation
        return row if alone and not row["card"].get("fields") else None

    def _worded(self, row: Mapping[str, Any], text: str) -> tuple[str, str | None]:
        """A typed answer: a choice by its words or its number, and after a colon its reason."""
        labels = list(shown(row["card"]).buttons)
        head, colon, rest = text.strip().partition(":")
        choices = [{"label": label, "value": label} for label in labels]
        for said, reason in ((text, None), (head, rest.strip() or None if colon else None)):
            if (picked := asks.pick(choices, said)) is not None:
                return str(picked["label"]), reason
            number = said.strip().rstrip(".)")
            if number.isdecimal() and len(number) <= 4 and 0 < int(number) <= len(labels):
                return labels[int(number) - 1], reason
        return text, None

    async def _paste(self, channel: Channel, given: Inbound, who: senders.Who, number: int) -> None:
        assert who.person is not None
        if given.values.get("split"):
            said = "This looks like a part of a longer script. Send it as a file (`.md`, `.json` or `.txt`)."
            await channel.tell(given, f"{said} Nothing has started.", alert=True)
            return
        text = await scripts.text_of(channel, given)
        if isinstance(text, str):
            await channel.tell(given, f"{text} Nothing has started.", alert=True)
            return
        pasted = Pasted(number=number, text=text[0], given=given, by=who.person.email, file=text[1])
        await self._taken(channel, given, pasted)

    async def _taken(self, channel: Channel, given: Inbound, pasted: Pasted, act: str = "paste") -> bool:
        """False where nothing came of a script, and whoever acted was told why."""
        refused = await self.scripts.take(channel, pasted, act)
        if refused is not None:
            await channel.tell(given, refused, alert=True)
        return refused is None

    async def _command(
        self, channel: Channel, given: Inbound, who: senders.Who, number: int, command: tuple[str, str]
    ) -> None:
        assert who.person is not None
        await self.commands.do(channel, given, who.person, number, *command)

    async def _aside(self, channel: Channel, given: Inbound, who: senders.Who, number: int) -> None:
        """Words to the bot that are no script: they are an event all the same. Where nothing was waiting for them an
        agent takes them, else whoever wrote gets a short help."""
        event = await self.desk.committer.read(inbox.by_number, number)
        if event is not None:
            moved = await self.desk.inbound.spread(number, event)
            if moved:
                return
        if not await self.door.proposing.aside(channel, given, who, number):
            await channel.tell(given, commands.HELP_SHORT)
