"""What people say to the bot's agent, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import wish

State = Literal["open", "said", "done"]

_FIELDS = tuple(c.name for c in wish.c if c.name != "ws")
_MINE = (wish.c.ws == b("ws"), wish.c.id == b("id_"))
_PUT = Statement(lambda insert: insert(wish).values({c.name: b(c.name) for c in wish.c}).on_conflict_do_nothing())
_ROWS = sa.select(*(wish.c[n] for n in _FIELDS))
_GET = Statement(_ROWS.where(*_MINE))
_OF_JOB = Statement(
    _ROWS.where(wish.c.ws == b("ws"), wish.c.job == b("job")).order_by(wish.c.at.desc()).limit(b("most"))
)
_IN_STATE = Statement(_ROWS.where(wish.c.ws == b("ws"), wish.c.state == b("state_")).order_by(wish.c.at))
_TAKE = Statement(
    sa.update(wish)
    .where(*_MINE, wish.c.state == sa.literal_column("'open'"), wish.c.holder == b("before"))
    .values(holder=b("holder"))
)
_END = Statement(
    sa.update(wish)
    .where(*_MINE, wish.c.state == sa.literal_column("'open'"))
    .values(state=b("state"), said=b("said"), failed=b("failed"), ended=b("ended"))
)
_SHOWN = Statement(sa.update(wish).where(*_MINE, wish.c.state == sa.literal_column("'said'")).values(state="done"))
_STANDS = Statement(sa.update(wish).where(*_MINE).values(ref=b("ref")))
_EDITED = Statement(sa.update(wish).where(*_MINE).values(editor=b("editor")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What `by` said in a job to an agent (`author`, `agent:NAME`), and what it answered (`said`; `failed`: why it has
    no answer). `conversation`: where that is shown, if not in the room alone."""

    id: str
    job: str
    by: str
    author: str
    text: str
    at: datetime
    said: str | None = None
    failed: bool = False
    state: State = "open"
    holder: str | None = None
    conversation: str | None = None
    ref: str | None = None
    editor: str | None = None
    ended: datetime | None = None


def put(tx: Transaction, row: Wish) -> bool:
    """Stores a wish; False where its id is there already."""
    values = {name: getattr(row, name) for name in _FIELDS}
    values |= {"ws": tx.ws, "at": micros(row.at), "ended": None, "failed": int(row.failed)}
    return _PUT.run(tx, values).rowcount == 1


def get(tx: Transaction, ident: str) -> Wish | None:
    got = _GET.one(tx, {"ws": tx.ws, "id_": ident})
    return _wish(got) if got else None


def of_job(tx: Transaction, job: str, most: int = 50) -> list[Wish]:
    """The latest wishes of a job, newest first."""
    return [_wish(got) for got in _OF_JOB.all(tx, {"ws": tx.ws, "job": job, "most": most})]


def in_state(tx: Transaction, state: State) -> list[Wish]:
    return [_wish(got) for got in _IN_STATE.all(tx, {"ws": tx.ws, "state_": state})]


def take(tx: Transaction, ident: str, before: str, holder: str) -> bool:
    """Another process has the agent at work; False where somebody else took it meanwhile."""
    return _TAKE.run(tx, {"ws": tx.ws, "id_": ident, "before": before, "holder": holder}).rowcount == 1


def end(tx: Transaction, ident: str, said: str, at: datetime, *, failed: bool, state: State) -> bool:
    """Keeps an agent's answer; False where there is one."""
    given = {"ws": tx.ws, "id_": ident, "said": said, "failed": int(failed), "state": state, "ended": micros(at)}
    return _END.run(tx, given).rowcount == 1


def shown(tx: Transaction, ident: str) -> None:
    """Its conversation shows the answer."""
    _SHOWN.run(tx, {"ws": tx.ws, "id_": ident})


def stands(tx: Transaction, ident: str, ref: str) -> None:
    """The message that shows it."""
    _STANDS.run(tx, {"ws": tx.ws, "id_": ident, "ref": ref})


def edited(tx: Transaction, ident: str, editor: str | None) -> None:
    _EDITED.run(tx, {"ws": tx.ws, "id_": ident, "editor": editor})


def _wish(got: tuple[Any, ...]) -> Wish:
    row: dict[str, Any] = dict(zip(_FIELDS, got, strict=True))
    row |= {"at": instant(row["at"]), "ended": instant(row["ended"]), "failed": bool(row["failed"])}
    return Wish(**row)
