"""What exists here, handed to the pure parts as values: the ops, the people, the streams, the policy.

`Catalog` says which ops there are, `World` who and what they may name. Nothing here looks anything up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from bot.domain.cost import Price

Kind = Literal["effect", "wait", "region", "setting"]
ArgKind = Literal["value", "literal", "number", "choices", "stream", "expression", "addressee", "name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """A place on the markdown surface: `value` a bound name, `literal` text with `{path}` filled in, `number` an
    integer or a bound number, `choices` literals to the end, `expression` the rest of the line, `stream` a
    literal, `addressee` only if the word looks like one, `name` an identifier (a saved script)."""

    name: str
    kind: ArgKind
    many: bool = False
    optional: bool = False
    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    """One op, as the language sees it.

    `shape`: how it is written in markdown, shown in refusals. `args`: its places there, in order.
    `quote`: the parameter that the block quote fills, or None; `quote_needed` where it must stand.
    `params`: a JSON Schema object of its own parameters (without `to`, `within` … which `fields` names).
    `value`: a type (`list<text>`, `number`, …), or `=list` (the type of that parameter), or a word that
    the types of the checks know: `answer`, `event`, `regions`, `items`, `body`, `expression`, `output`, `any`.
    `expects`: the type each parameter must have, for the checks (`list`, `text`, `number`).
    `fields`: which of `to from after within by onMiss onError retry` it takes besides.
    `regions`: which regions it holds. `expressions`: parameters that are CEL (`cel`) or jq (`jq`).
    """

    name: str
    summary: str
    kind: Kind
    shape: str
    args: tuple[Arg, ...] = ()
    quote: str | None = None
    quote_needed: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    value: str = "any"
    expects: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ("after", "onError", "retry")
    window: Literal["required", "optional", "none"] = "none"
    regions: tuple[str, ...] = ()
    expressions: Mapping[str, Literal["cel", "jq"]] = field(default_factory=dict)
    binds: bool = True
    on_error: Literal["halt", "continue"] = "halt"
    agent: bool = False
    """It always puts an agent on work (`each`); `ask` does so only where its addressee is one."""
    tool: bool = False
    read_only: bool = False
    idempotent: bool = False
    destructive: bool | None = None
    channel: str | None = None
    output: Mapping[str, Any] | None = None
    schema: Mapping[str, Any] | None = None
    """Of tools: the tool's own JSON Schema, None where it takes anything."""
    timeout: timedelta = timedelta(seconds=60)
    step: Any = None
    """What the op does: a `bot.engine.behaviour.Behaviour`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The ops of one workspace, built-in ones and tools, by name."""

    ops: Mapping[str, OpSpec]

    def __getitem__(self, name: str) -> OpSpec:
        return self.ops[name]

    def get(self, name: str) -> OpSpec | None:
        return self.ops.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Someone of the workspace. `identities`: channel → the platform's reference to them. `prefers`: where they want
    their cards; `latest`: where they last did something."""

    email: str
    name: str
    timezone: str | None = None
    identities: Mapping[str, str] = field(default_factory=dict)
    prefers: str | None = None
    latest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    model: str | None = None
    prompt: str = ""
    tools: tuple[str, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """A declared stream. `schema`: a JSON Schema of its events' data, or None. `chat`: a channel's stream with
    the one event shape of chats. `last`: when its latest event came."""

    name: str
    schema: Mapping[str, Any] | None = None
    scope: Literal["workspace", "job"] = "workspace"
    chat: bool = False
    last: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedScript:
    """What the checks must know of a saved script: its declared inputs (None: bare) and what it calls."""

    name: str
    inputs: tuple[Any, ...] | None = None
    calls: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Settings that rules depend on. `holidays`: dates (`2026-12-25`)."""

    name: str = "workspace"
    timezone: str = "UTC"
    working_hours: str = "Mon-Fri 09:00-17:00"
    holidays: frozenset[str] = frozenset()
    ask_window: str = "14d"
    approval_window: str = "3d"
    reminders: tuple[str, ...] = ()
    quiet_hours: str | None = None
    cards: str = "direct"
    """Where an ask's card goes in chat: to its addressee alone (`direct`), or into the job's thread (`thread`)."""
    fanout: int = 32
    alone: bool = False
    """Nobody else can read the job: its only person may approve what they started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`approve`: op name or pattern → who approves (`role:leads`, an email), None for "nobody named".
    None in place of the mapping: the default rule (every tool not read-only or harmless). `use`: likewise, who may
    call a tool at all; what it does not name is everyone's. `agent_runs`: what an agent starts with writes holds until
    a person lets it run (`confirm`), or runs (`free`)."""

    approve: Mapping[str, str | None] | None = None
    use: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    paste: str | tuple[str, ...] = "members"
    agent_runs: Literal["confirm", "free"] = "confirm"
    admins: tuple[str, ...] = ()
    max_cost: float | None = None
    owner_may_approve: bool = False


_INDEXED: dict[int, tuple[tuple[Person, ...], dict[str, Person]]] = {}
"""People by email, of the tuples that were asked for lately: a cache, by what they are and not by what they hold."""


def _by_email(people: tuple[Person, ...]) -> dict[str, Person]:
    known = _INDEXED.get(id(people))
    if known is None or known[0] is not people:
        if len(_INDEXED) > 64:
            _INDEXED.clear()
        known = _INDEXED[id(people)] = (people, {p.email.casefold(): p for p in reversed(people)})
    return known[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a script may name, where and when it is checked.

    `bindings`: the job's held names with their types (`list<text>`); None values mean any type.
    `models`: None where any model's name passes. `agents` empty: no agent is configured.
    `judge`: there is someone to judge a `check`. `channels`: those that are on; None in rehearsal, where all are.
    `now` is aware.
    """

    now: datetime
    owner: str = "owner@example.com"
    people: tuple[Person, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    agents: tuple[Agent, ...] = ()
    models: tuple[str, ...] | None = None
    streams: Mapping[str, StreamSpec] = field(default_factory=dict)
    scripts: Mapping[str, SavedScript] = field(default_factory=dict)
    bindings: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, Any] = field(default_factory=dict)
    customer: Mapping[str, Any] | None = None
    channels: frozenset[str] | None = None
    judge: bool = False
    model: str | None = None
    """The model of agents that name none; None where it is not known, as in rehearsal."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Of models, beyond those that are known."""
    workspace: Workspace = Workspace()
    policy: Policy = Policy()

    def person(self, email: str) -> Person | None:
        return _by_email(self.people).get(email.casefold())

    def name_of(self, who: str) -> str:
        """How a line or a reply names an addressee: a person's name, else the address as it is."""
        person = self.person(who)
        return person.name if person else who
