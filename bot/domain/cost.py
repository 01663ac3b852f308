"""What agents cost: tokens as the model counted them, prices, and what work will cost before it is begun.

Money is in millionths of a US dollar, so that sums are exact. Prices are those of the provider's published list for
the models named here (USD a million tokens); settings say those of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

MICRO = 1_000_000
CHARS_A_TOKEN = 4
"""Characters of English text in a token, about: an estimate is made with it, never a bill."""
OVERHEAD_TOKENS = 700
"""What an agent is told besides its prompt: who it is, its tools."""
ANSWER_TOKENS = 300
"""What an answer is reckoned with before it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD a million tokens: of what is sent, what comes back, what is put into the cache and read from it."""

    input: float
    output: float
    cache_write: float
    cache_read: float


def price(input: float, output: float, cache_write: float | None = None, cache_read: float | None = None) -> Price:
    """A price; a cache costs a quarter more to write than plain input and a tenth of it to read, unless it is said."""
    return Price(
        input=input,
        output=output,
        cache_write=input * 1.25 if cache_write is None else cache_write,
        cache_read=input * 0.1 if cache_read is None else cache_read,
    )


PRICES: Mapping[str, Price] = {
    "claude-opus-4-5": price(5, 25),
    "claude-opus-4-6": price(5, 25),
    "claude-sonnet-4-5": price(3, 15),
    "claude-sonnet-4-6": price(3, 15),
    "claude-haiku-4-5": price(1, 5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What calls used. `input`, `output`, `written` (to the cache) and `cached` (read from it) are tokens; `usd`
    millionths of a dollar; `unpriced` calls of models whose price is not known, which `usd` leaves out."""

    calls: int = 0
    input: int = 0
    output: int = 0
    written: int = 0
    cached: int = 0
    usd: int = 0
    unpriced: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)})

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.written + self.cached


def used(known: Price | None, *, input: int, output: int, written: int = 0, cached: int = 0) -> Usage:
    """One call's usage, at its price."""
    usd = 0
    if known is not None:
        # A price a million tokens is as many millionths of a dollar a token.
        usd = round(
            input * known.input + output * known.output + written * known.cache_write + cached * known.cache_read
        )
    return Usage(
        calls=1, input=input, output=output, written=written, cached=cached, usd=usd, unpriced=int(known is None)
    )


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """The price of a model: the settings' (`own`), else the list's; a dated name is its model (`…-20251001`)."""
    for known in (own, PRICES):
        if model in known:
            return known[model]
        stem, _, date = model.rpartition("-")
        if date.isdigit() and len(date) == 8 and stem in known:
            return known[stem]
    return None


def estimate(known: Price, calls: int, prompt_chars: int) -> int:
    """What so many calls will cost at least, in millionths of a dollar: `prompt_chars` of all prompts together. What
    agents read while at work is not known before."""
    return round(
        (calls * OVERHEAD_TOKENS + prompt_chars / CHARS_A_TOKEN) * known.input + calls * ANSWER_TOKENS * known.output
    )


def dollars(usd: int) -> str:
    """`$0.41`; what is below a cent with as many digits as show it."""
    amount = usd / MICRO
    return (
        f"${amount:,.2f}" if amount >= 0.01 or usd == 0 else f"${amount:.2g}" if amount >= 0.0001 else "under $0.0001"
    )


def at_most(flight: Mapping[str, Any]) -> str:
    """What a pre-flight says of agents: `5 calls at most, about $0.02`."""
    count = flight["agent_calls"]
    usd = f", about {dollars(round(flight['agent_usd'] * MICRO))}" if flight.get("agent_usd") else ""
    return f"{count} call{'' if count == 1 else 's'} at most{usd}"


def report(usage: Usage) -> dict[str, int | float]:
    """As records and the API give it: `agent_calls`, `tokens`, their kinds, `usd`, and how many calls have no price."""
    found: dict[str, int | float] = {
        "agent_calls": usage.calls,
        "tokens": usage.tokens,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_write_tokens": usage.written,
        "cache_read_tokens": usage.cached,
        "usd": usage.usd / MICRO,
    }
    return found | {"unpriced_calls": usage.unpriced} if usage.unpriced else found
