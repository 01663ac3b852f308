"""A product on a database of its own, its app behind httpx, people with sessions and tokens; the clock is set."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from bot.config import EXAMPLE, Settings, StreamSettings, load
from bot.domain.catalog import StreamSpec
from bot.runtime.clock import Clock, SetClock
from bot.server.app import app
from bot.server.serve import PlainServer, bound
from bot.wiring import Product
from store import people, runs
from tests.web.browser import ARGS, CHROMIUM, Room

ORIGIN = "http://waiton.test"
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtMTIz"
STREAMS = {
    "signed.standard": ("standard-webhooks", SECRET),
    "signed.github": ("github", "hush"),
    "signed.stripe": ("stripe", "hush"),
    "signed.bearer": ("bearer", "hush"),
}
ANA, BO, JONAS = "ana@acme.de", "bo@acme.de", "jonas@acme.de"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "waiton.toml").write_text(EXAMPLE, encoding="utf-8")
    found = load({"WAITON_DATABASE_URL": f"sqlite:///{tmp_path}/waiton.db", "WAITON_PUBLIC_URL": ORIGIN})
    more = {
        name: StreamSettings(
            spec=StreamSpec(name=name),
            kind=kind,
            secret=secret,
            id="data.event_id" if "standard" in name else None,
            sender="data.user",
        )
        for name, (kind, secret) in STREAMS.items()
    }
    shaped = StreamSpec(
        name="shaped", schema={"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]}
    )
    return replace(
        found, streams={**found.streams, **more, "shaped": StreamSettings(spec=shaped, sender="user", text="note")}
    )


@dataclass
class Site:
    """A running product and its app."""

    product: Product
    clock: SetClock
    web: Any
    made: list[httpx2.AsyncClient] = field(default_factory=list)

    @property
    def desk(self) -> Any:
        return self.product.desk

    def client(self, host: str = "127.0.0.1", **headers: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.web, client=(host, 4711))
        made = httpx2.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers)
        self.made.append(made)
        return made

    async def session(self, email: str) -> Browser:
        """Somebody logged in by a link."""
        client = self.client(origin=ORIGIN)
        link = await self.desk.login_link(email)
        assert (await client.get(link)).status_code == 303
        page = (await client.get("/inbox")).text
        found = re.search(r'name="csrf" value="([^"]+)"', page)
        assert found
        return Browser(client=client, csrf=found[1])

    async def bearer(self, email: str) -> httpx2.AsyncClient:
        token = secrets.token_urlsafe(16)
        await self.product.committer.write(lambda tx: people.add_token(tx, token, email, None, self.clock.now(), None))
        return self.client(authorization=f"Bearer {token}")

    async def job(self, ident: str = "pilot", *, members: tuple[str, ...] = ()) -> str:
        await self.product.committer.write(
            lambda tx: runs.add_job(tx, ident, ident.title(), f"web:{ident}", self.clock.now(), members=members)
        )
        return ident

    async def run(self, script: str, *, by: str = BO, job: str = "pilot") -> str:
        await self.job(job)
        started = await self.desk.start(script, by=by, job=job)
        assert started.run, started.seen.reports()
        return started.run

    async def until(self, holds: Callable[[dict[str, Any]], bool], run: str) -> dict[str, Any]:
        """The run once this holds of it."""
        for _ in range(200):
            found = await self.desk.show(run)
            if holds(found):
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(
            f"it stands as {found['state']}: {[(o['path'], o['state'], o['error']) for o in found['ops']]}"
        )


@dataclass
class Browser:
    """A client with a session, and the token of its pages."""

    client: httpx2.AsyncClient
    csrf: str

    async def get(self, path: str) -> httpx2.Response:
        return await self.client.get(path)

    async def post(self, path: str, headers: dict[str, str] | None = None, **form: str) -> httpx2.Response:
        return await self.client.post(path, data={"csrf": self.csrf, **form}, headers=headers or {})


@pytest.fixture
async def site(settings: Settings, anyio_backend: str) -> AsyncIterator[Site]:
    clock = SetClock(NOW)
    product = Product(settings, clock=clock)
    await product.start()
    found = Site(product=product, clock=clock, web=app(product))
    yield found
    for client in found.made:
        await client.aclose()
    await product.stop()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Chromium for all tests, each with contexts of its own: where it is spoken to."""
    assert CHROMIUM, "chromium is not here"
    words = [
        *ARGS,
        "--headless=new",
        "--remote-debugging-port=0",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ]
    with subprocess.Popen([CHROMIUM, *words, "about:blank"], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        for line in running.stderr:
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                break
        else:
            raise AssertionError("chromium ended before it listened")
        draining = threading.Thread(target=running.stderr.read, daemon=True)
        draining.start()
        yield found[1]
        running.terminate()
        draining.join()


@pytest.fixture
async def room(tmp_path: Path, anyio_backend: str, chromium: str) -> AsyncIterator[Room]:
    """A product that is served on a port of its own, and a browser."""
    async with served(tmp_path, chromium) as found:
        yield found


@contextlib.asynccontextmanager
async def served(
    folder: Path,
    chromium: str,
    *,
    clock: Clock | None = None,
    lossy: str = "lossy",
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Room]:
    """A room whose database is in this folder. `lossy`: what the tool is called that never answers; `env`: what is set
    besides."""
    from playwright.async_api import async_playwright

    hole = await asyncio.start_server(_hang_up, "127.0.0.1", 0)
    port = hole.sockets[0].getsockname()[1]
    (folder / "waiton.toml").write_text(
        f'{EXAMPLE}\n[tools.{lossy}]\nhttp = "POST http://127.0.0.1:{port}/"\n', encoding="utf-8"
    )
    found: Settings = load({"WAITON_DATABASE_URL": f"sqlite:///{folder}/waiton.db", "WAITON_PORT": "0", **(env or {})})
    held = bound(found)
    product = Product(replace(found, port=held.getsockname()[1]), clock=clock)
    await product.start()
    web = app(product)
    server = PlainServer(
        uvicorn.Config(web, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    )
    serving = asyncio.create_task(server.serve([held]))
    async with async_playwright() as play:
        browser = await play.chromium.connect_over_cdp(chromium)
        yield Room(product=product, url=product.settings.url, browser=browser)
        await browser.close()
    web.state.closing.set()
    server.should_exit = True
    await serving
    await product.stop()
    hole.close()


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A tool that is called and never answers: nobody knows whether it did it."""
    await reader.read(1)
    writer.close()
