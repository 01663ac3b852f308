"""Asks: whose they are, what counts as an answer, when enough have answered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bot.domain.errors import OpError
from bot.domain.facts import Answered, Delivered, Returned
from bot.domain.record import OpRow
from bot.domain.values import ErrorValue, normalise, text
from bot.engine import agents, failure, fields, order, scope, waits, words
from bot.engine.turn import Turn, owner_of
from bot.language import durations
from bot.language.addressees import AmbiguousAddressee, UnknownAddressee, find

DELIVERY_LIMIT = timedelta(minutes=15)
"""A card that no platform accepts in this time is a failure (language.md, ask, Window)."""
AGAIN = 3
"""How often a conversation gets its question again for a text that is no answer."""


def start(turn: Turn, row: OpRow) -> None:
    """Puts the question to everyone addressed and waits."""
    op = turn.plan_op(row)
    data = row.data
    to = data.get("edited", {}).get("to", op.to)
    data["to"] = [list(pair) for pair in addressed(turn, row, to)]
    params = {k: scope.filled(turn, row, v) for k, v in op.params.items()}
    data["question"] = text(params["question"]) if "question" in params else composed_question(turn, row)
    if "choices" in params:
        data["choices"] = choices_of(params["choices"])
    for key in ("fields", "need", "notOwner"):
        if key in params:
            data[key] = params[key]
    if "reason" in params:
        data["wants_reason"] = params["reason"]
    waits.window(turn, row, turn.now)
    row.state = "waiting"
    for key in ("reminders", "reminded", "asked", "since", "tries", "again", "undelivered", "reason_given"):
        data.pop(key, None)
    data["answers"] = []
    turn.touch(row)
    put(turn, row)


def put(turn: Turn, row: OpRow) -> None:
    """Sends the cards to whoever has none yet, and puts the agents addressed on work."""
    asked = row.data.setdefault("asked", [])
    for who in voters(turn, row):
        if who in asked:
            continue
        asked.append(who)
        if who.startswith("agent:") or who == "agent":
            agents.ask(turn, row, who)
        else:
            turn.deliver(row, "card", who, card(turn, row), opens=True, n=row.data.get("round", 0))
    people = [w for w in asked if not w.startswith("agent")]
    if not asked:
        raise OpError("there is nobody to ask")
    if people and "since" not in row.data:
        turn.timer(row.path, "delivery", turn.now + DELIVERY_LIMIT)
    elif not people and row.due is None:
        waits.open_window(turn, row, waits.window(turn, row, turn.now))
    turn.record("asked", row, to=asked)


def card(turn: Turn, row: OpRow) -> dict[str, Any]:
    data = row.data
    return {
        "title": "",
        "text": data["question"],
        "buttons": [c["label"] for c in data.get("choices") or []],
        **({"fields": data["fields"]} if data.get("fields") else {}),
        **({"reason": data["wants_reason"]} if data.get("wants_reason") else {}),
        **({"cards": where} if (where := turn.plan_op(row).params.get("cards")) else {}),
    }


def addressed(turn: Turn, row: OpRow, to: Any) -> list[tuple[str, str]]:
    """Who a `to` names, as (kind, ref), each once; the default agent where there is none. OpError names whoever
    turns out to be nobody."""
    value = scope.filled(turn, row, to)
    if to is None:
        return [("agent", "")]
    entries = value if isinstance(value, list) else [value]
    found: dict[tuple[str, str], None] = {}
    for entry in entries:
        if not isinstance(entry, str) or not entry.strip():
            raise OpError(f"`to` names nobody: `{text(entry)}`")
        try:
            for one in find(entry, turn.world):
                if one.kind == "person" and not one.known and one.ref != _customer_email(turn):
                    raise OpError(f"`{entry}` is nobody here")
                found[(one.kind, one.ref)] = None
        except UnknownAddressee as fault:
            raise OpError(f"`{fault.text}` is nobody here") from None
        except AmbiguousAddressee as fault:
            raise OpError(f"`{fault.text}` could be {words.either(fault.emails)}") from None
    if not found:
        raise OpError("`to` names nobody")
    return list(found)


def _customer_email(turn: Turn) -> str | None:
    email = (turn.run.customer or {}).get("email")
    return email if isinstance(email, str) else None


def voters(turn: Turn, row: OpRow) -> list[str]:
    """Everyone who may answer now: emails, conversations, `agent:NAME`, each once, in the order addressed."""
    found: dict[str, None] = {}
    for kind, ref in row.data["to"]:
        if kind == "role":
            found.update(dict.fromkeys(turn.world.roles.get(ref, ())))
        elif kind == "agent":
            found[f"agent:{ref}" if ref else "agent"] = None
        else:
            found[ref] = None
    if row.data.get("notOwner"):
        found.pop(turn.run.owner, None)
    return list(found)


def spelt(row: OpRow) -> list[str]:
    """The addressees as a line names them: a role by its name."""
    return [
        f"role:{ref}" if kind == "role" else (f"agent:{ref}" if ref else "agent") if kind == "agent" else ref
        for kind, ref in row.data.get("to", [])
    ]


def choices_of(value: Any) -> list[dict[str, Any]]:
    """Choices as `{label, value}`, whatever form they were written in."""
    if not isinstance(value, list):
        raise OpError(f"`choices` must be a list; it is `{text(value)}`")
    found: list[dict[str, Any]] = []
    for entry in value:
        if isinstance(entry, dict):
            found.append({"label": text(entry.get("label")), "value": entry.get("value", entry.get("label"))})
        else:
            found.append({"label": text(entry), "value": entry})
    labels = [c["label"].strip() for c in found]
    if not found or len(found) > 100:
        raise OpError(f"there are {len(found)} choices; 1 to 100 can be shown")
    if len(set(labels)) < len(labels):
        raise OpError("two choices read the same")
    return found


def composed_question(turn: Turn, row: OpRow) -> str:
    """The question of an ask inside an `onMiss` that has none: what was missed."""
    region = row.region
    while region and not region.endswith(".onMiss"):
        owner = owner_of(region)
        region = turn.must(owner).region if owner else ""
    if not region:
        return "How shall we go on?"
    missed = turn.must(owner_of(region))
    what = missed.data.get("question") or words.either(missed.data.get("streams") or []) or missed.id or missed.path
    name = missed.id or missed.path
    at = words.clock(missed.ended or turn.now, turn.world, turn.now)
    return f"`{name}` was missed at {at} ({what}). How shall we go on?"


# --- what comes back -----------------------------------------------------------------------------------------------
def delivered(turn: Turn, row: OpRow, fact: Delivered) -> None:
    """The first accepted card opens the window."""
    if row.state != "waiting" or fact.kind != "card":
        return
    if fact.error is not None:
        lost = row.data.setdefault("undelivered", {})
        lost[fact.to] = fact.error
        turn.touch(row)
        who = words.called(fact.to, turn.world)
        if set(lost) >= set(row.data.get("asked", [])) and "since" not in row.data:
            failure.fail(turn, row, f"could not be delivered to {who}: {fact.error}")
        else:
            turn.notice(
                row, f"The question {_quoted(row)} could not be delivered to {who}: {fact.error}", f"lost/{fact.to}"
            )
        return
    if "since" in row.data:
        return
    row.data["since"] = fact.at.isoformat()
    turn.timer(row.path, "delivery", None)
    try:
        waits.open_window(turn, row, waits.window(turn, row, fact.at))
        row.data["reminders"] = _reminders(turn, row, fact.at)
    except OpError as fault:
        failure.fail(turn, row, str(fault), final=True)
        return
    _next_reminder(turn, row)


def _reminders(turn: Turn, row: OpRow, since: datetime) -> list[str]:
    """When whoever has not answered is reminded: the op's `remind`, else the workspace's, at work and in the window."""
    written = scope.filled(turn, row, turn.plan_op(row).params.get("remind", True))
    if written is True:
        written = list(turn.world.workspace.reminders)
    spans = written if isinstance(written, list) else [written] if isinstance(written, str) else []
    workspace = turn.world.workspace
    try:
        dues = {durations.at_work(durations.due_within(text(span), since, workspace), workspace) for span in spans}
    except ValueError as fault:
        raise OpError(str(fault)) from None
    return [due.isoformat() for due in sorted(dues) if row.due is None or due < row.due]


def _next_reminder(turn: Turn, row: OpRow) -> None:
    if row.data["reminders"]:
        turn.timer(row.path, "remind", datetime.fromisoformat(row.data["reminders"][0]))


def remind(turn: Turn, row: OpRow, due: datetime) -> None:
    """Reminds the people who have not answered yet, once a listed moment."""
    left = row.data.get("reminders") or []
    if row.state != "waiting" or not left or datetime.fromisoformat(left[0]) != due:
        return
    row.data["reminders"] = left[1:]
    row.data["reminded"] = row.data.get("reminded", 0) + 1
    turn.touch(row)
    given = {a["by"] for a in row.data["answers"]}
    since = words.clock(waits.since(row), turn.world, turn.now)
    until = f", until {words.clock(row.due, turn.world, turn.now)}" if row.due else ""
    for who in voters(turn, row):
        if who not in given and not who.startswith("agent"):
            told = {"title": f"Waiting on you since {since}{until}", "text": row.data["question"]}
            turn.deliver(row, "reminder", who, told, n=row.data["reminded"])
    turn.record("reminded", row, to=[w for w in voters(turn, row) if w not in given])
    _next_reminder(turn, row)


def answered(turn: Turn, row: OpRow, fact: Answered) -> None:
    """Someone answers: it counts, or they are told why not and what stands."""
    who = fact.by or fact.conversation or ""
    if row.state != "waiting":
        _too_late(turn, row, fact, who)
        return
    voter = _voter(turn, row, fact)
    if voter is None:
        turn.reply(who, f"This question is for {words.names(spelt(row), turn.world)}. Nothing changed.", status=403)
        return
    if row.due is not None and fact.at >= row.due:
        _keep_late(turn, row, fact, who)
        return
    earlier = next((a for a in row.data["answers"] if a["by"] == voter), None)
    if earlier is not None:
        if _same(row, earlier["answer"], fact.value):
            turn.reply(who, f"Your answer `{words.answer(earlier['answer'])}` is in.", accepted=True)
            return
        turn.reply(who, f"You answered `{words.answer(earlier['answer'])}` already. Nothing changed.", status=409)
        return
    try:
        value = answer_value(turn, row, fact)
    except OpError as fault:
        _asks_again(turn, row, fact, str(fault), who)
        return
    if (missing := _reason_missing(row, value, fact.reason)) is not None:
        turn.reply(who, f"{missing} Nothing changed.", status=422)
        return
    turn.reply(who, f"Your answer `{words.answer(value)}` is in.", accepted=True)
    count(turn, row, voter, value, fact.reason, via=fact.via, received=fact.at)


def count(
    turn: Turn,
    row: OpRow,
    voter: str,
    value: Any,
    reason: str | None = None,
    *,
    via: str | None = None,
    received: datetime | None = None,
) -> None:
    """One voice more: settles the ask if that is enough, misses it if no answer can be reached any more. `via`: the
    agent that gives it for them; `received`: where it came before it is applied, its record says so."""
    data = row.data
    at = received or turn.now
    data["answers"].append(
        {"by": voter, "answer": value, "at": at.isoformat(), **({"reason": reason} if reason else {})}
    )
    row.rev += 1
    turn.touch(row)
    came = at.isoformat() if at < turn.now else None
    given = {"via": via} if via else {}
    turn.record("answered", row, by=voter, answer=value, reason=reason, received=came, **given)
    if reason:
        data["reason_given"] = reason
    need = data.get("need")
    if need is None:
        _settle(turn, row, value, by=voter)
        return
    left = [v for v in voters(turn, row) if v not in {a["by"] for a in data["answers"]}]
    given = [{"by": a["by"], "answer": a["answer"]} for a in data["answers"]]
    if isinstance(need, dict):
        tally = {label: sum(text(a["answer"]) == label for a in data["answers"]) for label in _labelled(row, need)}
        wants = _labelled(row, need)
        won = next((label for label in wants if tally[label] >= wants[label]), None)
        if won is not None:
            choice = next((c for c in data.get("choices", []) if text(c["value"]) == won), None)
            _settle(turn, row, choice["value"] if choice else won, by=None)
        elif all(tally[label] + len(left) < wants[label] for label in wants):
            waits.miss(turn, row, "out of reach")
        return
    wanted = len(given) + len(left) if need == "all" else int(need)
    if len(given) >= wanted:
        _settle(turn, row, given, by=None)
    elif len(given) + len(left) < wanted:
        waits.miss(turn, row, "out of reach")


def _labelled(row: OpRow, need: dict[str, Any]) -> dict[str, int]:
    """`need` by the choices' values."""
    by_label = {c["label"]: text(c["value"]) for c in row.data.get("choices", [])}
    return {by_label.get(k, k): int(v) for k, v in need.items()}


def _settle(turn: Turn, row: OpRow, value: Any, *, by: str | None) -> None:
    row.data["claim"] = "claimed"
    if row.data.get("reason_given"):
        row.data["reason"] = row.data["reason_given"]
    who = words.called(by, turn.world) if by else "the quorum"
    turn.settle_cards(row.path, f"{who} answered `{words.answer(value)}`")
    waits.disarm(turn, row)
    call_back(turn, row)
    row.by = by
    order.finish(turn, row, value, by=by)


def call_back(turn: Turn, row: OpRow) -> None:
    """Agents that are still at work on the question are not waited for any more."""
    given = {a["by"] for a in row.data.get("answers", [])}
    if any(who.startswith("agent") and who not in given for who in row.data.get("asked", [])):
        turn.drop_calls(row.path)


def answer_value(turn: Turn, row: OpRow, fact: Answered) -> Any:
    """The answer as it is bound. OpError says what would be one."""
    data = row.data
    if data.get("fields"):
        return fields.read(data["fields"], fact.value, turn.world)
    if data.get("choices"):
        picked = pick(data["choices"], fact.value)
        if picked is None:
            labels = words.ticked(c["label"] for c in data["choices"])
            raise OpError(f"`{text(fact.value)}` is none of the choices: {labels}.")
        return picked["value"]
    value = normalise(fact.value)
    if isinstance(value, str):
        value = value.strip()
        if not value:
            raise OpError("An empty text is no answer.")
    return value


def pick(choices: list[dict[str, Any]], given: Any) -> dict[str, Any] | None:
    """The choice that is meant: by its label, else by its value, else by its label trimmed and case folded."""
    for fits in (
        lambda c: text(given) == c["label"],
        lambda c: (type(given) is type(c["value"]) and given == c["value"]) or text(given) == text(c["value"]),
        lambda c: text(given).strip().casefold() in (c["label"].strip().casefold(), text(c["value"]).casefold()),
    ):
        found = next((c for c in choices if fits(c)), None)
        if found is not None:
            return found
    return None


def _voter(turn: Turn, row: OpRow, fact: Answered) -> str | None:
    """Under which name the giver is addressed, or None."""
    allowed = voters(turn, row)
    if fact.conversation is not None and fact.conversation in allowed:
        return fact.conversation
    if fact.by is None:
        return None
    return next((v for v in allowed if v.casefold() == fact.by.casefold()), None)


def _reason_missing(row: OpRow, value: Any, reason: str | None) -> str | None:
    wanted = row.data.get("wants_reason")
    if reason and reason.strip():
        return None
    if wanted == "required" or (isinstance(wanted, list) and text(value) in wanted):
        return "A reason is needed with this answer."
    return None


def _asks_again(turn: Turn, row: OpRow, fact: Answered, why: str, who: str) -> None:
    if fact.conversation is not None and fact.by is None:
        tries = row.data.get("again", 0)
        if tries < AGAIN:
            row.data["again"] = tries + 1
            turn.touch(row)
            turn.deliver(row, "card", fact.conversation, card(turn, row), n=100 + tries)
            turn.reply(who, why, status=422)
        return
    turn.reply(who, f"{why} Nothing changed; the question is still open.", status=422)


def _too_late(turn: Turn, row: OpRow, fact: Answered, who: str) -> None:
    if row.state == "missed" and row.data.get("miss") == "late" and _voter(turn, row, fact) is not None:
        _keep_late(turn, row, fact, who)
        return
    last = row.data.get("answers", [])
    repeat = next((a for a in last if who and a["by"].casefold() == who.casefold()), None)
    if row.state == "done" and repeat is not None and _same(row, repeat["answer"], fact.value):
        turn.reply(who, f"Your answer `{words.answer(repeat['answer'])}` is in.", accepted=True)
        return
    turn.reply(who, f"{what_stands(turn, row, who)} Nothing changed.")


def _same(row: OpRow, stood: Any, given: Any) -> bool:
    if row.data.get("choices"):
        picked = pick(row.data["choices"], given)
        return picked is not None and picked["value"] == stood
    return text(normalise(given)).strip() == text(stood)


def what_stands(turn: Turn, row: OpRow, reader: str | None = None) -> str:
    """What settled an op, by whom and when; `reader` reads "you"."""
    at = words.clock(row.ended, turn.world, turn.now) if row.ended else ""
    match row.state:
        case "done" if row.by:
            giver = "You" if reader and reader.casefold() == row.by.casefold() else words.called(row.by, turn.world)
            return f"{giver} answered `{words.answer(row.value)}` at {at}."
        case "done":
            givers = [words.called(str(a["by"]), turn.world) for a in row.data.get("answers", [])]
            what = "" if isinstance(row.value, list) else f" for `{words.answer(row.value)}`"
            return f"{', '.join(givers) or 'They'} settled it{what} at {at}."
        case "cancelled":
            return f"This question was withdrawn at {at}."
        case "missed":
            return f"It was missed at {at}."
        case "failed":
            return f"It failed at {at}."
        case "planned":
            return "This question has not been put yet."
        case _:
            return f"It is {row.state}."


def _keep_late(turn: Turn, row: OpRow, fact: Answered, who: str) -> None:
    """A late answer is kept, told to the owner, and answered politely; what would not have been one is not kept."""
    try:
        answer_value(turn, row, fact)
    except OpError as fault:
        turn.reply(who, f"{fault} The window is over, too. Nothing changed.", status=422)
        return
    late = max(fact.at - (row.ended or row.due or fact.at), timedelta())
    entry = {
        "by": who,
        "answer": normalise(fact.value),
        "at": fact.at.isoformat(),
        "late_s": int(late.total_seconds()),
    }
    kept = row.data.get("late", [])
    stands = what_stands(turn, row) if row.state != "waiting" else "The window is over."
    turn.reply(
        who,
        f"Thank you. {stands} Your answer came {words.span(late)} late; it is kept, and "
        f"{words.called(turn.run.owner, turn.world)} is told.",
    )
    if entry in kept:
        return
    row.data["late"] = [*kept, entry]
    turn.touch(row)
    turn.record("late", row, by=who, answer=entry["answer"])
    turn.notice(
        row,
        f"{words.called(who, turn.world)} answered {_quoted(row)} {words.span(late)} late: "
        f"`{words.answer(entry['answer'])}`. It changed nothing; you may accept it while the miss branch has done "
        "nothing.",
        f"late/{len(row.data['late'])}",
    )


def _quoted(row: OpRow) -> str:
    question = row.data.get("question", "")
    return f"“{question if len(question) <= 60 else question[:59] + '…'}”"


def _agent_failed(turn: Turn, row: OpRow, who: str, error: str) -> None:
    """An agent has no answer: where others are asked too they still may, else the attempt has failed."""
    lost = row.data.setdefault("undelivered", {})
    lost[who] = error
    turn.touch(row)
    if set(lost) >= set(row.data.get("asked", [])):
        failure.fail(turn, row, error)
    else:
        turn.notice(
            row,
            f"{who} has no answer to {_quoted(row)}: {error}. The others are still asked.",
            f"lost/{row.attempt}/{who}",
        )


def agent_returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    """An agent's answer: its choices are enforced, asked again twice at most."""
    who = str(fact.extra.get("who", "agent"))
    if row.state != "waiting" or who not in row.data["asked"]:  # it may have been handed over meanwhile
        return
    value = normalise(fact.value)
    error = value.why if isinstance(value, ErrorValue) else fact.error
    if error is not None:
        _agent_failed(turn, row, who, error)
        return
    try:
        answer = _agents_answer(turn, row, value)
    except OpError as fault:
        _agent_again(turn, row, who, text(value), str(fault))
        return
    reason = fact.extra.get("reason")
    count(turn, row, who, answer, str(reason) if reason else None)


def _agents_answer(turn: Turn, row: OpRow, value: Any) -> Any:
    """An agent's answer as it is bound. OpError says what would be one."""
    if row.data.get("choices"):
        picked = pick(row.data["choices"], value)
        if picked is None:
            labels = words.ticked(c["label"] for c in row.data["choices"])
            raise OpError(f"`{text(value)}` is none of the choices {labels}")
        return picked["value"]
    if row.data.get("fields"):
        return fields.read(row.data["fields"], value, turn.world)
    return value.strip() if isinstance(value, str) else value


def _agent_again(turn: Turn, row: OpRow, who: str, said: str, wrong: str) -> None:
    """What an agent said is no answer: it is asked again, twice at most."""
    tries = row.data.setdefault("tries", {})
    tries[who] = tries.get(who, 0) + 1
    turn.touch(row)
    if tries[who] <= 2:
        agents.ask(turn, row, who, said=said, wrong=wrong)
        return
    error = f"{wrong.rstrip('.')}, asked three times"
    if set(row.data.get("asked", [])) - {*row.data.get("undelivered", {}), who}:
        _agent_failed(turn, row, who, error)  # the others are still asked
        return
    waits.disarm(turn, row)
    failure.fail(turn, row, error, final=True)
