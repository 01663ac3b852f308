"""Who is meant: emails, `@name`, `role:NAME`, `agent:NAME`, conversations, `#channel`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bot.domain.catalog import Person, World
from bot.language.problems import nearest, spent
from bot.language.refs import path

CHANNELS = ("slack", "telegram", "line", "web")
_EMAIL = re.compile(r"[^\s@<>{}\"',:]+@[^\s@<>{}\"',:]+\.[^\s@<>{}\"',:.]+\Z")
_CONVERSATION = re.compile(rf"(?:{'|'.join(CHANNELS)}):\S+\Z")
_AT = re.compile(r"""@(?:"([^"]+)"|(\S+))\Z""")


@dataclass(frozen=True, slots=True)
class Addressee:
    """`ref`: an email, a role's or an agent's name (`""`: the default agent), a conversation.
    `known` is False for an email that is nobody of the people here: a customer's."""

    kind: Literal["person", "role", "agent", "conversation"]
    ref: str
    known: bool = True


class UnknownAddressee(ValueError):
    """Nobody here is called so; `near` holds words that would have been right at that place."""

    def __init__(self, text: str, near: list[str]) -> None:
        super().__init__(f"nobody here is called `{text}`")
        self.text = text
        self.near = near


class AmbiguousAddressee(ValueError):
    """Several people fit; `emails` holds theirs."""

    def __init__(self, text: str, emails: list[str]) -> None:
        super().__init__(f"`{text}` could be {' or '.join(emails)}")
        self.text = text
        self.emails = emails


def looks_like(word: str) -> bool:
    """Whether a word after `ask` or `say` is its addressee; else it is a choice. A bare `agent` is a choice."""
    if word.startswith("{") and word.endswith("}"):
        return path(word[1:-1]) is not None
    if word.startswith("@"):
        return len(word) > 1
    if word.startswith("#"):
        return bool(re.fullmatch(r"#[\w.-]+", word))
    return bool(re.fullmatch(r"(?:role|agent):\S+", word) or _EMAIL.match(word) or _CONVERSATION.match(word))


def find(text: str, world: World) -> tuple[Addressee, ...]:
    """Who `text` means: one addressee (a role is one).

    Raises UnknownAddressee and AmbiguousAddressee."""
    word = text.strip()
    kind, _, rest = word.partition(":")
    if word == "agent":
        return (Addressee("agent", ""),)
    if kind == "agent" and rest:
        return (_agent(word, rest, world),)
    if kind == "role" and rest:
        return (_role(word, rest, world),)
    if _CONVERSATION.match(word) or (word.startswith("#") and len(word) > 1):
        return (Addressee("conversation", word),)
    if found := _AT.match(word):
        return (_named(word, found[1] or found[2], world),)
    if _EMAIL.match(word):
        person = world.person(word)
        return (Addressee("person", person.email) if person else Addressee("person", word, known=False),)
    raise UnknownAddressee(word, _near(word, world))


def near_emails(email: str, world: World) -> list[str]:
    """Emails of people here that an unknown one was likely meant to be."""
    return nearest(email, [person.email for person in world.people])


def _agent(word: str, name: str, world: World) -> Addressee:
    known = {agent.name.casefold(): agent.name for agent in world.agents}
    if name.casefold() in known:
        return Addressee("agent", known[name.casefold()])
    raise UnknownAddressee(word, [f"agent:{near}" for near in nearest(name, known.values())])


def _role(word: str, name: str, world: World) -> Addressee:
    known = {role.casefold(): role for role in world.roles}
    if name.casefold() in known:
        return Addressee("role", known[name.casefold()])
    raise UnknownAddressee(word, [f"role:{near}" for near in nearest(name, known.values())])


def _named(word: str, name: str, world: World) -> Addressee:
    """A person by name or by their email's local part, else a role, else a person by first name."""
    if _EMAIL.match(name) and (person := world.person(name)):
        return Addressee("person", person.email)
    folded = name.casefold()
    by_name, by_first = _people(world.people)
    people = by_name.get(folded, [])
    roles = [role for role in world.roles if role.casefold() == folded]
    if not people and roles:
        return Addressee("role", roles[0])
    emails = people or by_first.get(folded, [])
    if len(emails) > 1:
        raise AmbiguousAddressee(word, emails)
    if emails:
        return Addressee("person", emails[0])
    raise UnknownAddressee(word, _near(name, world))


Emails = dict[str, list[str]]
_last: tuple[tuple[Person, ...], Emails, Emails] = ((), {}, {})
"""The people asked about last, by name and by first name: a script asks about the same ones over and over."""


def _people(people: tuple[Person, ...]) -> tuple[Emails, Emails]:
    """Emails by name and by the email's local part, and by first name; case folded."""
    global _last
    known, by_name, by_first = _last
    if known is people:
        return by_name, by_first
    by_name, by_first = {}, {}
    for person in people:
        keys = {person.name.casefold(), _local(person).casefold()}
        for index, found in ((by_name, keys), (by_first, set(person.name.casefold().split()[:1]))):
            for key in found:
                emails = index.setdefault(key, [])
                if person.email not in emails:
                    emails.append(person.email)
    _last = (people, by_name, by_first)
    return by_name, by_first


def _near(name: str, world: World) -> list[str]:
    if spent():
        return []
    words: dict[str, None] = {}
    for person in world.people:
        spelt = f'@"{person.name}"' if " " in person.name else f"@{person.name}"
        folded = person.name.casefold()
        words[spelt.lower() if folded == _local(person).casefold() else spelt] = None
        words[f"@{_local(person)}"] = None
    for role in world.roles:
        words[f"@{role}"] = None
    return nearest(f"@{name.lstrip('@')}", words)


def _local(person: Person) -> str:
    return person.email.partition("@")[0]
