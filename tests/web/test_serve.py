"""The process: what it prints, what it writes, how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = "import sys; from bot.server.serve import serve; sys.exit(serve(demo=True, role='all'))"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, port: int) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("WAITON_")}
    env |= {"WAITON_DATABASE_URL": f"sqlite:///{folder}/waiton.db", "WAITON_PORT": str(port), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", CODE], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    port = free_port()
    process = start(tmp_path, port)
    said = ""
    assert process.stdout is not None
    while "End it" not in said:
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        said += line
    yield process, port, said
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_it_prints_one_link_that_logs_the_first_person_in_and_how_to_be_another(served, tmp_path: Path):
    _, port, said = served
    links = re.findall(r"http://\S+", said)
    assert len(links) == 1 and "waiton login bo@acme.de" in said
    assert "[roles]" in (tmp_path / "waiton.toml").read_text(encoding="utf-8")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", links[0].split(str(port))[1])
    answer = connection.getresponse()
    assert answer.status == 303 and answer.headers["set-cookie"].startswith("waiton=")
    connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order_while_a_page_is_open(served, number: signal.Signals):
    process, port, said = served
    found = re.search(r"/login/\S+", said)
    assert found
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", found[0])
    cookie = connection.getresponse().headers["set-cookie"].split(";")[0]
    connection.close()
    live = http.client.HTTPConnection("127.0.0.1", port)
    live.request("GET", "/live", headers={"cookie": cookie})
    assert live.getresponse().status == 200
    began = time.monotonic()
    process.send_signal(number)
    _, faults = process.communicate(timeout=20)
    live.close()
    assert process.returncode == 0 and faults == "" and time.monotonic() - began < 10


def test_a_taken_port_is_one_line_and_status_three(served, tmp_path: Path):
    _, port, _ = served
    other = tmp_path / "other"
    other.mkdir()
    second = start(other, port)
    said, faults = second.communicate(timeout=30)
    assert second.returncode == 3 and said == ""
    assert faults.count("\n") == 1 and f"127.0.0.1:{port} cannot be used" in faults and "WAITON_PORT" in faults
