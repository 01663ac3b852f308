"""A loopback Bot API that answers as Telegram does, its limits and refusals included, and the people who use it.

What it knows of Telegram it knows by itself: it shares no limit with the channel that it tests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientConnectionError, ClientSession, web

from bot.runtime.clock import machine_time
from channels.telegram.channel import Telegram
from tests.channels.stage import Seen

TOKEN = "123456:TEST-token"
BOT = {"id": 123456, "is_bot": True, "first_name": "Waiton", "username": "waiton_bot"}
PEOPLE = {"ana": 101, "bo": 102, "jonas": 103, "mika": 104}
TEAM = -1001500
"""A group with topics: ana, bo and jonas are in it."""
MEMBERS = ("ana", "bo", "jonas")
AFTER_S = 10
"""Seconds that people wait for what the bot should do."""
PLAIN_TEXT = {"text", "callback_query_id", "url", "secret_token", "caption", "photo", "file_id", "offset"}
OUT = {"sendMessage", "sendPhoto", "sendDocument", "editMessageText", "editMessageReplyMarkup", "answerCallbackQuery"}


class Refusal(Exception):
    def __init__(self, code: int, text: str, **parameters: Any) -> None:
        super().__init__(text)
        self.code, self.text, self.parameters = code, text, parameters


@dataclass(eq=False)
class Shown:
    """A message of the bot's. `keyboards`: every one that it had, in order; `force`: a reply is opened."""

    id: int
    chat: int
    topic: int | None
    text: str
    entities: list[dict[str, Any]]
    keyboards: list[list[list[dict[str, Any]]]]
    force: dict[str, Any] | None = None
    document: tuple[str, bytes] | None = None
    photo: str | None = None
    edits: int = 0
    at: int = 0
    answers: int | None = None
    """The message that it replies to."""

    @property
    def keyboard(self) -> list[list[dict[str, Any]]]:
        return self.keyboards[-1]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(button["text"] for row in self.keyboard for button in row)

    def payload(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "message_id": self.id,
            "date": self.at,
            "chat": chat_of(self.chat),
            "from": BOT,
        }
        if self.topic is not None:
            made |= {"message_thread_id": self.topic, "is_topic_message": True}
        if self.document:
            made["document"] = {"file_id": f"sent{self.id}", "file_unique_id": "u", "file_name": self.document[0]}
        elif self.photo:
            made["photo"] = [{"file_id": f"sent{self.id}", "file_unique_id": "u", "width": 90, "height": 90}]
        else:
            made |= {"text": self.text, "entities": self.entities}
        if self.keyboard:
            made["reply_markup"] = {"inline_keyboard": self.keyboard}
        return made


def chat_of(number: int) -> dict[str, Any]:
    if number > 0:
        return {"id": number, "type": "private", "first_name": _name(number)}
    return {"id": number, "type": "supergroup", "title": "Team", "is_forum": True}


def person(who: str) -> dict[str, Any]:
    return {"id": PEOPLE[who], "is_bot": False, "first_name": who.capitalize(), "language_code": "en"}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _name(number: int) -> str:
    return next((who.capitalize() for who, its in PEOPLE.items() if its == number), "Somebody")


@dataclass(eq=False)
class BotApi:
    """The server. Knobs are plain members: what is away, lost, busy, refused, and how fast it may be written to."""

    token: str = TOKEN
    messages: dict[tuple[int, int], Shown] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answered: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    started: set[int] = field(default_factory=lambda: {PEOPLE[who] for who in MEMBERS})
    groups: set[int] = field(default_factory=lambda: {TEAM})
    moved: dict[int, int] = field(default_factory=dict)
    hook: dict[str, Any] | None = None
    sees_all: bool = False
    away: int = 0
    lose: int = 0
    busy: tuple[int, float] = (0, 0.0)
    blocked: set[int] = field(default_factory=set)
    down: bool = False
    """No call gets an answer, polls neither."""
    inject: dict[str, list[Refusal]] = field(default_factory=dict)
    a_minute: int | None = None
    """Messages and edits that one group takes; None for as many as come."""
    written: dict[int, int] = field(default_factory=dict)
    url: str = ""

    def __post_init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.repeats: list[dict[str, Any]] = []
        self.handed: dict[int, float] = {}
        self.confirmed: dict[int, asyncio.Event] = {}
        self.took_s = 0.0
        self.update_ids, self.message_ids, self.query_ids = (
            itertools.count(1000),
            itertools.count(1),
            itertools.count(1),
        )
        self.news, self.changed, self.connected = asyncio.Event(), asyncio.Condition(), asyncio.Event()
        self.polls, self.offset = 0, 0
        self.confirms: list[int] = []

    async def start(self) -> BotApi:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self.runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return self

    async def stop(self) -> None:
        self.down = True
        self.news.set()
        await self.runner.cleanup()

    # --- calls --------------------------------------------------------------------------------------------------------
    async def _call(self, request: web.Request) -> web.Response:
        method, given = request.match_info["method"], await self._given(request)
        self.calls.append((method, given))
        out = method in OUT
        if self.down or (out and self.away > 0):
            self.away -= 0 if self.down else 1
            return self._dropped(request)
        try:
            if request.match_info["token"] != self.token:
                raise Refusal(401, "Unauthorized")
            if self.inject.get(method):
                raise self.inject[method].pop(0)
            if out and self.busy[0] > 0:
                self.busy = (self.busy[0] - 1, self.busy[1])
                raise Refusal(429, f"Too Many Requests: retry after {self.busy[1]}", retry_after=self.busy[1])
            act = getattr(self, method, None)
            if act is None:
                raise Refusal(404, "Not Found: method not found")
            result = await act(given)
        except Refusal as no:
            body: dict[str, Any] = {"ok": False, "error_code": no.code, "description": no.text}
            return web.json_response(body | ({"parameters": no.parameters} if no.parameters else {}), status=no.code)
        if out:
            async with self.changed:
                self.changed.notify_all()
            if self.lose > 0:
                self.lose -= 1
                return self._dropped(request)
        return web.json_response({"ok": True, "result": result})

    async def _given(self, request: web.Request) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                made[name] = (value.filename, value.file.read())
            elif name in PLAIN_TEXT:
                made[name] = value
            else:
                try:
                    made[name] = json.loads(str(value))
                except ValueError:
                    made[name] = value
        return made

    def _dropped(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["path"]])

    # --- what comes in ------------------------------------------------------------------------------------------------
    async def getMe(self, given: dict[str, Any]) -> Any:
        return BOT | {"can_join_groups": True, "can_read_all_group_messages": self.sees_all}

    async def setWebhook(self, given: dict[str, Any]) -> Any:
        address = str(given.get("url") or "")
        if not address.startswith(("https://", "http://127.0.0.1")):
            raise Refusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        self.hook = given
        self.connected.set()
        return True

    async def deleteWebhook(self, given: dict[str, Any]) -> Any:
        self.hook = None
        if given.get("drop_pending_updates"):
            self.updates.clear()
        return True

    async def getWebhookInfo(self, given: dict[str, Any]) -> Any:
        return {
            "url": (self.hook or {}).get("url", ""),
            "has_custom_certificate": False,
            "pending_update_count": len(self.updates),
        }

    async def getUpdates(self, given: dict[str, Any]) -> Any:
        if self.hook:
            raise Refusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
            )
        self.polls += 1
        mine = self.polls
        self.news.set()
        self._confirm(int(given.get("offset") or 0))
        self.connected.set()
        end = time.monotonic() + float(given.get("timeout") or 0)
        while not (found := self._pending()) and (left := end - time.monotonic()) > 0 and not self.down:
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), left)
            except TimeoutError:
                break
            if self.polls != mine:
                raise Refusal(
                    409,
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                )
        asked = given.get("allowed_updates")
        return [one for one in found if not asked or any(kind in asked for kind in one)][:100]

    def _confirm(self, offset: int) -> None:
        """An offset confirms everything below it."""
        self.offset = max(self.offset, offset)
        self.confirms.append(offset)
        self.updates = [one for one in self.updates if one["update_id"] >= self.offset]
        for number, at in list(self.handed.items()):
            if number < offset:
                self.took_s = time.monotonic() - at
                del self.handed[number]
                self.confirmed[number].set()

    def _pending(self) -> list[dict[str, Any]]:
        found, self.repeats = self.repeats + self.updates, []
        for one in found:
            self.handed.setdefault(one["update_id"], time.monotonic())
        return found

    # --- what goes out ------------------------------------------------------------------------------------------------
    def _where(self, given: dict[str, Any]) -> int:
        chat = int(given["chat_id"])
        if chat in self.moved:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=self.moved[chat],
            )
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if chat > 0 and chat not in self.started:
            if chat in PEOPLE.values():
                raise Refusal(403, "Forbidden: bot can't initiate conversation with a user")
            raise Refusal(400, "Bad Request: chat not found")
        if chat < 0 and chat not in self.groups:
            raise Refusal(400, "Bad Request: chat not found")
        if chat < 0 and self.a_minute is not None:
            self.written[chat] = self.written.get(chat, 0) + 1
            if self.written[chat] > self.a_minute:
                raise Refusal(429, "Too Many Requests: retry after 37", retry_after=37)
        return chat

    def _text(self, given: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        text = str(given.get("text") or "")
        if not text.strip():
            raise Refusal(400, "Bad Request: message text is empty")
        if units(text) > 4096:
            raise Refusal(400, "Bad Request: message is too long")
        if given.get("parse_mode"):
            raise Refusal(400, "Bad Request: can't parse entities: this double takes entities only")
        kept: list[dict[str, Any]] = []
        for entity in (given.get("entities") or [])[:100]:
            if entity["length"] < 1 or entity["offset"] < 0 or entity["offset"] + entity["length"] > units(text):
                raise Refusal(400, "Bad Request: ENTITY_BOUNDS_INVALID")
            # An address that leads nowhere is left out, without a word.
            if entity["type"] != "text_link" or _leads(entity.get("url", "")):
                kept.append(entity)
        return text, kept

    def _markup(self, given: dict[str, Any]) -> tuple[list[list[dict[str, Any]]], dict[str, Any] | None]:
        markup = given.get("reply_markup") or {}
        rows = markup.get("inline_keyboard") or []
        if sum(map(len, rows)) > 100:
            raise Refusal(400, "Bad Request: reply markup is too long")
        for button in (button for row in rows for button in row):
            if not button.get("text", "").strip():
                raise Refusal(400, "Bad Request: BUTTON_TEXT_INVALID")
            if "url" in button and not _leads(button["url"]):
                raise Refusal(
                    400, f"Bad Request: inline keyboard button URL '{button['url']}' is invalid: Wrong HTTP URL"
                )
            if "url" not in button and not 1 <= len(button.get("callback_data", "").encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        if len(markup.get("input_field_placeholder") or "") > 64:
            raise Refusal(400, "Bad Request: input field placeholder is too long")
        return rows, markup if markup.get("force_reply") else None

    def _put(self, given: dict[str, Any], **what: Any) -> Any:
        chat = self._where(given)
        rows, force = self._markup(given)
        made = Shown(
            id=next(self.message_ids),
            chat=chat,
            topic=given.get("message_thread_id"),
            keyboards=[rows],
            force=force,
            at=int(machine_time().timestamp()),
            answers=(given.get("reply_parameters") or {}).get("message_id"),
            **({"text": "", "entities": []} | what),
        )
        self.messages[chat, made.id] = made
        return made.payload()

    async def sendMessage(self, given: dict[str, Any]) -> Any:
        text, entities = self._text(given)
        return self._put(given, text=text, entities=entities)

    async def sendPhoto(self, given: dict[str, Any]) -> Any:
        if not str(given["photo"]).endswith((".png", ".jpg")):
            raise Refusal(400, "Bad Request: wrong file identifier/HTTP URL specified")
        return self._put(given, photo=str(given["photo"]))

    async def sendDocument(self, given: dict[str, Any]) -> Any:
        name, content = given["document"]
        if len(content) > 50 * 2**20:
            raise Refusal(413, "Request Entity Too Large")
        return self._put(given, document=(name, content))

    def _standing(self, given: dict[str, Any]) -> Shown:
        chat = self._where(given)
        found = self.messages.get((chat, int(given["message_id"])))
        if found is None:
            raise Refusal(400, "Bad Request: message to edit not found")
        if found.force is not None:
            raise Refusal(400, "Bad Request: message can't be edited")
        return found

    async def editMessageText(self, given: dict[str, Any]) -> Any:
        found = self._standing(given)
        text, entities = self._text(given)
        rows, _ = self._markup(given)
        if (found.text, found.entities, found.keyboard) == (text, entities, rows):
            raise Refusal(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            )
        found.text, found.entities = text, entities
        return self._edited(found, rows)

    async def editMessageReplyMarkup(self, given: dict[str, Any]) -> Any:
        found = self._standing(given)
        rows, _ = self._markup(given)
        if found.keyboard == rows:
            raise Refusal(400, "Bad Request: message is not modified: it is the same")
        return self._edited(found, rows)

    def _edited(self, found: Shown, rows: list[list[dict[str, Any]]]) -> Any:
        found.keyboards.append(rows)
        found.edits += 1
        return found.payload()

    async def answerCallbackQuery(self, given: dict[str, Any]) -> Any:
        query = str(given["callback_query_id"])
        if query in self.answered or not query.isdigit() or int(query) < 1:
            raise Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        if len(str(given.get("text") or "")) > 200:
            raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
        self.answered[query] = given
        return True

    async def getFile(self, given: dict[str, Any]) -> Any:
        path = f"documents/{given['file_id']}"
        if path not in self.files:
            raise Refusal(400, "Bad Request: invalid file_id")
        if len(self.files[path]) > 20 * 2**20:
            raise Refusal(400, "Bad Request: file is too big")
        return {
            "file_id": given["file_id"],
            "file_unique_id": "u",
            "file_path": path,
            "file_size": len(self.files[path]),
        }

    # --- what happens -------------------------------------------------------------------------------------------------
    async def happens(self, **what: Any) -> int:
        """Brings an update and returns once the bot has answered for it: confirmed it, or said 200."""
        number = next(self.update_ids)
        await self.bring({"update_id": number, **what})
        return number

    async def bring(self, update: dict[str, Any], *, again: bool = False) -> int:
        number = update["update_id"]
        self.last = update
        if self.hook:
            return await self._post(update)
        self.confirmed[number] = asyncio.Event()
        (self.repeats if again else self.updates).append(update)
        self.news.set()
        await asyncio.wait_for(self.confirmed[number].wait(), AFTER_S)
        return 200

    async def _post(self, update: dict[str, Any]) -> int:
        """By the webhook; again after a little while until it is taken."""
        assert self.hook is not None
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.hook.get("secret_token", "")}
        async with ClientSession() as session:
            for _ in range(20):
                begun = time.monotonic()
                with contextlib.suppress(ClientConnectionError):
                    async with session.post(self.hook["url"], json=update, headers=headers) as answer:
                        self.took_s = time.monotonic() - begun
                        if answer.status < 500:
                            return answer.status
                await asyncio.sleep(0.05)
        raise AssertionError("the webhook never took it")

    def said(self, who: str, text: str, *, chat: int | None = None, **more: Any) -> dict[str, Any]:
        """A message of a person's, as an update has it."""
        number = PEOPLE[who] if chat is None else chat
        return {
            "message": {
                "message_id": next(self.message_ids),
                "date": int(machine_time().timestamp()),
                "chat": chat_of(number),
                "from": person(who),
                **({"text": text} if text else {}),
                **more,
            }
        }

    def tapped(self, who: str, shown: Shown, data: str) -> dict[str, Any]:
        return {
            "callback_query": {
                "id": str(next(self.query_ids)),
                "from": person(who),
                "chat_instance": "ci",
                "message": shown.payload(),
                "data": data,
            }
        }

    def upload(self, name: str, content: bytes) -> dict[str, Any]:
        ref = f"F{len(self.files) + 1}"
        self.files[f"documents/{ref}"] = content
        return {
            "document": {
                "file_id": ref,
                "file_unique_id": ref,
                "file_name": name,
                "mime_type": "text/markdown",
                "file_size": len(content),
            }
        }

    def of(self, chat: int) -> list[Shown]:
        return [one for one in self.messages.values() if one.chat == chat]


def _leads(url: str) -> bool:
    host = url.partition("://")[2].partition("/")[0].partition(":")[0]
    return url.startswith(("http://", "https://")) and "." in host and not host.startswith("127.")


class TelegramStage:
    """The people of the contract suite, on Telegram. A pasted script opens a topic in the team's group."""

    name = "telegram"
    capabilities = Telegram.capabilities

    def __init__(self) -> None:
        self.api = BotApi()
        self.address = ""
        self._told: dict[str, list[str]] = {}
        self._queries: dict[str, str] = {}

    async def __aenter__(self) -> TelegramStage:
        await self.api.start()
        self.env: Mapping[str, str] = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": f"{self.api.url}/bot",
        }
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.api.stop()

    def ref(self, who: str) -> str:
        return str(PEOPLE[who])

    def connect(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.api.connected.clear()

    async def ready(self) -> None:
        await asyncio.wait_for(self.api.connected.wait(), AFTER_S)

    # --- what people do -------------------------------------------------------------------------------------------
    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        topic = next(self.api.message_ids)
        in_topic = {"message_thread_id": topic, "is_topic_message": True}
        name = f"@{BOT['username']}"
        mention = {"type": "mention", "offset": 0, "length": len(name)}
        match form:
            case "text":
                said = self.api.said(who, f"{name}\n{text}", chat=TEAM, entities=[mention], **in_topic)
            case "code":
                block = {"type": "pre", "offset": len(name) + 1, "length": units(text), "language": "markdown"}
                said = self.api.said(who, f"{name}\n{text}", chat=TEAM, entities=[mention, block], **in_topic)
            case "rich":
                typed, entities = composed(text)
                moved = [entity | {"offset": entity["offset"] + len(name) + 1} for entity in entities]
                said = self.api.said(who, f"{name}\n{typed}", chat=TEAM, entities=[mention, *moved], **in_topic)
            case "file":
                document = self.api.upload("script.md", text.encode())
                said = self.api.said(
                    who, "", chat=TEAM, caption=name, caption_entities=[mention], **document, **in_topic
                )
            case _:
                raise NotImplementedError(form)
        await self.api.happens(**said)
        return f"telegram:{TEAM}/{topic}"

    async def write(self, who: str, text: str) -> str:
        self.api.started.add(PEOPLE[who])
        more = {"entities": [_command(text)]} if text.startswith("/") else {}
        await self.api.happens(**self.api.said(who, text, **more))
        return f"telegram:{PEOPLE[who]}"

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        shown = self._shown(seen)
        keyboard = shown.keyboards[min(seen.edits, len(shown.keyboards) - 1)]
        data = next(
            button["callback_data"]
            for row in keyboard
            for button in row
            if button["text"] == label and "url" not in button
        )
        tapped = self.api.tapped(who, shown, data)
        self._queries[tapped["callback_query"]["id"]] = who
        await self.api.happens(**tapped)

    async def menu(self, who: str, name: str) -> None:
        """Taps a button that is none of the bot's messages of today: one of a menu that somebody put there once."""
        self.api.started.add(PEOPLE[who])
        stands = Shown(
            id=next(self.api.message_ids), chat=PEOPLE[who], topic=None, text="Menu", entities=[], keyboards=[[]]
        )
        await self.api.happens(**self.api.tapped(who, stands, f"menu:{name}"))

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        shown = self._shown(seen)
        to = shown.payload() | ({"message_thread_id": shown.topic} if shown.topic else {})
        more = {"message_thread_id": shown.topic, "is_topic_message": True} if shown.topic else {}
        await self.api.happens(**self.api.said(who, text, chat=shown.chat, reply_to_message=to, **more))

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        """Telegram has no forms: `Answer` is tapped, then each field is asked for and answered, one after the other. What
        is asked once more was wrong."""
        known = {one.ref for one in self.seen(who)}
        await self.tap(who, seen, "Answer")
        for value in values.values():
            asked = await self._asked(who, known)
            known.add(asked.ref)
            await self.reply(who, asked, value)
        shown = self._shown(seen)
        edits = shown.edits

        def over() -> bool:
            return shown.edits > edits or not shown.labels or any(one.ref not in known for one in self.seen(who))

        await self._until(over)
        last = self.seen(who)[-1]
        if last.ref not in known and self._shown(last).force is not None:
            return {list(values)[-1]: last.text}
        return {}

    async def again(self) -> None:
        await self.api.bring(self.api.last, again=True)

    async def forged(self) -> bool:
        """Without the webhook's secret; a bot that is polled has no door for it."""
        shown = next(iter(self.api.messages.values()), None)
        tapped = self.api.tapped("ana", shown, "w:forged:0") if shown else self.api.said("ana", "forged")
        async with ClientSession() as session:
            address = f"{self.address}/telegram/webhook"
            body = {"update_id": next(self.api.update_ids), **tapped}
            headers = {"X-Telegram-Bot-Api-Secret-Token": "guessed"}
            async with session.post(address, json=body, headers=headers) as answer:
                return answer.status < 300

    # --- what people see ------------------------------------------------------------------------------------------
    def seen(self, who: str) -> list[Seen]:
        chats = {PEOPLE[who]} | (self.api.groups if who in MEMBERS else set())
        return [_seen(one) for one in self.api.messages.values() if one.chat in chats]

    def told(self, who: str) -> list[str]:
        """The notices of their taps, and what answers them in their own chat."""
        notices = [
            str(given.get("text"))
            for query, given in self.api.answered.items()
            if self._queries.get(query) == who and given.get("text")
        ]
        return notices + [one.text for one in self.api.of(PEOPLE[who]) if one.answers is not None]

    def acknowledged(self) -> float:
        return self.api.took_s

    # --- what goes wrong ------------------------------------------------------------------------------------------
    def away(self, calls: int) -> None:
        self.api.away = calls

    def lose(self, calls: int) -> None:
        self.api.lose = calls

    def busy(self, calls: int, seconds: float) -> None:
        self.api.busy = (calls, seconds)

    def refuse(self, who: str) -> None:
        self.api.blocked.add(PEOPLE[who])

    # --- their own ------------------------------------------------------------------------------------------------
    def _shown(self, seen: Seen) -> Shown:
        chat = int(seen.conversation.removeprefix("telegram:").partition("/")[0])
        return self.api.messages[chat, int(seen.ref)]

    async def _asked(self, who: str, known: set[str]) -> Seen:
        await self._until(lambda: any(one.ref not in known for one in self.seen(who)))
        return next(one for one in self.seen(who) if one.ref not in known)

    async def _until(self, holds: Any) -> None:
        async with self.api.changed:
            await asyncio.wait_for(self.api.changed.wait_for(holds), AFTER_S)


def composed(text: str) -> tuple[str, list[dict[str, Any]]]:
    """What a client makes of typed `**bold**`, `__italic__` and `` `code` ``: the marks go, entities stay."""
    out, entities = "", []
    marks = {"**": "bold", "__": "italic", "`": "code"}
    rest = text
    while rest:
        mark = next((m for m in marks if rest.startswith(m)), None)
        inside = rest[len(mark) :].partition(mark)[0] if mark else ""
        if mark and inside and "\n" not in inside and rest.count(mark) >= 2:
            entities.append({"type": marks[mark], "offset": units(out), "length": units(inside)})
            out += inside
            rest = rest[len(inside) + 2 * len(mark) :]
        else:
            out, rest = out + rest[0], rest[1:]
    return out, entities


def _command(text: str) -> dict[str, Any]:
    return {"type": "bot_command", "offset": 0, "length": len(text.split()[0])}


def _seen(one: Shown) -> Seen:
    where = f"telegram:{one.chat}" + (f"/{one.topic}" if one.topic else "")
    text = one.text or (one.document[0] if one.document else one.photo or "")
    return Seen(ref=str(one.id), conversation=where, text=text, buttons=one.labels, edits=one.edits)
