"""An edit before it is made: the plan's lines before and after, what it means, what stands in the way.

Made from the run as it is and as it would be (`bot/runtime/trial.py`); the rules are the engine's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from bot.domain.catalog import Catalog, World
from bot.domain.record import OpRow
from bot.domain.values import text
from bot.engine import asks, words
from bot.language.write_markdown import as_markdown
from bot.runtime.desk import Said
from bot.runtime.trial import Standing, Trial
from bot.server import phrases, rail

Clock = Callable[[datetime], str]
"""How a moment is written: in words, or for a page to put into the reader's zone."""
AROUND = 1
"""Lines shown on either side of what changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One line of a comparison. `mark`: ` ` as before, `-` gone, `+` new, `…` left out."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an edit would do. `steps`: the rail's lines compared; `script`: the plan as text, where it changes;
    `means`: what follows at once. `problems`: as data, where it is refused."""

    said: Said
    steps: Sequence[Changed] = ()
    script: Sequence[Changed] = ()
    means: Sequence[str] = ()
    before: Sequence[str] = field(default=())
    after: Sequence[str] = field(default=())

    def report(self) -> dict[str, Any]:
        """As the API gives it."""
        return {
            "preview": True,
            "accepted": self.said.accepted,
            "text": self.text,
            "rev": self.said.rev,
            "means": list(self.means),
            "before": list(self.before),
            "after": list(self.after),
            "diff": [f"{line.mark} {line.text}" for line in self.steps],
            "script": [f"{line.mark} {line.text}" for line in self.script],
            "problems": list(self.said.problems),
        }

    @property
    def text(self) -> str:
        """What would be said, as something that has not happened."""
        said = self.said.text
        return f"Would be done:{said[5:]} Nothing has changed yet." if said.startswith("Done:") else said


def preview(said: Said, trial: Trial | None, world: World, catalog: Catalog, clock: Clock | None = None) -> Preview:
    """`clock`: how moments are written; without it in the workspace's zone."""
    if trial is None:
        return Preview(said=said)
    clock = clock or (lambda at: words.clock(at, world, world.now))
    before, after = (_lines(one, world, catalog, clock) for one in (trial.before, trial.after))
    scripts = [as_markdown(one.plan, catalog).rstrip("\n").split("\n") for one in (trial.before, trial.after)]
    return Preview(
        said=said,
        steps=list(compared(before, after)),
        script=list(compared(*scripts)) if scripts[0] != scripts[1] else (),
        means=list(dict.fromkeys(_meaning(trial, world, clock))),
        before=before,
        after=after,
    )


def compared(before: list[str], after: list[str]) -> Iterator[Changed]:
    """The lines that differ, each change with its neighbours; what lies before and between is left out."""
    for number, group in enumerate(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(AROUND)):
        if number or group[0][1] > 0:
            yield Changed(mark="…", text="")
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (Changed(mark=" ", text=line) for line in before[a:b])
                continue
            yield from (Changed(mark="-", text=line) for line in before[a:b])
            yield from (Changed(mark="+", text=line) for line in after[c:d])


def _lines(one: Standing, world: World, catalog: Catalog, clock: Clock) -> list[str]:
    laid = rail.Rail(plan=one.plan, run=one.run, rows=one.rows, world=world, catalog=catalog).laid()
    return [told(line, clock) for line in laid if line.shape != "now"]


def told(line: rail.Line, clock: Clock) -> str:
    """A line of the rail as text."""
    said = [line.title + (f" ({line.id})" if line.id else "")]
    if line.shape == "wait" and line.until:
        said.append(f"waiting, until {clock(line.until)}")
    elif line.state and line.state not in ("planned", "done"):
        said.append(line.state)
    said += [one for one in line.sub if not one.startswith("attempt")]
    return "  " * line.depth + " · ".join(said)


def _meaning(trial: Trial, world: World, clock: Clock) -> Iterator[str]:
    """What follows at once: who is asked or no more, which windows move, what starts, what is left out."""
    before, after = trial.before, trial.after
    if before.run.state != after.run.state:
        yield f"The run is {after.run.state} from then on"
    for path, row in after.rows.items():
        old = before.rows.get(path)
        if old is None or old == row:
            continue
        yield from _moved(old, row, world, clock)
    for _, step in trial.outcome.steps():
        for made in step.deliveries:
            whom = "everybody who reads the job" if made.to == "job" else words.called(made.to, world)
            said = phrases.short(str(made.card.get("text") or made.card.get("title") or ""), 50)
            yield f"{whom[:1].upper()}{whom[1:]} {'is asked' if made.kind == 'card' else 'is told'} “{said}”"
        for call in step.calls:
            if call.kind == "tool":
                yield f"`{call.body.get('tool', call.path)}` is called at once"


def _moved(old: OpRow, row: OpRow, world: World, clock: Clock) -> Iterator[str]:
    name = f"`{row.id or row.path}`"
    if old.data.get("to") != row.data.get("to") and old.data.get("to"):
        gone = [who for who in asks.spelt(old) if who not in asks.spelt(row)]
        if gone:
            yield f"{name} waits on {words.names(asks.spelt(row), world)}, no more on {words.names(gone, world)}"
    if row.state == "waiting" and old.due and row.due and old.due != row.due:
        yield (
            f"{name} waits until {clock(row.due)}, "
            f"{'longer' if row.due > old.due else 'shorter'} than until {clock(old.due)}"
        )
    if old.state != row.state:
        why = row.data.get("error")
        ends = {"done": "is done", "skipped": "is left out", "cancelled": "is withdrawn", "planned": "is planned again"}
        said = ends.get(row.state, f"is {row.state}")
        if row.state == "done" and row.has_value and row.op == "ask":
            said = f"is answered with `{phrases.short(text(row.value), 40)}`"
        yield f"{name} {said}" + (f": {why}" if why and row.state == "skipped" else "")


def problem_lines(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Problems as a terminal shows them."""
    lines: list[str] = []
    for one in problems:
        at = f"line {one['line']}, column {one['column']}: " if one["line"] else ""
        lines.append(f"{at}{one['message']} [{one['code']}]")
        if one["mend"]:
            lines.append(f"  = {one['mend']}")
    return lines
