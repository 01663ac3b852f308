"""A scenario: what the world does in a rehearsal. An unknown key is refused with the nearest known one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml

from bot.domain.catalog import Agent, OpSpec, Person, Policy, StreamSpec, Workspace, World
from bot.domain.errors import WaitonError
from bot.domain.values import normalise, type_of
from bot.language import durations
from bot.language.problems import did_you_mean, nearest
from bot.language.yamlcore import Core
from bot.runtime.files import MemoryFiles

DEFAULT_NOW = "2026-01-05T09:00:00+00:00"
KEYS = (
    "now",
    "people",
    "roles",
    "owner",
    "customer",
    "streams",
    "bindings",
    "templates",
    "inputs",
    "files",
    "tools",
    "agents",
    "judge",
    "replan",
    "saved",
    "policy",
    "steps",
    "until",
    "workspace",
    "models",
    "pasted",
)
WITHIN = {
    "people": ("email", "name", "tz"),
    "agents": ("when", "reply", "fails", "name", "model", "takes"),
    "judge": ("when", "verdict", "reason", "takes"),
    "replan": ("edits", "reason", "takes"),
    "steps": ("at", "answer", "event", "edit", "crash"),
    "answer": ("op", "by", "from", "with", "reason"),
    "event": ("stream", "from", "id", "data"),
    "tools": (
        "returns",
        "fails",
        "times",
        "then",
        "takes",
        "schema",
        "output",
        "readOnly",
        "idempotent",
        "destructive",
        "lost",
    ),
    "workspace": ("timezone", "working_hours", "holidays", "ask_window", "approval_window", "reminders", "quiet_hours"),
    "customer": ("id", "email", "conversation", "name"),
    "stream": ("name", "schema", "scope"),
    "policy": ("approve", "use"),
}


class WrongScenario(WaitonError):
    """The scenario cannot be played; the message says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One step of the world's: `what` is answer, event, edit or crash."""

    at: datetime
    what: str
    body: Any


@dataclass(slots=True, kw_only=True)
class Scenario:
    now: datetime
    until: datetime | None
    moves: tuple[Move, ...]
    owner: str
    people: tuple[Person, ...]
    roles: Mapping[str, tuple[str, ...]]
    customer: dict[str, Any] | None
    streams: Mapping[str, StreamSpec]
    bindings: dict[str, Any]
    templates: dict[str, Any]
    inputs: dict[str, Any] | None
    files: MemoryFiles
    tools: dict[str, dict[str, Any]]
    agents: list[dict[str, Any]] | None
    judge: list[dict[str, Any]] | None
    replan: list[dict[str, Any]] | None
    saved: dict[str, str]
    policy: Policy
    workspace: Workspace
    models: tuple[str, ...] | None
    pasted: str
    tool_specs: tuple[OpSpec, ...] = field(default=())
    known: tuple[Agent, ...] = field(default=())
    """Agents of a workspace, where no scenario says what any of them answers."""

    @property
    def zone(self) -> Any:
        return self.now.tzinfo

    def world(self, at: datetime) -> World:
        has_agent = self.agents is not None or self.judge is not None or self.replan is not None
        return World(
            now=at,
            owner=self.owner,
            people=self.people,
            roles=self.roles,
            agents=self.known or ((Agent(name="claude", default=True),) if has_agent else ()),
            models=self.models,
            streams=self.streams,
            bindings={name: type_of(value) for name, value in self.bindings.items()},
            templates=self.templates,
            customer=self.customer,
            channels=None,
            judge=has_agent or bool(self.known),
            workspace=self.workspace,
            policy=self.policy,
        )


class _Once(Core):
    """A key twice in one mapping is refused: the second would win in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise WrongScenario(f"line {line} of the scenario has `{key.value}` a second time; keep one of the two")
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def load(text: str) -> Scenario:
    """The scenario of a YAML text."""
    try:
        got = yaml.load(text, Loader=_Once) if text.strip() else {}
    except yaml.YAMLError as fault:
        raise WrongScenario(f"the scenario does not read as YAML: {fault}") from None
    if got is None:
        got = {}
    if not isinstance(got, dict):
        raise WrongScenario("a scenario is a mapping: `now`, `people`, `steps` …")
    return build(got)


LISTS = ("people", "agents", "judge", "replan", "steps", "streams", "models")
MAPPINGS = (
    ("roles", "customer", "bindings", "templates", "inputs")
    + ("files", "tools", "saved", "policy", "workspace")
)  # fmt: skip


def build(raw: dict[str, Any]) -> Scenario:
    """The scenario of a mapping. WrongScenario names the key, what it holds, and what it takes."""
    _shaped(raw)
    _agents(raw)
    now = _instant(str(raw.get("now", DEFAULT_NOW)), "now")
    workspace = _workspace(raw.get("workspace") or {}, now)
    people = tuple(
        Person(
            email=str(p["email"]), name=str(p.get("name") or str(p["email"]).partition("@")[0]), timezone=p.get("tz")
        )
        for p in raw.get("people") or []
    )
    owner = _owner(raw, people)
    return Scenario(
        now=now,
        until=_moment(raw["until"], now, "until") if raw.get("until") else None,
        moves=tuple(_move(step, now) for step in raw.get("steps") or []),
        owner=owner,
        people=people,
        roles=_roles(raw.get("roles") or {}, people),
        customer=normalise(raw["customer"]) if raw.get("customer") else None,
        streams={s.name: s for s in map(_stream, raw.get("streams") or [])},
        bindings=_bindings(raw.get("bindings") or {}),
        templates=normalise(raw.get("templates") or {}),
        inputs=normalise(raw["inputs"]) if raw.get("inputs") is not None else None,
        files=_files(raw.get("files") or {}),
        tools=_tools(raw.get("tools") or {}),
        agents=raw.get("agents"),
        judge=raw.get("judge"),
        replan=raw.get("replan"),
        saved={str(n): str(t) for n, t in (raw.get("saved") or {}).items()},
        policy=_policy(raw.get("policy") or {}),
        workspace=workspace,
        models=tuple(map(str, raw["models"])) if raw.get("models") else None,
        pasted=str(raw.get("pasted", "plain")),
        tool_specs=tuple(_tool_spec(str(n), t or {}) for n, t in (raw.get("tools") or {}).items()),
    )


def _shaped(raw: dict[str, Any]) -> None:
    """Every key is known, and holds a list or a mapping where it must; so does what stands in it."""
    _known(raw, KEYS, "a scenario")
    for key in LISTS:
        _must(raw, key, list, "a list")
    for key in MAPPINGS:
        _must(raw, key, dict, "a mapping")
    for person in raw.get("people") or []:
        if not isinstance(person, dict) or "@" not in str(person.get("email", "")):
            raise WrongScenario(f"an entry of `people` needs an `email`; it is `{person}`")
    for key in ("people", "agents", "judge", "replan", "steps"):
        for row in raw.get(key) or []:
            _mapping(row, key)
            _known(row, WITHIN[key], f"an entry of `{key}`")
    for key in ("workspace", "customer", "policy"):
        if raw.get(key) is not None:
            _known(raw[key], WITHIN[key], f"`{key}`")


def _agents(raw: dict[str, Any]) -> None:
    for key in ("agents", "judge", "replan"):
        for entry in raw.get(key) or []:
            if "takes" in entry:
                _span(entry["takes"], f"an entry of `{key}`, `takes`")
            if key == "judge" and entry.get("verdict") not in ("agrees", "disagrees", "unclear"):
                raise WrongScenario(f"a `verdict` is agrees, disagrees or unclear; it is `{entry.get('verdict')}`")
            if key == "agents" and ("reply" in entry) == ("fails" in entry):
                raise WrongScenario(f"an entry of `agents` has `reply` or `fails`; it is `{entry}`")


def _must(raw: Mapping[str, Any], key: str, kind: type, said: str) -> None:
    if raw.get(key) is not None and not isinstance(raw[key], kind):
        raise WrongScenario(f"`{key}` takes {said}; it is `{raw[key]}`")


def _roles(raw: Mapping[str, Any], people: tuple[Person, ...]) -> dict[str, tuple[str, ...]]:
    emails = {p.email for p in people}
    found: dict[str, tuple[str, ...]] = {}
    for name, members in raw.items():
        if not isinstance(members, list):
            raise WrongScenario(f"the role `{name}` takes a list of emails; it is `{members}`")
        for email in members:
            if email not in emails:
                hint = did_you_mean(nearest(str(email), emails))
                raise WrongScenario(
                    f"the role `{name}` names `{email}`, who is not among `people`; {hint or 'add them there'}"
                )
        found[str(name)] = tuple(map(str, members))
    return found


def _owner(raw: Mapping[str, Any], people: tuple[Person, ...]) -> str:
    owner = str(raw.get("owner") or (people[0].email if people else "owner@example.com"))
    if people and owner not in {p.email for p in people}:
        hint = did_you_mean(nearest(owner, [p.email for p in people]))
        raise WrongScenario(f"the owner `{owner}` is not among `people`; {hint or 'add them there'}")
    return owner


def _bindings(raw: dict[str, Any]) -> dict[str, Any]:
    for name in raw:
        if name in ("owner", "job", "run", "now", "templates", "history", "ops", "customer"):
            raise WrongScenario(f"`bindings` holds `{name}`, which the language binds itself")
    return normalise(raw)


def _span(value: Any, where: str) -> None:
    if durations.seconds(str(value)) is None:
        raise WrongScenario(f"{where}: `{value}` is no span such as `90s`")


def _known(row: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in row:
        if key not in keys:
            hint = did_you_mean(nearest(str(key), keys))
            raise WrongScenario(f"{where} has no `{key}`" + (f"; {hint}" if hint else f"; it has {', '.join(keys)}"))


def _mapping(row: Any, where: str) -> None:
    if not isinstance(row, dict):
        raise WrongScenario(f"an entry of `{where}` must be a mapping; it is `{row}`")


def _instant(text: str, where: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise WrongScenario(f"`{where}`: `{text}` is no instant such as `2026-03-02T09:00:00+01:00`") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _moment(text: Any, now: datetime, where: str) -> datetime:
    """An instant, or `+2m` from `now`."""
    said = str(text)
    if said.startswith("+"):
        seconds = durations.seconds(said[1:])
        if seconds is None and said[1:] in ("0", "0s"):
            seconds = 0.0
        if seconds is None:
            raise WrongScenario(f"`{where}`: `{said}` is no span such as `+2m`")
        return now + timedelta(seconds=seconds)
    return _instant(said, where)


def _move(step: dict[str, Any], now: datetime) -> Move:
    acts = [k for k in ("answer", "event", "edit", "crash") if k in step]
    if len(acts) != 1 or "at" not in step:
        raise WrongScenario("a step has `at` and one of `answer`, `event`, `edit`, `crash`")
    what = acts[0]
    body = step[what]
    if what in WITHIN:
        _mapping(body, what)
        _known(body, WITHIN[what], f"`{what}`")
        lacking = [key for key in {"answer": ("op", "with"), "event": ("stream",)}[what] if key not in body]
        if lacking or (what == "answer" and ("by" in body) == ("from" in body)):
            raise WrongScenario(
                f"an `{what}` needs {', '.join(f'`{k}`' for k in lacking) or '`by` or `from`'}; it is `{body}`"
            )
    elif what == "edit":
        _mapping(body, what)
    return Move(at=_moment(step["at"], now, "at"), what=what, body=body)


def _zone(name: str) -> bool:
    if re.fullmatch(r"[+-]\d{2}:\d{2}", name):
        return True
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def of_workspace(told: Scenario, world: World, tools: Iterable[OpSpec]) -> Scenario:
    """Where no scenario is told: the people, roles, agents, streams, templates and tools of the workspace. Tools give
    null."""
    return replace(
        told,
        owner=world.owner,
        people=world.people,
        roles=world.roles,
        streams=world.streams,
        templates=dict(world.templates),
        models=world.models,
        known=world.agents,
        tool_specs=tuple(tools),
        workspace=replace(world.workspace, reminders=()),
    )


def _workspace(raw: dict[str, Any], now: datetime) -> Workspace:
    offset = now.strftime("%z")
    fields: dict[str, Any] = {"timezone": str(raw.get("timezone") or f"{offset[:3]}:{offset[3:5]}")}
    for key in ("working_hours", "ask_window", "approval_window", "quiet_hours"):
        if key in raw:
            fields[key] = str(raw[key])
    for key in ("ask_window", "approval_window"):
        if key in fields and durations.parse(fields[key]) is None:
            raise WrongScenario(f"`workspace`, `{key}`: `{fields[key]}` is no duration such as `14d`")
    if "timezone" in raw and not _zone(fields["timezone"]):
        raise WrongScenario(
            f"`workspace`, `timezone`: there is no zone `{raw['timezone']}`; write one such as `Europe/Berlin`"
        )
    if "holidays" in raw:
        fields["holidays"] = frozenset(str(day) for day in raw["holidays"])
    if raw.get("reminders"):
        fields["reminders"] = tuple(map(str, raw["reminders"]))
    return Workspace(**fields)


def _stream(entry: Any) -> StreamSpec:
    if isinstance(entry, str):
        return StreamSpec(name=entry)
    _mapping(entry, "streams")
    _known(entry, WITHIN["stream"], "a stream")
    return StreamSpec(
        name=str(entry["name"]), schema=_schema(entry.get("schema")), scope=entry.get("scope", "workspace")
    )


def _schema(raw: Any) -> dict[str, Any] | None:
    """A JSON Schema, or the short form `{user: string}`."""
    if raw is None or not isinstance(raw, dict):
        return None
    if "type" in raw or "properties" in raw or "$ref" in raw or "anyOf" in raw:
        return raw
    return {"type": "object", "properties": {k: {"type": v} if isinstance(v, str) else v for k, v in raw.items()}}


def _files(raw: dict[str, Any]) -> MemoryFiles:
    files = MemoryFiles()
    for path, value in raw.items():
        if isinstance(value, dict) and len(value) == 1:
            ((kind, given),) = value.items()
            if kind == "base64":
                files.content[path] = base64.b64decode(str(given))
                continue
            if kind == "link":
                files.links[path] = str(given)
                continue
            if kind == "size":
                found = re.fullmatch(r"(\d+)\s*(B|KB|MB|GB)?", str(given))
                if found:
                    files.sizes[path] = (
                        int(found[1]) * {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[found[2] or "B"]
                    )
                    continue
        if isinstance(value, (dict, list)):
            raise WrongScenario(f"file `{path}`: give its text, or `base64`, `link` or `size`")
        files.content[path] = ("" if value is None else str(value)).encode()
    return files


def _policy(raw: Mapping[str, Any]) -> Policy:
    def whom(given: Any) -> str | tuple[str, ...]:
        return tuple(str(one) for one in given) if isinstance(given, list) else str(given)

    return Policy(
        approve={str(k): v for k, v in (raw.get("approve") or {}).items()},
        use={str(k): whom(v) for k, v in (raw.get("use") or {}).items()},
    )


def _tools(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, tool in raw.items():
        tool = tool or {}
        _mapping(tool, f"tools.{name}")
        _known(tool, WITHIN["tools"], f"tool `{name}`")
        if tool.get("takes") is not None:
            _span(tool["takes"], f"tool `{name}`, `takes`")
        found[str(name)] = tool
    return found


def _tool_spec(name: str, tool: dict[str, Any]) -> OpSpec:
    schema = _schema(tool.get("schema"))
    return OpSpec(
        name=name,
        summary=f"The tool {name}.",
        kind="effect",
        shape=f"{name} KEY: VALUE …",
        params=schema or {},
        schema=schema,
        output=_schema(tool.get("output")),
        value="output",
        tool=True,
        read_only=bool(tool.get("readOnly")),
        idempotent=bool(tool.get("idempotent")),
        destructive=tool.get("destructive"),
    )
