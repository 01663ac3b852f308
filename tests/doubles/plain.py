"""A platform of plain text without a network: what the contract suite is tried on first, and what a channel looks like
when there is nothing to it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from starlette.routing import Route

from channels.base import (
    Answer,
    Capabilities,
    Card,
    Choice,
    Door,
    Fault,
    File,
    Inbound,
    Later,
    Message,
    Problems,
    Refused,
    Sender,
    Sent,
    Settled,
    Status,
    Thing,
)
from tests.channels.stage import Seen

PEOPLE = {"ana": "P1", "bo": "P2", "jonas": "P3", "mika": "P9"}
ROOM = "plain:room"


@dataclass(slots=True)
class Put:
    """A message as it stands."""

    ref: str
    conversation: str
    thing: Thing
    edits: int = 0


class Plain:
    """A channel and its stage in one. What somebody does reaches the door at once."""

    name = "plain"

    def __init__(self) -> None:
        self.capabilities = Capabilities(looks_up=True, edits_a_minute=600)
        self.env: Mapping[str, str] = {}
        self.door: Door | None = None
        self.put: list[Put] = []
        self.private: dict[str, list[str]] = {who: [] for who in PEOPLE.values()}
        self.faults: list[Answer] = []
        self.refused: set[str] = set()
        self.idents: dict[str, str] = {}
        self.calls = 0
        self._numbers = itertools.count(1)
        self._last: Inbound | None = None
        self._took = 0.0
        self._known: dict[str, list[Choice]] = {}

    # --- the channel ------------------------------------------------------------------------------------------
    async def start(self, door: Door) -> None:
        self.door = door

    async def stop(self) -> None:
        self.door = None

    def routes(self) -> list[Route]:
        return []

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        given = dict(raw)
        given["sender"] = Sender(**given["sender"])
        given["files"] = tuple(File(**file) for file in given["files"])
        return Inbound(**given, raw=raw)

    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        self.calls += 1
        if again and ident in self.idents:
            return Sent(ref=self.idents[ident])
        fault = self.faults.pop(0) if self.faults else None
        if conversation in self.refused:
            return Refused(why="they have left")
        if isinstance(fault, Later) and not fault.lost:
            return fault
        if isinstance(fault, Later) and fault.why == "away":
            return fault
        ref = str(next(self._numbers))
        self.put.append(Put(ref, conversation, thing))
        self.idents[ident] = ref
        return fault or Sent(ref=ref)

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        self.calls += 1
        if self.faults:
            return self.faults.pop(0)
        for put in self.put:
            if put.ref == ref:
                put.thing, put.edits = thing, put.edits + 1
                return Sent(ref=ref)
        return Refused(why="it is not there")

    async def tell(self, given: Inbound, text: str, *, alert: bool = False) -> None:
        self.private[given.sender.ref].append(text)

    async def reach(self, ref: str) -> str | Refused | Later:
        return f"plain:{ref}"

    async def fetch(self, file: File) -> bytes | Refused | Later:
        return file.ref.encode()

    async def find(self, email: str) -> Sender | None:
        return None

    async def check(self) -> list[Fault]:
        return []

    # --- the stage --------------------------------------------------------------------------------------------
    async def __aenter__(self) -> Plain:
        return self

    async def __aexit__(self, *_: Any) -> None:
        return None

    def ref(self, who: str) -> str:
        return PEOPLE[who]

    def connect(self, address: str) -> None:
        return None

    async def ready(self) -> None:
        return None

    async def _bring(self, who: str, **given: Any) -> None:
        usual: dict[str, Any] = {
            "ident": f"e{next(self._numbers)}",
            "conversation": f"plain:{self.ref(who)}",
            "sender": Sender(ref=self.ref(who), name=who.capitalize()),
        }
        made = Inbound(**{**usual, **given})
        raw = {
            "kind": made.kind, "ident": made.ident, "conversation": made.conversation, "text": made.text,
            "direct": made.direct, "mentioned": made.mentioned, "ref": made.ref, "reply_to": made.reply_to,
            "data": made.data, "sender": {"ref": made.sender.ref, "name": made.sender.name},
            "files": [{"name": f.name, "ref": f.ref, "size": f.size} for f in made.files],
        }  # fmt: skip
        self._last = replace(made, raw=raw)
        await self.again()

    async def again(self) -> None:
        assert self.door is not None and self._last is not None
        begun = time.perf_counter()
        await self.door.take(self.name, self._last)
        self._took = time.perf_counter() - begun

    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        if form == "file":
            file = File(name="script.md", ref=text, size=len(text.encode()))
            await self._bring(who, kind="message", conversation=ROOM, mentioned=True, files=(file,))
        elif form in ("text", "code"):
            await self._bring(who, kind="message", conversation=ROOM, mentioned=True, text=text)
        else:
            raise NotImplementedError(form)
        return ROOM

    async def write(self, who: str, text: str) -> str:
        await self._bring(who, kind="message", direct=True, text=text)
        return f"plain:{self.ref(who)}"

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        choice = next(c for c in self._choices(seen.ref) if c.label == label)
        await self._bring(who, kind="tap", conversation=seen.conversation, data=choice.data, ref=seen.ref)

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        await self._bring(
            who, kind="message", conversation=seen.conversation, text=text, reply_to=seen.ref, direct=True
        )

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        assert self.door is not None
        card = self._put(seen.ref).thing
        assert isinstance(card, Card)
        given = Inbound(
            kind="form", ident=f"e{next(self._numbers)}", conversation=seen.conversation,
            sender=Sender(ref=self.ref(who)), data=f"w:{card.token}", values=values,
        )  # fmt: skip
        assert await self.door.form(self.name, given) is not None
        return await self.door.submitted(self.name, given)

    async def forged(self) -> bool:
        return False

    def _put(self, ref: str) -> Put:
        return next(put for put in self.put if put.ref == ref)

    def _choices(self, ref: str) -> list[Choice]:
        found = self._known.setdefault(ref, [])
        thing = self._put(ref).thing
        if isinstance(thing, Message) and thing.parts:
            fresh = [c for part in thing.parts for c in part.choices]
        else:
            fresh = [*getattr(thing, "choices", ()), *getattr(thing, "more", ())]
        found += [c for c in fresh if c not in found]
        return found

    def seen(self, who: str) -> list[Seen]:
        mine = {ROOM, f"plain:{self.ref(who)}"} if who != "mika" else {f"plain:{self.ref(who)}"}
        found: list[Seen] = []
        for put in self.put:
            self._choices(put.ref)
            if put.conversation in mine:
                buttons = tuple(c.label for c in getattr(put.thing, "choices", ()))
                if isinstance(put.thing, Message):
                    buttons = tuple(c.label for part in put.thing.parts or (put.thing,) for c in part.choices)
                found.append(
                    Seen(
                        ref=put.ref,
                        conversation=put.conversation,
                        text=worded(put.thing),
                        buttons=buttons,
                        edits=put.edits,
                    )
                )
        return found

    def told(self, who: str) -> list[str]:
        return self.private[self.ref(who)]

    def acknowledged(self) -> float:
        return self._took

    def away(self, calls: int) -> None:
        self.faults += [Later(why="away", pause=timedelta(0), lost=True)] * calls

    def lose(self, calls: int) -> None:
        self.faults += [Later(why="lost", pause=timedelta(0), lost=True)] * calls

    def busy(self, calls: int, seconds: float) -> None:
        self.faults += [Later(why="busy", pause=timedelta(seconds=seconds))] * calls

    def refuse(self, who: str) -> None:
        self.refused.add(f"plain:{self.ref(who)}")


def worded(thing: Thing) -> str:
    """All the words of a thing."""
    match thing:
        case Card():
            return "\n".join(filter(None, (thing.title, thing.text, thing.taps, thing.asker)))
        case Settled():
            return "\n".join(filter(None, (thing.title, thing.text, thing.outcome, thing.reason)))
        case Message():
            return "\n".join([thing.title, thing.text, *(worded(part) for part in thing.parts)]).strip()
        case Status():
            facts = [f"{name}: {words}" for name, words in thing.facts]
            lines = [line.text for line in thing.lines]
            return "\n".join(
                [thing.title, thing.state, *lines, *facts, *thing.notes, thing.result or "", thing.error or ""]
            )
        case Problems():
            return "\n".join([thing.head, *thing.problems])
