"""`waiton serve` as a process of its own, measured from outside."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.faults.served import Served

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Measured(Served):
    """A server on the database of a folder, its CPU and memory."""

    outside: str = "http://127.0.0.1:9"

    @property
    def environment(self) -> dict[str, str]:
        """With compiled modules kept: what is measured is a start as people have it."""
        return {k: v for k, v in super().environment.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def begin(self) -> float:
        """Starts it; gives the seconds until it is ready."""
        begun = time.perf_counter()
        self.start()
        self.ready()
        return time.perf_counter() - begun

    def answer(self, run_id: str) -> None:
        said = httpx2.post(
            f"{self.url}/api/runs/{run_id}/ops/1/answer",
            json={"with": "approve"},
            headers={"Authorization": f"Bearer {self.tokens['ana']}"},
            timeout=30,
        )
        assert said.status_code == 200, said.text

    def cpu_s(self) -> float:
        """CPU seconds of the process and of the children that it has."""
        return sum(_cpu_s(pid) for pid in self._pids())

    def rss(self) -> int:
        """Resident bytes of the process and its children, what they share counted once."""
        return sum(pss(str(pid)) for pid in self._pids())

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


def pss(pid: str) -> int:
    """Resident bytes of a process (`self`: this one), what it shares counted by its part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
