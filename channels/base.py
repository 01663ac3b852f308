"""What a channel is: how a platform shows things, what it brings in, and what becomes of what is sent.

A channel translates and nothing else. What it brings in is handed to the `Door`, which stores it before the platform is
told that it arrived; what it shows is given to it whole, in values that name no platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, runtime_checkable

from starlette.routing import Route


# --- what a platform can do ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do; the contract suite tests the declared way round for what it cannot.

    `edits`: a message can be changed in place. `looks_up`: what was accepted can be found again, or is refused a second
    time, so that nothing is sent twice. `repeats`: kinds of things that may go out again where neither is so: a card
    stands for the same question however often it is there. `buttons`: choices it shows as buttons at most.
    `text_limit`: characters of one message. `local_times`: it shows instants in the reader's own zone. `forms`: it has
    forms of its own. `private`: whoever acts can be told something that others do not see. `edits_a_minute`: of all its
    messages together."""

    edits: bool = True
    looks_up: bool = False
    repeats: frozenset[str] = frozenset({"card"})
    buttons: int = 25
    text_limit: int = 3000
    local_times: bool = False
    forms: bool = True
    private: bool = True
    edits_a_minute: int = 50


# --- what becomes of what is sent ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The platform accepted it; `ref` is the platform's name for it. `conversation`: where it is now, if not where it
    was sent (a group that was given another id). `note`: what its reader does not get as meant (plain text in place of
    buttons), for the run's owner."""

    ref: str | None = None
    conversation: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Not now: the platform is busy or away; try again after `pause`. `lost`: it may have been accepted, its answer did
    not come. `scope`: what else must wait too: this `conversation`, or the whole `channel`."""

    why: str
    pause: timedelta
    lost: bool = False
    scope: Literal["conversation", "channel"] = "conversation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The platform will never take it. `stops`: nor anything else (a token that was taken back)."""

    why: str
    stops: bool = False


Answer = Sent | Later | Refused


# --- what is shown ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A button. `data` is what its tap brings back: short and opaque. `sure`: what to ask once more before it counts.
    `tone`: `first` or `danger`. `url`: it leads somewhere and brings nothing back."""

    label: str
    data: str = ""
    sure: str | None = None
    tone: Literal["", "first", "danger"] = ""
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form. `kind`: text, number, date, time, bool, choice, person, file. `choices`: value and label."""

    name: str
    label: str
    kind: str = "text"
    required: bool = True
    choices: tuple[tuple[str, str], ...] = ()
    least: str | None = None
    most: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question put to one person, open.

    `token` stands for it: `TOKEN:N` is its N-th choice, `TOKEN` alone its form or free text (`bot.chat.taps`).
    `fields`: a form; without fields and choices a text answers. `reason`: whether a comment goes with it, `optional`,
    `required`, or the choices that need one. `params`: what an approval holds for. `taps`: what each choice does, in a
    line. `asker`: who asks and who else may answer. `more`: what can be done besides answering (not mine, hand over,
    later). `place`: the words and the address of where else it can be answered. `origin`: the conversation that it
    comes from, where that is another one of the same platform."""

    kind: Literal["card", "approval", "doubt"]
    token: str
    title: str
    text: str
    choices: tuple[Choice, ...] = ()
    fields: tuple[FormField, ...] = ()
    reason: str | tuple[str, ...] | None = None
    params: tuple[tuple[str, str], ...] = ()
    taps: str = ""
    asker: str = ""
    since: datetime | None = None
    until: datetime | None = None
    more: tuple[Choice, ...] = ()
    place: tuple[str, str] | None = None
    origin: str | None = None

    @property
    def free(self) -> bool:
        """Whether a text answers it."""
        return not self.choices and not self.fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a card has turned into: nothing to tap is left. `outcome`: `Ana picked approve`, `withdrawn` …; `at`: when;
    `reason`: the comment that went with it."""

    title: str
    text: str
    outcome: str
    at: datetime | None = None
    reason: str | None = None
    place: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A file that goes with a message: its bytes and its name."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something said. `parts`: the messages of a channel op, each of its own: text, or a card with image and buttons
    (`image`: an address). `note`: it is about something else, and stands back (a notice, a reminder)."""

    text: str = ""
    title: str = ""
    image: str | None = None
    choices: tuple[Choice, ...] = ()
    files: tuple[Attached, ...] = ()
    parts: tuple[Message, ...] = ()
    note: bool = False
    place: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a plan. `tense`: past, now or next. `at`: when it happened, or since when it is waited for; `until`:
    when its window ends."""

    tense: Literal["past", "now", "next"]
    text: str
    at: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a run stands: the one message of it that is edited in place. `state`: waiting, done, failed, cancelled,
    paused, held, refused. `lines`: the plan with its three tenses. `facts`: the pre-flight, name and words. `result`:
    what was shown. `choices`: what can be done with it. `place`: its record."""

    title: str
    state: str
    lines: tuple[Line, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    result: str | None = None
    error: str | None = None
    done: int = 0
    of: int = 0
    choices: tuple[Choice, ...] = ()
    place: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Why a script was refused: each problem with its place and its words as the author sees them. `script`: the text
    that was read, where it is not what the author sees. `choices`: Mend and run, Edit."""

    head: str
    problems: tuple[str, ...]
    script: str | None = None
    choices: tuple[Choice, ...] = ()
    place: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What waits on one person, and what they started: oldest first, each with words and an address."""

    waiting: tuple[tuple[str, str], ...] = ()
    started: tuple[tuple[str, str], ...] = ()


Thing = Card | Settled | Message | Status | Problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form that is opened by a tap: of a card, or a script to edit (`fields` has one large text). `data` comes back
    with it. `note`: one field for a comment stands last."""

    title: str
    text: str
    data: str
    fields: tuple[FormField, ...] = ()
    submit: str = "Send"
    values: Mapping[str, str] = field(default_factory=dict)
    """What stands in its fields already."""


# --- what comes in ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who did it, as the platform's signed payload says. `ref`: the platform's id of them, in the form of
    `identities`. `kind`: a member of the workspace, a guest or stranger of a shared channel, a bot."""

    ref: str
    name: str = ""
    email: str | None = None
    timezone: str | None = None
    kind: Literal["member", "guest", "bot"] = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that came with a message. `ref`: how the channel fetches it; `size` in bytes, where it is known."""

    name: str
    ref: str
    size: int | None = None
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One thing that somebody did on a platform.

    `kind`: message, edited (a message was changed), tap, form (one was sent), command (`/…`), reaction, follow,
    unfollow, home (somebody looks), linked (an identity was proved; `data` is the proof).
    `ident`: unique within the channel, the same for a repeat. `conversation`: where a job of it lives, with the
    channel's name before it. `text`: exactly what was written, what the platform made of it undone; `undone`: it had to
    be. `direct`: only this person and the bot are there. `mentioned`: the bot is meant. `ref`: the message's own, or of
    the message that was tapped; `reply_to`: the message that it answers. `data`: a button's. `values`: a form's.
    `raw`: the payload as it came."""

    kind: Literal["message", "edited", "tap", "form", "command", "reaction", "follow", "unfollow", "home", "linked"]
    ident: str
    conversation: str
    sender: Sender
    text: str = ""
    undone: bool = False
    direct: bool = False
    mentioned: bool = False
    ref: str | None = None
    reply_to: str | None = None
    data: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    at: datetime | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


class Door(Protocol):
    """Where a channel hands in what came. It answers once that is stored."""

    async def take(self, channel: str, given: Inbound) -> bool:
        """Stores it; False where it was stored before. Raises where the database is away: then the platform is told
        nothing, and brings it again."""
        ...

    async def form(self, channel: str, given: Inbound) -> Form | None:
        """The form that a tap opens, at once; None where it opens none."""
        ...

    async def submitted(self, channel: str, given: Inbound) -> Mapping[str, str]:
        """Takes a form that was sent: what is wrong with which field, or nothing where it counts."""
        ...

    async def home(self, channel: str, sender: Sender) -> Home:
        """What somebody's own page shows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that keeps a channel from working, and what to do about it. `note`: it works, within what this says."""

    what: str
    mend: str
    note: bool = False


@runtime_checkable
class Grouped(Protocol):
    """A platform whose groups of people are roles."""

    async def groups(self) -> Mapping[str, Sequence[str]]:
        """Each group's handle and the ids of its people."""
        ...


@runtime_checkable
class Inviting(Protocol):
    """A platform with an address that opens the bot and brings a secret along."""

    async def invite(self, secret: str) -> str | Refused | Later:
        """The address at which somebody proves who they are (`linked`)."""
        ...


@runtime_checkable
class Linking(Protocol):
    """A platform with an account link of its own: a page of ours stands between two of its."""

    async def link(self, ref: str, page: str) -> str | Refused | Later:
        """The address of our page, with the platform's token, for somebody to open and sign in."""
        ...

    def linked(self, link_token: str, nonce: str) -> str:
        """Where that page sends them on to; the platform brings the nonce back (`linked`)."""
        ...


@runtime_checkable
class Busy(Protocol):
    """A platform that shows by itself that the bot is at work on an answer."""

    async def busy(self, conversation: str) -> None:
        """Shows it until something is sent there, a while at most. Best effort."""
        ...


class Channel(Protocol):
    """One platform. None of these raises for what the platform says or because it is away."""

    name: str
    capabilities: Capabilities

    async def start(self, door: Door) -> None:
        """Begins to bring in what happens; returns at once, and tries again by itself while the platform is away."""
        ...

    async def stop(self) -> None: ...

    def routes(self) -> list[Route]:
        """What it answers over HTTP."""
        ...

    def read(self, raw: Mapping[str, Any]) -> Inbound | None:
        """A stored payload as it was brought in; None where it means nothing here."""
        ...

    async def send(self, conversation: str, thing: Thing, *, ident: str, again: bool = False) -> Answer:
        """Puts it out. `ident`: unique for this thing and the same at every attempt; `again`: an earlier attempt may
        have been accepted, so it is looked for first where that is possible."""
        ...

    async def edit(self, conversation: str, ref: str, thing: Thing) -> Answer:
        """Changes what stands there. Where the platform cannot, nothing happens and it was sent."""
        ...

    async def tell(self, given: Inbound, text: str, *, alert: bool = False) -> None:
        """Words back to whoever acted, to them alone where the platform can. `alert`: it was refused. Best effort: it
        is no record."""
        ...

    async def reach(self, ref: str) -> str | Refused | Later:
        """The conversation in which a person is written to alone."""
        ...

    async def fetch(self, file: File) -> bytes | Refused | Later:
        """What is in a file that came."""
        ...

    async def find(self, email: str) -> Sender | None:
        """Whoever has this address there, if it tells."""
        ...

    async def check(self) -> list[Fault]:
        """What keeps it from working, each with what to do."""
        ...
