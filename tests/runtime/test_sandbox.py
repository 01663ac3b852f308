"""What a bomb does in the sandbox: nothing but its own op's error."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from bot.domain.errors import OpError
from bot.domain.values import ErrorValue
from bot.runtime.sandbox import Sandbox


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox(anyio_backend: str) -> Any:
    box = Sandbox(workers=2, seconds=1.0, memory_mb=512)
    yield box
    await box.aclose()


NESTED = "xs.map(a, xs.map(b, xs.map(c, xs.map(d, xs.map(e, a + b + c + d + e)))))"
BOMBS = [
    ("jq", "def f: f; f", "took longer than 1 s"),
    ("jq", "[range(1e12)]", "needed more memory than 512 MB|took longer than 1 s"),
    ("jq", "def f: 1 + f; f", "memory|longer|deep"),
    ("jq", "last(range(1e12))", "took longer than 1 s"),
    ("jq", "reduce range(1000000) as $i (0; [.])", "too deep|memory|longer"),
    ("jq", 'reduce range(60) as $i ("aaaa"; . + .)', "memory|longer"),
    ("cel", NESTED, "took longer than 1 s"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "text", "why"), BOMBS)
async def test_a_bomb_is_its_own_ops_error_and_the_next_evaluation_is_fine(
    sandbox: Sandbox, kind: str, text: str, why: str
) -> None:
    await sandbox.cel("1", {})
    before = time.monotonic()
    with pytest.raises(OpError, match=why):
        if kind == "jq":
            await sandbox.jq(text, [1], {})
        else:
            await sandbox.cel(text, {"xs": list(range(200))})
    assert time.monotonic() - before < 10
    assert await sandbox.cel("1 + 1", {}) == 2
    assert await sandbox.jq("map(. + $n)", [1], {"n": 1}) == [2]


@pytest.mark.anyio
async def test_a_bomb_harms_nobody_else(sandbox: Sandbox) -> None:
    await asyncio.gather(sandbox.cel("1", {}), sandbox.cel("2", {}))

    async def others() -> list[Any]:
        return [await sandbox.cel("n + 1", {"n": i}) for i in range(20)]

    bomb, values = await asyncio.gather(sandbox.jq("def f: f; f", 1, {}), others(), return_exceptions=True)
    assert isinstance(bomb, OpError)
    assert values == list(range(1, 21))


@pytest.mark.anyio
async def test_the_environment_is_empty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    with pytest.raises(OpError, match="`env`"):
        await sandbox.jq("env", None, {})
    evaluator = await sandbox._fresh()  # pyright: ignore[reportPrivateUsage]
    environ = await asyncio.to_thread(Path(f"/proc/{evaluator.pid}/environ").read_bytes)
    evaluator.link.close()
    assert environ in (b"", b"LC_CTYPE=C.UTF-8\0")


@pytest.mark.anyio
async def test_values_keep_what_they_are(sandbox: Sandbox) -> None:
    answers = ["YES", ErrorValue("overloaded")]
    assert await sandbox.cel("answers", {"answers": answers}) == answers
    assert await sandbox.cel("answers.filter(a, a == 'YES')", {"answers": answers}) == ["YES"]
    assert await sandbox.jq(".[1]", answers, {}) == {"error": "overloaded"}
    assert await sandbox.cel("x", {"x": "ü\ud800€"}) == "ü\ud800€"
    assert await sandbox.jq(".n", {"n": 3.0}, {}) == 3


@pytest.mark.anyio
async def test_several_outputs_are_a_list_and_none_is_null(sandbox: Sandbox) -> None:
    assert await sandbox.jq(".[]", [1, 2], {}) == [1, 2]
    assert await sandbox.jq(".[]", [1], {}) == 1
    assert await sandbox.jq("empty", [1], {}) is None


@pytest.mark.anyio
async def test_an_integer_that_jq_would_round_is_refused_with_its_place(sandbox: Sandbox) -> None:
    with pytest.raises(OpError, match=r"9007199254740993 at `from\[0\]\.id` is beyond 2\^53"):
        await sandbox.jq(".", [{"id": 2**53 + 1}], {})
    with pytest.raises(OpError, match=r"`\$big`"):
        await sandbox.jq("$big", 1, {"big": 2**53 + 1})


@pytest.mark.anyio
async def test_a_cancelled_evaluation_leaves_nothing_behind(sandbox: Sandbox) -> None:
    await sandbox.cel("1", {})
    task = asyncio.create_task(sandbox.jq("def f: f; f", 1, {}))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await sandbox.cel("'a' + 'b'", {}) == "ab"


def test_several_event_loops_may_use_it_one_after_the_other() -> None:
    box = Sandbox(workers=1)

    async def once(n: int) -> Any:
        return await box.cel("n * 2", {"n": n})

    assert [asyncio.run(once(n)) for n in range(3)] == [0, 2, 4]
    asyncio.run(box.aclose())


def test_nothing_runs_before_the_first_use_nor_after_the_end() -> None:
    box = Sandbox()
    assert box._server is None  # pyright: ignore[reportPrivateUsage]

    async def use() -> int:
        await box.cel("1", {})
        pid = box._free[0].pid  # pyright: ignore[reportPrivateUsage]
        await box.aclose()
        return pid

    pid = asyncio.run(use())
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("the evaluator lives on")
