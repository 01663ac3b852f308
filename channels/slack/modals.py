"""Forms as Slack's modals: what a form looks like there, and what comes back of one that was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from channels.base import Form, FormField
from channels.slack import limits
from channels.slack.texts import Block, code, paragraphs, plain, section, within

FORM = "waiton:form"
SCRIPT = "waiton:script"
WAIT = "waiton:wait"
SCRIPT_FIELD = "script"
PARTS = 12
"""Fields that one long text is divided into at most."""
PART = "part:"
_EXCERPT = re.compile(r"^\s*\d* \| ", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_TIME = re.compile(r"\d{2}:\d{2}\Z")


class Person(str):
    """A Slack id that was picked in a form, where an address is meant."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a form was opened, and what goes back with it."""

    data: str = ""
    conversation: str = "slack:"
    ref: str | None = None


def modal(form: Form, origin: Origin) -> dict[str, Any]:
    """A form as a view; what it was opened for comes back with it."""
    blocks: list[Block] = []
    if len(form.title) > limits.VIEW_TITLE:
        blocks += paragraphs("", 400, title=form.title)[0]
    if form.text.strip():
        blocks += [code(form.text[:6_000])] if _EXCERPT.search(form.text) else paragraphs(form.text, 8_000)[0]
    alone = sum(field.kind == "text" for field in form.fields) == 1
    held = _held(form.fields)
    fields = [block for field in form.fields for block in _field(field, form.values.get(field.name), alone, held)]
    blocks = [*blocks, *fields][: limits.VIEW_BLOCKS] or [section(within(form.title, 300) or "Send?")]
    return _view(FORM, form.title, blocks, origin, submit=form.submit, held=held)


def script(conversation: str, text: str = "") -> dict[str, Any]:
    """The form that a script is written into."""
    blocks = [
        {
            "type": "input",
            "block_id": SCRIPT_FIELD,
            "label": plain("Script", limits.LABEL),
            "hint": plain("Markdown or JSON. A longer one: drop it as a file into a message that names me.", 2_000),
            "element": _text(f"{PART}0", text[: limits.INPUT], multiline=True),
        }
    ]
    return _view(SCRIPT, "Run a script", blocks, Origin(conversation=conversation), submit="Run")


def skeleton() -> dict[str, Any]:
    """What stands there until the form is known: the time in which one can be opened is short."""
    return _view(WAIT, "One moment", [section("It is being put together…")], Origin())


def told(title: str, text: str) -> dict[str, Any]:
    """A view that says something, in place of a form that there is not."""
    return _view(WAIT, title, [section(within(text, 2_900))], Origin())


def origin(view: Mapping[str, Any]) -> Origin:
    """Where a view was opened."""
    kept = _kept(view)
    return Origin(str(kept.get("d") or ""), str(kept.get("c") or "slack:"), kept.get("r"))


def values(view: Mapping[str, Any]) -> dict[str, Any]:
    """What is in the fields of a view that was sent, by name: text as it was written, a box as true or false, a list's
    value, a person's Slack id; a field that is empty is not there."""
    found: dict[str, Any] = {}
    pieces: dict[str, list[tuple[int, str]]] = {}
    long: Mapping[str, list[str]] = _kept(view).get("v") or {}
    for block, elements in ((view.get("state") or {}).get("values") or {}).items():
        for action, given in elements.items():
            if action.startswith(PART):
                number = int(action.removeprefix(PART))
                name = block.removesuffix(f"~{number}") if number else block
                pieces.setdefault(name, []).append((number, given.get("value") or ""))
            elif (value := _value(given)) is not None:
                found[block] = _whole(long.get(block), value)
    for name, texts in pieces.items():
        if joined := "\n".join(text for _, text in sorted(texts)):
            found[name] = joined
    return found


def answer(view: Mapping[str, Any], problems: Mapping[str, str]) -> dict[str, Any] | None:
    """What goes back for a form that was sent: what is wrong with which field; what concerns none of them stands at
    the first, and alone where there are no fields. None where nothing is wrong."""
    inputs = [block["block_id"] for block in view.get("blocks") or () if block.get("type") == "input"]
    if not problems:
        return None
    if not inputs:
        return {"response_action": "update", "view": told("Not sent", " ".join(problems.values()))}
    shown: dict[str, str] = {}
    for name, words in problems.items():
        place = name if name in inputs else inputs[0]
        shown[place] = f"{shown[place]} {words}" if place in shown else words
    return {"response_action": "errors", "errors": shown}


def _kept(view: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return json.loads(view.get("private_metadata") or "{}")
    except ValueError:
        return {}


def _view(
    callback: str, title: str, blocks: list[Block], origin: Origin, *, submit: str = "", held: Any = None
) -> dict[str, Any]:
    kept = {"d": origin.data, "c": origin.conversation, "r": origin.ref} | ({"v": held} if held else {})
    made: dict[str, Any] = {
        "type": "modal",
        "callback_id": callback,
        "title": plain(title.strip() or "Waiton", limits.VIEW_TITLE),
        "close": plain("Close", limits.VIEW_TITLE),
        "blocks": blocks,
        "private_metadata": json.dumps(kept),
    }
    return made | ({"submit": plain(submit, limits.VIEW_TITLE)} if submit else {})


def _field(field: FormField, value: str | None, alone: bool, held: Mapping[str, list[str]]) -> Iterator[Block]:
    if field.kind == "file":
        yield section(f"*{within(field.label, 300)}*: files go by the link in the card.")
        return
    if field.kind == "text":
        yield from _long_text(field, value or "", alone)
        return
    yield _input(field, field.name, _element(field, value or "", held))


def _long_text(field: FormField, value: str, alone: bool) -> Iterator[Block]:
    """A text; one that is longer than a field in several, divided at line ends."""
    many = _divided(value)
    if len(many) > PARTS or any(len(piece) > limits.INPUT for piece in many):
        yield section(f"*{within(field.label, 300)}*: it is too long to be changed here. Send it anew, as a file.")
        return
    for n, piece in enumerate(many):
        element = _text(f"{PART}{n}", piece, multiline=alone or "\n" in value)
        if len(many) == 1:
            element |= _lengths(field)
        label = field.label if len(many) == 1 else f"{field.label}, part {n + 1} of {len(many)}"
        yield _input(field, f"{field.name}~{n}" if n else field.name, element, label=label, first=not n)


def _divided(value: str) -> list[str]:
    """A text in pieces that each fit into a field, unless a line alone does not."""
    first, *rest = value.split("\n")
    pieces = [first]
    for line in rest:
        if len(pieces[-1]) + 1 + len(line) <= limits.INPUT:
            pieces[-1] += f"\n{line}"
        else:
            pieces.append(line)
    return pieces


def _lengths(field: FormField) -> Block:
    least, most = (int(n) if n and n.isdigit() else None for n in (field.least, field.most))
    made: Block = {} if least is None else {"min_length": min(least, limits.INPUT)}
    return made | ({"max_length": min(most, limits.INPUT)} if most else {})


def _input(field: FormField, name: str, element: Block, *, label: str = "", first: bool = True) -> Block:
    made: Block = {
        "type": "input",
        "block_id": name,
        "label": plain(label or field.label or name, limits.LABEL),
        "element": element,
        "optional": not (field.required and first and field.kind != "bool"),
    }
    return made | ({"hint": plain(field.hint, limits.LABEL)} if field.hint else {})


def _text(action: str, value: str, *, multiline: bool) -> Block:
    made: Block = {"type": "plain_text_input", "action_id": action, "multiline": multiline}
    return made | ({"initial_value": value} if value else {})


def _held(fields: Iterable[FormField]) -> dict[str, list[str]]:
    """The values of lists that are too long for an option: they go along with the view, if they fit there."""
    long = {
        field.name: [value for value, _ in field.choices]
        for field in fields
        if any(len(value) > limits.OPTION_VALUE for value, _ in field.choices)
    }
    return long if len(json.dumps(long)) <= limits.PRIVATE - 500 else {}


def _whole(held: list[str] | None, value: Any) -> Any:
    """A picked value; of a list that was held, what its number stands for."""
    return held[int(value)] if held and isinstance(value, str) and value.isdigit() and int(value) < len(held) else value


def _element(field: FormField, value: str, held: Mapping[str, list[str]]) -> Block:
    match field.kind:
        case "number":
            made: Block = {"type": "number_input", "action_id": "number", "is_decimal_allowed": True}
            bounds = {"min_value": field.least, "max_value": field.most, "initial_value": value or None}
            return made | {key: bound for key, bound in bounds.items() if bound is not None}
        case "date":
            return {"type": "datepicker", "action_id": "date"} | ({"initial_date": value} if _DAY.match(value) else {})
        case "time":
            return {"type": "timepicker", "action_id": "time"} | ({"initial_time": value} if _TIME.match(value) else {})
        case "bool":
            box = {"text": plain("Yes", limits.OPTION), "value": "true"}
            made = {"type": "checkboxes", "action_id": "bool", "options": [box]}
            return made | ({"initial_options": [box]} if value == "true" else {})
        case "choice" | "person" if 1 <= len(field.choices) <= limits.OPTIONS and (field.name in held or _short(field)):
            named = [str(n) if field.name in held else one for n, (one, _) in enumerate(field.choices)]
            options = [
                {"text": plain(label, limits.OPTION), "value": name}
                for name, (_, label) in zip(named, field.choices, strict=True)
            ]
            first = [option for option, (one, _) in zip(options, field.choices, strict=True) if one == value]
            made = {"type": "static_select", "action_id": "pick", "options": options}
            return made | ({"initial_option": first[0]} if first else {})
        case "person":
            return {"type": "users_select", "action_id": "person"}
        case _:
            return _text(f"{PART}0", value[: limits.INPUT], multiline=False)


def _short(field: FormField) -> bool:
    return all(0 < len(value) <= limits.OPTION_VALUE for value, _ in field.choices)


def _value(given: Mapping[str, Any]) -> Any:
    match given.get("type"):
        case "checkboxes":
            return bool(given.get("selected_options"))
        case "static_select":
            return (given.get("selected_option") or {}).get("value")
        case "datepicker":
            return given.get("selected_date")
        case "timepicker":
            return given.get("selected_time")
        case "users_select":
            return Person(given["selected_user"]) if given.get("selected_user") else None
        case _:
            return given.get("value") or None
