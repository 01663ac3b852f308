"""One writer, many facts to a commit: nothing of one is lost through another, and what is begun is begun once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.domain.facts import Continued, Returned
from bot.runtime.commit import take
from bot.runtime.tools import tool
from store import outbox, people, runs
from store.dialect import Transaction, engine_for
from tests.runtime.world import START, product, started, state, until

pytestmark = pytest.mark.anyio
ITEMS = '[{op:"core.transform",id:"xs",from:[],jq:"[range(%d)]"},{op:"core.map",id:"out",over:"$xs",body:[{op:"count_it"}]}]'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_piece_of_work_that_fails_takes_nothing_of_the_others_with_it(tmp_path: Path) -> None:
    async with product(tmp_path) as one:

        def put(name: str) -> Any:
            def write(tx: Transaction) -> str:
                people.put_setting(tx, name, "kept")
                if name == "odd":
                    raise ValueError(name)
                return name

            return write

        found = await asyncio.gather(
            *(one.committer.write(put(name)) for name in ("a", "odd", "b", "c")), return_exceptions=True
        )
        assert [str(f) for f in found] == ["a", "odd", "b", "c"]
        kept = [await one.committer.read(people.setting_of, name) for name in ("a", "odd", "b", "c")]
        assert kept == ["kept", None, "kept", "kept"]


async def test_what_a_long_step_left_is_begun_by_whatever_fact_comes_next(tmp_path: Path) -> None:
    async with product(tmp_path, (tool("count_it", _nothing, destructive=False),)) as one:
        one.committer.after = lambda outcomes: None  # nobody works: only rows move
        run = await started(one, ITEMS % 700)
        jq = (await one.committer.read(outbox.open_calls))[0]
        value = list(range(700))

        def returned(tx: Transaction) -> Any:
            outbox.call_done(tx, jq, START)
            fact = Returned(at=START, path=jq["path"], attempt=jq["attempt"], kind="jq", value=value)
            return take(tx, one.site, run, fact)

        # In one commit: a step too long for itself, and a fact that comes before it is continued.
        first, second = await one.committer.write(
            lambda tx: (
                returned(tx),
                take(tx, one.site, run, Returned(at=START, path="2[0].1", attempt=1, kind="tool")),
            )
        )
        begun = [len(step.calls) for outcome in (first, second) for _, step in outcome.steps()]
        assert sum(begun) == 700 and second.changed
        assert await one.committer.read(runs.with_more) == []


async def _nothing() -> None: ...


async def test_a_long_map_is_done_without_waiting_for_anybody_to_look(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    async def count_it() -> None:
        calls["made"] += 1

    async with product(tmp_path, (tool("count_it", count_it, destructive=False),)) as one:
        run = await started(one, ITEMS % 1300)
        await until(lambda: _is(one, run, "done"), 60)
        assert calls["made"] == 1300
        assert await one.committer.read(outbox.open_calls) == []


async def test_a_call_marked_by_a_commit_whose_word_was_lost_is_made_once(tmp_path: Path) -> None:
    calls: list[str] = []

    async def charge() -> str:
        calls.append("charge")
        return "ok"

    async with product(tmp_path, (tool("charge", charge),)) as one:
        told = one.committer.after
        one.committer.after = lambda outcomes: None  # it is committed, and nobody hears of it
        run = await started(one, "- paid = charge\n")
        one.committer.after = told
        (work,) = await one.committer.read(outbox.open_calls)
        assert (work["state"], work["holder"], calls) == ("sent", one.holder, [])
        await asyncio.gather(one.performer.look(), one.performer.look())
        await until(lambda: _is(one, run, "done"))
        await one.performer.look()
        assert calls == ["charge"]


async def test_a_fact_that_continues_nothing_changes_nothing(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, "- ask @ana yes no\n  > Well?\n")
        before = await one.desk.show(run)
        outcome = await one.committer.fact(run, Continued(at=START))
        assert not outcome.changed and await one.desk.show(run) == before


async def _is(one: Any, run: str, wanted: str) -> bool:
    return await state(one, run) == wanted


async def test_an_orderly_end_leaves_no_doubt_and_the_next_process_goes_on(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    async def charge(n: int) -> int:
        calls[f"charge {n}"] += 1
        await asyncio.sleep(0)
        return n

    tools = (tool("charge", charge),)
    ids: list[str] = []
    for ended in range(4):
        async with product(tmp_path, tools) as one:
            ids += [await started(one, f"- charge n: {ended}{n}0\n- charge n: {ended}{n}1\n") for n in range(8)]
    async with product(tmp_path, tools) as two:
        for run in ids:
            await until(lambda run=run: _is(two, run, "done"))
    assert set(calls.values()) == {1} and len(calls) == 64


async def test_a_result_that_comes_while_another_process_writes_is_written_when_that_has_done(tmp_path: Path) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def charge() -> str:
        asked.set()
        await go.wait()
        return "ok"

    async with product(tmp_path, (tool("charge", charge),)) as one:
        run = await started(one, "- paid = charge\n- say\n  > {paid}\n")
        await asked.wait()
        with other_writer(one.db.url):
            go.set()
            for _ in range(20):
                await asyncio.sleep(0)  # turns of the loop, in which it would have been written
            assert await one.committer.read(outbox.open_calls)
        await until(lambda: _is(one, run, "done"))


@contextmanager
def other_writer(url: str) -> Iterator[None]:
    """Another process in the middle of a write."""
    engine = engine_for(url)
    try:
        with engine.begin():
            yield
    finally:
        engine.dispose()
