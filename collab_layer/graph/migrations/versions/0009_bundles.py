"""Bundles issued to others, and taken from others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant", sa.String(length=128), nullable=False)


def _id(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=64), nullable=False)


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "bundles",
        _tenant(),
        _id("id"),
        sa.Column("audience", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("holds", sa.Text(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_bundles_audience", "bundles", ["tenant", "audience", "sequence"], unique=False)
    op.create_table(
        "foreign_bundles",
        _tenant(),
        _id("issuer"),
        _id("series"),
        _id("id"),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("trust", sa.Float(), nullable=False),
        sa.Column("contributors", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "issuer", "series", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_foreign_bundles_id", "foreign_bundles", ["tenant", "id"], unique=False)
    op.create_table(
        "foreign_facets",
        _tenant(),
        _id("id"),
        _id("bundle"),
        sa.Column("things", sa.Text(), nullable=False),
        sa.Column("support", sa.Float(), nullable=False),
        sa.Column("trust", sa.Float(), nullable=False),
        sa.Column("contributors", sa.Integer(), nullable=False),
        _id("issuer"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_foreign_facets_bundle", "foreign_facets", ["tenant", "bundle"], unique=False)
    op.create_table(
        "foreign_things",
        _tenant(),
        sa.Column("thing", sa.Text(), nullable=False),
        _id("facet"),
        sa.PrimaryKeyConstraint("tenant", "thing", "facet"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_foreign_things_facet", "foreign_things", ["tenant", "facet"], unique=False)
