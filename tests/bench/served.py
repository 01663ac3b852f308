"""`waiton serve` as a process of its own, measured from outside."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from store import people
from store.transaction import Database, upgrade

SETTINGS = """\
[workspace]
name = "acme"
[people."ana@acme.de"]
name = "Ana"
[people."bo@acme.de"]
name = "Bo"
[people."jonas@acme.de"]
name = "Jonas"
[policy]
approve = {}
"""
TICKS = os.sysconf("SC_CLK_TCK")
READY_S = 60


class Process:
    """A server on the database of a folder; `start` gives the seconds until it is ready."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        (folder / "waiton.toml").write_text(SETTINGS, encoding="utf-8")
        url = f"sqlite:///{folder}/waiton.db"
        upgrade(url)
        database = Database(url)
        self.token = secrets.token_urlsafe(24)
        database.write(lambda tx: people.add_token(tx, self.token, "ana@acme.de", "bench", datetime.now(UTC), None))
        database.close()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "WAITON_CONFIG": str(folder / "waiton.toml"),
            "WAITON_DATABASE_URL": url,
            "WAITON_PORT": str(self.port),
        }

    def start(self) -> float:
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bot.cli", "serve"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while True:
            try:
                if httpx2.get(f"http://127.0.0.1:{self.port}/readyz", timeout=1).status_code == 200:
                    return time.perf_counter() - begun
            except httpx2.HTTPError:
                pass
            assert self.process.poll() is None, ((self.process.stderr and self.process.stderr.read()) or b"").decode()
            assert time.perf_counter() - begun < READY_S, "not ready"
            time.sleep(0.005)

    def answer(self, run_id: str) -> None:
        said = httpx2.post(
            f"http://127.0.0.1:{self.port}/api/runs/{run_id}/ops/1/answer",
            json={"with": "approve"},
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )
        assert said.status_code == 200, said.text

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)

    def cpu_s(self) -> float:
        """CPU seconds of the process and of the children that it has."""
        return sum(_cpu_s(pid) for pid in self._pids())

    def rss(self) -> int:
        """Resident bytes of the process and its children, what they share counted once."""
        return sum(_pss(pid) for pid in self._pids())

    def _pids(self) -> list[int]:
        assert self.process is not None
        found, ahead = [], [self.process.pid]
        while ahead:
            pid = ahead.pop()
            found.append(pid)
            children = Path(f"/proc/{pid}/task/{pid}/children")
            ahead += [int(one) for one in children.read_text().split()] if children.exists() else []
        return found


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
