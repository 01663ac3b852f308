"""Migrations make the tables that the code means, up and down."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bot.domain.errors import Misconfigured
from store.dialect import Transaction, engine_for
from store.tables import complete, metadata
from store.transaction import Database, alembic_config, check, upgrade


def test_upgraded_tables_are_those_of_the_code(url: str) -> None:
    upgrade(url)
    engine = engine_for(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        found = [d for d in compare_metadata(context, complete()) if not _partial(d)]
    engine.dispose()
    assert found == []


def _partial(difference: object) -> bool:
    """What alembic cannot see of an index on PostgreSQL: its `where` is compared as text."""
    return (
        isinstance(difference, tuple)
        and str(difference[0]) in ("remove_index", "add_index")
        and "where" in repr(difference)
    )


def test_a_database_of_another_release_says_so(url: str) -> None:
    assert check(url) == "no tables"
    upgrade(url)
    command.downgrade(alembic_config(url), "base")
    assert check(url) == "no tables"
    upgrade(url)
    assert check(url) is None


def test_a_database_from_before_the_first_release_says_what_to_do(url: str) -> None:
    upgrade(url)
    engine = engine_for(url)
    with engine.begin() as connection:
        connection.execute(sa.text("update alembic_version set version_num = '0001'"))
    engine.dispose()
    with pytest.raises(Misconfigured, match="set it aside"):
        upgrade(url)


def test_a_database_in_memory_has_every_table_and_index() -> None:
    def made(tx: Transaction) -> list[tuple[str, str]]:
        tx.cursor.execute("select name, sql from sqlite_master order by name")
        return [(name, " ".join((sql or "").split())) for name, sql in tx.cursor.fetchall()]

    ours, theirs = Database("sqlite:///:memory:"), Database("sqlite:///:memory:")
    ours.create()
    metadata.create_all(theirs.engine)
    assert ours.read(made) == theirs.read(made)
