"""The working set of one step: the rows one fact touches, changed in place, and what is to be written with them.

Everything the engine does to rows goes through here, so that activity, needs and the order of starts stay right.
What concerns another op or a region further up is put on `queue` and taken by `apply` until none is left.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from heapq import heappop, heappush
from typing import Any

from bot.domain.changes import (
    CARDS,
    Bound,
    Call,
    CancelledUnder,
    Delivery,
    Entry,
    Reply,
    Settled,
    Step,
    Timer,
    Wait,
)
from bot.domain.errors import Bug
from bot.domain.ids import below, indexes_of, instance, place_of, token
from bot.domain.plan import Op, Region
from bot.domain.record import OpRow, RegionRow
from bot.engine.index import PlanIndex
from bot.engine.view import View

Key = tuple[int, ...]


class Turn:
    """One fact being applied. `step` collects what is written; `now` is the fact's instant."""

    def __init__(self, view: View, now: datetime) -> None:
        self.view = view
        self.rows = view.rows
        self.index: PlanIndex = view.index
        self.world = view.world
        self.run = view.run
        self.now = now
        self.step = Step()
        self.queue: deque[tuple[str, str]] = deque()
        self._marked: set[str] = set()
        self._fresh: list[str] = []
        self._starts: list[tuple[Key, str, str]] = []
        self._openings: list[tuple[Key, str]] = []
        self._ops: dict[str, OpRow | None] = {}
        self._regions: dict[str, RegionRow | None] = {}
        self._in_region: dict[str, set[str]] = {}
        self._whole: set[str] = set()
        self._touched: dict[str, None] = {}
        self._touched_regions: dict[str, None] = {}
        self._keys: dict[str, Key] = {}
        self._timers: dict[str, dict[str, datetime | None]] = {}
        self._waits: dict[str, list[Wait]] = {}
        self._cards: dict[str, list[Delivery]] = {}
        self._unsent: set[tuple[str, str, int, str, str]] = set()
        self._left: dict[tuple[str, str], _Left] = {}

    def snapshot(self) -> Any:
        """What must be put back where an edit turns out not to stand: taken before it changes anything."""
        ahead = list(self._starts), set(self._marked), list(self._fresh), list(self._openings)
        return copy.deepcopy(self.run), deque(self.queue), *ahead

    def restore(self, kept: Any) -> None:
        """Forgets everything since the snapshot."""
        run, queue, *ahead = kept
        Turn.__init__(self, replace(self.view, run=run), self.now)
        self.queue, (self._starts, self._marked, self._fresh, self._openings) = queue, ahead

    # --- regions in which something may start ------------------------------------------------------------------
    def mark(self, region: str) -> None:
        """Something may start in this region: it is looked at when its turn in the written order comes."""
        if region not in self._marked:
            self._marked.add(region)
            self._fresh.append(region)

    def opens(self, owner: OpRow, region: str) -> None:
        """The op has this region to open next: it does when its turn in the written order comes, so that what stands
        in the one before has started and is not kept in mind."""
        heappush(self._openings, (self.region_key(region), owner.path))

    def next_opening(self) -> str | None:
        """The op that opens its next region now that nothing above it in the written order may start."""
        return heappop(self._openings)[1] if self._openings else None

    def next_start(self, startable: Callable[[str], OpRow | None]) -> OpRow | None:
        """The op that comes first in written order among those that may start, unless a region that is to open stands
        above it. A region's key is below those of its ops, so regions further down are not looked at before it is
        their turn. What else may start in its region is for whoever begins it to look for (`mark`)."""
        while self._fresh or self._starts:
            path = ""
            if (region := self._alone()) is None:
                if not self._starts:
                    return None
                _, region, path = heappop(self._starts)
            if not path:
                self._marked.discard(region)
            row = startable(region)
            if row is None:
                continue
            if not self._starts and not self._openings:
                return row
            key = self.key(row.path)
            opened = not self._openings or key < self._openings[0][0]
            if opened and (row.path == path or not self._starts):
                return row
            heappush(self._starts, (key, region, row.path))
            if not opened and self._openings[0][0] < self._starts[0][0]:
                return None
        return None

    def _alone(self) -> str | None:
        """The one region that is to be looked at, where there is no other: then its place in the order is no matter,
        as mostly. Several are put in order."""
        live: list[str] = []
        for region in self._fresh:
            row = self.find_region(region)
            if row is not None and row.state == "open":
                live.append(region)
            else:
                self._marked.discard(region)
        self._fresh = []
        if len(live) == 1 and not self._starts:
            return live[0]
        for region in live:
            heappush(self._starts, (self.region_key(region), region, ""))
        return None

    def left(self) -> list[tuple[str, str]]:
        """What the step has not come to: follow-ups, regions to open, regions in which something may start."""
        starts = [*self._starts, *((self.region_key(region), region, "") for region in self._fresh)]
        opening = (("more", path) for _, path in sorted(self._openings))
        return [*self.queue, *opening, *dict.fromkeys(("start", region) for _, region, _ in sorted(starts))]

    # --- looking up -------------------------------------------------------------------------------------------
    def op(self, path: str) -> OpRow | None:
        if path in self._ops:
            return self._ops[path]
        return self._keep(self.rows.op(path), path)

    def must(self, path: str) -> OpRow:
        row = self.op(path)
        if row is None:
            raise Bug(f"no op {path}")
        return row

    def region(self, path: str) -> RegionRow:
        row = self.find_region(path)
        if row is None:
            raise Bug(f"no region {path!r}")
        return row

    def find_region(self, path: str) -> RegionRow | None:
        if path not in self._regions:
            self._regions[path] = self._seen(self.rows.region(path))
        return self._regions[path]

    def plan_op(self, row: OpRow) -> Op:
        return self.index.ops[row.place]

    def keep(self, row: OpRow) -> OpRow:
        """A row that was read elsewhere, as this step sees it."""
        kept = self._keep(row, row.path)
        assert kept is not None
        return kept

    def keep_region(self, row: RegionRow) -> RegionRow:
        if row.path not in self._regions:
            self._regions[row.path] = self._seen(row)
        kept = self._regions[row.path]
        assert kept is not None
        return kept

    def _keep(self, row: OpRow | None, path: str) -> OpRow | None:
        known = self._ops.get(path)
        if known is not None:
            return known
        if row is not None:
            for gone in self.step.cancelled:
                if row.open and below(path, gone.path) and not any(below(path, k) or k == path for k in gone.keep):
                    _cancelled(row, gone.at)
            self._in_region.setdefault(row.region, set()).add(path)
        self._ops[path] = row
        return row

    def _seen(self, row: RegionRow | None) -> RegionRow | None:
        if row is not None:
            for gone in self.step.cancelled:
                if row.state != "closed" and below(row.path, gone.path):
                    if not any(below(row.path, k) or k == row.path or below(k, row.path) for k in gone.keep):
                        _closed(row)
        return row

    def ops_in(self, region: str) -> list[OpRow]:
        """Every op of a region instance, by rank."""
        if region not in self._whole:
            for row in self.rows.in_region(region, self._ops):
                self._keep(row, row.path)
            self._whole.add(region)
        rows = [self._ops[path] for path in self._in_region.get(region, ())]
        return sorted((row for row in rows if row is not None), key=lambda row: row.rank)

    def first_startable(self, region: RegionRow) -> OpRow | None:
        """The first ready op of a region in written order, unless an active one stands above it."""
        bar: int | None = None
        if region.hot:
            active = [row.rank for row in self._known(region.path) if row.active]
            if len(active) == region.hot:
                bar = min(active)
            else:
                lowest = self._lowest(region.path, self.rows.active, lambda r: r.active, None)
                bar = lowest.rank if lowest is not None else None
        return self._lowest(
            region.path, self.rows.ready, lambda r: r.state == "planned" and r.needs == 0 and r.open, bar
        )

    def _known(self, region: str) -> Iterator[OpRow]:
        for path in self._in_region.get(region, ()):
            row = self._ops[path]
            if row is not None:
                yield row

    def _lowest(
        self,
        region: str,
        stored: Callable[[str], Iterator[OpRow]],
        fits: Callable[[OpRow], bool],
        below: int | None,
    ) -> OpRow | None:
        """The row of the lowest rank that fits, among those below a rank. What the store gave is not asked for again:
        the rows that this step has changed are among the known ones."""
        best: OpRow | None = None
        for row in self._known(region):
            if fits(row) and (best is None or row.rank < best.rank) and (below is None or row.rank < below):
                best = row
        if region in self._whole:
            return best
        asked = (region, stored.__name__)
        left = self._left.get(asked)
        if left is None:
            left = self._left[asked] = _Left(stored(region))
        while True:
            bound = best.rank if best is not None else below
            if bound is not None and bound <= left.rank:
                return best
            row = left.peek()
            if row is None or (bound is not None and row.rank > bound):
                return best
            left.take()
            if row.path not in self._ops:
                kept = self._keep(row, row.path)
                if kept is not None and fits(kept):
                    return kept

    def planned_at(self, place: str, top: str) -> list[OpRow]:
        found = [self.keep(row) for row in self.rows.planned_at(place, top)]
        known = {row.path for row in found}
        fresh = [
            r
            for r in self._ops.values()
            if r is not None and r.place == place and r.path not in known and (not top or below(r.path, top))
        ]
        return [row for row in (*found, *fresh) if row.state == "planned"]

    def regions_of(self, owner: str, *, hot: bool = False, still_open: bool = False) -> list[RegionRow]:
        stored = {row.path: row for row in self.rows.regions_of(owner, hot=hot, still_open=still_open)}
        found = [self.keep_region(row) for row in stored.values()]
        found += [r for r in self._regions.values() if r is not None and r.owner == owner and r.path not in stored]
        found = [r for r in found if (not hot or r.hot > 0) and (not still_open or r.state != "closed")]
        return sorted(found, key=lambda r: self.region_key(r.path))

    # --- keys of the written order ----------------------------------------------------------------------------
    def key(self, path: str) -> Key:
        """Where an op stands in the written order of the whole plan, depth first."""
        known = self._keys.get(path)
        if known is None:
            row = self.must(path)
            known = self._keys[path] = (*self.region_key(row.region), row.rank)
        return known

    def region_key(self, path: str) -> Key:
        known = self._keys.get("@" + path)
        if known is None:
            if path == "":
                known = (0,)
            elif path == "onError":
                known = (1,)
            else:
                owner = owner_of(path)
                place = self.index.regions.get(place_of(path))
                number = self.index.ordinal.get(place.place, 0) if place else 0
                at = int(path[path.rfind("[") + 1 : -1]) + 1 if path.endswith("]") else 0
                known = (*self.key(owner), number, at)
            self._keys["@" + path] = known
        return known

    # --- changing ---------------------------------------------------------------------------------------------
    def touch(self, row: OpRow) -> None:
        self._touched[row.path] = None

    def touch_region(self, row: RegionRow) -> None:
        self._touched_regions[row.path] = None

    def add(self, row: OpRow) -> None:
        row.new = True
        self._ops[row.path] = row
        self._in_region.setdefault(row.region, set()).add(row.path)
        self.touch(row)

    def add_region(self, row: RegionRow) -> None:
        row.new = True
        self._regions[row.path] = row
        self._whole.add(row.path)
        self.touch_region(row)

    def set_own(self, row: OpRow, own: bool) -> None:
        """The op itself is active, or is no more; its region and those around it follow."""
        before = row.active
        row.own = own
        self.touch(row)
        if row.active != before:
            self._heat(row.region, 1 if row.active else -1)

    def _heat(self, path: str, by: int) -> None:
        while True:
            region = self.region(path)
            was = region.hot
            region.hot += by
            self.touch_region(region)
            if by < 0:
                self.mark(path)
            if not region.owner or (was > 0) == (region.hot > 0):
                return
            owner = self.must(region.owner)
            before = owner.active
            owner.hot += 1 if region.hot > 0 else -1
            self.touch(owner)
            if owner.active == before:
                return
            path = owner.region

    def cool(self, region: RegionRow) -> None:
        """A region that ends as a set is active no more."""
        if region.hot:
            self._heat(region.path, -region.hot)

    # --- what is written besides ------------------------------------------------------------------------------
    def deliver(self, row: OpRow, kind: str, to: str, card: dict[str, Any], *, opens: bool = False, n: int = 0) -> None:
        made = Delivery(
            path=row.path,
            attempt=row.attempt,
            kind=kind,
            to=to,
            card=card,
            at=self.now,
            opens=opens,
            n=str(n) if n else "",
        )
        self.step.deliveries.append(made)
        if kind in CARDS:
            self._cards.setdefault(row.path, []).append(made)

    def notice(self, row: OpRow | None, text: str, n: str) -> None:
        """Something the run's owner should know."""
        path = row.path if row else ""
        self.step.deliveries.append(
            Delivery(path=path, attempt=0, kind="notice", to=self.run.owner, card={"text": text}, at=self.now, n=n)
        )

    def settle_cards(self, path: str, outcome: str, *, to: str | None = None) -> None:
        """The cards of an op turn into their outcome; one that this very step would send is not sent."""
        self.step.settled.append(Settled(path=path, outcome=outcome, to=to))
        self._unsent.update(card.key for card in self._cards.get(path, ()) if to in (None, card.to))

    def call(
        self, row: OpRow, kind: str, body: dict[str, Any], *, idempotent: bool = True, timeout_s: float = 60, n: int = 0
    ) -> None:
        self.step.calls.append(
            Call(
                path=row.path,
                attempt=row.attempt,
                kind=kind,
                body=body,
                at=self.now,
                idempotent=idempotent,
                timeout_s=timeout_s,
                n=n,
            )
        )

    def timer(self, path: str, kind: str, due: datetime | None) -> None:
        """The op is to be woken then (never: None). The last word of a step counts."""
        self._timers.setdefault(path, {})[kind] = due

    def arm(self, wait: Wait) -> None:
        self._waits.setdefault(wait.path, []).append(wait)

    def disarm(self, path: str) -> None:
        """Nothing wakes or settles the op any more, nor what this step armed for it."""
        self._timers.pop(path, None)
        self._waits.pop(path, None)
        self.step.disarmed.append(path)

    def drop_calls(self, path: str) -> None:
        """Nobody waits for what the op has on its way, and what this step asked for is not begun."""
        self.step.dropped_calls.append(path)
        self.step.calls = [call for call in self.step.calls if call.path != path]

    def cancel_under(self, path: str, keep: tuple[str, ...], why: str) -> None:
        self.step.cancelled.append(CancelledUnder(path=path, keep=keep, at=self.now, why=why))

        def goes(at: str) -> bool:
            return below(at, path) and not any(below(at, k) or at == k for k in keep)

        for armed in (*self._timers, *self._waits):
            if goes(armed):
                self.disarm(armed)
        for sent in self._cards:
            if goes(sent):
                self._unsent.update(card.key for card in self._cards[sent])
        self.step.calls = [call for call in self.step.calls if not goes(call.path)]
        for row in self._ops.values():
            if row is not None and row.open and below(row.path, path):
                if not any(below(row.path, k) or k == row.path for k in keep):
                    _cancelled(row, self.now)
                    self.touch(row)
        for region in self._regions.values():
            if region is not None and region.state != "closed" and below(region.path, path):
                if not any(below(region.path, k) or k == region.path or below(k, region.path) for k in keep):
                    _closed(region)
                    self.touch_region(region)

    def bind(self, name: str, value: Any) -> None:
        self.step.bound.append(Bound(name=name, value=value, at=self.now))

    def record(self, what: str, row: OpRow | None = None, *, by: str | None = None, **data: Any) -> None:
        self.step.entries.append(
            Entry(
                at=self.now,
                what=what,
                path=row.path if row else "",
                by=by,
                data={k: v for k, v in data.items() if v is not None},
            )
        )

    def reply(self, to: str, text: str, *, accepted: bool = False, status: int = 409) -> None:
        self.step.replies.append(Reply(to=to, text=text, accepted=accepted, status=200 if accepted else status))

    def token(self, *parts: str) -> str:
        return token(self.view.secret, self.run.id, *parts, chars=22)

    def done(self) -> Step:
        """What is to be written, once the step has come to rest."""
        self.step.ops = [self.must(path) for path in self._touched]
        self.step.regions = [self.region(path) for path in self._touched_regions]
        self.step.timers = [
            Timer(path=path, kind=kind, due=due) for path, kinds in self._timers.items() for kind, due in kinds.items()
        ]
        self.step.waits = [wait for waits in self._waits.values() for wait in waits]
        self._group_approvals()
        if self._unsent:
            self.step.deliveries = [d for d in self.step.deliveries if d.key not in self._unsent]
        self.step.run = self.run
        return self.step

    def _group_approvals(self) -> None:
        """Approvals that one fact asks a person for are one card: each names the others, and is decided by itself."""
        groups: dict[tuple[str, datetime], list[Delivery]] = {}
        for made in self.step.deliveries:
            if made.kind == "approval" and made.key not in self._unsent:
                groups.setdefault((made.to, made.at), []).append(made)
        together = {
            made.key: [one.path for one in group] for group in groups.values() if len(group) > 1 for made in group
        }
        if together:
            self.step.deliveries = [
                replace(made, card={**made.card, "with": together[made.key]}) if made.key in together else made
                for made in self.step.deliveries
            ]

    # --- places -----------------------------------------------------------------------------------------------
    def at_place(self, reader: str, place: str) -> OpRow | None:
        """The instance of a place that a reader sees: under the reader's own indexes."""
        return self.op(instance(place, indexes_of(reader)))

    def region_plan(self, path: str) -> Region:
        return self.index.regions[place_of(path)]


class _Left:
    """What is left of an ordered look-up, read as far as it is needed. `rank`: nothing that is left stands at or above
    it in the written order."""

    def __init__(self, rows: Iterator[OpRow]) -> None:
        self._rows = rows
        self._next: OpRow | None = None
        self._read = False
        self.rank = -1

    def peek(self) -> OpRow | None:
        if not self._read:
            self._read = True
            self._next = next(self._rows, None)
        return self._next

    def take(self) -> None:
        if self._next is not None:
            self.rank = self._next.rank
        self._read = False


def _cancelled(row: OpRow, at: datetime) -> None:
    """As the set-valued change leaves an op in the store."""
    if row.state not in ("missed", "failed"):
        row.state = "cancelled"
    row.open, row.own, row.hot, row.unclosed, row.due = False, False, 0, 0, None
    row.ended = row.ended or at
    row.rev += 1


def _closed(row: RegionRow) -> None:
    row.state, row.unended, row.hot = "closed", 0, 0
    row.error = row.error or STOPPED


STOPPED = "(stopped)"
"""The error of a region that was stopped from outside: a retry opens it again."""


def owner_of(region: str) -> str:
    """The path of the op that a region instance belongs to."""
    if region in ("", "onError"):
        return ""
    if region.endswith("]"):
        return region[: region.rfind("[")]
    return region[: region.rfind(".")]


def name_of_region(path: str) -> str:
    """`then`, `onMiss`, a branch's name; an item's is its index."""
    if path.endswith("]"):
        return path[path.rfind("[") + 1 : -1]
    return path[path.rfind(".") + 1 :]
