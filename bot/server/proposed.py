"""Scripts that agents propose, in the room: how one is shown as things are now, what is asked of the agent, what is
done with what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from bot.agents.wishes import Wishes
from bot.domain.catalog import World
from bot.runtime.desk import Desk
from bot.runtime.proposals import Decided, Proposals
from bot.server import composing, phrases, rights
from bot.server.auth import Reader
from bot.server.entries import Item
from bot.server.respond import not_there, told, wants_json
from store.proposals import Proposal

STEPS = 40
"""Steps of a plan that its card shows."""
ACTS = {"wait": "Wait for the answer", "asis": "Run as written", "run": "Run"}
"""How a proposal is let run."""
HOLDS = "It would not wait for an answer above it, so it holds until you choose. Nothing has started."


@dataclass(slots=True, kw_only=True)
class Card:
    """A proposal as its reader sees it. `steps`, `state`: of one that waits for somebody; `who`: by whom it was
    decided."""

    row: Proposal
    note: str
    author: str
    may: bool
    who: str = ""
    state: composing.State | None = None
    steps: list[phrases.Step] = field(default_factory=list)
    more: int = 0

    @property
    def acts(self) -> list[tuple[str, str]]:
        """The buttons that let it run: what is posted, and the words."""
        return [(act, ACTS[act]) for act in ways(self.state)] if self.state is not None else []


async def cards(desk: Desk, world: World, reader: str, found: Sequence[Item]) -> dict[str, Card]:
    """The proposals among a conversation's entries, by their keys."""
    return {
        item.key: await card(desk, world, reader, item.proposal, item.title)
        for item in found
        if item.proposal is not None
    }


async def card(desk: Desk, world: World, reader: str, row: Proposal, note: str) -> Card:
    """A proposal for its page: checked as things are now, where it is open."""
    found = Card(
        row=row,
        note=note,
        author=phrases.by_whom(row.author, world),
        may=rights.may_paste(world, reader),
        who=phrases.by_whom(row.by, world) if row.by else "",
    )
    if row.state == "open":
        found.state = await composing.state_of(desk, world, row.text, by=reader, job=row.job, given=_given(row))
        outline = phrases.outline(found.state.plan, world) if found.state.plan is not None else []
        found.steps, found.more = outline[:STEPS], max(0, len(outline) - STEPS)
    return found


def _given(row: Proposal) -> dict[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in (row.inputs or {}).items()}


def ways(state: composing.State) -> Sequence[str]:
    """How a proposal can be let run as things are now, the likeliest first; none where it must be changed before."""
    if not state.ready:
        return ()
    if not state.waits:
        return ("run",)
    return ("wait", "asis") if any(wait["fix"] for wait in state.waits) else ("asis",)


async def let_run(desk: Desk, kept: Proposals, row: Proposal, act: str, *, by: str) -> Decided:
    """Lets an open proposal run, in one of its ways; refused where it would not wait and nobody has seen it."""
    state = await composing.state_of(desk, await desk.world(), row.text, by=by, job=row.job, given=_given(row))
    text = None
    if act == "wait":
        text, state = await composing.all_mended(desk, row.text, state, by=by, job=row.job, of=lambda now: now.waits)
    if not state.ready:
        return Decided(text=f"{unready(state)} Nothing has started.", accepted=False)
    if state.waits and act == "run":
        return Decided(text=HOLDS, accepted=False)
    return await kept.run(row.id, by=by, text=text)


def unready(state: composing.State) -> str:
    """Why a script cannot be started as it is."""
    if state.problems:
        first = state.problems[0]
        mend = f"; {first['mend']}" if first.get("mend") else ""
        return f"As things are now, line {first['line']}: {first['message']}{mend}."
    asked = ", ".join(f"`{one.name}`" for one in state.inputs)
    return f"It is started with {asked}, which the composer of the room asks for." if asked else "It has no command."


# --- what is posted ----------------------------------------------------------------------------------------------
def asked_of(request: Request, reader: Reader) -> Wishes | None:
    """The agent that this reader may put on work, if there is one."""
    found: Wishes | None = request.app.state.product.wishes
    return found if found is not None and rights.may_paste(reader.world, reader.email) else None


async def ask(request: Request, reader: Reader, text: str, job: str) -> Response:
    """Puts the agent on work for what somebody says; the conversation shows that it is, and then its answer."""
    back, agent = f"/jobs/{quote(job)}", asked_of(request, reader)
    if agent is None or not text.strip():
        why = "There is nothing to ask." if agent is not None else "No agent takes this here."
        return told(request, back, f"{why} Nothing has started.", status=422)
    row = await agent.ask(text.strip(), by=reader.email, job=job)
    agent.begin(row)
    if wants_json(request):
        return JSONResponse({"text": f"{agent.name} is writing.", "accepted": True, "asked": row.id}, 202)
    return RedirectResponse(f"{back}#w-{row.id}", 303)


async def decide(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """A tap on a proposal: it runs, in one of its ways, or is discarded."""
    kept: Proposals = request.app.state.product.proposals
    row = await kept.get(request.path_params["proposal"])
    if row is None or not await kept.desk.committer.read(rights.reads_job, row.job, reader.email):
        return not_there(reader)
    back, act = f"/jobs/{quote(row.job)}", form.get("do", "")
    if act not in (*ACTS, "discard"):
        return told(request, back, "There is no such choice. Nothing changed.", status=422)
    decided = await kept.refused(row, reader.email)
    if decided is None and act == "discard":
        decided = await kept.discard(row.id, by=reader.email)
    elif decided is None:
        decided = await let_run(kept.desk, kept, row, act, by=reader.email)
    if decided.accepted and decided.run is not None:
        back = f"{back}?run={quote(decided.run)}"
    status = 200 if decided.accepted else 409
    return told(request, back, decided.text, status=status, accepted=decided.accepted)
