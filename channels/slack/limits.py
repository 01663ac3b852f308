"""What Slack takes at most, and whether a message or a view keeps to it.

Numbers are of Block Kit's reference and the Web API's pages (read 2026-08) where nothing else is said; where those give
none, what was refused in practice. Slack counts characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
POST_TEXT = 40_000
"""Of `text` in a post; more is cut by Slack. Over about 4,000 a text without blocks may come as several messages."""
EDIT_TEXT = 4_000
"""Of `text` in an edit; more is `msg_too_long`."""
TEXT = 3_900
"""Of the `text` we send, so that what was posted can be edited."""
BLOCK_TEXT = 10_000
"""Of all blocks of a message together. Slack gives no number; 11,341 were refused as `msg_blocks_too_long`."""
SECTION = 3_000
HEADER = 150
CONTEXT_ELEMENTS = 10
ACTIONS = 25
BUTTONS = 25
"""Choices that are shown as buttons at most; more are a list to pick from."""
IN_A_ROW = 5
"""Buttons in one line, so that a phone shows them."""
BUTTON = 75
BUTTON_VALUE = 2_000
URL = 3_000
ID = 255
OPTIONS = 100
OPTION = 75
OPTION_VALUE = 75
"""Of an option's value: older pages say 75, newer ones 150."""
OVERFLOW = 5
CHECKS = 10
PLACEHOLDER = 150
CONFIRM_TITLE = 100
CONFIRM_TEXT = 300
CONFIRM_BUTTON = 30
INPUT = 3_000
LABEL = 2_000
VIEW_TITLE = 24
PRIVATE = 3_000
ALT = 2_000
FILE_BYTES = 10 * 1024 * 1024
"""Of a file that is fetched: what `read` takes."""
BODY_BYTES = 1024 * 1024
"""Of what Slack posts to us: a message's payload is far smaller."""

IN_ACTIONS = frozenset(
    ["button", "static_select", "overflow", "checkboxes", "radio_buttons", "datepicker", "timepicker", "users_select"]
)
"""What an actions block holds; with anything else the whole message is `invalid_blocks`."""
INPUTS = frozenset(
    [
        "plain_text_input",
        "number_input",
        "static_select",
        "checkboxes",
        "radio_buttons",
        "datepicker",
        "timepicker",
        "users_select",
    ]
)


def faults(blocks: Sequence[Mapping[str, Any]], *, text: str = "", edit: bool = False) -> list[str]:
    """What Slack would refuse in a message, each as `place: what`; none where it fits."""
    found = list(_blocks(blocks, MESSAGE_BLOCKS))
    if (size := characters(blocks)) > BLOCK_TEXT:
        found.append(f"blocks: {size} characters of text, {BLOCK_TEXT} fit")
    if len(text) > (most := EDIT_TEXT if edit else POST_TEXT):
        found.append(f"text: {len(text)} characters, {most} fit")
    if blocks and not text:
        found.append("text: missing beside blocks")
    if not blocks and not text:
        found.append("text: nothing is said")
    return found


def characters(blocks: Sequence[Mapping[str, Any]]) -> int:
    """How much text blocks hold together."""
    return sum(map(len, _texts(blocks)))


def view_faults(view: Mapping[str, Any]) -> list[str]:
    """What Slack would refuse in a modal or a home tab."""
    found = list(_blocks(view.get("blocks") or (), VIEW_BLOCKS, view=True))
    for key in ("title", "submit", "close"):
        if view.get("type") == "modal" and key in view:
            found += _most(view[key].get("text", ""), VIEW_TITLE, key)
    found += _most(view.get("private_metadata", ""), PRIVATE, "private_metadata", least=0)
    found += _most(view.get("callback_id", ""), ID, "callback_id", least=0)
    if any(b["type"] == "input" for b in view.get("blocks") or ()) and "submit" not in view:
        found.append("submit: missing beside inputs")
    return found


def _blocks(blocks: Sequence[Mapping[str, Any]], most: int, *, view: bool = False) -> Iterable[str]:
    if len(blocks) > most:
        yield f"blocks: {len(blocks)}, {most} fit"
    ids: set[str] = set()
    for n, block in enumerate(blocks):
        place = f"blocks[{n}]"
        if name := block.get("block_id"):
            yield from _most(name, ID, f"{place}.block_id")
            if name in ids:
                yield f"{place}.block_id: stands twice"
            ids.add(name)
        yield from _block(block, place, view=view)


def _block(block: Mapping[str, Any], place: str, *, view: bool) -> Iterable[str]:
    match block.get("type"):
        case "section":
            if not block.get("text") and not block.get("fields"):
                yield f"{place}.text: missing"
            yield from _most(block.get("text", {}).get("text", "x"), SECTION, f"{place}.text")
            if "accessory" in block:
                yield from _elements([block["accessory"]], f"{place}.accessory")
        case "header":
            yield from _most(block["text"]["text"], HEADER, f"{place}.text")
        case "context":
            if not 1 <= len(block["elements"]) <= CONTEXT_ELEMENTS:
                yield f"{place}.elements: {len(block['elements'])}, 1 to {CONTEXT_ELEMENTS} fit"
            for n, element in enumerate(block["elements"]):
                if element["type"] != "image":
                    yield from _most(element["text"], SECTION, f"{place}.elements[{n}]")
        case "actions":
            if not 1 <= len(block["elements"]) <= ACTIONS:
                yield f"{place}.elements: {len(block['elements'])}, 1 to {ACTIONS} fit"
            for n, element in enumerate(block["elements"]):
                if element["type"] not in IN_ACTIONS:
                    yield f"{place}.elements[{n}]: no {element['type']} in an actions block"
            yield from _elements(block["elements"], place)
        case "input":
            if not view:
                yield f"{place}: inputs stand in a view"
            if block["element"]["type"] not in INPUTS:
                yield f"{place}.element: no {block['element']['type']} in an input block"
            yield from _most(block["label"]["text"], LABEL, f"{place}.label")
            yield from _elements([block["element"]], f"{place}.element")
        case "image":
            yield from _most(block["image_url"], URL, f"{place}.image_url")
            yield from _most(block["alt_text"], ALT, f"{place}.alt_text")
        case "rich_text":
            if not block["elements"]:
                yield f"{place}.elements: none"
            for part in block["elements"]:
                if any(e.get("type") == "text" and not e.get("text") for e in part["elements"]):
                    yield f"{place}: an empty text"
        case "divider":
            pass
        case kind:
            yield f"{place}.type: {kind}"


def _elements(elements: Sequence[Mapping[str, Any]], place: str) -> Iterable[str]:
    ids: set[str] = set()
    for n, one in enumerate(elements):
        at = f"{place}[{n}]"
        yield from _most(one.get("action_id", ""), ID, f"{at}.action_id")
        if one.get("action_id", "") in ids:
            yield f"{at}.action_id: stands twice"
        ids.add(one.get("action_id", ""))
        if one["type"] == "button":
            yield from _most(one["text"]["text"], BUTTON, f"{at}.text")
            yield from _most(one.get("value", ""), BUTTON_VALUE, f"{at}.value", least=0)
            yield from _most(one.get("url", ""), URL, f"{at}.url", least=0)
        if one["type"] == "plain_text_input":
            yield from _most(one.get("initial_value", ""), one.get("max_length", INPUT), f"{at}.initial_value", least=0)
            if one.get("max_length", 1) > INPUT:
                yield f"{at}.max_length: {one['max_length']}, {INPUT} fit"
        if "placeholder" in one:
            yield from _most(one["placeholder"]["text"], PLACEHOLDER, f"{at}.placeholder")
        yield from _options(one, at)
        if "confirm" in one:
            asked = one["confirm"]
            yield from _most(asked["title"]["text"], CONFIRM_TITLE, f"{at}.confirm.title")
            yield from _most(asked["text"]["text"], CONFIRM_TEXT, f"{at}.confirm.text")
            for key in ("confirm", "deny"):
                yield from _most(asked[key]["text"], CONFIRM_BUTTON, f"{at}.confirm.{key}")


def _options(one: Mapping[str, Any], at: str) -> Iterable[str]:
    most = {"static_select": OPTIONS, "overflow": OVERFLOW, "checkboxes": CHECKS, "radio_buttons": CHECKS}
    if one["type"] not in most:
        return
    groups = one.get("option_groups")
    sets = [g["options"] for g in groups] if groups else [one.get("options", ())]
    if groups and len(groups) > OPTIONS:
        yield f"{at}.option_groups: {len(groups)}, {OPTIONS} fit"
    for options in sets:
        if not 1 <= len(options) <= most[one["type"]]:
            yield f"{at}.options: {len(options)}, 1 to {most[one['type']]} fit"
        for option in options:
            yield from _most(option["text"]["text"], OPTION, f"{at}.options")
            yield from _most(option["value"], OPTION_VALUE, f"{at}.options.value")


def _most(text: str, most: int, place: str, *, least: int = 1) -> Iterable[str]:
    if not least <= len(text) <= most:
        yield f"{place}: {len(text)} characters, {least} to {most} fit"


def _texts(value: Any) -> Iterable[str]:
    """Every text that a block shows."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
