"""What we show, as Slack's blocks. Pure: a thing and an instant give one or more posts that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from channels.base import Attached, Card, Choice, Home, Line, Message, Problems, Settled, Status, Thing
from channels.slack import limits
from channels.slack.texts import (
    Block,
    code,
    context,
    fitting,
    link,
    paragraphs,
    plain,
    said,
    section,
    thread,
    when,
    within,
)

PROBLEMS = 10
"""Problems that are shown; the others are in a file."""
LINES = 30
"""Lines of a plan that are all shown; of a longer one what is waited for, and what is next to it."""
WAITING, NEAR = 10, 4
STATES = {
    "waiting": "▸",
    "done": "✓",
    "failed": "✕",
    "cancelled": "✕",
    "paused": "‖",
    "held": "‖",
    "refused": "✕",
}
TENSES = {"past": "✓", "now": "▸", "next": "○"}
NOTHING = "(nothing was said)"
PARAMS = 1_200
"""Characters of what an approval holds for; a longer one is cut, and says so."""
SURE = 80
"""Characters of what is asked once more, where many choices ask."""
CUT = "it was too long for one message and is cut"
IN_A_FILE = "it was too long for one message; the whole is in a file beside it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message. `text` goes beside the blocks; `alone` stands for them where they are refused. `files` go with it.
    `note`: what its reader does not get as meant."""

    text: str
    blocks: tuple[Block, ...] = ()
    alone: str = ""
    files: tuple[Attached, ...] = ()
    note: str | None = None


def posts(thing: Thing, now: datetime) -> tuple[Post, ...]:
    """The messages that a thing is; each fits, in plain text with numbers where its blocks would not."""
    if isinstance(thing, Message) and thing.parts:
        return tuple(post for part in thing.parts for post in posts(part, now))
    made = _post(thing, now)
    alone = within(_words(thing, now, alone=True), limits.TEXT) or NOTHING
    made = replace(made, text=made.text or NOTHING, alone=alone)
    if faults := limits.faults(made.blocks, text=made.text):
        return (bare(made, faults[0]),)
    return (made,)


def bare(post: Post, why: str) -> Post:
    """A message in plain text, its choices numbered: what every reader can be shown. `why`: what did not fit."""
    return replace(post, text=post.alone, blocks=(), note=f"sent as plain text, without buttons: {why}")


def home(given: Home) -> dict[str, Any]:
    """The home tab: what waits on somebody, what they started."""
    blocks: list[Block] = []
    for title, rows, none in (
        ("Waits on you", given.waiting, "Nothing waits on you."),
        ("You started", given.started, "Nothing of yours is running. Send a script here to start one."),
    ):
        blocks.append({"type": "header", "text": plain(title, limits.HEADER)})
        shown = rows[:40]
        blocks += [section(f"• {link(row)}") for row in shown] or context(none)
        if len(rows) > len(shown):
            blocks += context(f"and {len(rows) - len(shown)} more")
    return {"type": "home", "blocks": blocks}


def _post(thing: Thing, now: datetime) -> Post:
    match thing:
        case Card():
            return _card(thing, now)
        case Settled():
            return _settled(thing, now)
        case Status():
            return _status(thing, now)
        case Problems():
            return _problems(thing, now)
        case Message():
            return _message(thing, now)


def _card(card: Card, now: datetime) -> Post:
    params = "\n".join(f"{name}: {value}" for name, value in card.params)
    held = [code(fitting(params, PARAMS))] if params else []
    listed, rows, fits = choices(_answers(card))
    below = [*held, *listed, *context(within(card.taps, 600)), *_with_more(rows, card.more)]
    written = "or reply in this message's thread" if card.free else ""
    since = f"waiting on you since {when(card.since, now)}" if card.since else ""
    until = f"until {when(card.until, now)}" if card.until else ""
    below += context(within(card.asker, 300), since, until, written, link(thread(card.origin)), link(card.place))
    head, whole = paragraphs(card.text, _room(below), title=card.title)
    note = None if whole and fits and len(params) <= PARAMS else CUT
    return Post(text=within(_words(card, now), limits.TEXT), blocks=(*head, *below), note=note)


def _room(below: Sequence[Block]) -> int:
    """Characters that are left for the text above these blocks."""
    return max(500, limits.BLOCK_TEXT - 400 - limits.characters(below))


def _answers(card: Card) -> tuple[Choice, ...]:
    """What is tapped to answer: the choices, or the one that opens the form."""
    if card.choices and not card.fields:
        return card.choices
    return (Choice(label="Answer", data=f"w:{card.token}", tone="first"), *card.choices)


def _settled(card: Settled, now: datetime) -> Post:
    blocks, _ = paragraphs(card.text, 2_000, title=card.title)
    at = when(card.at, now) if card.at else ""
    blocks.append(section(f"*{within(card.outcome, 1_000)}*{' · ' if at else ''}{at}"))
    if card.reason:
        blocks.append(section("\n".join(f"&gt; {line}" for line in within(card.reason, 2_000).splitlines())))
    blocks += context(link(card.place))
    return Post(text=within(_words(card, now), limits.TEXT), blocks=tuple(blocks))


def _status(status: Status, now: datetime) -> Post:
    count = f" · {status.done} of {status.of}" if status.of else ""
    blocks = [section(f"{STATES.get(status.state, '•')} *{within(status.title, 300)}* · {status.state}{count}")]
    if facts := [f"{within(name, 60)}: {within(words, 200)}" for name, words in status.facts[:6]]:
        blocks += context("\n".join(facts))
    blocks += [section(f"⚠️ {within(note, 300)}") for note in status.notes[:5]]
    if len(status.notes) > 5:
        blocks += context(f"and {len(status.notes) - 5} more notes")
    if lines := _plan(status.lines):
        blocks += _lines([line if isinstance(line, str) else _line(line, now) for line in lines])
    if status.error:
        blocks += [section("What went wrong"), code(fitting(status.error, 700))]
    if status.result is not None:
        blocks += [section("Result"), code(fitting(status.result, 1_500))]
    listed, rows, _ = choices(status.choices)
    blocks += [*listed, *rows, *context(link(status.place))]
    return Post(text=within(_words(status, now), limits.TEXT), blocks=tuple(blocks))


def _plan(lines: Sequence[Line]) -> list[Line | str]:
    """The lines that are shown: all of a short plan; of a long one what waits, and what is next to it, counted."""
    if len(lines) <= LINES:
        return list(lines)
    past = [line for line in lines if line.tense == "past"]
    now = [line for line in lines if line.tense == "now"]
    coming = [line for line in lines if line.tense == "next"]
    out: list[Line | str] = []
    if len(past) > NEAR:
        out.append(f"✓ {len(past) - NEAR} steps are done")
    out += past[-NEAR:]
    out += now[:WAITING]
    if len(now) > WAITING:
        out.append(f"▸ and {len(now) - WAITING} more")
    out += coming[:NEAR]
    if len(coming) > NEAR:
        out.append(f"○ and {len(coming) - NEAR} more steps")
    return out


def _line(line: Line, now: datetime) -> str:
    at = f" · {when(line.at, now)}" if line.at and line.tense == "past" else ""
    since = f" since {when(line.at, now)}" if line.at and line.tense == "now" else ""
    until = f", until {when(line.until, now)}" if line.until and line.tense == "now" else ""
    words = within(line.text, 120)
    return f"{TENSES[line.tense]} {f'*{words}*' if line.tense == 'now' else words}{at}{since}{until}"


def _lines(markups: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    part: list[str] = []
    for markup in markups:
        if part and sum(map(len, part)) + len(part) + len(markup) > limits.SECTION:
            blocks.append(section("\n".join(part)))
            part = []
        part.append(markup)
    return [*blocks, section("\n".join(part))]


def _problems(refused: Problems, now: datetime) -> Post:
    blocks, _ = paragraphs(refused.head, 1_000)
    shown, left = [], 4_000
    for problem in refused.problems[:PROBLEMS]:
        if len(problem) > left and shown:
            break
        shown.append(fitting(problem, max(100, left)))
        left -= len(problem)
    if shown:
        blocks.append(code("\n\n".join(shown)))
    if more := len(refused.problems) - len(shown):
        blocks += context(f"and {more} more, in the file `problems.txt`")
    if refused.script is not None and len(refused.script) <= 2_500:
        blocks += [*context("The script as it was read; lines and columns count in it:"), code(refused.script)]
    elif refused.script is not None:
        blocks += context("Lines and columns count in the script as it was read, the file `script.md`")
    listed, rows, _ = choices(refused.choices)
    blocks += [*listed, *rows, *context(link(refused.place))]
    text = within(_words(refused, now), limits.TEXT)
    return Post(text=text, blocks=tuple(blocks), files=_files(refused))


def _message(message: Message, now: datetime) -> Post:
    listed, rows, fits = choices(message.choices)
    below = [*listed, *rows, *context(link(message.place))]
    blocks, whole = paragraphs(message.text, _room(below), title=message.title)
    if message.image:
        alt = fitting(message.title or message.text or "picture", 200)
        blocks.append({"type": "image", "image_url": message.image, "alt_text": alt})
    files = _files(message)
    note = None if fits else CUT
    if not whole:
        files = (*files, Attached(name="message.txt", content=message.text.encode()))
        note = IN_A_FILE
    words = within(_words(message, now), limits.TEXT) or ("with a file" if files else "")
    return Post(text=words, blocks=(*blocks, *below), files=files, note=note)


def _files(thing: Thing) -> tuple[Attached, ...]:
    """What goes beside a message because it cannot stand in it."""
    match thing:
        case Message():
            return thing.files
        case Problems():
            made: list[Attached] = []
            if len(thing.problems) > PROBLEMS or sum(map(len, thing.problems)) > 4_000:
                made.append(Attached(name="problems.txt", content="\n\n".join(thing.problems).encode()))
            if thing.script is not None and len(thing.script) > 2_500:
                made.append(Attached(name="script.md", content=thing.script.encode()))
            return tuple(made)
        case _:
            return ()


# --- choices ---------------------------------------------------------------------------------------------------------
def choices(given: Sequence[Choice]) -> tuple[list[Block], list[Block], bool]:
    """Choices: what of them stands in the body, the rows to tap, and whether every label is shown whole.

    Up to 25 are buttons, up to 100 a list to pick from (those that ask once more in a list of their own, since Slack
    asks for a list as a whole), more are numbers to answer with. Where a label is too long for its place all of them
    are numbers, and the body says what each stands for."""
    fit = limits.BUTTON if len(given) <= limits.BUTTONS else limits.OPTION
    numbered = len(given) > limits.OPTIONS or any(len(one.label) > fit for one in given)
    listed, whole = _numbered(given) if numbered else ([], True)
    labels = [str(n) if numbered else one.label for n, one in enumerate(given, 1)]
    if len(given) > limits.OPTIONS:
        return [*listed, *context("Answer with a number, in this message's thread.")], [], whole
    made = [(label, one, f"c{n}") for n, (label, one) in enumerate(zip(labels, given, strict=True))]
    if len(given) <= limits.BUTTONS:
        asked = limits.CONFIRM_TEXT if len(given) <= limits.IN_A_ROW else SURE
        return listed, _rows([_button(*one, asked) for one in made if one[1].data or one[1].url]), whole
    harmless = [one for one in made if not one[1].sure]
    asking = [one for one in made if one[1].sure]
    said = {one.sure for _, one, _ in asking}
    sure = (asking[0][1].sure or "") if len(said) == 1 else "What is picked here starts at once."
    return listed, _rows([_select(group, ask) for group, ask in ((harmless, ""), (asking, sure)) if group]), whole


def _numbered(given: Sequence[Choice]) -> tuple[list[Block], bool]:
    lines = "\n".join(f"{n}. {one.label}" for n, one in enumerate(given, 1))
    return paragraphs(lines, 3_500)


def _rows(elements: Sequence[Block]) -> list[Block]:
    step = limits.IN_A_ROW
    return [{"type": "actions", "elements": list(elements[at : at + step])} for at in range(0, len(elements), step)]


def _button(label: str, one: Choice, ident: str, asked: int = limits.CONFIRM_TEXT) -> Block:
    made: Block = {"type": "button", "text": plain(label, limits.BUTTON), "action_id": ident}
    if one.url:
        made["url"] = one.url
    if one.data:
        made["value"] = one.data
    if one.tone:
        made["style"] = {"first": "primary", "danger": "danger"}[one.tone]
    return made | ({"confirm": _asked(fitting(one.sure, asked), one.label)} if one.sure else {})


def _select(group: Sequence[tuple[str, Choice, str]], sure: str) -> Block:
    options = [{"text": plain(label, limits.OPTION), "value": one.data} for label, one, _ in group]
    made: Block = {
        "type": "static_select",
        "action_id": group[0][2],
        "placeholder": plain("Pick one…", limits.PLACEHOLDER),
        "options": options,
    }
    return made | ({"confirm": _asked(sure, "Yes")} if sure else {})


def _asked(sure: str, yes: str) -> Block:
    return {
        "title": plain("Once more", limits.CONFIRM_TITLE),
        "text": plain(sure, limits.CONFIRM_TEXT),
        "confirm": plain(yes, limits.CONFIRM_BUTTON),
        "deny": plain("Back", limits.CONFIRM_BUTTON),
    }


def _with_more(rows: list[Block], more: Sequence[Choice]) -> list[Block]:
    """What can be done besides answering: one quiet menu at the end of the choices, or quiet buttons below them."""
    if not more:
        return rows
    if not 2 <= len(more) <= limits.OVERFLOW or any(len(one.label) > limits.OPTION or one.url for one in more):
        return [*rows, *_rows([_button(fitting(o.label, limits.BUTTON), o, f"m{n}") for n, o in enumerate(more)])]
    options = [{"text": plain(one.label, limits.OPTION), "value": one.data} for one in more]
    menu: Block = {"type": "overflow", "action_id": "more", "options": options}
    if rows and len(rows[-1]["elements"]) < limits.IN_A_ROW:
        return [*rows[:-1], rows[-1] | {"elements": [*rows[-1]["elements"], menu]}]
    return [*rows, *_rows([menu])]


# --- in plain words --------------------------------------------------------------------------------------------------
def _words(thing: Thing, now: datetime, *, alone: bool = False) -> str:
    """A thing in words: what a notification and a screen reader show. `alone`: nothing else is there, so choices have
    numbers to answer with."""
    match thing:
        case Card():
            parts = [thing.title, thing.text, *(f"{name}: {value}" for name, value in thing.params)]
            parts += [_said_choices(thing.choices, alone)]
            parts += ["Answer in this message's thread."] if thing.free else []
            parts += [thing.taps, thing.asker, f"until {said(thing.until, now)}" if thing.until else ""]
        case Settled():
            at = f" at {said(thing.at, now)}" if thing.at else ""
            parts = [thing.title, thing.text, f"{thing.outcome}{at}", thing.reason or ""]
        case Status():
            count = f", {thing.done} of {thing.of}" if thing.of else ""
            waits = [line.text for line in thing.lines if line.tense == "now"][:WAITING]
            parts = [f"{thing.title}: {thing.state}{count}", *waits, thing.error or "", thing.result or ""]
        case Problems():
            parts = [thing.head, *thing.problems[:PROBLEMS]]
            if (more := len(thing.problems) - PROBLEMS) > 0:
                parts.append(f"and {more} more")
        case Message():
            parts = [thing.title, thing.text, _said_choices(thing.choices, alone)]
            parts += [_words(part, now, alone=alone) for part in thing.parts]
    return "\n".join(part for part in (*parts, _said_place(thing.place)) if part.strip())


def _said_choices(given: Sequence[Choice], alone: bool) -> str:
    if not given:
        return ""
    if not alone:
        return " / ".join(one.label for one in given)
    lines = [f"{n}. {one.label}{f': {one.url}' if one.url else ''}" for n, one in enumerate(given, 1)]
    return "\n".join(("Answer with a number, in this message's thread:", *lines))


def _said_place(place: tuple[str, str] | None) -> str:
    return f"{place[0]}: {place[1]}" if place else ""
