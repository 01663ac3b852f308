"""What a fact would do: it is applied in a transaction that is rolled back, by the very function that applies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.facts import Fact
from bot.domain.plan import Plan
from bot.domain.record import OpRow, RunRow
from bot.runtime.commit import Outcome, Site, take
from bot.runtime.committer import Committer
from store import ops, runs
from store.dialect import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A run as it stands: its plan and its ops by path."""

    run: RunRow
    plan: Plan
    rows: Mapping[str, OpRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run before a fact and after it, and what the fact would send and call. Nothing of it is stored."""

    before: Standing
    after: Standing
    outcome: Outcome


class _Undone(Exception):
    """Carries a trial out of the transaction that it rolls back."""

    def __init__(self, trial: Trial | None) -> None:
        self.trial = trial


async def tried(committer: Committer, run_id: str, fact: Fact) -> Trial | None:
    """Applies a fact and takes it back; None where there is no such run."""

    def work(tx: Transaction) -> Any:
        before = standing(tx, committer.site, run_id)
        if before is None:
            raise _Undone(None)
        outcome = take(tx, committer.site, run_id, fact)
        after = standing(tx, committer.site, run_id)
        assert after is not None
        raise _Undone(Trial(before=before, after=after, outcome=outcome))

    try:
        await committer.write(work)
    except _Undone as done:
        return done.trial
    return None


def standing(tx: Transaction, site: Site, run_id: str) -> Standing | None:
    """A run as it stands now; None where there is none."""
    run = runs.get(tx, run_id)
    if run is None:
        return None
    rows = ops.StoredRows(tx, run_id, run.job).all()
    return Standing(run=run, plan=site.index(tx, run.plan).plan, rows={row.path: row for row in rows})
