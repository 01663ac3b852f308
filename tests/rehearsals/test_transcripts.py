"""Every op at work: the documents here are read as a manual and run as tests.

A section holds a script, a scenario and what everyone saw, each in a fence; `pytest --update-golden` rewrites the last.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.ops.builtin import BUILTIN
from bot.rehearse.lines import rehearsed
from bot.rehearse.rehearse import rehearse
from bot.rehearse.scenario import load

HERE = Path(__file__).parent
FENCE = re.compile(r"^(`{3,})(script|yaml|transcript)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """One `##` of a document: its blocks by name, and where the transcript's text stands in the file."""

    file: Path
    title: str
    script: str
    scenario: str
    transcript: str
    start: int
    end: int


def sections(file: Path) -> list[Section]:
    text = file.read_text("utf-8")
    heads = [(m.start(), m.group(1)) for m in re.finditer(r"^## (.+)$", text, re.MULTILINE)]
    found: list[Section] = []
    for (at, title), (until, _) in zip(heads, [*heads[1:], (len(text), "")], strict=True):
        blocks = {m.group(2): m for m in FENCE.finditer(text, at, until)}
        assert {"script", "transcript"} <= blocks.keys(), f"{file.name}: `{title}` lacks a block"
        told = blocks["transcript"]
        found.append(Section(file=file, title=title, script=blocks["script"].group(3),
                             scenario=blocks["yaml"].group(3) if "yaml" in blocks else "", transcript=told.group(3),
                             start=told.start(3), end=told.end(3)))  # fmt: skip
    return found


EVERY = [section for file in sorted(HERE.glob("*.md")) for section in sections(file)]


def played(section: Section) -> str:
    _, report = asyncio.run(rehearse(section.script, load(section.scenario)))
    return rehearsed(report).rstrip() + "\n"


@pytest.mark.parametrize("section", EVERY, ids=lambda s: f"{s.file.stem}: {s.title}")
def test_a_rehearsal_goes_as_its_document_says(section: Section, request: pytest.FixtureRequest) -> None:
    got = played(section)
    if request.config.getoption("--update-golden") and got != section.transcript:
        (now,) = [s for s in sections(section.file) if s.title == section.title]
        text = section.file.read_text("utf-8")
        section.file.write_text(text[: now.start] + got + text[now.end :], "utf-8")
        return
    assert got == section.transcript


def test_every_op_has_a_document() -> None:
    missing = {spec.name for spec in BUILTIN} - {file.stem for file in HERE.glob("*.md")}
    assert not missing
