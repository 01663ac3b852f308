"""What stands outside: a loopback HTTP server with two tools, which notes every call before it answers."""

from __future__ import annotations

import json
import random
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it came in."""

    tool: str
    key: str
    order: str
    params: dict[str, Any]
    at: float


@dataclass
class Outside:
    """`slow`: how many answers of a hundred take their time; `cut`: how many never come, the call noted."""

    seed: int
    slow: int = 20
    cut: int = 6
    calls: list[Call] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.outside = self
        threading.Thread(target=self._server.serve_forever, name="outside", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def note(self, tool: str, key: str, params: dict[str, Any]) -> int:
        """Keeps a call; gives a number below a hundred that says how it is answered."""
        call = Call(tool=tool, key=key, order=str(params.get("order")), params=params, at=time.monotonic())
        with self._lock:
            self.calls.append(call)
            return self._chance.randrange(100)

    def of(self, tool: str, order: str) -> list[Call]:
        with self._lock:
            return [c for c in self.calls if c.tool == tool and c.order == order]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    outside: Outside

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that was killed in the middle is what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # type: ignore[assignment]

    def do_POST(self) -> None:
        outside = self.server.outside
        params = json.loads(self.rfile.read(int(self.headers["content-length"])))
        fate = outside.note(self.path[1:], self.headers["idempotency-key"], params)
        if fate < outside.cut:
            self.close_connection = True
            self.connection.close()
            return
        if fate < outside.cut + outside.slow:
            time.sleep(fate / 100)
        body = json.dumps({"receipt": params.get("order")}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""
