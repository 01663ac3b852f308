"""Addressees written literally: people, roles, agents, conversations; how many must answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.domain.catalog import OpSpec
from bot.domain.plan import Op
from bot.language import addressees
from bot.language.check.context import Checking, Written, literal_texts, problem
from bot.language.problems import Problem, did_you_mean
from bot.language.refs import has_refs
from bot.language.types import is_list, is_record


def check(c: Checking) -> Iterator[Problem]:
    for place, op, spec in c.ops():
        yield from _to(c, place, op)
        if op.op == "expect":
            yield from _from(c, place, op)
        yield from _agents(c, place, op, spec)
        yield from _need(c, place, op)
        if spec.channel is not None and c.world.channels is not None and spec.channel not in c.world.channels:
            yield problem(c.name(place), "channel-off", f"`{spec.channel}` is not on here, so `{op.op}` reaches nobody")


def _to(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    spec = c.catalog.get(op.op)
    for to in literal_texts(c, place, "to", op.to):
        if spec is not None and spec.channel is not None and ":" not in to.text and "@" not in to.text:
            continue
        yield from _addressee(c, to)


def _from(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    """`from` may be any sender of a stream; what reads as a person or a role must be one."""
    for sender in literal_texts(c, place, "from", op.from_):
        if sender.text.startswith(("@", "role:")):
            yield from _addressee(c, sender)


def _addressee(c: Checking, to: Written) -> Iterator[Problem]:
    text, span = to.text, to.span
    try:
        (found,) = addressees.find(text, c.world)
    except addressees.AmbiguousAddressee as said:
        yield problem(span, "person-ambiguous", f"`{text}` could be {' or '.join(said.emails)}", "write the email")
        return
    except addressees.UnknownAddressee as said:
        yield _unknown(c, to, said.near)
        return
    if found.kind == "person" and not found.known and not _customer(c, found.ref):
        near = addressees.near_emails(found.ref, c.world)
        yield problem(
            span,
            "unknown-person",
            f"no person here has the address `{text}`",
            did_you_mean(near),
            near[0] if len(near) == 1 else None,
            fix_at=to.inner,
        )
    elif found.kind == "conversation" and c.world.channels is not None:
        channel = found.ref.partition(":")[0]
        if not found.ref.startswith("#") and channel not in c.world.channels:
            yield problem(span, "channel-off", f"`{channel}` is not on here, so `{text}` cannot be reached")


def _unknown(c: Checking, to: Written, near: list[str]) -> Problem:
    text, span = to.text, to.span
    kind, _, rest = text.partition(":")
    if kind == "agent":
        if not c.world.agents:
            return problem(span, "agent-missing", "no agent is configured")
        message = f"no agent here is called `{rest}`"
    elif kind == "role":
        message = f"no role here is called `{rest}`"
    else:
        message = f"no person or role here is called `{text}`"
    mend = did_you_mean(near)
    if mend is not None and len(near) == 1:
        mend = f"{mend[:-1]}{_who(c, near[0])}?"
    code = {"agent": "unknown-agent", "role": "unknown-role"}.get(kind, "unknown-person")
    fix = near[0] if len(near) == 1 and '"' not in near[0] else None
    return problem(span, code, message, mend, fix, fix_at=to.inner)


def _who(c: Checking, near: str) -> str:
    try:
        (found,) = addressees.find(near, c.world)
    except ValueError:
        return ""
    if found.kind == "person":
        return f" ({c.world.name_of(found.ref)}, {found.ref})"
    return f" (a role of {len(c.world.roles.get(found.ref, ()))})" if found.kind == "role" else ""


def _customer(c: Checking, email: str) -> bool:
    known = [(c.world.customer or {}).get("email"), c.world.owner]
    return any(isinstance(k, str) and k.casefold() == email.casefold() for k in known)


def _agents(c: Checking, place: str, op: Op, spec: OpSpec) -> Iterator[Problem]:
    if c.world.agents:
        return
    if spec.agent or (op.op == "ask" and op.to is None and c.node(place, "to") is None):
        yield problem(c.name(place), "agent-missing", f"`{c.spelt(place)}` needs an agent, and no agent is configured")
    elif op.op == "ask":
        for to in literal_texts(c, place, "to", op.to):
            if to.text == "agent":
                yield problem(to.span, "agent-missing", "no agent is configured")
    if op.op == "expect" and "check" in op.params:
        said = "`check` needs an agent that judges, and no agent is configured"
        yield problem(c.span(place, "check"), "agent-missing", said, "`where` filters by an expression instead")
    if op.on_miss == "replan":
        said = "`replan` needs an agent, and no agent is configured"
        yield problem(c.name(place), "agent-missing", said, "write a branch instead")


def _need(c: Checking, place: str, op: Op) -> Iterator[Problem]:
    need = op.params.get("need")
    if need is None or op.op != "ask":
        return
    people = voices(c, op.to)
    counts = [(n, ("need", k)) for k, n in need.items()] if is_record(need) else [(need, ("need",))]
    for count, path in counts:
        if people is not None and isinstance(count, int) and not isinstance(count, bool) and count > people:
            one = "1 person" if people == 1 else f"{people} people"
            yield problem(
                c.span(place, *path),
                "need-too-large",
                f"`need` asks for {count} answers, and {one} can give one",
                f"write `{people}`" if people else None,
            )
    if is_record(need):
        labels = _labels(op.params.get("choices"))
        for choice in need:
            if labels is not None and str(choice) not in labels:
                yield problem(
                    c.span(place, "need"),
                    "need-choice",
                    f"`need` counts `{choice}`, which is no choice",
                    did_you_mean(labels) if len(labels) <= 4 else None,
                )


def voices(c: Checking, to: Any) -> int | None:
    """How many people may answer, None where that is known only later."""
    found: set[str] = set()
    for text in to if is_list(to) else [to]:
        if not isinstance(text, str) or has_refs(text):
            return None
        try:
            (who,) = addressees.find(text, c.world)
        except ValueError:
            return None
        found |= set(c.world.roles[who.ref]) if who.kind == "role" else {f"{who.kind}:{who.ref}"}
        found = {email.removeprefix("person:") for email in found}
    return len(found)


def _labels(choices: Any) -> list[str] | None:
    if not is_list(choices) or has_refs(choices):
        return None
    return [str(c.get("label")) if is_record(c) else str(c) for c in choices]
