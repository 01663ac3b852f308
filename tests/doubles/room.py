"""The room as a stage: people with a session each, posting what the pages post, seeing what the pages show."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2

from bot.server import conversation
from bot.server.entries import Item
from bot.wiring import Product
from channels.base import Capabilities
from store import runs
from tests.channels.stage import Lacks, Seen
from tests.runtime.world import START

JOB = "room"
FAKED = "w:forged"


class RoomStage:
    """Nothing is sent by the room: what is committed is there. So nothing can be away, lost or refused."""

    name = "web"
    capabilities = Capabilities(looks_up=True, private=True)

    def __init__(self) -> None:
        self.env: Mapping[str, str] = {}
        self.product: Product | None = None
        self.address = ""
        self.people: dict[str, tuple[httpx2.AsyncClient, str]] = {}
        self.private: dict[str, list[str]] = {}
        self.kept: dict[str, str] = {}
        self.took = 0.0
        self._last: tuple[str, str, dict[str, str]] | None = None
        self._edits: dict[str, tuple[int, str | None]] = {}
        self._replies: dict[str, list[Seen]] = {}

    async def __aenter__(self) -> RoomStage:
        return self

    async def __aexit__(self, *_: Any) -> None:
        for client, _ in self.people.values():
            await client.aclose()

    def ref(self, who: str) -> str:
        return f"{who}@acme.de"

    def connect(self, address: str) -> None:
        self.address = address

    async def ready(self) -> None:
        product = self._product
        await product.committer.write(lambda tx: runs.add_job(tx, JOB, "Room", f"web:{JOB}", START))
        for client, _ in self.people.values():
            await client.aclose()
        self.people.clear()
        for who in ("ana", "bo", "jonas"):
            client = httpx2.AsyncClient(base_url=self.address, timeout=20, headers={"Accept": "application/json"})
            link = await product.desk.login_link(self.ref(who), base=self.address)
            done = await client.post(link, headers={"Origin": self.address})
            found = await product.desk.session(client.cookies["waiton"])
            assert done.status_code == 303 and found is not None
            self.people[who] = (client, found[1])

    @property
    def _product(self) -> Product:
        assert self.product is not None
        return self.product

    # --- what people do -------------------------------------------------------------------------------------------
    async def _post(self, who: str, path: str, form: dict[str, str]) -> httpx2.Response:
        if who not in self.people:
            raise Lacks("nobody is in the room who is not of the workspace")
        client, csrf = self.people[who]
        self._last = (who, path, form)
        begun = time.perf_counter()
        said = await client.post(path, data={**form, "csrf": csrf}, headers={"Origin": self.address})
        self.took = time.perf_counter() - begun
        if said.headers.get("content-type", "").startswith("application/json"):
            self.private.setdefault(who, []).append(str(said.json().get("text", "")))
        return said

    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        if form not in ("text", "code"):
            raise Lacks(form)
        said = await self._post(who, f"/jobs/{JOB}/runs", {"script": text, "do": "run"})
        if said.status_code == 422:
            checked = await self._post(who, "/check", {"script": text, "job": JOB})
            words = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", checked.json()["html"])))
            mine = self._replies.setdefault(who, [])
            mine.append(Seen(ref=f"reply-{len(mine)}", conversation=f"web:{JOB}", text=f"{words} Nothing has started"))
        return f"web:{JOB}"

    async def write(self, who: str, text: str) -> str:
        await self._post(who, f"/jobs/{JOB}/runs", {"script": text, "do": "message"})
        return f"web:{JOB}"

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        await self._post(who, f"/a/{self._token(seen)}", {"with": label})

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        await self._post(who, f"/a/{self._token(seen)}", {"with": text})

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        form = {f"f.{name}": value for name, value in values.items()}
        said = (await self._post(who, f"/a/{self._token(seen)}", form)).json()
        return {} if said["accepted"] else {name: said["text"] for name in values if f"`{name}`" in said["text"]}

    async def again(self) -> None:
        assert self._last is not None
        who, path, form = self._last
        if not path.endswith("/runs"):  # a page's post of a script is made once: the browser repeats nothing
            await self._post(who, path, form)

    async def forged(self) -> bool:
        client, _ = self.people["bo"]
        said = await client.post(f"/a/{FAKED}", data={"with": "approve"}, headers={"Origin": "http://elsewhere.test"})
        return said.status_code < 400

    def _token(self, seen: Seen) -> str:
        return self.kept[seen.ref]

    # --- what people see ------------------------------------------------------------------------------------------
    def seen(self, who: str) -> list[Seen]:
        if who not in self.people:
            return []
        desk = self._product.desk
        world = replace(desk.site.world(desk.clock.now()), now=desk.clock.now())
        talk = desk.committer.db.read(conversation.talk, desk.site, world, self.ref(who), JOB)
        return [*(self._shown(item) for item in (talk.items if talk else ())), *self._replies.get(who, [])]

    def _shown(self, item: Item) -> Seen:
        if item.token:
            self.kept[item.key] = item.token
        waits = [f"waiting on {wait.who}" for wait in item.waits]
        card = item.card
        words = "\n".join(
            filter(None, (card.title if card else "", card.text if card else "", item.outcome, item.pill, *waits))
        )
        edits, before = self._edits.get(item.key, (-1, None))
        if words != before:
            self._edits[item.key] = (edits + 1, words)
        buttons = card.buttons if card is not None and item.state == "mine" else ()
        return Seen(
            ref=item.key, conversation=f"web:{JOB}", text=words, buttons=buttons, edits=self._edits[item.key][0]
        )

    def told(self, who: str) -> list[str]:
        return self.private.get(who, [])

    def acknowledged(self) -> float:
        return self.took

    # --- what cannot go wrong ---------------------------------------------------------------------------------
    def away(self, calls: int) -> None:
        raise Lacks("the room is where its database is")

    def lose(self, calls: int) -> None:
        raise Lacks("the room shows what is committed")

    def busy(self, calls: int, seconds: float) -> None:
        raise Lacks("the room has no limit of its own")

    def refuse(self, who: str) -> None:
        raise Lacks("the room refuses nobody who is here")
