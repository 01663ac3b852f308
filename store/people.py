"""People, their identities and roles; log-in links, sessions and tokens (by hash, never themselves)."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bot.domain.catalog import Person
from store.dialect import Statement, Transaction, b, instant, micros
from store.tables import identity, login, person, role, session, setting, token

_PEOPLE = Statement(
    sa.select(person.c.email, person.c.name, person.c.timezone, person.c.prefers)
    .where(person.c.ws == b("ws"), person.c.active == 1)
    .order_by(person.c.email)
)
_IDENTITIES = Statement(
    sa.select(identity.c.email, identity.c.channel, identity.c.ref, identity.c.used, identity.c.shut)
    .where(identity.c.ws == b("ws"))
    .order_by(identity.c.email, identity.c.channel, identity.c.ref)
)
_MINE = (identity.c.ws == b("ws"), identity.c.channel == b("channel_"), identity.c.ref == b("ref_"))
_IDENTITY = Statement(
    sa.select(identity.c.email, identity.c.conversation, identity.c.used, identity.c.shut).where(*_MINE)
)
_USED = Statement(sa.update(identity).where(*_MINE).values(used=b("used"), shut=sa.null()))
_KNOWN_AT = Statement(sa.update(identity).where(*_MINE).values(conversation=b("conversation")))
_SHUT = Statement(sa.update(identity).where(*_MINE).values(shut=b("shut")))
_PREFER = Statement(
    sa.update(person).where(person.c.ws == b("ws"), person.c.email == b("email_")).values(prefers=b("prefers"))
)
_ROLES = Statement(sa.select(role.c.name, role.c.email).where(role.c.ws == b("ws")).order_by(role.c.name, role.c.email))
_PUT = Statement(
    lambda insert: (
        insert(person)
        .values(ws=b("ws"), email=b("email"), name=b("name"), timezone=b("timezone"), active=1)
        .on_conflict_do_update(
            index_elements=["ws", "email"], set_={"name": b("name"), "timezone": b("timezone"), "active": 1}
        )
    )
)
_GONE = Statement(
    sa.update(person)
    .where(person.c.ws == b("ws"), person.c.email == b("email_"), person.c.active == 1)
    .values(active=0)
)
_PUT_ROLE = Statement(
    lambda insert: insert(role).values(ws=b("ws"), name=b("name"), email=b("email")).on_conflict_do_nothing()
)
_DROP_ROLE = Statement(
    sa.delete(role).where(role.c.ws == b("ws"), role.c.name == b("name"), role.c.email == b("email"))
)
_LINK = Statement(
    lambda insert: (
        insert(identity)
        .values(ws=b("ws"), channel=b("channel"), ref=b("ref"), email=b("email"))
        .on_conflict_do_update(index_elements=["ws", "channel", "ref"], set_={"email": b("email")})
    )
)
_UNLINK = Statement(
    sa.delete(identity).where(
        identity.c.ws == b("ws"), identity.c.email == b("email_"), identity.c.channel == b("channel_")
    )
)
_LOGIN = Statement(sa.insert(login).values({c.name: b(c.name) for c in login.c}))
_USE = Statement(
    sa.update(login)
    .where(
        login.c.ws == b("ws"),
        login.c.hash == b("hash_"),
        login.c.used.is_(None),
        login.c.until > b("now"),
        sa.func.coalesce(login.c.purpose, sa.literal_column("''")) == b("purpose"),
    )
    .values(used=b("now"))
)
_LOGIN_OF = Statement(
    sa.select(login.c.email, login.c.until, login.c.used).where(login.c.ws == b("ws"), login.c.hash == b("hash"))
)
_SESSION = Statement(sa.insert(session).values({c.name: b(c.name) for c in session.c}))
_SESSION_OF = Statement(
    sa.select(session.c.email, session.c.csrf).where(
        session.c.ws == b("ws"), session.c.hash == b("hash"), session.c.until > b("now")
    )
)
_END = Statement(sa.delete(session).where(session.c.ws == b("ws"), session.c.hash == b("hash")))
_TOKEN = Statement(sa.insert(token).values({c.name: b(c.name) for c in token.c}))
_TOKEN_OF = Statement(
    sa.select(token.c.email, token.c.name).where(
        token.c.ws == b("ws"), token.c.hash == b("hash"), sa.or_(token.c.until.is_(None), token.c.until > b("now"))
    )
)
_SETTING = Statement(sa.select(setting.c.value).where(setting.c.ws == b("ws"), setting.c.name == b("name")))
_FORGET = Statement(sa.delete(setting).where(setting.c.ws == b("ws"), setting.c.name == b("name_")))
_KEEP = Statement(
    lambda insert: (
        insert(setting)
        .values(ws=b("ws"), name=b("name"), value=b("value"))
        .on_conflict_do_update(index_elements=["ws", "name"], set_={"value": b("value")})
    )
)
_SET = Statement(
    lambda insert: insert(setting).values(ws=b("ws"), name=b("name"), value=b("value")).on_conflict_do_nothing()
)


def hashed(secret: str) -> str:
    """How a link, a cookie or a token is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()


def people(tx: Transaction) -> tuple[Person, ...]:
    """Everyone active, by email, with the identities that something reaches; of two on one platform the latest used."""
    found: dict[str, dict[str, str]] = {}
    latest: dict[str, tuple[int, str]] = {}
    used_of: dict[tuple[str, str], int] = {}
    for email, channel, ref, used, shut in _IDENTITIES.all(tx, {"ws": tx.ws}):
        if shut is not None or used_of.get((email, channel), -1) >= (used or 0):
            continue
        used_of[email, channel] = used or 0
        found.setdefault(email, {})[channel] = ref
        if used and used > latest.get(email, (0, ""))[0]:
            latest[email] = (used, channel)
    return tuple(
        Person(
            email=g[0],
            name=g[1],
            timezone=g[2],
            identities=found.get(g[0], {}),
            prefers=g[3],
            latest=latest[g[0]][1] if g[0] in latest else None,
        )
        for g in _PEOPLE.all(tx, {"ws": tx.ws})
    )


def identity_of(tx: Transaction, channel: str, ref: str) -> dict[str, Any] | None:
    """Who somebody is on a platform: `{email, conversation, used, shut}`."""
    got = _IDENTITY.one(tx, {"ws": tx.ws, "channel_": channel, "ref_": ref})
    return {"email": got[0], "conversation": got[1], "used": instant(got[2]), "shut": got[3]} if got else None


def met(tx: Transaction, channel: str, ref: str, at: datetime) -> None:
    """They did something there: they are reached there again."""
    _USED.run(tx, {"ws": tx.ws, "channel_": channel, "ref_": ref, "used": micros(at)})


def reached_at(tx: Transaction, channel: str, ref: str, conversation: str) -> None:
    """Where they are written to alone."""
    _KNOWN_AT.run(tx, {"ws": tx.ws, "channel_": channel, "ref_": ref, "conversation": conversation})


def shut(tx: Transaction, channel: str, ref: str, why: str) -> None:
    """Nothing reaches them there, until they do something there themselves."""
    _SHUT.run(tx, {"ws": tx.ws, "channel_": channel, "ref_": ref, "shut": why})


def prefer(tx: Transaction, email: str, channel: str | None) -> bool:
    """Where they want their cards; None: wherever they are. False where nobody has this address."""
    return _PREFER.run(tx, {"ws": tx.ws, "email_": email, "prefers": channel}).rowcount == 1


def roles(tx: Transaction) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, email in _ROLES.all(tx, {"ws": tx.ws}):
        found[name] = (*found.get(name, ()), email)
    return found


def put(tx: Transaction, email: str, name: str, timezone: str | None = None) -> None:
    _PUT.run(tx, {"ws": tx.ws, "email": email, "name": name, "timezone": timezone})


def remove(tx: Transaction, email: str) -> bool:
    """The person is no longer here; what they did stays on record. False where they were not here."""
    return _GONE.run(tx, {"ws": tx.ws, "email_": email}).rowcount == 1


def link(tx: Transaction, email: str, channel: str, ref: str) -> None:
    _LINK.run(tx, {"ws": tx.ws, "channel": channel, "ref": ref, "email": email})


def unlink(tx: Transaction, email: str, channel: str) -> bool:
    """They are nobody on a channel any more. False where they were nobody there."""
    return _UNLINK.run(tx, {"ws": tx.ws, "email_": email, "channel_": channel}).rowcount > 0


def put_role(tx: Transaction, name: str, email: str) -> None:
    _PUT_ROLE.run(tx, {"ws": tx.ws, "name": name, "email": email})


def drop_role(tx: Transaction, name: str, email: str) -> None:
    _DROP_ROLE.run(tx, {"ws": tx.ws, "name": name, "email": email})


def add_login(tx: Transaction, secret: str, email: str, until: datetime, purpose: str | None = None) -> None:
    """A link that works once. `purpose` None logs in; `link` proves who somebody is on a platform."""
    _LOGIN.run(
        tx,
        {
            "ws": tx.ws,
            "hash": hashed(secret),
            "email": email,
            "until": micros(until),
            "used": None,
            "purpose": purpose,
        },
    )


def login_of(tx: Transaction, secret: str) -> dict[str, Any] | None:
    """Whose a link is, until when, and whether it was used."""
    got = _LOGIN_OF.one(tx, {"ws": tx.ws, "hash": hashed(secret)})
    return {"email": got[0], "until": instant(got[1]), "used": instant(got[2])} if got else None


def use_login(tx: Transaction, secret: str, now: datetime, purpose: str = "") -> str | None:
    """Uses a link up; gives its email, or None where it is unknown, used, too old, or made for something else."""
    given = {"ws": tx.ws, "hash_": hashed(secret), "now": micros(now), "purpose": purpose}
    if _USE.run(tx, given).rowcount != 1:
        return None
    got = login_of(tx, secret)
    return got["email"] if got else None


def add_session(tx: Transaction, secret: str, email: str, csrf: str, now: datetime, until: datetime) -> None:
    _SESSION.run(
        tx,
        {
            "ws": tx.ws,
            "hash": hashed(secret),
            "email": email,
            "csrf": csrf,
            "created": micros(now),
            "until": micros(until),
        },
    )


def session_of(tx: Transaction, secret: str, now: datetime) -> tuple[str, str] | None:
    """Email and CSRF token of a session that still stands."""
    got = _SESSION_OF.one(tx, {"ws": tx.ws, "hash": hashed(secret), "now": micros(now)})
    return (got[0], got[1]) if got else None


def end_session(tx: Transaction, secret: str) -> None:
    _END.run(tx, {"ws": tx.ws, "hash": hashed(secret)})


def add_token(
    tx: Transaction, secret: str, email: str, name: str | None, now: datetime, until: datetime | None
) -> None:
    _TOKEN.run(
        tx,
        {
            "ws": tx.ws,
            "hash": hashed(secret),
            "email": email,
            "name": name,
            "created": micros(now),
            "until": micros(until),
            "used": None,
        },
    )


def token_of(tx: Transaction, secret: str, now: datetime) -> str | None:
    """Whose bearer token this is."""
    got = _TOKEN_OF.one(tx, {"ws": tx.ws, "hash": hashed(secret), "now": micros(now)})
    return got[0] if got else None


def secret_key(tx: Transaction, fresh: str) -> str:
    """The database's own secret, made once."""
    _SET.run(tx, {"ws": tx.ws, "name": "secret_key", "value": fresh})
    got = _SETTING.one(tx, {"ws": tx.ws, "name": "secret_key"})
    assert got is not None
    return got[0]


def put_setting(tx: Transaction, name: str, value: str) -> None:
    """Keeps a small thing that processes of one database tell each other."""
    _KEEP.run(tx, {"ws": tx.ws, "name": name, "value": value})


def drop_setting(tx: Transaction, name: str) -> None:
    _FORGET.run(tx, {"ws": tx.ws, "name_": name})


def setting_of(tx: Transaction, name: str) -> str | None:
    got = _SETTING.one(tx, {"ws": tx.ws, "name": name})
    return got[0] if got else None
