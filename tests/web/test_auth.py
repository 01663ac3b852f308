"""Who is who: log-in links, sessions, the check of every post, bearer tokens, who may read."""

import pytest

from bot.domain.ids import tap_token
from store import people
from tests.web.conftest import ANA, BO, JONAS, ORIGIN, Site

pytestmark = pytest.mark.anyio
ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- show scope\n"


async def test_a_link_opened_from_this_machine_logs_in_at_once(site: Site):
    client = site.client()
    got = await client.get(await site.desk.login_link(ANA))
    assert got.status_code == 303
    cookie = got.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
    assert "Waiting on me" in (await client.get("/")).text


async def test_a_link_works_once_and_says_that_it_was_used(site: Site):
    link = await site.desk.login_link(ANA)
    assert (await site.client().get(link)).status_code == 303
    again = await site.client().get(link)
    assert again.status_code == 410 and "has been used" in again.text


async def test_a_link_is_too_old_after_fifteen_minutes(site: Site):
    link = await site.desk.login_link(ANA)
    site.clock.move(minutes=15)
    got = await site.client().get(link)
    assert got.status_code == 410 and "too old" in got.text


async def test_a_link_that_nobody_made_says_so(site: Site):
    got = await site.client().get("/login/none")
    assert got.status_code == 410 and "not known" in got.text


@pytest.mark.parametrize("how", ["elsewhere", "proxied", "prefetched", "head"])
async def test_a_preview_of_a_link_uses_nothing_up(site: Site, how: str):
    link = await site.desk.login_link(ANA)
    headers = {"proxied": {"x-forwarded-for": "203.0.113.9"}, "prefetched": {"sec-purpose": "prefetch"}}.get(how, {})
    client = site.client("203.0.113.9" if how == "elsewhere" else "127.0.0.1")
    got = await client.request("HEAD" if how == "head" else "GET", link, headers=headers)
    assert got.status_code == 200 and "set-cookie" not in got.headers
    if how != "head":
        assert "Log in as Ana" in got.text
    pressed = await client.post(link, headers={"origin": ORIGIN})
    assert pressed.status_code == 303 and "waiton=" in pressed.headers["set-cookie"]


async def test_a_session_ends_with_logging_out(site: Site):
    ana = await site.session(ANA)
    assert (await ana.post("/logout")).status_code == 303
    assert (await ana.get("/inbox")).status_code == 401


async def test_a_session_ends_when_its_person_is_gone(site: Site):
    jonas = await site.session(JONAS)
    await site.product.committer.write(lambda tx: people.remove(tx, JONAS))
    assert (await jonas.get("/inbox")).status_code == 401


async def test_without_a_session_pages_say_how_to_log_in(site: Site):
    for path in ("/", "/inbox", "/jobs/pilot", "/runs/x", "/live"):
        got = await site.client().get(path)
        assert got.status_code == 401 and "waiton login" in got.text


async def test_a_post_from_another_page_changes_nothing(site: Site):
    ana = await site.session(ANA)
    for headers in (
        {"origin": "https://elsewhere.example"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null"},
    ):
        got = await ana.post("/jobs", headers=headers, title="Stolen")
        assert got.status_code == 403
    assert "Stolen" not in (await ana.get("/inbox")).text


async def test_a_post_whose_origin_the_browser_hides_is_known_by_its_site(site: Site):
    ana = await site.session(ANA)
    got = await ana.post("/jobs", headers={"origin": "null", "sec-fetch-site": "same-origin"}, title="Ours")
    assert got.status_code == 303


async def test_a_post_without_the_sessions_token_changes_nothing(site: Site):
    ana, bo = await site.session(ANA), await site.session(BO)
    assert (await ana.client.post("/jobs", data={"title": "x"})).status_code == 403
    assert (await ana.client.post("/jobs", data={"title": "x", "csrf": bo.csrf})).status_code == 403


async def test_every_answer_carries_the_strict_headers(site: Site):
    ana = await site.session(ANA)
    for path in ("/", "/inbox", "/nowhere", "/healthz", "/api", "/e/none"):
        got = await ana.get(path)
        assert "default-src 'self'" in got.headers["content-security-policy"]
        assert "unsafe" not in got.headers["content-security-policy"]
        assert got.headers["x-content-type-options"] == "nosniff" and got.headers["referrer-policy"] == "no-referrer"


async def test_no_page_has_script_or_style_of_its_own(site: Site):
    run = await site.run(ASK)
    ana = await site.session(ANA)
    for path in ("/", f"/runs/{run}", "/inbox"):
        page = (await ana.get(path)).text
        assert "<script>" not in page and "<style" not in page and " style=" not in page and " onclick=" not in page


async def test_what_people_write_stays_text(site: Site):
    run = await site.run(
        "- scope = ask @ana within 2d\n  > <b onclick=x>Bold</b> {{ braces }} & <script>alert(1)</script>\n"
    )
    ana = await site.session(ANA)
    for path in ("/jobs/pilot", "/inbox", f"/runs/{run}"):
        page = (await ana.get(path)).text
        assert "<b onclick" not in page and "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


async def test_a_private_job_is_there_for_its_members_alone(site: Site):
    await site.job("secret", members=(BO,))
    run = (await site.desk.start(ASK, by=BO, job="secret")).run
    bo, jonas, ana = await site.session(BO), await site.session(JONAS), await site.session(ANA)
    assert (await bo.get("/jobs/secret")).status_code == 200 and (await bo.get(f"/runs/{run}")).status_code == 200
    assert (await jonas.get("/jobs/secret")).status_code == 404 and (await jonas.get(f"/runs/{run}")).status_code == 404
    assert (await jonas.post("/jobs/secret/runs", script=ASK)).status_code == 404
    assert "Secret" not in (await jonas.get("/inbox")).text
    assert (await ana.get("/jobs/secret")).status_code == 404, "who is asked in a private job does not read it"
    assert "Extend the pilot?" in (await ana.get("/inbox")).text
    for email, status in ((JONAS, 404), (BO, 200)):
        assert (await (await site.bearer(email)).get(f"/api/runs/{run}")).status_code == status


async def test_what_is_said_to_one_person_is_read_by_them_alone(site: Site):
    await site.run("- say @ana\n  > The code is 4711\n")
    ana, jonas = await site.session(ANA), await site.session(JONAS)
    assert "The code is 4711" in (await ana.get("/jobs/pilot")).text.split('id="plan"')[0]
    talk = (await jonas.get("/jobs/pilot")).text.split('id="talk"')[1].split('id="compose"')[0]
    assert "said to Ana alone" in talk


async def test_the_api_knows_nobody_without_a_token_that_stands(site: Site):
    for headers in ({}, {"authorization": "Bearer nothing"}, {"authorization": "Basic YTpi"}):
        assert (await site.client(**headers).get("/api/runs")).status_code == 401


async def test_an_asks_own_address_needs_no_session(site: Site):
    run = await site.run(ASK)
    token = await _token(site, run)
    client = site.client()
    shown = await client.get(f"/a/{token}")
    assert shown.status_code == 200 and "Extend the pilot?" in shown.text
    assert (await site.desk.show(run))["state"] == "waiting", "looking changes nothing"
    got = await client.post(f"/a/{token}", data={"with": "approve"})
    assert got.status_code == 303
    assert (await site.desk.show(run))["result"] == "approve"
    assert "Ana answered" in (await client.get(f"/a/{token}")).text


async def test_somebody_else_who_is_logged_in_cannot_answer_by_that_address(site: Site):
    run = await site.run(ASK)
    token = await _token(site, run)
    jonas = await site.session(JONAS)
    got = await jonas.post(f"/a/{token}", headers={"accept": "application/json"}, **{"with": "approve"})
    assert got.status_code == 403 and "for Ana" in got.json()["text"]
    assert (await site.desk.show(run))["state"] == "waiting"


async def test_an_asks_address_is_not_posted_to_from_another_page(site: Site):
    run = await site.run(ASK)
    token = await _token(site, run)
    got = await site.client(origin="https://elsewhere.example").post(f"/a/{token}", data={"with": "approve"})
    assert got.status_code == 403 and (await site.desk.show(run))["state"] == "waiting"


async def _token(site: Site, run: str) -> str:
    from store import outbox

    rows = await site.product.committer.read(lambda tx: outbox.find(tx, run_id=run, open_cards=True))
    return tap_token(site.desk.site.secret, rows[-1]["seq"])
