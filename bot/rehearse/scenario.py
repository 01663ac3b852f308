"""A scenario: what the world does in a rehearsal. An unknown key is refused with the nearest known one."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

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
    "policy": ("approve",),
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
            agents=(Agent(name="claude", default=True),) if has_agent else (),
            models=self.models,
            streams=self.streams,
            bindings={name: type_of(value) for name, value in self.bindings.items()},
            templates=self.templates,
            customer=self.customer,
            channels=None,
            judge=has_agent,
            workspace=self.workspace,
            policy=self.policy,
        )


def load(text: str) -> Scenario:
    """The scenario of a YAML text."""
    try:
        got = yaml.load(text, Loader=Core) if text.strip() else {}
    except yaml.YAMLError as fault:
        raise WrongScenario(f"the scenario does not read as YAML: {fault}") from None
    if got is None:
        got = {}
    if not isinstance(got, dict):
        raise WrongScenario("a scenario is a mapping: `now`, `people`, `steps` …")
    return build(got)


def build(raw: dict[str, Any]) -> Scenario:
    _known(raw, KEYS, "a scenario")
    for key in ("people", "agents", "judge", "replan", "steps"):
        for row in raw.get(key) or []:
            _mapping(row, key)
            _known(row, WITHIN[key], f"an entry of `{key}`")
    for key in ("workspace", "customer", "policy"):
        if raw.get(key) is not None:
            _mapping(raw[key], key)
            _known(raw[key], WITHIN[key], f"`{key}`")
    now = _instant(str(raw.get("now", DEFAULT_NOW)), "now")
    workspace = _workspace(raw.get("workspace") or {}, now)
    people = tuple(
        Person(
            email=str(p["email"]), name=str(p.get("name") or str(p["email"]).partition("@")[0]), timezone=p.get("tz")
        )
        for p in raw.get("people") or []
    )
    owner = str(raw.get("owner") or (people[0].email if people else "owner@example.com"))
    return Scenario(
        now=now,
        until=_moment(raw["until"], now, "until") if raw.get("until") else None,
        moves=tuple(_move(step, now) for step in raw.get("steps") or []),
        owner=owner,
        people=people,
        roles={str(n): tuple(map(str, members)) for n, members in (raw.get("roles") or {}).items()},
        customer=normalise(raw["customer"]) if raw.get("customer") else None,
        streams={s.name: s for s in map(_stream, raw.get("streams") or [])},
        bindings=normalise(raw.get("bindings") or {}),
        templates=normalise(raw.get("templates") or {}),
        inputs=normalise(raw["inputs"]) if raw.get("inputs") is not None else None,
        files=_files(raw.get("files") or {}),
        tools=_tools(raw.get("tools") or {}),
        agents=raw.get("agents"),
        judge=raw.get("judge"),
        replan=raw.get("replan"),
        saved={str(n): str(t) for n, t in (raw.get("saved") or {}).items()},
        policy=Policy(approve={str(k): v for k, v in ((raw.get("policy") or {}).get("approve") or {}).items()}),
        workspace=workspace,
        models=tuple(map(str, raw["models"])) if raw.get("models") else None,
        pasted=str(raw.get("pasted", "plain")),
        tool_specs=tuple(_tool_spec(str(n), t or {}) for n, t in (raw.get("tools") or {}).items()),
    )


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
    return Move(at=_moment(step["at"], now, "at"), what=what, body=body)


def _workspace(raw: dict[str, Any], now: datetime) -> Workspace:
    offset = now.strftime("%z")
    fields: dict[str, Any] = {"timezone": str(raw.get("timezone") or f"{offset[:3]}:{offset[3:5]}")}
    for key in ("working_hours", "ask_window", "approval_window", "quiet_hours"):
        if key in raw:
            fields[key] = str(raw[key])
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


def _tools(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, tool in raw.items():
        tool = tool or {}
        _mapping(tool, f"tools.{name}")
        _known(tool, WITHIN["tools"], f"tool `{name}`")
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
