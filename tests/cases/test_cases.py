"""Every case from the field comes out right in rehearsal (the cases' README says what is asserted)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from bot.rehearse.rehearse import rehearse
from bot.rehearse.scenario import load

HERE = Path(__file__).parent
FOLDERS = sorted(p for p in HERE.iterdir() if (p / "expect.json").exists())


def _judge() -> Any:
    spec = importlib.util.spec_from_file_location("judge_of_cases", HERE / "judge.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


JUDGE = _judge()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_case_from_the_field_comes_out_right(folder: Path) -> None:
    expected = json.loads((folder / "expect.json").read_text("utf-8"))
    scenario = folder / "scenario.yaml"
    told = load(scenario.read_text("utf-8") if scenario.exists() else "")
    code, found = asyncio.run(rehearse(JUDGE.script_of(folder)[0].read_bytes(), told))
    assert JUDGE.judge(expected, code, json.loads(json.dumps(found))) == []


@pytest.mark.parametrize("name", ["seed-onboarding-after-nudge", "flow-map-order-and-index", "crash-owner-says-retry"])
def test_the_same_rehearsal_gives_the_same_bytes(name: str) -> None:
    folder = HERE / name
    text, scenario = JUDGE.script_of(folder)[0].read_bytes(), (folder / "scenario.yaml").read_text("utf-8")
    first, second = (json.dumps(asyncio.run(rehearse(text, load(scenario)))) for _ in range(2))
    assert first == second
