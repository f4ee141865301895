"""What owners published: whom it is for, and until when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "notices",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("item", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_notices_audience", "notices", ["tenant", "audience", "at"], unique=False)
    op.create_index("ix_notices_until", "notices", ["tenant", "until"], unique=False)
