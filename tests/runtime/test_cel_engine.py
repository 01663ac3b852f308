"""What expressions give: CEL as JSON data needs it."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.errors import OpError
from bot.domain.values import ErrorValue
from bot.runtime.cel_engine import evaluate

NAMES: dict[str, Any] = {
    "doc": {"a": {"b": 1}, "rows": [{"mail": "a@b.c"}, {"name": "x"}]},
    "n": 2, "s": "abc", "xs": [1, 2, 3], "nul": None, "nullable": 5, "string": "mine",
    "answers": ["YES", ErrorValue("overloaded")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("has(doc.a.b)", True),
        ("has(doc.owner) ? doc.owner : 'nobody'", "nobody"),
        ("doc.rows.filter(r, has(r.mail)).map(r, r.mail)", ["a@b.c"]),
        ("n == 2.0 && 1 in [1.0] && n != 'x' && nul == null", True),
        ("n * 1.5", 3),
        ("n / 2 + 7 % 4", 4),
        ("-7 / 2", -3),
        ("5.0 / 2", 2.5),
        ("false && n", False),
        ("doc.owner == 'x' || true", True),
        ("xs.map(x, x > 1, x * 2)", [4, 6]),
        ("[null].map(x, x == null)", [True]),
        ("nullable + 1", 6),
        ("string", "mine"),
        ("type(n)", "int"),
        ("answers.filter(a, a == 'YES')", ["YES"]),
        ("answers[1]", ErrorValue("overloaded")),
        ("answers[1].error", "overloaded"),
        ("'A,b'.lowerAscii().split(',').join('-')", "a-b"),
        ("' x '.trim().replace('x', 'y') + 'abc'.substring(1, 2)", "yb"),
        ("timestamp('2026-01-01T00:00:00Z') + duration('1h')", "2026-01-01T01:00:00Z"),
        ("timestamp('2026-01-01T00:00:00Z').getFullYear()", 2026),
        ("string(1.0) + string(true)", "1true"),
        ("xs.exists(x, x > 2) && xs.all(x, x > 0) && xs.exists_one(x, x == 1)", True),
        ("{'a': [n]}", {"a": [2]}),
        ("'größe' + '\\u00e9'", "größeé"),
    ],
)
def test_an_expression_gives(text: str, value: Any) -> None:
    given = evaluate(text, NAMES)
    assert given == value
    assert type(given) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("doc.owner == 'x'", "`doc.owner` is not there: `doc` has a, rows"),
        ("doc.a.b.c", "`doc.a.b.c` is not there: `doc.a.b` is number"),
        ("xs[3]", "`xs[3]` is not there: `xs` has 3 elements"),
        ("xs[-1]", "`xs[-1]` is not there: indexes count from 0, and negative ones are not read"),
        ("n && true", "`n` beside `&&` is the number 2, not a boolean"),
        ("xs.filter(x, x)", "`x` in `filter` is the number 1, not a boolean"),
        ("n ? 1 : 2", "`n` before `?` is the number 2, not a boolean"),
        ("s + n", "`+` adds numbers or joins texts, not text and the number 2"),
        ("2 > 'a'", "`>` compares two of one kind, not the number 2 and text"),
        ("size(nul)", "`size` counts a list, a record or a text, not null"),
        ("1 / 0", "`/` by zero"),
        ("9223372036854775807 + 1", "`+` goes beyond what an integer holds (64 bits)"),
        ("int('x')", "`int` cannot read `x`"),
        ("s.matches('(')", "`(` is no pattern"),
        ("a = b", "`=` compares nothing; `==` does"),
        ("1.0 / 0.0", "the expression gives no finite number"),
    ],
)
def test_what_cannot_be_is_said_in_the_scripts_words(text: str, message: str) -> None:
    with pytest.raises(OpError) as said:
        evaluate(text, NAMES)
    assert str(said.value) == message


def test_an_integer_beyond_64_bits_is_said_when_it_comes_in() -> None:
    with pytest.raises(OpError, match="beyond what an expression's integers hold"):
        evaluate("x", {"x": 2**70})
