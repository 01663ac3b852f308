"""Keyboards below messages, and the taps that never leave the channel: a page turned, a second tap asked for.

Both go by what stands in the tapped message alone, so that they work after a restart as before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from channels.base import Card, Choice
from channels.telegram.limits import leads
from channels.telegram.words import Button, Rows

PAGED_FROM = 26
"""Choices that are too many for one keyboard."""
PAGE = 8
"""Choices on one page."""
LABEL_SHOWN = 40
"""Characters of a label that a telephone shows; of choices with a longer one the words stand in the text."""
SHORT = 16
"""Characters of a label of which two go in one row."""
ONE_A_ROW = 5
"""Choices that have a row of their own, however short they are."""
NUMBERS_A_ROW = 5
YES = "yes, "
BACK = "back"
SURE = "?"
"""Stands before the data of a choice that asks once more."""
_NO = "!"
"""Stands before the data of a choice that was not meant."""
_PAGE = "p:"
_LISTED = re.compile(r"^(\d+)\. (.*)$")


def label(choice: Choice) -> str:
    return " ".join(choice.label.split())


def is_numbered(choices: Sequence[Choice]) -> bool:
    """Whether the choices are listed in the text with their numbers: a label fits on no button, or they are many."""
    return len(choices) >= PAGED_FROM or any(len(label(choice)) > LABEL_SHOWN for choice in choices)


def can_page(choices: Sequence[Choice]) -> bool:
    """Whether choices can come in pages: they are many, and each can be found by its number."""
    if len(choices) < PAGED_FROM:
        return False
    stem = _stem(choices[0].data)
    return all(choice.data == f"{stem}:{n}" and choice.url is None for n, choice in enumerate(choices))


def is_bare(card: Card) -> bool:
    """Whether it is a question and nothing else, such as one field of a form: a reply to it is opened. Telegram lets
    nobody change such a message, so a card that will be settled is none."""
    return card.free and not card.more and card.since is None and card.place is None


def listed(choices: Sequence[Choice]) -> str:
    """The choices with their numbers, a line each."""
    return "\n".join(f"{n}. {label(choice)}" for n, choice in enumerate(choices, 1))


def rows(choices: Sequence[Choice]) -> Rows:
    """Choices as buttons: one a row, two where many are short, numbers where one is long."""
    lost = unreachable(choices)
    if is_numbered(choices):
        return by(NUMBERS_A_ROW, [_button(one, str(n)) for n, one in enumerate(choices, 1) if one not in lost])
    short = len(choices) > ONE_A_ROW and all(len(label(choice)) <= SHORT for choice in choices)
    return by(2 if short else 1, [_button(one, label(one)) for one in choices if one not in lost])


def aside(choices: Sequence[Choice]) -> Rows:
    """What can be done besides answering: three a row."""
    return by(3, [_button(choice, label(choice)) for choice in choices])


def by(columns: int, buttons: Sequence[Button]) -> Rows:
    return tuple(tuple(buttons[n : n + columns]) for n in range(0, len(buttons), columns))


def of_card(card: Card, *, paged: bool) -> Rows:
    """The keyboard of a card: its choices or their first page, `Answer` where words or a form answer, and what else can
    be done."""
    if is_bare(card):
        return ()
    if card.fields or card.free:
        return ((Button("Answer", f"w:{card.token}"),), *aside(card.more))
    if paged:
        sure = any(choice.sure for choice in card.choices)
        labels = [label(choice) for choice in card.choices]
        return page(_stem(card.choices[0].data), labels, 0, sure=sure) + aside(card.more)
    return rows(card.choices) + aside(card.more)


def page(stem: str, labels: Sequence[str], number: int, *, sure: bool) -> Rows:
    """One page of many choices, and the way to the others. `sure`: each asks once more."""
    pages = (len(labels) + PAGE - 1) // PAGE
    first = number * PAGE
    shown = [
        Button(words[:LABEL_SHOWN], f"{SURE if sure else ''}{stem}:{n}")
        for n, words in enumerate(labels[first : first + PAGE], first)
    ]
    turn = (
        Button("◀", f"{_PAGE}{(number - 1) % pages}"),
        Button(f"{number + 1} / {pages}", f"{_PAGE}{number}"),
        Button("▶", f"{_PAGE}{(number + 1) % pages}"),
    )
    return (*by(1, shown), turn)


def is_own(data: str) -> bool:
    """Whether a tap is answered here and brings nothing in."""
    return data.startswith((SURE, _NO, _PAGE))


def turned(message: Mapping[str, Any], data: str) -> tuple[Rows, str] | None:
    """The keyboard that a tap of the channel's own leaves, and what is told to whoever tapped; None where the message
    has no such button (any more)."""
    now = _read(message)
    at = next((n for n, row in enumerate(now) if any(button.data == data for button in row)), None)
    if at is None:
        return None
    if data.startswith(_PAGE):
        return _other_page(message, now, at, int(data.removeprefix(_PAGE)))
    row = now[at]
    tapped = next(button for button in row if button.data == data)
    if data.startswith(SURE):
        meant = data.removeprefix(SURE)
        asked = (Button(YES + tapped.label, meant), Button(BACK, _NO + meant))
        kept = tuple(button for button in row if button is not tapped)
        changed = (*now[:at], *((kept,) if kept else ()), asked, *now[at + 1 :])
        return changed, f"Tap “{YES}{tapped.label}” to make it count."
    meant = data.removeprefix(_NO)
    yes = next((button for button in row if button.data == meant), None)
    if yes is None:
        return None
    again = Button(yes.label.removeprefix(YES), SURE + meant)
    return (*now[:at], (again,), *now[at + 1 :]), "Nothing changed."


def _other_page(message: Mapping[str, Any], now: Rows, at: int, number: int) -> tuple[Rows, str] | None:
    """The labels stand at the end of the text, what comes before their numbers in the buttons."""
    labels: list[str] = []
    for line in reversed(str(message.get("text") or "").split("\n")):
        found = _LISTED.match(line)
        if found is None:
            break
        labels.insert(0, found[2])
    first = now[0][0].data
    if at == 0 or len(labels) < PAGED_FROM or not 0 <= number * PAGE < len(labels):
        return None
    return page(_stem(first.removeprefix(SURE)), labels, number, sure=first.startswith(SURE)) + now[at + 1 :], ""


def _stem(data: str) -> str:
    """What choices have in common: all before their number."""
    return data.rpartition(":")[0]


def _button(choice: Choice, words: str) -> Button:
    if choice.url is not None:
        return Button(words, url=choice.url)
    return Button(words, (SURE if choice.sure else "") + choice.data)


def _read(message: Mapping[str, Any]) -> Rows:
    given = (message.get("reply_markup") or {}).get("inline_keyboard") or ()
    return tuple(
        tuple(Button(str(b.get("text") or ""), str(b.get("callback_data") or ""), b.get("url")) for b in row)
        for row in given
    )


def unreachable(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Those that lead where Telegram lets no button lead: their address stands in the text."""
    return tuple(choice for choice in choices if choice.url is not None and not leads(choice.url))
