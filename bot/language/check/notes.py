"""Notes: what is worth knowing before a run starts, and refuses nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from bot.domain.plan import Op
from bot.language import addressees, cel, durations
from bot.language.check import reading
from bot.language.check.context import Checking, follows, literal_texts, note, streams_of
from bot.language.check.preflight import outward
from bot.language.check.triggers import said
from bot.language.problems import Note, nearest
from bot.language.refs import has_refs
from bot.language.scope import Use, calls_agent
from bot.language.types import is_list, is_record


def notes(c: Checking) -> list[Note]:
    """Everything worth a note, in order of place."""
    found = [
        *_overtaking(c),
        *_many(c),
        *_early_windows(c),
        *_unused(c),
        *_unhandled(c),
        *_odd_choices(c),
        *_streams(c),
        *_holidays(c),
        *_past(c),
        *_reach(c),
        *reading.beside_a_wait(c),
        *reading.unfilled(c),
        *_ungiven(c),
    ]
    return sorted(dict.fromkeys(found), key=lambda note: note.start)


def _ungiven(c: Checking) -> Iterator[Note]:
    """Inputs that a trigger does not give: what it starts would not start."""
    for given in c.plan.inputs or ():
        lacking = [trigger for trigger in c.plan.on if trigger.as_ != given.name]
        if lacking and not given.has_default:
            what = f"nothing gives `{given.name}`, which has no default, where {said(lacking[0])} starts it: people can"
            yield note(c.literal(given.name), "input-ungiven", what)


def _asks_person(op: Op, c: Checking) -> bool:
    return op.op == "ask" and not calls_agent(op, c.catalog.get(op.op))


def _overtaking(c: Checking) -> Iterator[Note]:
    """Effects below a person's ask that do not wait for it, in the same region."""
    for scope in c.scopes.scopes.values():
        asked: dict[str, str] = {}
        open_asks: Counter[str] = Counter()
        after: dict[str, frozenset[str]] = {}
        for op in scope.region.ops:
            awaits = follows(c, op, after)
            if _asks_person(op, c):
                after[op.place] = awaits | {op.place}
                who = asked[op.place] = _who(c, op)
                open_asks[who] += 1
                continue
            after[op.place] = awaits
            starts = list(_effects(c, op)) if asked else []
            if not starts:
                continue
            awaited = Counter(asked[place] for place in awaits)
            free = [who for who, count in open_asks.items() if count > awaited[who]]
            for effect in starts if free else ():
                said = f"starts without waiting for {_and(free)}: {c.scopes.ops[effect].id or c.scopes.ops[effect].op}"
                yield note(c.name(effect), "starts-without-waiting", said)


MANY = 10
"""People who may get something at once without a word about it."""


def _many(c: Checking) -> Iterator[Note]:
    """Where more people than that would get something at once: by one op, or by several that wait for the same."""
    for scope in c.scopes.scopes.values():
        after: dict[str, frozenset[str]] = {}
        reached: dict[frozenset[str], set[str]] = {}
        told: set[frozenset[str]] = set()
        for op in scope.region.ops:
            awaits = follows(c, op, after)
            after[op.place] = awaits | {op.place} if _asks_person(op, c) else awaits
            people = reached.setdefault(awaits, set())
            people |= _people(c, op)
            if len(people) > MANY and awaits not in told:
                told.add(awaits)
                said = f"{len(people)} people get something at once"
                yield note(c.name(op.place), "many-at-once", f"{said}: {c.scopes.ops[op.place].id or op.op}")


def _people(c: Checking, op: Op) -> set[str]:
    """Who gets a card or a message of an op when it starts, or inside it where that is at once."""
    found: set[str] = set()
    if op.op in ("ask", "say"):
        for to in op.to if is_list(op.to) else [op.to]:
            try:
                (who,) = addressees.find(str(to), c.world) if to is not None else (None,)
            except ValueError:
                continue
            if who is not None and who.kind != "agent":
                found |= set(c.world.roles.get(who.ref, ())) if who.kind == "role" else {who.ref}
    elif op.op == "core.map" and is_list(over := op.params.get("over")) and not has_refs(over):
        most = op.params.get("maxConcurrency")
        size = min(len(over), most) if isinstance(most, int) else len(over)
        asks = any(inner.op in ("ask", "say") and has_refs(inner.to) for _, r in op.inner() for inner in r.ops)
        found |= {f"{op.place}[{n}]" for n in range(size)} if asks else set()
    return found


def _effects(c: Checking, op: Op) -> Iterator[str]:
    """The writes and the messages to customers that start when `op` does, or inside it."""
    spec = c.catalog.get(op.op)
    if spec is None:
        return
    if outward(op, spec):
        yield op.place
    for name, region in op.inner():
        if name not in ("onMiss", "onError"):
            for inner in region.ops:
                yield from _effects(c, inner)


def _who(c: Checking, op: Op) -> str:
    names: list[str] = []
    for to in op.to if is_list(op.to) else [op.to]:
        try:
            (who,) = addressees.find(str(to), c.world)
        except ValueError:
            names.append(str(to))
            continue
        names.append(
            c.world.name_of(who.ref) if who.kind == "person" else f"role:{who.ref}" if who.kind == "role" else who.ref
        )
    return " or ".join(names)


def _and(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _early_windows(c: Checking) -> Iterator[Note]:
    """Expectations that are judged against an answer, and whose window starts before it."""
    for place, op, _ in c.ops():
        if op.op != "expect" or op.after or set(streams_of(op)) == {"clock"}:
            continue
        region = c.scopes.scope_of[place].region
        at = c.scopes.position[place]
        above = region.ops[at - 1] if at else None
        if (
            above is None
            or not _asks_person(above, c)
            or any(n.binders[0] == above.place for n in c.scopes.needs(place))
        ):
            continue
        called = above.id or "the ask above"
        follow = (
            f"; `after {above.id}` starts it then"
            if above.id and c.markdown(place)
            else (f'; `after: "{above.id}"` starts it then' if above.id else "")
        )
        yield note(
            c.name(place),
            "window-before-answer",
            f"the window starts at once, before {_who(c, above)} answers `{called}`{follow}",
        )


def _unused(c: Checking) -> Iterator[Note]:
    """Names that nothing below mentions, of ops that do nothing else."""
    used: set[str] = set()
    for place in c.scopes.ops:
        for use in c.scopes.uses(place):
            used.add(use.name.removesuffix("?").partition(".")[0])
            if use.name == "ops" and len(use.path) > 1:
                used.add(str(use.path[1]))
    lasts = {region.ops[-1].place for region, owner in c.plan.regions() if owner is not None and region.ops}
    for place, op, spec in c.ops():
        if op.id is None or op.id in used or not spec.binds or place in lasts:
            continue
        if _only_computes(op, spec.read_only, spec.tool, spec.agent):
            yield note(c.ident(place), "name-never-used", f"`{op.id}` is bound and never used")


def _only_computes(op: Op, read_only: bool, tool: bool, agent: bool) -> bool:
    if tool:
        return read_only
    return (
        op.op
        in ("core.let", "core.transform", "glob", "list", "read", "lines", "chunk", "keep", "drop", "first", "count")
        or agent
    )


def _unhandled(c: Checking) -> Iterator[Note]:
    """Choices that no condition below asks for, where some of the same ask are asked for."""
    mentions: dict[str, list[tuple[str, Use]]] = {}
    for place in c.scopes.ops:
        for use in c.scopes.uses(place):
            if use.how != "after":
                mentions.setdefault(use.name, []).append((place, use))
    for place, op, _ in c.ops():
        choices = op.params.get("choices")
        if op.op != "ask" or op.id is None or not is_list(choices) or has_refs(choices) or op.params.get("need"):
            continue
        asked, otherwise = _compared(c, op.id, mentions.get(op.id, []))
        values = [_bound(choice) for choice in choices]
        left = [v for v in values if isinstance(v, str) and v not in asked]
        if asked and not otherwise and left:
            yield note(
                c.ident(place),
                "choice-unhandled",
                f"nothing below asks for {_and([f'`{v}`' for v in left])} of `{op.id}`",
            )


def _odd_choices(c: Checking) -> Iterator[Note]:
    """Bare choices of a markdown ask that read like a misspelt keyword, or like a second addressee."""
    for place, op, _ in c.ops():
        choices = op.params.get("choices")
        if op.op not in ("ask", "each") or not c.markdown(place) or not is_list(choices):
            continue
        bare = [_bare(c, place, at, choice) for at, choice in enumerate(choices)]
        for at, choice in enumerate(bare):
            if choice is None:
                continue
            span = c.span(place, "choices", at)
            if op.op == "ask" and at == 0 and (meant := _meant(c, op, choice)) is not None:
                said = f"`{choice}` is a choice here, and the question goes to an agent"
                yield note(span, "choice-addressee", f"{said}; `{meant}` asks {choice}")
            if op.op == "ask" and addressees.looks_like(choice):
                said = f"`{choice}` is a choice here: only the first word is whom it asks"
                yield note(span, "choice-addressee", f"{said}; several are `to: [{_to(op)}{choice}]`")
            following = bare[at + 1] if at + 1 < len(bare) else None
            if following is not None and (keyword := _keyword(c, op, choice, following)) is not None:
                what = f"is {_GIVES[keyword]}"
                yield note(
                    (span[0], c.span(place, "choices", at + 1)[1]),
                    "choice-keyword",
                    f"`{choice}` and `{following}` are choices here; `{keyword} {following}` {what}",
                )


_GIVES = {"within": "a window", "after": "what it waits for", "need": "how many must answer", "by": "a window"}


def _bare(c: Checking, place: str, at: int, choice: object) -> str | None:
    """A choice as it stands, where it stands without quotes."""
    start, end = c.span(place, "choices", at)
    return choice if isinstance(choice, str) and end - start == len(choice) else None


def _meant(c: Checking, op: Op, choice: str) -> str | None:
    """The addressee that the first word of an ask to nobody was likely meant to be."""
    if op.to is not None or addressees.looks_like(choice):
        return None
    for spelt in (f"@{choice}", f"agent:{choice}"):
        try:
            addressees.find(spelt, c.world)
        except addressees.AmbiguousAddressee:
            return spelt
        except addressees.UnknownAddressee:
            continue
        return spelt
    return None


def _to(op: Op) -> str:
    to = op.to if is_list(op.to) else [op.to] if op.to else []
    return "".join(f"{one}, " for one in to)


def _keyword(c: Checking, op: Op, choice: str, following: str) -> str | None:
    if choice.casefold().endswith(":") or len(choice) < 4:
        return "within" if choice.casefold() == "in" and _lasts(following) else None
    near = nearest(choice, _GIVES)
    if near == ["within"] and op.within is None and op.by is None:
        return "within" if _lasts(following) else None
    if near == ["after"] and not op.after:
        return "after" if any(other.id == following for _, other, _ in c.ops()) else None
    return "need" if near == ["need"] and following.isdigit() else None


def _lasts(text: str) -> bool:
    return re.fullmatch(r"(?:\d+(?:\.\d+)?[A-Za-z]{1,9})+", text) is not None


def _bound(choice: object) -> object:
    return choice.get("value", choice.get("label")) if is_record(choice) else choice


def _compared(c: Checking, name: str, mentions: list[tuple[str, Use]]) -> tuple[set[str], bool]:
    """The texts that `name` is compared with, and whether the name is used in another way or has an `else`."""
    asked: set[str] = set()
    otherwise = False
    places = {place for place, _ in mentions}
    for place, use in mentions:
        op = c.scopes.ops[place]
        text = op.params.get(use.field)
        if use.how != "cel" or not isinstance(text, str) or len(use.path) > 1:
            otherwise = True
            continue
        compared = _literals(cel.parse(text).tree, name)
        asked |= compared
        otherwise = otherwise or not compared or op.op != "core.if" or _else_of_its_own(op, places)
    return asked, otherwise


def _else_of_its_own(op: Op, chain: set[str]) -> bool:
    """Whether an `if` has an `else` that is more than a further `if` of the same chain."""
    region = op.regions.get("else")
    if region is None:
        return False
    return len(region.ops) != 1 or region.ops[0].op != "core.if" or region.ops[0].place not in chain


def _literals(tree: cel.Tree, name: str) -> set[str]:
    found: set[str] = set()
    stack: list[cel.Tree] = [tree]
    while stack:
        match stack.pop():
            case cel.Binary("==", cel.Ident(n), cel.Literal(str() as v)) | cel.Binary(
                "==", cel.Literal(str() as v), cel.Ident(n)
            ):
                if n == name:
                    found.add(v)
            case cel.Binary("in", cel.Ident(n), cel.ListOf(items)):
                if n == name:
                    found |= {i.value for i in items if isinstance(i, cel.Literal) and isinstance(i.value, str)}
            case cel.Binary("&&" | "||", left, right):
                stack += [left, right]
            case _:
                pass
    return found


def _streams(c: Checking) -> Iterator[Note]:
    for place, op, _ in c.ops():
        if op.op != "expect":
            continue
        for named in literal_texts(c, place, "evidence", op.params.get("evidence")):
            text, span = named.text, named.span
            stream = c.world.streams.get(text)
            if stream is None or stream.chat:
                continue
            if stream.last is None and c.world.channels is not None:
                yield note(span, "stream-silent", f"`{text}` has never sent anything")
            free = op.from_ is None and op.params.get("where") is None
            if free and stream.scope == "workspace" and not (c.world.customer or {}).get("id"):
                yield note(
                    span,
                    "anyone-settles",
                    f"any event on `{text}` by anyone settles this: `from` or `where` would narrow it",
                )


def _holidays(c: Checking) -> Iterator[Note]:
    if not c.world.workspace.holidays:
        return
    for place, op, _ in c.ops():
        for field, text in (("within", op.within), ("by", op.by)):
            if text is None or has_refs(text):
                continue
            try:
                due = (durations.due_within if field == "within" else durations.due_by)(text, c.now, c.world.workspace)
            except ValueError:
                continue
            if durations.is_holiday(due, c.world.workspace):
                day = due.astimezone(durations.zone(c.world.workspace)).date().isoformat()
                yield note(c.span(place, field), "window-on-holiday", f"`{text}` ends on {day}, a holiday")


def _past(c: Checking) -> Iterator[Note]:
    """A clock whose moment is over is done at once."""
    for place, op, _ in c.ops():
        at = op.params.get("at")
        if op.op != "expect" or not isinstance(at, str) or has_refs(at):
            continue
        try:
            due = durations.clock_at(at, c.now, c.world.workspace)
        except ValueError:
            continue
        if due <= c.now:
            yield note(c.span(place, "at"), "clock-past", f"`{at}` is past, so this is done at once")


def _reach(c: Checking) -> Iterator[Note]:
    """Addressees that no channel knows; in rehearsal everyone can be reached."""
    if c.world.channels is None:
        return
    for place, op, _ in c.ops():
        for to in literal_texts(c, place, "to", op.to):
            span = to.span
            try:
                (who,) = addressees.find(to.text, c.world)
            except ValueError:
                continue
            emails = (
                c.world.roles.get(who.ref, ()) if who.kind == "role" else (who.ref,) if who.kind == "person" else ()
            )
            for email in emails:
                person = c.world.person(email)
                # The room reaches everyone of the workspace.
                if person is not None and not c.world.channels & {"web", *person.identities}:
                    yield note(
                        span, "addressee-unreachable", f"{person.name} has no identity on a channel that is on here"
                    )
