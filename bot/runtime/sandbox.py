"""Evaluates CEL and jq in processes that may hang, grow or crash without harm to anyone else.

A fork server, primed once, forks evaluators on demand; an evaluation that outlives its time is killed with its
process and a fresh one takes its place. Nothing starts before the first use.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from bot.domain.errors import OpError
from bot.domain.values import dump, load
from bot.runtime.sandbox_server import COMMAND, LENGTH, OUT_OF_MEMORY, STATUS

_LONG = 100_000
"""Bytes of a request whose data is probably what takes the time."""

READY_SECONDS = 60.0
"""How long a fork server may take until its first evaluator answers."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); import bot.runtime.sandbox_server as s; "
    "s.serve(int(sys.argv[1]), int(sys.argv[2]))"
)


class _Lost(Exception):
    """The other side has closed."""


class _Evaluator:
    """One process and the socket to it."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self.link = link
        self.pid = pid

    async def ask(self, body: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.link, LENGTH.pack(len(body)) + body)
        return await _exactly(self.link, LENGTH.unpack(await _exactly(self.link, LENGTH.size))[0])


class Sandbox:
    """A pool of evaluators. `workers` evaluate at once, each for at most `seconds` and in `memory_mb`.

    It may be used from several event loops one after the other, not from two at once.
    """

    def __init__(self, workers: int = 2, seconds: float = 2.0, memory_mb: int = 1024) -> None:
        self.workers = workers
        self.seconds = seconds
        self.memory_mb = memory_mb
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._free: list[_Evaluator] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = asyncio.Semaphore(workers)
        self._talking = asyncio.Lock()

    async def cel(self, text: str, env: Mapping[str, Any]) -> Any:
        """What a CEL expression gives with these names. Raises OpError in the script's words."""
        return await self._evaluate({"kind": "cel", "text": text, "names": dict(env)}, "the expression")

    async def jq(self, text: str, value: Any, variables: Mapping[str, Any]) -> Any:
        """What a jq filter gives for a value: its one output, a list of several, null for none. Raises OpError."""
        request = {"kind": "jq", "text": text, "value": value, "names": dict(variables)}
        return await self._evaluate(request, "the filter")

    async def aclose(self) -> None:
        """Ends every process. The next use starts them again."""
        for evaluator in self._free:
            evaluator.link.close()
        self._free.clear()
        self._drop_server()

    async def _evaluate(self, request: dict[str, Any], what: str) -> Any:
        body = dump(request).encode("utf-8", "surrogatepass")
        self._enter_loop()
        async with self._gate:
            evaluator = self._free.pop() if self._free else await self._fresh()
            try:
                async with asyncio.timeout(self.seconds):
                    reply = load((await evaluator.ask(body)).decode("utf-8", "surrogatepass"))
            except TimeoutError:
                await self._end(evaluator)
                hint = (
                    "; `transform` is quicker with long lists" if len(body) > _LONG and request["kind"] == "cel" else ""
                )
                raise OpError(f"{what} took longer than {self.seconds:g} s{hint}") from None
            except (_Lost, ConnectionError):
                raise OpError(self._why(what, await self._end(evaluator))) from None
            except BaseException:
                # Cancelled in the middle: what the evaluator answers would be taken for the next one's answer.
                await asyncio.shield(self._end(evaluator))
                raise
            if OUT_OF_MEMORY in reply:
                await self._end(evaluator)
                raise OpError(self._why(what, -signal.SIGABRT))
            self._free.append(evaluator)
        if "error" in reply:
            raise OpError(reply["error"])
        return reply["value"]

    def _why(self, what: str, status: int) -> str:
        if status == -signal.SIGSEGV:
            return f"{what} recurses or nests its value too deep"
        return f"{what} needed more memory than {self.memory_mb} MB"

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._gate = asyncio.Semaphore(self.workers)
            self._talking = asyncio.Lock()

    async def _fresh(self) -> _Evaluator:
        """A new evaluator, from a new fork server where the old one is gone."""
        for attempt in (1, 2):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            try:
                socket.send_fds(self._start_server(), [COMMAND.pack(b"N", 0)], [theirs.fileno()])
                theirs.close()
                async with asyncio.timeout(READY_SECONDS):
                    return _Evaluator(ours, LENGTH.unpack(await _exactly(ours, LENGTH.size))[0])
            except (_Lost, ConnectionError, TimeoutError) as lost:
                ours.close()
                theirs.close()
                self._drop_server()
                if attempt == 2:
                    raise OpError("the evaluator does not start") from lost
        raise AssertionError

    def _start_server(self) -> socket.socket:
        if self._control is not None and self._server is not None and self._server.poll() is None:
            return self._control
        self._drop_server()
        ours, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(theirs.fileno()), str(self.memory_mb << 20),
             json.dumps([os.path.abspath(entry) for entry in sys.path])],
            env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()], start_new_session=True,
        )  # fmt: skip
        theirs.close()
        ours.setblocking(False)
        self._control = ours
        return ours

    def _drop_server(self) -> None:
        """The fork server ends its evaluators when the control socket closes."""
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            self._server.kill() if self._hanging() else None
        self._control = self._server = None

    def _hanging(self) -> bool:
        assert self._server is not None
        try:
            self._server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return True
        return False

    async def _end(self, evaluator: _Evaluator) -> int:
        """Kills one evaluator; gives its exit status, a signal as its negative number."""
        evaluator.link.close()
        control = self._control
        if control is None:
            return -signal.SIGKILL
        loop = asyncio.get_running_loop()
        async with self._talking:
            try:
                await loop.sock_sendall(control, COMMAND.pack(b"K", evaluator.pid))
                return STATUS.unpack(await _exactly(control, STATUS.size))[1]
            except (_Lost, OSError):
                self._drop_server()
                return -signal.SIGKILL


async def _exactly(link: socket.socket, count: int) -> bytes:
    loop = asyncio.get_running_loop()
    parts: list[bytes] = []
    while count:
        part = await loop.sock_recv(link, min(count, 1 << 20))
        if not part:
            raise _Lost
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
