"""Agents: what they used, how far they are, and the scripts that they propose."""

import sqlalchemy as sa
from alembic import op

from store.tables import Path

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _number(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)


def upgrade() -> None:
    op.create_table(
        "spent",
        sa.Column("ws", sa.Integer(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("path", Path, nullable=False),
        *(_number(name) for name in ("calls", "input", "output", "written", "cached", "usd", "unpriced")),
        sa.PrimaryKeyConstraint("ws", "run", "path", name=op.f("pk_spent")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "progress",
        sa.Column("ws", sa.Integer(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("path", Path, nullable=False),
        *(_number(name) for name in ("done", "total", "failed")),
        sa.Column("said", sa.Text(), nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("ws", "run", "path", name=op.f("pk_progress")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "proposal",
        sa.Column("ws", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("owner", Path, nullable=False),
        sa.Column("wish", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=True),
        sa.Column("run", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("ws", "id", name=op.f("pk_proposal")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_proposal_job", "proposal", ["ws", "job", "at"], unique=False)


def downgrade() -> None:
    op.drop_table("proposal")
    op.drop_table("progress")
    op.drop_table("spent")
