"""A story that a platform has nothing of is skipped there."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.channels.stage import Lacks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    try:
        yield
    except Lacks as lack:
        pytest.skip(str(lack))
