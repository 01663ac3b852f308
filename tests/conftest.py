import os

import pytest
from hypothesis import HealthCheck, settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden documents with what comes out")
    parser.addoption("--pictures", action="store_true", help="write the guide's pictures into docs/pictures")


# The same examples at every run; `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
