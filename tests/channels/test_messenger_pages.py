"""The pages that the guide's pictures are taken of show what was sent, and nothing of it as markup."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from channels.base import Card, Choice, Sent
from channels.line.channel import Line
from channels.telegram.channel import Telegram
from tests.channels.line.world import made as made_line
from tests.channels.telegram.world import made as made_telegram
from tests.doubles.line import PEOPLE, LineStage
from tests.doubles.messenger_pages import Said, line_page, telegram_page
from tests.doubles.telegram import TelegramStage

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CARD = Card(
    kind="card",
    token="w:t",
    title="Extend the pilot?",
    text="Is 3 < 4 & <b>so</b>?",
    choices=(Choice(label="yes & go", data="w:t:0"),),
    params=(("service", "s4"),),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def shown(channel: Telegram | Line, where: str) -> None:
    assert isinstance(await channel.send(where, CARD, ident="1"), Sent)
    await channel.stop()


async def test_a_telegram_chat_is_drawn_with_its_text_and_keyboard() -> None:
    async with TelegramStage() as stage:
        await shown(made_telegram(stage.api), "telegram:101")
        page = telegram_page("Waiton", [Said("hi <you>"), *stage.api.of(101)])
    assert "Is 3 &lt; 4 &amp; &lt;b&gt;so&lt;/b&gt;?" in page and "hi &lt;you&gt;" in page
    assert '<span class="key">yes &amp; go</span>' in page and "<pre>service: s4</pre>" in page


async def test_a_line_chat_is_drawn_with_its_bubble_and_buttons() -> None:
    async with LineStage() as stage:
        await shown(made_line(stage.api), f"line:{PEOPLE['ana']}")
        page = line_page("Waiton", stage.api.shown)
    assert "Is 3 &lt; 4 &amp; &lt;b&gt;so&lt;/b&gt;?" in page
    assert '<span class="button primary">yes &amp; go</span>' in page
