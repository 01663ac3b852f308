"""What leaves: posts, edits, files, words to one person. One attempt each; what may be there already is looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp

from channels.base import Answer, Attached, Card, Home, Inbound, Later, Refused, Sent, Thing
from channels.slack import limits, render
from channels.slack.calls import BLOCKS, Calls, code_of, meaning
from channels.slack.inbound import parts
from channels.slack.texts import linked, section, within

EVENT = "waiton_delivery"
TOLD = "waiton_told"
BACK = timedelta(days=1)
"""How far back is looked for what was perhaps accepted."""
PAGES = 5


@dataclass(frozen=True, slots=True)
class _Found:
    """A message of ours that was accepted before, and the files that came after it."""

    ref: str
    files: frozenset[str]


class Outgoing:
    """Sends. `session`: for what goes to addresses that Slack gives (uploads, answers to a tap)."""

    def __init__(self, calls: Calls, now: Callable[[], datetime], session: Callable[[], aiohttp.ClientSession]) -> None:
        self._calls = calls
        self._now = now
        self._session = session

    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool) -> Answer:
        """Posts a thing, in as many messages as it is. The ref names all of them, with commas between."""
        refs: list[str] = []
        notes: list[str] = []
        for n, post in enumerate(render.posts(thing, self._now())):
            key = f"{ident}/{n}" if n else ident
            got = await self._post(conversation, post, key, again=again, repeats=isinstance(thing, Card))
            if not isinstance(got, Sent):
                return _begun(got, len(refs))
            refs.append(got.ref or "")
            notes += [got.note] if got.note else []
        return Sent(ref=",".join(refs), note="; ".join(dict.fromkeys(notes)) or None)

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        """Changes what stands there; of several messages as many as the thing now is."""
        channel, _ = parts(conversation)
        notes: list[str] = []
        for ts, post in zip(ref.split(","), render.posts(thing, self._now()), strict=False):
            got = await self._edit(channel, ts, post)
            if not isinstance(got, Sent):
                return got
            notes += [got.note] if got.note else []
        return Sent(ref=ref, note="; ".join(dict.fromkeys(notes)) or None)

    async def home(self, ref: str, home: Home) -> Answer:
        got = await self._calls.call("views.publish", user_id=ref, view=render.home(home))
        return got if isinstance(got, Later | Refused) else Sent(ref=str(got["view"].get("id", "")))

    async def tell(self, given: Inbound, text: str) -> None:
        """Words to one person: beside what they tapped, else where they wrote, else in their direct messages."""
        blocks = [section(linked(text[: limits.SECTION // 5]))] if len(text) <= limits.SECTION // 5 else []
        said: dict[str, Any] = {"text": within(text, limits.TEXT)} | ({"blocks": blocks} if blocks else {})
        await self.whisper(given, said)

    async def whisper(self, given: Inbound, said: Mapping[str, Any]) -> None:
        """As `tell`, with what is ready to be posted."""
        url = given.raw.get("response_url")
        if url and await self._respond(str(url), said):
            return
        channel, thread = parts(given.conversation)
        thread = thread or given.reply_to
        if channel and not given.direct:
            args: dict[str, Any] = {"channel": channel, "user": given.sender.ref, **said}
            args |= {"thread_ts": thread} if thread else {}
            got = await self._calls.call("chat.postEphemeral", **args)
            if not isinstance(got, Refused):
                return
        await self._direct(given, said, thread if given.direct else None)

    async def _direct(self, given: Inbound, said: Mapping[str, Any], thread: str | None) -> None:
        channel, _ = parts(given.conversation)
        if not (given.direct and channel):
            opened = await self._calls.call("conversations.open", users=given.sender.ref)
            if isinstance(opened, Later | Refused):
                return
            channel = opened["channel"]["id"]
        args: dict[str, Any] = {"channel": channel, "metadata": {"event_type": TOLD, "event_payload": {}}, **said}
        args |= {"thread_ts": thread} if thread else {}
        await self._calls.call("chat.postMessage", **args)

    async def _respond(self, url: str, said: Mapping[str, Any]) -> bool:
        """By the address that came with a tap: five times within half an hour."""
        body = {**said, "response_type": "ephemeral", "replace_original": False}
        try:
            async with self._session().post(url, json=body) as answer:
                return answer.status < 300
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def post(self, channel: str, thread: str | None, post: render.Post, key: str) -> Answer:
        """One message, without its files. `key` is what it is found by again."""
        args: dict[str, Any] = {
            "channel": channel,
            "text": post.text,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": EVENT, "event_payload": {"id": key}},
        }
        args |= {"thread_ts": thread} if thread else {}
        args |= {"blocks": list(post.blocks)} if post.blocks else {}
        got = await self._calls.call("chat.postMessage", scope="conversation", **args)
        return got if isinstance(got, Later | Refused) else Sent(ref=str(got["ts"]), note=post.note)

    async def _post(self, conversation: str, post: render.Post, key: str, *, again: bool, repeats: bool) -> Answer:
        """One message with its files. `repeats`: where it cannot be looked up it may stand there twice."""
        channel, thread = parts(conversation)
        found = await self._find(channel, thread, key) if again else None
        if isinstance(found, Refused) and repeats and not found.stops:
            found = None
        if isinstance(found, Later | Refused):
            return found
        got: Answer = Sent(ref=found.ref, note=post.note) if found else await self.post(channel, thread, post, key)
        if isinstance(got, Refused) and post.blocks and code_of(got) in BLOCKS:
            got = await self.post(channel, thread, render.bare(post, code_of(got)), key)
        if not isinstance(got, Sent):
            return got
        left = [file for file in post.files if not found or file.name not in found.files]
        for file in left:
            if fault := await self._upload(channel, thread, file):
                if isinstance(fault, Later):
                    return replace(fault, lost=True)
                return replace(got, note=f"the file {file.name} did not arrive: {fault.why}")
        return got

    async def _edit(self, channel: str, ts: str, post: render.Post) -> Answer:
        got = await self._calls.call("chat.update", channel=channel, ts=ts, text=post.text, blocks=list(post.blocks))
        if isinstance(got, Refused) and post.blocks and code_of(got) in BLOCKS:
            post = render.bare(post, code_of(got))
            got = await self._calls.call("chat.update", channel=channel, ts=ts, text=post.text, blocks=[])
        return got if isinstance(got, Later | Refused) else Sent(ref=ts, note=post.note)

    async def _find(self, channel: str, thread: str | None, key: str) -> _Found | Later | Refused | None:
        """The message that an earlier attempt left, if it did."""
        method = "conversations.replies" if thread else "conversations.history"
        oldest = f"{(self._now() - BACK).timestamp():.6f}"
        args: dict[str, Any] = {"channel": channel, "limit": 200, "include_all_metadata": True, "oldest": oldest}
        args |= {"ts": thread} if thread else {}
        seen: list[Mapping[str, Any]] = []
        for _ in range(PAGES):
            got = await self._calls.call(method, **args)
            if isinstance(got, Later):
                return replace(got, lost=True)
            if isinstance(got, Refused):
                return replace(got, why=f"whether it arrived cannot be told: {got.why}")
            seen += got["messages"]
            found = [m for m in seen if _key(m) == key]
            cursor = (got.get("response_metadata") or {}).get("next_cursor")
            if (found and not thread) or not cursor:
                break
            args["cursor"] = cursor
        refs = [str(m["ts"]) for m in seen if _key(m) == key]
        if not refs:
            return None
        after = [m for m in seen if float(m["ts"]) > float(refs[0])]
        return _Found(refs[0], frozenset(str(f.get("name")) for m in after for f in m.get("files") or ()))

    async def _upload(self, channel: str, thread: str | None, file: Attached) -> Later | Refused | None:
        """A file into a conversation: an address is asked for, filled, and shown."""
        if not file.content:
            return Refused(why="it is empty")
        begun = await self._calls.call("files.getUploadURLExternal", filename=file.name, length=len(file.content))
        if isinstance(begun, Later | Refused):
            return begun
        try:
            async with self._session().post(begun["upload_url"], data=file.content) as answer:
                if answer.status >= 300:
                    return Later(why=f"the upload was answered with {answer.status}", pause=timedelta(seconds=5))
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            return meaning(fault)
        args: dict[str, Any] = {"files": [{"id": begun["file_id"], "title": file.name}], "channel_id": channel}
        args |= {"thread_ts": thread} if thread else {}
        got = await self._calls.call("files.completeUploadExternal", **args)
        return got if isinstance(got, Later | Refused) else None


def _begun(got: Later | Refused, sent: int) -> Later | Refused:
    """The answer where some messages of a thing are there already."""
    if not sent:
        return got
    if isinstance(got, Later):
        return replace(got, lost=True)
    return replace(got, why=f"{got.why}; the {sent} before it were sent")


def _key(message: Mapping[str, Any]) -> str:
    held = message.get("metadata") or {}
    return str((held.get("event_payload") or {}).get("id") or "") if held.get("event_type") == EVENT else ""
