"""Ids and tokens, from values that are handed in: the same input gives the same id."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

INDEX = re.compile(r"\[\d+\]")
INDEXES = re.compile(r"\[(\d+)\]")


def place_of(path: str) -> str:
    """The place of an op or region instance: `5[2].1` → `5[].1`."""
    return INDEX.sub("[]", path) if "[" in path else path


def indexes_of(path: str) -> tuple[str, ...]:
    return tuple(INDEXES.findall(path)) if "[" in path else ()


def instance(place: str, indexes: tuple[str, ...]) -> str:
    """The instance of a place under these indexes, outermost first; the place must not hold more of them."""
    if "[" not in place:
        return place
    parts = place.split("[]")
    out = [parts[0]]
    for index, part in zip(indexes, parts[1:], strict=False):
        out.append(f"[{index}]")
        out.append(part)
    return "".join(out)


def below(path: str, top: str) -> bool:
    """Whether a path stands below `top` (an op or a region; "" is the whole run)."""
    if not top:
        return True
    return path.startswith(top) and len(path) > len(top) and path[len(top)] in ".["


def token(secret: str, *parts: str, chars: int = 16) -> str:
    """An unguessable, reproducible token for what the parts name; URL-safe."""
    digest = hmac.new(secret.encode(), "\x1f".join(parts).encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")[:chars]


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def tap_token(secret: str, number: int) -> str:
    """What stands for a delivery outside: its number, signed. Nothing of it is stored."""
    digits, left = "", number
    while left:
        left, digit = divmod(left, 36)
        digits = _DIGITS[digit] + digits
    return f"{digits}.{token(secret, 'tap', str(number))}"


def tapped(secret: str, given: str) -> int | None:
    """The delivery that a token stands for; None where we did not sign it."""
    digits, _, _ = given.partition(".")
    if not given.isascii() or not digits or len(digits) > 12 or any(c not in _DIGITS for c in digits):
        return None
    number = int(digits, 36)
    return number if hmac.compare_digest(tap_token(secret, number).encode(), given.encode()) else None


def digest(text: str) -> str:
    """The content hash under which a text is stored once."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
