"""Until when a derived item may be on its way to a store, so that taking it back is not over before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Bring the schema forward."""
    op.add_column("deliveries", sa.Column("held", sa.BigInteger(), nullable=False, server_default="0"))
