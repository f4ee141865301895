"""What a derived item stands for is found without reading all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Bring the schema forward."""
    told = sa.text("superseded IS NOT NULL")
    op.create_index(
        "ix_derived_superseded", "derived", ["tenant", "superseded"], sqlite_where=told, postgresql_where=told
    )
