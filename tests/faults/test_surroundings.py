"""The database away for seconds, an end in order, a second process on the same database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.faults.outside import Outside
from tests.faults.served import Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]
EXPECTS = (
    "- go = ask @bo yes no within 1d\n  > Go?\n- seen = expect shop.orders within 1d after go\n- show seen.event.tag\n"
)


@pytest.fixture
def up(served: Served) -> Iterator[Served]:
    served.start()
    served.ready()
    yield served


def client(served: Served, who: str = "bo") -> httpx2.Client:
    headers = {"authorization": f"Bearer {served.tokens[who]}"}
    return httpx2.Client(base_url=served.url, headers=headers, timeout=60)


def started(api: httpx2.Client, script: str) -> str:
    answer = api.post("/api/runs", json={"script": script, "job": "faults"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def until(holds: Callable[[], Any], seconds: float) -> Any:
    """What `holds` gives once it gives something; another process does the work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


@contextmanager
def locked(served: Served) -> Iterator[None]:
    """Another program holds the database's file for writing."""
    held = sqlite3.connect(served.folder / "waiton.db", isolation_level=None)
    held.execute("begin immediate")
    try:
        yield
    finally:
        held.execute("rollback")
        held.close()


def test_a_hook_is_acknowledged_only_once_it_is_stored_however_long_the_database_is_away(up: Served) -> None:
    with client(up) as api, ThreadPoolExecutor(1) as pool:
        run = started(api, EXPECTS)
        assert api.post(f"/api/runs/{run}/ops/go/answer", json={"with": "yes"}).status_code == 200
        release = threading.Event()
        with locked(up):
            posting = pool.submit(
                httpx2.post,
                f"{up.url}/hooks/shop.orders",
                json={"tag": "a"},
                headers={"idempotency-key": "a"},
                timeout=60,
            )
            answered = posting.result() if _answers(posting, 14) else None
        release.set()
        first = answered or posting.result()
        if answered is not None:
            assert (first.status_code, first.headers["retry-after"]) == (503, "2"), (
                "nothing is stored while the file is held, so nothing is acknowledged"
            )
            again = httpx2.post(f"{up.url}/hooks/shop.orders", json={"tag": "a"}, headers={"idempotency-key": "a"})
            assert (again.status_code, again.json()["new"]) == (202, True)
        else:
            assert (first.status_code, first.json()["new"]) == (202, True)
        found = until(lambda: _ended(api, run), 10)
        assert (found["state"], found["result"]) == ("done", "a")


def _answers(posting: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if posting.done():
            return True
        time.sleep(0.05)
    return False


def _ended(api: httpx2.Client, run: str) -> dict[str, Any] | None:
    found = api.get(f"/api/runs/{run}").json()
    return found if found["ended"] else None


def test_an_answer_in_flight_is_committed_before_an_end_in_order(up: Served) -> None:
    script = "- go = ask @bo yes no within 1d\n  > Go?\n- say\n  > {go}\n"
    with client(up) as api, ThreadPoolExecutor(16) as pool:
        runs = [started(api, script) for _ in range(16)]
        going = [pool.submit(_answered, up, run) for run in runs]
        assert up.end() == 0
        acknowledged = [run for run, answer in zip(runs, going, strict=True) if answer.result()]
        up.start()
        up.ready()
        assert [api.get(f"/api/runs/{run}").json()["state"] for run in acknowledged] == ["done"] * len(acknowledged)


def _answered(served: Served, run: str) -> bool:
    try:
        with client(served) as api:
            return api.post(f"/api/runs/{run}/ops/go/answer", json={"with": "yes"}).status_code == 200
    except httpx2.HTTPError:
        return False


def test_an_end_in_order_leaves_no_doubt_about_a_write(served: Served, outside: Outside) -> None:
    """What is at work is let end; what has not begun begins after the restart."""
    outside.slow, outside.cut = 99, 0
    served.start()
    served.ready()
    script = "".join(f'- w{n} = charge order: "{{run.id}}/{n}"\n' for n in range(8))
    with client(served) as api:
        runs = [started(api, script) for _ in range(6)]
        until(lambda: len(outside.calls) > 8, 20)
        assert served.end() == 0
        served.start()
        served.ready()
        for run in runs:
            found = until(lambda run=run: _ended(api, run) or _doubtful(api, run), 30)
            assert found["state"] == "done", [(o["path"], o["state"], o["error"]) for o in found["ops"]]
            assert len([c for c in outside.calls if c.order.startswith(run)]) == 8


def _doubtful(api: httpx2.Client, run: str) -> dict[str, Any] | None:
    found = api.get(f"/api/runs/{run}").json()
    return found if any(o["state"] == "uncertain" for o in found["ops"]) else None


def test_an_answer_at_the_terminal_moves_the_servers_run_within_two_seconds(up: Served, outside: Outside) -> None:
    script = '- go = ask @bo yes no within 1d\n  > Go?\n- w = charge order: "{run.id}" answer: {go}\n- show w\n'
    with client(up) as api:
        run = started(api, script)
        said = up.waiton("answer", run, "go", "yes", "--as", "bo@acme.de")
        began = time.monotonic()
        assert said.returncode == 0, said.stderr
        found = until(lambda: _ended(api, run), 10)
        assert (found["state"], len(outside.of("charge", run))) == ("done", 1)
        assert time.monotonic() - began < 2


def test_two_servers_on_one_file_do_no_write_twice(up: Served, outside: Outside) -> None:
    other = Served(up.folder, outside.url)
    other.tokens = up.tokens
    other.start()
    try:
        other.ready()
        script = '- go = ask @bo yes no within 1d\n  > Go?\n- w = charge order: "{run.id}" answer: {go}\n'
        with client(up) as here, client(other) as there:
            runs = [started(api, script) for api in (here, there) * 10]
            with ThreadPoolExecutor(8) as pool:
                answers = [
                    pool.submit(api.post, f"/api/runs/{run}/ops/go/answer", json={"with": "yes"})
                    for run in runs
                    for api in (here, there)
                ]
            assert {a.result().status_code for a in answers} == {200}
            for run in runs:
                assert until(lambda run=run: _ended(here, run), 20)["state"] == "done"
                assert len(outside.of("charge", run)) == 1
    finally:
        other.kill()
