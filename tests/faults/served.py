"""The product as a process of its own: started, killed, started again, on one SQLite file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]
READY_S = 40
PEOPLE = {"ana": "ana@acme.de", "bo": "bo@acme.de", "jonas": "jonas@acme.de"}
SETTINGS = """\
[workspace]
name = "acme"
[people."ana@acme.de"]
name = "Ana"
[people."bo@acme.de"]
name = "Bo"
[people."jonas@acme.de"]
name = "Jonas"
[streams."shop.orders"]
[policy]
approve = {}
[tools.note]
http = "POST OUTSIDE/note"
idempotent = true
timeout = 10
[tools.charge]
http = "POST OUTSIDE/charge"
timeout = 10
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Served:
    """A folder with settings, a database and what the server said on stderr."""

    folder: Path
    outside: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    tokens: dict[str, str] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    """Further variables of its environment."""

    def __post_init__(self) -> None:
        (self.folder / "waiton.toml").write_text(SETTINGS.replace("OUTSIDE", self.outside), encoding="utf-8")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        return f"sqlite:///{self.folder}/waiton.db"

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WAITON_")}
        return kept | {
            "WAITON_DATABASE_URL": self.database,
            "WAITON_CONFIG": str(self.folder / "waiton.toml"),
            "WAITON_PORT": str(self.port),
            "PYTHONPATH": str(ROOT),
            **self.more,
        }

    def waiton(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """One command of the terminal, on the same database."""
        return subprocess.run(
            [sys.executable, "-m", "bot.cli", *args],
            cwd=self.folder, env=self.environment, text=True, capture_output=True, timeout=60, input=stdin,
        )  # fmt: skip

    def make_tokens(self) -> None:
        for name, email in PEOPLE.items():
            done = self.waiton("token", "create", email)
            assert done.returncode == 0, done.stderr
            self.tokens[name] = done.stdout.splitlines()[-1]

    def start(self) -> None:
        """Starts the server; `ready` says when it answers."""
        with (self.folder / "stderr.txt").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bot.cli", "serve"],
                cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=said,
            )  # fmt: skip

    def ready(self) -> None:
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            assert self.process is not None
            assert self.process.poll() is None, f"the server ended by itself: {self.said()}"
            try:
                if httpx2.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx2.HTTPError:
                time.sleep(0.05)
        raise AssertionError(f"the server was not ready within {READY_S} s: {self.said()}")

    def kill(self) -> None:
        """As a machine that loses power, as far as a process can tell."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self) -> int:
        """Asks it to end in order; gives its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        self.process = None
        return status

    def said(self) -> str:
        return (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-4000:]

    def left_over(self) -> list[str]:
        """Processes that work in this folder still."""
        found: list[str] = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "cwd").resolve() == self.folder.resolve():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found
