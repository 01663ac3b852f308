"""The record of one run: its plan with what became of it, who did what, when and why.

Whoever reads the job reads its runs' records.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.catalog import World
from bot.domain.record import OpRow
from bot.domain.values import text
from bot.engine import edits, words
from bot.language.write import as_json
from bot.language.write_markdown import as_markdown
from bot.runtime import report
from bot.server import attachments, conversation, phrases, rail, recorded, rights
from bot.server.auth import Reader
from bot.server.respond import not_there, page, said, shown_once
from bot.server.room import _around, desk_of
from store import history, ops, outbox, runs, work
from store.dialect import Transaction


async def show(request: Request, reader: Reader) -> Response:
    desk, run_id = desk_of(request), request.path_params["run"]
    world = reader.world

    def read(tx: Transaction) -> dict[str, Any] | None:
        readable = rights.reads_run(tx, run_id, reader.email)
        if not readable and not rights.asked_in(tx, run_id, reader.email):
            return None
        run = runs.get(tx, run_id)
        if run is None:
            return None
        plan = desk.site.index(tx, run.plan).plan
        found = ops.StoredRows(tx, run_id, run.job).all()
        rows = {r.path: r for r in found}
        items = conversation.run_items(tx, desk.site, world, reader.email, run)
        entries = history.of_run(tx, run_id)
        job = runs.get_job(tx, run.job)
        pasted = runs.told(tx, run)["source"]
        return {
            "run": run,
            "title": phrases.of_plan(plan, world).replace("`", ""),
            "job_title": (job["title"] if job else None) or run.job,
            "state": report.state_of(run),
            "standing": next(i for i in items if i.kind == "status"),
            "messages": sorted((i for i in items if i.kind not in ("status", "script")), key=lambda i: i.at),
            "rail": rail.Rail(
                plan=plan, run=run, rows=rows, world=world, catalog=desk.site.catalog, whole=True, reader=reader.email
            ).laid(),
            "files": attachments.of_run(tx, attachments.store_of(desk), run, found, reader.email) if readable else [],
            "run_menu": edits.run_menu(run) if edits.steers(run, world, reader.email) else [],
            "timeline": [
                entry
                for e in entries
                if (entry := timed(e, rows, world, desk.site.index(tx, run.plan).ops)) is not None
            ],
            "waited": recorded.waited(found, world),
            "approvals": recorded.approvals(entries, rows, world),
            "cost": recorded.costs(work.spent_by(tx, run_id), rows, desk.site.index(tx, run.plan).ops, world),
            "author": phrases.by_whom(run.data["author"], world) if run.data.get("author") else None,
            "undelivered": recorded.undelivered(outbox.find(tx, run_id=run_id), world),
            "claims": claims(found, plan, world),
            "edits": [_edit(e["data"]["edit"], world) for e in entries if e["what"] == "edited"],
            "held": [] if plan.sealed else history.held(tx, run.job),
            "pasted": pasted,
            "edited": any(e["what"] == "edited" for e in entries),
            "markdown": as_markdown(plan, desk.site.catalog),
            "as_json": as_json(plan),
            **_around(tx, reader.email),
        }

    found = await desk.committer.read(read)
    if found is None:
        return not_there(reader)
    response = page(
        "record.html", world, reader=reader, here=found["run"].job, back=f"/runs/{run_id}", said=said(request), **found
    )
    return shown_once(request, response)


def timed(entry: dict[str, Any], rows: dict[str, OpRow], world: World, plan: Any) -> dict[str, Any] | None:
    """One line of the timeline: when, what was done by whom, why."""
    row = rows.get(entry["path"])
    name = f"`{row.id if row and row.id else entry['path']}`" if entry["path"] else "The run"
    if row is not None and row.id is None and row.place in plan:
        name = phrases.phrase(plan[row.place], world)
    by = words.called(entry["by"], world) if entry["by"] else None
    if (agent := entry["data"].get("via")) is not None:
        by = f"{str(agent).removeprefix('agent:')} for {by}"
    elif (whom := entry["data"].get("edit", {}).get("for")) is not None:
        by = f"{str(entry['by']).removeprefix('agent:')} for {words.called(whom, world)}"
    told = _told(entry["what"], name, by, entry["data"], world)
    if told is None:
        return None
    why = entry["data"].get("reason") or entry["data"].get("why")
    if entry["what"] == "edited":
        why = entry["data"]["edit"].get("why")
    return {"at": entry["at"], "said": told, "why": str(why) if why else None}


def _told(what: str, name: str, by: str | None, data: dict[str, Any], world: World) -> str | None:
    match what:
        case "accepted":
            return f"{by} started the run"
        case "asked":
            return f"{name}: {words.names(data.get('to', []), world).replace(' or ', ' and ')} asked"
        case "answered":
            return f"{name}: {by} answered `{phrases.short(text(data.get('answer')), 60)}`"
        case "late":
            return f"{name}: {by} answered `{phrases.short(text(data.get('answer')), 60)}`, too late"
        case "gated":
            return f"{name}: waits for {words.names(data.get('to', []), world)} to approve"
        case "approved" | "declined":
            return f"{name}: {by} {what} it"
        case "uncertain":
            return f"{name}: unknown whether it happened"
        case "doubt settled":
            return f"{name}: {by} says `{data.get('choice')}`"
        case "judged":
            return f"{name}: the evidence {data.get('verdict')}"
        case "edited":
            edit = data["edit"]
            return f"{by} changed `{edit['op'] or 'the run'}`: {edit['what']}" + (
                f", {phrases.short(text(edit['before']), 40)} → {phrases.short(text(edit['after']), 40)}"
                if edit["after"] not in (None, True)
                else ""
            )
        case "ended":
            return f"The run ended: {data.get('data')}" + (f", {data['error']}" if data.get("error") else "")
        case "paused":
            return f"{name}: attempt {data.get('attempt')} failed: {data.get('error')}"
        case "done":
            return f"{name} done" + (f" by {by}" if by else "")
        case _:
            return f"{name} {what}" + (f": {data['error']}" if data.get("error") else "")


def claims(rows: list[OpRow], plan: Any, world: World) -> list[dict[str, Any]]:
    """Each done that somebody said, beside the expectations that follow it."""
    found: list[dict[str, Any]] = []
    places = {op.place: op for op, _ in plan.walk()}
    from bot.domain.ids import place_of

    for row in sorted(rows, key=lambda r: report.natural(r.path)):
        if row.op != "ask" or not row.data.get("claim") or row.ended is None:
            continue
        evidence = [
            _evidence(r, world)
            for r in rows
            if r.op == "expect"
            and row.id is not None
            and r.region == row.region
            and (op := places.get(place_of(r.path))) is not None
            and row.id in [a.rstrip("?") for a in op.after]
        ]
        answer = phrases.short(text(row.value), 40)
        found.append(
            {
                "what": f"`{row.id or row.path}` = `{answer}`",
                "by": words.called(row.by, world) if row.by else "a quorum",
                "at": row.ended,
                "state": row.data["claim"],
                "evidence": evidence,
            }
        )
    return found


def _evidence(row: OpRow, world: World) -> dict[str, Any]:
    streams = words.either([str(s) for s in row.data.get("streams", [])]) or "evidence"
    state = {"done": "came", "missed": "missed", "waiting": "awaited", "planned": "comes next"}.get(
        row.state, row.state
    )
    return {
        "what": f"`{streams}` {state}",
        "at": row.ended if row.state in ("done", "missed") else None,
        "why": row.data.get("verdict_reason") or (row.data.get("error") if row.state == "missed" else None),
    }


def _edit(edit: dict[str, Any], world: World) -> dict[str, Any]:
    def shown(value: Any) -> str:
        return phrases.short(words.called(value, world) if isinstance(value, str) else text(value), 120)

    return {
        "at": datetime.fromisoformat(edit["at"]),
        "by": words.called(edit["by"], world),
        "what": edit["what"],
        "op": edit["op"] or "run",
        "before": shown(edit["before"]),
        "after": "" if edit["after"] is True else shown(edit["after"]),
        "why": edit.get("why") or "",
    }
