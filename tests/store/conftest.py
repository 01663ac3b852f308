"""One suite, both databases: `db` is a fresh database of each."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from pathlib import Path

import pytest
import sqlalchemy as sa

from store.transaction import Database, upgrade
from tests.postgres import server

_names = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Generator[str]:
    with server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/waiton.db"
    base = sa.make_url(request.getfixturevalue("postgres"))
    name = f"w{next(_names)}"
    engine = sa.create_engine(base, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"create database {name}"))
    engine.dispose()
    return base.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def db(url: str) -> Generator[Database]:
    upgrade(url)
    database = Database(url)
    yield database
    database.close()
