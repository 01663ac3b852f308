"""What came in, without what nothing can store or send on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from channels.base import File, Inbound, Sender

_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters: JSON can say them, no encoding has them."""


def cleaned(given: Inbound) -> Inbound:
    """The same with U+FFFD in place of every half of a character. `raw` stays as it came: it is kept escaped."""
    parts = {name: _whole(getattr(given, name)) for name in _SAID}
    return replace(given, **parts)


_SAID = ("ident", "conversation", "sender", "text", "ref", "reply_to", "data", "values", "files")


def _whole(value: Any) -> Any:
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case Mapping():
            return {_whole(key): _whole(one) for key, one in value.items()}
        case list() | tuple():
            return type(value)(_whole(one) for one in value)
        case Sender(ref=ref, name=name, email=email):
            return replace(value, ref=_whole(ref), name=_whole(name), email=_whole(email))
        case File(name=name, ref=ref, type=kind):
            return replace(value, name=_whole(name), ref=_whole(ref), type=_whole(kind))
        case _:
            return value
