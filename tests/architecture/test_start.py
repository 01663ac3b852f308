"""What starting costs: a command loads what it needs and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from store.transaction import alembic_config, newest
from tests.architecture.source import ROOT

HEAVY = (
    "sqlalchemy", "alembic", "celpy", "anthropic", "telegram", "slack_bolt", "starlette", "uvicorn", "jq", "pydantic",
    "apscheduler", "jinja2", "httpx2", "asyncio", "jsonschema_rs",
)  # fmt: skip
CHECK = """\
- scope = ask @ana approve decline within 2d
  > Extend the pilot?
- say
  > {scope}
"""


def loaded(code: str, folder: Path) -> set[str]:
    """Top-level modules that a piece of code has loaded, in a fresh process."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("WAITON_")} | {"PYTHONPATH": str(ROOT)}
    told = "\nimport sys; print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + told], cwd=folder, env=env, text=True, capture_output=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_command_line_loads_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded("import bot.cli", tmp_path) & set(HEAVY)


@pytest.mark.parametrize("words", [["check", "s.md"], ["check", "s.md", "--json"], ["show", "s.md"]])
def test_a_script_without_expressions_is_checked_without_the_database_and_without_cel(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "waiton.toml").write_text('[people."ana@acme.de"]\nname = "Ana"\n', encoding="utf-8")
    (tmp_path / "s.md").write_text(CHECK, encoding="utf-8")
    code = f"import sys; sys.argv = ['waiton', *{words!r}]\nfrom bot.cli import main\ntry: main()\nexcept SystemExit as e: assert not e.code, e.code"
    assert not loaded(code, tmp_path) & {"sqlalchemy", "celpy", "alembic", "starlette", "apscheduler", "uvicorn"}


def test_the_newest_migration_is_alembics_head() -> None:
    from alembic.script import ScriptDirectory

    assert ScriptDirectory.from_config(alembic_config("sqlite://")).get_current_head() == newest()
