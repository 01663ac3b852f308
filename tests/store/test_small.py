"""The rows of a short run read at once are those that are read one by one."""

from __future__ import annotations

from typing import Any

from bot.domain.record import RegionRow
from store import ops
from store.small import SmallRows
from store.transaction import Database
from tests.store.test_rows import NOW, a_run, an_op


def test_every_look_up_gives_what_the_database_would(db: Database) -> None:
    def write(tx: Any) -> None:
        a_run(tx)
        ops.put_regions(
            tx, "r1", [
                RegionRow(path="", owner="", opened=NOW, hot=1, new=True),
                RegionRow(path="2.then", owner="2", opened=NOW, hot=1, new=True),
                RegionRow(path="2.else", owner="2", opened=NOW, state="closed", new=True),
            ]
        )  # fmt: skip
        ops.put_ops(
            tx, "r1", [
                an_op("1", state="done", open=False), an_op("2", state="running", hot=1), an_op("3"),
                an_op("4", needs=1), an_op("2.then.1", "2.then", state="running", own=True), an_op("2.then.2", "2.then"),
            ]
        )  # fmt: skip

    db.write(write)

    def asked(kind: type[ops.StoredRows]) -> list[Any]:
        def read(tx: Any) -> list[Any]:
            rows = kind(tx, "r1", "j")
            found: list[Any] = [rows.op("2"), rows.op("9"), rows.region(""), rows.region("2.then"), rows.region("9")]
            for region in ("", "2.then", "9"):
                found += [rows.in_region(region), list(rows.ready(region)), list(rows.active(region))]
            for owner in ("", "2"):
                found += [sorted(r.path for r in rows.regions_of(owner, **more))
                          for more in ({}, {"hot": True}, {"still_open": True})]  # fmt: skip
            return [*found, rows.instances(["3", "9", "2.then.1"]), rows.op("2")]

        return db.read(read)

    assert asked(SmallRows) == asked(ops.StoredRows)
