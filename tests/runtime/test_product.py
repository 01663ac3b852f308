"""The shell around the engine: facts in, effects out, restarts, clocks, processes that share a database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.runtime.clock import SetClock
from bot.runtime.tools import Tool, ToolFailed, tool
from store import leases, outbox, runs
from tests.runtime.world import START, product, started, state, until

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline within 2d\n  > Extend?\n- say\n  > {scope}\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_answer_settles_and_what_needs_it_goes_on_in_the_same_commit(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, ASK)
        assert (await one.desk.show(run))["line"] == "waiting on Ana since 08:00"
        said = await one.desk.answer(run, "scope", "approve", by="ana@acme.de")
        assert said.accepted
        found = await one.desk.show(run)
        assert (found["state"], [d["text"] for d in found["deliveries"] if d["kind"] == "say"]) == ("done", ["approve"])


async def test_a_hundred_taps_at_once_settle_once(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, ASK)
        said = await asyncio.gather(
            *(one.desk.answer(run, "scope", w, by="ana@acme.de") for w in ["approve", "decline"] * 50)
        )
        value = (await one.desk.show(run))["ops"][0]["value"]
        same, other = (said[::2], said[1::2]) if value == "approve" else (said[1::2], said[::2])
        assert {s.accepted for s in same} == {True}, "the same answer again is the same reply"
        assert {s.status for s in other} == {409}


async def test_a_deadline_passes_by_the_clock_and_an_earlier_answer_beats_it(tmp_path: Path) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one:
        late, early = await started(one, ASK), await started(one, ASK)
        clock.move(hours=47)
        assert (await one.desk.answer(early, "scope", "approve", by="ana@acme.de")).accepted
        clock.move(hours=2)
        await one.sweep()
        assert [await state(one, r) for r in (late, early)] == ["failed", "done"]
        said = await one.desk.answer(late, "scope", "approve", by="ana@acme.de")
        assert (said.accepted, "late" in said.text) == (False, True), said.text


async def test_an_event_counts_once_and_waits_for_nobody_who_filters_it_out(tmp_path: Path) -> None:
    script = '- big = expect camera.line_2 within 1h where: "event.n > 10"\n- show big.event.n\n'
    async with product(tmp_path) as one:
        run = await started(one, script)
        assert await one.desk.event("camera.line_2", {"n": 5}, ident="a")
        assert await one.desk.event("camera.line_2", {"m": 5}, ident="b")
        assert await one.desk.event("camera.line_2", {"n": 50}, ident="c")
        assert not await one.desk.event("camera.line_2", {"n": 50}, ident="c")
        found = await one.desk.show(run)
        assert (found["state"], found["result"]) == ("done", 50)


async def test_a_tool_that_fails_is_tried_again_when_its_pause_is_over(tmp_path: Path) -> None:
    seen: list[str] = []

    def flaky(n: int) -> int:
        seen.append("call")
        if len(seen) < 3:
            raise ToolFailed("503")
        return n

    clock = SetClock(START)
    async with product(tmp_path, (tool("flaky", flaky),), clock=clock) as one:
        run = await started(one, "- x = flaky n: 7 retry: {max: 3, backoff: 2s}\n- show x\n")
        await until(lambda: len(seen) == 1)
        for count in (2, 3):
            await until(lambda: _pausing(one, run))
            clock.move(seconds=2 * count)
            await one.sweep()
            await until(lambda count=count: len(seen) == count)
            await until(lambda count=count: _pausing(one, run) if count < 3 else True)
        await until(lambda: _ended(one, run))
        assert (await one.desk.show(run))["result"] == 7


async def _pausing(one: Any, run: str) -> bool:
    rows = (await one.desk.plan_of(run))[2]
    return any(r.data.get("pausing") for r in rows)


async def _ended(one: Any, run: str) -> bool:
    return (await one.desk.show(run))["ended"] is not None


async def test_expressions_files_and_lists_run(tmp_path: Path) -> None:
    script = (
        "- xs = list b a c\n- n = let size(xs) * 2\n- up = transform xs | map(ascii_upcase)\n- save out.txt up\n"
        "- back = read out.txt\n- rows = lines back\n- show n\n- show rows\n"
    )
    async with product(tmp_path) as one:
        run = await started(one, script)
        await until(lambda: _ended(one, run))
        assert (await one.desk.show(run))["result"] == [6, ["B", "A", "C"]]


async def test_names_are_held_by_the_job_and_survive_a_restart(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await started(one, "- xs = list a b\n")
    async with product(tmp_path) as two:
        run = await started(two, "- n = count xs\n- show n\n")
        assert (await two.desk.show(run))["result"] == 2


async def test_a_refused_script_stores_nothing(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        got = await one.desk.start("- n = cuont xs\n", by="bo@acme.de", job="j")
        assert got.refused and got.seen.reports()[0]["line"] == 1
        assert await one.desk.find_runs() == []


async def test_a_saved_script_runs_as_a_function_and_its_end_comes_back(tmp_path: Path) -> None:
    saved = "---\nname: price\ninputs:\n  n: 1\non:\n  - command: price\n---\n- r = let n * 10\n"
    async with product(tmp_path) as one:
        got = await one.desk.start(saved, by="bo@acme.de", job="j")
        assert got.saved == {"name": "price", "version": 1}, got.seen.rendered()
        one.people_changed()
        run = await started(one, "- a = run price n: 4\n- show a\n")
        await until(lambda: _ended(one, run))
        assert (await one.desk.show(run))["result"] == 40


async def test_cancelling_a_run_cancels_what_it_started(tmp_path: Path) -> None:
    saved = "---\nname: slow\non:\n  - command: slow\n---\n- ok = ask @ana yes\n  > Go?\n"
    async with product(tmp_path) as one:
        await one.desk.start(saved, by="bo@acme.de", job="j")
        one.people_changed()
        run = await started(one, "- a = run slow\n")
        await until(lambda: one.desk.find_runs(owner="bo@acme.de"))
        await until(lambda: _children(one, run))
        assert (await one.desk.edit(run, {"run": "cancel"}, by="bo@acme.de", why="enough")).accepted
        await until(lambda: _all_ended(one))
        assert {r.state for r in await one.desk.find_runs()} == {"cancelled"}


async def _children(one: Any, run: str) -> bool:
    return any(r.parent and r.parent.startswith(run) for r in await one.desk.find_runs())


async def _all_ended(one: Any) -> bool:
    return all(r.ended for r in await one.desk.find_runs())


async def test_a_write_in_flight_at_a_crash_becomes_a_doubt_and_an_idempotent_one_is_made_again(tmp_path: Path) -> None:
    calls: list[str] = []
    gate = asyncio.Event()

    async def charge() -> str:
        calls.append("charge")
        await gate.wait()
        return "ok"

    async def note() -> str:
        calls.append("note")
        await gate.wait()
        return "ok"

    tools = (tool("charge", charge), tool("note_it", note, idempotent=True))
    async with product(tmp_path, tools) as one:
        first, second = await started(one, "- paid = charge\n"), await started(one, "- noted = note_it\n")
        await until(lambda: len(calls) == 2)
        for task in list(one.performer._tasks):  # the process dies: nothing of it reports back
            task.cancel()
        await one.committer.write(lambda tx: leases.drop(tx, one.holder))
    gate.set()
    async with product(tmp_path, tools) as two:
        await until(lambda: _is(two, second, "done"))
        found = await two.desk.show(first)
        assert found["ops"][0]["state"] == "uncertain"
        assert sorted(calls) == ["charge", "note", "note"]
        assert (await two.desk.answer(first, "paid", "happened", by="bo@acme.de")).accepted
        assert await state(two, first) == "done"


async def _is(one: Any, run: str, wanted: str) -> bool:
    return await state(one, run) == wanted


async def test_what_another_process_holds_is_not_taken_for_dead(tmp_path: Path) -> None:
    calls: list[str] = []
    gate = asyncio.Event()

    async def charge() -> str:
        calls.append("charge")
        await gate.wait()
        return "ok"

    async with product(tmp_path, (tool("charge", charge),)) as one:
        run = await started(one, "- paid = charge\n")
        await until(lambda: calls)
        async with product(tmp_path, (tool("charge", charge),), clock=one.clock) as two:
            assert (await two.desk.show(run))["ops"][0]["state"] == "running"
        gate.set()
        await until(lambda: _is(one, run, "done"))
        assert calls == ["charge"]


MANY = (
    '[{op:"core.transform",id:"xs",from:[],jq:"[range(%d)]"},{op:"core.map",id:"out",over:"$xs",body:'
    '[{op:"ask",id:"q",to:"ana@acme.de",question:"$item?",within:"1h",choices:["y","n"]}],onItemError:"continue"},'
    '{op:"show",value:"${out[0]}"}]'
)


async def test_a_map_of_two_thousand_asks_opens_and_closes(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, MANY % 2000)
        await until(lambda: _asked(one, run, 2000), 60)
        await asyncio.gather(*(one.desk.answer(run, f"2[{i}].1", "y", by="ana@acme.de") for i in range(2000)))
        found = await one.desk.show(run)
        assert (found["state"], found["result"]) == ("done", "y")


async def _asked(one: Any, run: str, count: int) -> bool:
    return len(await one.committer.read(lambda tx: outbox.find(tx, run_id=run, limit=5000))) == count


async def test_a_person_has_fifty_open_cards_of_a_run_and_the_rest_wait_their_turn(tmp_path: Path) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one:
        run = await started(one, MANY % 60)
        await until(lambda: _asked(one, run, 60))
        assert await _open(one) == 50
        clock.move(minutes=30)
        assert (await one.desk.answer(run, "2[0].1", "y", by="ana@acme.de")).accepted
        assert await _open(one) == 50, "one more has been put"
        clock.move(minutes=31)
        await one.sweep()
        assert await _open(one) == 10, "those of the first hour are over; the last ten have begun theirs"
        clock.move(hours=2)
        await one.sweep()
        found = await one.desk.show(run)
        assert (found["state"], found["result"]) == ("done", "y")


TWO = (
    '[{op:"core.transform",id:"xs",from:[],jq:"[range(240)]"},{op:"core.map",id:"out",over:"$xs",body:['
    '{op:"core.transform",id:"who",from:"$item",jq:"if . < 120 then \'ana@acme.de\' else \'bo@acme.de\' end"},'
    '{op:"ask",id:"q",to:"$who",question:"$item?",within:"1h",choices:["y","n"]}],onItemError:"continue"},'
    '{op:"show",value:"${out[0]}"}]'
).replace("'", '\\"')


async def test_the_queue_of_one_person_never_keeps_anothers_cards(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, TWO)
        await until(lambda: _asked(one, run, 240), 60)
        assert (await _open(one), await _open(one, "bo@acme.de")) == (50, 50)
        for index in range(120, 150):
            assert (await one.desk.answer(run, f"2[{index}].2", "y", by="bo@acme.de")).accepted
            assert (await _open(one), await _open(one, "bo@acme.de")) == (50, 50)


async def _open(one: Any, to: str = "ana@acme.de") -> int:
    return len(await one.committer.read(lambda tx: outbox.find(tx, to=to, open_cards=True, limit=5000)))


async def test_a_delivery_to_nobody_fails_and_the_owner_hears_of_it(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.committer.write(
            lambda tx: runs.add_job(tx, "c", "C", "web:c", START, customer={"email": "mika@example.com"})
        )
        got = await one.desk.start('[{op:"say",to:"$customer.email",body:"hi"}]', by="bo@acme.de", job="c")
        assert got.run is not None, got.seen.rendered()
        await until(lambda: _told(one, got.run or ""))


async def _told(one: Any, run: str) -> bool:
    return any(
        d["kind"] == "notice" and "mika@example.com" in d["text"] for d in (await one.desk.show(run))["deliveries"]
    )


async def test_the_history_is_chained(tmp_path: Path) -> None:
    from store import history

    async with product(tmp_path) as one:
        run = await started(one, ASK)
        await one.desk.answer(run, "scope", "approve", by="ana@acme.de")
        entries = await one.committer.read(history.of_run, run)
        assert [e["what"] for e in entries][:2] == ["accepted", "asked"]
        assert await one.committer.read(history.verify, run) is None


async def test_time_is_handed_in(tmp_path: Path) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one:
        run = await started(one, "- t = expect clock in: 3h\n- say\n  > {t.at}\n")
        clock.at += timedelta(hours=3)
        await one.sweep()
        assert (await one.desk.show(run))["deliveries"][-1]["text"].startswith("2026-03-02T11:00")


def test_a_tool_states_what_it_takes() -> None:
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        return a + b

    made: Tool = tool("add_two", add, read_only=True)
    assert made.spec.summary == "Adds two numbers."
    assert made.spec.schema == {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                                "required": ["a"], "additionalProperties": False}  # fmt: skip


ONBOARDING = """
[
  { op: "expect", id: "signin",
    params: { evidence: "auth.first_signin", within: "3d" },
    onMiss: [
      { op: "say", to: "$customer.email", params: { body: "$templates.nudge" } },
      { op: "expect", id: "signin_2", params: { evidence: "auth.first_signin", within: "3d",
                                                onMiss: [{ op: "ask", to: "$owner" }] } }
    ] }
]
"""


async def test_the_onboarding_of_the_seeds_runs_to_its_innermost_branch(tmp_path: Path) -> None:
    clock = SetClock(START)
    templates = {"nudge": "Your account is ready when you are."}
    async with product(tmp_path, clock=clock, templates=templates) as one:
        customer = {"id": "u-17", "email": "mika@example.com", "name": "Mika"}
        await one.committer.write(lambda tx: runs.add_job(tx, "c", "C", "web:c", START, customer=customer))
        got = await one.desk.start(ONBOARDING, by="bo@acme.de", job="c")
        assert got.run is not None, got.seen.rendered()
        assert await one.desk.event("auth.first_signin", {"user": "u-99"}, ident="other", sender="u-99")
        for _ in range(2):
            clock.move(days=3)
            await one.sweep()
        found = await one.desk.show(got.run)
        assert [d["text"] for d in found["deliveries"] if d["kind"] == "say"] == ["Your account is ready when you are."]
        assert found["line"] == "waiting on Bo since 08:00"
        said = await one.desk.answer(got.run, "1.onMiss.2.onMiss.1", "I call them", by="bo@acme.de")
        assert said.accepted and await state(one, got.run) == "done"


async def test_a_script_that_needs_an_agent_or_a_channel_that_is_not_on_is_refused(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        for script, says in (
            ("- a = ask\n  > What is 2+2?\n", "no agent is configured"),
            ("- xs = list a b\n- b = each xs\n  > {it}?\n", "no agent is configured"),
            ("- e = expect camera.line_2 within 1h\n  > the housing is closed\n", "no agent is configured"),
            ('[{op:"line_send",to:"line:U1",messages:[{type:"text",text:"x"}]}]', "line"),
        ):
            got = await one.desk.start(script, by="bo@acme.de", job="j")
            assert got.refused and says in got.seen.rendered(), got.seen.rendered()
