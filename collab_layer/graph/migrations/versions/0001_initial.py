"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Bring the schema forward."""
    op.create_table(
        "adjacency",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("node", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "node"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("principal", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
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
        sa.Column("valid_to", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("thread", sa.Integer(), nullable=False),
        sa.Column("quarantine", sa.Text(), nullable=True),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cards_interaction", "cards", ["tenant", "interaction"], unique=False)
    op.create_index("ix_cards_owner", "cards", ["tenant", "owner"], unique=False)
    op.create_index("ix_cards_rev", "cards", ["tenant", "rev"], unique=False)
    op.create_index("ux_cards_ref", "cards", ["tenant", "backend", "native_id"], unique=True)
    op.create_table(
        "cursors",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "backend", "owner"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "deliveries",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("item", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("native_id", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "backend"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_deliveries_state", "deliveries", ["tenant", "state"], unique=False)
    op.create_table(
        "derived",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("trust", sa.Float(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("links", sa.Text(), nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("superseded", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_derived_owner", "derived", ["tenant", "owner", "kind"], unique=False)
    op.create_table(
        "edges",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("src", sa.Integer(), nullable=False),
        sa.Column("dst", sa.Integer(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("interaction", sa.BigInteger(), nullable=False),
        sa.Column("folded", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_edges_delta",
        "edges",
        ["tenant", "src"],
        unique=False,
        sqlite_where=sa.text("folded = 0"),
        postgresql_where=sa.text("NOT folded"),
    )
    op.create_index("ix_edges_interaction", "edges", ["tenant", "interaction"], unique=False)
    op.create_index("ix_edges_src", "edges", ["tenant", "src", "at"], unique=False)
    op.create_table(
        "entities",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("display", sa.Text(), nullable=False),
        sa.Column("degree", sa.Integer(), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_entities_rev", "entities", ["tenant", "rev"], unique=False)
    op.create_index("ux_entities_name", "entities", ["tenant", "name"], unique=True)
    op.create_table(
        "grants",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.Integer(), nullable=True),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("denied", sa.Boolean(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_grants_owner", "grants", ["tenant", "owner"], unique=False)
    op.create_table(
        "graves",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("card", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "card"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_graves_rev", "graves", ["tenant", "rev"], unique=False)
    op.create_table(
        "interactions",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("actor", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=True),
        sa.Column("verb", sa.String(length=32), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("links", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=True),
        sa.Column("native_id", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_interactions_actor", "interactions", ["tenant", "actor", "at"], unique=False)
    op.create_index("ix_interactions_ref", "interactions", ["tenant", "backend", "native_id"], unique=False)
    op.create_index("ix_interactions_target", "interactions", ["tenant", "target"], unique=False)
    op.create_index("ux_interactions_key", "interactions", ["tenant", "actor", "key"], unique=True)
    op.create_table(
        "lineage",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("item", sa.String(length=64), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "source"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_lineage_principal", "lineage", ["tenant", "principal"], unique=False)
    op.create_index("ix_lineage_source", "lineage", ["tenant", "source"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("interaction", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "entity", "interaction"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "receipts",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "settings",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tenants",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("sharing", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Integer(), nullable=False),
        sa.Column("next_entity", sa.Integer(), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "terms",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("term", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tf", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "term", "card"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_terms_card", "terms", ["tenant", "card"], unique=False)
    op.create_table(
        "work",
        sa.Column("tenant", sa.String(length=128), nullable=False),
        sa.Column("entity", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("refresh", sa.Boolean(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("parked", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "entity"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_work_due", "work", ["tenant", "parked", "due"], unique=False)
