"""Plans as they come, and the world that answers them: what the property tests draw from.

Every choice is made by a `Random` that is handed in. What an op gets (a tool's value, an answer) depends on its path
and attempt alone, so that the same plan in another order meets the same world.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from bot.domain.catalog import Policy, StreamSpec
from bot.domain.changes import Call
from bot.domain.facts import Answered, Arrived, Edited, Overdue, Returned
from bot.engine import asks
from bot.engine.turn import Turn
from tests.engine.rows import ANA, BO, WORLD, Drive

STREAMS = tuple(f"s{n}" for n in range(40))
WORLD_OF_PLANS = replace(
    WORLD,
    streams={name: StreamSpec(name=name) for name in STREAMS},
    policy=Policy(approve={"deploy": "role:leads"}),
)


@dataclass(slots=True)
class Planner:
    """Writes a plan. `failing`: how often an op may fail or miss what it needs and so halt its region."""

    rng: Random
    halting: bool = False
    until: bool = False
    missing: bool = True
    gates: bool = True
    agents: bool = True
    loops: bool = True
    windows: tuple[str, ...] = ("40d",)
    most: int = 14
    made: int = 0
    streams: int = 0
    names: int = 0

    def program(self) -> list[dict[str, Any]]:
        return self.region([], 0)

    def region(self, seen: list[str], depth: int, least: int = 1) -> list[dict[str, Any]]:
        seen = list(seen)
        found: list[dict[str, Any]] = []
        for _ in range(self.rng.randint(least, 4 if depth < 2 else 2)):
            if self.made >= self.most and found:
                break
            op = self.op(seen, depth)
            found.append(op)
            if op.get("id"):
                seen.append(op["id"])
        return found

    def op(self, seen: list[str], depth: int) -> dict[str, Any]:
        self.made += 1
        kinds = ["let", "tool", "tool", "ask", "ask", "expect", "say", "clock"]
        if depth < 3 and self.made < self.most:
            kinds += ["if", "parallel"] + (["map", "map", "repeat"] if self.loops else [])
        kind = self.rng.choice(kinds)
        op: dict[str, Any] = getattr(self, kind)(seen, depth)
        if self.rng.random() < 0.7 or kind == "repeat":
            self.names += 1
            op["id"] = op.get("id") or f"n{self.names}"
        above = [name for name in seen if name != "item"]
        if above and self.rng.random() < 0.25:
            op["after"] = self.rng.choice(above) + self.rng.choice(["", "?"])
        return op

    def ref(self, seen: list[str]) -> Any:
        if seen and self.rng.random() < 0.6:
            name = self.rng.choice(seen)
            return f"${name}" if self.rng.random() < 0.6 else f"${name}?"
        return self.rng.randint(0, 9)

    def let(self, seen: list[str], depth: int) -> dict[str, Any]:
        above = [name for name in seen if name != "item"]
        if above and self.rng.random() < 0.5:
            name = self.rng.choice(above)
            return {"op": "core.let", "be": self.rng.choice([name, f"ops.{name}.state", f"[{name}, 1]"])}
        return {"op": "core.let", "be": str(self.rng.randint(0, 9))}

    def tool(self, seen: list[str], depth: int) -> dict[str, Any]:
        names = ["fetch", "write", "look"] + (["deploy"] if self.gates else [])
        op: dict[str, Any] = {"op": self.rng.choice(names), "params": {"x": self.ref(seen)}}
        if self.rng.random() < 0.3:
            op["retry"] = {"max": self.rng.randint(1, 2), "backoff": "10s"}
        self.rule(op, seen, depth)
        return op

    def rule(self, op: dict[str, Any], seen: list[str], depth: int) -> None:
        """An `onError`, needed where nothing may halt."""
        draw = self.rng.random()
        if draw < 0.3 and depth < 3:
            op["id"] = self.name()
            inner = [{"op": "core.let", "be": "7", **({"id": op["id"]} if self.rng.random() < 0.5 else {})}]
            op["onError"] = self.region(seen, depth + 1) + inner
        elif draw < 0.6 or not self.halting:
            op["onError"] = self.rng.choice(["continue", {"default": 5}])

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def miss(self, op: dict[str, Any], seen: list[str], depth: int) -> None:
        draw = self.rng.random()
        if draw < 0.5 and depth < 3:
            op["id"] = self.name()
            op["onMiss"] = self.region(seen, depth + 1)
            if self.rng.random() < 0.4:
                op["onMiss"].append({"op": "core.let", "id": op["id"], "be": "3"})
        elif not self.halting or draw < 0.75:
            op["onError"] = self.rng.choice(["continue", {"default": "late"}])

    def ask(self, seen: list[str], depth: int) -> dict[str, Any]:
        to = self.rng.choice(["ana@acme.de", "role:leads"] + (["agent"] if self.agents else []))
        op: dict[str, Any] = {
            "op": "ask",
            "to": to,
            "question": "go?",
            "choices": ["yes", "no"],
            "within": self.rng.choice(self.windows),
        }
        if to == "role:leads" and self.rng.random() < 0.5:
            op["need"] = self.rng.choice([2, "all"])
        if self.rng.random() < 0.3:
            op["question"] = f"go with {self.ref(seen)}?"
        self.miss(op, seen, depth)
        return op

    def expect(self, seen: list[str], depth: int) -> dict[str, Any]:
        self.streams += 1
        op: dict[str, Any] = {
            "op": "expect",
            "evidence": STREAMS[self.streams % len(STREAMS)],
            "within": self.rng.choice(self.windows),
        }
        self.miss(op, seen, depth)
        return op

    def clock(self, seen: list[str], depth: int) -> dict[str, Any]:
        return {"op": "expect", "evidence": "clock", "in": self.rng.choice(["5m", "2h"])}

    def say(self, seen: list[str], depth: int) -> dict[str, Any]:
        op: dict[str, Any] = {"op": "say", "body": f"it is {self.ref(seen)}"}
        if self.rng.random() < 0.4:
            op["to"] = self.rng.choice(["ana@acme.de", "role:leads"])
        return op

    def cond(self, seen: list[str]) -> str:
        seen = [name for name in seen if name != "item"]
        if seen and self.rng.random() < 0.4:
            return f"ops.{self.rng.choice(seen)}.state == 'done'"
        return self.rng.choice(["true", "false"])

    def _if(self, seen: list[str], depth: int) -> dict[str, Any]:
        op: dict[str, Any] = {"op": "core.if", "cond": self.cond(seen), "then": self.region(seen, depth + 1)}
        if self.rng.random() < 0.5:
            op["else"] = self.region(seen, depth + 1)
        return self.tolerant(op)

    def tolerant(self, op: dict[str, Any]) -> dict[str, Any]:
        if self.rng.random() < 0.4:
            op["onError"] = self.rng.choice(["continue", {"default": 0}])
        return op

    def map(self, seen: list[str], depth: int) -> dict[str, Any]:
        op: dict[str, Any] = {
            "op": "core.map",
            "over": list(range(self.rng.randint(0, 4))),
            "body": self.region([*seen, "item"], depth + 1),
        }
        if self.rng.random() < 0.5:
            op["maxConcurrency"] = self.rng.randint(1, 3)
        if self.rng.random() < 0.5:
            op["onItemError"] = self.rng.choice(["halt", "continue", {"default": -1}])
        return self.tolerant(op)

    def parallel(self, seen: list[str], depth: int) -> dict[str, Any]:
        names = ["left", "right", "mid"][: self.rng.randint(1, 3)]
        op: dict[str, Any] = {"op": "flow.parallel", "branches": {n: self.region(seen, depth + 1) for n in names}}
        if self.rng.random() < 0.4:
            op["failFast"] = self.rng.choice([True, False])
        if self.until and self.rng.random() < 0.4:
            op["until"] = 1
        return self.tolerant(op)

    def repeat(self, seen: list[str], depth: int) -> dict[str, Any]:
        body = self.region(seen, depth + 1)
        until = self.rng.choice(["true", "false", "last == 3"])
        op: dict[str, Any] = {"op": "core.repeat", "max": self.rng.randint(1, 3), "until": until, "body": body}
        if self.rng.random() < 0.4:
            op["every"] = "1m"
        self.miss(op, seen, depth)
        if "onMiss" not in op and "onError" not in op and not self.halting:
            op["onError"] = "continue"
        return op


setattr(Planner, "if", Planner._if)


def chance(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    told = hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).digest()
    return int.from_bytes(told[:6], "big") / 2**48


Act = tuple[str, Callable[[], None]]


@dataclass(slots=True)
class Life:
    """Plays the world to a run until it has ended: whatever may happen next happens in an order that `rng` draws.

    `fails`: how often an attempt fails. `silent`: how often nobody answers, so that the clock must."""

    drive: Drive
    rng: Random
    seed: int
    fails: float = 0.2
    silent: float = 0.0
    agents_fail: bool = False
    repeats: bool = False
    meddles: float = 0.0
    retries: int = 0
    outcomes: dict[str, Any] = field(default_factory=dict)
    """What a tool gives whatever `fails` says: a value, or an exception."""
    happened: list[str] = field(default_factory=list)

    def play(self, most: int = 2_000) -> Drive:
        for _ in range(most):
            if self.drive.run.ended is not None and not self.acts(calls_only=True):
                if self.drive.run.state == "failed" and self.retries > 0:
                    self.retries -= 1
                    self.drive.fact(Edited(at=self.drive.now, by=BO, edit={"run": "retry"}))
                    assert self.drive.replies[-1].accepted, self.drive.reply
                    continue
                return self.drive
            acts = self.acts()
            if not acts and self.drive.run.state == "paused":
                self.drive.fact(Edited(at=self.drive.now, by=BO, edit={"run": "resume"}))
                continue
            if not acts:
                assert self.drive.run.ended is not None, f"nothing can happen: {self.drive.states()}"
                return self.drive
            if self.meddles and self.rng.random() < self.meddles:
                self.meddle()
                continue
            name, act = self.rng.choice(acts)
            self.happened.append(name)
            if not self.silent:
                self.drive.now += timedelta(seconds=1)
            act()
        raise AssertionError("the run does not come to an end")

    def acts(self, *, calls_only: bool = False) -> list[Act]:
        drive, found = self.drive, list[Act]()
        if drive.queue:
            found.append(("delivery", lambda: drive.deliver(drive.queue.pop(0))))
        for key, call in sorted(drive.calls.items()):
            if call.kind != "stop-run":
                found.append((f"call {key}", lambda k=key, c=call: self.perform(k, c)))
        if calls_only:
            return found
        for row in sorted(drive.rows.ops.values(), key=lambda r: r.path):
            if row.state == "gated" and not self.mute(row.path):
                found.append((f"gate {row.path}", lambda r=row: self.decide(r.path)))
            elif row.state == "uncertain":
                found.append((f"doubt {row.path}", lambda r=row: self.doubt(r.path)))
            elif row.state == "waiting" and row.op == "ask" and "since" in row.data and not self.mute(row.path):
                found.append((f"ask {row.path}", lambda r=row: self.answer(r.path)))
            elif (
                row.state == "waiting"
                and row.op == "expect"
                and row.data["streams"] != ["clock"]
                and not self.mute(row.path)
            ):
                found.append((f"event {row.path}", lambda r=row: self.event(r.data["streams"][0])))
        timers = [k for k in drive.timers if self.mortal(k)]
        if timers and (not found or self.silent or self.rng.random() < 0.3):
            first = min(timers, key=lambda k: (drive.timers[k], k))
            found.append((f"time {first}", lambda: self.strike(first)))
        return found

    def mortal(self, key: tuple[str, str]) -> bool:
        """Whether this timer may come due: pauses and clocks always, windows where somebody may be silent."""
        return bool(self.silent) or key[1] in ("retry", "pause", "clock", "remind")

    def mute(self, path: str) -> bool:
        return chance(self.seed, "mute", path) < self.silent

    def meddle(self) -> None:
        """Some edit or other, which may be refused."""
        drive, rng = self.drive, self.rng
        if drive.run.ended is not None:
            return
        path = rng.choice(sorted(drive.rows.ops))
        edit = rng.choice(
            [
                {"op": path, "skip": True},
                {"op": path, "withdraw": True},
                {"op": path, "to": "jonas@acme.de"},
                {"op": path, "to": "role:leads"},
                {"op": path, "within": "50d"},
                {"op": path, "remove": True},
                {
                    "after": path,
                    "insert": [{"op": "core.let", "be": "1"}, {"op": "ask", "to": "ana@acme.de", "question": "more?"}],
                },
                {"op": path, "replace": {"op": "core.let", "be": "2"}},
                *([{"run": "cancel"}] if rng.random() < 0.1 else []),
                {"run": "pause"},
                {"run": "resume"},
                {"op": path, "accept": True},
            ]
        )
        before = dict(drive.rows.ops), dict(drive.rows.regions), list(drive.cards), drive.plan
        drive.fact(Edited(at=drive.now, by=BO, edit=edit))
        if drive.run.state == "paused" and rng.random() < 0.5:
            drive.fact(Edited(at=drive.now, by=BO, edit={"run": "resume"}))
        elif not drive.replies[-1].accepted:
            assert (dict(drive.rows.ops), dict(drive.rows.regions), list(drive.cards), drive.plan) == before, edit

    # --- what each of them does -------------------------------------------------------------------------------
    def strike(self, key: tuple[str, str]) -> None:
        at = self.drive.timers.pop(key)
        self.drive.now = max(self.drive.now, at)
        self.twice(Overdue(at=self.drive.now, path=key[0], kind=key[1], due=at))

    def perform(self, key: tuple[str, int, str, int], call: Call) -> None:
        drive = self.drive
        if call.body.get("tool") in self.outcomes:
            drive.returns[call.body["tool"]] = self.outcomes[call.body["tool"]]
            drive.perform(key)
            return
        if call.kind in ("cel", "early"):
            drive.perform(key)
            return
        drive.calls.pop(key)
        draw = chance(self.seed, "call", call.path, call.attempt)
        error = "it broke" if draw < self.fails and (call.kind == "tool" or self.agents_fail) else None
        lost = draw < self.fails / 4 and call.kind == "tool" and not call.idempotent
        value: Any = int(draw * 1000)
        extra: dict[str, Any] = {}
        if call.kind == "agent":
            value, extra = ("yes" if draw < 0.5 else "no"), {"who": call.body["who"]}
        self.twice(
            Returned(
                at=drive.now,
                path=call.path,
                attempt=call.attempt,
                kind=call.kind,
                value=value,
                error=error,
                lost=lost,
                extra=extra,
            )
        )

    def decide(self, path: str) -> None:
        draw = chance(self.seed, "gate", path)
        who = self.drive.rows.ops[path].data["gate"]["to"][0]
        self.twice(
            Answered(
                at=self.drive.now,
                path=path,
                value="approve" if draw < 0.8 else "decline",
                by=who,
                reason=None if draw < 0.8 else "no",
            )
        )

    def doubt(self, path: str) -> None:
        row = self.drive.rows.ops[path]
        word = ["happened", "skip", "retry"][int(chance(self.seed, "doubt", path, row.attempt) * 3)]
        self.twice(Answered(at=self.drive.now, path=path, value=word, by=row.data["gate"]["to"][0]))

    def answer(self, path: str) -> None:
        row = self.drive.rows.ops[path]
        given = {a["by"] for a in row.data["answers"]}
        voters = asks.voters(Turn(self.drive.view(), self.drive.now), row)
        who = next((w for w in voters if w not in given and not w.startswith("agent")), ANA)
        word = "yes" if chance(self.seed, "ask", path) < 0.5 else "no"
        self.twice(Answered(at=self.drive.now, path=path, value=word, by=who))

    def event(self, stream: str) -> None:
        self.drive_event(stream)

    def drive_event(self, stream: str) -> None:
        drive = self.drive
        event = {
            "id": f"{stream}/{len(drive.rows.stored)}",
            "stream": stream,
            "from": None,
            "conversation": None,
            "at": drive.now.isoformat(),
            "event": {},
        }
        drive.rows.stored.append(event)
        self.twice(Arrived(at=drive.now, stream=stream, event=event))

    def twice(self, fact: Any) -> None:
        """Applies a fact, and where so wished once more: then nothing changes, and the reply is the same."""
        drive = self.drive
        drive.fact(fact)
        if not self.repeats:
            return
        said = drive.replies[-1:]
        before = dict(drive.rows.ops), dict(drive.rows.regions), list(drive.cards), set(drive.made)
        check, drive.check = drive.check, None
        count = len(drive.replies)
        drive.fact(fact)
        drive.facts.pop()
        drive.check = check
        assert (dict(drive.rows.ops), dict(drive.rows.regions), list(drive.cards), set(drive.made)) == before, fact
        assert drive.replies[count:] == (said if drive.replies[count:] else []), (fact, said, drive.replies[count:])
