"""Wide rows in ordinary tables of SQLite: a look at one column no longer reads the whole row, nor its neighbours'."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

FOREVER = 2**62

_CARDS = (
    "tenant, id, owner, interaction, backend, native_id, version, text, outcome, links, length, vector, embedder, "
    "at, ends, valid_to, recorded_at, superseded, thread, quarantine, rev"
)
_INDEXES = {
    "ux_cards_ref": ["backend", "native_id", "version", "at"],
    "ix_cards_owner": ["owner"],
    "ix_cards_interaction": ["interaction"],
    "ix_cards_rev": ["rev"],
}


def upgrade() -> None:
    """Bring the schema forward."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for name in (*_INDEXES, "ix_cards_over"):
        op.drop_index(name, "cards")
    for table in ("adjacency", "cards"):
        op.rename_table(table, f"{table}_before")
    _make_adjacency()
    _make_cards()
    op.execute("INSERT INTO adjacency SELECT tenant, node, version, packed FROM adjacency_before")
    op.execute(f"INSERT INTO cards ({_CARDS}) SELECT {_CARDS} FROM cards_before")
    for table in ("adjacency", "cards"):
        op.drop_table(f"{table}_before")
    for name, columns in _INDEXES.items():
        op.create_index(name, "cards", ["tenant", *columns], unique=name.startswith("ux"))
    over = sa.text(f"superseded IS NULL AND valid_to < {FOREVER}")
    op.create_index("ix_cards_over", "cards", ["tenant", "valid_to"], sqlite_where=over)


def _make_adjacency() -> None:
    op.create_table(
        "adjacency",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("node", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "node"),
    )


def _make_cards() -> None:
    op.create_table(
        "cards",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("interaction", sa.BigInteger(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("native_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("links", sa.Text(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.Column("embedder", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("superseded", sa.BigInteger(), nullable=True),
        sa.Column("thread", sa.Integer(), nullable=False),
        sa.Column("quarantine", sa.Text(), nullable=True),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
