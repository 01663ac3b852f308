"""People, log-ins, tokens, the doctor, the database, settings that do not read."""

from __future__ import annotations

import re
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import httpx2
import pytest

from tests.cli.conftest import Folder


def test_people_come_and_go(folder: Folder) -> None:
    assert folder.waiton("people", "add", "jonas@acme.de", "--name", "Jonas", "--role", "ops").status == 0
    found = {p["email"]: p for p in folder.waiton("people", "--json").json}
    assert found["jonas@acme.de"] == {"email": "jonas@acme.de", "name": "Jonas", "timezone": None, "roles": ["ops"]}
    assert {"name": "ops", "members": ["jonas@acme.de"]} in folder.waiton("roles", "--json").json
    assert folder.waiton("people", "remove", "jonas@acme.de").status == 0
    folder.waiton("people", "remove", "jonas@acme.de").refused(2, "jonas@acme.de")
    folder.waiton("people", "add", "jonas").refused(2, "`jonas` is no email")


def test_a_token_stands_alone_on_the_last_line(folder: Folder) -> None:
    said = folder.waiton("token", "create", "ana@acme.de", "--name", "ci", "--days", "30")
    assert said.status == 0 and re.fullmatch(r"wt_[\w-]{40,}", said.out.splitlines()[-1])
    assert "ana@acme.de" in said.out.splitlines()[0] and said.err == ""
    folder.waiton("token", "create", "nobody@acme.de").refused(2, "nobody@acme.de")
    folder.waiton("token", "create", "ana@acme.de", "--days", "0").refused(2, "--days")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(folder: Folder, port: int) -> Iterator[str]:
    process = subprocess.Popen(
        [*folder.command, "serve"], cwd=folder.path, env=folder.environment | {"WAITON_PORT": str(port)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 40
    while time.monotonic() < until:
        try:
            if httpx2.get(f"{url}/readyz", timeout=2).status_code == 200:
                break
        except httpx2.HTTPError:
            time.sleep(0.05)
    yield url
    process.terminate()
    assert process.wait(timeout=30) == 0


def test_while_the_server_runs_a_link_logs_in_once_and_a_detached_run_is_the_servers(
    folder: Folder, server: str, port: int
) -> None:
    said = folder.waiton("login", "bo@acme.de", WAITON_PORT=str(port))
    assert said.status == 0 and said.out.startswith(f"{server}/login/")
    with httpx2.Client() as browser:
        assert browser.get(said.out.strip()).status_code == 303
    with httpx2.Client() as another:
        assert another.get(said.out.strip()).status_code != 303, "once"
    run = folder.started("- d = demo_list_prs repo: acme/api\n- show d\n")
    until = time.monotonic() + 15
    while time.monotonic() < until and folder.waiton("show", run, "--as", "json").json["state"] != "done":
        time.sleep(0.1)
    assert folder.waiton("show", run, "--as", "json").json["state"] == "done"
    assert "the server, if you started it" in folder.waiton("doctor", WAITON_PORT=str(port)).out
    folder.waiton("serve", WAITON_PORT=str(port)).refused(3, f"127.0.0.1:{port}", "WAITON_PORT")


def test_the_doctor_finds_all_well_and_says_what_to_do_where_it_is_not(folder: Folder) -> None:
    said = folder.waiton("doctor", "--json")
    assert said.status == 0, said.out
    assert {c["check"] for c in said.json} >= {"settings", "database", "files", "sandbox", "tools", "people", "clock"}
    assert all(c.keys() == {"check", "fine", "says"} for c in said.json)
    folder.write("waiton.toml", '[roles]\nleads = ["eve@acme.de"]\n')
    said = folder.waiton("doctor")
    assert said.status == 3 and "✗ people" in said.out and "waiton people add eve@acme.de" in said.out


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[workspace]\ntimezon = 'UTC'\n", ("`timezon`", "`timezone`", "[workspace]")),
        ("[polcy]\n", ("`polcy`", "`policy`")),
        ("[workspace]\ntimezone = 'Mars/One'\n", ("`Mars/One`", "Europe/Berlin")),
        ("[streams.a]\nsecret = 'hush'\n", ("env:NAME",)),
        ("[tools.ask]\nhttp = 'POST http://127.0.0.1/x'\n", ("`ask`", "command")),
        ("[workspace\n", ("does not read",)),
    ],
)
def test_settings_that_do_not_read_are_three_and_name_the_setting(
    folder: Folder, settings: str, words: tuple[str, ...]
) -> None:
    folder.write("waiton.toml", settings)
    folder.waiton("runs").refused(3, *words)
    assert folder.waiton("doctor").status == 3


def test_a_settings_file_that_is_named_and_not_there_is_said(folder: Folder) -> None:
    folder.waiton("runs", WAITON_CONFIG="nowhere.toml").refused(3, "WAITON_CONFIG", "nowhere.toml")


def test_the_database_is_brought_to_this_release_and_another_release_is_said(folder: Folder) -> None:
    folder.waiton("db", "check").refused(3, "no tables", "waiton db upgrade")
    assert folder.waiton("db", "upgrade").status == 0
    assert folder.waiton("db", "check").out == "the database has this release's tables\n"
    with sqlite3.connect(folder.path / ".waiton/waiton.db") as db:
        db.execute("update alembic_version set version_num = '9999'")
    db.close()
    folder.waiton("db", "check").refused(3, "9999")
    folder.waiton("runs").refused(3, "9999", "newer")
    said = folder.waiton("doctor")
    assert said.status == 3 and "9999" in said.out


def test_a_database_that_does_not_answer_is_three(folder: Folder) -> None:
    away = {"WAITON_DATABASE_URL": "postgresql+psycopg://nobody:hush@127.0.0.1:1/none"}
    folder.waiton("runs", **away).refused(3, "127.0.0.1", "WAITON_DATABASE_URL")
    said = folder.waiton("doctor", **away)
    assert said.status == 3 and "hush" not in said.out and "WAITON_DATABASE_URL" in said.out


def test_help_names_every_command(folder: Folder) -> None:
    said = folder.waiton("--help")
    names = "run resume check show rehearse runs jobs inbox events scripts people roles tools approvals answer edit doctor db export verify login token serve"
    assert said.status == 0 and not [n for n in names.split() if not re.search(rf"^  {n} ", said.out, re.MULTILINE)]
