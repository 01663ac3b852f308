"""Telegram: sends by the Bot API, brings in by polling or by its webhook.

Updates count as taken only when the door has stored them: by polling, the offset moves after that; by the webhook, its
answer comes after that. What the SDK's own updater does (it confirms first) is not used."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from telegram.error import BadRequest, ChatMigrated, Conflict, InvalidToken, TelegramError

from channels.base import (
    Answer,
    Capabilities,
    Door,
    Fault,
    File,
    Inbound,
    Later,
    Message,
    Refused,
    Sender,
    Sent,
    Settled,
    Thing,
)
from channels.telegram import inbound, keyboard
from channels.telegram.calls import BASE, Calls
from channels.telegram.limits import ANSWER, BUTTONS, DOWN_BYTES, EDITS_A_MINUTE, SPLIT_WITHIN, TEXT
from channels.telegram.render import Look, shown, standing
from channels.telegram.verdicts import UNCHANGED, is_about_form, verdict
from channels.telegram.words import Ink, Inked, Picture, Step, Words
from channels.text import cut, quoted

log = structlog.get_logger()

ROUTE = "/telegram/webhook"
PAUSES_S = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds between tries while Telegram or the store is away; the last one goes on."""
QUIET_S = 2.0
"""Seconds after which a tap is answered without words, so that its button stops turning."""
SENT_KEPT = 1000
"""Things remembered: those whose sending was broken off between their messages, and what choices ask once more."""
BODY_BYTES = 1024 * 1024
"""Of one update that Telegram brings."""


class Telegram:
    """One bot. `base_url` ends in `/bot`. `public_url`: where the product is on the web: then Telegram calls it, else
    it is polled. `zone`: in which times are told, since Telegram knows none of its readers."""

    name = "telegram"
    capabilities = Capabilities(
        edits=True,
        edits_a_minute=EDITS_A_MINUTE,
        looks_up=False,
        repeats=frozenset({"card"}),
        buttons=BUTTONS,
        text_limit=TEXT,
        local_times=False,
        forms=False,
        private=True,
    )

    def __init__(
        self,
        *,
        token: str,
        now: Callable[[], datetime],
        base_url: str | None = None,
        public_url: str | None = None,
        webhook_secret: str | None = None,
        zone: tzinfo = UTC,
        pauses_s: Sequence[float] = PAUSES_S,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._calls = Calls(token, base_url or BASE)
        self._me = inbound.Me(int(token.partition(":")[0]) if token.partition(":")[0].isdigit() else 0)
        self._now, self._zone, self._pauses, self._quiet_s = now, zone, tuple(pauses_s), quiet_s
        # Telegram itself calls nothing but https; a Bot API server of one's own may call anything.
        hooked = public_url is not None and (public_url.startswith("https://") or base_url is not None)
        self._address = f"{(public_url or '').rstrip('/')}{ROUTE}" if hooked else None
        self._secret = webhook_secret or hmac.new(token.encode(), b"waiton webhook", hashlib.sha256).hexdigest()
        self._door: Door | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turning: dict[str, asyncio.TimerHandle] = {}
        self._sent: OrderedDict[str, tuple[int, str | None]] = OrderedDict()
        self._split: OrderedDict[tuple[str, str], datetime] = OrderedDict()
        self._sure: OrderedDict[str, str] = OrderedDict()
        self._trouble: Fault | None = None

    # --- what comes in ----------------------------------------------------------------------------------------------
    async def start(self, door: Door) -> None:
        self._door = door
        self._spawn(self._listen())

    async def stop(self) -> None:
        for timer in self._turning.values():
            timer.cancel()
        self._turning.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._calls.close()

    def routes(self) -> list[Route]:
        return [Route(ROUTE, self._called, methods=["POST"])] if self._address else []

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        return inbound.read(raw, self._me)

    async def _listen(self) -> None:
        """Connects, then polls for as long as there is a process; called by Telegram, it has only to say where."""
        await self._until_done(self._connect)
        offset: int | None = None
        while self._address is None:
            offset = await self._until_done(lambda after=offset: self._poll(after))

    async def _connect(self) -> None:
        username, _ = await self._calls.me()
        self._me = replace(self._me, username=username)
        if self._address is None:
            await self._calls.unhook()
        else:
            await self._calls.hook(self._address, self._secret)

    async def _poll(self, offset: int | None) -> int | None:
        """Takes what happened; the offset that confirms it. One that could not be stored is offered again, in its
        place: none behind it overtakes it."""
        for update in await self._calls.updates(offset):
            await self._until_done(lambda given=update: self._take(given))
            offset = int(update["update_id"]) + 1
        return offset

    async def _until_done(self, act: Callable[[], Any]) -> Any:
        """Tries until it is done, each time a little later."""
        tries = 0
        while True:
            try:
                done = await act()
            except Exception as error:  # Whatever it is, Telegram keeps what it has for 24 hours: it is asked again.
                self._trouble = _trouble(error)
                log.warning("telegram.away", why=type(error).__name__, tries=tries)
                await asyncio.sleep(self._pauses[min(tries, len(self._pauses) - 1)])
                tries += 1
            else:
                self._trouble = None
                return done

    async def _called(self, request: Request) -> Response:
        """Telegram brings an update: 200 only when it is stored, so that it comes again otherwise."""
        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            log.warning("telegram.forged")
            return PlainTextResponse("not from Telegram", 401)
        body = await request.body()
        if len(body) > BODY_BYTES:
            return PlainTextResponse("too large", 413)
        try:
            await self._take(await request.json())
        except Exception as error:
            log.warning("telegram.not-stored", why=type(error).__name__)
            return PlainTextResponse("not stored", 500)
        return Response(status_code=200)

    async def _take(self, update: Mapping[str, Any]) -> None:
        if (own := inbound.own_tap(update)) is not None:
            self._spawn(self._turn(*own))
            return
        try:
            given = self._whole(update)
        except (KeyError, TypeError, ValueError):
            # Not of a shape that is known: it would come again for ever, and hold back what is behind it.
            log.warning("telegram.unread", update=update.get("update_id"))
            return
        if given is None:
            log.debug("telegram.ignored", update=update.get("update_id"))
            return
        assert self._door is not None
        await self._door.take(self.name, given)
        if given.kind == "tap":
            self._quieten(str(update["callback_query"]["id"]))

    def _whole(self, update: Mapping[str, Any]) -> Inbound | None:
        """What an update says, and whether it is the rest of a text that the client split just before."""
        given = inbound.read(update, self._me)
        if given is None or given.kind != "message" or given.at is None:
            return given
        key = (given.conversation, given.sender.ref)
        before = self._split.get(key)
        if before is not None and timedelta(0) <= given.at - before <= SPLIT_WITHIN and given.text:
            given = inbound.read(inbound.as_part(update), self._me)
        if given is not None and given.values.get("split") and given.at is not None:
            self._split[key] = given.at
            self._split.move_to_end(key)
            while len(self._split) > SENT_KEPT:
                self._split.popitem(last=False)
        return given

    # --- taps -------------------------------------------------------------------------------------------------------
    def _quieten(self, query: str) -> None:
        """A button turns until its tap is answered: without words where none came soon."""

        def answer() -> None:
            self._turning.pop(query, None)
            self._spawn(self._quietly(self._calls.answer(query)))

        if query not in self._turning:
            self._turning[query] = asyncio.get_running_loop().call_later(self._quiet_s, answer)

    async def _turn(self, query: Mapping[str, Any], data: str) -> None:
        """A tap of the channel's own: another page, or a choice that asks once more."""
        message = query["message"]
        turned = keyboard.turned(message, data)
        if turned is None:
            await self._quietly(self._calls.answer(query["id"], "That is not there any more."))
            return
        rows, said = turned
        await self._quietly(self._calls.answer(query["id"], self._sure.get(data, said)))
        await self._quietly(self._calls.change_keyboard(message["chat"]["id"], message["message_id"], rows))

    async def _quietly(self, call: Any) -> Any:
        """A call that nothing hangs on: what Telegram says to it is logged."""
        try:
            return await call
        except TelegramError as error:
            if UNCHANGED not in error.message.casefold():
                log.info("telegram.said-no", why=error.message)
            return None

    async def tell(self, given: Inbound, text: str, *, alert: bool = False) -> None:
        text = quoted(text)
        query = (given.raw.get("callback_query") or {}).get("id")
        if query is not None:
            timer = self._turning.pop(str(query), None)
            if timer is not None:
                timer.cancel()
            # The little notice goes after a few seconds; what was refused, and what is long, is to be closed by hand.
            told = await self._quietly(self._calls.answer(str(query), text, alert=alert or len(text) > ANSWER // 2))
            if (told and len(text) <= ANSWER) or not given.direct:
                return
        where = inbound.place(given.conversation)
        if where is None:
            return
        chat, topic = where
        reply_to = int(given.ref) if given.ref and query is None else None
        for step in shown(Message(text=text), self._look()).steps:
            await self._quietly(self._calls.put(chat, topic, step, reply_to))

    # --- what goes out ----------------------------------------------------------------------------------------------
    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        if (where := inbound.place(conversation)) is None:
            return _nowhere(conversation)
        made = shown(thing, self._look())
        self._remember(thing)
        # What was broken off goes on where it was: its first messages stand there already.
        done, ref = self._sent.pop(ident, (0, None))
        chat, topic = where
        moved: str | None = None
        notes = [made.note] if made.note else []
        while done < len(made.steps):
            step = made.steps[done]
            try:
                number, note = await self._put(chat, topic, step)
            except ChatMigrated as error:
                if moved is not None:
                    return verdict(error)
                chat, topic = error.new_chat_id, None
                moved = inbound.conversation(chat)
                continue
            except TelegramError as error:
                self._keep(ident, done, ref)
                return verdict(error)
            done += 1
            notes += [note] if note else []
            # The one that people answer is the last with words: files stand below it.
            if isinstance(step, Words) or ref is None:
                ref = str(number)
        return Sent(ref=ref, conversation=moved, note=" · ".join(notes) or None)

    async def _put(self, chat: int, topic: int | None, step: Step) -> tuple[int, str | None]:
        """One message, and what its reader does not get as meant. What is refused for its form goes as plain text."""
        try:
            return await self._calls.put(chat, topic, step), None
        except ChatMigrated:
            raise
        except BadRequest as error:
            if isinstance(step, Picture):
                words = Words(ink=Ink().put(step.url).done())
                return await self._calls.put(chat, topic, words), f"its image stands as an address: {error.message}"
            if isinstance(step, Words) and is_about_form(error):
                words = Words(ink=Inked(cut(step.bare.ink.text, TEXT)))
                return await self._calls.put(chat, topic, words), f"it stands as plain text: {error.message}"
            raise

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        where = inbound.place(conversation)
        if where is None or not ref.isdigit():
            return _nowhere(conversation)
        words = standing(thing, self._look())
        self._remember(thing)
        try:
            await self._calls.change(where[0], int(ref), words)
        except ChatMigrated as error:
            # Messages keep their numbers in no group that was moved: it is put there anew.
            return await self._anew(error.new_chat_id, words)
        except TelegramError as error:
            if UNCHANGED in error.message.casefold():
                return Sent(ref=ref)
            return verdict(error)
        return Sent(ref=ref)

    async def _anew(self, chat: int, words: Words) -> Answer:
        try:
            number = await self._calls.put(chat, None, words)
        except TelegramError as error:
            return verdict(error)
        return Sent(ref=str(number), conversation=inbound.conversation(chat))

    async def reach(self, ref: str) -> str | Refused | Later:
        if not ref.isdigit():
            return Refused(why=f"`{ref}` is no person of Telegram's: they have numbers, shown by `waiton people link`")
        return inbound.conversation(ref)

    async def fetch(self, file: File) -> bytes | Refused | Later:
        if (file.size or 0) > DOWN_BYTES:
            return Refused(why=f"`{file.name}` is larger than the 20 MB that Telegram lets a bot fetch")
        try:
            return await self._calls.fetch(file.ref)
        except TelegramError as error:
            return verdict(error)

    async def find(self, email: str) -> Sender | None:
        return None

    async def invite(self, secret: str) -> str | Refused | Later:
        """The address that opens the bot and proves who somebody is: Telegram sends the secret with their Start
        (`linked`). `secret`: at most 64 letters, digits, `-` and `_`."""
        try:
            username = self._me.username or (await self._calls.me())[0]
        except TelegramError as error:
            return verdict(error)
        return f"https://t.me/{username}?start={secret}"

    async def check(self) -> list[Fault]:
        """A wrong token, a webhook that is not ours, what Telegram has against ours; notes last."""
        found = [self._trouble] if self._trouble else []
        try:
            username, sees_all = await self._calls.me()
            address, against = await self._calls.hooked()
        except TelegramError as error:
            return [_trouble(error)]
        if address and address != self._address:
            found.append(
                Fault(
                    what=f"another program has set the webhook of @{username} to {address}",
                    mend="stop that program, or make a bot of Waiton's own with @BotFather",
                )
            )
        elif address and against:
            found.append(
                Fault(
                    what=f"Telegram cannot bring updates to {address}: {against}",
                    mend="make that address reachable from the internet, or leave WAITON_PUBLIC_URL out to be polled",
                )
            )
        if not sees_all:
            found.append(
                Fault(
                    what=f"in groups @{username} sees commands, replies to it and messages that name it, nothing else",
                    mend="enough for most; to change it, /setprivacy at @BotFather, then add the bot to the group anew",
                    note=True,
                )
            )
        return found

    # --- its own ----------------------------------------------------------------------------------------------------
    def _look(self) -> Look:
        return Look(now=self._now(), zone=self._zone)

    def _remember(self, thing: Thing) -> None:
        """What choices ask once more. It is told as a notice; after a restart the buttons ask without it."""
        choices = () if isinstance(thing, Settled) else thing.choices
        for choice in choices:
            if choice.sure:
                self._sure[keyboard.SURE + choice.data] = choice.sure
        while len(self._sure) > SENT_KEPT:
            self._sure.popitem(last=False)

    def _keep(self, ident: str, done: int, ref: str | None) -> None:
        if done:
            self._sent[ident] = (done, ref)
            while len(self._sent) > SENT_KEPT:
                self._sent.popitem(last=False)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _nowhere(conversation: str) -> Refused:
    return Refused(why=f"`{conversation}` is no conversation of Telegram's: they read `telegram:` and a number")


def _trouble(error: Exception) -> Fault:
    match error:
        case InvalidToken():
            return Fault(
                what="Telegram does not know the bot's token",
                mend="set TELEGRAM_BOT_TOKEN to the token that @BotFather shows for the bot",
            )
        case Conflict() if "webhook" in error.message.casefold():
            return Fault(
                what="a webhook is set for this bot, so it cannot be polled",
                mend="stop the program that set it, or make a bot of Waiton's own with @BotFather",
            )
        case Conflict():
            return Fault(
                what="another process polls with the same bot's token",
                mend="stop it: Telegram gives each update to one of them only",
            )
        case BadRequest():
            return Fault(
                what=f"Telegram says: {error.message}",
                mend="look at WAITON_PUBLIC_URL: it has to be https, on port 443, 80, 88 or 8443",
            )
        case TelegramError():
            return Fault(
                what=f"Telegram does not answer: {error.message}",
                mend="nothing is lost for 24 hours; look at the network",
            )
        case _:
            return Fault(what=f"what came could not be stored ({type(error).__name__})", mend="look at the database")
