"""Where a row goes and what is shown of it: the chat's side of the outbox."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.chat import things
from bot.config import Settings
from bot.domain.catalog import World
from bot.domain.changes import CARDS
from bot.people import reach
from bot.people.reach import Way
from bot.runtime.clock import Clock
from bot.runtime.commit import Site, world_of
from bot.runtime.files import FolderFiles
from channels.base import Attached, Channel, Thing
from channels.web.render import attached
from store import runs
from store.dialect import Transaction

FILES_BYTES = 10 * 1024 * 1024
"""Of one file that goes with a message."""


class ChatPost:
    """A `Post` (`bot/runtime/outbox.py`) over the platforms that this process has."""

    def __init__(self, channels: Mapping[str, Channel], site: Site, settings: Settings, clock: Clock) -> None:
        self.channels = channels
        self.site = site
        self.settings = settings
        self.clock = clock

    def way(self, tx: Transaction, row: Mapping[str, Any], shut: Collection[str] = ()) -> Way | None:
        run = runs.get(tx, row["run"]) if row["run"] else None
        job = runs.get_job(tx, run.job) if run else None
        world = self.site.world(self.clock.now())
        return reach.way(
            world,
            row["to"],
            job["conversation"] if job else None,
            self.channels,
            card=reach.card(world, row["kind"], row["card"]),
            shut=shut,
        )

    def _world(self, tx: Transaction, row: Mapping[str, Any]) -> World:
        now: datetime = self.clock.now()
        run = runs.get(tx, row["run"]) if row["run"] else None
        return replace(world_of(self.site, run, now) if run else self.site.world(now), now=now)

    def thing(self, tx: Transaction, row: Mapping[str, Any]) -> Thing | None:
        if row["kind"] in CARDS:
            card = None if row["outcome"] else things.card(tx, self.site, self._world(tx, row), row)
            return replace(card, origin=self._origin(tx, row)) if card is not None else None
        found, lost = self._files(tx, row)
        return things.message(self.site, row, found, lost)

    def _origin(self, tx: Transaction, row: Mapping[str, Any]) -> str | None:
        """The conversation that a card comes from, for one who is written to alone on the same platform."""
        run = runs.get(tx, row["run"])
        job = runs.get_job(tx, run.job) if run else None
        way = self.way(tx, row)
        here = job["conversation"] if job else None
        return here if way is not None and way.ref is not None and reach.surface(here) == way.channel else None

    def _files(self, tx: Transaction, row: Mapping[str, Any]) -> tuple[tuple[Attached, ...], tuple[str, ...]]:
        wanted = attached(row["card"]) if row["kind"] == "say" else ()
        run = runs.get(tx, row["run"]) if wanted else None
        found: list[Attached] = []
        lost: list[str] = []
        for name, path in wanted:
            real = FolderFiles(self.settings.files).found(run.job if run else "", path)
            if real is None or real.stat().st_size > FILES_BYTES:
                lost.append(name)
            else:
                found.append(Attached(name=name, content=real.read_bytes()))
        return tuple(found), tuple(lost)

    def settled(self, tx: Transaction, row: Mapping[str, Any]) -> Thing:
        return things.settled(tx, self.site, self._world(tx, row), row)

    def status(self, tx: Transaction, run_id: str) -> tuple[str, int, Thing] | None:
        run = runs.get(tx, run_id)
        job = runs.get_job(tx, run.job) if run else None
        conversation = job["conversation"] if job else None
        name = reach.surface(conversation)
        if run is None or conversation is None or name not in self.channels:
            return None
        if not self.channels[name].capabilities.edits:
            return None
        return conversation, run.rev, things.status(tx, self.site, self._world(tx, {"run": run_id}), run)
