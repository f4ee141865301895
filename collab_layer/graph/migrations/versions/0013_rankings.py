"""Rankings that were served, and whether neighbours are muted for an owner."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "rankings",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("arm", sa.String(length=16), nullable=False),
        sa.Column("request", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.String(length=8), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rankings_at", "rankings", ["tenant", "at"])
    op.create_index("ix_rankings_entity", "rankings", ["tenant", "entity", "at"])
    op.create_table(
        "offered",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("ranking", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("thing", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("other", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "ranking", "thing"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_offered_thing", "offered", ["tenant", "thing"])
    op.create_table(
        "verdicts",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("muted", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "entity"),
        sqlite_with_rowid=False,
    )
