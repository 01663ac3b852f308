"""What comes in, on either way: stored before it is acknowledged.

One Bolt middleware takes everything and answers itself: an event's listener would run after Bolt has acknowledged, and
what it has not stored by then is lost with the process. Where storing fails nothing is acknowledged: HTTP 503, silence
on the socket. Nothing is dropped because Slack says that it is a repeat; the ident says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from slack_bolt.response import BoltResponse

from channels.base import Door, Form, Inbound, Later, Refused, Sender, Sent
from channels.slack import inbound, limits, modals, render
from channels.slack.calls import Calls
from channels.slack.outgoing import Outgoing
from channels.slack.pasted import mentions
from channels.slack.people import People
from channels.slack.texts import code, fitting, section, within

log = structlog.get_logger()

NAMED = 20
"""People named in one message that are looked up at most."""
AGAIN = "It took too long to open the form. Tap once more:"
GONE = "There is nothing to fill in here any more."
REFUSING = "Slack takes no messages right now, so nothing was started. Send it once more in a moment."


class Away(Exception):
    """What came cannot be stored now; Slack is to bring it again."""


class Entrance:
    """Takes what Slack brings to the door. `patience_s`: how long a look-up may take before it is gone without, and a
    form before a bare one is opened."""

    def __init__(
        self,
        name: str,
        calls: Calls,
        people: People,
        outgoing: Outgoing,
        now: Callable[[], datetime],
        *,
        patience_s: float,
        gone: Callable[[str], None],
    ) -> None:
        self._name = name
        self._calls = calls
        self._people = people
        self._outgoing = outgoing
        self._now = now
        self._patience_s = patience_s
        self._gone = gone
        self._work: set[asyncio.Task[None]] = set()
        self.door: Door | None = None

    async def middleware(self, body: dict[str, Any], next: Callable[[], Awaitable[Any]]) -> BoltResponse | None:
        """Bolt's: before its own acknowledgement, for everything but its handshake."""
        if body.get("type") == "url_verification" or body.get("ssl_check"):
            await next()
            return None
        try:
            answer = await self._taken(body)
        except Exception as fault:  # whatever kept it from being stored, Slack must hear nothing and bring it again
            log.warning("slack.not_stored", type=body.get("type") or body.get("command"), why=str(fault))
            return BoltResponse(status=503, body="")
        if answer is None:
            return BoltResponse(status=200, body="")
        headers: dict[str, Any] = {"content-type": ["application/json"]}
        return BoltResponse(status=200, body=json.dumps(answer), headers=headers)

    async def settle(self) -> None:
        """Waits for what was begun after an acknowledgement."""
        while self._work:
            await asyncio.gather(*self._work, return_exceptions=True)

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        """A payload, with what is known of people here."""
        given = inbound.read(raw, self._people.known, self._people.names)
        return replace(given, at=self._now()) if given and given.at is None else given

    async def _taken(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Stores a payload; gives what goes back with the acknowledgement."""
        if self.door is None:
            raise Away("nothing is ready to take it yet")
        if raw.get("type") == "event_callback":
            self._notice(raw["event"])
        elif raw.get("type") == "shortcut" and raw.get("callback_id") == inbound.NEW_SHORTCUT:
            self._later(self._open(raw, modals.script("slack:"), None))
            return None
        given = self.read(raw)
        if given is None:
            return None
        given = await self._known(raw, given)
        if given is None:
            return None
        match given.kind:
            case "home":
                self._later(self._show_home(given.sender))
            case "tap":
                await self._tapped(self.door, raw, given)
            case "form":
                return modals.answer(raw["view"], await self.door.submitted(self._name, given))
            case "message" if raw.get("type") == "view_submission":
                return await self._script(self.door, raw, given)
            case "command" if not given.text:
                self._later(self._open(raw, modals.script(given.conversation), given))
            case _:
                await self.door.take(self._name, given)
        return None

    async def _known(self, raw: dict[str, Any], given: Inbound) -> Inbound | None:
        """The same with its sender looked up, and with everybody whom it names."""
        sender = await self._looked_up(given.sender.ref)
        if isinstance(sender, Later) and given.kind in ("message", "edited", "command"):
            raise Away(f"who wrote it is not known: {sender.why}")
        if isinstance(sender, Refused) and given.sender.kind == "member":
            # Whoever cannot be looked up may be a guest, so they may not do what members may.
            return replace(given, sender=replace(given.sender, kind="guest"))
        named = mentions(inbound.written(raw)) if given.kind in ("message", "edited") else []
        unknown = [user for user in named if user != inbound.bot(raw) and not self._people.known(user)]
        await asyncio.gather(*(self._looked_up(user) for user in unknown[:NAMED]))
        read = self.read(raw)
        values = await self._persons(given.values) if given.kind == "form" else given.values
        return replace(read, values=values) if read else None

    async def _looked_up(self, user: str) -> Sender | Later | Refused:
        """Somebody, if Slack says it soon enough for what waits to be acknowledged."""
        try:
            return await asyncio.wait_for(self._people.of(user), self._patience_s)
        except TimeoutError:
            return Later(why="Slack takes too long to say who it is", pause=timedelta(0))

    async def _persons(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """People picked in a form by their address, where Slack tells it."""
        found = dict(values)
        for name, value in values.items():
            if isinstance(value, modals.Person):
                sender = await self._looked_up(value)
                found[name] = (sender.email if isinstance(sender, Sender) else None) or str(value)
        return found

    def _notice(self, event: Mapping[str, Any]) -> None:
        """What Slack says of people and of itself."""
        match event.get("type"):
            case "user_change":
                self._people.learn(event["user"])
            case "tokens_revoked" | "app_uninstalled":
                self._gone(str(event["type"]))
            case _:
                pass

    async def _tapped(self, door: Door, raw: dict[str, Any], given: Inbound) -> None:
        """A tap counts, or opens a form. A form that takes its time is opened bare and filled when it is there."""
        asked = asyncio.ensure_future(door.form(self._name, given))
        done, _ = await asyncio.wait({asked}, timeout=self._patience_s)
        if not done:
            self._later(self._fill(door, raw, given, asked))
            return
        form = asked.result()
        if form is None:
            await door.take(self._name, given)
        else:
            self._later(self._open(raw, self._modal(form, given), given))

    async def _fill(self, door: Door, raw: dict[str, Any], given: Inbound, asked: asyncio.Future[Form | None]) -> None:
        opened = await self._opened(raw, modals.skeleton())
        form = await asked
        if form is None:
            await door.take(self._name, given)
            view = modals.told("Done", GONE)
        else:
            view = self._modal(form, given)
        if isinstance(opened, Later | Refused):
            if form is not None:
                await self._once_more(given)
            return
        await self._calls.call("views.update", view_id=opened["view"]["id"], hash=opened["view"].get("hash"), view=view)

    def _modal(self, form: Form, given: Inbound) -> dict[str, Any]:
        view = modals.modal(form, modals.Origin(form.data, given.conversation, given.ref))
        faults = limits.view_faults(view)
        if faults:
            log.warning("slack.form_too_large", why=faults[0])
            return modals.told(form.title, "This form does not fit into Slack. Fill it by the link in the card.")
        return view

    async def _open(self, raw: Mapping[str, Any], view: dict[str, Any], given: Inbound | None) -> None:
        got = await self._opened(raw, view)
        if isinstance(got, Later | Refused) and given is not None:
            await self._once_more(given)

    async def _opened(self, raw: Mapping[str, Any], view: dict[str, Any]) -> Mapping[str, Any] | Later | Refused:
        got = await self._calls.call("views.open", trigger_id=raw["trigger_id"], view=view)
        if isinstance(got, Later | Refused):
            log.info("slack.form_not_opened", why=got.why)
        return got

    async def _once_more(self, given: Inbound) -> None:
        """The time for opening a form ran out: the button again, to that person alone."""
        if not given.data:
            await self._outgoing.tell(given, f"It took too long to open the form. Write {inbound.COMMAND} once more.")
            return
        label = fitting(given.text or "Answer", limits.BUTTON)
        text = {"type": "plain_text", "text": label, "emoji": False}
        button = {"type": "button", "action_id": "again", "value": given.data, "text": text}
        blocks = [section(AGAIN), {"type": "actions", "elements": [button]}]
        await self._outgoing.whisper(given, {"text": AGAIN, "blocks": blocks})

    async def _script(self, door: Door, raw: dict[str, Any], given: Inbound) -> dict[str, Any] | None:
        """A script out of the form: shown where it was asked for, so that it has a thread; else in direct messages."""
        text = given.text.strip()
        if not text:
            return {"response_action": "errors", "errors": {modals.SCRIPT_FIELD: "there is no script here yet"}}
        channel, _ = inbound.parts(given.conversation)
        lead = f"<@{given.sender.ref}> runs a script"
        post = render.Post(text=f"{lead}\n{within(text, 3_000)}", blocks=(section(lead), code(text[:3_000])))
        sent = await self._outgoing.post(channel, None, post, given.ident) if channel else None
        if sent is None or isinstance(sent, Refused):
            opened = await self._calls.call("conversations.open", users=given.sender.ref)
            if not isinstance(opened, Later | Refused):
                channel = str(opened["channel"]["id"])
                sent = await self._outgoing.post(channel, None, post, given.ident)
        if not isinstance(sent, Sent):
            return {"response_action": "errors", "errors": {modals.SCRIPT_FIELD: REFUSING}}
        where = inbound.place(channel, sent.ref)
        shown = {**raw, inbound.SHOWN: {"channel": channel, "ts": sent.ref}}
        given = replace(given, conversation=where, ref=sent.ref, direct=channel.startswith("D"), raw=shown)
        await door.take(self._name, given)
        return None

    async def _show_home(self, sender: Sender) -> None:
        assert self.door is not None
        await self._outgoing.home(sender.ref, await self.door.home(self._name, sender))

    def _later(self, work: Any) -> None:
        """Goes on after the acknowledgement; nothing that has to be kept."""
        task = asyncio.ensure_future(self._logged(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _logged(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as fault:  # it stands beside what was stored, and must not bring down what goes on
            log.warning("slack.left_undone", why=str(fault) or type(fault).__name__)
