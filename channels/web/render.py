"""A delivery as the room shows it: what is said, which buttons and fields it has. Words only; the page escapes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from channels.web.limits import BUTTONS, TEXT_SHOWN, UPLOAD_BYTES

INPUTS = {"number": "number", "date": "date", "time": "time", "text": "text", "file": "file"}
"""Field types with an input of their own; the others are a check box, a list or a line of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form. `kind`: an input's type, or `select`, `checkbox`. `choices`: value and label."""

    name: str
    label: str
    kind: str
    required: bool
    choices: tuple[tuple[str, str], ...] = ()
    least: str | None = None
    most: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message of several that were sent together."""

    title: str
    text: str
    image: str | None
    buttons: tuple[tuple[str, str, str | None], ...]
    """Label, value, address (of a link)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A card or a message. `buttons`: choices by their label, in order; `long`: too many for buttons. `reason`:
    `optional`, `required` or the choices that need one. `params`: name and value of what an approval holds for."""

    title: str
    text: str
    buttons: tuple[str, ...] = ()
    long: bool = False
    fields: tuple[Field, ...] = ()
    reason: str | tuple[str, ...] | None = None
    params: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Name and path of what comes with a message."""

    @property
    def uploads(self) -> int:
        """How many files its form takes."""
        return sum(field.kind == "file" for field in self.fields)

    @property
    def free(self) -> bool:
        """Whether a text answers it."""
        return not self.buttons and not self.fields


def shown(card: Mapping[str, Any], people: tuple[tuple[str, str], ...] = ()) -> Shown:
    """A delivery's card. `people`: email and name of those whom a field of type `person` may name."""
    buttons = tuple(str(_label(b)) for b in card.get("buttons") or ())
    reason = card.get("reason")
    return Shown(
        title=str(card.get("title") or ""),
        text=cut(str(card.get("text") or "")),
        buttons=buttons,
        long=len(buttons) > BUTTONS,
        fields=tuple(_field(f, people) for f in card.get("fields") or ()),
        reason=tuple(map(str, reason)) if isinstance(reason, list) else reason,
        params=tuple((str(k), _value(v)) for k, v in (card.get("params") or {}).items()),
        parts=tuple(_part(m) for m in card.get("messages") or ()),
        files=attached(card),
    )


def attached(card: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The files that come with a message: name and path of each."""
    given = card.get("files") or ()
    found: list[tuple[str, str]] = []
    for one in given if isinstance(given, (list, tuple)) else (given,):
        path = str(one.get("path") or "") if isinstance(one, dict) else str(one)
        name = str(one.get("name") or "") if isinstance(one, dict) else ""
        if path:
            found.append((name or path.rstrip("/").rpartition("/")[2], path))
    return tuple(found)


def cut(text: str, most: int = TEXT_SHOWN) -> str:
    """A text that a page can hold."""
    return text if len(text) <= most else f"{text[:most]}…\n({len(text) - most} characters more)"


def _label(button: Any) -> Any:
    return button.get("label") if isinstance(button, dict) else button


def _value(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _part(message: Mapping[str, Any]) -> Part:
    buttons = tuple(
        (str(_label(b)), str(b.get("value", _label(b))) if isinstance(b, dict) else str(b), _link(b))
        for b in message.get("buttons") or ()
    )
    image = message.get("image")
    return Part(
        title=str(message.get("title") or ""),
        text=cut(str(message.get("text") or "")),
        image=str(image) if image else None,
        buttons=buttons,
    )


def _link(button: Any) -> str | None:
    """Where a button leads; only to the web."""
    url = button.get("url") if isinstance(button, dict) else None
    return url if isinstance(url, str) and url.startswith(("https://", "http://")) else None


def _field(field: Mapping[str, Any], people: tuple[tuple[str, str], ...]) -> Field:
    kind = str(field.get("type", "text"))
    choices: tuple[tuple[str, str], ...] = ()
    if kind == "choice":
        choices = tuple((str(_label(c)), str(_label(c))) for c in field.get("choices") or ())
    elif kind == "person":
        choices = people
    name = str(field["name"])
    least, most = field.get("min"), field.get("max")
    return Field(
        name=name,
        label=str(field.get("label") or name),
        required=bool(field.get("required", True)) and kind != "bool",
        kind="select" if kind in ("choice", "person") else "checkbox" if kind == "bool" else INPUTS.get(kind, "text"),
        choices=choices,
        least=None if least is None else str(least),
        most=None if most is None else str(most),
        hint=_hint(kind, least, most),
    )


def _hint(kind: str, least: Any, most: Any) -> str | None:
    if kind == "file":
        return f"at most {UPLOAD_BYTES // 1048576} MiB"
    if least is None and most is None:
        return None
    unit = " characters" if kind == "text" else ""
    if least is not None and most is not None:
        return f"{least} to {most}{unit}"
    return f"at least {least}{unit}" if least is not None else f"at most {most}{unit}"
