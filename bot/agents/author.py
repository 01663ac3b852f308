"""The agent that people talk to: it answers, or writes a whole script, which is checked as any other and put before
whoever asked. It starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.agents import guide, prompts, surroundings
from bot.agents.child import NoAnswer
from bot.agents.line import Line
from bot.agents.model import Message, ModelFailed, Request, Tool, Use
from bot.domain.catalog import Agent, Catalog
from bot.domain.cost import Usage
from bot.domain.values import normalise
from bot.language.script import Examined
from bot.people import directory
from bot.runtime.desk import Desk
from bot.runtime.proposals import Proposals
from store import history, ops, runs
from store.dialect import Transaction
from store.proposals import Proposal

MENDS = 4
"""How often a script with problems goes back to be mended."""
PAST = 60
"""Past ops of the job that the agent is told of."""
WISH_CHARS = 20_000
LONGEST_TOKENS = 16_000

WHO = (
    "You help a team in its chat. The team's bot, Waiton, runs scripts: lists of ops that ask people, wait for what "
    "happens, call tools and say things. You write such scripts; you do nothing else yourself.\n"
    "- Where the wish needs something done, asked, sent, waited for or looked up, call `propose_script` once with the "
    "whole plan, every branch written: what happens when nobody answers, when something fails. Whoever asked reads it "
    "and lets it run, or not; so keep it as short as it can be, with clear names and questions.\n"
    "- Where it is a question that you can answer from what you are told here, answer in a few sentences, in the "
    "language of whoever asks. Never claim that something was done: nothing runs before somebody taps Run.\n"
    "- Name only people, roles, streams, tools and scripts that are listed. You see names, types and sizes of values, "
    "not what they say: a script that shows a value shows it to the reader.\n"
    f"{prompts.OUTSIDE}"
)
PROPOSE = Tool(
    name="propose_script",
    description="Puts a script before whoever asked, with Run, Edit and Discard. It is checked first; problems come "
    "back with their lines, and the mended script is to be proposed again, whole.",
    schema={
        "type": "object",
        "properties": {
            "script": {"type": "string", "description": "the whole script, markdown or JSON"},
            "note": {"type": "string", "description": "one sentence for whoever asked"},
        },
        "required": ["script"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a wish: words, and perhaps a proposal. `failed`: there is no answer, and why."""

    text: str
    usage: Usage
    proposal: Proposal | None = None
    seen: Examined | None = None
    failed: bool = False


class Author:
    """`answer` takes what somebody said to the bot that is no script."""

    def __init__(
        self, desk: Desk, proposals: Proposals, line: Line, agent: Agent, catalog: Catalog, model: str
    ) -> None:
        self.desk = desk
        self.proposals = proposals
        self.line = line
        self.agent = agent
        self.catalog = catalog
        self.model = model

    @property
    def name(self) -> str:
        return f"agent:{self.agent.name}"

    async def answer(self, wish: str, *, by: str, job: str, ident: str | None = None, before: str = "") -> Written:
        """Words or a proposal, for what `by` wishes in a job. `ident`: of the proposal, so that a repeat is none;
        `before`: what was said ahead of it."""
        told = await self.desk.committer.read(self._told, wish[:WISH_CHARS], by, job, before)
        try:
            return await self.line.hold(lambda: self._written(told, wish, by, job, ident))
        except NoAnswer as fault:
            return Written(text=str(fault), usage=fault.usage, failed=True)

    async def _written(self, told: str, wish: str, by: str, job: str, ident: str | None) -> Written:
        messages: list[Message] = [{"role": "user", "content": told}]
        usage = Usage()
        for tried in range(MENDS + 1):
            try:
                reply = await self.line.reply(self._request(messages))
            except ModelFailed as fault:
                raise NoAnswer(str(fault), usage) from None
            usage += reply.usage
            use = next((u for u in reply.uses if u.name == PROPOSE.name), None)
            if reply.stop == "max_tokens":
                raise NoAnswer("its script was cut off: it is too long", usage)
            if use is None:
                text = reply.text.strip()
                return Written(text=text or "It has no answer.", usage=usage, failed=not text)
            script, note = _given(use)
            seen = await self.desk.check(script, by=by, job=job, starting=False)
            if not seen.refused:
                proposal = await self.proposals.put(script, job=job, author=self.name, owner=by, wish=wish, ident=ident)
                return Written(text=note or reply.text.strip(), usage=usage, proposal=proposal, seen=seen)
            if tried < MENDS:
                messages.append({"role": "assistant", "content": list(reply.content)})
                messages.append({"role": "user", "content": [_problems(u, use, seen) for u in reply.uses]})
        raise NoAnswer(f"it wrote a script {MENDS + 1} times, and each had problems", usage)

    def _request(self, messages: list[Message]) -> Request:
        system = prompts.system(
            f"{WHO}\n\n# The language\n\n{guide.language()}\n\n# Every op\n\n{guide.commands(self.catalog)}",
            self.agent.prompt,
        )
        return Request(
            model=self.agent.model or self.model,
            system=system,
            messages=tuple(messages),
            tools=(PROPOSE,),
            max_tokens=LONGEST_TOKENS,
            cached=True,
            long=True,
        )

    def _told(self, tx: Transaction, wish: str, by: str, job: str, before: str) -> str:
        """The wish, and where it is made: who asks, what has happened in the job, what it holds, who and what there
        is."""
        now = self.desk.clock.now()
        kept = runs.get_job(tx, job)
        world = directory.for_job(self.desk.site.world(now), by, {}, kept["customer"] if kept else None)
        held = history.held(tx, job) if kept else []
        past = ops.StoredRows(tx, "", job).history()[-PAST:] if kept else []
        zone = world.workspace.timezone
        parts = [
            f"It is {now.isoformat(timespec='minutes')} (the workspace's zone is {zone}). {by} asks.",
            "What has happened in this job, the latest last:\n" + "\n".join(_past(entry) for entry in past)
            if past
            else "",
            surroundings.held(held),
            surroundings.of(world, self.catalog),
            before,
            f"The wish:\n{wish}",
        ]
        return "\n\n".join(part for part in parts if part)


def _given(use: Use) -> tuple[str, str]:
    given: Mapping[str, Any] = use.input if isinstance(use.input, dict) else {}
    return str(normalise(given.get("script")) or ""), str(given.get("note") or "").strip()


def _problems(use: Use, proposed: Use, seen: Examined) -> dict[str, Any]:
    """What the checks say of a script, as a tool's result."""
    if use.id != proposed.id:
        return {"type": "tool_result", "tool_use_id": use.id, "content": "one proposal at a time", "is_error": True}
    said = (
        f"It has problems, and was not put before anybody:\n\n{seen.rendered()}\n\nPropose it again, mended and whole."
    )
    return {"type": "tool_result", "tool_use_id": use.id, "content": said, "is_error": True}


def _past(entry: Mapping[str, Any]) -> str:
    by = f" by {entry['by']}" if entry.get("by") else ""
    name = f" {entry['id']}" if entry.get("id") else ""
    return f"- {entry['at']} {entry['op']}{name}: {entry['state']}{by}"
