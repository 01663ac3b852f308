"""What is said to the bot's agent in a chat, and the scripts that it proposes there: one message each, which turns from
`claude is at work` into an answer or a proposal, and that into what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from weakref import WeakValueDictionary

import structlog

from bot.agents.wishes import Wishes
from bot.chat import jobs, senders, sending
from bot.domain.ids import digest
from bot.engine import words
from bot.runtime.desk import Desk
from bot.runtime.proposals import Decided, Proposals
from bot.server import composing, phrases, proposed, rights
from channels.base import Busy, Channel, Choice, Form, FormField, Inbound, Message, Refused, Sent, Settled, Thing
from channels.text import quoted
from store import proposals, wishes
from store.dialect import Transaction
from store.proposals import Proposal
from store.wishes import Wish

log = structlog.get_logger()
ACTS = {**proposed.ACTS, "edit": "Edit", "off": "Discard"}
PREFIX = "a:"
STEPS = 12
"""Steps of a plan that its card shows."""
PROBLEMS = 4
"""Problems that stand in a form."""
TITLE = 80
SCRIPT = "script"
UNKNOWN = "This script is not known here. Nothing changed."
STRANGER = "Scripts are started by the people of this workspace. Nothing has started."
COPY = "Copy the script below, change it and send it back. What you send runs in its place."


def data(ident: str, act: str) -> str:
    """What a button of a proposal carries."""
    return f"{PREFIX}{ident}:{act}"


def read(given: str) -> tuple[str, str] | None:
    """The proposal and the act of a tapped button; None where it is none of ours."""
    ident, _, act = given.removeprefix(PREFIX).rpartition(":")
    return (ident, act) if given.startswith(PREFIX) and ident.startswith("p_") and act in ACTS else None


class Proposing:
    """`aside` puts the agent on work, `tapped` and `submit` take what somebody does with its proposal; `show` makes the
    message equal to the rows. `wishes` None: there is no agent."""

    def __init__(self, desk: Desk, kept: Proposals, asked: Wishes | None, channels: Mapping[str, Channel]) -> None:
        self.desk = desk
        self.proposals = kept
        self.wishes = asked
        self.channels = channels
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        kept.changed = self._changed
        if asked is not None:
            asked.told = self._told

    async def start(self) -> None:
        """Shows what a process before this one had no time to show."""
        for row in await self.desk.committer.read(wishes.in_state, "said"):
            self._soon(row.id)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- a wish -----------------------------------------------------------------------------------------------
    async def aside(self, channel: Channel, given: Inbound, who: senders.Who, number: int) -> bool:
        """Words to the bot that nothing waited for; False where no agent takes them."""
        text, world = given.text.strip(), await self.desk.world()
        if self.wishes is None or who.email is None or not text or not rights.may_paste(world, who.email):
            return False
        email, now = who.email, self.desk.clock.now()
        title = text.split("\n")[0][:TITLE]
        job = await self.desk.committer.write(lambda tx: jobs.ensure(tx, given, email, title, now))
        ident = "p_" + digest(f"wish {given.conversation} {number}")[:16]
        row = await self.wishes.ask(text, by=email, job=job, ident=ident, conversation=given.conversation)
        self.wishes.begin(row)
        if not channel.capabilities.edits and isinstance(channel, Busy):
            await channel.busy(given.conversation)
        await self.show(row.id)
        return True

    async def _told(self, row: Wish) -> None:
        await self.show(row.id)

    def _changed(self, row: Proposal) -> None:
        self._soon(row.id)

    def _soon(self, ident: str) -> None:
        task = asyncio.create_task(self._shown(ident), name=f"shows {ident}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shown(self, ident: str) -> None:
        try:
            await self.show(ident)
        except Exception as fault:  # the rows say it; the next tap or start shows it
            log.warning("a proposal could not be shown", proposal=ident, fault=str(fault))

    # --- what stands there ------------------------------------------------------------------------------------
    async def show(self, ident: str) -> None:
        """Makes the message of a wish say how it stands now."""
        turn = self._turns.get(ident) or asyncio.Lock()
        self._turns[ident] = turn
        async with turn:
            wish = await self.desk.committer.read(wishes.get, ident)
            channel = self.channels.get((wish.conversation or "").partition(":")[0]) if wish else None
            if wish is None or channel is None:
                return
            row = await self.desk.committer.read(proposals.get, ident)
            thing, kind = await self._thing(wish, row if wish.state != "open" else None)
            if kind in ("work", "over") and not channel.capabilities.edits:
                return
            if kind == "work" and wish.ref is not None:
                return
            await self._put(channel, wish, thing, kind)
            if wish.state == "said":
                await self.desk.committer.write(lambda tx: wishes.shown(tx, ident))

    async def _put(self, channel: Channel, wish: Wish, thing: Thing, kind: str) -> None:
        where = wish.conversation or ""
        if wish.ref is not None and channel.capabilities.edits:
            if not isinstance(await sending.change(channel, where, wish.ref, thing), Refused):
                return
        answer = await sending.put(channel, where, thing, ident=f"a/{wish.id}/{kind}", again=True)
        if isinstance(answer, Sent) and answer.ref is not None:
            ref = answer.ref
            await self.desk.committer.write(lambda tx: wishes.stands(tx, wish.id, ref))

    async def _thing(self, wish: Wish, row: Proposal | None) -> tuple[Thing, str]:
        name = phrases.by_whom(wish.author, await self.desk.world())
        if wish.state == "open":
            return Message(text=f"{name} is at work on it…", note=True), "work"
        if row is None:
            said = (wish.said or "").strip()
            if wish.failed:
                said = (
                    f"{name} has no answer: {quoted(said.rstrip('.'))}. Nothing has started. “help” says what there is."
                )
            return Message(text=said), "said"
        if row.state == "open":
            return await self._card(wish, row, name), "card"
        return await self._over(wish, row), "over"

    async def _card(self, wish: Wish, row: Proposal, name: str) -> Message:
        """A proposal that waits for somebody: what it is for, the plan in words, what it may do, what can be done."""
        state, world = await self._state(row), await self.desk.world()
        lines: list[str] = []
        if state.plan is not None:
            outline = phrases.outline(state.plan, world)
            lines += [_line(step) for step in outline[:STEPS]]
            if len(outline) > STEPS:
                lines.append(f"… and {len(outline) - STEPS} more steps, in the room")
        about = [f"{heading}: {said}" for heading, said in state.facts]
        if state.ends is not None:
            about.append(f"Ends: by {words.clock(state.ends, world, world.now)} at the latest")
        notes = [str(wait["message"]) for wait in state.waits] + state.notes
        if not state.ready:
            notes.append(proposed.unready(state))
        parts = ["\n".join(lines), "\n".join(about), "\n".join(f"⚠ {note[:1].upper()}{note[1:]}" for note in notes)]
        note = (wish.said or "").strip() or state.title or "a script"
        return Message(
            title=f"{name} proposes: {note}",
            text=quoted("\n\n".join(part for part in parts if part)),
            choices=tuple(
                Choice(label=ACTS[act], data=data(row.id, act), tone="first" if n == 0 else "")
                for n, act in enumerate(_acts(state))
            ),
            place=("the whole of it, in the room", f"{self.desk.site.url}/jobs/{row.job}#p-{row.id}"),
        )

    async def _over(self, wish: Wish, row: Proposal) -> Settled:
        world, site = await self.desk.world(), self.desk.site.url
        who = phrases.by_whom(row.by or "", world)
        outcome = {
            "run": f"{who} ran it",
            "discarded": f"{who} discarded it; nothing has started",
            "replaced": f"{who} changed it and ran that" if row.run else "A newer script stands in its place",
        }[row.state]
        return Settled(
            title=(wish.said or "").strip(),
            text="",
            outcome=outcome,
            at=row.ended,
            place=("the record", f"{site}/runs/{row.run}") if row.run else None,
        )

    async def _state(self, row: Proposal, text: str | None = None) -> composing.State:
        world, given = await self.desk.world(), row.text if text is None else text
        return await composing.state_of(self.desk, world, given, by=row.owner, job=row.job, given={})

    # --- what is done with it ---------------------------------------------------------------------------------
    async def tapped(self, channel: Channel, given: Inbound, who: senders.Who) -> None:
        """A tap on a proposal's button: by whoever may start scripts here, as their own."""
        tap = read(given.data)
        row = await self.proposals.get(tap[0]) if tap else None
        if tap is None or row is None:
            await channel.tell(given, UNKNOWN, alert=True)
            return
        if who.email is None:
            await channel.tell(given, STRANGER, alert=True)
            return
        if (refused := await self.proposals.refused(row, who.email)) is not None:
            await self._refuse(channel, given, refused, row)
            return
        match tap[1]:
            case "off":
                decided = await self.proposals.discard(row.id, by=who.email)
            case "edit":
                await self._to_copy(channel, given, row, who.email)
                return
            case act:
                decided = await proposed.let_run(self.desk, self.proposals, row, act, by=who.email)
        if not decided.accepted:
            await self._refuse(channel, given, decided, row)
        elif not channel.capabilities.edits:
            await channel.tell(given, self._and_where(decided))

    async def _refuse(self, channel: Channel, given: Inbound, decided: Decided, row: Proposal) -> None:
        await channel.tell(given, self._and_where(decided), alert=True)
        if channel.capabilities.edits:
            self._soon(row.id)  # what it says may be of before

    def _and_where(self, decided: Decided) -> str:
        return f"{decided.text} {self.desk.site.url}/runs/{decided.run}" if decided.run else decided.text

    async def _to_copy(self, channel: Channel, given: Inbound, row: Proposal, email: str) -> None:
        """Where there are no forms: the script, to be changed and sent back."""
        await self.desk.committer.write(lambda tx: wishes.edited(tx, row.id, email))
        thing = Message(parts=(Message(text=COPY), Message(text=row.text)))
        await sending.put(channel, given.conversation, thing, ident=f"a/{row.id}/{given.ident}", again=True)

    async def pasted(self, job: str, email: str, run: str | None) -> None:
        """A script has started in a chat: in place of the proposal that this person was changing there."""

        def changing(tx: Transaction) -> list[str]:
            return [w.id for w in wishes.of_job(tx, job) if (w.editor or "").casefold() == email.casefold()]

        for ident in await self.desk.committer.read(changing):
            await self.desk.committer.write(lambda tx, ident=ident: wishes.edited(tx, ident, None))
            await self.proposals.replace(ident, by=email, run=run)

    # --- its form ---------------------------------------------------------------------------------------------
    async def form(self, given: Inbound, email: str | None) -> Form | None:
        """The script in one large field, for whoever may let it run; None where the tap opens none."""
        tap = read(given.data)
        row = await self.proposals.get(tap[0]) if tap is not None and tap[1] == "edit" else None
        if row is None or email is None or await self.proposals.refused(row, email) is not None:
            return None
        field = FormField(name=SCRIPT, label="Script", hint="It is checked when you run it.")
        return Form(
            title="Edit the script",
            text="",
            data=given.data,
            fields=(field,),
            submit="Run",
            values={SCRIPT: row.text},
        )

    async def submit(self, given: Inbound, email: str | None) -> Mapping[str, str]:
        """Takes the form: what is wrong with the script, or nothing where it runs, or holds on its card."""
        tap = read(given.data)
        row = await self.proposals.get(tap[0]) if tap is not None else None
        if row is None or email is None:
            return {SCRIPT: UNKNOWN if row is None else STRANGER}
        text = str(given.values.get(SCRIPT) or "")
        if (refused := await self.proposals.refused(row, email)) is not None:
            return {SCRIPT: refused.text}
        world = await self.desk.world()
        state = await composing.state_of(self.desk, world, text, by=email, job=row.job, given={})
        if state.problems:
            return {SCRIPT: _told(state, PROBLEMS)}
        if not state.ready:
            return {SCRIPT: proposed.unready(state)}
        if state.waits:
            decided = await self.proposals.rewrite(row.id, text, by=email)
        else:
            decided = await self.proposals.run(row.id, by=email, text=text)
        return {} if decided.accepted else {SCRIPT: self._and_where(decided)}


def _acts(state: composing.State) -> list[str]:
    """What can be done with a proposal, the likeliest first."""
    return [*proposed.ways(state), "edit", "off"]


def _line(step: phrases.Step) -> str:
    lead = f"{step.lead}: " if step.lead else ""
    return f"{'    ' * step.depth}{'•' if step.depth == 0 else '–'} {lead}{step.said}"


def _told(state: composing.State, most: int) -> str:
    """Problems with their lines, and what would mend them."""
    said: list[str] = []
    for one in state.problems[:most]:
        mend = f"; {one['mend']}" if one.get("mend") else ""
        said.append(quoted(f"line {one['line']}: {one['message']}{mend}"))
    more = len(state.problems) - most
    return "\n".join(said) + (f"\nand {more} more" if more > 0 and most > 1 else "")
