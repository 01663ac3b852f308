"""The guide: every example in it is run, every picture and every link in it is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rehearsals.documents import Section, holds, sections

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
EVERY = [section for file in PAGES for section in sections(file, prose=True)]
PICTURE = re.compile(r"pictures/(\w+\.png)")
LARGEST = 120_000
"""Bytes of a picture."""
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("section", EVERY, ids=lambda s: f"{s.file.stem}: {s.title}")
def test_an_example_of_the_guide_goes_as_it_says(section: Section, request: pytest.FixtureRequest) -> None:
    holds(section, request, prose=True)


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=lambda p: p.name)
def test_what_a_page_leads_to_is_there(page: Path) -> None:
    found = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    missing = [link for link in found if not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


def test_the_guide_shows_every_picture_and_each_is_small() -> None:
    shown = {name for page in [*PAGES, DOCS.parent / "README.md"] for name in PICTURE.findall(page.read_text("utf-8"))}
    made = {file.name: file.stat().st_size for file in (DOCS / "pictures").iterdir()}
    assert set(made) == shown
    assert [name for name, size in made.items() if size > LARGEST] == []
