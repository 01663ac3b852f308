"""Every op at work: the documents here are read as a manual and run as tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.ops.builtin import BUILTIN
from tests.rehearsals.documents import Section, holds, sections

HERE = Path(__file__).parent
EVERY = [section for file in sorted(HERE.glob("*.md")) for section in sections(file)]


@pytest.mark.parametrize("section", EVERY, ids=lambda s: f"{s.file.stem}: {s.title}")
def test_a_rehearsal_goes_as_its_document_says(section: Section, request: pytest.FixtureRequest) -> None:
    holds(section, request)


def test_every_op_has_a_document() -> None:
    missing = {spec.name for spec in BUILTIN} - {file.stem for file in HERE.glob("*.md")}
    assert not missing
