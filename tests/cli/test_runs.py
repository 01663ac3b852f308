"""Runs at the terminal: asked at the prompt, left, taken up, answered, edited, listed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time

from tests.cli.conftest import Folder

ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > It is {scope}.\n- show scope\n"
RUN = re.compile(r"waiton resume (\w+)")


def test_a_choice_is_taken_by_number_and_by_text(folder: Folder) -> None:
    for typed in ("1\n", "approve\n"):
        said = folder.run(ASK, stdin=typed)
        assert (said.status, said.err) == (0, "")
        assert "? Extend the pilot?" in said.out and "   2  decline" in said.out
        assert said.out.endswith("» It is approve.\n\napprove\n\ndone\n"), said.out
        assert said.out.count("It is approve.") == 1, "nothing is told twice"


def test_what_is_no_choice_is_told_so_and_asked_again(folder: Folder) -> None:
    said = folder.run(ASK, stdin="perhaps\n2\n")
    assert said.status == 0 and "`approve` or `decline`" in said.out.replace(
        "approve, decline", "`approve` or `decline`"
    )
    assert said.out.endswith("decline\n\ndone\n")


def test_a_form_is_asked_field_by_field(folder: Folder) -> None:
    script = (
        "- when = ask @ana fields: [{name: day, type: date}, {name: seats, type: number}]\n  > When?\n- show when\n"
    )
    said = folder.run(script, stdin="2030-12-24\n3\n")
    assert said.status == 0 and "day (date)> " in said.out and "seats (number)> " in said.out
    assert '{"day": "2030-12-24", "seats": 3}' in said.out


def test_a_reason_that_is_required_is_asked_for(folder: Folder) -> None:
    script = "- ok = ask @ana yes no reason: required\n  > Ship it?\n- say\n  > done\n- why = let ops.ok.reason\n- show why\n"
    said = folder.run(script, stdin="no\ntoo early\n")
    assert said.status == 0 and "a reason> " in said.out and said.out.endswith("too early\n\ndone\n"), said.out


def test_a_write_is_approved_at_the_prompt_of_whoever_may(folder: Folder) -> None:
    run = folder.started("- d = demo_deploy service: api mode: writes\n- show d\n")
    (card,) = folder.waiton("approvals", "--json").json
    assert (card["run"], card["kind"], card["choices"]) == (run, "approval", ["approve", "decline"])
    assert folder.waiton("answer", run, "d", "approve", "--as", "bo@acme.de").status == 0
    assert folder.waiton("approvals").out == "no approval is open\n"
    said = folder.waiton("resume", run)
    assert said.status == 0 and said.out.endswith("done\n"), said


def test_inputs_are_given_by_name(folder: Folder) -> None:
    script = "---\ninputs:\n  repo: text\n  n: 1\n---\n- total = let n + 1\n- show total\n".replace(
        "repo: text", "repo: acme"
    )
    said = folder.run(script, "--input", "n=41")
    assert said.status == 0 and "\n42\n" in said.out
    folder.waiton("run", "script.md", "--input", "n").refused(2, "`--input n`")
    said = folder.waiton("run", "script.md", "--input", "m=1")
    assert said.status == 2 and "`m`" in said.err


def test_a_run_that_fails_is_one_and_a_script_that_is_refused_two(folder: Folder) -> None:
    said = folder.run("- x = read nowhere.txt\n- show x\n")
    assert said.status == 1 and "✗ 1" in said.out and "failed: " in said.out
    said = folder.run("- x = cuont y\n")
    assert (said.status, said.out) == (2, "") and "did you mean `count`" in said.err
    assert folder.waiton("runs", "--state", "waiting").out.startswith("no runs yet")


def test_the_end_of_the_input_leaves_it_waiting_and_resume_goes_on(folder: Folder) -> None:
    said = folder.run(ASK)
    assert said.status == 1 and "● 1      scope = Ask @ana" in said.out and "○ 2      Say" in said.out
    found = RUN.search(said.out)
    assert found
    done = folder.waiton("resume", found[1], stdin="approve\n")
    assert done.status == 0 and done.out.endswith("approve\n\ndone\n")
    folder.waiton("resume", "nowhere").refused(2, "no run `nowhere`", "waiton runs")


def test_ctrl_c_leaves_it_waiting_and_the_list_is_drawn_in_place(folder: Folder) -> None:
    said, status = _at_a_terminal(folder, ["run", folder.write("script.md", ASK)], "  > ", None)
    assert status == 1 and "left waiting; `waiton resume" in said and "Traceback" not in said
    run = RUN.search(said)
    assert run
    said, status = _at_a_terminal(folder, ["resume", run[1]], "  > ", "1\n")
    assert status == 0 and "● 1      scope = Ask @ana" in said and "✓ 1      scope = Ask @ana → approve" in said
    assert said.count("○ 3      show") == 1 and "\x1b[J" in said


def _at_a_terminal(folder: Folder, words: list[str], prompt: str, typed: str | None) -> tuple[str, int]:
    """Runs a command at a terminal, types at the prompt (None: Ctrl-C); what was on the screen, and the status."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*folder.command, *words], cwd=folder.path, env=folder.environment, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    said, acted = "", False
    until = time.monotonic() + 40
    while time.monotonic() < until:
        ready, _, _ = select.select([master], [], [], 0.2)
        try:
            said += os.read(master, 65536).decode() if ready else ""
        except OSError:  # the other side is closed
            break
        if not acted and prompt in said:
            acted = True
            if typed is None:
                process.send_signal(signal.SIGINT)
            else:
                os.write(master, typed.encode())
    os.close(master)
    return said, process.wait(timeout=20)


def test_a_run_is_shown_in_three_tenses(folder: Folder) -> None:
    run = folder.started(ASK)
    said = folder.waiton("show", run).out
    assert "waiting on Ana since" in said and " ● 1 " in said and " ○ 2 " in said
    found = folder.waiton("show", run, "--as", "json").json
    assert found["id"] == run and found["ops"][0]["state"] == "waiting"
    assert "ask @ana approve decline" in folder.waiton("show", run, "--as", "markdown").out


def test_the_inbox_is_answered_from_the_terminal(folder: Folder) -> None:
    run = folder.started(ASK)
    (card,) = folder.waiton("inbox", "--json").json
    assert card.keys() == {"run", "op", "kind", "to", "since", "title", "text", "choices"}
    assert (card["run"], card["op"], card["choices"]) == (run, "1", ["approve", "decline"])
    assert folder.waiton("inbox", "--as", "bo@acme.de").out == "nothing waits on you\n"
    folder.waiton("answer", run, "scope", "approve", "--as", "bo@acme.de").refused(2, "Ana")
    folder.waiton("answer", run, "scope", "maybe").refused(2, "approve")
    folder.waiton("answer", run, "nothing", "x").refused(2, "`nothing`")
    folder.waiton("inbox", "--as", "nobody@acme.de").refused(2, "nobody@acme.de", "waiton people add")
    assert folder.waiton("answer", run, "scope", "approve").status == 0
    assert folder.waiton("answer", run, "scope", "approve").status == 0, "the same again is the same reply"
    assert [r["state"] for r in folder.waiton("runs", "--json").json] == ["done"]


def test_what_is_pending_is_edited_and_a_run_cancelled(folder: Folder) -> None:
    run = folder.started(ASK)
    assert folder.waiton("edit", run, "scope", "to=bo@acme.de", "--why", "on leave").status == 0
    assert [c["run"] for c in folder.waiton("inbox", "--as", "bo@acme.de", "--json").json] == [run]
    (edit,) = folder.waiton("show", run, "--as", "json").json["edits"]
    assert (edit["by"], edit["why"], edit["op"]) == ("ana@acme.de", "on leave", "1")
    folder.waiton("edit", run, "scope", "skip=true", "--as", "bo@acme.de").refused(2, "only Ana, who started the run")
    folder.waiton("edit", run, "scope", "skip").refused(2, "key=value")
    folder.waiton("runs", "cancel", run, "--as", "bo@acme.de").refused(2, "only Ana")
    assert folder.waiton("runs", "cancel", run, "--why", "enough").status == 0
    folder.waiton("runs", "cancel", run).refused(2, "cancelled")


def test_the_record_is_exported_and_verified(folder: Folder) -> None:
    run = folder.started(ASK)
    folder.waiton("answer", run, "scope", "approve")
    lines = folder.waiton("export", "terminal").out.splitlines()
    assert len(lines) > 3 and all(f'"run": "{run}"' in line for line in lines)
    said = folder.waiton("verify", "terminal")
    assert said.status == 0 and "the chain holds" in said.out
    folder.waiton("export", "nowhere").refused(2, "no job `nowhere`", "waiton jobs")
    import sqlite3

    with sqlite3.connect(folder.path / ".waiton/waiton.db") as db:
        db.execute("update history set by = 'bo@acme.de' where what = 'answered' or n = 2")
    db.close()
    folder.waiton("verify", "terminal").refused(3, run, "entry")


def test_lists_are_there_in_words_and_in_json(folder: Folder) -> None:
    folder.started(ASK)
    saved = folder.run("---\nname: nightly\non:\n  - every: '0 9 * * *'\n---\n- say\n  > hello\n")
    assert saved.out == "saved as nightly, version 1\n", saved
    keys = {
        "runs": {"id", "job", "owner", "script", "version", "created", "ended", "state", "error", "line"},
        "jobs": {"id", "title", "conversation", "created", "private", "runs", "held"},
        "scripts": {"name", "title", "version", "owner", "job", "saved", "on", "next", "paused", "told", "last"},
        "people": {"email", "name", "timezone", "roles"},
        "roles": {"name", "members"},
        "tools": {"name", "summary", "from", "read_only", "idempotent", "destructive", "input", "output"},
    }
    for command, wanted in keys.items():
        found = folder.waiton(command, "--json").json
        assert found and found[0].keys() == wanted, command
        assert folder.waiton(command).out.strip()
    assert folder.waiton("events", "--json").json == []


def test_an_edit_is_previewed_and_ops_are_inserted_from_a_file(folder: Folder) -> None:
    run = folder.started(ASK)
    folder.write("more.md", "- say\n  > hello {scope}\n")
    folder.write("wrong.md", "- say\n  > hello {scop}\n")
    folder.waiton("edit", run, "scope", "--insert", "wrong.md", "--preview").refused(2, "line 2, column 12")
    seen = folder.waiton("edit", run, "scope", "--insert", "more.md", "--preview")
    assert seen.status == 0 and "+ Say “hello {scope}”" in seen.out and "Nothing has changed yet" in seen.out
    assert folder.waiton("show", run, "--as", "json").json["edits"] == []
    assert folder.waiton("edit", run, "scope", "--insert", "-", stdin="- say\n  > hello {scope}\n").status == 0
    assert folder.waiton("edit", run, "--pause").status == 0
    told = [edit["what"] for edit in folder.waiton("show", run, "--as", "json").json["edits"]]
    assert told == ["inserted", "pause"]
    folder.waiton("edit", run, "scope").refused(2, "write one edit")
