"""A product as a process of its own, and what stands outside of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.outside import Outside
from tests.faults.served import Served


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Answers every call, at once."""
    found = Outside(1, slow=0, cut=0)
    yield found
    found.close()


@pytest.fixture
def served(tmp_path: Path, outside: Outside) -> Iterator[Served]:
    """Settings, people and their tokens; the server is not started yet."""
    found = Served(tmp_path, outside.url)
    found.make_tokens()
    yield found
    found.kill()
