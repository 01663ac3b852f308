"""One process that serves: settings, the first person, uvicorn in the product's own loop, one order of closing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Protocol

import structlog
import uvicorn
from starlette.routing import Route

from bot.config import DEFAULT_DATABASE, EXAMPLE, Settings, load
from bot.domain.errors import Misconfigured
from bot.people import directory
from bot.wiring import Product
from store import people

FINE, SURROUNDINGS = 0, 3
DRAIN_S = 5
"""How long open requests may take to end."""


class Beside(Protocol):
    """What is served beside the room: chat platforms, and what they call."""

    def routes(self) -> Sequence[Route]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


Attach = Callable[[Product], Beside]
"""Makes it of a product that has not started."""


def serve(*, demo: bool, role: str = "all", attach: Attach | None = None) -> int:
    """Serves until it is told to end; gives the exit status (3: the port or the surroundings are at fault)."""
    _quiet()
    try:
        settings = prepared(demo)
        product = Product(settings)
    except Misconfigured as fault:
        print(f"waiton: {fault}", file=sys.stderr)
        return SURROUNDINGS
    try:
        return asyncio.run(_serve(product, settings, role, attach))
    except KeyboardInterrupt:
        return FINE


def prepared(demo: bool) -> Settings:
    """The settings; with `demo`, and none there yet, the example's are written beside the database first."""
    settings = load()
    if demo and settings.path is None:
        database = settings.database
        prefix = "sqlite:///"
        folder = (
            Path(database[len(prefix) :]).parent
            if database.startswith(prefix)
            else Path(DEFAULT_DATABASE[len(prefix) :]).parent
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "waiton.toml").write_text(EXAMPLE, encoding="utf-8")
        settings = load()
    return settings


async def _serve(product: Product, settings: Settings, role: str, attach: Attach | None) -> int:
    from bot.server.app import app

    chat = attach(product) if attach is not None and role != "worker" else None

    held: socket.socket | None = None
    if role != "worker":
        try:
            held = bound(settings)
        except OSError as fault:
            print(
                f"waiton: {settings.host}:{settings.port} cannot be used ({fault.strerror or fault}); "
                "end what runs there, or set WAITON_PORT",
                file=sys.stderr,
            )
            product.db.close()
            return SURROUNDINGS
    stop = asyncio.Event()
    with signals(stop):
        await product.start()
        first = await _first_person(product, settings)
        if held is None:
            print("waiton works without pages (role worker); Ctrl-C ends it", flush=True)
            await stop.wait()
            await product.stop()
            return FINE
        web = app(product, chat.routes() if chat is not None else ())
        server = PlainServer(
            uvicorn.Config(
                web,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=DRAIN_S,
                server_header=False,
                date_header=True,
            )
        )
        serving = asyncio.create_task(server.serve([held]))
        await _announce(product, settings, held, first)
        if chat is not None:
            await chat.start()
        await asyncio.wait({serving, stopping := asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        web.state.closing.set()  # open pages let go, so that the server can drain
        server.should_exit = True
        await serving
        if chat is not None:
            await chat.stop()
        await product.stop()
    return FINE


class PlainServer(uvicorn.Server):
    """Signals are taken by `signals`: one order of shutting down."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.contextmanager
def signals(stop: asyncio.Event) -> Generator[None]:
    """SIGTERM and Ctrl-C ask for an orderly end; a second one does not wait."""
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    taken = [s for s in (signal.SIGTERM, signal.SIGINT) if _take(loop, s, asked)]
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


def _take(loop: asyncio.AbstractEventLoop, number: signal.Signals, asked: object) -> bool:
    try:
        loop.add_signal_handler(number, asked)  # type: ignore[arg-type]
    except (NotImplementedError, RuntimeError, ValueError):  # not the main thread, or a platform without them
        return False
    return True


def bound(settings: Settings) -> socket.socket:
    """A socket that listens at the settings' address. Raises OSError where it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


async def _first_person(product: Product, settings: Settings) -> str:
    """Whom the first link logs in; made where there is nobody at all."""
    person = directory.default_person(settings)
    world = await product.desk.world()
    if not world.people:
        await product.committer.write(lambda tx: people.put(tx, person.email, person.name, person.timezone))
        product.people_changed()
        return person.email
    return person.email if world.person(person.email) else world.people[0].email


async def _announce(product: Product, settings: Settings, held: socket.socket, first: str) -> None:
    fixed = settings.port != 0 or settings.public_url is not None
    base = settings.url if fixed else f"http://{settings.host}:{held.getsockname()[1]}"
    await product.desk.serving_at(base)
    link = await product.desk.login_link(first, base=base)
    world = await product.desk.world()
    other = next((p.email for p in world.people if p.email != first), "you@example.com")
    print(
        f"\nWaiton is up. Log in as {world.name_of(first)} (once, within 15 minutes):\n\n  {link}\n\n"
        f"As another: waiton login {other}    End it: Ctrl-C\n",
        flush=True,
    )


def _quiet() -> None:
    """Structured lines on stderr, warnings and worse."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
