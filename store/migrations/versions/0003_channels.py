"""Chat platforms: who somebody is there, what is shown there; the start of a window as a difference."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WHERE = sa.text("ref is not null")
DAY_OF_2001 = 978_307_200_000_000
"""Microseconds: a window's start as an instant is later, as a difference it is less."""


def upgrade() -> None:
    op.add_column("person", sa.Column("prefers", sa.Text(), nullable=True))
    op.add_column("identity", sa.Column("conversation", sa.Text(), nullable=True))
    op.add_column("identity", sa.Column("used", sa.BigInteger(), nullable=True))
    op.add_column("identity", sa.Column("shut", sa.Text(), nullable=True))
    op.add_column("login", sa.Column("purpose", sa.Text(), nullable=True))
    op.create_table(
        "status",
        sa.Column("ws", sa.Integer(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("conversation", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=True),
        sa.Column("said", sa.Text(), nullable=True),
        sa.Column("rev", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("ws", "run", name=op.f("pk_status")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_delivery_ref",
        "delivery",
        ["ws", "conversation", "ref"],
        unique=False,
        sqlite_where=WHERE,
        postgresql_where=WHERE,
    )
    op.execute(f"update op set since = since - coalesce(started, 0) where since > {DAY_OF_2001}")


def downgrade() -> None:
    op.execute("update op set since = since + coalesce(started, 0) where since is not null")
    op.drop_index("ix_delivery_ref", table_name="delivery", sqlite_where=WHERE, postgresql_where=WHERE)
    op.drop_table("status")
    for table, column in (
        ("login", "purpose"),
        ("identity", "shut"),
        ("identity", "used"),
        ("identity", "conversation"),
        ("person", "prefers"),
    ):
        with op.batch_alter_table(table) as batch:
            batch.drop_column(column)
