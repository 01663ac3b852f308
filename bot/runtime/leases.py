"""Processes that share a database: who lives, and whose work is whose."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

LASTS = timedelta(seconds=30)
"""How long a lease stands without being renewed."""
RENEWED_S = 8.0


def new_holder() -> str:
    """This process, as leases name it: host, pid and when it began, and a word that no other process has."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}.{_began(pid) or ''}/{secrets.token_hex(4)}"


def lives(holder: str, leases: Mapping[str, str]) -> bool:
    """Whether a process holds its lease still. One of this machine that is gone does not, whatever its lease says, so
    that a restart after a kill waits for nothing; a pid that began at another time is another process (in a container
    every one is 1)."""
    if holder not in leases.values():
        return False
    host, _, rest = holder.partition("/")
    pid, _, began = rest.partition("/")[0].partition(".")
    if host != socket.gethostname() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    now = _began(int(pid))
    return now is None or (now != ENDED and began in ("", now))


ENDED = "ended"


def _began(pid: int) -> str | None:
    """When a process began, in ticks; `ENDED` for one that nobody has buried; None where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return ENDED if fields[0] == "Z" else fields[19]


def run_lease(run_id: str) -> str:
    """The lease of a run that one terminal works on."""
    return f"run:{run_id}"
