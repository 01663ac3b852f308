"""What can be typed to the bot, a word each: `COMMANDS`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bot.chat import door, jobs, scripts, senders
from bot.chat.scripts import Scripts
from bot.domain.catalog import Person, World
from bot.domain.record import RunRow
from bot.engine import edits, tenses
from bot.people import reach
from bot.runtime import report
from bot.runtime.desk import Desk
from bot.server import composing, examples, phrases, rights
from channels.base import Attached, Channel, Inbound, Message, Settled
from store import inbox, ops, people, runs
from store.dialect import Transaction

HELP = """Paste a script (a list of commands, or JSON), in a code block or as a file.
It is checked first, and runs in this conversation.
`status` how things stand here · `inbox` what waits on you · `why` what is waited for, and what comes then
`cancel` ends the run of this conversation · `again` runs its last script once more
`check` and `rehearse`, with a script below them: its problems, or every branch of it; nothing starts
`prefer slack|telegram|line|web|none` where your cards go · `examples` scripts to begin with"""
HELP_AGENT = "Say what you want in your own words: {name} answers, or writes a script that runs when you tap Run."
HELP_SHORT = "This is no script. `help` says what there is."
_WORD = re.compile(r"^/?([a-z][a-z-]*)(?:@\w+)?(:?\s.*|:.*)?$", re.DOTALL | re.IGNORECASE)
_SCRIPT = re.compile(r"[^\n]*\n|\s*(?:[-*+•{\[`]|\d{1,9}[.)])")
"""How what is no mere sentence goes on behind a word."""
BRANCHES_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One word. `takes`: what may stand behind it, besides nothing: one `word`, a reason behind a colon (`why`), a
    `script`, or `all` there is. Where something else does, it is a sentence and no command."""

    do: Callable[[Commands, _Typed], Awaitable[str]]
    takes: Literal["", "word", "why", "script", "all"] = ""

    def rest(self, given: str) -> str | None:
        """What stands behind it, if it may."""
        said = given.strip().removeprefix(":").strip()
        fits = {
            "": not given.strip(),
            "word": len(said.split()) <= 1 and not given.startswith(":"),
            "why": not given.strip() or given.startswith(":"),
            "script": not said or _SCRIPT.match(given.removeprefix(":")) is not None,
            "all": True,
        }
        return said if fits[self.takes] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Typed:
    channel: Channel
    given: Inbound
    person: Person
    number: int
    rest: str


def closed(label: str, who: senders.Who, said: str) -> Settled:
    """What stands where a script waited for somebody's choice."""
    name = who.person.name if who.person else "Somebody"
    return Settled(title="", text=said, outcome=f"{name} chose `{label}`")


class Commands:
    """`named` finds a command in what was typed, `do` answers it."""

    def __init__(self, desk: Desk, pasted: Scripts, agent: str | None = None) -> None:
        self.desk = desk
        self.scripts = pasted
        self.agent = agent
        """Who takes what is no command and no script, if there is somebody."""
        self._rehearsing = asyncio.Semaphore(1)

    def named(self, given: Inbound) -> tuple[str, str] | None:
        """The command and what stands behind it; words that only begin like one are none."""
        found = _WORD.match(given.text.strip())
        if found is None:
            return None
        word = found[1].casefold()
        known = COMMANDS.get(word)
        rest = known.rest(found[2] or "") if known is not None else None
        return (word, rest) if rest is not None else None

    async def do(self, channel: Channel, given: Inbound, person: Person, number: int, word: str, rest: str) -> None:
        said = await COMMANDS[word].do(
            self, _Typed(channel=channel, given=given, person=person, number=number, rest=rest)
        )
        if said:
            await channel.tell(given, said)

    async def _world(self) -> World:
        return await self.desk.world()

    async def _latest(self, typed: _Typed) -> RunRow | None:
        """The run that is meant: the latest of this conversation that has not ended, else its latest."""

        def read(tx: Transaction) -> RunRow | None:
            job = jobs.job_of(tx, typed.given.conversation)
            found = _readable(tx, runs.find(tx, job_id=job, limit=20) if job else [], typed.person.email)
            return next((run for run in found if run.ended is None), found[0] if found else None)

        return await self.desk.committer.read(read)

    async def help(self, typed: _Typed) -> str:
        return f"{HELP_AGENT.format(name=self.agent)}\n{HELP}" if self.agent else HELP

    async def status(self, typed: _Typed) -> str:
        desk, world = self.desk, await self._world()

        def read(tx: Transaction) -> list[str]:
            job = jobs.job_of(tx, typed.given.conversation)
            found = runs.find(tx, job_id=job, limit=10) if job else runs.find(tx, owner=typed.person.email, limit=10)
            lines: list[str] = []
            for run in _readable(tx, found, typed.person.email):
                title = phrases.of_plan(desk.site.index(tx, run.plan).plan, world)
                rows = ops.StoredRows(tx, run.id, run.job).pending() if run.ended is None else []
                line = tenses.line(rows, world, world.now, reader=typed.person.email)
                lines.append(f"{title}: {line or report.state_of(run)}")
            return lines

        lines = await desk.committer.read(read)
        return "\n".join(lines) if lines else "Nothing has run here."

    async def inbox(self, typed: _Typed) -> str:
        world = await self._world()
        found = await self.desk.committer.read(door.home, self.desk, world, typed.person.email)
        lines = [f"{words} {address}" for words, address in found.waiting]
        if not lines:
            return "Nothing waits on you."
        if not typed.given.direct:
            # Others may read this: what waits on somebody, and the addresses that answer it, are theirs alone.
            return f"{len(lines)} wait{'s' * (len(lines) == 1)} on you: {self.desk.site.url}/inbox"
        return "\n".join(lines[:20]) + (f"\nand {len(lines) - 20} more: {self.desk.site.url}/inbox" * (len(lines) > 20))

    async def why(self, typed: _Typed) -> str:
        run, world = await self._latest(typed), await self._world()
        if run is None:
            return "Nothing has run here."
        told = await self.desk.show(run.id)
        line = told["line"] or told["state"]
        ends = f"; it ends by {phrases.words.clock(run.ends, world, world.now)}" if run.ends and not run.ended else ""
        error = f": {told['error']}" if told["error"] else ""
        return f"{line}{error}{ends}. {self.desk.site.url}/runs/{run.id}"

    async def cancel(self, typed: _Typed) -> str:
        run, world = await self._latest(typed), await self._world()
        if run is None or run.ended is not None:
            return "Nothing runs here. Nothing changed."
        if not edits.steers(run, world, typed.person.email):
            return f"{world.name_of(run.owner)} started this run and can end it. Nothing changed."
        said = await self.desk.edit(run.id, {"run": "cancel"}, by=typed.person.email, why=typed.rest or None)
        return said.text

    async def again(self, typed: _Typed) -> str:
        run = await self._latest(typed)
        source = (await self.desk.committer.read(runs.told, run))["source"] if run else None
        if run is None or not source:
            return "Nothing has run here."
        if run.ended is None:
            return "It still runs; `cancel` ends it. Nothing has started."
        pasted = scripts.Pasted(number=typed.number, text=source, given=typed.given, by=typed.person.email)
        return await self.scripts.take(typed.channel, pasted) or ""

    async def check(self, typed: _Typed) -> str:
        text = await self._text(typed)
        if not text:
            return "Write the script below `check`, or send it as a file with it."
        state = await composing.state_of(
            self.desk, await self._world(), text, by=typed.person.email, job=None, given={}
        )
        if state.prose:
            return "There is no command in it."
        if state.problems:
            return "\n".join(scripts.told(problem, text) for problem in state.problems[: scripts.SHOWN])
        facts = "".join(f"\n{name}: {words}" for name, words in state.facts)
        notes = "".join(f"\n{note}" for note in [*(w["message"] for w in state.waits), *state.notes])
        return f"{state.hint}. Nothing has started.{facts}{notes}"

    async def rehearse(self, typed: _Typed) -> str:
        text = await self._text(typed)
        if not text:
            return "Write the script below `rehearse`, or send it as a file with it."
        found = await composing.rehearsed(
            self.desk, await self._world(), text, by=typed.person.email, job=None, given={}, turn=self._rehearsing
        )
        if not found.endings:
            return found.why or await self.check(typed)
        lines = [f"{found.summary}; nothing was stored or sent"]
        for ending in found.endings[:BRANCHES_SHOWN]:
            way = ", ".join(f"{what} {how}" for what, how in ending.way) or "straight through"
            told = "".join(f"; tells {who} {said}" for who, said in ending.told)
            lines.append(f"{way}: {ending.state}{f' ({ending.error})' if ending.error else ''}, {ending.took}{told}")
        if len(found.endings) > BRANCHES_SHOWN:
            lines.append(f"and {len(found.endings) - BRANCHES_SHOWN} more")
        return "\n".join(lines)

    async def _text(self, typed: _Typed) -> str:
        if scripts.script_file(typed.given) is not None:
            got = await scripts.text_of(typed.channel, typed.given)
            return got[0] if isinstance(got, tuple) else ""
        return typed.rest

    async def examples(self, typed: _Typed) -> str:
        offered = examples.offered(await self._world())
        return "\n".join(title for _, title in offered) + f"\nEach is one tap away in the room: {self.desk.site.url}/"

    async def prefer(self, typed: _Typed) -> str:
        word = typed.rest.casefold()
        known = {reach.WEB, *typed.person.identities}
        if word not in {*known, "none"}:
            return f"You are reached on {', '.join(sorted(known))}; `none` means wherever you are. Nothing changed."
        chosen = None if word == "none" else word
        await self.desk.committer.write(lambda tx: people.prefer(tx, typed.person.email, chosen))
        self.scripts.people_changed()
        return f"Your cards go to {chosen} from now on." if chosen else "Your cards go wherever you are from now on."

    async def debug_paste(self, typed: _Typed) -> str:
        raw: Mapping[str, Any] = await self.desk.committer.read(inbox.raw_of, typed.number) or typed.given.raw
        content = json.dumps(raw, ensure_ascii=False, indent=2).encode()
        thing = Message(
            text="This is what arrived, as it came.", files=(Attached(name="pasted.json", content=content),)
        )
        await typed.channel.send(typed.given.conversation, thing, ident=f"debug/{typed.number}")
        return ""

    async def edit(self, typed: _Typed) -> str:
        run = await self._latest(typed)
        if run is None or not await self.desk.committer.read(rights.reads_run, run.id, typed.person.email):
            return "Nothing has run here."
        return f"What is pending can be changed on its record: {self.desk.site.url}/runs/{run.id}"


def _readable(tx: Transaction, found: Sequence[RunRow], email: str) -> list[RunRow]:
    """Those that this person may read: a conversation may have been somebody else's."""
    return [run for run in found if run.owner.casefold() == email.casefold() or rights.reads_run(tx, run.id, email)]


COMMANDS: Mapping[str, Command] = {
    "help": Command(do=Commands.help),
    "start": Command(do=Commands.help, takes="word"),
    "status": Command(do=Commands.status),
    "inbox": Command(do=Commands.inbox),
    "why": Command(do=Commands.why),
    "cancel": Command(do=Commands.cancel, takes="why"),
    "again": Command(do=Commands.again),
    "check": Command(do=Commands.check, takes="script"),
    "rehearse": Command(do=Commands.rehearse, takes="script"),
    "examples": Command(do=Commands.examples),
    "prefer": Command(do=Commands.prefer, takes="word"),
    "edit": Command(do=Commands.edit),
    "debug-paste": Command(do=Commands.debug_paste, takes="all"),
}
