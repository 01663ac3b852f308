"""Files of a run: what it saved, what was uploaded to its questions, what came with its messages; handing them out.

A file is handed out only where it hangs on the record of a run that the reader may read, or came with a message to
them. Where it lies is `bot/runtime/files.py`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from bot.domain.record import OpRow, RunRow
from bot.language import durations
from bot.runtime.desk import Desk
from bot.runtime.files import FolderFiles
from bot.server import rights
from bot.server.auth import Reader
from bot.server.bodies import FORM_BYTES, NoJson, TooLarge
from bot.server.respond import file_at, not_there
from channels.web.limits import NAME_SHOWN, UPLOAD_BYTES
from channels.web.render import attached
from store import ops, outbox, runs
from store.dialect import Transaction

FIELDS_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """One file of a run. `how`: saved, uploaded, said. `own`: it lies in the job's folder and nowhere else. `size` in
    bytes, None where it is no longer there."""

    name: str
    path: str
    how: str
    by: str
    at: datetime
    op: str
    size: int | None
    own: bool = False

    @property
    def readable_size(self) -> str:
        """The size in words."""
        if self.size is None:
            return "not there any more"
        if self.size == 1:
            return "1 byte"
        size = float(self.size)
        for unit in ("bytes", "KiB", "MiB"):
            if size < 1024 or unit == "MiB":
                return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
            size /= 1024
        return ""


def store_of(desk: Desk) -> FolderFiles:
    """The workspace's files."""
    return FolderFiles(desk.settings.files)


def of_run(tx: Transaction, files: FolderFiles, run: RunRow, rows: Iterable[OpRow], email: str) -> list[Attachment]:
    """The files of a run for this reader, in the order in which they came, each path once: its latest."""
    found: dict[tuple[str, bool], Attachment] = {}
    for one in sorted([*_of_ops(run, rows), *_said(tx, run, email)], key=lambda a: a[3]):
        how, path, by, at, op, name = one
        own = how == "uploaded"
        real = files.found(run.job, path, own=own)
        found.pop((path, own), None)
        found[path, own] = Attachment(
            name=name or path.rpartition("/")[2],
            path=path,
            how=how,
            by=by,
            at=at,
            op=op,
            size=real.stat().st_size if real is not None else None,
            own=own,
        )
    return list(found.values())


Entry = tuple[str, str, str, datetime, str, str]


def _of_ops(run: RunRow, rows: Iterable[OpRow]) -> Iterable[Entry]:
    for row in rows:
        if "file" in row.data and row.ended is not None:
            yield "saved", str(row.data["file"]["path"]), run.owner, row.ended, row.id or row.path, ""
        names = [str(f["name"]) for f in row.data.get("fields") or [] if f.get("type") == "file"]
        for given in [*(row.data.get("answers") or []), *(row.data.get("late") or [])] if names else []:
            for name in names:
                value = given["answer"].get(name) if isinstance(given["answer"], Mapping) else None
                if isinstance(value, Mapping) and value.get("path"):
                    at = datetime.fromisoformat(given["at"])
                    yield "uploaded", str(value["path"]), given["by"], at, row.id or row.path, str(value.get("name"))


def _said(tx: Transaction, run: RunRow, email: str) -> Iterable[Entry]:
    for row in outbox.find(tx, run_id=run.id):
        if row["kind"] != "say" or (row["to"] != "job" and row["to"].casefold() != email.casefold()):
            continue
        for name, path in attached(row["card"]):
            yield "said", path, run.owner, row["at"], row["path"], name


def _readable(tx: Transaction, desk: Desk, run_id: str, email: str) -> list[Attachment] | None:
    """The files that this reader may have; None where the run is not theirs to know of."""
    run = runs.get(tx, run_id)
    if run is None:
        return None
    if rights.reads_run(tx, run_id, email):
        return of_run(tx, store_of(desk), run, ops.StoredRows(tx, run_id, run.job).all(), email)
    if not rights.asked_in(tx, run_id, email):
        return None
    mine = {path for row in outbox.find(tx, run_id=run_id, to=email) for _, path in attached(row["card"])}
    return [one for one in of_run(tx, store_of(desk), run, [], email) if one.path in mine]


async def download(request: Request, reader: Reader) -> Response:
    """A file of a run, to keep."""
    found = await _file(request, reader.email)
    return found if found is not None else not_there(reader)


async def download_api(request: Request, email: str) -> Response:
    """The same for a bearer."""
    found = await _file(request, email)
    return found if found is not None else JSONResponse({"text": "There is no such file."}, 404)


async def _file(request: Request, email: str) -> Response | None:
    desk: Desk = request.app.state.product.desk
    run_id, wanted = request.path_params["run"], request.path_params["path"]

    def read(tx: Transaction) -> tuple[Attachment, Path] | None:
        for one in _readable(tx, desk, run_id, email) or []:
            if one.path.lstrip("/") == wanted:
                run = runs.get(tx, run_id)
                real = store_of(desk).found(run.job, one.path, own=one.own) if run is not None else None
                return (one, real) if real is not None else None
        return None

    found = await desk.committer.read(read)
    if found is None:
        return None
    one, real = found
    # Never shown in the page: whatever it is, it is somebody's data, not ours.
    return FileResponse(
        real, media_type="application/octet-stream", filename=one.name, content_disposition_type="attachment"
    )


async def listed(request: Request, email: str) -> Response:
    """The files of a run, for the API."""
    desk: Desk = request.app.state.product.desk
    run_id = request.path_params["run"]
    found = await desk.committer.read(_readable, desk, run_id, email)
    if found is None:
        return JSONResponse({"text": "There is no such run."}, 404)
    zone = durations.zone((await desk.world()).workspace)
    return JSONResponse(
        {
            "files": [
                {
                    "name": one.name, "path": one.path, "size": one.size, "how": one.how, "by": one.by,
                    "at": one.at.astimezone(zone).isoformat(), "op": one.op,
                    "url": f"/api{file_at(run_id, one.path)}",
                }
                for one in found
            ]
        }
    )  # fmt: skip


# --- uploads -------------------------------------------------------------------------------------------------------
async def read_upload(request: Request, *, most_files: int) -> FormData:
    """A form with files, read up to its limits. Raises TooLarge and NoJson (it does not read)."""
    most = most_files * UPLOAD_BYTES + FORM_BYTES
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise TooLarge
    seen = 0

    async def limited() -> Any:
        nonlocal seen
        message = await request.receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLarge
        return message

    try:
        form = await Request(request.scope, limited).form(
            max_files=most_files, max_fields=FIELDS_MOST, max_part_size=FORM_BYTES
        )
    except (MultiPartException, ValueError):
        raise NoJson from None
    if any(isinstance(v, UploadFile) and (v.size or 0) > UPLOAD_BYTES for _, v in form.multi_items()):
        await form.close()
        raise TooLarge
    return form


async def kept(desk: Desk, job: str, form: FormData, prefix: str) -> dict[str, dict[str, Any]]:
    """Keeps the files of a form in the job's folder; gives their values by field. One without a file is empty."""
    files: dict[str, dict[str, Any]] = {}
    for name, value in form.multi_items():
        if not isinstance(value, str) and value.filename and name.startswith(prefix):
            path, size = await asyncio.to_thread(store_of(desk).keep, job, value.filename, value.file)
            kind = (value.content_type or "application/octet-stream").partition(";")[0].strip()[:NAME_SHOWN]
            shown = Path(value.filename.replace("\\", "/")).name[:NAME_SHOWN]
            files[name[len(prefix) :]] = {"name": shown, "type": kind, "size": size, "path": path}
    return files


async def dropped(desk: Desk, job: str, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Takes the files back: the answer that they came with does not count."""
    for one in files.values():
        await asyncio.to_thread(store_of(desk).drop, job, one["path"])
