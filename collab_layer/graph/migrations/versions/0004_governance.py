"""Signed receipts and what they wait for; records released by hand; which items went into which answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0002"


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant", sa.String(length=128), nullable=False)


def upgrade() -> None:
    """Bring the schema forward."""
    op.add_column("receipts", sa.Column("state", sa.String(length=16), nullable=False, server_default="unsigned"))
    op.create_index("ix_receipts_state", "receipts", ["tenant", "state"], unique=False)
    op.create_table(
        "awaiting",
        _tenant(),
        sa.Column("receipt", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "receipt", "kind", "backend", "ref"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "released",
        _tenant(),
        sa.Column("card", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "card"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "injections",
        _tenant(),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
        sa.Column("principal", sa.Integer(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("use", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_injections_at", "injections", ["tenant", "at"], unique=False)
    op.create_index("ix_injections_entity", "injections", ["tenant", "entity", "at"], unique=False)
    op.create_index("ix_injections_principal", "injections", ["tenant", "principal"], unique=False)
    op.create_table(
        "injected",
        _tenant(),
        sa.Column("item", sa.String(length=64), nullable=False),
        sa.Column("injection", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "injection"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_injected_injection", "injected", ["tenant", "injection"], unique=False)
