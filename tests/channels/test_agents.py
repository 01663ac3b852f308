"""The worked example of the language's page, with agents, on every platform and in the room: what leaves is one
number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.config import ModelSettings
from bot.domain.catalog import Agent
from tests.agents.world import HAIKU, WORKED, reader
from tests.channels.stage import Stage
from tests.channels.world import stand
from tests.doubles.claude import KEY, claude
from tests.doubles.line import LineStage
from tests.doubles.plain import Plain
from tests.doubles.room import RoomStage
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage

pytestmark = pytest.mark.anyio
FILES = {"attach": "UnixStream::connect", "agents": "UnixListener::bind", "log": "fs::write", "main": "", "net": "Tcp"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    "make", [Plain, SlackStage, TelegramStage, LineStage, RoomStage], ids=["plain", "slack", "telegram", "line", "room"]
)
async def test_the_worked_example_gives_two_and_nothing_that_agents_read_is_seen(
    make: Callable[[], Stage], tmp_path: Path
) -> None:
    folder = tmp_path / "files" / "core" / "src"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / f"{name}.rs").write_text(f"{text} // secret {name}\n")
    stage = make()
    async with claude(reader) as api:
        model = ModelSettings(key=KEY, base_url=api.url, name=HAIKU)
        given = {"agents": (Agent(name="claude", default=True),), "model": model}
        async with stand(stage, tmp_path, **given) as at:
            await stage.paste("bo", WORKED)
            shown = await at.run()
            if not isinstance(
                stage, LineStage | RoomStage
            ):  # no message that is edited: LINE cannot, the room need not
                await at.shows("bo", "2")
            seen = " ".join(message.text for message in stage.seen("bo"))
    assert shown["result"] == 2 and "secret" not in seen and api.refused == []
