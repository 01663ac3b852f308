"""The whole product as a process, with nothing set but what people set, against each platform's double."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot import examples
from tests.channels.stage import Stage
from tests.channels.world import Maker, Stand
from tests.doubles.line import LineStage
from tests.doubles.slack import SlackStage
from tests.doubles.telegram import TelegramStage
from tests.faults.served import PEOPLE, Served
from tests.runtime.world import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ASK = "- scope = ask @ana approve decline\n  > Extend the pilot?\n- say\n  > It was {scope}\n"
STAGES: dict[str, Maker] = {
    "slack": SlackStage,
    "slack-http": lambda: SlackStage(http=True),
    "telegram": TelegramStage,
    "line": LineStage,
}
DEMO = "[tools.demo]\ndemo = true\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=list(STAGES))
def stage(request: pytest.FixtureRequest) -> Stage:
    return STAGES[request.param]()


@dataclass
class Whole(Served):
    """A server with a platform's environment variables."""

    more: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        path = self.folder / "waiton.toml"
        said = path.read_text("utf-8")
        for name, email in PEOPLE.items():
            said = said.replace(f'[people."{email}"]\n', f'[people."{email}"]\n{self.platform} = "{self.refs[name]}"\n')
        path.write_text(said + DEMO, encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.more, "WAITON_PUBLIC_URL": self.url}


@asynccontextmanager
async def whole(stage: Stage, folder: Path, *saved: str) -> AsyncGenerator[tuple[Whole, Stand]]:
    """The server on a stage that stands, with saved scripts."""
    async with stage:
        refs = {who: stage.ref(who) for who in PEOPLE}
        served = Whole(folder, "http://127.0.0.1:9", more=dict(stage.env), refs=refs, platform=stage.name)
        stage.connect(served.url)
        for n, script in enumerate(saved):
            (folder / f"{n}.md").write_text(script, encoding="utf-8")
            done = await asyncio.to_thread(served.waiton, "scripts", "save", f"{n}.md")
            assert done.returncode == 0, done.stdout + done.stderr
        await asyncio.to_thread(served.make_tokens)
        served.start()
        try:
            await asyncio.to_thread(served.ready)
            await asyncio.wait_for(stage.ready(), 30)
            yield served, Stand(stage=stage, product=None, chat=None)  # type: ignore[arg-type]
        finally:
            await asyncio.to_thread(served.kill)


async def latest(served: Whole) -> dict[str, Any] | None:
    """The latest run, as the API gives it."""
    headers = {"Authorization": f"Bearer {served.tokens['bo']}"}
    async with httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=20) as api:
        found = (await api.get("/api/runs")).json()["runs"]
        return (await api.get(f"/api/runs/{found[0]['id']}")).json() if found else None


async def ended(served: Whole) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        run = await latest(served)
        return run if run is not None and run["state"] == "done" else None

    return await until(found)


async def test_a_paste_becomes_a_card_a_tap_the_next_step_and_all_of_it_a_record(stage: Stage, tmp_path: Path) -> None:
    async with whole(stage, tmp_path) as (served, at):
        await stage.paste("bo", ASK)
        card = await at.card("ana", "Extend the pilot?")
        run = await latest(served)
        assert run is not None and run["owner"] == "bo@acme.de" and run["line"].startswith("waiting on Ana")
        await stage.tap("bo", card, "approve")
        assert "Ana" in await at.was_told("bo", "Nothing changed")
        await stage.tap("ana", card, "approve")
        await at.shows("bo", "It was approve")
        told = await ended(served)
        assert [(op["state"], op["value"], op["by"]) for op in told["ops"]][:1] == [("done", "approve", "ana@acme.de")]
        said = await asyncio.to_thread(served.waiton, "doctor")
        assert f"{stage.name} answer" in said.stdout, said.stdout


@pytest.mark.parametrize("stage", ["line", "telegram"], indirect=True)
async def test_a_customer_books_from_the_menu_to_the_end(stage: Any, tmp_path: Path) -> None:
    script = (examples.script("booking") or "").replace("line:", f"{stage.name}:").replace("line_", f"{stage.name}_")
    async with whole(stage, tmp_path, script) as (served, at):
        await stage.menu("mika", "book")
        times = await at.card("mika", "Today at CUBIC")
        await stage.tap("mika", times, "18:30")
        await at.shows("mika", "Booked. See you at 18:30.")
        assert (await ended(served))["state"] == "done"
