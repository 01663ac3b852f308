"""Agents as the settings and the doctor have them, and a script that a terminal runs with them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.config import MODEL, Settings, load
from bot.domain.cost import price
from bot.domain.errors import Misconfigured
from tests.doubles.claude import KEY, Fails, claude

ROOT = Path(__file__).parents[2]
KEYED = {"ANTHROPIC_API_KEY": KEY}


def settings(folder: Path, text: str = "", env: Mapping[str, str] = KEYED) -> Settings:
    (folder / "waiton.toml").write_text(text, encoding="utf-8")
    return load({"WAITON_CONFIG": str(folder / "waiton.toml"), **env})


def test_a_key_alone_makes_one_agent_on_the_model_of_the_environment(tmp_path: Path) -> None:
    found = settings(tmp_path, env={**KEYED, "WAITON_MODEL": "claude-opus-4-6"})
    assert [(a.name, a.default) for a in found.agents] == [("claude", True)]
    assert found.model is not None and found.model.name == "claude-opus-4-6" and KEY not in repr(found)
    assert settings(tmp_path).model is not None and settings(tmp_path).model.name == MODEL  # type: ignore[union-attr]


def test_without_a_key_there_is_no_agent_and_those_of_the_settings_are_known_as_keyless(tmp_path: Path) -> None:
    found = settings(tmp_path, "[agents.lead]\nprompt = 'You lead.'\n", env={})
    assert found.agents == () and found.keyless == ("lead",) and found.model is None


def test_the_only_agent_is_the_default_and_of_several_one_says_so(tmp_path: Path) -> None:
    assert settings(tmp_path, "[agents.lead]\n").agents[0].default
    two = "[agents.a]\n[agents.b]\ndefault = true\n"
    assert [a.name for a in settings(tmp_path, two).agents if a.default] == ["b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agents.a]\n[agents.b]\n", "one needs `default = true`"),
        ("[agents.a]\ndefault = true\n[agents.b]\ndefault = true\n", "both `default = true`"),
        ("[agents.a]\nmodl = 'x'\n", "`model`"),
        ("[models.x]\ninput = 3\n", "needs `input` and `output`"),
        ("[models.x]\ninput = -3\noutput = 1\n", "US dollars a million tokens"),
        ("[models.x]\ninput = 3\noutput = 1\ncached = 1\n", "`cached`"),
    ],
)
def test_settings_of_agents_that_do_not_read_name_the_setting(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=words.replace("[", r"\[")):
        settings(tmp_path, text)


def test_a_models_price_is_what_the_settings_say(tmp_path: Path) -> None:
    found = settings(tmp_path, '[models."claude-next"]\ninput = 2\noutput = 10\ncache_read = 0.5\n')
    assert found.model is not None
    assert found.model.prices["claude-next"] == price(2, 10, cache_read=0.5)


async def waiton(folder: Path, *args: str, env: Mapping[str, str], given: str = "") -> tuple[int, str]:
    """One command in a folder of its own; its exit status and what it said."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WAITON_", "ANTHROPIC_"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.cli", *args,
        cwd=folder, env={**kept, "PYTHONPATH": str(ROOT), **env},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(given.encode()), 50)
    return process.returncode or 0, out.decode()


@pytest.mark.anyio
async def test_the_doctor_says_whether_the_model_takes_the_key_and_knows_the_models(tmp_path: Path) -> None:
    async with claude() as api:
        env = {**KEYED, "ANTHROPIC_BASE_URL": api.url}
        _, fine = await waiton(tmp_path, "doctor", env=env)
        _, wrong = await waiton(tmp_path, "doctor", env={**env, "ANTHROPIC_API_KEY": "sk-other"})
        _, unknown = await waiton(tmp_path, "doctor", env={**env, "WAITON_MODEL": "gpt"})
        (tmp_path / "waiton.toml").write_text("[agents.lead]\n")
        _, keyless = await waiton(tmp_path, "doctor", env={"WAITON_CONFIG": str(tmp_path / "waiton.toml")})
    assert f"✓ agents     claude on {MODEL}" in fine
    assert "✗ agents" in wrong and "ANTHROPIC_API_KEY" in wrong and "sk-other" not in wrong
    assert "✗ agents" in unknown and "WAITON_MODEL" in unknown
    assert "✗ agents" in keyless and "[agents.lead] cannot work: there is no key" in keyless


@pytest.mark.anyio
async def test_a_check_at_the_terminal_knows_what_agents_cost_and_may_cost(tmp_path: Path) -> None:
    (tmp_path / "waiton.toml").write_text("[policy]\nmax_cost = 0.01\n")
    (tmp_path / "s.md").write_text("- all = list a b c d e f g\n- each all\n  > Spell {it}.\n")
    env = {**KEYED, "WAITON_CONFIG": str(tmp_path / "waiton.toml"), "WAITON_MODEL": "claude-haiku-4-5"}
    status, refused = await waiton(tmp_path, "check", "s.md", env=env)
    assert status == 2 and "7 agent calls would cost about $0.02; a run may cost $0.01 here" in refused
    (tmp_path / "waiton.toml").write_text("[policy]\nmax_cost = 1\n")
    status, fine = await waiton(tmp_path, "check", "s.md", env=env)
    assert status == 0 and "7 calls at most, about $0.02" in fine


@pytest.mark.anyio
async def test_a_terminal_runs_a_fan_out_and_shows_only_what_is_shown(tmp_path: Path) -> None:
    script = "- all = list a b c\n- answers = each all\n  > Spell {it}.\n- n = count answers\n- show n\n"
    (tmp_path / "s.md").write_text(script)
    async with claude(lambda body: "secret words") as api:
        status, out = await waiton(tmp_path, "run", "s.md", env={**KEYED, "ANTHROPIC_BASE_URL": api.url})
    assert status == 0 and out.rstrip().splitlines()[-1].strip() != "" and "3" in out and "secret words" not in out


@pytest.mark.anyio
async def test_a_terminal_whose_key_is_refused_says_so_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "s.md").write_text("- reply = ask\n  > Hello?\n- show reply\n")
    async with claude(lambda body: Fails(401, "authentication_error")) as api:
        status, out = await waiton(tmp_path, "run", "s.md", env={**KEYED, "ANTHROPIC_BASE_URL": api.url})
    assert status == 1 and "ANTHROPIC_API_KEY" in out and "Traceback" not in out
