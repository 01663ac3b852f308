"""Scripts that are pasted into a chat: checked, refused with their problems, held, saved or started."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.chat import jobs, sending
from bot.domain.errors import WaitonError
from bot.domain.ids import digest, token
from bot.runtime.desk import Desk
from bot.server import composing, rights
from channels.base import (
    Channel,
    Choice,
    File,
    Inbound,
    Message,
    Problems,
    Refused,
    Sent,
    Settled,
    Status,
    Thing,
)
from store import people, runs
from store.dialect import Transaction

SCRIPT_BYTES = 256 * 1024
SCRIPTS = (".md", ".markdown", ".json", ".json5", ".txt")
"""Files that may be a script."""
KEPT = 512
SHOWN = 10
"""Problems that one reply shows."""
ACTS = {"mend": "Mend and run", "wait": "Wait for the answer", "run": "Run as written", "off": "Discard"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """A text that may be a script. `number`: the event that brought it; `file`: the name of the file it was in."""

    number: int
    text: str
    given: Inbound
    by: str
    file: str | None = None


def data(secret: str, number: int, act: str) -> str:
    """What a button under a pasted script carries."""
    return f"s:{number}.{token(secret, 'script', str(number), chars=12)}:{act}"


def read(secret: str, given: str) -> tuple[int, str] | None:
    """The event and the act of a tapped button; None where we did not make it."""
    kind, _, rest = given.partition(":")
    named, _, act = rest.partition(":")
    number, _, signed = named.partition(".")
    if kind != "s" or act not in ACTS or not given.isascii() or not number.isdigit() or len(number) > 12:
        return None
    good = token(secret, "script", number, chars=12)
    return (int(number), act) if hmac.compare_digest(good, signed) else None


def run_id(given: Inbound, number: int) -> str:
    """The id of the run that a pasted script starts: the same however often it is taken."""
    return "r_" + digest(f"{given.conversation} {number}")[:14]


def over(tx: Transaction, given: Inbound, number: int) -> str | None:
    """Why nothing can be chosen about a pasted script any more, in words; None where it waits."""
    if runs.get(tx, run_id(given, number)) is not None:
        return "This script runs already. Nothing changed."
    if people.setting_of(tx, _discarded(number)) is not None:
        return "This script was discarded; paste it again to run it. Nothing has started."
    return None


def discard(tx: Transaction, number: int) -> None:
    """Its buttons, which may still stand somewhere, do nothing from now on."""
    people.put_setting(tx, _discarded(number), "1")


def take_up(tx: Transaction, number: int) -> None:
    """Its author goes on with it: it waits for their choice again."""
    people.drop_setting(tx, _discarded(number))


def _discarded(number: int) -> str:
    return f"discarded {number}"


def script_file(given: Inbound) -> File | None:
    """The file of a message that may be a script."""
    return next((f for f in given.files if f.name.casefold().endswith(SCRIPTS)), None)


async def text_of(channel: Channel, given: Inbound) -> tuple[str, str | None] | str:
    """The text that was pasted and the name of its file; or, as words, why there is none."""
    file = script_file(given)
    if file is None:
        return given.text, None
    if (file.size or 0) > SCRIPT_BYTES:
        return f"`{file.name}` has {(file.size or 0) // 1024} KiB; a script has 256 KiB at most."
    content = await channel.fetch(file)
    if not isinstance(content, bytes):
        return f"`{file.name}` could not be fetched: {content.why}."
    if len(content) > SCRIPT_BYTES:
        return f"`{file.name}` has {len(content) // 1024} KiB; a script has 256 KiB at most."
    try:
        return content.decode("utf-8-sig"), file.name
    except UnicodeDecodeError:
        return f"`{file.name}` is not UTF-8 text."


class Scripts:
    """`take` answers a pasted text in its conversation; what it starts shows itself."""

    def __init__(self, desk: Desk, people_changed: Callable[[], None]) -> None:
        self.desk = desk
        self.people_changed = people_changed
        self.started: Callable[[str, str, str | None], Awaitable[None]] | None = None
        """Is told of the job, of who pasted, and of the run, where a script has started or was saved."""
        self._shown: OrderedDict[int, str] = OrderedDict()
        """Where the reply to a script that did not start stands: a cache, so that an edited script changes it."""

    def refused(self, number: int) -> bool:
        """Whether the script of this event was refused or held lately."""
        return number in self._shown

    async def looks_like_one(self, text: str, by: str) -> bool:
        """Whether a text has a command at all."""
        if not text.strip():
            return False
        state = await composing.state_of(self.desk, await self.desk.world(), text, by=by, job=None, given={})
        return not state.prose

    async def take(self, channel: Channel, pasted: Pasted, act: str = "paste") -> str | None:
        """Checks and starts it; gives words for whoever pasted it where there is nothing to show in its place."""
        desk = self.desk
        world = await desk.world()
        if not rights.may_paste(world, pasted.by):
            return f"Scripts are started by {rights.who_pastes(world)} here. Nothing has started."
        text = pasted.text
        job = await desk.committer.read(jobs.job_of, pasted.given.conversation)
        state = await composing.state_of(desk, world, text, by=pasted.by, job=job, given={})
        if act == "mend":
            text, state = await composing.all_mended(
                desk, text, state, by=pasted.by, job=job, of=lambda now: now.problems
            )
        elif act == "wait":
            text, state = await composing.all_mended(desk, text, state, by=pasted.by, job=job, of=lambda now: now.waits)
        if state.problems:
            await self._show(channel, pasted, self._problems(pasted, state, text if act == "mend" else None))
            return None
        if state.prose:
            return "There is no command in it. Nothing has started."
        if not state.ready:
            names = ", ".join(f"`{one.name}`" for one in state.inputs)
            return f"It is started with {names}: start it from the room, where they are asked for. Nothing has started."
        if state.waits and act not in ("run", "wait"):
            await self._show(channel, pasted, self._held(pasted, state, live=channel.capabilities.edits))
            return None
        return await self._start(channel, pasted, text, state.title)

    async def _start(self, channel: Channel, pasted: Pasted, text: str, title: str) -> str | None:
        desk, now = self.desk, self.desk.clock.now()

        def ensure(tx: Transaction) -> str:
            return jobs.ensure(tx, pasted.given, pasted.by, title, now)

        job = await desk.committer.write(ensure)
        try:
            started = await desk.start(text, by=pasted.by, job=job, run_id=run_id(pasted.given, pasted.number))
        except WaitonError as fault:
            return f"{fault} Nothing has started."
        if not started.refused and self.started is not None:
            await self.started(job, pasted.by, started.run)
        if started.saved:
            saved = started.saved
            said = f"Saved as `{saved['name']}`, version {saved['version']}. It starts by itself from now on."
            await self._show(channel, pasted, Message(text=said, place=("its page", f"{desk.site.url}/scripts")))
            return None
        if started.refused:
            return "It is refused now; paste it again. Nothing has started."
        if (stood := self._shown.pop(pasted.number, None)) is not None and channel.capabilities.edits:
            done = Settled(title="", text="", outcome="It has started")
            await channel.edit(pasted.given.conversation, stood, done)
        return None

    def _choice(self, number: int, act: str, *, first: bool = False) -> Choice:
        return Choice(label=ACTS[act], data=data(self.desk.site.secret, number, act), tone="first" if first else "")

    def _problems(self, pasted: Pasted, state: composing.State, mended: str | None) -> Problems:
        count = len(state.problems)
        what = f"`{pasted.file}`" if pasted.file else "This script"
        head = f"{what} has {count} problem{'' if count == 1 else 's'}. Nothing has started."
        can = mended is None and all(problem["fix"] for problem in state.problems)
        return Problems(
            head=head,
            problems=tuple(told(problem, pasted.text) for problem in state.problems),
            script=pasted.text if pasted.given.undone else None,
            choices=(self._choice(pasted.number, "mend", first=True),) if can else (),
        )

    def _held(self, pasted: Pasted, state: composing.State, *, live: bool) -> Status | Message:
        """What would be started, held until whoever pasted it has chosen. `live`: the platform shows how runs stand."""
        acts = ["wait"] if any(wait["fix"] for wait in state.waits) else []
        choices = tuple(self._choice(pasted.number, act, first=n == 0) for n, act in enumerate([*acts, "run", "off"]))
        title, notes = "It has not started", [*(str(wait["message"]) for wait in state.waits), *state.notes]
        if not live:
            facts = [f"{name}: {words}" for name, words in state.facts]
            return Message(title=title, text="\n".join([*facts, *notes]), choices=choices)
        return Status(title=title, state="held", facts=tuple(state.facts), notes=tuple(notes), choices=choices)

    async def _show(self, channel: Channel, pasted: Pasted, thing: Thing) -> None:
        """Puts it into the conversation, in place of what stood there before for the same script."""
        where, ident = pasted.given.conversation, f"p/{pasted.number}/{type(thing).__name__}"
        stood = self._shown.get(pasted.number)
        if stood is not None and channel.capabilities.edits:
            if isinstance(await channel.edit(where, stood, thing), Sent):
                return
        answer = await sending.put(channel, where, thing, ident=ident)
        if isinstance(answer, Refused):
            await channel.tell(pasted.given, answer.why, alert=True)
        elif isinstance(answer, Sent) and answer.ref is not None and not isinstance(thing, Message):
            self._shown[pasted.number] = answer.ref
            while len(self._shown) > KEPT:
                self._shown.popitem(last=False)


def told(problem: Mapping[str, Any], text: str) -> str:
    """One problem with its place, the line as its author sees it, and a caret below."""
    lines = text.replace("\r\n", "\n").split("\n")
    at, column, length = int(problem["line"]), int(problem["column"]), int(problem.get("length") or 1)
    said = f"{at}:{column} {problem['message']}"
    if mend := problem.get("mend"):
        said += f"{' ' if said.endswith(('.', '?', '!')) else '; '}{mend}"
    if not 1 <= at <= len(lines):
        return said
    line = lines[at - 1].replace("\t", " ")
    start = max(0, column - 60)
    caret = " " * (column - 1 - start) + "^" * max(1, min(length, len(line) - column + 1, 60))
    return f"{said}\n  {line[start : start + 100]}\n  {caret}"
