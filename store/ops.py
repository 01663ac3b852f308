"""Ops and regions of a run: the look-ups that the engine makes, and writing them back."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.changes import CARDS, CancelledUnder
from bot.domain.record import OpRow, RegionRow
from bot.domain.values import dump, load
from store import runs, values
from store.dialect import Statement, Transaction, among, b, instant, micros, pages
from store.tables import event, op, region, run, taken, wait

_OP = tuple(
    op.c[n]
    for n in (
        "path",
        "place",
        "region",
        "rank",
        "op",
        "ident",
        "state",
        "open",
        "own",
        "hot",
        "unclosed",
        "needs",
        "attempt",
        "rev",
        "started",
        "due",
        "ended",
        "by",
        "value",
        "has_value",
        "data",
        "since",
    )
)
_REGION = tuple(
    region.c[n] for n in ("path", "owner", "state", "unended", "hot", "opened", "value", "has_value", "error", "item")
)
_MINE = (op.c.ws == b("ws"), op.c.run == b("run"))
_MY_REGION = (region.c.ws == b("ws"), region.c.run == b("run"))
_WRITTEN = (op.c.region == b("region"),)
FIRST_PAGE = 2
"""Rows that a look-up by rank reads first."""
PENDING = ("running", "waiting", "gated", "uncertain")

_BY_PATH = Statement(sa.select(*_OP).where(*_MINE, op.c.path == b("path")))
_IN_REGION = Statement(sa.select(*_OP).where(*_MINE, *_WRITTEN).order_by(op.c.rank))
_PAGED = (op.c.rank > b("after"),)
_READY = Statement(
    sa.select(*_OP)
    .where(*_MINE, *_WRITTEN, *_PAGED, op.c.state == "planned", op.c.needs == 0, op.c.open == 1)
    .order_by(op.c.rank)
    .limit(b("most"))
)
_ACTIVE = Statement(
    sa.select(*_OP)
    .where(*_MINE, *_WRITTEN, *_PAGED, sa.or_(op.c.own == 1, op.c.hot > 0))
    .order_by(op.c.rank)
    .limit(b("most"))
)
_PLANNED_AT = Statement(
    sa.select(*_OP).where(
        *_MINE,
        op.c.place == b("place"),
        op.c.place.is_not(None),
        op.c.state == sa.literal_column("'planned'"),
        op.c.path >= b("from_"),
        op.c.path < b("to_"),
    )
)
_AT_PLACE = Statement(
    sa.select(*_OP).where(*_MINE, op.c.place == b("place"), op.c.path >= b("from_"), op.c.path < b("to_"))
)
_PENDING = Statement(
    sa.select(*_OP).where(*_MINE, op.c.state.in_([sa.literal_column(f"'{s}'") for s in PENDING])).order_by(op.c.path)
)
_SHOWING = Statement(sa.select(*_OP).where(*_MINE, op.c.op == "show", op.c.state == "done"))
_ALL = Statement(sa.select(*_OP).where(*_MINE))
_COUNT = Statement(sa.select(sa.func.count()).select_from(op).where(*_MINE))
_REGION_AT = Statement(sa.select(*_REGION).where(*_MY_REGION, region.c.path == b("path")))
_OWNED = (region.c.owner == b("owner"), region.c.owner != sa.literal_column("''"))
_REGIONS_OF = Statement(sa.select(*_REGION).where(*_MY_REGION, *_OWNED))
_HOT_OF = Statement(sa.select(*_REGION).where(*_MY_REGION, *_OWNED, region.c.hot > 0))
_OPEN_OF = Statement(sa.select(*_REGION).where(*_MY_REGION, *_OWNED, region.c.state != "closed"))
_OPEN_REGIONS = Statement(sa.select(region.c.path).where(*_MY_REGION, region.c.state == "open"))
_ALL_REGIONS = Statement(sa.select(*_REGION).where(*_MY_REGION))

_ALL_OF_SOME = Statement(sa.select(op.c.run, *_OP).where(op.c.ws == b("ws"), among(op.c.run)))
_REGIONS_OF_SOME = Statement(sa.select(region.c.run, *_REGION).where(region.c.ws == b("ws"), among(region.c.run)))

_OP_NAMES = [c.name for c in _OP]
FIXED = ("path", "place", "region", "rank")
"""What of an op's row never changes."""
_ADD_OP = Statement(sa.insert(op).values({c.name: b(c.name) for c in op.c}))
_PUT_OP = Statement(
    sa.update(op)
    .where(op.c.ws == b("ws"), op.c.run == b("run"), op.c.path == b("path"))
    .values({n: b(n) for n in _OP_NAMES if n not in FIXED})
)
_ADD_REGION = Statement(sa.insert(region).values({c.name: b(c.name) for c in region.c}))
_PUT_REGION = Statement(
    sa.update(region)
    .where(*_MY_REGION, region.c.path == b("path"))
    .values(
        state=b("state"),
        opened=b("opened"),
        unended=b("unended"),
        hot=b("hot"),
        value=b("value"),
        has_value=b("has_value"),
        error=b("error"),
    )
)

_EXPECTING = Statement(
    # By the run alone: SQLite, which has no statistics, would look up the stream, and read all who wait for it.
    sa.select(wait.c.path, wait.c.stream).where(wait.c.ws == b("ws"), wait.c.run == b("run"))
)
_TAKER = Statement(
    sa.select(taken.c.path).where(taken.c.ws == b("ws"), taken.c.run == b("run"), taken.c.event == b("event"))
)
_EVENTS = Statement(
    sa.select(event.c.body, event.c.sender, event.c.conversation, event.c.at, event.c.stream, event.c.id)
    .where(event.c.ws == b("ws"), event.c.stream == b("stream"), event.c.at >= b("since"), event.c.at <= b("until"))
    .order_by(event.c.at.desc(), event.c.seq.desc())
    .limit(sa.literal_column("1000"))
)
_HISTORY = Statement(
    sa.select(op.c.op, op.c.ident, op.c.path, op.c.state, op.c.value, op.c.by, op.c.ended)
    .where(
        op.c.ws == b("ws"),
        op.c.run.in_(sa.select(run.c.seq).where(run.c.ws == b("ws"), run.c.job == b("job"))),
        op.c.ended.is_not(None),
        op.c.open == 0,
    )
    .order_by(op.c.ended.desc())
    .limit(sa.literal_column("1000"))
)


class StoredRows:
    """One run's rows around one fact, read when they are asked for."""

    def __init__(self, tx: Transaction, run_id: str, job: str) -> None:
        self.tx = tx
        self.run = run_id
        self.job = job
        self._mine = {"ws": tx.ws, "run": runs.key(tx, run_id)}

    def op(self, path: str) -> OpRow | None:
        got = self._at("op", path, _BY_PATH)
        return self._op(got) if got else None

    def region(self, path: str) -> RegionRow | None:
        got = self._at("region", path, _REGION_AT)
        return self._region(got) if got else None

    def _at(self, table: str, path: str, statement: Statement) -> tuple[Any, ...] | None:
        """A row by its path, as this transaction has written it, else from the database: what was only read may be
        from before the run was locked."""
        known = self.tx.known.get((table, self._mine["run"], path))
        return known or statement.one(self.tx, {**self._mine, "path": path})

    def in_region(self, region: str, but: Container[str] = ()) -> list[OpRow]:
        found = _IN_REGION.all(self.tx, {**self._mine, "region": region})
        return [self._op(got) for got in found if got[0] not in but]

    def ready(self, region: str) -> Iterator[OpRow]:
        return self._by_rank(_READY, region)

    def active(self, region: str) -> Iterator[OpRow]:
        return self._by_rank(_ACTIVE, region)

    def _by_rank(self, statement: Statement, region: str) -> Iterator[OpRow]:
        """Rows as they are asked for, mostly one: a few first, then more at a time."""
        most, after = FIRST_PAGE, -1
        while True:
            page = statement.all(self.tx, {**self._mine, "region": region, "after": after, "most": most})
            for got in page:
                yield self._op(got)
            if len(page) < most:
                return
            after, most = page[-1][3], most * 4

    def planned_at(self, place: str, top: str) -> list[OpRow]:
        # What stands below a region begins with its path and a dot; `/` is the character behind the dot.
        within = {"from_": top + ".", "to_": top + "/"} if top else {"from_": "", "to_": "~"}
        return [self._op(got) for got in _PLANNED_AT.all(self.tx, {**self._mine, "place": place, **within})]

    def regions_of(self, owner: str, *, hot: bool = False, still_open: bool = False) -> list[RegionRow]:
        if not owner:
            return []
        statement = _HOT_OF if hot else _OPEN_OF if still_open else _REGIONS_OF
        return [self._region(got) for got in statement.all(self.tx, {**self._mine, "owner": owner})]

    def open_regions(self) -> list[str]:
        return [got[0] for got in _OPEN_REGIONS.all(self.tx, self._mine)]

    def expecting(self, stream: str) -> list[str]:
        return [got[0] for got in _EXPECTING.all(self.tx, self._mine) if got[1] == stream]

    def events(self, streams: Sequence[str], key: str | None, since: datetime, until: datetime) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for stream in streams:
            for got in _EVENTS.all(
                self.tx, {"ws": self.tx.ws, "stream": stream, "since": micros(since), "until": micros(until)}
            ):
                if key is None or key in (got[1], got[2]):
                    found.append(event_of(got))
        return sorted(found, key=lambda e: e["at"], reverse=True)[:1000]

    def taker(self, event: str) -> str | None:
        got = _TAKER.one(self.tx, {**self._mine, "event": event})
        return got[0] if got else None

    def history(self) -> list[dict[str, Any]]:
        rows = _HISTORY.all(self.tx, {"ws": self.tx.ws, "job": self.job})
        return [
            {
                "op": g[0],
                "id": g[1],
                "path": g[2],
                "state": g[3],
                "value": values.get(self.tx, g[4]),
                "by": g[5],
                "at": _iso(g[6]),
            }
            for g in reversed(rows)
        ]

    def instances(self, places: Sequence[str]) -> list[OpRow]:
        found: list[OpRow] = []
        for place in places:
            loop, _, _ = place.partition("[")
            if loop == place:
                row = self.op(place)
                found += [row] if row is not None else []
            else:
                # The rows of a loop stand between its path with `[` and with the character behind it.
                within = {"place": place, "from_": f"{loop}[", "to_": f"{loop}\\"}
                found += [self._op(got) for got in _AT_PLACE.all(self.tx, {**self._mine, **within})]
        return found

    def pending(self) -> list[OpRow]:
        return [self._op(got) for got in _PENDING.all(self.tx, self._mine)]

    def planned_count(self) -> int:
        got = _COUNT.one(self.tx, self._mine)
        return int(got[0]) if got else 0

    def showing(self) -> list[OpRow]:
        """Every op that has shown something."""
        return [self._op(got) for got in _SHOWING.all(self.tx, self._mine)]

    def all(self) -> list[OpRow]:
        """Every op of the run: for the record, never for the engine."""
        return [self._op(got) for got in self.raw_ops()]

    def all_regions(self) -> list[RegionRow]:
        return [self._region(got) for got in self.raw_regions()]

    def raw_ops(self) -> list[tuple[Any, ...]]:
        return _ALL.all(self.tx, self._mine)

    def raw_regions(self) -> list[tuple[Any, ...]]:
        return _ALL_REGIONS.all(self.tx, self._mine)

    def _op(self, g: tuple[Any, ...]) -> OpRow:
        data = load(values.unshared(self.tx, g[20])) if g[20] else {}
        if g[21] is not None:
            data["since"] = _iso(g[21] + (g[14] or 0))
        return OpRow(
            path=g[0],
            place=g[1] or g[0],
            region=g[2],
            rank=g[3],
            op=g[4],
            id=g[5],
            state=g[6],
            open=bool(g[7]),
            own=bool(g[8]),
            hot=g[9],
            unclosed=g[10],
            needs=g[11],
            attempt=g[12],
            rev=g[13],
            started=instant(g[14]),
            due=instant(g[15]),
            ended=instant(g[16]),
            by=g[17],
            value=values.get(self.tx, g[18]),
            has_value=bool(g[19]),
            data=data,
        )

    def _region(self, g: tuple[Any, ...]) -> RegionRow:
        opened = instant(g[5])
        assert opened is not None
        return RegionRow(
            path=g[0],
            owner=g[1],
            state=g[2],
            unended=g[3],
            hot=g[4],
            opened=opened,
            value=values.get(self.tx, g[6]),
            has_value=bool(g[7]),
            error=g[8],
            item=values.get(self.tx, g[9]),
        )


def ahead(tx: Transaction, ids: Sequence[str]) -> None:
    """Reads every op and region of short runs that were locked, by few statements, for `small.SmallRows`."""
    numbers = [runs.key(tx, run_id) for run_id in ids]
    found: dict[int, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {number: ([], []) for number in numbers}
    for some in pages(numbers, 0):
        for at, statement in enumerate((_ALL_OF_SOME, _REGIONS_OF_SOME)):
            for got in statement.all(tx, {"ws": tx.ws, **some}):
                found[got[0]][at].append(got[1:])
    tx.ahead.update(found)


def event_of(got: tuple[Any, ...]) -> dict[str, Any]:
    """An event as the engine takes it: `{id, stream, from, conversation, at, event}`."""
    return {
        "id": f"{got[4]}/{got[5]}",
        "event": load(got[0]),
        "from": got[1],
        "conversation": got[2],
        "at": _iso(got[3]),
        "stream": got[4],
    }


def _iso(stored: int) -> str:
    at = instant(stored)
    assert at is not None
    return at.isoformat()


def put_ops(tx: Transaction, run_id: str, rows: list[OpRow]) -> None:
    number = runs.key(tx, run_id)
    tx.ahead.pop(number, None)
    added: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for row in rows:
        data, since = _data(tx, row)
        mine = {
            "ws": tx.ws,
            "run": number,
            "path": row.path,
            "op": row.op,
            "ident": row.id,
            "state": row.state,
            "open": int(row.open),
            "own": int(row.own),
            "hot": row.hot,
            "unclosed": row.unclosed,
            "needs": row.needs,
            "attempt": row.attempt,
            "rev": row.rev,
            "started": micros(row.started),
            "since": since,
            "due": micros(row.due),
            "ended": micros(row.ended),
            "by": row.by,
            "value": values.put(tx, row.value) if row.has_value else None,
            "has_value": int(row.has_value),
            "data": data,
        }
        place = row.place if row.place != row.path else None
        tx.known["op", number, row.path] = (
            row.path, place, row.region, row.rank, row.op, row.id, row.state, mine["open"], mine["own"], row.hot,
            row.unclosed, row.needs, row.attempt, row.rev, mine["started"], mine["due"], mine["ended"], row.by,
            mine["value"], mine["has_value"], data, since,
        )  # fmt: skip
        if row.new:
            added.append({**mine, "place": place, "region": row.region, "rank": row.rank})
        else:
            changed.append(mine)
    _ADD_OP.many(tx, added)
    _PUT_OP.many(tx, changed)


def _data(tx: Transaction, row: OpRow) -> tuple[str | None, int | None]:
    """An op's data as they are stored: the window's start in a column of its own (after the op's, mostly nothing), so
    that what is left is the same for many runs of a script that wait at the same op, and is shared."""
    since = row.data.get("since")
    if since is None:
        return (dump(row.data) if row.data else None), None
    rest = {k: v for k, v in row.data.items() if k != "since"}
    said = dump(rest) if rest else None
    if said is not None and row.state == "waiting":
        said = values.shared(tx, said)
    window = micros(datetime.fromisoformat(since))
    assert window is not None
    return said, window - (micros(row.started) or 0)


def put_regions(tx: Transaction, run_id: str, rows: list[RegionRow]) -> None:
    number = runs.key(tx, run_id)
    tx.ahead.pop(number, None)
    added: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for row in rows:
        mine = {
            "ws": tx.ws,
            "run": number,
            "path": row.path,
            "state": row.state,
            "opened": micros(row.opened),
            "unended": row.unended,
            "hot": row.hot,
            "value": values.put(tx, row.value) if row.has_value else None,
            "has_value": int(row.has_value),
            "error": row.error,
        }
        if row.new:
            item = values.put(tx, row.item) if row.item is not None else None
            added.append({**mine, "owner": row.owner, "item": item})
        else:
            changed.append(mine)
            before = tx.known.pop(("region", number, row.path), None)
            if before is None and row.item is not None:
                continue  # its element stands in the row alone: it is read again where it is needed
            item = before[-1] if before is not None else None
        tx.known["region", number, row.path] = (
            row.path, row.owner, row.state, row.unended, row.hot, mine["opened"], mine["value"], mine["has_value"],
            row.error, item,
        )  # fmt: skip
    _ADD_REGION.many(tx, added)
    _PUT_REGION.many(tx, changed)


def cancel_under(tx: Transaction, run_id: str, change: CancelledUnder) -> None:
    """One set-valued change: what is open below a path is cancelled, but for what stands below one of `keep`."""

    def under(column: Any, path: str) -> Any:
        return sa.or_(
            sa.and_(column >= path + ".", column < path + "/"), sa.and_(column >= path + "[", column < path + "\\")
        )

    def spared(column: Any) -> Any:
        return (
            sa.and_(*(sa.not_(sa.or_(under(column, k), column == k)) for k in change.keep))
            if change.keep
            else sa.true()
        )

    number = runs.key(tx, run_id)
    tx.ahead.pop(number, None)
    for found in [found for found in tx.known if found[0] != "run" and found[1] == number]:
        del tx.known[found]
    mine = (op.c.ws == tx.ws, op.c.run == number)
    tx.connection.execute(
        sa.update(op)
        .where(*mine, op.c.open == 1, under(op.c.path, change.path), spared(op.c.path))
        .values(
            state=sa.case((op.c.state.in_(("missed", "failed")), op.c.state), else_="cancelled"),
            open=0,
            own=0,
            hot=0,
            unclosed=0,
            due=None,
            ended=sa.func.coalesce(op.c.ended, micros(change.at)),
            rev=op.c.rev + 1,
        )
    )
    tx.connection.execute(
        sa.update(region)
        .where(
            region.c.ws == tx.ws,
            region.c.run == number,
            region.c.state != "closed",
            under(region.c.path, change.path),
            spared(region.c.path),
        )
        .values(state="closed", unended=0, hot=0, error=sa.func.coalesce(region.c.error, "(stopped)"))
    )
    from store.tables import delivery, timer

    for table in (wait, timer):
        tx.connection.execute(
            sa.delete(table).where(
                table.c.ws == tx.ws, table.c.run == number, under(table.c.path, change.path), spared(table.c.path)
            )
        )
    tx.connection.execute(
        sa.update(delivery)
        .where(
            delivery.c.ws == tx.ws,
            delivery.c.run == number,
            delivery.c.kind.in_(CARDS),
            delivery.c.outcome.is_(None),
            under(delivery.c.path, change.path),
            spared(delivery.c.path),
        )
        .values(outcome="withdrawn", shown=sa.case((delivery.c.channel == "web", 1), else_=0))
    )
