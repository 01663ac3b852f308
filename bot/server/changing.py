"""Changing what is pending, from a page: the menu of an op, a preview of each edit, and making it.

Which edits there are, and who may make them, is the engine's (`bot/engine/edits.py`); here are only the forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.catalog import World
from bot.domain.ids import place_of
from bot.domain.plan import Plan, Region
from bot.domain.record import OpRow, RunRow
from bot.engine import asks, edits
from bot.language import durations
from bot.language.write_markdown import as_markdown
from bot.runtime.desk import Desk, NotThere
from bot.runtime.trial import standing
from bot.server import phrases, previewing, rights
from bot.server.auth import Reader
from bot.server.respond import marked, not_there, page, said, shown_once, told, wants_json
from bot.server.room import _own, desk_of
from store import ops, runs
from store.dialect import Transaction

LATER = (("1h", "an hour"), ("1d", "a day"), ("3d", "three days"), ("1w", "a week"))
"""How much more time a card's *later* asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What can be done to one op of a run, or to the run, for one reader."""

    run: RunRow
    path: str
    title: str
    id: str | None
    menu: list[tuple[str, str, str]]
    """Key, label, what it takes."""
    markdown: str
    steers: bool


async def sheet_of(desk: Desk, reader: Reader, run_id: str, path: str) -> Sheet | None:
    """None where there is no such run or op for this reader."""

    def read(tx: Transaction) -> Sheet | None:
        if not _visible(tx, run_id, reader.email):
            return None
        one = standing(tx, desk.site, run_id)
        if one is None:
            return None
        steers = edits.steers(one.run, reader.world, reader.email)
        if not path:
            menu = [(kind.key, kind.label, "") for kind in edits.run_menu(one.run)]
            return Sheet(
                run=one.run, path="", title="The run", id=None, menu=menu if steers else [], markdown="", steers=steers
            )
        row, place = one.rows.get(path), place_of(path)
        op = desk.site.index(tx, one.run.plan).ops.get(place)
        spec = desk.catalog.get(op.op) if op is not None else None
        if op is None or spec is None:
            return None
        asked = row is not None and reader.email in _asked(row)
        offered = [
            (kind.key, kind.label, kind.takes)
            for kind in (edits.menu(spec, op, row) if one.run.ended is None else [])
            if steers or (asked and kind.addressee)
        ]
        to = asks.spelt(row) if row is not None and row.data.get("to") else None
        return Sheet(
            run=one.run, path=path, title=phrases.phrase(op, reader.world, to), id=op.id, menu=offered,
            markdown=_alone(one.plan, op, desk), steers=steers,
        )  # fmt: skip

    return await desk.committer.read(read)


def _alone(plan: Plan, op: Any, desk: Desk) -> str:
    """One op as it is written."""
    only = replace(plan, program=Region(place="", ops=(op,)), inputs=None, on=(), name=None, title=None, within=None)
    return as_markdown(replace(only, on_error=None), desk.catalog).rstrip("\n")


async def show(request: Request, reader: Reader) -> Response:
    """What can be done to an op, one edit at a time, with what it would do. Looking changes nothing."""
    query = request.query_params
    return await _page(request, reader, {k: query.get(k, "") for k in ("op", "do", "run", "back")})


async def post(request: Request, reader: Reader, form: dict[str, str]) -> Response:
    """An edit from a page: shown first (`step=preview`), or made."""
    desk, run_id = desk_of(request), request.path_params["run"]
    back = _own(form.get("back") or f"/runs/{run_id}")
    if form.get("step") == "preview":
        return await _page(request, reader, form)
    if not await desk.committer.read(_visible, run_id, reader.email):
        return not_there(reader)
    change, rev = await change_of(desk, reader, run_id, form)
    if isinstance(change, str):
        if "step" in form and not wants_json(request):
            return await _page(request, reader, form, 422)
        return told(request, back, f"{change} Nothing changed.", status=422)
    try:
        reply = await desk.edit(run_id, change, by=reader.email, why=form.get("why", "").strip() or None, rev=rev)
    except NotThere:
        return not_there(reader)
    if reply.problems and not wants_json(request):
        return await _page(request, reader, form, 422)
    return told(request, back, reply.text, status=reply.status, accepted=reply.accepted)


async def _page(request: Request, reader: Reader, form: Mapping[str, str], status: int = 200) -> Response:
    desk, run_id = desk_of(request), request.path_params["run"]
    sheet = await sheet_of(desk, reader, run_id, form.get("op", ""))
    if sheet is None:
        return not_there(reader)
    chosen = form.get("run") or form.get("do") or ""
    chosen = chosen if any(key == chosen for key, _, _ in sheet.menu) else next((k for k, _, _ in sheet.menu), "")
    takes = next((takes for key, _, takes in sheet.menu if key == chosen), "")
    given = {**form, ("do" if sheet.path else "run"): chosen}
    seen, asked = None, None
    if chosen and (not takes or form.get("value", "").strip()):
        change, _ = await change_of(desk, reader, run_id, given)
        if isinstance(change, str):
            asked = change
        else:
            found, trial = await desk.try_edit(run_id, change, by=reader.email)
            seen = previewing.preview(found, trial, reader.world, desk.catalog, marked)
    value = form.get("value") or (sheet.markdown if chosen == "replace" else "- say\n  > " if takes == "ops" else "")
    back = _own(form.get("back") or f"/runs/{run_id}")
    response = page(
        "edit.html", reader.world, status=status, reader=reader, sheet=sheet, chosen=chosen, takes=takes, value=value,
        why=form.get("why", ""), seen=seen, asked=asked, back=back, said=said(request), people=whom(reader.world),
        here_at=f"/runs/{quote(run_id)}/edit?op={quote(sheet.path)}&back={quote(back)}",
    )  # fmt: skip
    return shown_once(request, response)


def whom(world: World) -> list[tuple[str, str]]:
    """Whom something can be handed to: address and name."""
    return [(p.email, p.name) for p in world.people] + [(f"role:{role}", f"the {role}") for role in world.roles]


def _visible(tx: Transaction, run_id: str, email: str) -> bool:
    return rights.reads_run(tx, run_id, email) or rights.asked_in(tx, run_id, email)


async def change_of(
    desk: Desk, reader: Reader, run_id: str, form: Mapping[str, str]
) -> tuple[dict[str, Any] | str, int | None]:
    """The edit that a form asks for, or what is missing in it; and the revision that it was made from."""
    seen = form.get("rev", "")
    if seen and not (seen.isascii() and seen.isdigit()):
        return "This page does not say what it has seen; load it again.", None
    rev = int(seen) if seen else None
    if form.get("run"):
        return {"run": form["run"]}, None
    op, do, value = form.get("op", ""), form.get("do", ""), form.get("value", "").strip()
    if do in ("not-mine", "later"):
        run, row = await desk.committer.read(lambda tx: (runs.get(tx, run_id), ops.StoredRows(tx, run_id, "").op(op)))
        if run is None or row is None:
            return "This question is not here any more.", None
        return _not_mine(row, reader, run.owner) if do == "not-mine" else _later(row, value, reader), row.rev
    kind = next((k for k in edits.EDITS if k.key == do), None)
    if kind is None:
        return "Pick what to change.", None
    if kind.takes and not value:
        words = {"addressee": "Pick whom to hand it to.", "window": "Write a window such as `3d`."}
        return words.get(kind.takes, "Write what it should be."), None
    if kind.takes in ("op", "ops"):
        value = form.get("value", "")
    return {"after" if kind.key == "insert" else "op": op, kind.key: value if kind.takes else True}, rev


def _asked(row: OpRow) -> list[str]:
    """Whom an ask, an approval or a doubt is put to now."""
    return list(row.data["gate"]["to"] if row.state in edits.GATED else row.data.get("asked", []))


def _not_mine(row: OpRow, reader: Reader, owner: str) -> dict[str, Any] | str:
    """A card handed back: of several who are asked only this one leaves; one who is alone hands it to the owner."""
    mine = reader.email.casefold()
    rest = [who for who in _asked(row) if who.casefold() != mine]
    need = row.data.get("need")
    enough = sum(int(n) for n in need.values()) if isinstance(need, dict) else need if isinstance(need, int) else 1
    if len(rest) < enough and owner.casefold() != mine and owner not in rest and row.state not in edits.GATED:
        rest.append(owner)
    if not rest and row.state in edits.GATED:
        return "Nobody else is asked; hand it over to somebody who may decide it."
    if not rest:
        return "You started this run and nobody else is asked; hand it over to somebody, or withdraw it."
    return {"op": row.path, "to": rest if len(rest) > 1 else rest[0]}


def _later(row: OpRow, more: str, reader: Reader) -> dict[str, Any] | str:
    """More time: so much after the deadline as it stands, or from now where there is none yet."""
    if more not in [key for key, _ in LATER]:
        return "Pick how much more time."
    workspace = reader.world.workspace
    due: datetime = durations.due_within(more, max(row.due or reader.world.now, reader.world.now), workspace)
    local = due.astimezone(durations.zone(workspace)) + timedelta(seconds=59)
    return {"op": row.path, "until": f"{local:%Y-%m-%d %H:%M}"}
