"""What exists is told: an op by a transcript, a refusal by a section, an edit by a case, a channel and its streams by
what they have sent."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from bot.engine.edits import EDITS
from bot.ops.builtin import BUILTIN
from tests.architecture.source import ROOT, modules

TESTS = ROOT / "tests"
CODE = re.compile(r"[a-z]+(-[a-z]+)+\Z")
TOLD = re.compile(r"\[([a-z]+(?:-[a-z]+)+)\]$", re.MULTILINE)
NOTES = {
    "window-before-answer", "name-never-used", "choice-unhandled", "clock-past", "starts-without-waiting",
    "stream-silent", "anyone-settles", "window-on-holiday", "addressee-unreachable", "no-marker", "choice-addressee",
    "choice-keyword", "input-ungiven", "starts-beside-the-wait", "brace-not-filled", "many-at-once",
}  # fmt: skip
"""They refuse nothing."""
OTHER_WORDS = {"date-time"}
"""Of JSON Schema."""
UNTOLD = {"limit-ops", "limit-text", "limit-expressions", "text-encoding", "channel-off"}
"""Too long for a section, no text, or not of a rehearsal: told by tests of their own. No code is added here."""


def test_every_op_has_a_transcript() -> None:
    assert not {spec.name for spec in BUILTIN} - {file.stem for file in (TESTS / "rehearsals").glob("*.md")}


def test_every_refusal_has_a_section() -> None:
    found = {file.read_text("utf-8") for file in (TESTS / "language/refusals").glob("*.md")}
    told = {code for text in found for code in TOLD.findall(text)}
    untold = _codes() - told - NOTES - OTHER_WORDS
    assert not untold - UNTOLD, "write a section in tests/language/refusals"
    assert not UNTOLD & told, "it is told now: take it off the list"


def _codes() -> set[str]:
    return {
        node.value
        for tree in modules("bot/language", "bot/ops").values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.match(node.value)
    }


def test_every_edit_has_a_case() -> None:
    text = (TESTS / "engine/test_edits.py").read_text("utf-8")
    assert not [edit.key for edit in EDITS if f'"{edit.key}": Case(' not in text]


def test_every_channel_that_exists_runs_the_contract_suite() -> None:
    conftest = TESTS / "channels/conftest.py"
    said = conftest.read_text("utf-8") if conftest.exists() else ""
    assert not [name for name in _with("adapter.py") if name not in said]


def test_every_stream_that_a_platform_feeds_has_a_recorded_payload() -> None:
    missing = [
        node.value
        for name in _with("inbound.py")
        for path, tree in modules("channels").items()
        if path in ("channels/events.py", f"channels/{name}/streams.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(rf"{name}:[a-z_]+", node.value)
        and not list((TESTS / "streams/samples" / node.value).glob("*"))
    ]
    assert not missing


def _with(module: str) -> list[str]:
    """Channels that have this module."""
    return [file.parent.name for file in Path(ROOT / "channels").glob(f"*/{module}")]
