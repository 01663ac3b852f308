"""Processes that share a database: who lives, and whose work is whose."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from datetime import timedelta

LASTS = timedelta(seconds=30)
"""How long a lease stands without being renewed."""
RENEWED_S = 8.0


def new_holder() -> str:
    """This process, as leases name it: host, pid, and a word that no other process has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


def lives(holder: str, leases: Mapping[str, str]) -> bool:
    """Whether a process holds its lease still. One of this machine whose pid is gone does not, whatever its lease
    says, so that a restart after a kill waits for nothing."""
    if holder not in leases.values():
        return False
    host, _, rest = holder.partition("/")
    pid = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def run_lease(run_id: str) -> str:
    """The lease of a run that one terminal works on."""
    return f"run:{run_id}"
