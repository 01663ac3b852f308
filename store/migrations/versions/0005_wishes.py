"""What people say to the bot's agent, and what it answers."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "wish",
        sa.Column("ws", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "job", "by", "author", "text")),
        sa.Column("said", sa.Text(), nullable=True),
        sa.Column("failed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("holder", "conversation", "ref", "editor")),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("ws", "id", name=op.f("pk_wish")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_wish_job", "wish", ["ws", "job", "at"], unique=False)
    op.create_index("ix_wish_state", "wish", ["ws", "state"], unique=False)


def downgrade() -> None:
    op.drop_table("wish")
