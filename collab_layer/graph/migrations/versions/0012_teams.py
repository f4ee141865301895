"""What teams allow; what anybody was told of a facet, by its key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Bring the schema forward."""
    for column in ("gone", "cut"):
        op.add_column("derived", sa.Column(column, sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE derived SET cut = 1 WHERE superseded = 'erased'")  # which of both it was is not known
    facets = sa.text("kind = 'facet'")
    op.create_index("ix_derived_key", "derived", ["tenant", "key", "at"], sqlite_where=facets, postgresql_where=facets)
    op.create_table(
        "limits",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("minimum", sa.Integer(), nullable=True),
        sa.Column("level", sa.SmallInteger(), nullable=True),
        sa.Column("purposes", sa.Text(), nullable=True),
        sa.Column("longest", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "team"),
        sqlite_with_rowid=False,
    )
