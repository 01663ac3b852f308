"""The inputs that a sealed program is started with."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.values import text
from bot.language import types
from bot.language.check.context import Checking, problem
from bot.language.problems import Problem, did_you_mean, nearest


def check(c: Checking) -> Iterator[Problem]:
    declared = {i.name: i for i in c.plan.inputs or ()}
    for name, declaration in declared.items():
        if declaration.has_default:
            wanted = c.input_type(name)
            found = types.from_value(declaration.default)
            if declaration.default is not None and types.disjoint(wanted, found):
                yield problem(
                    c.literal(name),
                    "input-type",
                    f"the default of `{name}` is {types.spell(found)}, not {types.spell(wanted)}",
                )
    if c.given is None:
        return
    for name, declaration in declared.items():
        if name not in c.given:
            if not declaration.has_default:
                said = f": {declaration.description}" if declaration.description else ""
                yield problem(
                    c.literal(name),
                    "input-missing",
                    f"the input `{name}` is not given{said}",
                    "give it, or declare a default",
                )
            continue
        value, wanted = c.given[name], c.input_type(name)
        if declaration.choices and value not in declaration.choices:
            yield problem(
                c.literal(name),
                "input-type",
                f"the input `{name}` is one of {', '.join(f'`{text(v)}`' for v in declaration.choices)}; "
                f"given was `{text(value)}`",
            )
        elif types.disjoint(wanted, types.from_value(value)):
            yield problem(
                c.literal(name),
                "input-type",
                f"the input `{name}` is {types.spell(wanted)}; given was {types.spell(types.from_value(value))}",
            )
    for name in c.given:
        if name not in declared:
            near = nearest(name, [n for n in declared if n not in c.given])
            what = "this script has no inputs" if c.plan.inputs is None else "this script has no such input"
            yield problem((0, 0), "unknown-input", f"{what}; given was `{name}`", did_you_mean(near))
