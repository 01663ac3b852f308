"""How the code is: sizes, docstrings, where time and chance come from, which words people never read."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import functions, lines, modules, texts

OURS = ("bot", "channels", "store")
LONGEST_MODULE = 620
ONE_SUBJECT = {"bot/language/cel.py": 710, "bot/runtime/cel_engine.py": 710}
"""Longer, and about one thing: a notation read, a notation evaluated. They grow no further."""
LONGEST_FUNCTION = 65
CHANCE = {
    "bot/domain/ids.py",
    "bot/runtime/clock.py",
    "bot/runtime/desk.py",
    "bot/runtime/leases.py",
    "bot/server/api.py",
    "bot/server/hooks.py",
    "bot/server/room.py",
    "bot/terminal.py",
    "bot/wiring.py",
}
"""Where ids and secrets are made."""
CLOCK = {"bot/runtime/clock.py"}
WORDS = re.compile(r"\b(please|oops|invalid|illegal)\b", re.IGNORECASE)


@pytest.mark.parametrize("path", modules(*OURS))
def test_a_module_has_one_subject(path: str) -> None:
    assert lines(path) <= ONE_SUBJECT.get(path, LONGEST_MODULE), "look for the second subject"


def test_what_is_named_as_long_is_long() -> None:
    assert all(lines(path) > LONGEST_MODULE for path in ONE_SUBJECT)


def test_a_function_fits_a_screen() -> None:
    long = {
        f"{path}:{f.lineno} {f.name}": size
        for path, tree in modules(*OURS).items()
        for f in functions(tree)
        if (size := (f.end_lineno or f.lineno) - f.lineno + 1) > LONGEST_FUNCTION
    }
    assert not long


def test_every_module_says_what_it_is_for() -> None:
    assert not [path for path, tree in modules(*OURS).items() if tree.body and not ast.get_docstring(tree)]


UNDOCUMENTED = {
    "bot/domain/catalog.py Agent", "bot/domain/ids.py indexes_of", "bot/domain/values.py load",
    "bot/engine/asks.py card", "bot/engine/evidence.py clock_struck", "bot/engine/failure.py stop_ops",
    "bot/engine/gates.py approver_of", "bot/engine/regions.py end_run", "bot/engine/replanning.py ask_agent",
    "bot/engine/replanning.py silent", "bot/engine/scope.py record", "bot/engine/surgery.py removed",
    "bot/engine/surgery.py replaced", "bot/engine/tenses.py tense", "bot/engine/view.py Rows",
    "bot/engine/waits.py open_window", "bot/engine/waits.py withdraw", "bot/engine/words.py either",
    "bot/engine/words.py span", "bot/engine/words.py ticked", "bot/runtime/clock.py Clock",
    "bot/runtime/clock.py SystemClock", "bot/runtime/files.py Files", "bot/runtime/files.py decoded",
    "bot/runtime/tools.py tool_spec",
}  # fmt: skip
"""Public and without a docstring still; no name is added here."""


def test_what_is_public_in_the_core_and_the_shell_says_what_it_gives() -> None:
    bare = {
        f"{path} {node.name}"
        for path, tree in modules("bot/domain", "bot/engine", "bot/runtime").items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    }
    assert not bare - UNDOCUMENTED


def test_time_and_chance_come_in_by_few_doors() -> None:
    for path, tree in modules(*OURS).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                if name in ("datetime.now", "datetime.utcnow", "date.today", "time.time"):
                    assert path in CLOCK, f"{path}:{node.lineno} reads the machine's clock: {name}"
                if name.startswith(("secrets.", "random.", "uuid.")) and name != "secrets.compare_digest":
                    assert path in CHANCE, f"{path}:{node.lineno} makes chance: {name}"


def test_nobody_is_told_please_oops_or_invalid() -> None:
    said = [
        f"{path}:{node.lineno} {node.value[:60]}"
        for path, tree in modules("bot", "channels").items()
        for node in texts(tree)
        if WORDS.search(str(node.value))
    ]
    assert not said
