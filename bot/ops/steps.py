"""What the built-in ops do when their turn comes, on the working set of one step."""

from __future__ import annotations

from typing import Any

from bot.domain.changes import Endpoint
from bot.domain.errors import OpError
from bot.domain.facts import Returned
from bot.domain.record import OpRow, RegionRow
from bot.domain.values import ErrorValue, normalise, plain, text, type_of
from bot.engine import agents, asks, calls, evidence, failure, order, scope, waits
from bot.engine.behaviour import Behaviour
from bot.engine.turn import Turn, name_of_region

MOST_OPS = 100_000
"""Ops of one run, all items and rounds counted (language.md, section 8)."""


def _params(turn: Turn, row: OpRow) -> dict[str, Any]:
    return {k: scope.filled(turn, row, v) for k, v in turn.plan_op(row).params.items()}


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise OpError(f"`{name}` must be a list; it is {type_of(value)}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise OpError(f"`{name}` must be a text; it is {type_of(value)}")
    return value


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OpError(f"`{name}` must be a whole number from {least}; it is `{text(value)}`")
    return value


# --- core ----------------------------------------------------------------------------------------------------------
def let_start(turn: Turn, row: OpRow) -> None:
    calls.evaluate(turn, row, turn.plan_op(row).params["be"])


def transform_start(turn: Turn, row: OpRow) -> None:
    params = turn.plan_op(row).params
    turn.set_own(row, True)
    turn.call(
        row,
        "jq",
        {
            "text": params["jq"],
            "value": scope.filled(turn, row, params["from"]),
            "variables": scope.jq_variables(turn, row, params["jq"]),
        },
    )


def if_start(turn: Turn, row: OpRow) -> None:
    calls.evaluate(turn, row, turn.plan_op(row).params["cond"])


def if_returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    if not isinstance(fact.value, bool):
        cond = turn.plan_op(row).params["cond"]
        raise OpError(f"`{cond}` must be true or false; it is {type_of(fact.value)}")
    name = "then" if fact.value else "else"
    row.data["taken"] = name
    turn.set_own(row, False)
    if name in turn.plan_op(row).regions:
        order.open_region(turn, row, f"{row.path}.{name}")
    else:
        order.finish(turn, row, None)


def if_closed(turn: Turn, row: OpRow, region: RegionRow, was: str) -> None:
    if was == "failing":
        failure.fail(turn, row, region.error or "a step inside failed", final=True)
    else:
        order.finish(turn, row, region.value)


def map_start(turn: Turn, row: OpRow) -> None:
    op = turn.plan_op(row)
    over = _list("over", scope.filled(turn, row, op.params["over"]))
    have, more = turn.rows.planned_count(), len(over) * max(1, len(op.regions["body"].ops))
    if have + more > MOST_OPS:
        raise OpError(f"{len(over):,} items would make {have + more:,} ops; a run has {MOST_OPS:,} at most")
    if not over:
        order.finish(turn, row, [])
        return
    row.data.update({"over": over, "size": len(over), "next": 0, "begun": 0})
    if len(over) > int(op.params.get("maxConcurrency") or len(over)):
        row.data["ahead"] = 0
    turn.queue.append(("more", row.path))


def map_more(turn: Turn, row: OpRow) -> None:
    """Begins items in index order: as many as may run, a bounded number in one step."""
    data = row.data
    if data["next"] >= data["size"] or data.get("halted"):
        return
    if "ahead" in data:
        _look_ahead(turn, row)
        return
    most = turn.plan_op(row).params.get("maxConcurrency") or data["size"]
    if data["begun"] < most:
        at = data["next"]
        data["next"] += 1
        data["begun"] += 1
        item = data["over"][at] if "over" in data else None
        if data["next"] >= data["size"]:
            data.pop("over", None)
        order.open_region(turn, row, f"{row.path}[{at}]", item)
        if data["next"] < data["size"]:
            turn.opens(row, f"{row.path}[{at + 1}]")
    turn.touch(row)


def _look_ahead(turn: Turn, row: OpRow) -> None:
    """Where not all items may run at once, each waits with its element in a row of its own: what an item's end reads
    does not grow with the list."""
    data = row.data
    at = data["ahead"]
    turn.add_region(
        RegionRow(path=f"{row.path}[{at}]", owner=row.path, state="ahead", opened=turn.now, item=data["over"][at])
    )
    data["ahead"] = at + 1
    if data["ahead"] == data["size"]:
        data.pop("ahead")
        data.pop("over")
    turn.touch(row)
    turn.queue.append(("more", row.path))


def map_reopened(turn: Turn, row: OpRow, spent: bool) -> None:
    turn.queue.append(("more", row.path))


def map_closed(turn: Turn, row: OpRow, region: RegionRow, was: str) -> None:
    data = row.data
    data["begun"] -= 1
    if was == "failing":
        rule = turn.plan_op(row).params.get("onItemError", "halt")
        if rule == "halt" and not data.get("halted"):
            data["halted"] = region.error or "an item failed"
            row.data["failed_item"] = int(name_of_region(region.path))
            for inner in turn.regions_of(row.path, hot=True):
                failure.stop_region(turn, inner, "another item failed")
            hot = turn.regions_of(row.path, hot=True)
            turn.cancel_under(row.path, tuple(r.path for r in hot), "another item failed")
            row.unclosed = len(turn.regions_of(row.path, still_open=True))
        elif rule != "halt":
            value = rule.get("default") if isinstance(rule, dict) else None
            region.value, region.has_value = value, True
            turn.touch_region(region)
    turn.touch(row)
    if data.get("halted"):
        if row.unclosed == 0:
            failure.fail(turn, row, data["halted"], final=True)
    elif data["next"] < data["size"]:
        turn.queue.append(("more", row.path))
    elif row.unclosed == 0:
        order.finish(turn, row, [r.value for r in turn.regions_of(row.path) if name_of_region(r.path).isdigit()])


def parallel_start(turn: Turn, row: OpRow) -> None:
    op = turn.plan_op(row)
    if not op.regions:
        order.finish(turn, row, [] if op.branches_listed else {})
        return
    row.data["results"] = {}
    for name in op.regions:
        order.open_region(turn, row, f"{row.path}.{name}")


def parallel_closed(turn: Turn, row: OpRow, region: RegionRow, was: str) -> None:
    op, data = turn.plan_op(row), row.data
    name = name_of_region(region.path)
    data["results"][name] = region.value if was == "open" else None
    turn.touch(row)
    if was == "failing":
        data.setdefault("broken", region.error or "a branch failed")
    settled = (was == "failing" and op.params.get("failFast", True)) or (was == "open" and op.params.get("until") == 1)
    if settled and not data.get("over"):
        data["over"] = True
        why = "another branch won" if was == "open" else "another branch failed"
        if was == "open":
            data.pop("broken", None)
            data["won"] = name
        for inner in turn.regions_of(row.path, still_open=True):
            failure.stop_region(turn, inner, why)
    if row.unclosed > 0:
        return
    if data.get("broken") and not data.get("won"):
        failure.fail(turn, row, data["broken"], final=True)
        return
    results = data.pop("results")
    values = {n: results.get(n) if data.get("won") in (None, n) else None for n in op.regions}
    order.finish(turn, row, list(values.values()) if op.branches_listed else values)


def parallel_reopened(turn: Turn, row: OpRow, spent: bool) -> None:
    """A branch that won before everything halted has still won."""
    if row.data.get("won"):
        for inner in turn.regions_of(row.path, still_open=True):
            failure.stop_region(turn, inner, "another branch won")


def repeat_start(turn: Turn, row: OpRow) -> None:
    params = _params_of(turn, row, "max", "every")
    row.data["max"] = _count("max", params["max"], 1)
    row.data["next"] = 0
    turn.queue.append(("more", row.path))


def repeat_reopened(turn: Turn, row: OpRow, spent: bool) -> None:
    """Spent, it gets as many rounds again; else its last round is judged once more, if that had closed."""
    if row.unclosed:
        return
    if spent:
        row.data["max"] += _count("max", _params_of(turn, row, "max")["max"], 1)
        turn.queue.append(("more", row.path))
    else:
        repeat_closed(turn, row, turn.region(f"{row.path}[{row.data['next'] - 1}]"), "open")


def _params_of(turn: Turn, row: OpRow, *names: str) -> dict[str, Any]:
    params = turn.plan_op(row).params
    return {n: scope.filled(turn, row, params[n]) for n in names if n in params}


def repeat_more(turn: Turn, row: OpRow) -> None:
    at = row.data["next"]
    row.data["next"] = at + 1
    row.state = "running"
    turn.touch(row)
    order.open_region(turn, row, f"{row.path}[{at}]")


def repeat_closed(turn: Turn, row: OpRow, region: RegionRow, was: str) -> None:
    if was == "failing":
        failure.fail(turn, row, region.error or "a round failed", final=True)
        return
    until = turn.plan_op(row).params["until"]
    names = _names_of_round(turn, row, region, until)
    row.data["round"] = int(name_of_region(region.path))
    calls.evaluate(turn, row, until, names, n=row.data["round"])


def _names_of_round(turn: Turn, row: OpRow, region: RegionRow, until: str) -> dict[str, Any]:
    """The names that the body bound in this round, of those that `until` uses."""
    from bot.language import cel

    rows = {r.id: r for r in turn.ops_in(region.path) if r.id}
    found: dict[str, Any] = {}
    for name in cel.parse(until).names:
        root = str(name.path[0])
        if root in rows:
            value = scope.value_of(turn, rows[root])
            if value is scope.MISSING:
                raise OpError(f"`{root}` has no value")
            found[root] = value
        elif root == "last":
            found[root] = region.value
        elif root == "ops" and len(name.path) > 1 and str(name.path[1]) in rows:
            found.setdefault("ops", {})[str(name.path[1])] = scope.record(rows[str(name.path[1])])
    return found


def repeat_returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    if not isinstance(fact.value, bool):
        until = turn.plan_op(row).params["until"]
        raise OpError(f"`{until}` must be true or false; it is {type_of(fact.value)}")
    turn.set_own(row, False)
    last = turn.region(f"{row.path}[{row.data['round']}]")
    if fact.value:
        order.finish(turn, row, last.value)
    elif row.data["next"] >= row.data["max"]:
        waits.miss(turn, row, "spent")
    elif "every" in turn.plan_op(row).params:
        every = text(_params_of(turn, row, "every")["every"])
        try:
            due = waits.durations.due_within(every, turn.now, turn.world.workspace)
        except ValueError as fault:
            raise OpError(str(fault)) from None
        row.state = "waiting"
        row.due = due
        turn.timer(row.path, "pause", due)
        turn.touch(row)
    else:
        turn.queue.append(("more", row.path))


# --- people and the world ------------------------------------------------------------------------------------------
def say_start(turn: Turn, row: OpRow) -> None:
    op = turn.plan_op(row)
    params = _params(turn, row)
    card: dict[str, Any] = {"text": text(params.get("body"))}
    if "card" in params:
        shown = plain(params["card"])
        card = {
            "title": shown.get("title", ""),
            "text": shown.get("text", card["text"]),
            "image": shown.get("image"),
            "buttons": shown.get("buttons", []),
        }
    if params.get("files"):
        card["files"] = plain(params["files"])
    if op.to is None:
        receivers = ["job"]
    else:
        row.data["to"] = [list(pair) for pair in asks.addressed(turn, row, op.to)]
        receivers = asks.voters(turn, row)
    if not receivers:
        raise OpError("there is nobody to tell")
    for who in receivers:
        turn.deliver(row, "say", who, card)
    order.finish(turn, row, {"delivered": receivers})


def send_start(turn: Turn, row: OpRow) -> None:
    from bot.engine import gates

    if "params" not in row.data:
        row.data["params"] = _message(turn, row)
    row.data["to"] = [["conversation", row.data["params"]["to"]]]
    turn.set_own(row, True)
    if not gates.gate(turn, row, row.data["params"]):
        calls.launch(turn, row)


def _message(turn: Turn, row: OpRow) -> dict[str, Any]:
    """Whom a send goes to, and its messages with every button as `{label, value}`."""
    channel = turn.index.spec(row.op).channel
    to = scope.filled(turn, row, turn.plan_op(row).to)
    if not isinstance(to, str) or not to.startswith(f"{channel}:"):
        raise OpError(f"`to` must be a {channel} conversation such as `{channel}:…`; it is `{text(to)}`")
    messages = plain(_list("messages", _params(turn, row)["messages"]))
    for message in messages:
        buttons = message.get("buttons")
        if buttons is not None:
            message["buttons"] = [
                b if isinstance(b, dict) else {"label": text(b), "value": b} for b in _list("buttons", buttons)
            ]
    return {"to": to, "messages": messages}


def endpoint_start(turn: Turn, row: OpRow) -> None:
    until = waits.window(turn, row, turn.now)
    token = turn.token("endpoint", row.path)
    turn.step.endpoints.append(Endpoint(token=token, path=row.path, until=until))
    order.finish(turn, row, {"url": f"{turn.view.url}/e/{token}", "stream": f"endpoint:{token}"})


def run_start(turn: Turn, row: OpRow) -> None:
    params = _params(turn, row)
    row.state = "waiting"
    row.due = None
    due = waits.window(turn, row, turn.now, "400d")
    waits.open_window(turn, row, due)
    depth = int(turn.run.data.get("depth", 0)) + 1
    if depth > 32:
        raise OpError("saved scripts call each other more than 32 deep")
    turn.call(
        row,
        "run",
        {"script": _text("script", params["script"]), "inputs": plain(params.get("inputs") or {}), "depth": depth},
    )


def run_returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    if "child" in fact.extra and "state" not in fact.extra:
        row.data["child"] = fact.extra["child"]
        turn.touch(row)
        return
    waits.disarm(turn, row)
    row.data.pop("error", None)
    order.finish(turn, row, normalise(fact.value))


# --- files and lists -----------------------------------------------------------------------------------------------
def file_start(turn: Turn, row: OpRow) -> None:
    from bot.engine import gates

    if "params" not in row.data:
        row.data["params"] = _stored_params(row.op, _params(turn, row))
    turn.set_own(row, True)
    if row.op == "save":
        row.data["outside"] = str(row.data["params"]["path"]).startswith("/")
        if gates.gate(turn, row, row.data["params"]):
            return
    calls.launch(turn, row)


def _stored_params(op: str, params: dict[str, Any]) -> dict[str, Any]:
    if op != "save":
        return plain(params)
    value = params["value"]
    if isinstance(value, list):
        body = "".join(f"{text(v)}\n" for v in value)
    else:
        body = value if isinstance(value, str) else text(value)
    return {"path": _text("path", params["path"]), "text": body}


def file_returned(turn: Turn, row: OpRow, fact: Returned) -> None:
    params = row.data.pop("params", None)
    if row.op == "save" and params is not None:
        size = len(params["text"].encode("utf-8", "surrogatepass"))
        row.data["file"] = {"path": params["path"], "size": size}
    row.data.pop("error", None)
    order.finish(turn, row, None if row.op == "save" else fact.value, has_value=row.op != "save")


def list_start(turn: Turn, row: OpRow) -> None:
    order.finish(turn, row, [text(v) for v in _list("items", _params(turn, row)["items"])])


def lines_start(turn: Turn, row: OpRow) -> None:
    order.finish(turn, row, _lines(_text("text", _params(turn, row)["text"])))


def _lines(whole: str) -> list[str]:
    rows = whole.replace("\r\n", "\n").split("\n")
    return rows[:-1] if rows[-1] == "" else rows


def chunk_start(turn: Turn, row: OpRow) -> None:
    params = _params(turn, row)
    rows, n = _lines(_text("text", params["text"])), _count("n", params["n"], 1)
    order.finish(turn, row, ["\n".join(rows[i : i + n]) for i in range(0, len(rows), n)])


def keep_start(turn: Turn, row: OpRow) -> None:
    params = _params(turn, row)
    values, wanted = _list("list", params["list"]), text(params["text"]).strip()
    judged = _list("in", params["in"]) if "in" in params else values
    if len(judged) != len(values):
        raise OpError(f"the lists differ in length: {len(values)} and {len(judged)}")
    keeps = row.op == "keep"
    order.finish(turn, row, [v for v, j in zip(values, judged, strict=True) if _equal(j, wanted) == keeps])


def _equal(value: Any, wanted: str) -> bool:
    return not isinstance(value, ErrorValue) and text(value).strip() == wanted


def first_start(turn: Turn, row: OpRow) -> None:
    params = _params(turn, row)
    order.finish(turn, row, _list("list", params["list"])[: _count("n", params["n"], 0)])


def count_start(turn: Turn, row: OpRow) -> None:
    order.finish(turn, row, len(_list("list", _params(turn, row)["list"])))


def show_start(turn: Turn, row: OpRow) -> None:
    row.data["shown"] = _params(turn, row)["value"]
    turn.run.data["shows"] = True
    order.finish(turn, row, None, has_value=False)


# --- agents --------------------------------------------------------------------------------------------------------
def model_start(turn: Turn, row: OpRow) -> None:
    row.data["name"] = _text("name", _params(turn, row)["name"])
    order.finish(turn, row, None, has_value=False)


def budget_start(turn: Turn, row: OpRow) -> None:
    row.data["calls"] = _count("calls", _params(turn, row)["calls"], 0)
    order.finish(turn, row, None, has_value=False)


def each_start(turn: Turn, row: OpRow) -> None:
    op = turn.plan_op(row)
    values = _list("list", scope.filled(turn, row, op.params["list"]))
    if not values:
        order.finish(turn, row, [])
        return
    names = agents.each_prompt_names(turn, row, op.params["prompt"])
    body: dict[str, Any] = {
        "list": values,
        "prompt": op.params["prompt"],
        "names": names,
        "model": agents.model(turn, row),
        "most": agents.allowance(turn, row, len(values)),
    }
    if "choices" in op.params:
        body["choices"] = asks.choices_of(scope.filled(turn, row, op.params["choices"]))
    if outside := agents.outside_of_each(turn, row):
        body["outside"] = outside
    turn.set_own(row, True)
    turn.call(row, "each", body, timeout_s=86_400)


STEPS: dict[str, Behaviour] = {
    "core.let": Behaviour(start=let_start),
    "core.transform": Behaviour(start=transform_start),
    "core.if": Behaviour(start=if_start, returned=if_returned, closed=if_closed),
    "core.map": Behaviour(start=map_start, closed=map_closed, more=map_more, reopened=map_reopened),
    "flow.parallel": Behaviour(start=parallel_start, closed=parallel_closed, reopened=parallel_reopened),
    "core.repeat": Behaviour(
        start=repeat_start, returned=repeat_returned, closed=repeat_closed, more=repeat_more, reopened=repeat_reopened
    ),
    "ask": Behaviour(start=asks.start),
    "say": Behaviour(start=say_start),
    "expect": Behaviour(start=evidence.start),
    "endpoint": Behaviour(start=endpoint_start),
    "run": Behaviour(start=run_start, returned=run_returned),
    **{f"{channel}_send": Behaviour(start=send_start) for channel in ("slack", "telegram", "line", "web")},
    "glob": Behaviour(start=file_start, returned=file_returned),
    "read": Behaviour(start=file_start, returned=file_returned),
    "save": Behaviour(start=file_start, returned=file_returned),
    "list": Behaviour(start=list_start),
    "lines": Behaviour(start=lines_start),
    "chunk": Behaviour(start=chunk_start),
    "keep": Behaviour(start=keep_start),
    "drop": Behaviour(start=keep_start),
    "first": Behaviour(start=first_start),
    "count": Behaviour(start=count_start),
    "show": Behaviour(start=show_start),
    "model": Behaviour(start=model_start),
    "budget": Behaviour(start=budget_start),
    "each": Behaviour(start=each_start),
}
TOOL = Behaviour(start=calls.start_tool)
