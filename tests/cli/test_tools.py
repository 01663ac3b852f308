"""Tools from the terminal: listed, refreshed, checked by doctor; what their settings may not say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SETTINGS, Folder

ROOT = Path(__file__).parents[2]
DOUBLE = f"""\
[tools.dbl]
command = ["{sys.executable}", "-m", "tests.doubles.mcp_server"]
env = {{ PYTHONPATH = "env:DOUBLE_PATH", MCP_FOLDER = "env:DOUBLE_FOLDER", MCP_TOKEN = "env:DOUBLE_TOKEN" }}
declare = {{ "slow*" = {{ timeout = 300 }} }}
"""


def given(folder: Folder, tools: str = DOUBLE) -> dict[str, str]:
    folder.write("waiton.toml", SETTINGS + tools)
    return {"DOUBLE_PATH": str(ROOT), "DOUBLE_FOLDER": str(folder.path), "DOUBLE_TOKEN": "t0p-secret"}


def test_tools_of_a_server_are_listed_checked_and_known_while_it_is_away(folder: Folder) -> None:
    more = given(folder)
    assert folder.waiton("people", "add", "mika@acme.de", **more).status == 0  # makes the database
    said = folder.waiton("tools", "--json", **more)
    known = {t["name"]: t for t in said.json}
    assert known["dbl_weather"] | {"input": None, "output": None} == {
        "name": "dbl_weather", "summary": "The weather of a city.", "from": "the MCP server `dbl`", "read_only": True,
        "idempotent": False, "destructive": None, "input": None, "output": None,
    }  # fmt: skip
    folder.write("s.md", "- dbl_weather town: Rome\n- dbl_nothing\n")
    (folder.path / "away").touch()
    seen = folder.waiton("check", "s.md", "--json", **more).json["refused"]
    assert {p["code"] for p in seen} >= {"unknown-op"} and len(seen) > 1
    doctor = folder.waiton("doctor", "--json", **more)
    tools = next(c for c in doctor.json if c["check"] == "tools")
    assert not tools["fine"] and "`dbl` is not there" in tools["says"] and "away for the day" in tools["says"]
    refreshed = folder.waiton("tools", "refresh", **more)
    assert refreshed.status == 3 and "away for the day" in refreshed.err and "dbl_weather" in refreshed.out
    (folder.path / "away").unlink()
    assert "dbl: 11 tools" in folder.waiton("doctor", **more).out
    line = next(x for x in folder.waiton("tools", "refresh", **more).out.splitlines() if x.startswith("dbl_put"))
    assert line.endswith("Puts a name. · from the MCP server `dbl` · idempotent harmless")


def test_two_tools_that_are_one_op_are_refused_at_start_with_both_names(folder: Folder) -> None:
    more = given(folder, DOUBLE.replace('"env:DOUBLE_TOKEN"', '"env:DOUBLE_TOKEN", MCP_CLASH = "env:DOUBLE_TOKEN"'))
    for words in (["tools"], ["runs"]):
        folder.waiton(*words, **more).refused(3, "[tools.dbl]", "`a-b` and `a.b`", "`dbl_a_b`")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ('command = ["x"]\nenv = { TOKEN = "s3cret" }', ("env:NAME", "[tools.x] env")),
        ('url = "https://x/mcp"\nheaders = { Authorization = "env:NOT_SET" }', ("NOT_SET is not set",)),
        ('url = "x/mcp"', ("url", "https://")),
        ('command = "x"', ("command", "list of texts")),
        ('command = ["x"]\nurl = "https://x"', ("`command`", "`url`", "one place")),
        ('http = "POST https://x"\nenv = { A = "env:HOME" }', ("`env` belongs to `command`",)),
        ('command = ["x"]\ndeclare = { y = { idempotant = true } }', ("idempotant", "did you mean `idempotent`")),
        ("idempotent = true", ("`http`", "no installed package declares a tool `x`")),
    ],
)
def test_what_a_tool_may_not_say_is_refused_by_its_place(folder: Folder, tool: str, words: tuple[str, ...]) -> None:
    folder.write("waiton.toml", f"[tools.x]\n{tool}\n")
    said = folder.waiton("tools")
    said.refused(3, *words)
    assert "s3cret" not in said.err


def test_a_server_whose_list_is_kept_is_not_asked_and_mcp_is_not_loaded(folder: Folder) -> None:
    more = given(folder)
    assert folder.waiton("runs", **more).status == 0
    folder.write("s.md", "- n = demo_schedule\n- show n\n")
    code = """if True:
        import sys
        sys.argv = ["waiton", "run", "s.md"]
        from bot.cli import main
        try:
            main()
        finally:
            print([name for name in ("mcp", "mcp_types", "anthropic") if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder.path, env=folder.environment | more, text=True, capture_output=True,
        timeout=50,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done
    assert (folder.path / "done").read_text().count("started") == 1
