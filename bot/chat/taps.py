"""What a button carries: short, opaque, and nothing about who may press it.

`w:TOKEN` is a card's form or free text, `w:TOKEN:3` its fourth choice, `w:TOKEN:not` one of the things that can be done
besides; of a message that a script sent, `w:TOKEN:1.0` is the first button of its second part; `s:…` is about a script
that was pasted and has not started."""

from __future__ import annotations

from dataclasses import dataclass

MORE = {"not": "Not mine", "hand": "Hand over", "later": "Later"}
"""What every card has besides its choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """Of a delivery (`token`): which choice, or which word of `MORE`; neither opens its form."""

    token: str
    choice: int | None = None
    part: int | None = None
    more: str | None = None


def data(token: str, choice: int | None = None, *, part: int | None = None, more: str | None = None) -> str:
    """What a button of a delivery carries."""
    if more is not None:
        return f"w:{token}:{more}"
    if choice is None:
        return f"w:{token}"
    return f"w:{token}:{choice}" if part is None else f"w:{token}:{part}.{choice}"


def read(given: str) -> Tap | None:
    """What was tapped; None where it is none of ours."""
    kind, _, rest = given.partition(":")
    if kind != "w" or not rest:
        return None
    token, found, what = rest.partition(":")
    if not found:
        return Tap(token=token)
    if what in MORE:
        return Tap(token=token, more=what)
    part, dotted, choice = what.rpartition(".")
    if not what.isascii() or not choice.isdigit() or (dotted and not part.isdigit()) or len(what) > 8:
        return None
    return Tap(token=token, choice=int(choice), part=int(part) if dotted else None)
