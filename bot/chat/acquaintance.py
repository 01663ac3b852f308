"""Who people are on a platform that tells: found by their email, and its groups as roles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from bot.runtime.desk import Desk
from channels.base import Channel, Grouped
from store import people
from store.dialect import Transaction

log = structlog.get_logger()
EVERY_S = 600.0
"""How often it is looked again: somebody may have joined."""


class Acquaintance:
    """Looks once at the start, then now and then; whoever is found is written to there from then on."""

    def __init__(self, desk: Desk, channels: Mapping[str, Channel], people_changed: Callable[[], None]) -> None:
        self.desk = desk
        self.channels = channels
        self.people_changed = people_changed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._look_now_and_then(), name="acquaintance")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_now_and_then(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as fault:
                log.warning("people could not be looked up, trying again", fault=str(fault))
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Links everybody of the workspace whom a platform knows by their email, and takes over its groups."""
        for name, channel in self.channels.items():
            moved = False
            for person in (await self.desk.world()).people:
                if name in person.identities:
                    continue
                found = await channel.find(person.email)
                if found is not None:
                    email, ref = person.email, found.ref
                    await self.desk.committer.write(
                        lambda tx, email=email, ref=ref, name=name: people.link(tx, email, name, ref)
                    )
                    moved = True
            if isinstance(channel, Grouped):
                groups = await channel.groups()
                moved = (
                    await self.desk.committer.write(
                        lambda tx, name=name, groups=groups: self._take_over(tx, name, groups)
                    )
                    or moved
                )
            if moved:
                self.people_changed()

    def _take_over(self, tx: Transaction, channel: str, groups: Mapping[str, Sequence[str]]) -> bool:
        """Groups as roles of the same name; a role of the settings is the settings' own."""
        before = people.roles(tx)
        moved = False
        for handle, refs in groups.items():
            if handle in self.desk.settings.roles:
                continue
            known = [people.identity_of(tx, channel, ref) for ref in refs]
            members = tuple(dict.fromkeys(one["email"] for one in known if one is not None))
            if members and set(before.get(handle, ())) != set(members):
                for email in before.get(handle, ()):
                    people.drop_role(tx, handle, email)
                for email in members:
                    people.put_role(tx, handle, email)
                moved = True
        return moved
