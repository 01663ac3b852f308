"""A thing as Telegram messages. Pure: the same thing at the same time gives the same messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from channels.base import Card, Choice, Line, Message, Problems, Settled, Status, Thing
from channels.telegram import keyboard
from channels.telegram.limits import ENTITIES, TEXT, UP_BYTES, faults, leads
from channels.telegram.words import Document, Ink, Inked, Picture, Step, Words, cut, split
from channels.text import MARKS, around, moment, quoted, stands, units

EMPTY = "(no words)"
ASKS = "Your answer"
PROBLEMS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A thing as messages, sent in this order. `note`: what does not come as it was meant."""

    steps: tuple[Step, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """When it is seen, and in which zone: Telegram knows none of its readers."""

    now: datetime
    zone: tzinfo


def shown(thing: Thing, look: Look) -> Shown:
    """A thing in as many messages as it needs; buttons stand below the last."""
    if isinstance(thing, Message):
        return _said(thing)
    parts, note = _fitted(_words(thing, look))
    return Shown(steps=(*_script(thing), *parts), note=note)


def standing(thing: Thing, look: Look) -> Words:
    """A thing in the one message that it is put into."""
    words = _message(thing) if isinstance(thing, Message) else _words(thing, look)
    if keyboard_fault(words) is not None:
        words = words.bare
    kept = cut(words.ink, TEXT)
    return replace(words, ink=Inked(kept.text, kept.spans[:ENTITIES]), asks="")


def keyboard_fault(words: Words) -> str | None:
    """Why its buttons cannot be shown, if they cannot."""
    return next(iter(faults(replace(words, ink=Inked("-")))), None)


def _words(thing: Card | Settled | Status | Problems, look: Look) -> Words:
    match thing:
        case Card():
            return _asked(thing, look)
        case Settled():
            return Words(ink=_settled(thing, look))
        case Status():
            return _chosen(_status(thing, look), thing.choices)
        case Problems():
            return _chosen(_problems(thing), thing.choices)


def _chosen(ink: Inked, choices: Sequence[Choice]) -> Words:
    """A text with choices below it, and numbered in it where their buttons are."""
    words = Words(ink=ink, rows=keyboard.rows(choices), listed=keyboard.listed(choices))
    return replace(words, ink=words.bare.ink) if keyboard.is_numbered(choices) else words


def _fitted(words: Words) -> tuple[tuple[Words, ...], str | None]:
    """A message in as many as its text needs, and what is not as it was meant."""
    why = keyboard_fault(words)
    if why is not None:
        return _parts(words.bare), f"its choices stand as numbers in the text: {why}"
    return _parts(words), None


def _parts(words: Words) -> tuple[Words, ...]:
    """The buttons stand below the last."""
    parts = [part for part in split(words.ink, TEXT) if part.text.strip()] or [Inked(EMPTY)]
    parts = [Inked(part.text, part.spans[:ENTITIES]) for part in parts]
    return (*(Words(ink=part) for part in parts[:-1]), replace(words, ink=parts[-1]))


# --- what is said ----------------------------------------------------------------------------------------------------
def _said(message: Message) -> Shown:
    steps: list[Step] = []
    notes: list[str] = []
    for one in message.parts or (message,):
        if one.image and leads(one.image):
            steps.append(Picture(url=one.image))
        words = _message(one)
        if words.ink.text.strip() or words.rows or not one.image:
            parts, note = _fitted(words)
            steps += parts
            notes += [note] if note else []
    for file in message.files:
        if len(file.content) > UP_BYTES:
            notes.append(f"`{file.name}` is larger than the 50 MB that Telegram takes")
        else:
            steps.append(Document(name=file.name, content=file.content))
    return Shown(steps=tuple(steps), note=" · ".join(notes) or None)


def _message(message: Message) -> Words:
    ink = Ink().put(message.title, "bold").block(message.text, "italic" if message.note else "")
    if message.image and not leads(message.image):
        ink.block(message.image)
    _addresses(ink, message.choices)
    return _chosen(_placed(ink, message.place), message.choices)


# --- what is asked ---------------------------------------------------------------------------------------------------
def _asked(card: Card, look: Look) -> Words:
    words = Words(ink=_card(card, look), listed=keyboard.listed(card.choices))
    if keyboard.is_numbered(card.choices):
        words = replace(words, ink=words.bare.ink)
    # A page is turned by the list at the end of the text, so all of it must be in that one message.
    paged = keyboard.can_page(card.choices) and units(words.ink.text) <= TEXT
    asks = ASKS if keyboard.is_bare(card) else ""
    return replace(words, rows=keyboard.of_card(card, paged=paged), asks=asks)


def _card(card: Card, look: Look) -> Inked:
    ink = Ink().put(card.title, "bold")
    if card.text != card.title:
        ink.block(card.text)
    ink.block("\n".join(f"{name}: {value}" for name, value in card.params), "pre")
    if card.fields:
        ink.block("Asked for: " + " · ".join(field.label for field in card.fields))
    if card.free and not keyboard.is_bare(card):
        ink.block("Reply to this message, or tap Answer.")
    ink.block(quoted(card.taps), "italic")
    about = [card.asker] if card.asker else []
    if card.since is not None:
        about.append(f"since {moment(card.since, look.now, look.zone)}")
    if card.until is not None:
        about.append(f"until {moment(card.until, look.now, look.zone)}")
    ink.block(" · ".join(about))
    _addresses(ink, card.choices)
    return _placed(ink, card.place)


def _settled(settled: Settled, look: Look) -> Inked:
    ink = Ink().put(quoted(settled.outcome), "bold")
    if settled.at is not None:
        ink.put(f", {moment(settled.at, look.now, look.zone)}")
    ink.line(settled.reason or "", "blockquote")
    # What came of it stands first, so that a long question cannot push it out of the one message there is.
    ink.block(settled.title, "bold")
    if settled.text != settled.title:
        ink.block(settled.text)
    return _placed(ink, settled.place)


# --- how it stands ---------------------------------------------------------------------------------------------------
def _status(status: Status, look: Look) -> Inked:
    ink = Ink().put(status.title, "bold")
    counted = f"{status.done} of {status.of}" if status.of else ""
    ink.line(" · ".join(part for part in (status.state, counted) if part))
    for name, words in status.facts:
        ink.line(f"{name}: {quoted(words)}")
    for note in status.notes:
        ink.line(f"⚠ {quoted(note)}")
    lines = around(status.lines)
    if lines:
        ink.put("\n\n")
    for line in lines:
        _line(ink, line, look)
    ink.block(status.error or "")
    ink.block(status.result or "", "pre")
    _addresses(ink, status.choices)
    return _placed(ink, status.place)


def _line(ink: Ink, line: Line | str, look: Look) -> None:
    if isinstance(line, str):
        ink.line(line, "italic")
    else:
        ink.line(f"{MARKS[line.tense]} {stands(line, look.now, look.zone)}", "bold" if line.tense == "now" else "")


def _problems(problems: Problems) -> Inked:
    ink = Ink().put(quoted(problems.head), "bold")
    for problem in problems.problems[:PROBLEMS_SHOWN]:
        ink.block(problem.rstrip("\n"), "pre")
    if (more := len(problems.problems) - PROBLEMS_SHOWN) > 0:
        ink.block(f"and {more} more")
    _addresses(ink, problems.choices)
    return _placed(ink, problems.place)


def _script(thing: Thing) -> tuple[Step, ...]:
    """The script that was read, ahead of what is wrong with it, where it is not what its author sees."""
    if not isinstance(thing, Problems) or thing.script is None:
        return ()
    ink = Ink().put("As it was read:").line(thing.script, "pre").done()
    if units(ink.text) <= TEXT:
        return (Words(ink=ink),)
    return (Document(name="as-read.md", content=thing.script.encode()),)


# --- what they share -------------------------------------------------------------------------------------------------
def _addresses(ink: Ink, choices: Sequence[Choice]) -> None:
    for choice in keyboard.unreachable(choices):
        ink.line(f"{keyboard.label(choice)}: {choice.url}")


def _placed(ink: Ink, place: tuple[str, str] | None) -> Inked:
    if place is not None:
        words, address = place
        if leads(address):
            ink.block(words or address, "text_link", address)
        else:
            ink.block(f"{words}: {address}" if words else address)
    return ink.done()
