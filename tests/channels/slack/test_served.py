"""The whole product as a process of its own, with nothing but its environment: paste, card, wrong person, right tap,
next op, record; by the socket and by HTTP, with a kill in between."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.channels.stage import Seen
from tests.doubles.slack import SlackStage

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
SETTINGS = """
[workspace]
name = "acme"
cards = "thread"
[people."ana@acme.de"]
name = "Ana"
[people."bo@acme.de"]
name = "Bo"
[people."jonas@acme.de"]
name = "Jonas"
[policy]
approve = {}
"""
SCRIPT = (
    "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > It was {scope}\n- show scope\n"
)


class Product:
    """`waiton serve` in a folder of its own, on a port that it keeps over a kill."""

    def __init__(self, folder: Path, stage: SlackStage) -> None:
        self.folder = folder
        self.stage = stage
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        (folder / "waiton.toml").write_text(SETTINGS, encoding="utf-8")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WAITON_", "SLACK_"))}
        database = {
            "WAITON_DATABASE_URL": f"sqlite:///{folder}/waiton.db",
            "WAITON_CONFIG": str(folder / "waiton.toml"),
        }
        self.env = {**kept, **database, "WAITON_PORT": str(self.port), "PYTHONPATH": str(ROOT), **stage.env}
        self.process: Process | None = None

    async def start(self) -> None:
        self.process = await self.command("serve", stdout=PIPE)
        assert self.process.stdout is not None
        while b"End it" not in (line := await self.process.stdout.readline()):
            assert line, "it ended before it served"
        self.stage.connect(f"http://127.0.0.1:{self.port}")
        await self.stage.ready()

    async def kill(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()

    async def command(self, *words: str, **more: Any) -> Process:
        code = "import sys; from bot.cli import main; sys.exit(main())"
        return await create_subprocess_exec(sys.executable, "-c", code, *words, cwd=self.folder, env=self.env, **more)

    async def told(self, *words: str) -> Any:
        """What a command prints as JSON."""
        asked = await self.command(*words, stdout=PIPE)
        out, _ = await asked.communicate()
        return json.loads(out)


async def seen(stage: SlackStage, who: str, holds: Callable[[Seen], Any]) -> Seen:
    """The message of which this holds, once this person sees it."""
    return await stage.slack.until(lambda: next((one for one in stage.seen(who) if holds(one)), None), 30)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("http", [False, True], ids=["socket", "http"])
async def test_from_a_paste_to_the_record(anyio_backend: str, tmp_path: Path, http: bool) -> None:
    async with SlackStage(http=http) as stage:
        product = Product(tmp_path, stage)
        try:
            await product.start()
            thread = await stage.paste("bo", SCRIPT, form="rich")
            card = await seen(stage, "jonas", lambda one: "approve" in one.buttons)
            assert card.conversation == thread
            await stage.tap("jonas", card, "approve")
            await stage.slack.until(lambda: any("Ana" in text for text in stage.told("jonas")), 30)
            await product.kill()
            stage.slack.connected.clear()
            await product.start()
            await stage.tap("ana", card, "approve")
            assert 0 < stage.acknowledged() < 2
            await seen(stage, "bo", lambda one: "It was approve" in one.text)
            settled = await seen(stage, "ana", lambda one: one.ref == card.ref and not one.buttons)
            assert "Ana" in settled.text and "approve" in settled.text
            (run,) = await product.told("runs", "--json")
            record = await product.told("show", run["id"], "--as", "json")
            assert (record["state"], record["result"], record["ops"][0]["by"]) == ("done", "approve", "ana@acme.de")
        finally:
            await product.kill()


async def test_the_doctor_names_what_is_missing(anyio_backend: str, tmp_path: Path) -> None:
    async with SlackStage() as stage:
        stage.slack.scopes -= {"files:read", "users:read.email"}
        asked = await Product(tmp_path, stage).command("doctor", stdout=PIPE, stderr=asyncio.subprocess.STDOUT)
        out, _ = await asked.communicate()
        assert b"`files:read`" in out and b"`users:read.email`" in out and b"Traceback" not in out
