"""The examples that come along: each reads well, and goes to its end by its scenario."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot import examples
from bot.domain.catalog import Person, World
from bot.rehearse.rehearse import rehearse
from bot.rehearse.scenario import load
from bot.server.examples import example, offered
from tests.runtime.world import PEOPLE, START


@pytest.mark.parametrize("name", examples.NAMES)
def test_an_example_goes_to_its_end_by_its_scenario(name: str) -> None:
    status, report = asyncio.run(rehearse(examples.script(name) or "", load(examples.scenario(name))))
    assert (status, report["state"], report["notes"]) == (0, "done", [])
    assert len(examples.title(name)) > 10


def test_every_file_of_the_folder_is_an_example() -> None:
    found = {file.stem for file in Path(examples.__file__).parent.glob("*.md")}
    assert found == set(examples.NAMES) and set(examples.NEEDS) <= found


def test_the_room_offers_what_can_run_here_addressed_to_who_is_here() -> None:
    world = World(now=START, people=PEOPLE, roles={"leads": ("ana@acme.de",)}, channels=frozenset({"web"}))
    names = [name for name, _ in offered(world)]
    assert "ask" in names and not {"booking", "fanout"} & set(names)
    assert "@ana" in (example("ask", world, "bo@acme.de") or "") and "role:leads" in (example("ask", world, "x") or "")
    two = replace(world, people=(Person(email="mo@x.org", name="Mo B."), Person(email="al@x.org", name="Al")), roles={})
    text = example("evidence", two, "al@x.org") or ""
    assert "ask mo@x.org done" in text and "@jonas" not in text and "Mo B. says done" in text
    assert example("nothing", world, "x") is None
    assert json.dumps(offered(world))
