"""Documents whose sections hold a script, a scenario and what everyone saw, each in a fence: read as a manual, run as
tests. `pytest --update-golden` rewrites the last."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.rehearse.lines import rehearsed
from bot.rehearse.rehearse import rehearse
from bot.rehearse.scenario import load

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


def sections(file: Path, *, prose: bool = False) -> list[Section]:
    """The sections of a document. `prose`: some hold no script."""
    text = file.read_text("utf-8")
    heads = [(m.start(), m.group(1)) for m in re.finditer(r"^## (.+)$", text, re.MULTILINE)]
    found: list[Section] = []
    ends = [at for at, _ in heads[1:]] + [len(text)]
    for (at, title), until in zip(heads, ends[: len(heads)], strict=True):
        blocks = {m.group(2): m for m in FENCE.finditer(text, at, until)}
        if not blocks and prose:
            continue
        assert {"script", "transcript"} <= blocks.keys(), f"{file.name}: `{title}` lacks a block"
        told = blocks["transcript"]
        found.append(Section(file=file, title=title, script=blocks["script"].group(3),
                             scenario=blocks["yaml"].group(3) if "yaml" in blocks else "", transcript=told.group(3),
                             start=told.start(3), end=told.end(3)))  # fmt: skip
    return found


def played(section: Section) -> str:
    _, report = asyncio.run(rehearse(section.script, load(section.scenario)))
    return rehearsed(report).rstrip() + "\n"


def holds(section: Section, request: pytest.FixtureRequest, *, prose: bool = False) -> None:
    """The rehearsal goes as the section says; rewrites the section where golden documents are updated."""
    got = played(section)
    if request.config.getoption("--update-golden") and got != section.transcript:
        (now,) = [s for s in sections(section.file, prose=prose) if s.title == section.title]
        text = section.file.read_text("utf-8")
        section.file.write_text(text[: now.start] + got + text[now.end :], "utf-8")
        return
    assert got == section.transcript
