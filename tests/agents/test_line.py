"""The line in front of a model: places, limits, what is tried again and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.agents.line import PATIENCE_S, TRIES, Line
from bot.agents.model import ModelFailed, Reply, Request
from bot.runtime.clock import SetClock
from tests.runtime.world import START

ASKED = Request(model="m", system="", messages=({"role": "user", "content": "hi"},))
Answer = Callable[[], "Reply | ModelFailed"]


class Scripted:
    """A model whose answers are written down; the last one stays."""

    def __init__(self, *answers: Reply | ModelFailed) -> None:
        self.answers = list(answers)
        self.at: list[float] = []
        self.time: Time | None = None

    async def reply(self, request: Request) -> Reply:
        assert self.time is not None
        self.at.append(self.time.now)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, ModelFailed):
            raise found
        return found

    async def aclose(self) -> None: ...


class Time:
    """Seconds that pass by being slept."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def line(model: Scripted, at_once: int = 8) -> tuple[Line, Time]:
    time = Time()
    model.time = time
    return Line(model, at_once, SetClock(START), steady=lambda: time.now, sleep=time.sleep), time


OK = Reply(text="ok")
BUSY = ModelFailed("the model is overloaded", again=True)


@pytest.mark.anyio
async def test_what_may_help_later_is_tried_again_with_longer_pauses_and_then_told() -> None:
    model = Scripted(BUSY)
    one, _ = line(model)
    with pytest.raises(ModelFailed, match="overloaded"):
        await one.reply(ASKED)
    pauses = [b - a for a, b in zip(model.at, model.at[1:], strict=False)]
    assert len(model.at) == TRIES and pauses == sorted(pauses) and 0.3 < pauses[0] < 1 and pauses[-1] < 12


@pytest.mark.anyio
async def test_a_refusal_is_not_tried_again() -> None:
    model = Scripted(ModelFailed("no", again=False))
    one, _ = line(model)
    with pytest.raises(ModelFailed):
        await one.reply(ASKED)
    assert len(model.at) == 1


@pytest.mark.anyio
async def test_a_limit_of_the_account_holds_everyone_for_as_long_as_it_says() -> None:
    model = Scripted(ModelFailed("limit", again=True, after_s=7, everyone=True), OK)
    one, _ = line(model)
    await asyncio.gather(*(one.reply(ASKED) for _ in range(3)))
    assert [at for at in model.at if 0 < at < 7] == [] and sum(at >= 7 for at in model.at) >= 1


@pytest.mark.anyio
async def test_a_limit_longer_than_anybody_waits_is_told_at_once() -> None:
    model = Scripted(ModelFailed("limit", again=True, after_s=PATIENCE_S + 1, everyone=True))
    one, time = line(model)
    with pytest.raises(ModelFailed, match="opens again in 10 min") as told:
        await one.reply(ASKED)
    assert time.now == 0 and told.value.hopeless


@pytest.mark.anyio
async def test_where_nothing_is_left_of_a_limit_the_next_call_waits_for_its_reset() -> None:
    reset = (START + timedelta(seconds=20)).isoformat()
    limits = {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": reset}
    model = Scripted(Reply(text="ok", limits=limits), OK)
    one, time = line(model)
    await one.reply(ASKED)
    await one.reply(ASKED)
    assert model.at == [0, 20] and time.now == 20


@pytest.mark.anyio
@pytest.mark.parametrize("odd", [{"anthropic-ratelimit-tokens-reset": "soon"}, {}, {"anthropic-ratelimit-x": "0"}])
async def test_headers_that_do_not_read_hold_nobody(odd: dict[str, Any]) -> None:
    model = Scripted(Reply(text="ok", limits={"anthropic-ratelimit-tokens-remaining": "0", **odd}), OK)
    one, time = line(model)
    await one.reply(ASKED)
    await one.reply(ASKED)
    assert time.now == 0


@pytest.mark.anyio
async def test_no_more_agents_are_at_work_than_there_are_places() -> None:
    one, _ = line(Scripted(OK), at_once=2)
    now = most = 0

    async def work() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    await asyncio.gather(*(one.hold(work) for _ in range(9)))
    assert most == 2
