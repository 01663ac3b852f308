"""Choices as LINE's buttons and quick replies, and a second tap for those with consequences.

A message on LINE cannot be changed, so a choice that asks once more brings all that is needed for the question back
with its first tap; nothing is remembered in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from channels.base import Choice
from channels.line.limits import DATA, DISPLAYED, LABEL, leads
from channels.text import cut, graphemes

YES = "yes, "
BACK = "back"
_SURE = "?"
_NO = "!"


def label(choice: Choice) -> str:
    return " ".join(choice.label.split())


def is_long(choices: Sequence[Choice]) -> bool:
    """Whether a label fits on no button, so that the buttons are numbered and the words stand in the text."""
    return any(len(graphemes(label(choice))) > LABEL for choice in choices)


def listed(choices: Sequence[Choice]) -> str:
    """The choices with their numbers, a line each."""
    return "\n".join(
        f"{n}. {label(choice)}" + (f": {choice.url}" if choice.url else "") for n, choice in enumerate(choices, 1)
    )


def actions(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """What a tap on each does. Of those whose address LINE takes for no button, nothing: it stands in the text."""
    long = is_long(choices)
    return [
        _action(choice, str(n) if long else label(choice))
        for n, choice in enumerate(choices, 1)
        if choice.url is None or leads(choice.url)
    ]


def unreachable(choices: Sequence[Choice]) -> list[Choice]:
    return [choice for choice in choices if choice.url is not None and not leads(choice.url)]


def postback(words: str, data: str, shown: str) -> dict[str, Any]:
    return {"type": "postback", "label": words, "data": data, "displayText": cut(shown, DISPLAYED)}


def is_own(data: str) -> bool:
    """Whether a tap is answered here and brings nothing in."""
    return data.startswith((_SURE, _NO))


def asked(data: str) -> tuple[str, list[dict[str, Any]]]:
    """What is said to a tap of the channel's own, and the buttons below it."""
    if data.startswith(_NO):
        return "Nothing changed.", []
    meant, _, rest = data.removeprefix(_SURE).partition("\n")
    words, _, sure = rest.partition("\n")
    yes = YES + words
    if len(graphemes(yes)) > LABEL:
        yes = YES.rstrip(", ")
    return sure or f"“{words}”: sure?", [postback(yes, meant, yes), postback(BACK, _NO + meant, BACK)]


def _action(choice: Choice, words: str) -> dict[str, Any]:
    if choice.url is not None:
        return {"type": "uri", "label": words, "uri": choice.url}
    if choice.sure is None:
        return postback(words, choice.data, label(choice))
    data = f"{_SURE}{choice.data}\n{cut(label(choice), 60)}\n{' '.join(choice.sure.split())}"
    return postback(words, cut(data, DATA), label(choice))
