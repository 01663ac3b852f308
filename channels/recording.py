"""A channel that keeps what it was told: for tests."""

from __future__ import annotations

from typing import Any

from channels.base import Capabilities, Later, Refused, Sent


class Recording:
    """`answers`: what `send` gives next, in order; then everything is accepted."""

    def __init__(self, name: str = "recording") -> None:
        self.name = name
        self.capabilities = Capabilities()
        self.sent: list[dict[str, Any]] = []
        self.settled: list[tuple[dict[str, Any], str]] = []
        self.answers: list[Sent | Later | Refused] = []

    async def send(self, delivery: dict[str, Any], conversation: str) -> Sent | Later | Refused:
        answer = self.answers.pop(0) if self.answers else Sent(ref=f"m{len(self.sent) + 1}")
        if isinstance(answer, Sent):
            self.sent.append({**delivery, "conversation": conversation})
        return answer

    async def settle(self, delivery: dict[str, Any], outcome: str) -> Sent | Later | Refused:
        self.settled.append((delivery, outcome))
        return Sent(ref=delivery.get("ref"))
