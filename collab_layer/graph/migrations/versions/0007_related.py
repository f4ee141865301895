"""Edges between things."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "related",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("thing", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "thing"),
        sqlite_with_rowid=False,
    )
