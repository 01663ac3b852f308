"""Checks what the product stands on, and says what to do about each fault."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from bot.config import Settings, load
from bot.domain.errors import Misconfigured, OpError
from bot.exits import FINE, SURROUNDINGS

Check = tuple[str, Callable[[Settings], Awaitable[str]]]


class Fault(Exception):
    """What is wrong, and after a line break what to do."""


async def examine_all(as_json: bool) -> int:
    """Runs every check; 0 where all is well, 3 where something is not."""
    found: list[dict[str, str | bool]] = []
    try:
        settings = load()
    except Misconfigured as fault:
        found.append({"check": "settings", "fine": False, "says": str(fault)})
        settings = None
    if settings is not None:
        found.append({"check": "settings", "fine": True, "says": str(settings.path or "none; the defaults hold")})
        for name, check in CHECKS:
            try:
                found.append({"check": name, "fine": True, "says": await check(settings)})
            except (Fault, Misconfigured) as fault:
                found.append({"check": name, "fine": False, "says": str(fault)})
            except Exception as fault:  # a check that breaks is a fault found
                found.append({"check": name, "fine": False, "says": f"{type(fault).__name__}: {fault}"})
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        for one in found:
            said = str(one["says"]).replace("\n", "\n" + " " * 13)
            print(f"{'✓' if one['fine'] else '✗'} {one['check']:<10} {said}")
    return FINE if all(one["fine"] for one in found) else SURROUNDINGS


async def _database(settings: Settings) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    from store.transaction import check

    if settings.database.startswith("sqlite:///") and not Path(settings.database[10:]).exists():
        return f"{settings.database} is made at the first start"
    try:
        behind = await asyncio.to_thread(check, settings.database)
    except SQLAlchemyError as fault:
        raise Fault(
            f"{_shown(settings.database)} does not answer: {str(fault).splitlines()[0]}\n"
            "set WAITON_DATABASE_URL, or start the server that it names"
        ) from None
    if behind is not None:
        raise Fault(f"the tables are of another release ({behind})\nrun `waiton db upgrade`")
    return f"{_shown(settings.database)} answers and has this release's tables"


def _shown(url: str) -> str:
    import re

    return re.sub(r"//([^:/@]+):[^@]*@", r"//\1:…@", url)


async def _files(settings: Settings) -> str:
    folder = settings.files
    base = folder if folder.exists() else next(p for p in folder.absolute().parents if p.exists())
    if not os.access(base, os.W_OK):
        raise Fault(f"{folder} cannot be written\nset `files` in [workspace], or change the folder's rights")
    return f"{folder} can be written"


async def _sandbox(settings: Settings) -> str:
    from bot.runtime.sandbox import Sandbox

    box = Sandbox(workers=1)
    try:
        if await box.cel("1 + 1", {}) != 2 or await box.jq("1 + 1", None, {}) != 2:
            raise Fault("CEL or jq gave a wrong sum")
    except OpError as fault:
        raise Fault(f"CEL and jq do not run in a process of their own: {fault}") from None
    finally:
        await box.aclose()
    return "CEL and jq run in processes of their own"


async def _tools(settings: Settings) -> str:
    """Every tool; of each MCP server whether it answers, and with how many."""
    from bot.offline import setting_of
    from bot.runtime.toolbox import configured_tools

    tools = configured_tools(settings, lambda name: setting_of(settings, name))
    said = [", ".join(tools.own)] if tools.own else []
    away: list[str] = []
    if tools.servers:
        from bot.runtime.refreshing import answers, clash_of

        for server, why in (await answers(tools, tools.servers)).items():
            if why is not None:
                away.append(
                    f"{why}\nsee `[tools.{server}]` in the settings; scripts that call its tools fail until then"
                )
        for server in tools.servers:
            if server.fault is None:
                said.append(f"{server.name}: {len(server.tools)} {'tool' if len(server.tools) == 1 else 'tools'}")
        if (clash := clash_of(tools)) is not None:
            raise Fault(f"{clash}\nname the tables in [tools] otherwise, or ask whoever runs that server")
    if away:
        raise Fault("\n".join([*away, *said]))
    return "; ".join(said) or "none; [tools.NAME] in the settings adds one"


async def _people(settings: Settings) -> str:
    from bot.offline import surroundings

    _, world = surroundings()
    for role, members in world.roles.items():
        for email in members:
            if world.person(email) is None:
                raise Fault(
                    f"the role `{role}` names {email}, who is nobody here\n"
                    f'add [people."{email}"] to the settings, or `waiton people add {email}`'
                )
    return ", ".join(p.email for p in world.people) or "nobody yet; the first start adds you"


async def _clock(settings: Settings) -> str:
    from bot.language.durations import zone
    from bot.runtime.clock import SystemClock

    now = SystemClock().now()
    if now.year < 2026:
        raise Fault(f"this machine thinks it is {now:%d %b %Y}\nset its clock")
    return f"{now.astimezone(zone(settings.workspace)):%a %d %b %Y %H:%M} in {settings.workspace.timezone}"


async def _web(settings: Settings) -> str:
    import socket

    with socket.socket() as probe:
        probe.settimeout(0.5)
        if probe.connect_ex((settings.host, settings.port)) == 0:
            return f"something listens on {settings.host}:{settings.port}: the server, if you started it"
    return f"{settings.host}:{settings.port} is free"


async def _channels(settings: Settings) -> str:
    """Every platform that is on: its token, its rights."""
    from bot.chat.platforms import channels_of
    from bot.runtime.clock import SystemClock

    said: list[str] = []
    wrong: list[str] = []
    notes: list[str] = []
    for name, channel in channels_of(settings, SystemClock().now).items():
        try:
            faults = await channel.check()
        finally:
            await channel.stop()
        wrong += [f"{name}: {fault.what}; {fault.mend}" for fault in faults if not fault.note]
        notes += [f"{name}: {fault.what}; {fault.mend}" for fault in faults if fault.note]
        said.append(name)
    if wrong:
        raise Fault("\n".join([*wrong, *notes]))
    return (
        "\n".join([f"{', '.join(said)} answer", *notes])
        if said
        else "the room alone; SLACK_BOT_TOKEN and the like add platforms"
    )


async def _agents(settings: Settings) -> str:
    """Whether the model takes the key, and which of the agents' models it knows."""
    if settings.keyless:
        names = ", ".join(f"[agents.{name}]" for name in settings.keyless)
        raise Fault(f"{names} cannot work: there is no key\nset ANTHROPIC_API_KEY, or ANTHROPIC_API_KEY_FILE")
    if settings.model is None:
        return "none; ANTHROPIC_API_KEY turns one on"
    from bot.agents.claude import Claude
    from bot.agents.model import ModelFailed
    from bot.domain.cost import price_of

    models = sorted({agent.model or settings.model.name for agent in settings.agents})
    claude = Claude(settings.model.key, settings.model.base_url)
    try:
        for model in models:
            await claude.knows(model)
    except ModelFailed as fault:
        raise Fault(f"{fault}\nsee [agents.NAME] model, WAITON_MODEL and ANTHROPIC_BASE_URL") from None
    finally:
        await claude.aclose()
    unpriced = [model for model in models if price_of(model, settings.model.prices) is None]
    said = f"{', '.join(agent.name for agent in settings.agents)} on {', '.join(models)}"
    if unpriced:
        said += (
            f'\nwhat they cost is not counted: add [models."{unpriced[0]}"] input and output (dollars a million tokens)'
        )
    return said


CHECKS: tuple[Check, ...] = (
    ("database", _database),
    ("files", _files),
    ("sandbox", _sandbox),
    ("tools", _tools),
    ("people", _people),
    ("clock", _clock),
    ("web", _web),
    ("channels", _channels),
    ("agents", _agents),
)
