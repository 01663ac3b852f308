"""The tools of `waiton mcp` as clients see them: names, what each is for, what each takes (surfaces.md, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.agents.replans import TAKES
from bot.engine.edits import EDITS, RUN_EDITS
from bot.mcp.service import EDITED

INSTRUCTIONS = """\
Waiton runs plans that ask people, wait for evidence and call tools, for as long as that takes. Read the resource \
`waiton://language` before the first plan; `waiton://ops` has the ops that exist here. A plan is checked whole before \
anything runs: `refused` has every problem with its line and mend, and then nothing has started. Once a run has begun, \
its report says of each op whether its effect has `happened`: never put into another plan what has. People answer in \
their own time: `wait_for_run` returns within 50 seconds, call it again later. What you do is recorded as yours, for \
the person whom you act for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One tool. `reads`: it changes nothing; `repeats`: the same call again changes nothing more."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    reads: bool = False
    repeats: bool = False
    destroys: bool = False


RUN = {"type": "string", "description": "the run's id, as a report gave it (`run`)"}
JOB = {
    "type": "string",
    "description": "the job (a conversation) to run in; without it one of your own, where names that earlier runs "
    "bound are still held",
}
KEY = {
    "type": "string",
    "description": "a key of your own for this very start: the same call again with the same key starts nothing more "
    "and gives the first run",
}


def _taking(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


OFFERED: tuple[Offered, ...] = (
    Offered(
        name="run_program",
        title="Run a program",
        description="Checks a program (JSON: a list of ops, or an object with `program`) and runs it. The report "
        "names for each op whether its effect happened: `true`, `false`, `under way` or `unknown`. What happened "
        "must not be put into another program; a write that is `unknown` is settled by its owner. A program "
        "that writes may be `held` until a person taps Run.",
        schema=_taking(
            ("program",),
            program={
                "description": "the ops: a list, one op, `{program: […], inputs?, name?, title?, within?}`, or "
                "their text",
                "type": ["array", "object", "string"],
            },
            inputs={"type": "object", "description": "values of the program's declared inputs"},
            job=JOB,
            key=KEY,
        ),
        destroys=True,
    ),
    Offered(
        name="run_script",
        title="Run a script",
        description="Checks a script in markdown (one item an op), or takes a saved one by its name, and runs it. "
        "The report is that of `run_program`.",
        schema=_taking(
            ("script",),
            script={"type": "string", "description": "the script's text, or a saved script's name"},
            job=JOB,
            key=KEY,
        ),
        destroys=True,
    ),
    Offered(
        name="check",
        title="Check a script",
        description="Every problem of a script or program with its line, column and mend, or what it would do: how "
        "many ops, who is asked, what it writes. Nothing starts.",
        schema=_taking(
            ("script",), script={"type": ["string", "array", "object"], "description": "a script or a program"}
        ),
        reads=True,
    ),
    Offered(
        name="show_run",
        title="Show a run",
        description="A run's report as it stands: state, what was shown, names held, each op.",
        schema=_taking(("run",), run=RUN),
        reads=True,
    ),
    Offered(
        name="wait_for_run",
        title="Wait for a run",
        description="Waits until the run ends or, having moved, waits for others, 50 seconds at most; gives what "
        "has changed since your last look, and the whole report once it has ended.",
        schema=_taking(
            ("run",),
            run=RUN,
            seconds={"type": "number", "minimum": 0, "description": "at most; 30 where not given, 50 is the most"},
        ),
        reads=True,
    ),
    Offered(
        name="answer",
        title="Answer a question",
        description="Answers an ask that was put to you. Approvals and doubts are for people.",
        schema=_taking(
            ("run", "op", "with"),
            run=RUN,
            op={"type": "string", "description": "the ask's id or path"},
            **{"with": {"description": "the choice, the text, or an object of the fields"}},
            reason={"type": "string", "description": "a comment with the answer"},
        ),
        repeats=True,
    ),
    Offered(
        name="edit",
        title="Edit a run",
        description="Changes what is pending of a run: one edit a call. The edited plan is checked whole; a "
        "refused edit changes nothing. What has ended never changes.",
        schema=_taking(
            ("run",),
            run=RUN,
            op={"type": "string", "description": "the path or id of the op that is changed"},
            after={"type": "string", "description": "with `insert`: the op below which the new ones stand"},
            do={
                "type": "string",
                "enum": [kind.key for kind in RUN_EDITS],
                "description": "an edit of the whole run, in place of one of an op",
            },
            **{
                kind.key: {**TAKES[kind.takes][0], "description": f"{kind.label}: {TAKES[kind.takes][1]}"}
                for kind in EDITS
                if kind.key in EDITED
            },
            why={"type": "string", "description": "the reason, for the record"},
            rev={"type": "integer", "description": "the op's revision that you saw: one that has moved on refuses"},
        ),
        destroys=True,
    ),
)
"""In the order in which they are listed."""
