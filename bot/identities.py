"""Who people are on the platforms, from the terminal: `waiton people link`, `waiton people prefer`."""

from __future__ import annotations

from bot.chat.platforms import channels_of
from bot.domain.errors import WaitonError
from bot.exits import FINE
from bot.runtime.desk import LOGIN_MINUTES
from bot.terminal import acting, product
from channels.base import Inviting
from store import people


async def link(email: str, channel: str, ref: str | None) -> int:
    """Links an identity that is known, or gives the words that prove one: single use, for 15 minutes."""
    async with product() as one:
        me = await acting(one.desk, email)
        if ref is not None:
            await one.committer.write(lambda tx: people.link(tx, me, channel, ref))
            one.people_changed()
            print(f"{me} is {ref} on {channel}")
            return FINE
        if channel not in one.settings.platforms:
            raise WaitonError(f"{channel} is not on: its token is not set")
        secret = await one.desk.proof(me)
        made = channels_of(one.settings, one.clock.now)[channel]
        try:
            address = await made.invite(secret) if isinstance(made, Inviting) else None
        finally:
            await made.stop()
        if isinstance(address, str):
            print(f"{me} opens this within {LOGIN_MINUTES} minutes, once:")
            print(address)
            return FINE
        print(f"{me} sends this to the bot on {channel}, where nobody else reads it, within {LOGIN_MINUTES} minutes:")
        print(f"link {secret}")
        return FINE


async def prefer(email: str, channel: str) -> int:
    """Where somebody's cards go from now on."""
    async with product() as one:
        me = await acting(one.desk, email)
        person = (await one.desk.world()).person(me)
        known = set(person.identities) if person else set()
        if channel != "none" and channel not in known:
            raise WaitonError(f"{me} is nobody on {channel} yet; `waiton people link {me} {channel}`")
        await one.committer.write(lambda tx: people.prefer(tx, me, None if channel == "none" else channel))
        one.people_changed()
        print(f"{me}: cards go " + ("wherever they are" if channel == "none" else f"to {channel}"))
        return FINE
