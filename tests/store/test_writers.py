"""Who writes when others do: whoever may wait waits, whoever may not is told at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from store import people
from store.transaction import Busy, Database, upgrade


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Database, Database]:
    """Two processes' databases on one file."""
    url = f"sqlite:///{tmp_path}/waiton.db"
    upgrade(url)
    return Database(url), Database(url)


def test_what_may_not_wait_is_done_or_told_that_somebody_else_writes(pair: tuple[Database, Database]) -> None:
    mine, other = pair

    def held(_: object) -> None:
        with pytest.raises(Busy):
            mine.write_at_once(people.put_setting, "a", "1")

    other.write(held)
    assert mine.read(people.setting_of, "a") is None
    mine.write_at_once(people.put_setting, "a", "2")
    assert other.read(people.setting_of, "a") == "2"


def test_what_may_wait_waits_after_what_might_not(pair: tuple[Database, Database]) -> None:
    mine, other = pair
    mine.write_at_once(people.put_setting, "a", "1")
    inside, done = threading.Event(), threading.Event()

    def held(tx: object) -> None:
        inside.set()
        assert not done.wait(0.05), "nobody writes beside another"

    def later() -> None:
        mine.write(people.put_setting, "a", "2")
        done.set()

    slow = threading.Thread(target=other.write, args=(held,))
    slow.start()
    assert inside.wait(10)
    waiting = threading.Thread(target=later)
    waiting.start()
    slow.join()
    waiting.join()
    assert done.is_set() and other.read(people.setting_of, "a") == "2"


def test_a_server_is_always_waited_for(db: Database) -> None:
    if not db.sqlite:
        with pytest.raises(Busy):
            db.write_at_once(people.put_setting, "a", "1")
