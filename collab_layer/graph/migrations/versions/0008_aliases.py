"""Entities that are one principal with another one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "aliases",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("principal", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "entity"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_aliases_principal", "aliases", ["tenant", "principal"], unique=False)
