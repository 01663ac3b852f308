"""Agents of a rehearsal: the scenario's rows answer for the model, or the chooser of a walk does."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.agents import replans
from bot.domain.facts import Returned, returned
from bot.domain.values import ErrorValue, plain, text
from bot.engine import agents, asks
from bot.language.durations import seconds
from bot.rehearse.scenario import Scenario
from bot.runtime.commit import Site
from store import ops
from store.transaction import Database

JOB = "rehearsal"


class Missing(Exception):
    """An agent call that the scenario has no answer for."""


class Seen(dict[str, Any]):
    """One thing that somebody saw, and which it was of all that were seen."""

    number: int = 0


@dataclass(slots=True)
class Log:
    """What everyone saw, in order; `see` keeps the order across the lists."""

    deliveries: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    agent_calls: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def see(self, what: list[dict[str, Any]], entry: dict[str, Any]) -> None:
        seen = Seen(entry)
        self.count += 1
        seen.number = self.count
        what.append(seen)


class Chooser:
    """The decisions of one walk through the branches: those given, then the first way each."""

    def __init__(self, given: tuple[int, ...]) -> None:
        self.given = given
        self.taken: list[tuple[str, list[str], int]] = []

    def choose(self, about: str, ways: list[str]) -> int:
        at = len(self.taken)
        pick = self.given[at] if at < len(self.given) else 0
        self.taken.append((about, ways, pick))
        return pick


class ScriptedAgents:
    """The part of a player that answers for agents. `_later` and `_returned` are the player's."""

    scenario: Scenario
    chooser: Chooser | None
    db: Database
    site: Site
    log: Log
    now: datetime
    _replans: int

    @abstractmethod
    def _later(self, work: dict[str, Any], takes: Any, result: Callable[[], Returned]) -> None: ...

    @abstractmethod
    def _returned(self, work: dict[str, Any], fact: Returned) -> None: ...

    @abstractmethod
    def _at(self, at: datetime | None = None) -> str: ...

    def _row(
        self, rows: list[dict[str, Any]] | None, prompt: str, model: str | None, name: str | None
    ) -> dict[str, Any] | None:
        for row in rows or []:
            if row.get("when") is not None and str(row["when"]) not in prompt:
                continue
            if row.get("model") is not None and row["model"] != model:
                continue
            if row.get("name") is not None and row["name"] != name:
                continue
            return row
        return None

    def _lacks(self, work: dict[str, Any], prompt: str) -> None:
        row = self.db.read(lambda tx: ops.StoredRows(tx, work["run"], JOB).op(work["path"]))
        self.log.missing.append({"op": (row.id if row and row.id else work["path"]), "prompt": prompt})
        raise Missing

    def _logged(
        self, work: dict[str, Any], index: int | None, model: str | None, prompt: str, reply: Any, error: str | None
    ) -> None:
        row = self.db.read(lambda tx: ops.StoredRows(tx, work["run"], JOB).op(work["path"]))
        self.log.see(
            self.log.agent_calls,
            {
                "at": self._at(),
                "op": row.id if row and row.id else work["path"],
                "index": index,
                "model": model,
                "prompt": prompt,
                "reply": reply,
                "error": error,
            },
        )

    def _agent(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        name = body["who"].partition(":")[2] or None
        row = self._row(self.scenario.agents, body["prompt"], body["model"], name)
        if row is None:
            if self.chooser is not None:
                choices = body.get("choices") or ["an answer"]
                value = choices[self.chooser.choose(f"{work['path']}: the agent", choices)]
                self._returned(work, returned(work, self.now, value=value, who=body["who"]))
                return
            self._lacks(work, body["prompt"])
            return
        self._logged(work, None, body["model"], body["prompt"], row.get("reply"), row.get("fails"))
        if "fails" in row:
            self._later(
                work, row.get("takes"), lambda: returned(work, self.now, error=text(row["fails"]), who=body["who"])
            )
        else:
            self._later(
                work, row.get("takes"), lambda: returned(work, self.now, value=text(row.get("reply")), who=body["who"])
            )

    def _each(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        answers: list[Any] = []
        spans: list[float] = []
        choices = body.get("choices")
        for index, item in enumerate(body["list"]):
            if index >= body["most"]:
                answers.append(ErrorValue("the budget of agent calls is spent"))
                continue
            prompt = agents.element_prompt(body, item, index)[0]
            row = self._row(self.scenario.agents, prompt, body["model"], None)
            if row is None:
                if self.chooser is not None:
                    answers.append(choices[0]["value"] if choices else "an answer")
                    continue
                self._lacks(work, prompt)
                return
            self._logged(work, index, body["model"], prompt, row.get("reply"), row.get("fails"))
            spans.append(seconds(str(row.get("takes"))) or 0.0 if row.get("takes") else 0.0)
            answers.append(_each_answer(row, choices))
        fanout = self.scenario.workspace.fanout
        total = sum(max(spans[i : i + fanout]) for i in range(0, len(spans), fanout))
        self._later(work, f"{int(total)}s" if total else None, lambda: returned(work, self.now, value=answers))

    def _judge(self, work: dict[str, Any], body: dict[str, Any]) -> None:
        shown = json.dumps(plain(body["event"]["event"]), ensure_ascii=False)
        prompt = f"{body['check']}\n{shown}"
        row = self._row(self.scenario.judge, prompt, None, None)
        if row is None:
            if self.chooser is not None:
                which = ["agrees", "disagrees"][
                    self.chooser.choose(f"{work['path']}: the judge", ["agrees", "disagrees"])
                ]
                self._returned(work, returned(work, self.now, value={"verdict": which, "reason": None}))
                return
            self._lacks(work, prompt)
            return
        self._logged(work, None, None, prompt, row["verdict"], None)
        verdict = {"verdict": str(row["verdict"]), "reason": row.get("reason")}
        self._later(work, row.get("takes"), lambda: returned(work, self.now, value=verdict))

    def _replan(self, work: dict[str, Any]) -> None:
        rows = self.scenario.replan or []
        if self._replans >= len(rows):
            if self.chooser is not None:
                self._returned(work, returned(work, self.now, error="no replanning in a walk of the branches"))
                return
            self._lacks(work, "replan")
            return
        row = rows[self._replans]
        self._replans += 1
        self._logged(work, None, None, "replan", row.get("reason"), None)
        by, why, edits = "agent:claude", row.get("reason"), row.get("edits") or []
        refused, changes, _ = self.db.write(
            lambda tx: replans.take_edits(tx, self.site, work["run"], edits, by=by, why=why, now=self.now)
        )
        fact = returned(work, self.now, refused=refused, changes=changes, by=by, why=why, tried=edits)
        self._returned(work, fact)


def _each_answer(row: dict[str, Any], choices: list[dict[str, Any]] | None) -> Any:
    if "fails" in row:
        return ErrorValue(text(row["fails"]))
    reply = text(row.get("reply"))
    if not choices:
        return reply
    picked = asks.pick(choices, reply)
    return picked["value"] if picked else ErrorValue(f"`{reply}` is none of the choices, asked three times")
