"""People and programs at work over the API: they start, answer, post, resolve doubts, and try again when nobody
answers. What they were told is kept, for the judge."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.faults.outside import Outside
from tests.faults.served import PEOPLE, Served

SCRIPT = """\
---
title: NAME
---
- noted = note order: "{run.id}/n" retry: {max: 30, backoff: 1s, maxDelay: 1s}
- total = let 20 + 22
- go = ask @bo yes no within 1d
  > Go on with NAME?
- charged = charge order: "{run.id}/c" answer: {go}
- items = list a b c
- marks = map items as item
  - mark = ask @ana good bad within 1d
    > NAME: {item}?
  - paid = charge order: "{run.id}/c{item}" answer: {mark}
  - written = note order: "{run.id}/n{item}" retry: {max: 30, backoff: 1s, maxDelay: 1s}
- tick = expect clock in: 1s
- one = expect shop.orders within 1d after go where: "event.order == 'NAME'"
- two = expect shop.orders within 1d after go where: "event.order == 'NAME'"
- last = charge order: "{run.id}/z" answer: {two.event.tag} after: [one, tick]
- say
  > {total} {one.event.tag}
- show marks
"""
DOUBTS = {"charged": "c", "last": "z"}
TRIES_S = 90
Doing = Callable[[], Awaitable[httpx2.Response]]


@dataclass
class Load:
    """`runs` are started, at most `open_at_once` of them open."""

    served: Served
    outside: Outside
    seed: int
    open_at_once: int = 6
    started: dict[str, str] = field(default_factory=dict)
    """Acknowledged runs: id → name."""
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    """Acknowledged answers: run, path → value."""
    events: dict[str, list[str]] = field(default_factory=dict)
    """Acknowledged events: name of the run → tags."""
    retried: dict[str, int] = field(default_factory=dict)
    """Doubts that were answered with `retry`: order → how often."""
    doubts: int = 0
    faults: list[str] = field(default_factory=list)
    """Answers that no client should get."""
    finishing: bool = False

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.names = 0
        self.seen: dict[str, dict[str, Any]] = {}

    async def work(self) -> None:
        """Until `finishing`, and every run has ended."""
        async with httpx2.AsyncClient(base_url=self.served.url, timeout=10) as client:
            self.client = client
            while True:
                open_ = await self.open_runs()
                for _ in range(self.open_at_once - len(open_) if not self.finishing else 0):
                    await self.start()
                await asyncio.gather(*(self.serve(run) for run in open_))
                if self.finishing and not open_:
                    return
                await asyncio.sleep(0.05)

    async def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx2.Response | None:
        """One request as somebody; None where no answer came, or the server was about to close."""
        headers = {"authorization": f"Bearer {self.served.tokens[who]}"}
        try:
            found = await self.client.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError:
            await asyncio.sleep(0.05)
            return None
        if found.status_code >= 500:
            self.faults.append(f"{method} {path}: {found.status_code} {found.text[:200]}")
            return None
        return found

    async def insist(self, who: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        """The same request again until it is answered, as a platform redelivers."""
        async with asyncio.timeout(TRIES_S):
            while True:
                if (found := await self.ask(who, method, path, body)) is not None:
                    return found

    async def open_runs(self) -> list[str]:
        found = await self.insist("bo", "GET", "/api/runs?state=waiting&limit=200")
        return [run["id"] for run in found.json()["runs"]]

    async def start(self) -> None:
        """One more run. An answer that is lost is nobody's acknowledgement: the run may be there or not."""
        self.names += 1
        name = f"r{self.names}"
        answer = await self.ask("bo", "POST", "/api/runs", {"script": SCRIPT.replace("NAME", name), "job": "load"})
        if answer is not None:
            assert answer.status_code == 201, answer.text
            self.started[answer.json()["id"]] = name

    async def serve(self, run: str) -> None:
        """Does one of the things that a run waits for."""
        found = (await self.insist("bo", "GET", f"/api/runs/{run}")).json()
        self.seen[run] = found
        ops = {op["path"]: op for op in found["ops"]}
        todo: list[Doing] = [
            lambda op=op: self.answer(run, op) for op in found["ops"] if op["op"] == "ask" and op["state"] == "waiting"
        ]
        todo += [lambda op=op: self.resolve(run, op) for op in found["ops"] if op["state"] == "uncertain"]
        go = next((op for op in ops.values() if op["id"] == "go"), None)
        name = self.name_of(found)
        if go is not None and go["state"] in ("waiting", "done") and len(self.events.get(name, [])) < 2:
            todo.append(lambda: self.post(name))
        if todo:
            await self.chance.choice(todo)()

    def name_of(self, found: dict[str, Any]) -> str:
        card = next((d for d in found["deliveries"] if "Go on with" in d["text"]), None)
        return card["text"].split("Go on with ")[1].split("?")[0] if card else ""

    async def answer(self, run: str, op: dict[str, Any]) -> httpx2.Response:
        mark = op["id"] == "mark"
        value = self.chance.choice(["good", "bad"] if mark else ["yes", "no"])
        path = f"/api/runs/{run}/ops/{op['path']}/answer"
        said = await self.insist("ana" if mark else "bo", "POST", path, {"with": value})
        if said.status_code == 200:
            self.answers[run, op["path"]] = value
        else:
            self.faults.append(f"{path} {value}: {said.status_code} {said.text}")
        return said

    async def resolve(self, run: str, op: dict[str, Any]) -> httpx2.Response:
        """The owner looks at what happened outside, and says so."""
        order = f"{run}/{DOUBTS.get(op['id']) or 'c' + 'abc'[int(op['path'].split('[')[1].split(']')[0])]}"
        calls = len(self.outside.of("charge", order))
        value = "happened" if calls > self.retried.get(order, 0) else "retry"
        said = await self.insist("bo", "POST", f"/api/runs/{run}/ops/{op['path']}/answer", {"with": value})
        if said.status_code == 200:
            self.doubts += 1
            if value == "retry":
                self.retried[order] = self.retried.get(order, 0) + 1
        return said

    async def post(self, name: str) -> httpx2.Response:
        """An event of the shop, with the sender's own id, until it is acknowledged."""
        tags = self.events.setdefault(name, [])
        tag = f"{name}-{len(tags)}"
        said = await self.insist(
            "ana", "POST", "/api/events/shop.orders", {"id": tag, "data": {"order": name, "tag": tag}}
        )
        assert said.status_code == 202, said.text
        tags.append(tag)
        return said


def email(who: str) -> str:
    return PEOPLE[who]
