"""Scripts without a server: check, show, rehearse."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Folder

ASK = "- scope = ask @ana approve decline within 2d\n  > Extend the pilot?\n- say\n  > {scope}\n"
ANA = "people: [{email: ana@acme.de, name: Ana}]\n"
REPORT = {
    "state", "result", "held", "bindings", "ops", "deliveries", "calls", "agent_calls", "lines", "edits", "replies",
    "notes", "preflight", "cost",
}  # fmt: skip


def test_check_of_a_right_script_is_its_card(folder: Folder) -> None:
    said = folder.waiton("check", folder.write("s.md", ASK))
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("The script reads well. Nothing has started.\n") and "asks    Ana" in said.out


def test_check_of_a_wrong_script_is_two_and_every_problem_on_stderr(folder: Folder) -> None:
    said = folder.waiton("check", "-", stdin="- scope = ask @anna yes no\n  > Go?\n- n = cuont scope\n")
    assert (said.status, said.out) == (2, "")
    assert "did you mean `@ana`" in said.err and "did you mean `count`" in said.err and "^^^^^" in said.err


def test_check_in_json_has_the_fields_that_surfaces_names(folder: Folder) -> None:
    right = folder.waiton("check", folder.write("s.md", ASK), "--json")
    assert right.status == 0 and right.json.keys() == {"preflight", "notes"}
    wrong = folder.waiton("check", "-", "--json", stdin="- scope = ask @anna yes no\n  > Go?\n")
    assert (wrong.status, wrong.err) == (2, "")
    (problem,) = wrong.json["refused"]
    assert problem.keys() == {"line", "column", "length", "code", "message", "mend", "fix"}
    assert problem["fix"].keys() == {"line", "column", "length", "text"} and problem["fix"]["text"] == "@ana"


def test_check_of_what_is_not_there_says_so(folder: Folder) -> None:
    folder.waiton("check", "nowhere.md").refused(2, "nowhere.md is not there", "-")


@pytest.mark.parametrize("words", [["check"], ["chekc", "x"], ["check", "x", "--jsn"], ["runs", "--state", "odd"]])
def test_bad_usage_is_two_and_no_traceback(folder: Folder, words: list[str]) -> None:
    said = folder.waiton(*words)
    assert said.status == 2 and said.out == "" and said.err.startswith("waiton: "), said


def test_show_prints_either_surface_as_the_other_and_back(folder: Folder) -> None:
    as_json = folder.waiton("show", folder.write("s.md", ASK))
    assert as_json.status == 0 and as_json.json[0]["op"] == "ask"
    back = folder.waiton("show", folder.write("s.json", as_json.out))
    again = folder.waiton("show", folder.write("t.md", back.out))
    assert again.json == as_json.json


def test_show_prints_scripts_that_name_tools_unknown_here(folder: Folder) -> None:
    said = folder.waiton("show", folder.write("s.md", "- url = release_it service: api\n- show url.at\n"))
    assert said.status == 0, said.err
    assert said.json[0] == {"op": "release_it", "id": "url", "params": {"service": "api"}}


def test_show_as_card_and_as_a_picture(folder: Folder) -> None:
    script = folder.write("s.md", ASK)
    assert "reads well" in folder.waiton("show", script, "--as", "card").out
    assert folder.waiton("show", script, "--as", "mermaid").out.startswith("flowchart TD\n")
    folder.waiton("show", "nowhere.md").refused(2, "neither a file here nor a run")


def test_rehearse_prints_what_happened_in_order_and_says_how_it_ended(folder: Folder) -> None:
    scenario = folder.write(
        "s.yaml",
        f"{ANA}steps:\n  - {{at: +1h, answer: {{op: scope, by: ana@acme.de, with: approve}}}}\n",
    )
    said = folder.waiton("rehearse", folder.write("s.md", ASK), "--scenario", scenario)
    assert said.status == 0
    reply, say = said.out.index("reply    →"), said.out.index("say      →")
    assert reply < say and said.out.endswith("the run is done\n")


def test_rehearse_without_a_scenario_knows_the_agents_of_the_workspace(folder: Folder) -> None:
    folder.write("waiton.toml", "[agents.lead]\ndefault = true\n[agents.second]\n")
    script = folder.write("s.md", "- x = ask agent:second red blue\n  > Which?\n- ys = each ['a']\n  > {x} {it}\n")
    said = folder.waiton("rehearse", script, "--branches", ANTHROPIC_API_KEY="sk-none")
    assert said.status == 0 and "the agent: blue" in said.out, said
    folder.waiton("rehearse", script, ANTHROPIC_API_KEY="").refused(2, "agent")


def test_rehearse_in_json_has_the_shape_of_the_language_and_the_same_bytes_twice(folder: Folder) -> None:
    words = ["rehearse", folder.write("s.md", ASK), "--json", "--scenario", folder.write("s.yaml", ANA)]
    first = folder.waiton(*words)
    assert first.status == 1, "nobody answers, so it does not end done"
    assert REPORT <= first.json.keys() <= REPORT | {"error", "missing"}
    assert first.out == folder.waiton(*words).out


def test_rehearse_of_a_refused_script_is_two(folder: Folder) -> None:
    said = folder.waiton("rehearse", folder.write("s.md", "- n = count xs\n"), "--json")
    assert said.status == 2 and said.json["refused"][0]["code"] == "unknown-name"
    said = folder.waiton("rehearse", "s.md")
    assert (said.status, said.out) == (2, "") and "line 1, column" in said.err


def test_an_unreadable_scenario_key_is_named_with_the_nearest(folder: Folder) -> None:
    folder.write("s.md", ASK)
    scenario = folder.write("s.yaml", "poeple: [{email: ana@acme.de}]\n")
    folder.waiton("rehearse", "s.md", "--scenario", scenario).refused(2, "`poeple`", "`people`")
    folder.waiton("rehearse", "s.md", "--scenario", "nowhere.yaml").refused(2, "nowhere.yaml")


def test_branches_are_walked_a_line_an_outcome(folder: Folder) -> None:
    said = folder.waiton("rehearse", folder.write("s.md", ASK), "--scenario", folder.write("s.yaml", ANA), "--branches")
    assert said.status == 0
    ways = [line for line in said.out.splitlines() if not line.startswith(" ")]
    assert [w.split()[-1] for w in ways] == ["approve", "decline", "answer"] and ways[2].startswith("failed")


def test_a_branch_is_walked_past_a_tool_that_takes_its_time(folder: Folder) -> None:
    script = (
        "- go = ask @ana yes no within 2d\n  > Go?\n- if go == 'yes'\n  - d = deploy service: web\n  - say\n    > {d}\n"
    )
    scenario = folder.write("s.yaml", f"{ANA}tools: {{deploy: {{takes: 90s, returns: live}}}}\n")
    said = folder.waiton("rehearse", folder.write("s.md", script), "--scenario", scenario, "--branches")
    assert said.out.splitlines()[:2] == ["done      go: yes", "          says: live"]


def test_coverage_lists_what_was_not_reached(folder: Folder) -> None:
    script = "- scope = ask @ana yes no within 2d\n  > Go?\n- if scope == 'yes'\n  - say\n    > on\n- else\n  - say\n    > off\n"
    scenario = folder.write(
        "s.yaml", f"{ANA}steps:\n  - {{at: +1h, answer: {{op: scope, by: ana@acme.de, with: 'yes'}}}}\n"
    )
    said = folder.waiton("rehearse", folder.write("s.md", script), "--scenario", scenario, "--coverage")
    assert "1 of 4 ops were not reached" in said.out and "2.else.1" in said.out


def test_an_example_is_printed_and_rehearsed_as_it_is(folder: Folder) -> None:
    listed = folder.waiton("examples")
    assert listed.status == 0 and "approval" in listed.out
    names = [one["name"] for one in folder.waiton("examples", "--json").json]
    script = folder.write("a.md", folder.waiton("examples", names[0]).out)
    scenario = folder.write("a.yaml", folder.waiton("examples", names[0], "--scenario").out)
    said = folder.waiton("rehearse", script, "--scenario", scenario)
    assert said.status == 0 and said.out.rstrip().endswith("the run is done")
    folder.waiton("examples", "aproval").refused(2, "did you mean `approval`?")
