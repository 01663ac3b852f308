"""What a run's agents may cost, and what is known of the run when one is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.domain import cost
from bot.domain.cost import Price, Usage
from store import runs, work
from store.dialect import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Of one run: its job, its owner. `most`: what its agents may cost, in millionths of a dollar, None where there is
    no limit; `used`: what they have cost, where there is one. `paused`: so it stood when this was read."""

    job: str
    owner: str
    used: int
    prices: Mapping[str, Price]
    most: int | None = None
    paused: bool = False

    def refusal(self, model: str, calls: int, chars: int) -> str | None:
        """Why so many calls may not be begun: what they cost at least is over what is left. `chars`: of all prompts."""
        if self.most is None or not calls:
            return None
        price = cost.price_of(model, self.prices)
        if price is None:
            return f"a run may cost {cost.dollars(self.most)} here, and what `{model}` costs is not in the settings"
        wanted = cost.estimate(price, calls, chars)
        if self.used + wanted <= self.most:
            return None
        spent = f" with the {cost.dollars(self.used)} spent" if self.used else ""
        what = "an agent call" if calls == 1 else f"{calls:,} agent calls"
        return f"{what} would cost about {cost.dollars(wanted)}{spent}; a run may cost {cost.dollars(self.most)}"

    def after(self, further: Usage) -> Terms:
        """The same once so much more is spent."""
        return replace(self, used=self.used + further.usd)

    def spent_with(self, further: Usage) -> str | None:
        """Why no further call is made: all that a run may cost is spent."""
        if self.most is None or self.used + further.usd < self.most:
            return None
        return f"the {cost.dollars(self.most)} that a run may cost are spent"


def of_run(tx: Transaction, run_id: str, prices: Mapping[str, Price], max_cost: float | None) -> Terms:
    run = runs.get(tx, run_id)
    assert run is not None
    return Terms(
        job=run.job,
        owner=run.owner,
        used=0 if max_cost is None else work.total_spent(tx, run_id),
        prices=prices,
        paused=run.state == "paused",
        most=None if max_cost is None else round(max_cost * cost.MICRO),
    )
