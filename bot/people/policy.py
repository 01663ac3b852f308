"""Who may read a job and who may start a script. What one may not see is not there."""

from __future__ import annotations

from bot.domain.catalog import World
from store import runs
from store.dialect import Transaction


def reads_job(tx: Transaction, job_id: str, email: str) -> bool:
    """A job that is not private is read by everybody in the workspace, a private one by its members."""
    job = runs.get_job(tx, job_id)
    return job is not None and (not job["private"] or _among(email, runs.members(tx, job_id)))


def may_paste(world: World, email: str) -> bool:
    """Policy: who may start a script. The people of the workspace, a role of them, a list, or everyone."""
    paste = world.policy.paste
    if isinstance(paste, tuple):
        return _among(email, list(paste))
    if paste.startswith("role:"):
        return _among(email, list(world.roles.get(paste[5:], ())))
    return paste == "everyone" or world.person(email) is not None


def who_pastes(world: World) -> str:
    """Who may start a script, in words."""
    paste = world.policy.paste
    if isinstance(paste, tuple):
        return ", ".join(world.name_of(who) for who in paste)
    return f"the {paste[5:]}" if paste.startswith("role:") else "the people of this workspace"


def _among(email: str, people: list[str]) -> bool:
    return email.casefold() in [who.casefold() for who in people]
