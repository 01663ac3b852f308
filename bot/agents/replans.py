"""A plan that must change after a miss: what the agent is told, the edits it proposes, and how they are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.agents import surroundings
from bot.agents.child import NoAnswer
from bot.agents.line import Line
from bot.agents.model import ModelFailed, Request, Tool
from bot.agents.prompts import data
from bot.domain.cost import Usage
from bot.domain.facts import Edited, returned
from bot.domain.record import OpRow
from bot.domain.values import normalise
from bot.engine.edits import EDITS
from bot.language.write_markdown import as_markdown
from bot.runtime import report
from bot.runtime.commit import Outcome, Site, take, world_of
from store import history, ops, runs
from store.dialect import Transaction

NOT_FOR_AGENTS = frozenset({"accept"})
"""Whether a late answer counts is its owner's to say."""
TAKES: Mapping[str, tuple[dict[str, Any], str]] = {
    "": ({"const": True}, "true"),
    "addressee": ({"type": ["string", "array"]}, "an email, `role:NAME`, `agent:NAME`, a conversation, or a list"),
    "window": ({"type": "string"}, "a window from the op's own start, such as `2d`, `4h`, `2bd`"),
    "moment": ({"type": "string"}, "a moment, such as `Fri 17:00` or `2026-06-12`"),
    "op": ({"type": ["object", "string"]}, "one op as JSON, or one markdown item"),
    "ops": ({"type": ["array", "string"]}, "a list of ops as JSON, or markdown items"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """Edits that an agent proposes, with its reason."""

    edits: Sequence[Mapping[str, Any]]
    reason: str
    usage: Usage


def tool() -> Tool:
    """The tool by which edits are proposed, made of the table of edits."""
    kinds = [e for e in EDITS if e.key not in NOT_FOR_AGENTS]
    properties: dict[str, Any] = {
        "op": {"type": "string", "description": "the path or the id of the op that is changed"},
        "after": {"type": "string", "description": "with `insert`: the op below which the new ones stand"},
    }
    for kind in kinds:
        schema, meaning = TAKES[kind.takes]
        properties[kind.key] = {**schema, "description": f"{kind.label}: {meaning}"}
    listed = ", ".join(f"`{e.key}`" for e in kinds)
    return Tool(
        name="propose_edits",
        description=f"Changes what is pending. Each edit names an op and has exactly one of {listed}. All of them are "
        "taken, or none. An empty list: nothing can be mended; the reason says why.",
        schema={
            "type": "object",
            "properties": {
                "edits": {"type": "array", "items": {"type": "object", "properties": properties}},
                "reason": {"type": "string"},
            },
            "required": ["edits", "reason"],
            "additionalProperties": False,
        },
    )


def brief(tx: Transaction, site: Site, call: Mapping[str, Any], now: datetime, mark: str) -> str:
    """What the replanning agent is told: the missed op, the plan, its three tenses, who and what there is. Of values
    names, types and sizes; what its people wrote is not shown."""
    run = runs.get(tx, call["run"])
    assert run is not None
    index = site.index(tx, run.plan)
    rows = ops.StoredRows(tx, run.id, run.job)
    missed = rows.op(call["path"])
    assert missed is not None
    world = world_of(site, run, now)
    body = call["body"]
    every = sorted(rows.all(), key=lambda r: report.natural(r.path))
    parts = [
        f"It is {now.isoformat(timespec='minutes')}. The run belongs to {run.owner}.",
        f"The plan, as a script:\n```\n{as_markdown(index.plan, index.catalog)}```",
        "Where it stands (path, op, name, state):\n" + "\n".join(surroundings.op_line(row) for row in every),
        f"Missed: `{missed.id or missed.path}`, {body.get('miss') or 'late'}.\n{_of_missed(missed, mark)}",
        surroundings.held(history.held(tx, run.job)),
        surroundings.of(world, index.catalog),
    ]
    if body.get("reasons"):
        parts.append(
            "Your last edits were refused, and nothing of them was done:\n"
            + data({"edits": body.get("tried", []), "refused": body["reasons"]}, mark)
        )
    return "\n\n".join(part for part in parts if part)


def _of_missed(row: OpRow, mark: str) -> str:
    """Claim and evidence, as far as they are known."""
    found = [f"What the record says: {row.data.get('error', '')}"]
    if row.data.get("contrary"):
        found.append(f"The evidence that contradicted: {data(row.data['contrary']['event'], mark)}")
    if row.data.get("verdict_reason"):
        found.append(f"The judge's reason: {data(row.data['verdict_reason'], mark)}")
    return "\n".join(found)


async def propose(line: Line, model: str, system: str, told: str) -> Proposed:
    """The agent's edits. Raises NoAnswer."""
    try:
        reply = await line.reply(
            Request(
                model=model, system=system, messages=({"role": "user", "content": told},), tools=(tool(),),
                must_use="propose_edits", max_tokens=8192,
            )
        )  # fmt: skip
    except ModelFailed as fault:
        raise NoAnswer(str(fault), Usage()) from None
    usage = reply.usage
    if reply.stop == "max_tokens":
        raise NoAnswer("its edits were cut off: they are too long", usage)
    given = next((u.input for u in reply.uses if u.name == "propose_edits"), None)
    listed = given.get("edits") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(listed, list):
        raise NoAnswer("it proposed no edits", usage)
    edits = [e for e in listed if isinstance(e, dict)]
    reason = str(given.get("reason") or "").strip()
    if not edits:
        raise NoAnswer(f"it sees nothing to mend: {reason}" if reason else "it sees nothing to mend", usage)
    return Proposed(edits=edits, reason=reason, usage=usage)


def take_edits(
    tx: Transaction,
    site: Site,
    run: str,
    edits: Sequence[Mapping[str, Any]],
    *,
    by: str,
    why: str | None,
    now: datetime,
) -> tuple[list[str], list[dict[str, Any]], list[Outcome]]:
    """All of an agent's edits, or none: the reasons where one cannot stand, else what each changed, as the record has
    it, and what came of it."""
    tx.savepoint("edits")
    refused: list[str] = []
    changes: list[dict[str, Any]] = []
    outcomes: list[Outcome] = []
    for edit in edits:
        if (key := next((k for k in NOT_FOR_AGENTS if k in edit), None)) is not None or "run" in edit:
            refused.append(f"Not done: `{key or 'run'}` is no edit for an agent. Nothing changed.")
            continue
        outcome = take(tx, site, run, Edited(at=now, by=by, edit=normalise(dict(edit)), why=why))
        refused += [r.text for r in outcome.replies if not r.accepted]
        outcomes.append(outcome)
        if outcome.step is not None:
            changes += [e.data["edit"] for e in outcome.step.entries if e.what == "edited"]
    if refused:
        tx.rollback_to("edits")
        return refused, [], []
    tx.release("edits")
    return [], changes, outcomes


def apply(
    tx: Transaction,
    site: Site,
    call: Mapping[str, Any],
    proposed: Proposed,
    by: str,
    now: datetime,
    done: Callable[[Transaction], None],
) -> list[Outcome]:
    """Takes the edits and ends the call, in one transaction."""
    refused, changes, outcomes = take_edits(
        tx, site, call["run"], proposed.edits, by=by, why=proposed.reason or None, now=now
    )
    done(tx)
    tried = list(proposed.edits) if refused else []
    fact = returned(call, now, refused=refused, changes=changes, by=by, why=proposed.reason, tried=tried)
    return [*outcomes, take(tx, site, call["run"], fact)]
