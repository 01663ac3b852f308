"""Effects that leave the process: how they are launched, and what their results do."""

from __future__ import annotations

from typing import Any

from bot.domain.errors import OpError
from bot.domain.facts import Returned
from bot.domain.record import OpRow
from bot.domain.values import normalise, plain
from bot.engine import asks, evidence, failure, gates, order, scope
from bot.engine.turn import Turn
from bot.language.check import rights


def start_tool(turn: Turn, row: OpRow) -> None:
    """A tool: its parameters are substituted, shown to its approver where policy wants one, then it is called."""
    op = turn.plan_op(row)
    spec = turn.index.spec(row.op)
    if turn.world.policy.use and not rights.may_call(turn.world, turn.run.owner, spec):
        # The policy is another one now, or another one's script calls it.
        raise OpError(rights.refusal(turn.world, row.op, rights.kept_for(turn.world, spec) or ()))
    if "params" not in row.data:
        # A further attempt goes with the parameters of the first: they are what was approved.
        row.data["params"] = plain(scope.filled(turn, row, dict(op.params)))
    turn.set_own(row, True)
    if gates.gate(turn, row, row.data["params"]):
        return
    launch(turn, row)


def launch(turn: Turn, row: OpRow) -> None:
    """Makes the call of an effect whose parameters stand."""
    spec = turn.index.spec(row.op)
    turn.set_own(row, True)
    if spec.tool:
        turn.call(
            row,
            "tool",
            {"tool": row.op, "params": row.data["params"], "key": f"{turn.run.id}:{row.path}"},
            idempotent=spec.idempotent or spec.read_only,
            timeout_s=spec.timeout.total_seconds(),
        )
    elif spec.channel is not None:
        params = row.data["params"]
        turn.deliver(row, "send", params["to"], {"messages": params["messages"]}, opens=True)
    else:
        turn.call(row, "file", {"op": row.op, "params": row.data["params"], "job": turn.run.job})


def again(turn: Turn, row: OpRow) -> None:
    """The pause is over: a further attempt."""
    row.data.pop("pausing", None)
    row.attempt += 1
    row.rev += 1
    order.begin(turn, row)


def go(turn: Turn, row: OpRow) -> None:
    """Makes the call that a person let through, or holds it while the run is paused."""
    row.state = "running"
    if turn.run.state == "paused":
        hold(turn, row)
    else:
        launch(turn, row)


def hold(turn: Turn, row: OpRow) -> None:
    """A paused run makes no call: it is made when the run goes on."""
    row.data["held"] = True
    turn.touch(row)


def release(turn: Turn, row: OpRow) -> None:
    """The run goes on, and with it what was held."""
    if row.data.pop("held", None):
        turn.touch(row)
        if row.data.get("pausing"):
            again(turn, row)
        else:
            launch(turn, row)


def evaluate(turn: Turn, row: OpRow, text: str, extra: dict[str, Any] | None = None, n: int = 0) -> None:
    """Sends a CEL expression of the op's to the sandbox."""
    turn.set_own(row, True)
    turn.call(row, "cel", {"text": text, "names": scope.environment(turn, row, text, extra)}, n=n)


def returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    """A call's result, error, or loss. Old ones change nothing."""
    if fact.kind == "judge":
        evidence.judged(turn, row, fact)
        return
    if fact.kind == "early":
        evidence.early_over(turn, row)
        return
    if (not row.open and row.data.get("detached") is None) or fact.attempt != row.attempt or row.data.get("pausing"):
        return
    if fact.kind == "agent":
        asks.agent_returned(turn, row, fact)
        return
    if fact.kind == "replan":
        from bot.engine import replanning

        replanning.returned(turn, row, fact)
        return
    if row.state not in ("running", "waiting"):
        return
    if fact.lost:
        gates.doubt(turn, row, fact.error or "its answer was lost")
        return
    if fact.kind == "run" and (fact.error is not None or "state" in fact.extra):
        row.data.pop("child", None)
    if fact.error is not None:
        failure.fail(turn, row, fact.error, final=fact.kind in ("cel", "jq", "file"))
        return
    behaviour = turn.index.spec(row.op).step
    try:
        if behaviour is not None and behaviour.returned is not None:
            behaviour.returned(turn, row, fact)
        else:
            row.data.pop("error", None)
            order.finish(turn, row, normalise(fact.value))
    except OpError as fault:
        failure.fail(turn, row, str(fault), final=True)
