"""What comes from outside: signatures, replays, limits, addresses that are called once."""

import base64
import hashlib
import hmac
import json

import pytest

from tests.web.conftest import SECRET, Site

pytestmark = pytest.mark.anyio
BODY = json.dumps({"data": {"event_id": "e-1", "user": "u-17"}}).encode()


def standard(
    site: Site, body: bytes = BODY, *, ident: str = "m-1", age: int = 0, secret: str = SECRET
) -> dict[str, str]:
    stamp = str(int(site.clock.now().timestamp()) - age)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = base64.b64encode(hmac.new(key, f"{ident}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
    return {"webhook-id": ident, "webhook-timestamp": stamp, "webhook-signature": f"v1,{'x' * 43}= v1,{signed}"}


async def stored(site: Site, stream: str) -> list[dict]:
    from store import inbox

    return await site.product.committer.read(lambda tx: inbox.find(tx, stream=stream))


async def test_a_standard_webhook_is_stored_once_by_the_senders_id(site: Site):
    client = site.client("203.0.113.9")
    got = await client.post("/hooks/signed.standard", content=BODY, headers=standard(site))
    assert got.status_code == 202 and got.json() == {"id": "e-1", "new": True}
    again = await client.post("/hooks/signed.standard", content=BODY, headers=standard(site, ident="m-2"))
    assert again.status_code == 202 and again.json()["new"] is False
    (event,) = await stored(site, "signed.standard")
    assert event["from"] == "u-17" and event["event"]["data"]["event_id"] == "e-1"


@pytest.mark.parametrize("wrong", ["age", "future", "secret", "body", "none"])
async def test_a_standard_webhook_that_does_not_verify_is_not_stored(site: Site, wrong: str):
    headers = {
        "age": standard(site, age=301),
        "future": standard(site, age=-301),
        "secret": standard(site, secret="whsec_" + "A" * 32),
        "body": standard(site, b"{}"),
        "none": {},
    }[wrong]
    got = await site.client().post("/hooks/signed.standard", content=BODY, headers=headers)
    assert got.status_code == 401 and await stored(site, "signed.standard") == []


async def test_a_replay_within_five_minutes_changes_nothing_and_later_is_refused(site: Site):
    headers = standard(site)
    client = site.client()
    assert (await client.post("/hooks/signed.standard", content=BODY, headers=headers)).json()["new"] is True
    site.clock.move(minutes=4)
    assert (await client.post("/hooks/signed.standard", content=BODY, headers=headers)).json()["new"] is False
    site.clock.move(minutes=2)
    assert (await client.post("/hooks/signed.standard", content=BODY, headers=headers)).status_code == 401


async def test_github_signs_the_body_and_names_the_delivery(site: Site):
    signed = "sha256=" + hmac.new(b"hush", BODY, hashlib.sha256).hexdigest()
    headers = {"x-hub-signature-256": signed, "x-github-delivery": "d-9"}
    got = await site.client("203.0.113.9").post("/hooks/signed.github", content=BODY, headers=headers)
    assert got.status_code == 202 and got.json()["id"] == "d-9"
    assert (await site.client().post("/hooks/signed.github", content=BODY + b" ", headers=headers)).status_code == 401


async def test_stripe_signs_time_and_body(site: Site):
    def signed(age: int) -> dict[str, str]:
        stamp = int(site.clock.now().timestamp()) - age
        mac = hmac.new(b"hush", f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        return {"stripe-signature": f"t={stamp},v0=old,v1={mac}"}

    body = b'{"id": "evt_1"}'
    client = site.client("203.0.113.9")
    got = await client.post("/hooks/signed.stripe", content=body, headers=signed(0))
    assert got.status_code == 202 and got.json()["id"] == "evt_1"
    assert (await client.post("/hooks/signed.stripe", content=body, headers=signed(400))).status_code == 401


async def test_a_bearer_secret_must_be_the_streams(site: Site):
    client = site.client("203.0.113.9")
    assert (
        await client.post("/hooks/signed.bearer", content=BODY, headers={"authorization": "Bearer hush"})
    ).status_code == 202
    assert (
        await client.post("/hooks/signed.bearer", content=BODY, headers={"authorization": "Bearer shh"})
    ).status_code == 401


async def test_a_stream_without_a_secret_listens_to_this_machine_alone(site: Site):
    assert (await site.client().post("/hooks/camera.line_2", json={"seen": True})).status_code == 202
    assert (await site.client("203.0.113.9").post("/hooks/camera.line_2", json={})).status_code == 403
    assert (
        await site.client().post("/hooks/camera.line_2", json={}, headers={"x-forwarded-for": "203.0.113.9"})
    ).status_code == 403


async def test_what_does_not_read_or_fit_is_not_stored(site: Site):
    client = site.client()
    assert (await client.post("/hooks/none.such", json={})).status_code == 404
    assert (await client.post("/hooks/web:message", json={})).status_code == 404
    assert (await client.post("/hooks/camera.line_2", content=b"not json")).status_code == 422
    assert (await client.post("/hooks/camera.line_2", content=b'"' + b"x" * 262_144 + b'"')).status_code == 413
    assert (await client.post("/hooks/shaped", json={"usr": 1})).status_code == 422
    body = json.dumps({"data": {"user": "u"}}).encode()
    assert (await client.post("/hooks/signed.standard", content=body, headers=standard(site, body))).status_code == 422
    assert (await client.post("/hooks/shaped", json={"user": "u", "note": "hello"})).status_code == 202
    assert [e["event"] for e in await stored(site, "shaped")] == [{"user": "u", "note": "hello", "text": "hello"}]


async def test_a_hook_settles_what_expects_it(site: Site):
    run = await site.run(
        "- signin = expect auth.first_signin within 3d where: \"event.user == 'u-17'\"\n- show signin.from\n"
    )
    client = site.client()
    await client.post("/hooks/auth.first_signin", json={"user": "u-16"})
    assert (await site.desk.show(run))["state"] == "waiting"
    await client.post("/hooks/auth.first_signin", json={"user": "u-17"})
    assert (await site.until(lambda r: r["state"] == "done", run))["result"] == "u-17"


async def endpoint(site: Site) -> tuple[str, str]:
    run = await site.run("- hook = endpoint within 1h\n- got = expect {hook.stream} within 1h\n- show got.event\n")
    found = await site.until(lambda r: r["ops"][0]["state"] == "done", run)
    return run, found["ops"][0]["value"]["url"].split("waiton.test")[1]


async def test_a_minted_address_is_settled_by_one_call(site: Site):
    run, path = await endpoint(site)
    client = site.client("203.0.113.9")
    shown = await client.get(path)
    assert shown.status_code == 200 and "waits for one call" in shown.text
    assert (await client.post(path, content=b"{")).status_code == 422
    assert (await client.post(path, content=b"1" * 262_145)).status_code == 413
    assert (await client.post(path, json={"ok": 1})).status_code == 202
    assert (await client.post(path, json={"ok": 2})).status_code == 409
    assert (await site.until(lambda r: r["state"] == "done", run))["result"] == {"ok": 1}
    assert "was called" in (await client.get(path)).text


async def test_a_minted_address_past_its_time_is_gone_and_one_nobody_minted_not_there(site: Site):
    _, path = await endpoint(site)
    site.clock.move(hours=1)
    client = site.client()
    assert (await client.post(path, json={})).status_code == 410 and "past its time" in (await client.get(path)).text
    assert (await client.post("/e/none", json={})).status_code == 404 and (
        await client.get("/e/none")
    ).status_code == 404


async def test_no_foreign_page_can_forge_an_event_of_an_unsigned_stream(site: Site):
    """A page open in a browser on this machine may post here without asking first."""
    body = {"id": "f1", "housing": "closed"}
    anyone = site.client()
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"host": "evil.example"},
    ):
        got = await anyone.post("/hooks/camera.line_2", json=body, headers=headers)
        assert got.status_code == 403, (headers, got.text)


async def test_an_unsigned_sender_is_deduplicated_by_the_id_in_its_body(site: Site):
    anyone = site.client()
    first = await anyone.post("/hooks/camera.line_2", json={"id": "f1", "housing": "closed"})
    again = await anyone.post("/hooks/camera.line_2", json={"id": "f1", "housing": "closed"})
    assert [first.json()["new"], again.json()["new"]] == [True, False]
