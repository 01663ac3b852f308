"""Saved scripts at the terminal."""

from __future__ import annotations

from tests.cli.conftest import Folder

DAILY = """---
name: daily
inputs:
  who: {type: text, default: all, description: Who is greeted}
on:
  - {every: "0 9 * * mon-fri", zone: Europe/Berlin}
  - command: daily
---
- n = let 'hi ' + who
- show n
"""


def saved(folder: Folder, text: str = DAILY, *words: str) -> str:
    said = folder.waiton("scripts", "save", folder.write("daily.md", text), *words)
    assert said.status == 0, said.err
    return said.out


def test_a_script_is_saved_listed_found_shown_and_run(folder: Folder) -> None:
    assert "no saved scripts" in folder.waiton("scripts").out
    out = saved(folder)
    assert out.startswith(
        "saved as daily, version 1; starts by 0 9 * * mon-fri (Europe/Berlin), /daily in a conversation, next "
    )
    (found,) = folder.waiton("scripts", "--search", "DAI", "--json").json
    assert (found["name"], found["version"], found["owner"], found["paused"], found["last"]) == (
        "daily",
        1,
        "ana@acme.de",
        False,
        None,
    )
    assert found["next"] and folder.waiton("scripts", "--search", "nope").out == "no saved script has `nope`\n"
    run = folder.waiton("scripts", "run", "daily", "--input", "who=Ana")
    assert (run.status, "hi Ana" in run.out, "done" in run.out) == (0, True, True)
    shown = folder.waiton("scripts", "show", "daily").out
    assert "starts   /daily in a conversation" in shown and 'input    who: text = "all"  Who is greeted' in shown
    assert shown.endswith(DAILY) and "done" in shown
    assert folder.waiton("scripts", "show", "daily", "--as", "json").out.startswith("{")
    assert "daily version 1" in folder.waiton("runs").out


def test_versions_are_compared_brought_back_and_paused(folder: Folder) -> None:
    saved(folder)
    assert "version 2" in saved(folder, DAILY.replace("hi ", "hello "))
    diff = folder.waiton("scripts", "diff", "daily").out
    assert "-- n = let 'hi ' + who" in diff and "+- n = let 'hello ' + who" in diff
    assert (
        folder.waiton("scripts", "rollback", "daily", "1", "--as", "bo@acme.de").out
        == "daily: version 3 is version 1 again\n"
    )
    assert folder.waiton("scripts", "diff", "daily", "1", "3").out == "the texts of both are the same\n"
    assert folder.waiton("scripts", "pause", "daily").out == "daily is now paused\n"
    assert folder.waiton("scripts", "--json").json[0]["next"] is None
    assert folder.waiton("scripts", "pause", "daily").out == "daily is paused already. Nothing changed\n"
    assert folder.waiton("scripts", "resume", "daily").out == "daily is now started by its triggers\n"
    assert "hello" in folder.waiton("scripts", "show", "daily", "--version", "2", "--as", "markdown").out


def test_a_name_may_be_given_and_a_run_is_saved_under_one(folder: Folder) -> None:
    assert saved(folder, "- n = let 5\n- show n\n", "--name", "five").startswith("saved as five, version 1")
    run = folder.started("- n = let 6\n- show n\n")
    assert folder.waiton("runs", "save", run, "--name", "six").out == "saved as six, version 1\n"
    both = folder.run("- a = run five\n- b = run six\n- c = let a + b\n- show c\n")
    assert (both.status, "11" in both.out) == (0, True), both.err


def test_what_cannot_be_is_refused_in_a_line_and_its_mend(folder: Folder) -> None:
    saved(folder)
    folder.waiton("scripts", "show", "nope").refused(2, "no script is saved as `nope`")
    folder.waiton("scripts", "rollback", "daily", "1").refused(2, "version 1 of `daily` is the current one")
    folder.waiton("scripts", "rollback", "daily", "7").refused(2, "`daily` has no version 7")
    folder.waiton("scripts", "diff", "daily").refused(2, "`daily` has one version")
    folder.waiton("scripts", "run", "daily", "--input", "whom=Ana").refused(2, "no such input", "did you mean `who`?")
    folder.waiton("scripts", "save", folder.write("x.md", "- say\n  > x\n")).refused(2, "no name")
    folder.waiton("scripts", "save", folder.write("x.md", "- say\n  > x\n"), "--name", "a/b").refused(
        2, "cannot be a script's name"
    )
    folder.waiton("scripts", "save", folder.write("x.md", "- say\n  > x\n"), "--name", "a", "--job", "nope").refused(
        2, "there is no job `nope`"
    )
    folder.waiton("runs", "save", "r_1").refused(2, "waiton runs save RUN --name NAME")
    wrong = folder.waiton("scripts", "save", folder.write("x.md", "- n = cuont xs\n"), "--name", "a")
    assert (wrong.status, "line 1, column" in wrong.err) == (2, True)
    assert [s["name"] for s in folder.waiton("scripts", "--json").json] == ["daily"]


def test_the_card_of_a_script_says_what_starts_it_and_when_next(folder: Folder) -> None:
    said = folder.waiton("check", folder.write("daily.md", DAILY))
    assert "starts  0 9 * * mon-fri (Europe/Berlin), next " in said.out
    starts = folder.waiton("check", "daily.md", "--json").json["preflight"]["starts"]
    assert [(s["on"], bool(s["next"])) for s in starts] == [
        ("`0 9 * * mon-fri` (Europe/Berlin)", True),
        ("`/daily` in a conversation", False),
    ]
    assert "next " in folder.waiton("show", "daily.md", "--as", "card").out
