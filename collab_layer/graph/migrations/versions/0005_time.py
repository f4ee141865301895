"""Versions of a memory, since when an entity is known, statements that replace others, removals, stores waited for.

The defaults of new columns are for rows that are there already; the code always gives a value.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

FOREVER = 2**62

_SINCE = f"""
UPDATE entities SET since = COALESCE((
    SELECT MIN(known.first) FROM (
        SELECT MIN(e.at) AS first FROM edges e WHERE e.tenant = entities.tenant AND e.src = entities.id
        UNION ALL
        SELECT MIN(i.at) AS first FROM interactions i WHERE i.tenant = entities.tenant AND i.actor = entities.id
    ) AS known), {FOREVER})
"""
_GRANTED = """
UPDATE entities SET since = 0 WHERE EXISTS (
    SELECT 1 FROM grants g WHERE g.tenant = entities.tenant AND g.owner = entities.id)
"""


def upgrade() -> None:
    """Bring the schema forward."""
    for column in ("since", "named"):
        op.add_column("entities", sa.Column(column, sa.BigInteger(), nullable=False, server_default=str(FOREVER)))
    op.execute(_SINCE)
    op.execute(_GRANTED)
    op.execute("UPDATE entities SET named = since")  # who was named by a text alone was not kept
    op.add_column("interactions", sa.Column("replaces", sa.BigInteger(), nullable=True))
    said = sa.text("replaces IS NOT NULL")
    op.create_index(
        "ix_interactions_replaces", "interactions", ["tenant", "replaces"], sqlite_where=said, postgresql_where=said
    )
    op.add_column("cards", sa.Column("ends", sa.BigInteger(), nullable=False, server_default=str(FOREVER)))
    op.add_column("cards", sa.Column("superseded", sa.BigInteger(), nullable=True))
    op.execute("UPDATE cards SET ends = valid_to")
    op.drop_index("ux_cards_ref", "cards")
    op.create_index("ux_cards_ref", "cards", ["tenant", "backend", "native_id", "version", "at"], unique=True)
    over = sa.text(f"superseded IS NULL AND valid_to < {FOREVER}")
    op.create_index("ix_cards_over", "cards", ["tenant", "valid_to"], sqlite_where=over, postgresql_where=over)
    op.create_table(
        "removals",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_removals_owner", "removals", ["tenant", "owner", "at"], unique=False)
    op.add_column("work", sa.Column("stores", sa.Text(), nullable=True))
