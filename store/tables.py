"""Every table. Instants are microseconds since 1970 UTC, values are JSON texts, hashes are bytes, flags are 0 and 1:
the same on SQLite and PostgreSQL, with no type between the row and the driver. Every key begins with the workspace, so
that tables can be spread by it.

A run is known by its text id outside and by its number (`run.seq`) in every other table: a run that waits is some ten
rows and index entries, and its id would be most of each.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Serial = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *columns: Column | Index | UniqueConstraint, key: tuple[str, ...], rowid: bool = False) -> Table:
    """A table whose primary key begins with the workspace."""
    return Table(
        name,
        metadata,
        Column("ws", Integer, nullable=False),
        *columns,
        PrimaryKeyConstraint("ws", *key),
        sqlite_with_rowid=rowid,
    )


PATHS = frozenset({"path", "region", "owner", "place"})
"""Columns that are compared as bytes, whatever language the database speaks: a path's prefix is a range."""
Path = Text().with_variant(Text(collation="C"), "postgresql")


def _text(name: str, *, null: bool = True) -> Column:
    return Column(name, Path if name in PATHS else Text, nullable=null)


def _int(name: str, *, null: bool = False, default: int | None = 0) -> Column:
    return Column(name, BigInteger, nullable=null, server_default=None if default is None else str(default))


def _at(name: str, *, null: bool = True) -> Column:
    return Column(name, BigInteger, nullable=null)


def _hash(name: str, *, null: bool = True) -> Column:
    return Column(name, LargeBinary, nullable=null)


def _run() -> Column:
    """The number of a run."""
    return Column("run", BigInteger, nullable=False)


job = _table(
    "job",
    _text("id", null=False),
    _text("title"),
    _text("conversation"),
    _text("customer"),
    _at("created"),
    _int("private"),
    Index("ix_job_conversation", "ws", "conversation"),
    key=("id",),
)
"""A conversation in which scripts run. `customer`: JSON. `private`: only its members read it."""

member = _table("member", _text("job", null=False), _text("email", null=False), key=("job", "email"))
"""Who reads a private job."""

plan = _table(
    "plan", _hash("hash", null=False), _text("body", null=False), _text("source"), _text("surface"), key=("hash",)
)
"""What many runs share, by its hash, stored once: a script's plan (`body` canonical JSON), and what whoever started it
was told (`body` the pre-flight, `source` the text as pasted)."""

run = Table(
    "run",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("seq", Serial, primary_key=True, autoincrement=True),
    _text("id", null=False),
    _text("job", null=False),
    _text("owner", null=False),
    _hash("plan", null=False),
    _text("state", null=False),
    _int("rev"),
    _int("n"),
    _hash("hash"),
    _at("created", null=False),
    _at("ended"),
    _text("names"),
    _text("customer"),
    _text("parent"),
    _hash("told"),
    _at("ends"),
    _text("data"),
    UniqueConstraint("ws", "id"),
    Index("ix_run_job", "ws", "job", "created"),
    Index("ix_run_state", "ws", "state", "created"),
)
"""`told`: the plan row of what was told before the start; `ends`: the latest instant at which it can end."""

region = _table(
    "region",
    _run(),
    _text("path", null=False),
    _text("owner", null=False),
    _text("state", null=False),
    _int("unended"),
    _int("hot"),
    _at("opened", null=False),
    _text("value"),
    _int("has_value"),
    _text("error"),
    _text("item"),
    key=("run", "path"),
)
Index("ix_region_owner", region.c.ws, region.c.run, region.c.owner, sqlite_where=text("owner <> ''"))

op = _table(
    "op",
    _run(),
    _text("path", null=False),
    _text("place"),
    _text("region", null=False),
    Column("rank", BigInteger, nullable=False),
    _text("op", null=False),
    _text("ident"),
    _text("state", null=False),
    _int("open"),
    _int("own"),
    _int("hot"),
    _int("unclosed"),
    _int("needs"),
    _int("attempt"),
    _int("rev"),
    _at("started"),
    _at("since"),
    _at("due"),
    _at("ended"),
    _text("by"),
    _text("value"),
    _int("has_value"),
    _text("data"),
    Index("ix_op_region", "ws", "run", "region", "rank"),
    key=("run", "path"),
)
"""Plan and record of one op. `place`: null where it is the path, as everywhere outside loops. `since`: its window's
start, where the op keeps one, in microseconds after `started`. `ix_op_region` walks a region in written order."""
Index(
    "ix_op_planned",
    op.c.ws,
    op.c.run,
    op.c.place,
    op.c.path,
    sqlite_where=text("state = 'planned' and place is not null"),
)
Index(
    "ix_op_pending",
    op.c.ws,
    op.c.run,
    op.c.path,
    sqlite_where=text("state in ('running','waiting','gated','uncertain')"),
)

timer = _table(
    "timer",
    _run(),
    _text("path", null=False),
    _text("kind", null=False),
    _at("due", null=False),
    Index("ix_timer_due", "due"),
    key=("run", "path", "kind"),
)
"""What the clock must wake: deadlines (`kind` is empty), retry pauses, reminders."""

wait = _table(
    "wait",
    _run(),
    _text("path", null=False),
    _text("stream", null=False),
    _text("key"),
    _at("since", null=False),
    _text("where"),
    Index("ix_wait_stream", "ws", "stream", "key"),
    key=("run", "path", "stream"),
)
"""Armed expectations, found by (workspace, stream, key); `key` null takes any sender."""

event = Table(
    "event",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("seq", Serial, primary_key=True, autoincrement=True),
    _text("stream", null=False),
    _text("id", null=False),
    _text("sender"),
    _text("conversation"),
    _at("at", null=False),
    _text("body", null=False),
    _text("raw"),
    _int("routed"),
    UniqueConstraint("ws", "stream", "id"),
    Index("ix_event_sender", "ws", "stream", "sender", "at"),
)
"""The inbox: unique by the sender's id. `routed`: it has become facts of the runs it passes."""
Index("ix_event_unrouted", event.c.seq, sqlite_where=text("routed = 0"))
Index("ix_event_at", event.c.ws, event.c.stream, event.c.at)

taken = _table("taken", _run(), _text("event", null=False), _text("path", null=False), key=("run", "event"))
"""Which op of a run an event belongs to."""

delivery = Table(
    "delivery",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("seq", Serial, primary_key=True, autoincrement=True),
    _run(),
    _text("path", null=False),
    _text("kind", null=False),
    _int("attempt"),
    _text("to", null=False),
    Column("n", Text, nullable=False, server_default=""),
    _text("card", null=False),
    _at("at", null=False),
    _int("opens"),
    _text("state", null=False),
    _text("channel"),
    _text("conversation"),
    _text("ref"),
    _text("outcome"),
    _int("shown"),
    _text("error"),
    _at("done"),
    UniqueConstraint("ws", "run", "path", "kind", "attempt", "to", "n"),
)
"""The outbox of messages and cards: `held` (behind 50 open ones of the same person), `queued`, `sent` (marked before
the socket is touched), `delivered`, `failed`.
`outcome`: what a card has turned into; `shown` 0 while the platform does not show that yet. `done`: null where it was
delivered by the commit that wrote it."""
Index("ix_delivery_queued", delivery.c.seq, sqlite_where=text("state in ('queued','sent')"))
Index("ix_delivery_stale", delivery.c.seq, sqlite_where=text("outcome is not null and shown = 0"))
Index(
    "ix_delivery_open",
    delivery.c.ws,
    delivery.c.to,
    delivery.c.run,
    sqlite_where=text("kind in ('card','approval','doubt') and outcome is null and state <> 'held'"),
)
Index(
    "ix_delivery_held",
    delivery.c.ws,
    delivery.c.run,
    delivery.c.to,
    delivery.c.seq,
    sqlite_where=text("state = 'held' and outcome is null"),
)

Index(
    "ix_delivery_ref",
    delivery.c.ws,
    delivery.c.conversation,
    delivery.c.ref,
    sqlite_where=text("ref is not null"),
)

status = _table(
    "status",
    _run(),
    _text("channel", null=False),
    _text("conversation", null=False),
    _text("ref"),
    _text("said"),
    _int("rev"),
    _at("at"),
    key=("run",),
)
"""The message of a run that a platform shows and that is edited in place. `said`: a hash of what it shows; `rev`: the
run's when that was made; `at`: when it was last changed."""

call = _table(
    "call",
    _run(),
    _text("path", null=False),
    _int("attempt"),
    _text("kind", null=False),
    _int("n"),
    _text("body", null=False),
    _at("at", null=False),
    _text("state", null=False),
    _int("idempotent"),
    _int("timeout_ms"),
    _at("sent"),
    _at("done"),
    _text("holder"),
    key=("run", "path", "attempt", "kind", "n"),
)
"""The outbox of work: `queued`, `sent` (by `holder`), `done`, `dropped`."""
Index("ix_call_open", call.c.ws, call.c.at, sqlite_where=text("state in ('queued','sent')"))

endpoint = Table(
    "endpoint",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("token", Text, primary_key=True),
    _run(),
    _text("path", null=False),
    _at("until", null=False),
    _at("called"),
)

more = _table("more", _run(), key=("run",))
"""Runs whose last step was too long for one transaction: the rest is taken before any other fact of theirs."""

history = _table(
    "history",
    _run(),
    _int("n", default=None),
    _at("at", null=False),
    _text("what", null=False),
    _text("path"),
    _text("by"),
    _text("data"),
    _hash("hash", null=False),
    key=("run", "n"),
)
"""Append only; each row has the hash of the one before it in its own."""

binding = _table(
    "binding",
    _text("job", null=False),
    _text("name", null=False),
    _text("value"),
    _text("type"),
    _int("size"),
    _int("errors"),
    _at("at", null=False),
    Column("run", BigInteger),
    key=("job", "name"),
)

element = _table(
    "element",
    _run(),
    _text("path", null=False),
    _int("attempt"),
    _int("at", default=None),
    _text("value"),
    key=("run", "path", "attempt", "at"),
)
"""Answers of an `each`, as they come; none once the op is done. `attempt`: a number for what is asked, the same in
every attempt that asks the same."""

spent = _table(
    "spent",
    _run(),
    _text("path", null=False),
    _int("calls"),
    _int("input"),
    _int("output"),
    _int("written"),
    _int("cached"),
    Column("usd", BigInteger, nullable=False, server_default="0"),
    _int("unpriced"),
    key=("run", "path"),
)
"""What agents used for an op, all attempts together: calls, tokens by kind, millionths of a dollar."""

progress = _table(
    "progress",
    _run(),
    _text("path", null=False),
    _int("done"),
    _int("total"),
    _int("failed"),
    _text("said"),
    _at("since", null=False),
    _at("at", null=False),
    key=("run", "path"),
)
"""How far an op at work is: of an `each` its elements, of a tool what it told. `total` 0: not known; `since`: when the
process at work began. Nothing once the op has ended."""

proposal = _table(
    "proposal",
    _text("id", null=False),
    _text("job", null=False),
    _text("author", null=False),
    _text("owner", null=False),
    _text("wish"),
    _text("text", null=False),
    _text("inputs"),
    _text("state", null=False),
    _text("by"),
    _text("run"),
    _at("at", null=False),
    _at("ended"),
    Index("ix_proposal_job", "ws", "job", "at"),
    key=("id",),
)
"""Scripts that agents wrote and nobody has decided on: `open`, `run`, `discarded`, `replaced`. `owner`: whom it was
written for; `by`: who decided."""

wish = _table(
    "wish",
    _text("id", null=False),
    _text("job", null=False),
    _text("by", null=False),
    _text("author", null=False),
    _text("text", null=False),
    _text("said"),
    _int("failed"),
    _text("state", null=False),
    _text("holder"),
    _text("conversation"),
    _text("ref"),
    _text("editor"),
    _at("at", null=False),
    _at("ended"),
    Index("ix_wish_job", "ws", "job", "at"),
    Index("ix_wish_state", "ws", "state"),
    key=("id",),
)
"""What somebody said to the bot's agent, and its answer; a proposal that came of it has the same id. `state`: `open`,
`said` (its conversation does not show it yet), `done`; `holder`: the process that has the agent at work; `ref`: the
message that shows it; `editor`: who is writing the proposal anew in that conversation."""

blob = _table("blob", _text("hash", null=False), _text("body", null=False), key=("hash",))
"""Large values, and what many rows share, by content."""

person = _table(
    "person",
    _text("email", null=False),
    _text("name", null=False),
    _text("timezone"),
    _int("active", default=1),
    _text("prefers"),
    key=("email",),
)
"""`prefers`: the channel on which they want their cards."""

identity = _table(
    "identity",
    _text("channel", null=False),
    _text("ref", null=False),
    _text("email", null=False),
    _text("conversation"),
    _at("used"),
    _text("shut"),
    key=("channel", "ref"),
)
"""Who somebody is on a platform. `conversation`: where they are written to alone; `used`: when they last did something
there; `shut`: why nothing reaches them there."""

role = _table("role", _text("name", null=False), _text("email", null=False), key=("name", "email"))

script = _table(
    "script",
    _text("name", null=False),
    _int("version", default=None),
    _text("plan", null=False),
    _text("source"),
    _text("head", null=False),
    _text("owner", null=False),
    _text("job"),
    _at("created", null=False),
    key=("name", "version"),
)
"""Saved scripts; the highest version is the current one. `source`: the key of the text as pasted, in `plan`. `head`:
what other scripts are checked against, JSON: `inputs` as declared, null for a bare one, and `calls`."""

standing = _table("standing", _text("script", null=False), _int("paused"), _text("told"), key=("script",))
"""How a saved script stands: `paused`, nothing starts it but people; `told`, why it did not start, as somebody was
told; until it starts again nobody is told the same."""

trigger = _table(
    "trigger",
    _text("stream", null=False),
    _text("script", null=False),
    _int("n", default=None),
    _text("body", null=False),
    _at("due"),
    Index("ix_trigger_script", "ws", "script"),
    key=("stream", "script", "n"),
)
"""What starts a saved script; none while it is paused. `stream`: what an event is looked up by, `command:WORD` for a
command, nothing for a cron line; `due`: when a cron line comes next. `body`: the entry of `on`, JSON."""
Index("ix_trigger_due", trigger.c.ws, trigger.c.due, sqlite_where=text("due is not null"))

start = _table(
    "start",
    _text("script", null=False),
    _text("event", null=False),
    _text("state", null=False),
    _text("key"),
    _text("job"),
    _text("run"),
    _int("version"),
    _int("chain"),
    _text("names"),
    _text("why"),
    _at("at", null=False),
    Index("ix_start_run", "run"),
    Index("ix_start_at", "ws", "script", "at"),
    key=("script", "event"),
)
"""Every start of a saved script, by the event that it answers: the same event starts it once. `state`: `live` while the
run goes on, `over`, `queued` behind another of its `key`, `skipped`, `refused` with its `why`. `names`: what the event
binds, JSON. `chain`: how many scripts started each other up to here."""
Index(
    "ix_start_open",
    start.c.ws,
    start.c.script,
    start.c.key,
    start.c.at,
    sqlite_where=text("state in ('live','queued')"),
)

login = Table(
    "login",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("hash", Text, primary_key=True),
    _text("email", null=False),
    _at("until", null=False),
    _at("used"),
    _text("purpose"),
)
"""One-time links, by the hash of their token. `purpose`: null logs in, `link` proves who somebody is on a platform."""

session = Table(
    "session",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("hash", Text, primary_key=True),
    _text("email", null=False),
    _text("csrf", null=False),
    _at("created", null=False),
    _at("until", null=False),
)

token = Table(
    "token",
    metadata,
    Column("ws", Integer, nullable=False),
    Column("hash", Text, primary_key=True),
    _text("email", null=False),
    _text("name"),
    _at("created", null=False),
    _at("until"),
    _at("used"),
)
"""Bearer tokens of the API, by hash."""

lease = _table(
    "lease",
    _text("name", null=False),
    _text("holder", null=False),
    _int("fence"),
    _at("until", null=False),
    key=("name",),
)
"""Who holds what, until when; `fence` only grows."""

setting = _table("setting", _text("name", null=False), _text("value"), key=("name",))
"""The secret key where none is configured, and the like."""


def complete() -> MetaData:
    """The tables with what only PostgreSQL must be told: naming its options imports its dialect, which costs a start
    on SQLite a tenth of a second. For migrations."""
    for table in metadata.tables.values():
        for index in table.indexes:
            where = index.dialect_kwargs.get("sqlite_where")
            if where is not None:
                index.dialect_kwargs["postgresql_where"] = where
    return metadata
