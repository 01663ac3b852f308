"""The payloads that are recorded for each stream of a messenger are read as what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from channels.base import Inbound
from channels.line import inbound as line
from channels.telegram import inbound as telegram

SAMPLES = Path(__file__).parents[1] / "streams/samples"
ME = telegram.Me(123456, "waiton_bot")


def read(name: str) -> Inbound:
    stream, _, sample = name.partition("/")
    raw = json.loads((SAMPLES / stream / f"{sample}.json").read_text("utf-8"))
    given = telegram.read(raw, ME) if stream.startswith("telegram") else line.read(raw)
    assert given is not None and given.raw == raw
    return given


@pytest.mark.parametrize(
    ("name", "conversation", "text", "data"),
    [
        ("telegram:message/private", "telegram:5512", "18:30 passt 👍", ""),
        ("telegram:message/mention-in-a-topic", "telegram:-1001500/7", "- a = list x\n- show a", ""),
        ("telegram:message/document", "telegram:5512", "run this", ""),
        ("telegram:tap/card", "telegram:5512", "approve", "w:a7KqPz19Lm:0"),
        ("telegram:tap/menu", "telegram:5512", "Book", "menu:book"),
        ("line:message/text", "line:U4af4980629a1b2c3d4e5f60718293a4b", "18:30でお願いします 🙏", ""),
        ("line:message/image", "line:U4af4980629a1b2c3d4e5f60718293a4b", "", ""),
        ("line:message/group-without-a-name", "line:Ca56f94637c01234567890abcdef01234", "hello", ""),
        ("line:tap/card", "line:U4af4980629a1b2c3d4e5f60718293a4b", "", "w:a7KqPz19Lm:0"),
        ("line:tap/menu", "line:U4af4980629a1b2c3d4e5f60718293a4b", "", "menu:book"),
        ("line:follow/new-friend", "line:U4af4980629a1b2c3d4e5f60718293a4b", "", ""),
    ],
)
def test_a_recorded_payload_is_read_as_what_it_is(name: str, conversation: str, text: str, data: str) -> None:
    given = read(name)
    assert given.kind == name.partition("/")[0].partition(":")[2]
    assert (given.conversation, given.text, given.data) == (conversation, text, data)


def test_every_recorded_payload_is_looked_at() -> None:
    mark = next(m for m in test_a_recorded_payload_is_read_as_what_it_is.pytestmark if m.name == "parametrize")
    files = {
        f"{file.parent.name}/{file.stem}" for kind in ("telegram", "line") for file in SAMPLES.glob(f"{kind}:*/*.json")
    }
    assert files == {name for name, *_ in mark.args[1]}
