"""A platform as the contract suite sees it: a loopback double that answers as the platform does, and people at it.

Every platform's double comes with a stage. The suite runs the same story on each: the whole product, the real SDK, the
double; what differs is what the platform can do (`Capabilities`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from channels.base import Capabilities


class Lacks(NotImplementedError):
    """A platform has no such thing: the test is none of its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message of ours as one person sees it now. `buttons`: labels, none once it is settled; `edits`: how often it was
    changed."""

    ref: str
    conversation: str
    text: str
    buttons: tuple[str, ...] = ()
    edits: int = 0


class Stage(Protocol):
    """The double of one platform. `who` is a name: `ana`, `bo` and `jonas` are people of the workspace (`NAME@acme.de`)
    whose identity is known to it, `mika` is nobody it knows."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def env(self) -> Mapping[str, str]:
        """What the product is started with, as `surfaces.md` names it: tokens, and its address as `…_BASE_URL`."""
        ...

    async def __aenter__(self) -> Stage: ...

    async def __aexit__(self, *_: Any) -> None: ...

    def ref(self, who: str) -> str:
        """The platform's id of somebody, as `[people]` has it."""
        ...

    def connect(self, address: str) -> None:
        """Where the product listens, for platforms that call it."""
        ...

    async def ready(self) -> None:
        """Returns once the product is connected (a socket is open, a poll has come); at once where it is called."""
        ...

    # --- what people do -------------------------------------------------------------------------------------------
    async def paste(self, who: str, text: str, *, form: str = "text") -> str:
        """Sends a script so that the bot is meant, in a conversation that ana, bo and jonas read; gives the conversation.
        `form`: text, code (a code block), rich (what the composer makes of it), file. A platform that has not got a form
        raises `NotImplementedError`."""
        ...

    async def write(self, who: str, text: str) -> str:
        """Sends words in that person's own conversation with the bot; gives the conversation."""
        ...

    async def tap(self, who: str, seen: Seen, label: str) -> None:
        """Taps a button, also one that somebody kept on an old screen. Returns once the platform was answered."""
        ...

    async def reply(self, who: str, seen: Seen, text: str) -> None:
        """Answers a message in words."""
        ...

    async def fill(self, who: str, seen: Seen, values: Mapping[str, str]) -> Mapping[str, str]:
        """Opens a card's form and sends it; gives what is wrong with which field, or nothing."""
        ...

    async def again(self) -> None:
        """The platform brings the last thing once more, as it does when it heard no answer."""
        ...

    async def forged(self) -> bool:
        """Somebody who is not the platform brings a tap; whether it was taken. True also for one that is too old, where
        the platform dates what it brings."""
        ...

    # --- what people see ------------------------------------------------------------------------------------------
    def seen(self, who: str) -> list[Seen]:
        """Every message of the bot's that this person sees, oldest first, as it stands now."""
        ...

    def told(self, who: str) -> list[str]:
        """What this person alone was told in answer to what they did."""
        ...

    def acknowledged(self) -> float:
        """Seconds from what was last brought in until the platform was answered."""
        ...

    # --- what goes wrong ------------------------------------------------------------------------------------------
    def away(self, calls: int) -> None:
        """The next calls of the product get no answer: the platform is down."""
        ...

    def lose(self, calls: int) -> None:
        """The next calls are taken, and their answers are lost."""
        ...

    def busy(self, calls: int, seconds: float) -> None:
        """The next calls are refused with `Retry-After`."""
        ...

    def refuse(self, who: str) -> None:
        """Whatever is sent to this person is refused for good."""
        ...
