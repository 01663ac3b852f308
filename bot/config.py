"""Settings: `waiton.toml` beside the database, environment variables over it, secrets never in the file.

An unknown key is refused with the nearest known one. What the settings say is turned into the values that the rest
takes (`World`'s parts, tools); nothing else reads the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from bot.domain.catalog import Agent, Person, Policy, StreamSpec, Workspace, World
from bot.domain.cost import Price, price
from bot.domain.errors import Misconfigured
from bot.language.problems import did_you_mean, nearest

DEFAULT_DATABASE = "sqlite:///.waiton/waiton.db"
SECTIONS: dict[str, tuple[str, ...] | None] = {
    "workspace": (
        "name",
        "timezone",
        "working_hours",
        "holidays",
        "ask_window",
        "approval_window",
        "files",
        "fanout",
        "cards",
        "reminders",
        "quiet_hours",
        "retention",
    ),
    "people": None,
    "roles": None,
    "streams": None,
    "tools": None,
    "agents": None,
    "models": None,
    "templates": None,
    "policy": ("approve", "paste", "use", "agent_runs", "admins", "max_cost", "owner_may_approve"),
}
PERSON = ("name", "timezone", "slack", "telegram", "line")
STREAM = ("secret", "kind", "id", "from", "text", "schema", "scope", "heartbeat")
TOOL = (
    "http",
    "python",
    "command",
    "url",
    "input",
    "output",
    "idempotent",
    "read_only",
    "destructive",
    "timeout",
    "summary",
    "demo",
    "env",
    "headers",
    "trust_annotations",
    "declare",
)
SOURCES = ("http", "python", "command", "url", "demo")
"""Where a tool comes from: one of these, or an installed package under that name."""
BELONGS: Mapping[str, tuple[str, ...]] = {
    "env": ("command",),
    "headers": ("url", "http"),
    "trust_annotations": ("command", "url"),
    "declare": ("command", "url"),
}
"""Keys of a tool that say something beside these sources alone."""
DECLARED = ("idempotent", "read_only", "destructive", "timeout", "summary")
"""What settings may say of a tool whatever it says of itself."""
AGENT = ("model", "prompt", "tools", "default")
PRICE = ("input", "output", "cache_write", "cache_read")
MODEL = "claude-sonnet-4-6"
"""The model of agents that name none, where WAITON_MODEL is not set."""
KINDS = ("standard-webhooks", "github", "stripe", "bearer", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How a stream's senders are known, and where their events hold what."""

    spec: StreamSpec
    kind: str = "none"
    secret: str | None = field(default=None, repr=False)
    id: str | None = None
    sender: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Where agents' models are. `name`: of agents that name none; `prices`: of models, beyond those that are known."""

    key: str = field(repr=False)
    base_url: str | None = None
    name: str = MODEL
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    database: str = DEFAULT_DATABASE
    host: str = "127.0.0.1"
    port: int = 8484
    public_url: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    path: Path | None = None
    """The settings file that was read, if there is one."""
    workspace: Workspace = field(default_factory=Workspace)
    files: Path = Path(".waiton/files")
    people: tuple[Person, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    streams: Mapping[str, StreamSettings] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """As they are written: a secret in them is the name of its variable, `env:NAME`."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the variables hold that tools name."""
    agents: tuple[Agent, ...] = ()
    """Those that can be put on work: none without a key."""
    keyless: tuple[str, ...] = ()
    """Agents of the settings that have no key to work with."""
    model: ModelSettings | None = None
    templates: Mapping[str, Any] = field(default_factory=dict)
    """What scripts name as `templates.NAME`: texts that a workspace says often."""
    policy: Policy = field(default_factory=Policy)
    channels: frozenset[str] = frozenset({"web"})
    platforms: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Tokens and addresses of the chat platforms that are on."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret that the settings know: what must appear nowhere else."""
        chat = (v for given in self.platforms.values() for k, v in given.items() if not k.endswith("_url"))
        hooks = (one.secret for one in self.streams.values())
        return tuple(s for s in (*self.variables.values(), self.secret_key, *hooks, *chat) if s)

    @property
    def url(self) -> str:
        return (
            self.public_url or f"http://{'localhost' if self.host in ('0.0.0.0', '::') else self.host}:{self.port}"
        ).rstrip("/")

    def world(self, now: datetime, people: Iterable[Person], roles: Mapping[str, tuple[str, ...]]) -> World:
        """The world with these people in it, as the settings say the rest of it; the room reaches everyone."""
        found = tuple(replace(p, identities={**p.identities, "web": p.email}) for p in people)
        return World(
            now=now,
            people=found,
            roles=roles,
            agents=self.agents,
            templates=self.templates,
            streams={name: s.spec for name, s in self.streams.items()},
            channels=self.channels,
            judge=bool(self.agents),
            model=self.model.name if self.model else None,
            prices=self.model.prices if self.model else {},
            workspace=replace(self.workspace, alone=len(found) < 2),
            policy=self.policy,
        )


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings as they stand. Raises Misconfigured, naming the setting to change."""
    env = dict(os.environ if environment is None else environment)
    database = env.get("WAITON_DATABASE_URL") or DEFAULT_DATABASE
    path = _file(env, database)
    raw: dict[str, Any] = {}
    if path is not None:
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as fault:
            raise Misconfigured(f"{path} does not read: {fault}") from None
    where = str(path or "waiton.toml")
    _overlay(raw, env)
    _known(raw, tuple(SECTIONS), where)
    for section, keys in SECTIONS.items():
        if section in raw and not isinstance(raw[section], dict):
            raise Misconfigured(f"{where}: `{section}` must be a table, `[{section}]`")
        if keys is not None:
            _known(raw.get(section, {}), keys, f"{where}, [{section}]")
    work = raw.get("workspace", {})
    platforms = _platforms(env)
    model = _model(raw.get("models", {}), env, where)
    agents = _agents(raw.get("agents", {}), where)
    base = path.parent if path is not None else Path()
    return Settings(
        database=database,
        host=env.get("WAITON_HOST", "127.0.0.1"),
        port=_port(env.get("WAITON_PORT", "8484")),
        public_url=env.get("WAITON_PUBLIC_URL"),
        secret_key=_secret(env, "WAITON_SECRET_KEY"),
        path=path,
        workspace=_workspace(work, where),
        files=_files(work, base),
        people=tuple(_person(email, p, where) for email, p in raw.get("people", {}).items()),
        roles={
            name: tuple(_texts(members, f"{where}, [roles] {name}")) for name, members in raw.get("roles", {}).items()
        },
        streams={name: _stream(name, s, env, where) for name, s in raw.get("streams", {}).items()},
        tools={name: _tool(name, t, where) for name, t in raw.get("tools", {}).items()},
        variables=_variables(raw.get("tools", {}), env, where),
        agents=(agents or (Agent(name="claude", default=True),)) if model else (),
        keyless=() if model else tuple(agent.name for agent in agents),
        model=model,
        templates=raw.get("templates", {}),
        policy=_policy(raw.get("policy", {}), where),
        channels=frozenset({"web", *platforms}),
        platforms=platforms,
    )


def _file(env: Mapping[str, str], database: str) -> Path | None:
    if given := env.get("WAITON_CONFIG"):
        if not Path(given).is_file():
            raise Misconfigured(f"WAITON_CONFIG names {given}, which is not there")
        return Path(given)
    folder = Path(database[len("sqlite:///") :]).parent if database.startswith("sqlite:///") else Path(".waiton")
    for candidate in (folder / "waiton.toml", Path("waiton.toml")):
        if candidate.is_file():
            return candidate
    return None


def _overlay(raw: dict[str, Any], env: Mapping[str, str]) -> None:
    """`WAITON_WORKSPACE__TIMEZONE=…` over `[workspace] timezone`; values are read as TOML where they can be."""
    for key, value in env.items():
        parts = key.removeprefix("WAITON_").lower().split("__")
        if not key.startswith("WAITON_") or len(parts) != 2 or parts[0] not in ("workspace", "policy"):
            continue
        try:
            read = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            read = value
        raw.setdefault(parts[0], {})[parts[1]] = read


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            hint = did_you_mean(nearest(key, keys)) or f"there are {', '.join(f'`{k}`' for k in keys)}"
            raise Misconfigured(f"{where}: there is no setting `{key}`; {hint}")


def _secret(env: Mapping[str, str], name: str) -> str | None:
    """A secret from the environment, or from the file that `NAME_FILE` names."""
    if value := env.get(name):
        return value
    if path := env.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as fault:
            raise Misconfigured(f"{name}_FILE: {fault}") from None
    return None


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) < 65536:
        raise Misconfigured(f"WAITON_PORT must be a port number; it is `{text}`")
    return int(text)


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise Misconfigured(f"{where} must be a list of texts")
    return list(value)


def _workspace(raw: Mapping[str, Any], where: str) -> Workspace:
    from zoneinfo import ZoneInfo

    from bot.language import durations

    values: dict[str, Any] = {
        k: raw[k]
        for k in ("name", "timezone", "working_hours", "ask_window", "approval_window", "fanout", "quiet_hours")
        if k in raw
    }
    if "timezone" in values:
        try:
            ZoneInfo(str(values["timezone"]))
        except Exception:
            raise Misconfigured(
                f"{where}, [workspace] timezone: there is no zone `{values['timezone']}`; "
                "write one such as `Europe/Berlin`"
            ) from None
    for key in ("ask_window", "approval_window"):
        if key in values and durations.parse(str(values[key])) is None:
            raise Misconfigured(f"{where}, [workspace] {key}: `{values[key]}` is no duration such as `14d`")
    if "cards" in raw:
        if raw["cards"] not in ("direct", "thread"):
            raise Misconfigured(f'{where}, [workspace] cards is "direct" or "thread"; it is `{raw["cards"]}`')
        values["cards"] = raw["cards"]
    if "reminders" in raw:
        values["reminders"] = tuple(_texts(raw["reminders"], f"{where}, [workspace] reminders"))
    if "holidays" in raw:
        values["holidays"] = _holidays(raw["holidays"], where)
    return Workspace(**values)


def _holidays(given: Any, where: str) -> frozenset[str]:
    """Dates, or a region of the `holidays` library (`DE-BE`), for the years around now."""
    if isinstance(given, list):
        return frozenset(str(day) for day in given)
    import holidays

    country, _, part = str(given).partition("-")
    years = range(2024, 2041)
    try:
        return frozenset(
            day.isoformat() for day in holidays.country_holidays(country, subdiv=part or None, years=years)
        )
    except NotImplementedError:
        raise Misconfigured(
            f"{where}, [workspace] holidays: there is no region `{given}`; write one such as `DE-BE`, "
            "or a list of dates"
        ) from None


def _files(raw: Mapping[str, Any], base: Path) -> Path:
    if "files" in raw:
        return Path(str(raw["files"]))
    return base / "files" if base != Path() else Path(".waiton/files")


def _person(email: str, raw: Any, where: str) -> Person:
    table = _table(raw, f'{where}, [people."{email}"]')
    _known(table, PERSON, f'{where}, [people."{email}"]')
    return Person(
        email=email,
        name=str(table.get("name") or email.partition("@")[0]),
        timezone=table.get("timezone"),
        identities={c: str(table[c]) for c in ("slack", "telegram", "line") if c in table},
    )


def _table(raw: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise Misconfigured(f"{where} must be a table")
    return raw


def _stream(name: str, raw: Any, env: Mapping[str, str], where: str) -> StreamSettings:
    table = _table(raw, f'{where}, [streams."{name}"]')
    here = f'{where}, [streams."{name}"]'
    _known(table, STREAM, here)
    kind = str(table.get("kind", "none" if "secret" not in table else "standard-webhooks"))
    if kind not in KINDS:
        raise Misconfigured(
            f"{here}: kind `{kind}` is not known; "
            + (did_you_mean(nearest(kind, KINDS)) or f"there are {', '.join(KINDS)}")
        )
    secret = table.get("secret")
    if secret is not None:
        source, _, variable = str(secret).partition(":")
        if source != "env" or not variable:
            raise Misconfigured(f'{here}: a secret is never in the settings; write `secret = "env:NAME"`')
        secret = _secret(env, variable)
        if secret is None:
            raise Misconfigured(f"{here}: the environment variable {variable} is not set")
    if kind != "none" and secret is None:
        raise Misconfigured(f"{here}: kind `{kind}` needs a `secret`")
    spec = StreamSpec(name=name, schema=short_schema(table.get("schema")), scope=table.get("scope", "workspace"))
    return StreamSettings(
        spec=spec, kind=kind, secret=secret, id=table.get("id"), sender=table.get("from"), text=table.get("text")
    )


def _tool(name: str, raw: Any, where: str) -> Mapping[str, Any]:
    here = f"{where}, [tools.{name}]"
    table = _table(raw, here)
    _known(table, TOOL, here)
    sources = [key for key in SOURCES if key in table]
    if len(sources) > 1:
        raise Misconfigured(f"{here} has {' and '.join(f'`{s}`' for s in sources)}; a tool comes from one place")
    for key, belongs in BELONGS.items():
        if key in table and not any(source in table for source in belongs):
            raise Misconfigured(f"{here}: `{key}` belongs to {' or '.join(f'`{s}`' for s in belongs)}")
    if "command" in table and not (table["command"] and _texts(table["command"], f"{here} command")):
        raise Misconfigured(f'{here}: `command` must be a list, such as ["github-mcp-server", "stdio"]')
    if "url" in table and not str(table["url"]).startswith(("https://", "http://")):
        raise Misconfigured(f"{here}: `url` must be an address that begins with https:// or http://")
    for pattern, said in _table(table.get("declare", {}), f"{here} declare").items():
        _known(_table(said, f"{here} declare.{pattern}"), DECLARED, f"{here} declare.{pattern}")
    if not sources and not set(table) <= set(DECLARED):
        raise Misconfigured(f"{here} needs `http`, `python`, `command` or `url`")
    return table


def _variables(tools: Mapping[str, Any], env: Mapping[str, str], where: str) -> dict[str, str]:
    """What the variables hold that tools name in `env` and `headers`."""
    found: dict[str, str] = {}
    for name, table in tools.items():
        for key in ("env", "headers"):
            here = f"{where}, [tools.{name}] {key}"
            for field_, given in _table(table.get(key, {}), here).items():
                source, _, variable = str(given).partition(":")
                if source != "env" or not variable:
                    raise Misconfigured(f'{here}: a secret is never in the settings; write `{field_} = "env:NAME"`')
                value = _secret(env, variable)
                if value is None:
                    raise Misconfigured(f"{here}: the environment variable {variable} is not set")
                found[variable] = value
    return found


def _model(raw: Mapping[str, Any], env: Mapping[str, str], where: str) -> ModelSettings | None:
    """Where models are; None without a key."""
    prices: dict[str, Price] = {}
    for name, given in raw.items():
        here = f'{where}, [models."{name}"]'
        table = _table(given, here)
        _known(table, PRICE, here)
        for key, value in table.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise Misconfigured(f"{here} {key} must be US dollars a million tokens; it is `{value}`")
        if "input" not in table or "output" not in table:
            raise Misconfigured(f"{here} needs `input` and `output`: US dollars a million tokens")
        prices[name] = price(**{key: float(value) for key, value in table.items()})
    key = _secret(env, "ANTHROPIC_API_KEY")
    if key is None:
        return None
    return ModelSettings(
        key=key, base_url=env.get("ANTHROPIC_BASE_URL") or None, name=env.get("WAITON_MODEL") or MODEL, prices=prices
    )


def _agents(raw: Mapping[str, Any], where: str) -> tuple[Agent, ...]:
    """The agents of the settings: the only one is the default agent, of several the one that says so."""
    found = tuple(_agent(name, a, where) for name, a in raw.items())
    chosen = [agent.name for agent in found if agent.default]
    if len(chosen) > 1:
        raise Misconfigured(f"{where}: {' and '.join(f'[agents.{n}]' for n in chosen)} are both `default = true`")
    if len(found) > 1 and not chosen:
        raise Misconfigured(f"{where}: of several agents one needs `default = true`")
    return tuple(replace(agent, default=True) for agent in found) if len(found) == 1 else found


def _agent(name: str, raw: Any, where: str) -> Agent:
    table = _table(raw, f"{where}, [agents.{name}]")
    _known(table, AGENT, f"{where}, [agents.{name}]")
    return Agent(
        name=name,
        model=table.get("model"),
        prompt=table.get("prompt", ""),
        tools=tuple(table.get("tools", ())),
        default=bool(table.get("default")),
    )


def _policy(raw: Mapping[str, Any], where: str) -> Policy:
    approve = raw.get("approve")
    if approve is not None and not isinstance(approve, dict):
        raise Misconfigured(f"{where}, [policy] approve must be a table of tool → role")
    return Policy(
        approve={k: (v or None) for k, v in approve.items()} if approve is not None else None,
        use={k: _whom(v, f"{where}, [policy] use.{k}") for k, v in _table(raw.get("use", {}), "use").items()},
        paste=tuple(raw["paste"]) if isinstance(raw.get("paste"), list) else raw.get("paste", "members"),
        agent_runs=_agent_runs(raw.get("agent_runs", "confirm"), where),
        admins=tuple(raw.get("admins", ())),
        max_cost=raw.get("max_cost"),
        owner_may_approve=bool(raw.get("owner_may_approve")),
    )


def _agent_runs(value: Any, where: str) -> Literal["confirm", "free"]:
    if value not in ("confirm", "free"):
        raise Misconfigured(f'{where}, [policy] agent_runs is "confirm" or "free"; it is `{value}`')
    return value


def _whom(value: Any, where: str) -> str | tuple[str, ...]:
    """A role, an email, or a list of them."""
    given = _texts([value] if isinstance(value, str) else value, where)
    for one in given:
        if not one.startswith("role:") and "@" not in one and one not in ("members", "everyone"):
            raise Misconfigured(f"{where}: `{one}` is nobody; write an email, or a role as `role:{one}`")
    return given[0] if isinstance(value, str) else tuple(given)


PLATFORMS: Mapping[str, Mapping[str, str]] = {
    "slack": {
        "bot_token": "SLACK_BOT_TOKEN",
        "app_token": "SLACK_APP_TOKEN",
        "signing_secret": "SLACK_SIGNING_SECRET",
        "base_url": "SLACK_BASE_URL",
    },
    "telegram": {
        "token": "TELEGRAM_BOT_TOKEN",
        "webhook_secret": "TELEGRAM_WEBHOOK_SECRET",
        "base_url": "TELEGRAM_BASE_URL",
    },
    "line": {
        "access_token": "LINE_CHANNEL_ACCESS_TOKEN",
        "secret": "LINE_CHANNEL_SECRET",
        "base_url": "LINE_BASE_URL",
    },
}
"""What each chat platform is reached with, by the environment variable that has it; the first turns it on."""


def _platforms(env: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The platforms whose token is set, with what is set of theirs."""
    found: dict[str, dict[str, str]] = {}
    for name, variables in PLATFORMS.items():
        given = {key: value for key, variable in variables.items() if (value := _secret(env, variable))}
        if next(iter(variables)) in given:
            found[name] = given
    return found


def short_schema(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A JSON Schema, or the short form of the settings (`{ service = "string" }`)."""
    if given is None or "$ref" in given or (isinstance(given.get("type"), str) and "properties" in given):
        return given
    properties = {k: {"type": v} if isinstance(v, str) else v for k, v in given.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


EXAMPLE = """\
# The workspace of a first try: three people, a role, two streams, tools that touch nothing.
# Change it as you like; `waiton doctor` says whether it reads.

[workspace]
name = "acme"
timezone = "Europe/Berlin"

[people."ana@acme.de"]
name = "Ana"
timezone = "Europe/Berlin"

[people."bo@acme.de"]
name = "Bo"

[people."jonas@acme.de"]
name = "Jonas"

[roles]
leads = ["ana@acme.de", "bo@acme.de"]

[streams."auth.first_signin"]      # POST /hooks/auth.first_signin, from this machine only
from = "user"

[streams."camera.line_2"]

[templates]
nudge = "Your account is ready when you are."

[tools.demo]                       # demo_list_prs, demo_schedule, demo_book_class, demo_deploy, demo_restart
demo = true

[policy]
approve = { "demo_deploy" = "role:leads" }
"""
