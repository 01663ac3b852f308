"""How SQLite looks things up: without statistics it may take a key's first column, the workspace, and read everything.

A statement of the tables that grow with the runs must look up by more than that."""

from __future__ import annotations

import re
from typing import Any

from store import history, inbox, ops, outbox, runs, triggers, waits
from store.dialect import Statement
from store.transaction import Database

GROWING = ("run", "region", "op", "timer", "wait", "taken", "delivery", "history", "start", "element")
WHOLE = {"inbox._LAST"}
"""What is meant to read all: the latest event of every stream, for the checks."""


def test_no_statement_reads_a_growing_table_by_the_workspace_alone(db: Database) -> None:
    if not db.sqlite:
        return
    odd = [line for line in db.read(_plans) if _reads_all(line)]
    assert not [line for line in odd if line.partition(" ")[0] not in WHOLE]


def _plans(tx: Any) -> list[str]:
    found: list[str] = []
    for module in (history, inbox, ops, outbox, runs, triggers, waits):
        for name, statement in vars(module).items():
            if not isinstance(statement, Statement):
                continue
            text = statement.text(tx)
            params = dict.fromkeys(re.findall(r":([A-Za-z_]\w*)", text))
            if text.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")):
                for row in tx.cursor.execute(f"explain query plan {text}", params).fetchall():
                    found.append(f"{module.__name__.rpartition('.')[2]}.{name} {row[3]}")
    return found


def _reads_all(line: str) -> bool:
    what = re.search(r"(SCAN|SEARCH) (\w+)(.*)", line)
    if what is None or what[2] not in GROWING:
        return False
    by_index_of_few = re.search(r"USING (COVERING )?INDEX ix_\w+", what[3]) is not None
    return ("(ws=?)" in what[3] and not by_index_of_few) or (what[1] == "SCAN" and not by_index_of_few)
