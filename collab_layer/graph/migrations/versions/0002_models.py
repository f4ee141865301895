"""Language models: what was spent, what was made with them, rules they wrote; access tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant", sa.String(length=128), nullable=False)


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "spending",
        _tenant(),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day", "role", "stage", "model"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "syntheses",
        _tenant(),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("made", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_syntheses_owner", "syntheses", ["tenant", "owner"], unique=False)
    op.create_table(
        "considered",
        _tenant(),
        sa.Column("card", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "card"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "relations",
        _tenant(),
        sa.Column("item", sa.String(length=64), nullable=False),
        sa.Column("other", sa.String(length=64), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "other"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_relations_other", "relations", ["tenant", "other"], unique=False)
    op.create_table(
        "rule_sets",
        _tenant(),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("tree", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "hash"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tokens",
        _tenant(),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
