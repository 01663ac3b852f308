"""`waiton mcp`: a real client of the protocol runs plans, waits for people, edits, and repeats nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SETTINGS, Folder
from tests.mcp.client import MODES, by_http, by_stdio

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path)
    found.write("waiton.toml", SETTINGS)
    for name in ("a", "b"):
        found.write(f".waiton/files/notes/{name}.md", "text")
    return found


COUNT = [
    {"op": "glob", "id": "files", "params": {"pattern": "notes/*.md"}},
    {"op": "count", "id": "total", "params": {"list": "$files"}},
    {"op": "show", "params": {"value": "$total"}},
]
ASK = "- go = ask @bo yes no within 2d\n  > Go on?\n- show go\n"


def token(folder: Folder, email: str) -> str:
    return folder.waiton("token", "create", email).out.strip().splitlines()[-1]


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_runs_a_program_sees_what_is_wrong_and_reads_the_language(folder: Folder, mode: str) -> None:
    async with by_stdio(folder, mode=mode) as agent:
        told = await agent("run_program", program=COUNT)
        assert (told["state"], told["result"], told["owner"]) == ("done", 2, "ana@acme.de")
        assert [(op["path"], op["state"]) for op in told["ops"]] == [("1", "done"), ("2", "done"), ("3", "done")]
        assert {"name": "total", "type": "number", "size": 1} in [
            {k: held[k] for k in ("name", "type", "size")} for held in told["held"]
        ]
        again = await agent("run_script", script="- show total\n", job=told["job"])
        assert again["result"] == 2, "the job holds its names"

        wrong = await agent("run_program", program=[{"op": "glub", "params": {}}])
        assert [p["code"] for p in wrong["refused"]] == ["unknown-op"] and wrong["text"] == "Nothing has started."
        assert wrong == await agent("run_program", program=json.dumps([{"op": "glub", "params": {}}]))
        seen = await agent("check", script="- demo_deploy service: api\n")
        assert [w["op"] for w in seen["preflight"]["writes"]] == ["demo_deploy"]
        assert (await agent("check", script="- count nothing\n"))["refused"]

        listed = await agent.client.list_tools()
        assert [t.name for t in listed.tools] == [
            "run_program", "run_script", "check", "show_run", "wait_for_run", "answer", "edit",
        ]  # fmt: skip
        assert "never" in (agent.client.session.instructions or "") or mode == "auto"
        ops = {op["op"]: op for op in json.loads(await agent.read("waiton://ops"))}
        assert ops["demo_schedule"]["read_only"] and "slot" in ops["demo_book_class"]["params"]["properties"]
        assert "onMiss" in await agent.read("waiton://language")
        assert (await agent.read("waiton://examples/approval")).startswith("# ")
        assert len((await agent.client.list_resources()).resources) > 5
    (record,) = [json.loads(line) for line in folder.waiton("export", told["job"]).out.splitlines()][:1]
    assert record["owner"] == "ana@acme.de"
    assert folder.waiton("show", told["run"], "--as", "json").json["author"] == "agent:claude-code"


async def test_a_person_answers_meanwhile_and_the_agent_hears_of_it(folder: Folder) -> None:
    async with by_stdio(folder) as agent:
        told = await agent("run_script", script=ASK)
        (ask, _) = told["ops"]
        assert (ask["state"], ask["waiting_on"], ask["choices"]) == ("waiting", ["bo@acme.de"], ["yes", "no"])
        still = await agent("wait_for_run", run=told["run"], seconds=0.3)
        assert (still["state"], still["changed"]) == ("waiting", []) and still["line"].startswith("waiting on Bo")
        mine = await agent("answer", run=told["run"], op="go", with_="yes")
        assert mine == {"accepted": False, "text": "`go` is put to Bo, not to you. Nothing changed."}

        waiting = asyncio.create_task(agent("wait_for_run", run=told["run"], seconds=50))
        said = await asyncio.to_thread(folder.waiton, "answer", told["run"], "go", "no", "--as", "bo@acme.de")
        assert said.status == 0, said
        ended = await asyncio.wait_for(waiting, 30)
        assert (ended["state"], ended["result"]) == ("done", "no")
        assert [op["path"] for op in ended["changed"]] == ["1", "2"]
        assert (await agent("wait_for_run", run=told["run"], seconds=50))["changed"] == []
        none = await agent("wait_for_run", run="nothing", seconds=0)
        assert none["text"] == "There is no run `nothing`. Nothing changed."


async def test_writes_of_an_agent_wait_for_a_persons_tap_and_a_key_starts_nothing_twice(folder: Folder) -> None:
    script = "- d = demo_book_class slot: 18:30\n- show d.ok\n"
    async with by_stdio(folder) as agent:
        held = await agent("run_script", script=script, key="k1")
        assert held["state"] == "held" and "taps Run" in held["text"] and held["text"].endswith("Nothing has started.")
        again = await agent("run_script", script=script, key="k1")
        assert again["run"] == held["run"] and again["repeated"]
        assert (await agent("show_run", run=held["run"]))["state"] == "held"
        count = await agent("run_program", program=COUNT, key="k2")
        same = await agent("run_program", program=COUNT, key="k2")
        assert same["run"] == count["run"] and same["repeated"] and same["result"] == 2
        other = await agent("run_program", program=COUNT, key="k3")
        assert other["run"] != count["run"]

        run = await agent("run_script", script=ASK)
        brought = await agent("edit", run=run["run"], after="go", insert="- demo_book_class slot: 20:00\n")
        assert not brought["accepted"] and "wait for a person" in brought["text"]
    assert [r["id"] for r in folder.waiton("runs", "--json").json if r["script"]] == []


async def test_a_run_that_policy_sets_free_says_what_has_happened(folder: Folder) -> None:
    policy = '[policy]\napprove = { "demo_deploy" = "role:leads" }\nagent_runs = "free"\n'
    folder.write("waiton.toml", SETTINGS.partition("[policy]")[0] + policy)
    program = [
        {"op": "demo_book_class", "id": "b", "params": {"slot": "18:30"}},
        {"op": "demo_deploy", "id": "d", "params": {"service": "api"}},
        {"op": "say", "params": {"body": "Done."}},
    ]
    async with by_stdio(folder) as agent:
        told = await agent("run_program", program=program)
        assert [(op["op"], op["happened"]) for op in told["ops"]] == [
            ("demo_book_class", True), ("demo_deploy", False), ("say", False),
        ]  # fmt: skip
        assert told["ops"][1]["state"] == "gated" and told["ops"][1]["waiting_on"] == ["bo@acme.de"]
        said = await agent("answer", run=told["run"], op="d", with_="approve")
        assert not said["accepted"] and said["text"].startswith("Approvals and doubts are for people")


async def test_edits_are_taken_and_refused_and_recorded_as_the_agents(folder: Folder) -> None:
    async with by_stdio(folder, "--as", "bo@acme.de", "--may-answer", "asks") as agent:
        told = await agent("run_script", script=ASK.replace("@bo", "@ana"))
        run = told["run"]
        lost = await agent("edit", run=run, op="go", withdraw=True)
        assert not lost["accepted"] and "says why" in lost["text"]
        wrong = await agent("edit", run=run, after="go", insert="- count nothing\n")
        assert not wrong["accepted"] and wrong["problems"] and "Nothing changed" in wrong["text"]
        two = await agent("edit", run=run, op="go", to="bo@acme.de", within="3d")
        assert not two["accepted"] and two["text"].startswith("One edit at a time")
        done = await agent("edit", run=run, op="go", to="bo@acme.de", why="Ana is away")
        assert done["accepted"], done
        answered = await agent("answer", run=run, op="go", with_="yes")
        assert answered["accepted"]
        ended = await agent("wait_for_run", run=run, seconds=20)
        assert ended["result"] == "yes"
        paused = await agent("run_script", script=ASK)
        assert (await agent("edit", run=paused["run"], do="cancel", why="no need"))["accepted"]
        assert (await agent("show_run", run=paused["run"]))["state"] == "cancelled"
    (edit,) = folder.waiton("show", run, "--as", "json").json["edits"]
    assert (edit["by"], edit["for"], edit["why"]) == ("agent:claude-code", "bo@acme.de", "Ana is away")
    entries = [json.loads(line) for line in folder.waiton("export", told["job"]).out.splitlines()]
    given = next(e for e in entries if e["what"] == "answered")
    assert (given["by"], given["data"]["via"]) == ("bo@acme.de", "agent:claude-code")


@pytest.mark.parametrize("mode", MODES)
async def test_over_http_a_token_says_for_whom(folder: Folder, mode: str) -> None:
    async with by_http(folder, token(folder, "bo@acme.de"), mode=mode) as agent:
        told = await agent("run_program", program=COUNT)
        assert (told["result"], told["owner"]) == (2, "bo@acme.de")
    with pytest.raises(Exception):
        async with by_http(folder, "wt_none", mode=mode):
            pass
    with pytest.raises(Exception):
        async with by_http(folder, token(folder, "bo@acme.de"), "--as", "ana@acme.de", mode=mode):
            pass


async def test_a_client_that_is_killed_leaves_its_run_and_another_goes_on_with_it(folder: Folder) -> None:
    killed = begun(folder)
    assert killed.stdout is not None
    run = (await asyncio.to_thread(killed.stdout.readline)).strip()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    async with by_stdio(folder) as agent:
        assert (await agent("show_run", run=run))["state"] == "waiting"
        assert folder.waiton("answer", run, "go", "yes", "--as", "bo@acme.de").status == 0
        assert (await agent("wait_for_run", run=run, seconds=20))["result"] == "yes"


def begun(folder: Folder) -> subprocess.Popen[str]:
    """A client in a process of its own, which prints the run that it waits for."""
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(folder.path)], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE,
        env=folder.environment, text=True,
    )  # fmt: skip


CLIENT = f"""
import asyncio, sys
from pathlib import Path
from tests.cli.conftest import Folder
from tests.mcp.client import by_stdio

async def main():
    async with by_stdio(Folder(Path(sys.argv[1]))) as agent:
        told = await agent("run_script", script={ASK!r})
        print(told["run"], flush=True)
        await agent("wait_for_run", run=told["run"], seconds=50)

asyncio.run(main())
"""


def test_nobody_that_is_here_is_told_in_a_line_and_the_mend(folder: Folder) -> None:
    folder.waiton("mcp", "--as", "mika@acme.de").refused(2, "mika@acme.de is nobody here", "waiton people add")
