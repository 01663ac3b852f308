"""A thousand cards that settle at once, on a platform that is short of edits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from channels.base import Answer, Later, Settled, Thing
from store import people, runs
from tests.channels.world import stand
from tests.doubles.plain import Plain
from tests.runtime.world import START, until

pytestmark = pytest.mark.anyio
CARDS = 1_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Short(Plain):
    """Every seventh edit is refused for a moment, with what else the channel does."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = replace(self.capabilities, edits_a_minute=100_000)
        self.edited: list[str] = []
        self.refusals = 0

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        if (self.refusals + len(self.edited)) % 7 == 6:
            self.refusals += 1
            return Later(why="too many", pause=timedelta(milliseconds=2), scope="channel")
        if isinstance(thing, Settled):
            self.edited.append(ref)
        return await super().edit(conversation, ref, thing)


@pytest.mark.slow
async def test_a_thousand_settled_cards_each_show_it_once_however_often_the_platform_says_wait(tmp_path: Path) -> None:
    stage = Short()
    async with stand(stage, tmp_path) as at:
        desk = at.product.desk
        await at.product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        await at.product.committer.write(lambda tx: people.prefer(tx, "ana@acme.de", "plain"))
        at.product.people_changed()
        started = [
            (await desk.start(f"- a = ask @ana yes no\n  > Number {n}?\n", by="bo@acme.de", job="j")).run
            for n in range(CARDS)
        ]
        await until(lambda: len(stage.put) >= CARDS, 50)
        for run in started:
            assert (await desk.answer(run or "", "a", "yes", by="ana@acme.de")).accepted
        await until(lambda: len(stage.edited) >= CARDS, 50)
        assert sorted(stage.edited) == sorted(put.ref for put in stage.put) and stage.refusals > 100


class Slow(Plain):
    """Whatever goes to Ana is put off."""

    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        if conversation == f"plain:{self.ref('ana')}":
            return Later(why="not now", pause=timedelta(minutes=5))
        return await super().send(conversation, thing, ident=ident, again=again)


async def test_a_conversation_that_is_put_off_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    stage = Slow()
    async with stand(stage, tmp_path) as at:
        for who in ("ana", "bo"):
            email = f"{who}@acme.de"
            await at.product.committer.write(lambda tx, email=email: people.prefer(tx, email, "plain"))
        await at.product.committer.write(lambda tx: runs.add_job(tx, "j", "J", "web:j", START))
        at.product.people_changed()
        each = "".join(f"- say @ana\n  > Number {n}\n" for n in range(250))
        await at.product.desk.start(each, by="jonas@acme.de", job="j")
        await at.product.desk.start("- say @bo\n  > And now you\n", by="jonas@acme.de", job="j")
        await at.shows("bo", "And now you")
        assert not any("Number" in m.text for m in stage.seen("ana"))
