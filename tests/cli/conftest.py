"""The command line in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = """\
[workspace]
name = "acme"
timezone = "Europe/Berlin"
[people."ana@acme.de"]
name = "Ana"
[people."bo@acme.de"]
name = "Bo"
[roles]
leads = ["ana@acme.de", "bo@acme.de"]
[streams."shop.orders"]
[tools.demo]
demo = true
[policy]
approve = { "demo_deploy" = "role:leads" }
"""


@dataclass
class Folder:
    """A folder with settings; `waiton` runs one command in it."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WAITON_")}
        return kept | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "COLUMNS": "100"}

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "bot.cli"]

    def write(self, name: str, text: str) -> str:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")
        return name

    def waiton(self, *words: str, stdin: str = "", **more: str) -> Said:
        done = subprocess.run(
            [*self.command, *words], cwd=self.path, env=self.environment | more, input=stdin,
            text=True, capture_output=True, timeout=50,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return Said(status=done.returncode, out=done.stdout, err=done.stderr)

    def run(self, script: str, *words: str, stdin: str = "") -> Said:
        return self.waiton("run", self.write("script.md", script), *words, stdin=stdin)

    def started(self, script: str, *words: str) -> str:
        """A run that is handed to the server: its id."""
        said = self.run(script, "--detach", *words)
        assert said.status == 0, said.err
        return said.out.strip()


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, status: int, *words: str) -> None:
        """Told on stderr in a line plus the mend, nothing on stdout, this status."""
        assert (self.status, self.out) == (status, ""), self
        assert len(self.err.strip().splitlines()) <= 2, self.err
        assert all(word in self.err for word in words), self.err


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    found = Folder(tmp_path)
    found.write("waiton.toml", SETTINGS)
    yield found
