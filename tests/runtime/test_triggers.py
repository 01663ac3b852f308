"""What starts saved scripts: events, commands, cron lines, other scripts; what overlaps; what a crash leaves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.catalog import Person, Policy
from bot.runtime.clock import SetClock
from bot.runtime.tools import tool
from channels.web import streams
from store import inbox, outbox, people, runs, scripts, triggers
from tests.runtime.world import PEOPLE, START, product, started, state, until

pytestmark = pytest.mark.anyio
BO, ANA = "bo@acme.de", "ana@acme.de"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def script(name: str, on: str, body: str = "- say\n  > started", **head: str) -> str:
    more = "".join(f"{key}: {value}\n" for key, value in head.items())
    return f"---\nname: {name}\non:\n  - {on}\n{more}---\n{body}\n"


ASK = "- ok = ask @ana yes\n  > Go on?"


async def save(one: Any, text: str, by: str = BO, job: str = "j") -> None:
    got = await one.desk.start(text, by=by, job=job)
    assert got.saved is not None, got.seen.rendered()


async def said_in(
    one: Any, text: str, *, job: str = "j", ident: str, tap: bool = False, stream: str = "web:message"
) -> None:
    body = streams.event(
        ident=ident, text=text, job=job, email=ANA, name="Ana", at=one.clock.now().isoformat(), tap=tap
    )
    await one.desk.event(stream, body, ident=ident, sender=ANA, conversation=f"web:{job}")


async def runs_of(one: Any, name: str) -> list[Any]:
    return [r for r in reversed(await one.desk.find_runs()) if r.data.get("script") == name]


async def starts(one: Any, name: str) -> list[tuple[str, str]]:
    rows = await one.committer.read(triggers.latest, name, 50)
    return [(row["state"], row["why"]) for row in reversed(rows)]


# --- events --------------------------------------------------------------------------------------------------------
async def test_an_event_starts_one_run_as_the_saver_in_the_job_it_was_saved_in(tmp_path: Path) -> None:
    text = script("seen", "{event: camera.line_2, where: event.n > 10, as: it}", "- show it.n\n")
    async with product(tmp_path) as one:
        await save(one, text.replace("show it.n", "n = let it.n\n- show n"))
        for ident, n in (("a", 5), ("b", 50), ("b", 50)):
            await one.desk.event("camera.line_2", {"n": n}, ident=ident)
        await one.desk.event("camera.line_2", {"other": 1}, ident="c")
        (run,) = await runs_of(one, "seen")
        await until(lambda: _ended(one, run.id))
        assert (run.owner, run.job, run.data["version"]) == (BO, "j", 1)
        assert (await one.desk.show(run.id))["result"] == 50
        assert run.data["on"] == "`camera.line_2` where `event.n > 10`"


async def _ended(one: Any, run: str) -> bool:
    return (await one.desk.show(run))["ended"] is not None


async def test_what_a_trigger_binds_is_the_event_with_its_stream_and_sender(tmp_path: Path) -> None:
    body = '- out = let tap.conversation + " " + tap.text + " " + tap.stream + " " + tap.from\n- show out'
    async with product(tmp_path) as one:
        await save(one, script("book", "{event: 'web:tap', where: \"event.text == 'book'\", as: tap}", body))
        await said_in(one, "book", ident="t", tap=True, stream="web:tap")
        (run,) = await runs_of(one, "book")
        await until(lambda: _ended(one, run.id))
        assert (await one.desk.show(run.id))["result"] == "web:j book web:tap ana@acme.de"


async def test_an_event_of_a_conversation_starts_its_run_in_that_job(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.committer.write(lambda tx: runs.add_job(tx, "k", "K", "web:k", START))
        await save(one, script("hi", "event: web:message"))
        await said_in(one, "hello", job="k", ident="1")
        assert [(r.job, r.owner) for r in await runs_of(one, "hi")] == [("k", BO)]


async def test_a_conversation_that_the_saver_cannot_read_starts_nothing_of_theirs(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.committer.write(lambda tx: runs.add_job(tx, "k", "K", "web:k", START, members=(ANA,)))
        await save(one, script("hi", "event: web:message"))
        await said_in(one, "hello", job="k", ident="1")
        assert await runs_of(one, "hi") == []


async def test_a_tap_is_one_event_on_two_streams_and_starts_a_script_once(tmp_path: Path) -> None:
    text = "---\nname: hi\noverlap: allow\non:\n  - event: web:message\n  - event: web:tap\n---\n- say\n  > hi\n"
    async with product(tmp_path) as one:
        await save(one, text)
        for stream in ("web:message", "web:tap"):
            await said_in(one, "go", ident="x", tap=True, stream=stream)
        assert len(await runs_of(one, "hi")) == 1


async def test_what_started_a_run_is_no_evidence_for_it(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(
            one,
            script(
                "echo",
                "event: web:message",
                "- more = expect web:message within 1h\n- show more.event.text",
                overlap="skip",
            ),
        )
        await said_in(one, "first", ident="1")
        (run,) = await runs_of(one, "echo")
        assert await state(one, run.id) == "waiting"
        one.clock.move(minutes=1)
        await said_in(one, "second", ident="2")
        assert (await one.desk.show(run.id))["result"] == "second"


async def test_an_event_stored_before_a_crash_starts_its_script_after_it_and_once(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("seen", "event: camera.line_2"))
        # The process dies between storing an event and routing it.
        await one.committer.write(
            lambda tx: inbox.add(
                tx, stream="camera.line_2", ident="a", sender=None, conversation=None, at=START, body={}
            )
        )
    async with product(tmp_path) as two:
        assert len(await runs_of(two, "seen")) == 1
    async with product(tmp_path) as three:
        await three.desk.event("camera.line_2", {}, ident="a")
        assert len(await runs_of(three, "seen")) == 1


async def test_an_event_offered_again_after_its_run_began_starts_none(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("seen", "event: camera.line_2"))
        await one.desk.event("camera.line_2", {}, ident="a")
        event = await one.committer.read(inbox.get, "camera.line_2/a")
        again, _ = await one.committer.write(lambda tx: one.triggers.offer(tx, event, {}))
        assert (again, len(await runs_of(one, "seen"))) == ([], 1)


# --- commands ------------------------------------------------------------------------------------------------------
async def test_a_command_typed_in_a_room_starts_its_script_with_the_words_after_it(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.committer.write(lambda tx: runs.add_job(tx, "k", "K", "web:k", START))
        await save(
            one, script("booking", "{command: Book, as: said}", "- n = let said.text\n- show n", overlap="allow")
        )
        for number, text in enumerate(("/book at noon", " BOOK ", "book a table", "I book", "/booking", "/Book")):
            await said_in(one, text, job="k", ident=str(number))
        await said_in(one, "book", job="k", ident="tapped", tap=True)
        found = await runs_of(one, "booking")
        await until(lambda: _all_ended(one))
        assert sorted([(await one.desk.show(r.id))["result"] for r in found]) == ["", "", "at noon"]
        assert {r.job for r in found} == {"k"}


async def _all_ended(one: Any) -> bool:
    return all(r.ended for r in await one.desk.find_runs())


# --- cron ----------------------------------------------------------------------------------------------------------
async def test_a_cron_line_fires_at_its_moment_and_again(tmp_path: Path) -> None:
    clock = SetClock(START)  # Mon 2 Mar 2026, 08:00 UTC
    async with product(tmp_path, clock=clock) as one:
        await save(one, script("daily", "{every: '0 9 * * mon-fri', zone: Europe/Berlin, as: due}", "- show due"))
        await one.sweep()
        assert await runs_of(one, "daily") == [], "09:00 in Berlin is now: it comes again tomorrow"
        clock.move(hours=23, minutes=59)
        assert await one.sweep() == START + timedelta(days=1)
        assert await runs_of(one, "daily") == []
        clock.move(minutes=1)
        assert await one.sweep() == START + timedelta(days=2)
        (run,) = await runs_of(one, "daily")
        assert (run.owner, run.job, run.data["due"]) == (BO, "j", "2026-03-03T08:00:00+00:00")
        assert (await one.desk.show(run.id))["result"] == {"at": "2026-03-03T08:00:00+00:00"}
        told = await one.committer.read(lambda tx: runs.told(tx, run))
        assert told["preflight"]["ops"] == 1, "its status says what it may do, as that of a pasted one"
        await one.sweep()
        assert len(await runs_of(one, "daily")) == 1


async def test_after_downtime_a_cron_line_fires_once_however_often_it_was_missed(tmp_path: Path) -> None:
    async with product(tmp_path, clock=SetClock(START)) as one:
        await save(one, script("often", "every: '*/5 * * * *'"))
    later = SetClock(START + timedelta(days=3, minutes=2))
    async with product(tmp_path, clock=later) as two:
        (run,) = await runs_of(two, "often")
        assert run.data["due"] == "2026-03-02T08:05:00+00:00"
        assert await two.committer.read(triggers.next_due) == START + timedelta(days=3, minutes=5)


async def test_saving_again_keeps_a_moment_that_has_come_and_arms_what_is_new(tmp_path: Path) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one:
        await save(one, script("daily", "every: '0 10 * * *'", "- say\n  > old"))
        clock.move(hours=3)
        await save(one, script("daily", "every: '0 10 * * *'", "- say\n  > new"))
        await one.sweep()
        assert [r.data["version"] for r in await runs_of(one, "daily")] == [2]
        await save(one, script("daily", "event: camera.line_2", "- say\n  > event"))
        assert await one.committer.read(triggers.next_due) is None


async def test_a_paused_script_is_started_by_people_alone_and_missed_moments_are_not_made_up_for(
    tmp_path: Path,
) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one:
        await save(one, "---\nname: both\non:\n  - every: '0 10 * * *'\n  - event: camera.line_2\n---\n- say\n  > hi\n")
        assert await one.desk.saved.pause("both", True, by=BO)
        assert not await one.desk.saved.pause("both", True, by=BO)
        await one.desk.event("camera.line_2", {}, ident="a")
        clock.move(hours=30)
        await one.sweep()
        assert await runs_of(one, "both") == []
        assert (await one.desk.run_saved("both", by=BO, job="j"))[0] == []
        assert await one.desk.saved.pause("both", False, by=BO)
        assert await one.committer.read(triggers.next_due) == datetime(2026, 3, 4, 10, tzinfo=UTC)
        await one.desk.event("camera.line_2", {}, ident="b")
        assert len(await runs_of(one, "both")) == 2


# --- scripts -------------------------------------------------------------------------------------------------------
async def test_the_end_of_a_script_starts_another(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("first", "event: camera.line_2", "- n = let 7\n- show n"))
        await save(one, script("second", "{script: first, as: ended}", "- n = let ended.result + 1\n- show n"))
        await one.desk.event("camera.line_2", {}, ident="a")
        await until(lambda: runs_of(one, "second"))
        (run,) = await runs_of(one, "second")
        await until(lambda: _ended(one, run.id))
        assert (await one.desk.show(run.id))["result"] == 8


async def test_scripts_that_start_each_other_in_a_circle_end_and_their_saver_is_told_once(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("a", "command: a"))
        await save(one, script("b", "script: a"))
        await save(one, "---\nname: a\non:\n  - command: a\n  - script: b\n---\n- say\n  > round\n")
        await said_in(one, "/a", ident="1")
        await until(lambda: _told(one, BO))
        assert len(await one.desk.find_runs(limit=100)) == 32
        (notice,) = await _told(one, BO)
        assert "32 scripts have started each other in a row" in notice
        await said_in(one, "/a", ident="2")
        await until(lambda: _many(one, 64))


async def _many(one: Any, count: int) -> bool:
    return len(await one.desk.find_runs(limit=200)) == count


async def _told(one: Any, email: str) -> list[str]:
    rows = await one.committer.read(lambda tx: outbox.find(tx, run_id="", to=email))
    return [f"{row['card']['title']}: {row['card']['text']}" for row in rows]


# --- overlap -------------------------------------------------------------------------------------------------------
async def test_replace_is_the_rule_of_chats_and_counts_by_conversation(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.committer.write(lambda tx: runs.add_job(tx, "k", "K", "web:k", START))
        await save(one, script("wait", "command: wait", ASK))
        for ident, job in (("1", "j"), ("2", "k"), ("3", "j")):
            one.clock.move(seconds=1)
            await said_in(one, "/wait", ident=ident, job=job)
        assert [(r.job, r.state) for r in await runs_of(one, "wait")] == [
            ("j", "cancelled"),
            ("k", "running"),
            ("j", "running"),
        ]


async def test_a_run_that_has_written_is_not_replaced(tmp_path: Path) -> None:
    async def charge() -> str:
        return "ok"

    async with product(tmp_path, (tool("charge", charge),)) as one:
        await save(one, script("pay", "command: pay", f"- paid = charge\n{ASK}"))
        await said_in(one, "/pay", ident="1")
        (run,) = await runs_of(one, "pay")
        await until(lambda: _asks(one, run.id))
        await said_in(one, "/pay", ident="2")
        assert [r.state for r in await runs_of(one, "pay")] == ["running"]
        assert [s for s, _ in await starts(one, "pay")] == ["live", "skipped"]
        assert "has written something already" in (await starts(one, "pay"))[1][1]


async def _asks(one: Any, run: str) -> bool:
    return "waiting on Ana" in ((await one.desk.show(run))["line"] or "")


async def test_skip_starts_nothing_while_another_runs(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("one", "event: camera.line_2", ASK, overlap="skip"))
        for ident in "ab":
            await one.desk.event("camera.line_2", {}, ident=ident)
        (run,) = await runs_of(one, "one")
        await one.desk.answer(run.id, "ok", "yes", by=ANA)
        await one.desk.event("camera.line_2", {}, ident="c")
        assert len(await runs_of(one, "one")) == 2
        assert [s for s, _ in await starts(one, "one")] == ["over", "skipped", "live"]


async def test_queue_starts_them_one_after_another_in_order_of_the_version_current_then(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        body = "- n = let it.n\n- show n\n" + ASK
        await save(one, script("line", "{event: camera.line_2, as: it}", body, overlap="queue"))
        for number in range(3):
            one.clock.move(seconds=1)
            await one.desk.event("camera.line_2", {"n": number}, ident=str(number))
        assert len(await runs_of(one, "line")) == 1
        await save(one, script("line", "{event: camera.line_2, as: it}", body + "\n- say\n  > new", overlap="queue"))
        for count in (1, 2, 3):
            await until(lambda count=count: _started(one, "line", count))
            newest = (await runs_of(one, "line"))[-1]
            await until(lambda newest=newest: _asks(one, newest.id))
            await one.desk.answer(newest.id, "ok", "yes", by=ANA)
        found = await runs_of(one, "line")
        assert [(r.names["it"]["n"], r.data["version"]) for r in found] == [(0, 1), (1, 2), (2, 2)]


async def _started(one: Any, name: str, count: int) -> bool:
    return len(await runs_of(one, name)) == count


async def test_what_is_queued_survives_a_restart(tmp_path: Path) -> None:
    text = script("line", "event: camera.line_2", ASK, overlap="queue")
    async with product(tmp_path) as one:
        await save(one, text)
        for ident in "ab":
            await one.desk.event("camera.line_2", {}, ident=ident)
        (first,) = await runs_of(one, "line")
    async with product(tmp_path) as two:
        await two.desk.answer(first.id, "ok", "yes", by=ANA)
        await until(lambda: _started(two, "line", 2))


async def test_allow_is_the_rule_elsewhere(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("many", "event: camera.line_2", ASK))
        for ident in "ab":
            await one.desk.event("camera.line_2", {}, ident=ident)
        assert [r.state for r in await runs_of(one, "many")] == ["running", "running"]


async def test_overlap_counts_by_the_key_that_the_script_gives(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("order", "event: camera.line_2", ASK, overlap="skip", key="$event.order"))
        for ident, order in (("a", 1), ("b", 2), ("c", 1)):
            await one.desk.event("camera.line_2", {"order": order}, ident=ident)
        assert len(await runs_of(one, "order")) == 2
        rows = await one.committer.read(triggers.latest, "order", 9)
        assert sorted((row["key"], row["state"]) for row in rows) == [("1", "live"), ("1", "skipped"), ("2", "live")]


# --- what stands against a start -----------------------------------------------------------------------------------
async def test_a_saver_who_is_gone_starts_nothing_and_the_admins_are_told_once(tmp_path: Path) -> None:
    mika = Person(email="mika@acme.de", name="Mika")
    async with product(tmp_path, people=(*PEOPLE, mika), policy=Policy(approve={}, admins=(ANA,))) as one:
        await save(one, script("seen", "event: camera.line_2"), by="mika@acme.de")
        await one.committer.write(lambda tx: people.remove(tx, "mika@acme.de"))
        one.people_changed()
        for ident in "ab":
            await one.desk.event("camera.line_2", {}, ident=ident)
        assert await runs_of(one, "seen") == []
        assert await _told(one, ANA) == ["`seen` did not start: Its saver mika@acme.de is not here any more."]
        assert [s for s, _ in await starts(one, "seen")] == ["refused", "refused"]


async def test_a_saver_who_may_not_start_scripts_any_more_is_told_of_to_the_admins(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("seen", "event: camera.line_2"))
    closed = Policy(approve={}, paste="role:ops", admins=(ANA,))
    async with product(tmp_path, policy=closed) as two:
        await two.desk.event("camera.line_2", {}, ident="a")
        assert await runs_of(two, "seen") == []
        assert [text.partition(":")[0] for text in await _told(two, ANA)] == ["`seen` did not start"]


async def test_a_script_that_would_be_refused_now_does_not_start_and_its_saver_is_told(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("ask", "event: camera.line_2", "- ok = ask @jonas yes\n  > Go on?"))
        await one.committer.write(lambda tx: people.remove(tx, "jonas@acme.de"))
        one.people_changed()
        await one.desk.event("camera.line_2", {}, ident="a")
        assert await runs_of(one, "ask") == []
        assert await _told(one, BO) == ["`ask` did not start: No person or role here is called `@jonas`."]
        await one.committer.write(lambda tx: people.put(tx, "jonas@acme.de", "Jonas", None))
        one.people_changed()
        await one.desk.event("camera.line_2", {}, ident="b")
        assert len(await runs_of(one, "ask")) == 1
        assert (await one.committer.read(scripts.stands, "ask"))[1] is None


async def test_a_needed_input_is_given_by_the_event_or_the_firing_says_that_nothing_gives_it(tmp_path: Path) -> None:
    head = {"inputs": "\n  it: {type: record}\n  room: blue"}
    async with product(tmp_path) as one:
        await save(one, script("sealed", "{event: camera.line_2, as: it}", "- n = let room + it.n\n- show n", **head))
        await save(one, script("short", "event: camera.line_2", "- show room", inputs="\n  room: {type: text}"))
        await one.desk.event("camera.line_2", {"n": "7"}, ident="a")
        (run,) = await runs_of(one, "sealed")
        await until(lambda: _ended(one, run.id))
        assert (await one.desk.show(run.id))["result"] == "blue7"
        assert await _told(one, BO) == ["`short` did not start: Nothing gives its input `room`."]


# --- versions ------------------------------------------------------------------------------------------------------
async def test_a_run_keeps_the_version_that_it_started_with(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await save(one, script("v", "command: v", f"{ASK}\n- say\n  > old", overlap="allow"))
        await said_in(one, "/v", ident="1")
        one.clock.move(seconds=1)
        await save(one, script("v", "command: v", f"{ASK}\n- say\n  > new", overlap="allow"))
        _, second = await one.desk.run_saved("v", by=BO, job="j")
        (first, _) = await runs_of(one, "v")
        for run in (first.id, second):
            await one.desk.answer(run, "ok", "yes", by=ANA)
        shown = [await one.desk.show(run) for run in (first.id, second)]
        assert [(s["version"], s["deliveries"][-1]["text"]) for s in shown] == [(1, "old"), (2, "new")]


async def test_an_old_version_comes_back_as_a_new_one_and_differences_are_shown(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        for word in ("old", "new"):
            await save(one, script("v", "command: v", f"- say\n  > {word}"))
        assert await one.desk.saved.rollback("v", 1, by=ANA) == {"name": "v", "version": 3}
        found = await one.desk.saved.show("v", BO)
        assert ("> old" in found["text"], found["owner"], [v["version"] for v in found["versions"]]) == (
            True,
            ANA,
            [3, 2, 1],
        )
        assert [line for line in await one.desk.saved.diff("v", 1, 2) if line[:1] in "+-"][2:] == [
            "-  > old",
            "+  > new",
        ]
        assert await one.desk.saved.diff("v", 1, 3) == []


async def test_a_run_is_saved_under_a_name_as_it_was_pasted(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        run = await started(one, "- n = let 2 + 3\n- show n\n")
        assert await one.desk.saved.save_run(run, "sum", by=ANA) == {"name": "sum", "version": 1}
        assert (await one.desk.saved.show("sum", BO))["text"] == "- n = let 2 + 3\n- show n\n"
        again = await started(one, "- s = run sum\n- show s\n")
        await until(lambda: _ended(one, again))
        assert (await one.desk.show(again))["result"] == 5


async def test_saved_scripts_that_would_call_each_other_in_a_circle_are_refused_at_save(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.desk.saved.save("- say\n  > hi\n", by=BO, job="j", name="a")
        await one.desk.saved.save("- x = run a\n", by=BO, job="j", name="b")
        seen, saved = await one.desk.saved.save("- x = run b\n", by=BO, job="j", name="a")
        assert (saved, [p.code for p in seen.problems]) == (None, ["script-circle"])


async def test_two_processes_fire_a_moment_once(tmp_path: Path) -> None:
    clock = SetClock(START)
    async with product(tmp_path, clock=clock) as one, product(tmp_path, clock=clock) as two:
        await save(one, script("daily", "every: '0 10 * * *'"))
        clock.move(hours=2)
        await asyncio.gather(one.sweep(), two.sweep(), one.sweep(), two.sweep())
        assert len(await runs_of(one, "daily")) == 1


async def test_a_run_that_another_script_starts_is_pinned_and_among_its_starts(tmp_path: Path) -> None:
    async with product(tmp_path) as one:
        await one.desk.saved.save("- n = let 5\n- show n\n", by=BO, job="j", name="five")
        run = await started(one, "- a = run five\n- show a\n")
        await until(lambda: _ended(one, run))
        (child,) = await runs_of(one, "five")
        assert child.data["version"] == 1
        await until(lambda: _over(one, "five"))
        assert await starts(one, "five") == [("over", f"`{run}`, which runs it")]


async def _over(one: Any, name: str) -> bool:
    return (await starts(one, name))[-1][0] == "over"
