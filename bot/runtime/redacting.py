"""Keeps secrets out of what is recorded, shown and logged: each known one becomes dots, however it was quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

DOTS = "•••"
SHORTEST = 4
"""Characters of the shortest secret that is looked for: a shorter one would be found in ordinary words."""


class Redactor:
    """Replaces known secrets in texts and values. Knows none: changes nothing."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret.strip()) >= SHORTEST:
                forms |= {secret, secret.strip(), json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="")}
        ordered = sorted(forms, key=len, reverse=True)  # of two that overlap the longer one goes
        self._pattern = re.compile("|".join(re.escape(form) for form in ordered)) if ordered else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(DOTS, text) if self._pattern is not None else text

    def value(self, value: Any) -> Any:
        """A value of the language with its texts redacted, keys too; itself where it holds no secret."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self(key): self.value(one) for key, one in value.items()}
        return value
