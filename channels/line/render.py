"""A thing as LINE messages, in LINE's own JSON. Pure: the same thing at the same time gives the same messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from channels.base import Card, Choice, Message, Problems, Settled, Status, Thing
from channels.line import buttons
from channels.line.limits import ALT, QUICK, TEXT, faults, leads
from channels.text import MARKS, around, cut, moment, quoted, split, stands

AS_BUTTONS = 5
"""Choices that stand as buttons below a card; up to `QUICK` they are quick replies."""
AS_BUBBLES = 25
"""Choices that stand as buttons in a row of bubbles; more are numbers in the text."""
FIELDS_ASKED = 2
"""Fields that are asked for one after the other; for more there is the page."""
IN_BUBBLE = 1000
"""Characters of a question that stand in its bubble; a longer one is a message before it."""
PROBLEMS_SHOWN = 10
SHORT = 10
"""Characters of a label of which three go in one row."""
IN_ROW = 3
EMPTY = "(no words)"
GREY = "#8c8c8c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A thing as messages. `note`: what does not come as it was meant."""

    messages: tuple[dict[str, Any], ...]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """When it is seen, and in which zone: LINE does not tell its readers'."""

    now: datetime
    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Face:
    """What a card shows, whatever it is of. `small`: lines that stand back; `aside`: what can be done besides."""

    title: str
    text: str
    choices: tuple[Choice, ...]
    params: tuple[tuple[str, str], ...] = ()
    small: tuple[str, ...] = ()
    aside: tuple[Choice, ...] = ()
    image: str | None = None


def shown(thing: Thing, look: Look) -> Shown:
    """A thing in as many messages as it needs."""
    match thing:
        case Card():
            return _faced(_asked(thing, look))
        case Message():
            return _said(thing)
        case Settled():
            return Shown(messages=_texts(_settled(thing, look)))
        case Status():
            return _faced(_status(thing, look))
        case Problems():
            return _faced(_problems(thing))


def plain(thing: Thing, look: Look) -> tuple[dict[str, Any], ...]:
    """A thing as text alone: its choices stand as numbers."""
    match thing:
        case Card():
            return _numbered(_asked(thing, look))
        case Message():
            faces = [_face(one) for one in thing.parts or (thing,)]
            return tuple(message for face in faces for message in _numbered(face))
        case Status():
            return _numbered(_status(thing, look))
        case Problems():
            return _numbered(_problems(thing))
        case Settled():
            return shown(thing, look).messages


def confirm(text: str, actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A short question with its buttons, or words alone."""
    if not actions:
        return {"type": "text", "text": text}
    return _flex(text, _bubble([_text(text)], [_button(action, "secondary") for action in actions]))


# --- what a card shows -----------------------------------------------------------------------------------------------
def _asked(card: Card, look: Look) -> _Face:
    small: list[str] = []
    if card.free and (card.more or card.since or card.place):
        small.append("Answer with a message.")
    if card.fields:
        small.append("Asked for: " + " · ".join(field.label for field in card.fields))
    about = [card.asker] if card.asker else []
    if card.since is not None:
        about.append(f"since {moment(card.since, look.now, look.zone)}")
    if card.until is not None:
        about.append(f"until {moment(card.until, look.now, look.zone)}")
    small += [part for part in (quoted(card.taps), " · ".join(about)) if part]
    return _Face(
        title=card.title,
        text="" if card.text == card.title else card.text,
        choices=card.choices or _form(card),
        params=card.params,
        small=tuple(small),
        aside=(*card.more, *_placed(card.place)),
    )


def _form(card: Card) -> tuple[Choice, ...]:
    """How a form is filled: by answering, field by field, or on its page."""
    if not card.fields:
        return ()
    if len(card.fields) > FIELDS_ASKED and card.place is not None:
        return (Choice(label="Fill in the form", url=card.place[1]),)
    return (Choice(label="Answer", data=f"w:{card.token}"),)


def _face(message: Message) -> _Face:
    return _Face(
        title=message.title,
        text=message.text,
        choices=message.choices,
        image=message.image,
        aside=_placed(message.place),
    )


def _placed(place: tuple[str, str] | None) -> tuple[Choice, ...]:
    return (Choice(label=place[0] or "Open", url=place[1]),) if place is not None else ()


def _said(message: Message) -> Shown:
    messages: list[dict[str, Any]] = []
    notes: list[str] = []
    for one in message.parts or (message,):
        made = _faced(_face(one))
        messages += made.messages
        notes += [made.note] if made.note else []
    for file in message.files:
        notes.append(f"LINE takes no files: `{file.name}` is named only")
        messages += _texts(f"📎 {file.name}" + (f"\n{message.place[1]}" if message.place else ""))
    return Shown(messages=tuple(messages), note=" · ".join(notes) or None)


# --- as LINE shows it ------------------------------------------------------------------------------------------------
def _faced(face: _Face) -> Shown:
    """As a card where there is something to choose or to look at, else as text; as numbers where LINE takes no card."""
    if not face.choices and not face.params and not face.small and not _has_image(face):
        return Shown(messages=_numbered(face))
    if len(face.choices) > AS_BUBBLES:
        return Shown(messages=_with_aside(_numbered(face), face))
    before = _texts(face.text) if len(face.text) > IN_BUBBLE else ()
    card = _card(face, "" if before else face.text)
    found = faults(card)
    if found:
        return Shown(messages=_numbered(face), note=f"its choices stand as numbers in the text: {found[0]}")
    return Shown(messages=(*before, card))


def _card(face: _Face, text: str) -> dict[str, Any]:
    actions = buttons.actions(face.choices)
    body = _body(face, text, listed=buttons.is_long(face.choices))
    aside = _aside(buttons.actions(face.aside))
    hero = {"type": "image", "url": face.image, "size": "full", "aspectMode": "cover", "aspectRatio": "20:13"}
    first = hero if _has_image(face) else None
    if len(actions) <= AS_BUTTONS:
        styled = [_button(action, _style(face.choices, n)) for n, action in enumerate(actions)]
        return _flex(_alt(face), _bubble(body, styled + aside, first))
    if len(actions) <= QUICK:
        message = _flex(_alt(face), _bubble(body, aside, first))
        return message | {"quickReply": {"items": [{"type": "action", "action": action} for action in actions]}}
    rest = [
        _bubble([], [_button(action, "secondary") for action in actions[n : n + AS_BUTTONS]])
        for n in range(0, len(actions), AS_BUTTONS)
    ]
    return _flex(_alt(face), {"type": "carousel", "contents": [_bubble(body, aside, first), *rest]})


def _body(face: _Face, text: str, *, listed: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if face.title:
        parts.append(_text(face.title, weight="bold", size="lg"))
    if text:
        parts.append(_text(text))
    for name, value in face.params:
        row = [_text(name, color=GREY, size="sm", flex=2), _text(value or " ", size="sm", flex=5)]
        parts.append({"type": "box", "layout": "horizontal", "spacing": "md", "contents": row})
    if listed:
        parts.append(_text(buttons.listed(face.choices)))
    for choice in (*buttons.unreachable(face.choices), *buttons.unreachable(face.aside)):
        parts.append(_text(f"{buttons.label(choice)}: {choice.url}"))
    if face.image and not _has_image(face):
        parts.append(_text(face.image))
    return parts + [_text(line, color=GREY, size="sm") for line in face.small]


def _numbered(face: _Face) -> tuple[dict[str, Any], ...]:
    """All of it in words; with choices, these last, to be answered with a number."""
    blocks = [face.title, face.text, "\n".join(f"{name}: {value}" for name, value in face.params)]
    blocks += [face.image or "", "\n".join(face.small)]
    if face.choices:
        blocks.append(buttons.listed(face.choices))
        if any(choice.url is None for choice in face.choices):
            blocks.append("Answer with a number.")
    blocks.append("\n".join(f"{c.label}: {c.url}" for c in face.aside if c.url))
    return _texts("\n\n".join(block for block in blocks if block))


def _with_aside(messages: tuple[dict[str, Any], ...], face: _Face) -> tuple[dict[str, Any], ...]:
    """What can be done besides, as quick replies of the last message: a text has no buttons."""
    quick = [action for action in buttons.actions(face.aside) if action["type"] == "postback"]
    if not quick:
        return messages
    items = [{"type": "action", "action": action} for action in quick[:QUICK]]
    return (*messages[:-1], messages[-1] | {"quickReply": {"items": items}})


def _texts(text: str) -> tuple[dict[str, Any], ...]:
    parts = [part for part in split(text, TEXT) if part.strip()] or [EMPTY]
    return tuple({"type": "text", "text": part} for part in parts)


def _flex(alt: str, contents: dict[str, Any]) -> dict[str, Any]:
    return {"type": "flex", "altText": cut(alt, ALT), "contents": contents}


def _bubble(
    body: Sequence[dict[str, Any]], footer: Sequence[dict[str, Any]], hero: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Parts that hold nothing are left out: LINE takes no empty box, and no null."""
    made: dict[str, Any] = {"type": "bubble"}
    if hero is not None:
        made["hero"] = hero
    if body:
        made["body"] = {"type": "box", "layout": "vertical", "spacing": "md", "contents": list(body)}
    if footer:
        made["footer"] = {"type": "box", "layout": "vertical", "spacing": "sm", "contents": list(footer)}
    return made


def _text(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "wrap": True, **style}


def _button(action: dict[str, Any], style: str) -> dict[str, Any]:
    return {"type": "button", "style": style, "height": "sm", "action": action}


def _aside(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What can be done besides: short ones share a row."""
    short = [one for one in actions if len(one["label"]) <= SHORT]
    rows = [short[n : n + IN_ROW] for n in range(0, len(short), IN_ROW)]
    boxes = [
        {"type": "box", "layout": "horizontal", "contents": [_button(action, "link") for action in row]} for row in rows
    ]
    return boxes + [_button(one, "link") for one in actions if len(one["label"]) > SHORT]


def _style(choices: Sequence[Choice], place: int) -> str:
    """The first stands out, unless another is said to."""
    leading = next((n for n, choice in enumerate(choices) if choice.tone == "first"), 0)
    return "primary" if place == leading and choices[place].tone != "danger" else "secondary"


def _alt(face: _Face) -> str:
    """What stands in a notification and is read aloud."""
    labels = " · ".join(buttons.label(choice) for choice in face.choices)
    return "\n".join(part for part in (face.title, face.text, labels) if part) or EMPTY


def _has_image(face: _Face) -> bool:
    return face.image is not None and face.image.startswith("https://") and leads(face.image)


# --- in words --------------------------------------------------------------------------------------------------------
def _settled(settled: Settled, look: Look) -> str:
    when = f", {moment(settled.at, look.now, look.zone)}" if settled.at is not None else ""
    text = "" if settled.text == settled.title else settled.text
    return _paragraphs(quoted(settled.outcome) + when, settled.reason or "", settled.title, text)


def _status(status: Status, look: Look) -> _Face:
    counted = f" · {status.done} of {status.of}" if status.of else ""
    lines = [
        line if isinstance(line, str) else f"{MARKS[line.tense]} {stands(line, look.now, look.zone)}"
        for line in around(status.lines)
    ]
    head = [status.state + counted]
    head += [f"{name}: {quoted(words)}" for name, words in status.facts]
    head += [f"⚠ {quoted(note)}" for note in status.notes]
    text = _paragraphs("\n".join(head), "\n".join(lines), status.error or "", status.result or "")
    return _Face(title=status.title, text=text, choices=status.choices, aside=_placed(status.place))


def _problems(problems: Problems) -> _Face:
    """LINE is no place to mend a script: what is wrong, and where it can be."""
    more = len(problems.problems) - PROBLEMS_SHOWN
    counted = f"and {more} more" if more > 0 else ""
    text = _paragraphs(*problems.problems[:PROBLEMS_SHOWN], counted)
    return _Face(title=quoted(problems.head), text=text, choices=problems.choices, aside=_placed(problems.place))


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
