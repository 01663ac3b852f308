"""How soon the command line answers: a check and a rehearsal from a cold process, and a large check inside one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bot.domain.catalog import Person, World
from bot.language.script import examine
from bot.ops.specs import catalog
from bot.runtime.tools import tool_spec

HERE = Path(__file__).parent
SCRIPT = """\
- scope = ask @ana approve decline within 2d
  > Extend the pilot to include S/4 writes?
- if scope == 'approve'
  - say
    > Going on.
"""
SETTINGS = '[people."ana@acme.de"]\nname = "Ana"\n'


def cold(folder: Path, *arguments: str) -> float:
    """Seconds of one command, process start included."""
    config = folder / "waiton.toml"
    config.write_text(SETTINGS)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "WAITON_CONFIG": str(config),
        "WAITON_DATABASE_URL": f"sqlite:///{folder}/none.db",
    }
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "bot.cli", *arguments], capture_output=True, env=environment)
    took = time.perf_counter() - begun
    assert done.returncode == 0, done.stderr.decode()
    return took


def cold_check(folder: Path) -> float:
    script = folder / "script.md"
    script.write_text(SCRIPT)
    return cold(folder, "check", str(script))


def cold_rehearsal(folder: Path) -> float:
    return cold(folder, "rehearse", str(HERE / "onboarding.json"), "--scenario", str(HERE / "onboarding.yaml"))


def large_check() -> float:
    """Seconds of checking 2,000 ops of which 200 carry an expression, in a warm process."""
    ops = [_op(i) for i in range(2000)]
    text = json.dumps(ops)
    world = World(
        now=datetime(2026, 3, 2, tzinfo=UTC), people=(Person(email="ana@acme.de", name="Ana"),), owner="ana@acme.de"
    )
    known = catalog([tool_spec("deploy")])
    examine(text[:200], known, world)
    begun = time.perf_counter()
    seen = examine(text, known, world)
    took = time.perf_counter() - begun
    assert not seen.problems, seen.rendered()
    return took


def _op(i: int) -> dict[str, object]:
    if i % 10 == 0:
        before = f"v{i - 10} + {i} > 3 ? 1 : size('abc')" if i else "1"
        return {"op": "core.let", "id": f"v{i}", "params": {"be": before}}
    if i % 10 < 4:
        return {"op": "say", "params": {"body": f"Value is $v{i - i % 10} now"}}
    if i % 10 < 6:
        question = {"question": f"Number {i}?", "choices": ["yes", "no"]}
        return {"op": "ask", "id": f"q{i}", "to": "ana@acme.de", "params": question}
    return {"op": "deploy", "id": f"d{i}", "params": {"service": "web", "n": i}}
