"""The API: what each route answers, and that a repeat is the same again."""

import asyncio
import json

import pytest

from bot.server.openapi import ROUTES, document
from tests.web.conftest import ANA, BO, JONAS, Site

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- show scope\n"


async def test_a_right_script_runs_and_is_given_as_it_stands(site: Site):
    bo = await site.bearer(BO)
    got = await bo.post("/api/runs", json={"script": ASK})
    assert got.status_code == 201
    run = got.json()
    assert run["owner"] == BO and run["state"] == "waiting" and run["line"].startswith("waiting on Ana since")
    assert [op["path"] for op in run["ops"]] == ["1", "2"]
    assert (await bo.get(f"/api/runs/{run['id']}")).json()["job"] == run["job"]


async def test_a_wrong_script_is_refused_with_every_place_and_nothing_starts(site: Site):
    bo = await site.bearer(BO)
    got = await bo.post(
        "/api/runs", json={"script": "- files = glob *.py\n- some = first files 5\n- total = count fils\n"}
    )
    assert got.status_code == 422
    assert [(p["line"], p["code"]) for p in got.json()["refused"]] == [(2, "arguments-swapped"), (3, "unknown-name")]
    assert (await bo.get("/api/runs")).json() == {"runs": [], "next": None}


async def test_check_says_the_same_and_starts_nothing(site: Site):
    bo = await site.bearer(BO)
    assert (await bo.post("/api/check", json={"script": "- count nothing"})).json()["refused"]
    right = (await bo.post("/api/check", json={"script": ASK})).json()
    assert (
        right["preflight"]["ops"] == 2
        and right["preflight"]["addressees"] == ["Ana"]
        and isinstance(right["notes"], list)
    )
    assert (await bo.get("/api/runs")).json()["runs"] == []


async def test_a_document_with_triggers_is_saved_and_the_same_name_again_is_a_new_version(site: Site):
    bo = await site.bearer(BO)
    script = '---\nname: daily\non:\n  - every: "0 9 * * 1"\n---\n- say\n  > {0}\n'
    first = await bo.post("/api/runs", json={"script": script.replace("{0}", "one")})
    second = await bo.post("/api/runs", json={"script": script.replace("{0}", "two")})
    assert first.status_code == second.status_code == 201
    assert first.json() == {"saved": {"name": "daily", "version": 1}} and second.json()["saved"]["version"] == 2


async def test_inputs_reach_a_sealed_script(site: Site):
    bo = await site.bearer(BO)
    script = "---\ninputs:\n  who: {type: text}\n---\n- hello = let 'hello ' + who\n- show hello\n"
    assert (await bo.post("/api/runs", json={"script": script})).json()["refused"][0]["code"] == "input-missing"
    got = await bo.post("/api/runs", json={"script": script, "inputs": {"who": "bo"}})
    assert (await site.until(lambda r: r["state"] == "done", got.json()["id"]))["result"] == "hello bo"


async def test_an_answer_settles_once_and_a_repeat_gets_the_same_again(site: Site):
    run = await site.run(ASK)
    ana, bo = await site.bearer(ANA), await site.bearer(BO)
    where = f"/api/runs/{run}/ops/scope/answer"
    assert (await bo.post(where, json={"with": "approve"})).status_code == 403
    assert (await ana.post(where, json={"with": "maybe"})).status_code == 422
    assert (await ana.post(where, json={})).status_code == 422
    first = await ana.post(where, json={"with": "approve"})
    again = await ana.post(f"/api/runs/{run}/ops/1/answer", json={"with": "approve"})
    assert first.status_code == again.status_code == 200 and first.json() == again.json()
    other = await ana.post(where, json={"with": "decline"})
    assert other.status_code == 409 and "answered `approve` at" in other.json()["text"]
    assert (await ana.post(f"/api/runs/{run}/ops/nothing/answer", json={"with": "x"})).status_code == 404
    assert (await ana.post("/api/runs/none/ops/scope/answer", json={"with": "x"})).status_code == 404


async def test_an_approval_and_its_reason_go_the_same_way(site: Site):
    run = await site.run("- rollout = demo_deploy service: web\n")
    ana, bo = await site.bearer(ANA), await site.bearer(BO)
    where = f"/api/runs/{run}/ops/rollout/answer"
    await site.until(lambda r: r["ops"][0]["state"] == "gated", run)
    assert (await bo.post(where, json={"with": "approve"})).status_code == 403
    assert (await ana.post(where, json={"with": "decline"})).status_code == 422
    assert (await ana.post(where, json={"with": "decline", "reason": "not today"})).status_code == 200
    found = await site.until(lambda r: r["state"] == "failed", run)
    assert found["ops"][0]["error"] == "declined by Ana: not today"


async def test_edits_and_cancelling_are_the_owners(site: Site):
    run = await site.run(ASK)
    jonas, bo = await site.bearer(JONAS), await site.bearer(BO)
    assert (await jonas.post(f"/api/runs/{run}/cancel")).status_code == 403
    assert (
        await bo.post(f"/api/runs/{run}/edits", json={"op": "scope", "to": JONAS, "why": "on leave"})
    ).status_code == 200
    assert (await jonas.post(f"/api/runs/{run}/ops/scope/answer", json={"with": "approve"})).status_code == 200
    edits = (await bo.get(f"/api/runs/{run}")).json()["edits"]
    assert (edits[0]["what"], edits[0]["before"], edits[0]["after"], edits[0]["why"], edits[0]["by"]) == (
        "handed over",
        ANA,
        JONAS,
        "on leave",
        BO,
    )
    other = await site.run(ASK)
    assert (await bo.post(f"/api/runs/{other}/cancel", json={"why": "enough"})).status_code == 200
    assert (await bo.get(f"/api/runs/{other}")).json()["state"] == "cancelled"


async def test_runs_are_found_by_state_person_and_words_page_by_page(site: Site):
    made = []
    for n in range(5):
        made.append(await site.run(f"- scope = ask @{'ana' if n % 2 else 'jonas'} yes within 2d\n  > Question {n}\n"))
        site.clock.move(seconds=1)
    bo, ana = await site.bearer(BO), await site.bearer(ANA)
    await ana.post(f"/api/runs/{made[1]}/ops/scope/answer", json={"with": "yes"})
    first = (await bo.get("/api/runs?limit=2")).json()
    second = (await bo.get(f"/api/runs?limit=2&cursor={first['next']}")).json()
    third = (await bo.get(f"/api/runs?limit=2&cursor={second['next']}")).json()
    assert [r["id"] for page in (first, second, third) for r in page["runs"]] == made[::-1] and third["next"] is None
    assert [r["id"] for r in (await bo.get("/api/runs?state=done")).json()["runs"]] == [made[1]]
    assert [r["id"] for r in (await bo.get("/api/runs?person=ana")).json()["runs"]] == [made[3], made[1]]
    assert [r["id"] for r in (await bo.get("/api/runs?q=Question%203")).json()["runs"]] == [made[3]]
    assert (await bo.get("/api/runs?state=odd")).status_code == 422 and (
        await bo.get("/api/runs?cursor=odd")
    ).status_code == 422


async def test_an_event_settles_what_expects_it_and_its_id_counts_once(site: Site):
    run = await site.run("- seen = expect camera.line_2 within 10m\n- show seen.event.count\n")
    bo = await site.bearer(BO)
    body = {"id": "e1", "from": "camera", "data": {"count": 3}}
    assert (await bo.post("/api/events/camera.line_2", json=body)).json() == {"id": "e1", "new": True}
    assert (await bo.post("/api/events/camera.line_2", json=body)).json() == {"id": "e1", "new": False}
    assert (await bo.post("/api/events/no.such", json=body)).status_code == 404
    assert (await site.until(lambda r: r["state"] == "done", run))["result"] == 3


async def test_bodies_have_a_limit_and_must_be_objects(site: Site):
    bo = await site.bearer(BO)
    assert (await bo.post("/api/events/camera.line_2", content=b"[" + b"1," * 140_000 + b"1]")).status_code == 413
    for content in (b"", b"[]", b"{", b'"x"', b'{"script": 5}', b"\xff"):
        assert (await bo.post("/api/runs", content=content)).status_code == 422


async def test_a_job_that_is_not_there_is_opened_and_one_of_others_is_not(site: Site):
    await site.job("secret", members=(ANA,))
    bo = await site.bearer(BO)
    assert (await bo.post("/api/runs", json={"script": ASK, "job": "fresh"})).json()["job"] == "fresh"
    assert (await bo.post("/api/runs", json={"script": ASK, "job": "secret"})).status_code == 404
    assert (await bo.post("/api/runs", json={"script": ASK, "job": "no good/name"})).status_code == 404


async def test_a_runs_history_streams_from_where_it_was_left(site: Site):
    run = await site.run(ASK)
    ana, bo = await site.bearer(ANA), await site.bearer(BO)
    following = asyncio.create_task(bo.get(f"/api/runs/{run}/events", headers={"last-event-id": "1"}))
    await asyncio.sleep(0.05)
    await ana.post(f"/api/runs/{run}/ops/scope/answer", json={"with": "approve"})
    got = await asyncio.wait_for(following, 10)
    assert got.headers["content-type"].startswith("text/event-stream")
    names = [line[7:] for line in got.text.splitlines() if line.startswith("event: ")]
    assert names[0] == "asked" and "answered" in names and names[-1] == "ended"
    said = [json.loads(line[6:]) for line in got.text.splitlines() if line.startswith("data: ")]
    assert [s["n"] for s in said] == list(range(2, len(said) + 2))


async def test_the_openapi_document_names_every_route(site: Site):
    got = await site.client().get("/api/openapi.json")
    assert got.json() == document() and got.json()["openapi"] == "3.1.0"
    named = {(method.upper(), path) for path, ops in got.json()["paths"].items() for method in ops}
    assert named == {(r.method, r.path) for r in ROUTES}
    assert len({r.name for r in ROUTES}) == len(ROUTES)
    page = (await site.client().get("/api")).text
    assert all(r.path in page for r in ROUTES)


async def test_operators_see_that_it_is_up_ready_and_what_it_carries(site: Site):
    await site.run(ASK)
    client = site.client()
    assert (await client.get("/healthz")).status_code == 200 and (await client.get("/readyz")).status_code == 200
    text = (await client.get("/metrics")).text
    assert 'waiton_runs{state="running"} 1' in text and "waiton_due 0" in text and "waiton_facts_total" in text
    site.web.state.closing.set()
    assert (await client.get("/readyz")).status_code == 503


async def test_a_preview_shows_the_plan_before_and_after_and_changes_nothing(site: Site):
    run = await site.run(ASK)
    bo = await site.bearer(BO)
    before = (await bo.get(f"/api/runs/{run}")).json()
    where = f"/api/runs/{run}/edits"
    got = await bo.post(where, json={"op": "scope", "to": JONAS, "preview": True})
    seen = got.json()
    assert got.status_code == 200 and seen["accepted"] and seen["text"].startswith("Would be done: `scope` is Jonas's")
    assert any(line.startswith("- Ask Ana (scope)") for line in seen["diff"])
    assert any(line.startswith("+ Ask Jonas (scope)") for line in seen["diff"])
    assert (
        "`scope` waits on Jonas, no more on Ana" in seen["means"]
        and "Jonas is asked “Extend the pilot?”" in seen["means"]
    )
    shorter = (await bo.post(where, json={"op": "scope", "within": "1d", "preview": True})).json()
    assert shorter["means"] == ["`scope` waits until Tue 10:00, shorter than until Wed 10:00"]
    skipped = (await bo.post(where, json={"op": "scope", "skip": True, "preview": True})).json()
    assert any("is left out" in meant for meant in skipped["means"])
    paused = (await bo.post(where, json={"run": "pause", "preview": True})).json()
    assert paused["means"] == ["The run is paused from then on"]
    assert (await bo.get(f"/api/runs/{run}")).json() == before


async def test_what_is_wrong_with_typed_ops_is_told_with_place_words_and_mend(site: Site):
    run = await site.run(ASK)
    bo = await site.bearer(BO)
    where = f"/api/runs/{run}/edits"
    typed = "- say\n  > hello {scop}\n- later = ask @anna yes no within 0s\n  > Then?\n"
    for more in ({"preview": True}, {}):
        got = await bo.post(where, json={"after": "scope", "insert": typed, **more})
        found = {(p["line"], p["words"], p["mend"]) for p in got.json()["problems"]}
        assert got.status_code == 422
        assert {(2, "scop"), (3, "@anna"), (3, "0s")} <= {(line, words) for line, words, _ in found}
        assert any("scope" in (mend or "") for _, words, mend in found if words == "scop")
    as_data = await bo.post(where, json={"after": "scope", "insert": [{"op": "say", "body": "$scop"}]})
    (problem,) = as_data.json()["problems"]
    assert problem["line"] is None and "scop" in problem["words"] and "scope" in problem["mend"]
    gone = await bo.post(where, json={"op": "2", "replace": "- sya\n  > hello\n"})
    assert gone.json()["problems"][0]["line"] == 1
    prose = await bo.post(where, json={"after": "scope", "insert": "good morning"})
    assert prose.status_code == 422 and prose.json()["problems"][0]["line"] == 1
    good = await bo.post(where, json={"after": "scope", "insert": "- say\n  > hello {scope}\n", "preview": True})
    assert [line for line in good.json()["script"] if line.startswith("+")] == ["+ - say", "+   > hello {scope}"]


async def test_an_edit_names_the_revision_that_it_saw(site: Site):
    run = await site.run(ASK)
    ana, bo = await site.bearer(ANA), await site.bearer(BO)
    where = f"/api/runs/{run}/edits"
    rev = (await bo.post(where, json={"op": "scope", "within": "3d", "preview": True})).json()["rev"]
    assert (await ana.post(where, json={"op": "scope", "to": JONAS})).status_code == 200
    late = await bo.post(where, json={"op": "scope", "within": "3d", "rev": rev})
    assert late.status_code == 409 and "has changed since" in late.json()["text"]
