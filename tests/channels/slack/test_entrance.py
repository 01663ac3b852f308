"""What comes in: stored before it is acknowledged, once, from whoever the signed payload names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.base import Form, FormField, Sent
from tests.channels.slack.world import World, card, channel
from tests.doubles import slack_composer as composer
from tests.doubles.slack import BOT, Fault

pytestmark = pytest.mark.anyio
SCRIPT = "- a = list x\n- show a"


async def test_a_mention_is_one_script_although_slack_tells_of_it_twice(world: World) -> None:
    conversation = await world.stage.paste("ana", SCRIPT)
    (given,) = world.door.taken
    assert (given.kind, given.text, given.mentioned, given.direct) == ("message", SCRIPT, True, False)
    assert given.conversation == conversation and given.ident == f"C1:{given.ref}"
    assert (given.sender.ref, given.sender.name, given.sender.email) == ("UANA", "Ana", "ana@acme.de")
    assert (given.sender.timezone, given.sender.kind) == ("Europe/Berlin", "member")


async def test_a_repeat_is_the_same_and_is_acknowledged(world: World) -> None:
    await world.stage.paste("ana", SCRIPT)
    await world.stage.again()
    assert len(world.door.taken) == 1


async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(world: World) -> None:
    world.door.away = True
    event = world.slack.message("UANA", "C1", "hello")
    answer = await world.slack.bring("events_api", event, wait_s=0.15)
    assert answer.status != 200 and world.door.refused
    world.door.away = False
    answer = await world.slack.bring("events_api", event, retry=1)
    assert answer.status == 200 and [one.text for one in world.door.taken] == ["hello"]


async def test_a_tap_says_who_tapped_what_on_which_message(world: World) -> None:
    conversation = await world.stage.paste("ana", SCRIPT)
    sent = await world.channel.send(conversation, card("approve", "decline"), ident="d1")
    assert isinstance(sent, Sent)
    (seen,) = world.stage.seen("bo")
    assert seen.buttons == ("approve", "decline") and seen.conversation == conversation and seen.ref == sent.ref
    await world.stage.tap("bo", seen, "decline")
    tap = world.door.taken[-1]
    assert (tap.kind, tap.data, tap.text, tap.sender.ref) == ("tap", "w:tok:1", "decline", "UBO")
    assert (tap.conversation, tap.ref) == (conversation, sent.ref)


async def test_a_tap_that_cannot_be_stored_is_not_acknowledged(world: World) -> None:
    await world.channel.send("slack:C1", card("approve"), ident="d1")
    world.door.away = True
    (_, ts), message = next(iter(world.slack.messages.items()))
    action = {"type": "button", "action_id": "c0", "value": "w:tok:0"}
    answer = await world.slack.bring("interactive", world.slack.tapping("UANA", "C1", message, action), wait_s=0.15)
    assert answer.status != 200 and ts == message["ts"]


async def test_a_forged_or_stale_request_is_refused(world: World) -> None:
    assert await world.stage.forged() is False
    assert not world.door.taken


async def test_a_form_shows_what_is_wrong_and_counts_when_nothing_is(world: World) -> None:
    fields = (FormField(name="day", label="Day", kind="date"), FormField(name="people", label="People", kind="number"))
    world.door.forms["w:tok"] = Form(title="Visit", text="When?", data="tok", fields=fields)
    sent = await world.channel.send("slack:DANA", card(fields=fields), ident="d1")
    assert isinstance(sent, Sent)
    (seen,) = world.stage.seen("ana")
    world.door.wrong = {"people": "at most 8"}
    assert await world.stage.fill("ana", seen, {"day": "2026-03-04", "people": "9"}) == {"people": "at most 8"}
    world.door.wrong = {}
    assert await world.stage.fill("ana", seen, {"day": "2026-03-04", "people": "8"}) == {}
    (form,) = world.door.forms_taken
    assert (form.kind, form.data, dict(form.values)) == ("form", "tok", {"day": "2026-03-04", "people": "8"})
    assert (form.conversation, form.ref, form.sender.ref) == ("slack:DANA", sent.ref, "UANA")
    assert not world.door.taken, "opening a form is nothing that happened"


async def test_a_reply_in_the_thread_of_a_card_names_the_card(world: World) -> None:
    sent = await world.channel.send("slack:DANA", card(), ident="d1")
    assert isinstance(sent, Sent)
    (seen,) = world.stage.seen("ana")
    await world.stage.reply("ana", seen, "Thursday")
    (given,) = world.door.taken
    assert (given.text, given.reply_to, given.conversation, given.direct) == ("Thursday", sent.ref, "slack:DANA", True)


async def test_the_command_opens_a_form_whose_script_gets_a_thread(world: World) -> None:
    answer = await world.slack.bring("slash_commands", world.slack.command("UANA", "C1"))
    assert answer.status == 200
    view = await world.slack.until(lambda: world.slack.views.get("UANA"))
    assert view["blocks"][0]["element"]["multiline"]
    await world.slack.bring("interactive", world.slack.submitting("UANA", {"script": SCRIPT}))
    (given,) = world.door.taken
    (seen,) = world.stage.seen("bo")
    assert (given.kind, given.text, given.mentioned) == ("message", SCRIPT, True)
    assert given.conversation == seen.conversation == f"slack:C1/{given.ref}" and SCRIPT in seen.text
    assert replace(world.channel.read(given.raw), at=given.at) == given


async def test_the_form_of_the_command_goes_to_direct_messages_where_the_bot_may_not_write(world: World) -> None:
    world.slack.members["C9"] = {"UANA"}
    await world.slack.bring("slash_commands", world.slack.command("UANA", "C9"))
    await world.slack.until(lambda: world.slack.views.get("UANA"))
    await world.slack.bring("interactive", world.slack.submitting("UANA", {"script": SCRIPT}))
    (given,) = world.door.taken
    assert (given.conversation, given.direct) == ("slack:DANA", True)


async def test_a_command_with_words_is_handed_on(world: World) -> None:
    await world.slack.bring("slash_commands", world.slack.command("UANA", "C1", "status"))
    (given,) = world.door.taken
    assert (given.kind, given.text, given.conversation) == ("command", "status", "slack:C1")


async def test_run_as_a_script_runs_somebodys_message_as_whoever_tapped(world: World) -> None:
    event = world.slack.message("UBO", "C1", SCRIPT, blocks=composer.as_code(SCRIPT))
    ts = event["event"]["ts"]
    await world.slack.bring("interactive", world.slack.shortcut("UANA", "C1", ts))
    (given,) = world.door.taken
    assert (given.kind, given.text, given.mentioned, given.sender.ref) == ("message", SCRIPT, True, "UANA")
    assert given.conversation == f"slack:C1/{ts}"


async def test_a_file_is_fetched_with_our_token(world: World) -> None:
    await world.stage.paste("ana", SCRIPT, form="file")
    (given,) = world.door.taken
    (file,) = given.files
    assert (given.text, file.name, file.size) == ("", "script.md", len(SCRIPT))
    assert await world.channel.fetch(file) == SCRIPT.encode()


async def test_our_own_messages_joins_and_unfurls_are_no_messages(world: World) -> None:
    await world.slack.say(BOT, "C1", "done", app_id="A1", bot_id="BBOT")
    await world.slack.say("UANA", "C1", "Ana joined", subtype="channel_join")
    before = {"user": "UANA", "ts": "1.1", "text": "see <https://a.example>"}
    unfurled = {"type": "message", "subtype": "message_changed", "channel": "C1", "previous_message": before}
    await world.slack.bring("events_api", world.slack.event({**unfurled, "message": {**before, "attachments": [{}]}}))
    assert not world.door.taken


async def test_an_edit_is_one_when_its_words_changed(world: World) -> None:
    before = {"user": "UANA", "ts": "1.1", "text": "- a = lst x"}
    after = {**before, "text": "- a = list x", "edited": {"user": "UANA", "ts": "2.2"}}
    changed = {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "2.3"}
    event = world.slack.event({**changed, "previous_message": before, "message": after})
    await world.slack.bring("events_api", event)
    (given,) = world.door.taken
    assert (given.kind, given.text, given.ref, given.ident) == ("edited", "- a = list x", "1.1", "C1:1.1:2.2")


async def test_a_stored_payload_reads_as_it_was_brought_in(world: World) -> None:
    await world.stage.paste("ana", SCRIPT, form="rich")
    (given,) = world.door.taken
    assert world.channel.read(given.raw) == given


async def test_strangers_guests_and_bots_are_told_from_members(one: World) -> None:
    one.slack.members["C1"] |= {"UMIKA"}
    one.slack.users["UBO"].restricted = True
    one.slack.users["UJONAS"].bot = True
    for who in ("UMIKA", "UBO", "UJONAS"):
        await one.slack.say(who, "C1", "hello")
    assert [given.sender.kind for given in one.door.taken] == ["guest", "guest", "bot"]


async def test_somebody_is_looked_up_once_an_hour(one: World) -> None:
    def looked_up() -> int:
        return sum(method == "users.info" for method, _, _ in one.slack.calls)

    for _ in range(3):
        await one.slack.say("UANA", "C1", "hello")
    assert looked_up() == 1
    one.clock.move(minutes=61)
    await one.slack.say("UANA", "C1", "hello")
    assert looked_up() == 2


async def test_whoever_cannot_be_looked_up_is_no_member(one: World) -> None:
    one.slack.scopes.discard("users:read")
    await one.slack.say("UANA", "C1", "hello")
    assert one.door.taken[0].sender.kind == "guest"


async def test_a_tap_waits_for_no_look_up_and_a_message_comes_again(one: World) -> None:
    one.channel._entrance._patience_s = 0.02
    one.slack.faults.append(Fault("hang", 1, "users.info"))
    await one.channel.send("slack:C1", card("yes"), ident="d1")
    await one.stage.tap("bo", one.stage.seen("bo")[0], "yes")
    (tap,) = one.door.taken
    assert (tap.sender.ref, tap.sender.email) == ("UBO", None)
    message = one.slack.message("UBO", "C1", "hello")
    assert (await one.slack.bring("events_api", message, wait_s=0.1)).status is None
    one.slack.released.set()
    assert (await one.slack.bring("events_api", message, retry=1)).status == 200
    assert one.door.taken[-1].sender.email == "bo@acme.de"


async def test_nothing_is_taken_before_there_is_a_door(one: World) -> None:
    one.channel._entrance.door = None
    answer = await one.slack.bring("events_api", one.slack.message("UANA", "C1", "hello"), wait_s=0.1)
    assert answer.status is None
    assert channel(one.stage, one.clock).routes() == []
