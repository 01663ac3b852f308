"""The socket: opened in the background, watched by our own clock, built anew; and what the doctor says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

from bot.runtime.clock import SetClock
from channels.slack.checking import SCOPES
from tests.channels.slack.world import START, Door, World, channel
from tests.doubles.slack import APP_TOKEN, BOT_TOKEN, Fault, SlackStage

pytestmark = pytest.mark.anyio


async def test_start_returns_at_once_and_comes_through_when_slack_is_back(anyio_backend: str) -> None:
    async with SlackStage() as stage:
        stage.slack.faults.append(Fault("away", 3, "apps.connections.open"))
        made, door = channel(stage, SetClock(START)), Door()
        await made.start(door)
        assert not stage.slack.connected.is_set()
        await stage.ready()
        await stage.slack.say("UANA", "C1", "hello")
        assert [given.text for given in door.taken] == ["hello"]
        await made.stop()


async def test_an_answer_without_a_socket_is_tried_again(anyio_backend: str) -> None:
    async with SlackStage() as stage:
        stage.slack.faults.append(
            Fault("busy", 1, "apps.connections.open", status=200, body={"ok": True, "url": "ws://127.0.0.1:9/none"})
        )
        made = channel(stage, SetClock(START))
        await made.start(Door())
        await stage.ready()
        assert made.sockets == 1
        await made.stop()


async def test_a_silent_socket_is_left_by_our_own_clock(one: World) -> None:
    one.slack.pongs = False
    pings = one.slack.pings
    await one.slack.until(lambda: one.slack.pings >= pings + 3)
    one.clock.move(seconds=41)
    await one.slack.until(lambda: one.slack.opened == 2 and len(one.slack.sockets) == 1)
    await one.slack.say("UANA", "C1", "hello")
    assert [given.text for given in one.door.taken] == ["hello"]


async def test_a_socket_with_pongs_is_kept_however_long_nobody_writes(one: World) -> None:
    for _ in range(3):
        pings = one.slack.pings
        one.clock.move(seconds=20)
        await one.slack.until(lambda seen=pings: one.slack.pings >= seen + 2)
    assert one.slack.opened == 1


async def test_a_socket_that_is_closed_or_asked_to_go_is_replaced(one: World) -> None:
    await one.slack.sockets[-1].send_json({"type": "disconnect", "reason": "refresh_requested"})
    await one.slack.until(lambda: one.slack.opened == 2 and len(one.slack.sockets) == 1)
    await one.slack.sockets[-1].close()
    await one.slack.until(lambda: one.slack.opened == 3)
    await one.slack.say("UANA", "C1", "hello")
    assert [given.text for given in one.door.taken] == ["hello"]


async def test_what_came_on_the_old_socket_is_acknowledged_on_it(one: World) -> None:
    came, gate = asyncio.Event(), asyncio.Event()
    take = one.door.take

    async def later(name: str, given: Any) -> bool:
        came.set()
        await gate.wait()
        return await take(name, given)

    one.door.take = later  # type: ignore[method-assign]
    event = asyncio.create_task(one.slack.bring("events_api", one.slack.message("UANA", "C1", "hello")))
    await came.wait()
    await one.slack.sockets[-1].send_json({"type": "disconnect", "reason": "warning"})
    await one.slack.until(lambda: one.slack.opened == 2)
    gate.set()
    assert (await event).status == 200


async def test_tokens_that_were_taken_back_are_a_fault(one: World) -> None:
    await one.slack.bring("events_api", one.slack.event({"type": "tokens_revoked", "tokens": {"bot": ["UBOT"]}}))
    (fault,) = await one.channel.check()
    assert "taken back" in fault.what and "install" in fault.mend


async def checked(stage: SlackStage, **settings: str) -> list[str]:
    made = channel(stage, SetClock(START), **settings)
    faults = await made.check()
    await made.stop()
    assert all(fault.mend for fault in faults)
    return [fault.what for fault in faults]


async def test_all_is_well_where_everything_is_set(anyio_backend: str) -> None:
    async with SlackStage() as stage:
        assert await checked(stage) == []


@pytest.mark.parametrize("scope", SCOPES)
async def test_each_missing_right_is_named(anyio_backend: str, scope: str) -> None:
    async with SlackStage() as stage:
        stage.slack.scopes.discard(scope)
        (what,) = await checked(stage)
        assert f"`{scope}`" in what


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bot_token": APP_TOKEN, "app_token": BOT_TOKEN},
         ["SLACK_BOT_TOKEN holds an app-level token", "SLACK_APP_TOKEN holds a bot token"]),
        ({"bot_token": "xoxb-wrong"}, ["SLACK_BOT_TOKEN: Slack does not know the token"]),
        ({"app_token": "xapp-wrong"}, ["SLACK_APP_TOKEN: Slack does not know the token"]),
        ({"bot_token": "nonsense"}, ["SLACK_BOT_TOKEN is no token that begins with xoxb-"]),
        ({"bot_token": ""}, ["SLACK_BOT_TOKEN is not set"]),
        ({"app_token": ""}, ["Slack has no way to bring anything"]),
    ],
)  # fmt: skip
async def test_each_wrong_token_is_named(anyio_backend: str, settings: dict[str, str], says: list[str]) -> None:
    async with SlackStage() as stage:
        got = await checked(stage, **settings)
        assert len(got) == len(says) and all(what.startswith(said) for what, said in zip(got, says, strict=True))


async def test_a_token_that_was_taken_back_and_a_slack_that_is_away_are_told_apart(anyio_backend: str) -> None:
    async with SlackStage() as stage:
        stage.slack.revoked = "token_revoked"
        (what,) = await checked(stage)
        assert "was taken back" in what
        stage.slack.revoked = ""
        stage.slack.faults.append(Fault("away", 9, "auth.test"))
        (what,) = await checked(stage)
        assert "does not answer" in what


def test_the_manifest_asks_for_exactly_what_is_needed() -> None:
    with open("deploy/slack-manifest.yaml", encoding="utf-8") as file:
        manifest = yaml.safe_load(file)
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == set(SCOPES)
    settings = manifest["settings"]
    assert settings["socket_mode_enabled"] and settings["interactivity"]["is_enabled"]
    events = set(settings["event_subscriptions"]["bot_events"])
    assert {"message.channels", "message.groups", "message.im", "message.mpim", "app_mention"} <= events
    assert {"app_home_opened", "reaction_added", "user_change"} <= events
    assert [s["callback_id"] for s in manifest["features"]["shortcuts"]] == ["waiton_run", "waiton_new"]
    assert [c["command"] for c in manifest["features"]["slash_commands"]] == ["/waiton"]
