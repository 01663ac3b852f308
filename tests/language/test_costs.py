"""What agents cost: prices, what a pre-flight says of it, and scripts that are over the limit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain import cost
from bot.domain.catalog import Agent, Policy, World
from bot.domain.cost import Usage, price, price_of, used
from bot.language.script import Examined, examine
from bot.ops.builtin import catalog

HAIKU, OPUS = "claude-haiku-4-5", "claude-opus-4-6"
WORLD = World(
    now=datetime(2026, 3, 2, 9, tzinfo=UTC),
    agents=(Agent(name="claude", default=True), Agent(name="lead", model=OPUS)),
    model=HAIKU,
    judge=True,
    policy=Policy(max_cost=0.05),
)


def seen(script: str, world: World = WORLD) -> Examined:
    return examine(script, catalog(()), world)


def fan(many: int, first: str = "") -> str:
    return f"{first}- all = list {' '.join(f'e{n}' for n in range(many))}\n- answers = each all\n  > Look at {{it}}.\n"


def test_a_call_costs_what_its_tokens_cost_and_calls_add_up() -> None:
    one = used(price(1, 5), input=1_000_000, output=100_000, written=100_000, cached=1_000_000)
    assert one.usd == (1_000_000 * 1 + 100_000 * 5 + 100_000 * 1.25 + 1_000_000 * 0.1)
    assert (one + one).usd == 2 * one.usd and (one + one).calls == 2 and one.tokens == 2_200_000


def test_a_call_without_a_price_is_counted_as_such() -> None:
    found = cost.report(used(None, input=10, output=1) + Usage(calls=1, input=1))
    assert found["unpriced_calls"] == 1 and found["usd"] == 0 and found["agent_calls"] == 2


@pytest.mark.parametrize(
    ("usd", "said"),
    [(0, "$0.00"), (410_000, "$0.41"), (1_234_560_000, "$1,234.56"), (1_200, "$0.0012"), (7, "under $0.0001")],
)
def test_money_reads_as_people_write_it(usd: int, said: str) -> None:
    assert cost.dollars(usd) == said


def test_a_dated_model_has_its_models_price_and_the_settings_come_first() -> None:
    assert price_of("claude-haiku-4-5-20251001", {}) == price(1, 5)
    assert price_of("claude-next", {}) is None and price_of("claude-next-7", {}) is None
    assert price_of(HAIKU, {HAIKU: price(2, 3)}) == price(2, 3)


def test_the_pre_flight_says_what_agents_cost_at_least() -> None:
    flight = seen(fan(5)).preflight
    assert flight["agent_calls"] == 5 and 0.01 < flight["agent_usd"] < 0.02
    assert cost.at_most(flight) == "5 calls at most, about $0.01"


@pytest.mark.parametrize(
    "script",
    [
        fan(200),
        fan(12, "- model claude-opus-4-6\n"),
        "".join("- ask agent:lead\n  > Think.\n" for _ in range(12)),
        "- all = list a b c d e f\n- each all retry: {max: 9, backoff: 1s}\n  > {it}\n",
    ],
)
def test_a_script_whose_agents_cost_more_than_a_run_may_is_refused(script: str) -> None:
    (problem,) = seen(script).problems
    assert problem.code == "cost-limit" and "a run may cost $0.05 here" in problem.message
    assert "budget" in (problem.mend or "")


@pytest.mark.parametrize(
    "script",
    [
        fan(5),
        fan(200, "- budget 5\n"),
        "- files = glob *.md\n- each files\n  > Read {it}.\n",  # how many is known later
        "- x = let 1\n- show x\n",
    ],
)
def test_what_is_within_the_limit_or_not_known_yet_passes(script: str) -> None:
    assert not seen(script).refused


def test_a_model_without_a_price_is_refused_where_there_is_a_limit_and_only_there() -> None:
    script = "- model claude-next\n- reply = ask\n  > Hello?\n"
    (problem,) = seen(script).problems
    assert problem.code == "cost-unknown" and '[models."claude-next"]' in (problem.mend or "")
    assert not seen(script, replace(WORLD, policy=Policy())).refused
    assert not seen(script, replace(WORLD, prices={"claude-next": price(1, 5)})).refused
