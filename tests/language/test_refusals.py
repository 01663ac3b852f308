"""Golden documents of refusals: under each `##` a fenced script, then what is said about it in a fenced block. A
fenced `yaml` before them is the scenario whose world the script is checked in."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from bot.domain.catalog import Agent, Catalog, OpSpec, Person, Policy, StreamSpec, World
from bot.language.problems import Problem
from bot.language.script import examine
from bot.language.source import Source
from bot.ops.builtin import catalog
from bot.rehearse import scenario
from bot.rehearse.rehearse import surroundings

FOLDER = Path(__file__).parent / "refusals"
SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)
FENCE = re.compile(r"^(?P<run>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=run)$", re.MULTILINE | re.DOTALL)

WORLD = World(
    now=datetime.fromisoformat("2026-03-02T09:00:00+01:00"),
    owner="bo@acme.de",
    people=(
        Person(email="ana@acme.de", name="Ana", timezone="Europe/Berlin"),
        Person(email="bo@acme.de", name="Bo"),
        Person(email="jonas@acme.de", name="Jonas"),
    ),
    roles={"leads": ("ana@acme.de", "bo@acme.de")},
    agents=(Agent(name="scout", default=True),),
    streams={name: StreamSpec(name=name) for name in ("auth.first_signin", "camera.line_2")},
    judge=True,
    model="claude-haiku-4-5",
    policy=Policy(max_cost=5),
)
TOOLS: Catalog = catalog(
    OpSpec(name=name, summary="", kind="effect", shape=f"{name} key: value", tool=True, schema=schema)
    for name, schema in (
        ("github_list_prs", {"type": "object", "properties": {"repo": {"type": "string"}}}),
        ("deploy", None),
    )
)


def problems(script: str, described: str | None = None) -> tuple[Source, tuple[Problem, ...]]:
    """`described`: the text of a scenario; without it the world above."""
    if described is None:
        seen = examine(script, TOOLS, WORLD)
    else:
        told = scenario.load(described)
        tools, _, world = surroundings(told)
        seen = examine(script, tools, world, inputs=told.inputs)
    return seen.read.source, seen.problems


def sections() -> list[tuple[Path, str]]:
    return [
        (path, found["title"]) for path in sorted(FOLDER.glob("*.md")) for found in SECTION.finditer(path.read_text())
    ]


def script_and_block(path: Path, title: str) -> tuple[str, re.Match[str], int, str | None]:
    """The script of a section, the block of what is said with its place in the document, and its scenario."""
    document = path.read_text()
    section = next(found for found in SECTION.finditer(document) if found["title"] == title)
    *world, first, second = list(FENCE.finditer(section["text"]))[:3]
    if world and world[0]["language"] != "yaml":
        (first, second), world = (world[0], first), []
    return first["body"].removesuffix("\n"), second, section.start("text"), world[0]["body"] if world else None


CASES = [pytest.param(path, title, id=f"{path.stem}: {title}") for path, title in sections()]


@pytest.mark.parametrize(("path", "title"), CASES)
def test_a_refusal_reads_as_its_document_says(path: Path, title: str, pytestconfig: pytest.Config) -> None:
    script, block, start, world = script_and_block(path, title)
    source, found = problems(script, world)
    said = source.render(found)
    if pytestconfig.getoption("--update-golden"):
        document = path.read_text()
        at, end = start + block.start("body"), start + block.end("body")
        path.write_text(document[:at] + f"{said}\n" * bool(said) + document[end:])
        return
    assert said == block["body"].removesuffix("\n")


@pytest.mark.parametrize(("path", "title"), CASES)
def test_a_replacement_mends_its_problem_and_brings_no_other(path: Path, title: str) -> None:
    script, _, _, world = script_and_block(path, title)
    source, found = problems(script, world)
    for problem in found:
        if problem.fix is None:
            continue
        fix = source.report(problem)["fix"]
        lines = script.splitlines(keepends=True)
        at = sum(len(line) for line in lines[: fix["line"] - 1]) + fix["column"] - 1
        mended = script[:at] + fix["text"] + script[at + fix["length"] :]
        left = problems(mended, world)[1]
        assert len(left) < len(found), source.render(left)
        before = [p.message for p in found if p is not problem]
        assert all(p.message in before for p in left), f"{mended}\n{source.render(left)}"


@pytest.mark.parametrize(("path", "title"), CASES)
def test_problems_come_in_order_of_place_and_in_the_scripts_words(path: Path, title: str) -> None:
    script, _, _, world = script_and_block(path, title)
    source, found = problems(script, world)
    assert found
    places = [source.position(problem.start) for problem in found]
    assert places == sorted(places)
    for problem in found:
        words = f"{problem.message} {problem.mend or ''}".lower()
        told = re.sub(r"`[^`]*`", "", words)
        assert not re.search(r"\b(invalid|illegal|error|please|oops)\b", told), words
        report = source.report(problem)
        line = re.split(r"\r\n|\r|\n", script)[report["line"] - 1]
        assert report["column"] + report["length"] - 1 <= max(len(line), report["column"])
