"""Tools of MCP servers: listed, called, lost and found again; by standard input and over HTTP, of today and of old."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.runtime.mcp_listing import Listed, fingerprint, kept, known, op_name, tools_of
from bot.runtime.mcp_tools import McpServer
from bot.runtime.redacting import Redactor
from bot.runtime.tools import Clash
from tests.runtime.mcp_world import KINDS, TOKEN, names, world
from tests.runtime.world import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_is_called_lost_found_again_and_hears_of_what_nobody_wants(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path, kind) as here:
        assert await here.call("weather", city="Rome") == {"city": "Rome", "degrees": 21}
        assert await here.call("send_mail", to="ana") == {"result": "sent"}
        assert here.double.done[1:] == ["mail ana key-1"], "the key of the op goes with it"
        assert await here.call("slow", steps=2) == {"result": "done"}
        await until(lambda: here.progress == [(1, 2, "step 1"), (2, 2, "step 2")])

        refused = await here.failed("fails")
        assert refused.startswith("no: ") and "•••" in refused and TOKEN not in refused
        assert await here.call("echo", text="it is TOKEN") == "it is •••"

        assert len(await here.call("huge", kib=2048)) == 2048 * 1024
        assert await here.failed("huge", kib=4097) == "`dbl_huge` answered with more than 4 MiB"

        assert "did not answer within 0.3 s" in await here.lost("slow", within=0.3, pause=30)
        await until(lambda: here.double.done[-1] == "cancelled")
        nobody = asyncio.create_task(here.call("slow", steps=1, pause=30))
        await until(lambda: here.double.done[-1] == "step 1")
        nobody.cancel()
        await until(lambda: here.double.done[-1] == "cancelled")

        assert "lost" in await here.lost("crash", to="the wall")
        if here.double.process is not None:
            here.double.process.wait()
            assert "cannot be reached" in await here.failed("weather", city="Rome")
            await here.double.up()
        assert await here.call("weather", city="Bonn") == {"city": "Bonn", "degrees": 21}
        assert here.double.done.count("crash the wall") == 1, "what may have happened is not sent again"

        assert await here.call("grow", name="fresh") == {"result": "grown"}
        await until(lambda: "fresh" in names(here.server.listed))
        assert await here.call("fresh") == {"result": "fresh"}


async def test_what_a_tool_gives_besides_text_is_kept_as_files(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        text, picture, sound, note, link = await here.call("mixed")
        assert text == "here"
        assert picture == {"name": "dbl_mixed.png", "type": "image/png", "size": 64, "path": "dbl_mixed.png"}
        assert (sound["path"], note["path"], note["type"]) == ("dbl_mixed.wav", "a b.txt", "text/plain")
        assert here.files["a b.txt"] == b"noted" and here.files["dbl_mixed.png"].startswith(b"\x89PNG")
        assert link == {"name": "big", "type": "text/csv", "size": None, "uri": "https://files.example.com/big"}


async def test_a_server_that_is_not_there_fails_its_calls_by_name_and_with_its_last_word(tmp_path: Path) -> None:
    none = McpServer("gone", {"command": ["no-such-command"]}, {}, Redactor(), None)
    assert await none.known() == "the MCP server `gone` is not there: `no-such-command` is not there"
    await none.aclose()
    script = "import sys; sys.exit('no config at s3cret-path')"
    ends = McpServer("ends", {"command": ["python3", "-c", script]}, {}, Redactor(["s3cret-path"]), None)
    said = await ends.known()
    assert said is not None and said.endswith("(no config at •••)"), said
    await ends.aclose()


async def test_a_wrong_token_is_told_with_what_the_server_answered(tmp_path: Path) -> None:
    async with world(tmp_path, "http") as here:
        wrong = McpServer("dbl", here.double.table, {"MCP_TOKEN": "not-the-token"}, Redactor(["not-the-token"]), None)
        said = await wrong.known()
        assert said is not None and said.endswith("answered 401: not Bearer •••"), said
        await wrong.aclose()


SERVER = {"command": ["x"]}
LISTED = (
    Listed(name="get", read_only=True, destructive=True),
    Listed(name="put", idempotent=True, destructive=False),
    Listed(name="drop"),
)


def declared(**table: object) -> dict[str, tuple[bool, bool, bool | None]]:
    found = tools_of("s", {**SERVER, **table}, LISTED, None)
    return {t.remote: (t.spec.read_only, t.spec.idempotent, t.spec.destructive) for t in found}


def test_what_a_server_claims_counts_unless_the_settings_say_otherwise() -> None:
    assert declared() == {"get": (True, False, True), "put": (False, True, False), "drop": (False, False, None)}
    assert set(declared(trust_annotations=False).values()) == {(False, False, None)}
    assert {d for _, _, d in declared(destructive=True).values()} == {True}
    by_name = declared(declare={"p*": {"idempotent": False, "destructive": True}, "drop": {"read_only": True}})
    assert by_name == {"get": (True, False, True), "put": (False, False, True), "drop": (True, False, None)}


def test_a_list_is_kept_of_the_server_that_it_was_of() -> None:
    stored = kept(LISTED, SERVER)
    assert known(stored, SERVER) == LISTED
    assert known(stored, {"command": ["y"]}) is None and fingerprint(SERVER) != fingerprint({"url": "x"})
    assert known("not JSON", SERVER) is None and known(None, SERVER) is None


@pytest.mark.parametrize(
    ("tool", "op"), [("list-prs", "gh_list_prs"), ("a.b/c", "gh_a_b_c"), ("getÜser", "gh_get_ser"), ("", "gh")]
)
def test_a_tool_is_an_op_whose_name_scripts_can_write(tool: str, op: str) -> None:
    assert op_name("gh", tool) == op


def test_two_tools_that_would_be_one_op_are_refused_with_both_names() -> None:
    with pytest.raises(Clash, match=r"`a-b` and `a\.b`: both would be the op `s_a_b`"):
        tools_of("s", SERVER, (Listed(name="a-b"), Listed(name="a.b")), None)


def test_a_secret_is_dots_however_it_was_quoted() -> None:
    redact = Redactor(['se"cret/1', "abc", ""])
    assert redact('a se"cret/1, se\\"cret/1 and se%22cret%2F1 of abc') == "a •••, ••• and ••• of abc"
    assert redact.value({'se"cret/1': ['x se"cret/1', 5, None]}) == {"•••": ["x •••", 5, None]}
    assert Redactor()("se") == "se"
