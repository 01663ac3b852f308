"""Who may see a run: as its job, and whoever was asked in it. Who reads a job and who starts scripts is policy."""

from __future__ import annotations

from bot.people.policy import may_paste, reads_job, who_pastes
from store import outbox, runs
from store.dialect import Transaction

__all__ = ["asked_in", "may_paste", "reads_job", "reads_run", "who_pastes"]


def reads_run(tx: Transaction, run_id: str, email: str) -> bool:
    """A run is read as its job; one without a job's row by whoever started it."""
    run = runs.get(tx, run_id)
    if run is None:
        return False
    if runs.get_job(tx, run.job) is None:
        return run.owner.casefold() == email.casefold()
    return reads_job(tx, run.job, email)


def asked_in(tx: Transaction, run_id: str, email: str) -> bool:
    """Whether something of a run was put to this person: they may answer it, whatever else they may read."""
    return bool(outbox.find(tx, run_id=run_id, to=email, limit=1))
