"""Files: uploaded to a question, saved by a run, sent with a message, handed out to those who may read."""

from __future__ import annotations

import os

import pytest

from bot.domain.ids import tap_token
from tests.web.browser import BROWSER, Room
from tests.web.conftest import ANA, BO, JONAS, Site

FORM = """- plan = ask @ana within 1d fields: [{name: doc, type: file}, {name: seats, type: number, max: 9}]
  > Send me the plan.
- content = read {plan.doc.path}
- show content
"""


async def token_of(site: Site, run: str) -> str:
    from store import outbox

    row = await site.product.committer.read(lambda tx: outbox.find(tx, run_id=run, to=ANA)[0])
    return tap_token(site.product.site.secret, row["seq"])


@pytest.mark.anyio
async def test_an_upload_is_kept_beside_others_of_its_name_and_read_by_the_run(site: Site):
    for text in ("one", "two"):
        run = await site.run(FORM)
        ana = await site.session(ANA)
        got = await ana.client.post(
            f"/a/{await token_of(site, run)}",
            data={"csrf": ana.csrf, "f.seats": "3"},
            files={"f.doc": ("../../Plan B.txt", text.encode(), "text/plain")},
        )
        assert got.status_code == 303
        found = await site.until(lambda r: r["state"] == "done", run)
        assert found["result"] == text
        doc = found["ops"][0]["value"]["doc"]
        assert (doc["name"], doc["type"], doc["size"]) == ("Plan B.txt", "text/plain", 3)
    folder = site.product.settings.files / "jobs" / "pilot"
    assert sorted(p.name for p in folder.iterdir()) == ["Plan B-2.txt", "Plan B.txt"]


@pytest.mark.anyio
async def test_an_upload_with_an_answer_that_does_not_count_leaves_nothing(site: Site):
    run = await site.run(FORM)
    ana, folder = await site.session(ANA), site.product.settings.files / "jobs" / "pilot"
    where = f"/a/{await token_of(site, run)}"
    for seats, data, status in (("12", b"x", 422), ("3", b"x" * (10 * 1024 * 1024 + 1), 413)):
        got = await ana.client.post(
            where,
            data={"csrf": ana.csrf, "f.seats": seats},
            files={"f.doc": ("a.txt", data, "text/plain")},
            headers={"accept": "application/json"},
        )
        assert got.status_code == status
    missing = await ana.client.post(
        where, data={"csrf": ana.csrf, "f.seats": "3"}, files={"f.doc": ("", b"", "text/plain")},
        headers={"accept": "application/json"},
    )  # fmt: skip
    assert missing.status_code == 422 and "`doc` is missing" in missing.json()["text"]
    forged = await ana.client.post(
        where, data={"csrf": "x", "f.seats": "3"}, files={"f.doc": ("a.txt", b"x", "text/plain")}
    )
    assert forged.status_code == 403
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.anyio
async def test_what_was_saved_uploaded_or_sent_hangs_on_the_record_and_can_be_kept(site: Site):
    run = await site.run(FORM + "- save out/sum.txt content\n- say files: [out/sum.txt]\n  > Here it is.\n")
    ana, bo = await site.session(ANA), await site.session(BO)
    await ana.client.post(
        f"/a/{await token_of(site, run)}",
        data={"csrf": ana.csrf, "f.seats": "3"},
        files={"f.doc": ("plan.html", b"<script>", "text/html")},
    )
    await site.until(lambda r: r["state"] == "done", run)
    bearer = await site.bearer(BO)
    listed = (await bearer.get(f"/api/runs/{run}/files")).json()["files"]
    assert [(f["name"], f["how"], f["size"], f["by"]) for f in listed] == [
        ("plan.html", "uploaded", 8, ANA),
        ("sum.txt", "said", 8, BO),
    ]
    page = (await bo.get(f"/runs/{run}")).text
    assert "uploaded by Ana" in page and f'href="/runs/{run}/files/plan.html"' in page
    assert f'href="/runs/{run}/files/out/sum.txt"' in (await bo.get("/jobs/pilot")).text
    got = await bo.get(f"/runs/{run}/files/plan.html")
    assert got.content == b"<script>" and got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith('attachment; filename="plan.html"')
    assert got.headers["x-content-type-options"] == "nosniff"
    assert (await bearer.get(listed[1]["url"])).content == b"<script>"


@pytest.mark.anyio
async def test_nothing_else_is_handed_out_and_nobody_else_gets_it(site: Site):
    await site.job("secret", members=(BO,))
    started = await site.desk.start("- a = let 'x'\n- save a.txt a\n- show a\n", by=BO, job="secret")
    assert started.run
    await site.until(lambda r: r["state"] == "done", started.run)
    bo, jonas = await site.session(BO), await site.session(JONAS)
    root = site.product.settings.files
    (root / "other.txt").write_text("other", encoding="utf-8")
    (root / "jobs" / "secret" / "b.txt").write_text("b", encoding="utf-8")
    where = f"/runs/{started.run}/files"
    assert (await bo.get(f"{where}/a.txt")).content == b"x"
    for path in ("b.txt", "other.txt", "../../other.txt", "%2e%2e/%2e%2e/other.txt", "/etc/passwd", ".x", "a.txt/b"):
        assert (await bo.get(f"{where}/{path}")).status_code == 404, path
    assert (await jonas.get(f"{where}/a.txt")).status_code == 404
    assert (await (await site.bearer(JONAS)).get(f"/api/runs/{started.run}/files")).status_code == 404
    (root / "jobs" / "secret" / "a.txt").unlink()
    os.symlink("/etc/hostname", root / "jobs" / "secret" / "a.txt")
    assert (await bo.get(f"{where}/a.txt")).status_code == 404
    assert "not there any more" in (await bo.get(f"/runs/{started.run}")).text


class TestInABrowser:
    pytestmark = BROWSER

    @pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
    async def test_a_file_is_chosen_sent_and_kept_from_the_page(self, room: Room, script: bool):
        await room.job("pilot", "Pilot")
        run = await room.run(FORM)
        ana = await room.person("ana", java_script_enabled=script)
        await ana.goto(f"{room.url}/jobs/pilot")
        card = ana.locator(".card.mine")
        upload = {"name": "plan.txt", "mimeType": "text/plain", "buffer": b"the plan"}
        await card.get_by_label("doc").set_input_files(upload)
        if script:
            before = await card.locator(".meta").inner_text()
            await room.product.desk.edit(run, {"op": "1", "within": "2d"}, by="bo@acme.de")
            await ana.wait_for_function(
                "(was) => document.querySelector('.card.mine .meta').innerText !== was", arg=before
            )
        await card.get_by_label("seats").fill("3")
        await card.get_by_role("button", name="Answer").click()
        await ana.locator(".card.settled").wait_for()
        assert (await room.product.desk.show(run))["ops"][0]["value"]["doc"]["name"] == "plan.txt"
        await ana.goto(f"{room.url}/runs/{run}")
        async with ana.expect_download() as got:
            await ana.get_by_role("link", name="plan.txt").first.click()
        assert (await (await got.value).path()).read_bytes() == b"the plan"
        assert room.faults == []
