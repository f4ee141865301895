"""The schema, one for SQLite and PostgreSQL.

Tenant is the first column of every key and every index. Entities are dense integers per
tenant. Other ids are time-ordered 63-bit integers made by the writer, derived ids are text.
Times are microseconds since 1970. Nothing here is an aggregate that could not be made
again from `interactions`: `adjacency`, `entities.degree` and `terms` are caches.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    false,
)

from collab_layer.types.time import FOREVER

metadata = MetaData()


def _tenant() -> Column[str]:
    return Column("tenant", String(128), primary_key=True)


def _table(name: str, *parts: Column[object] | Index, wide: bool = False) -> Table:
    # Clustered on the tenant key in SQLite too, so that one tenant's rows lie together. Not where rows are
    # wide: to compare a key there SQLite reads the whole row, all its overflow pages included.
    return Table(name, metadata, _tenant(), *parts, sqlite_with_rowid=wide)


tenants = _table(
    "tenants",
    Column("sharing", Text, nullable=False),
    Column("generation", Integer, nullable=False),  # raised by every erasure: the fence
    Column("policy", Integer, nullable=False),  # raised by every change of a grant
    Column("next_entity", Integer, nullable=False),
    Column("rev", BigInteger, nullable=False),  # raised with every change of cards or entities
)

entities = _table(
    "entities",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("display", Text, nullable=False),
    Column("degree", Integer, nullable=False),
    Column("since", BigInteger, nullable=False),  # the first event that named it, and `display` as that did
    Column("named", BigInteger, nullable=False),  # the first event whose caller named it, not only a text
    Column("rev", BigInteger, nullable=False),
    Index("ux_entities_name", "tenant", "name", unique=True),
    Index("ix_entities_rev", "tenant", "rev"),
)

interactions = _table(
    "interactions",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("actor", Integer, nullable=False),
    Column("target", Integer),
    Column("verb", String(32), nullable=False),
    Column("text", Text),
    Column("links", Text, nullable=False),  # JSON list of dense ids
    Column("outcome", Text),
    Column("at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("key", Text),
    Column("weight", Float, nullable=False),
    Column("backend", Text),
    Column("native_id", Text),
    Column("version", Text),
    Column("replaces", BigInteger),  # an earlier interaction whose statement holds no longer
    Index("ux_interactions_key", "tenant", "actor", "key", unique=True),
    Index("ix_interactions_actor", "tenant", "actor", "at"),
    Index("ix_interactions_target", "tenant", "target"),
    Index("ix_interactions_ref", "tenant", "backend", "native_id"),
)

Index(
    "ix_interactions_replaces",
    interactions.c.tenant,
    interactions.c.replaces,
    sqlite_where=interactions.c.replaces.is_not(None),
    postgresql_where=interactions.c.replaces.is_not(None),
)

edges = _table(
    "edges",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("src", Integer, nullable=False),
    Column("dst", Integer, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("weight", Float, nullable=False),
    Column("at", BigInteger, nullable=False),  # valid from
    Column("valid_to", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("interaction", BigInteger, nullable=False),  # 0: made by the layer itself
    Column("folded", Boolean, nullable=False),
    Index("ix_edges_src", "tenant", "src", "at"),
    Index("ix_edges_interaction", "tenant", "interaction"),
)
Index(
    "ix_edges_delta",
    edges.c.tenant,
    edges.c.src,
    sqlite_where=edges.c.folded == false(),
    postgresql_where=edges.c.folded == false(),
)

adjacency = _table(
    "adjacency",
    Column("node", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("packed", LargeBinary, nullable=False),
    wide=True,
)

cards = _table(
    "cards",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", Integer, nullable=False),
    Column("interaction", BigInteger, nullable=False),
    Column("backend", Text, nullable=False),  # "" for memories the layer keeps itself
    Column("native_id", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("text", Text),  # only while somebody else may read it
    Column("outcome", Text),
    Column("links", Text, nullable=False),  # JSON list of dense ids
    Column("length", Integer, nullable=False),  # terms in the text index, 0 if not indexed
    Column("vector", LargeBinary),  # float16
    Column("embedder", Text),
    Column("at", BigInteger, nullable=False),  # valid from
    Column("ends", BigInteger, nullable=False),  # as the store itself says
    Column("valid_to", BigInteger, nullable=False),  # the same, or when a later version or statement began
    Column("recorded_at", BigInteger, nullable=False),
    Column("superseded", BigInteger),  # when we learned that it is over; NULL while it holds
    Column("thread", Integer, nullable=False),  # dense id of the target, else the owner's card alone
    Column("quarantine", Text),  # why it must not be shown
    Column("rev", BigInteger, nullable=False),
    # `at`, since a store that counts no versions may come back to one it had before.
    Index("ux_cards_ref", "tenant", "backend", "native_id", "version", "at", unique=True),
    Index("ix_cards_owner", "tenant", "owner"),
    Index("ix_cards_interaction", "tenant", "interaction"),
    Index("ix_cards_rev", "tenant", "rev"),
    wide=True,
)

Index(  # those that will be over, or are and nobody has noted it
    "ix_cards_over",
    cards.c.tenant,
    cards.c.valid_to,
    sqlite_where=cards.c.superseded.is_(None) & (cards.c.valid_to < FOREVER),
    postgresql_where=cards.c.superseded.is_(None) & (cards.c.valid_to < FOREVER),
)

graves = _table(
    "graves",
    Column("card", BigInteger, primary_key=True, autoincrement=False),
    Column("rev", BigInteger, nullable=False),
    Index("ix_graves_rev", "tenant", "rev"),
)

removals = _table(
    "removals",  # a memory vanished from its store: whose, and nothing else
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", Integer, nullable=False),
    Column("backend", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_removals_owner", "tenant", "owner", "at"),
)

terms = _table(
    "terms",
    Column("term", BigInteger, primary_key=True, autoincrement=False),
    Column("card", BigInteger, primary_key=True, autoincrement=False),
    Column("tf", SmallInteger, nullable=False),
    Index("ix_terms_card", "tenant", "card"),
)

derived = _table(
    "derived",
    Column("id", String(64), primary_key=True),
    Column("owner", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("trust", Float, nullable=False),
    Column("hop", Integer, nullable=False),
    Column("links", Text, nullable=False),
    Column("level", SmallInteger, nullable=False),  # the weakest level it rests on
    Column("made_by", Text, nullable=False),  # rules hash or model and prompt
    Column("epoch", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("superseded", String(64)),
    Column("gone", Integer, nullable=False),  # of a trace: owners behind it that were erased
    Column("cut", Integer, nullable=False),  # of a trace: owners behind it of whom a record was erased
    Index("ix_derived_owner", "tenant", "owner", "kind"),
)
Index(  # what an item stands for, to be shown again without it
    "ix_derived_superseded",
    derived.c.tenant,
    derived.c.superseded,
    sqlite_where=derived.c.superseded.is_not(None),
    postgresql_where=derived.c.superseded.is_not(None),
)
Index(
    "ix_derived_key",
    derived.c.tenant,
    derived.c.key,
    derived.c.at,
    sqlite_where=derived.c.kind == "facet",
    postgresql_where=derived.c.kind == "facet",
)

lineage = _table(
    "lineage",
    Column("item", String(64), primary_key=True),
    Column("source", String(64), primary_key=True),  # "c…" card, "i…" interaction, "d…" derived
    Column("principal", Integer, nullable=False),
    Column("weight", Float, nullable=False),
    Index("ix_lineage_source", "tenant", "source"),
    Index("ix_lineage_principal", "tenant", "principal"),
)

outbox = _table(
    "outbox",
    Column("entity", Integer, primary_key=True, autoincrement=False),
    Column("interaction", BigInteger, primary_key=True, autoincrement=False),
)

work = _table(
    "work",
    Column("entity", Integer, primary_key=True, autoincrement=False),
    Column("pending", Integer, nullable=False),
    Column("refresh", Boolean, nullable=False),  # read this owner's records again: its grants changed
    Column("stores", Text),  # JSON list of stores whose records that concerns; NULL for all
    Column("due", BigInteger, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("parked", Boolean, nullable=False),
    Column("reason", Text),
    Index("ix_work_due", "tenant", "parked", "due"),
)

deliveries = _table(
    "deliveries",
    Column("item", String(64), primary_key=True),
    Column("backend", Text, primary_key=True),
    Column("state", String(16), nullable=False),  # pending, delivered, retracting
    Column("native_id", Text),
    Column("attempts", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False, server_default="0"),  # until when it may be on its way to the store
    Index("ix_deliveries_state", "tenant", "state"),
)

grants = _table(
    "grants",
    Column("id", String(64), primary_key=True),
    Column("owner", Integer),
    Column("audience", Text, nullable=False),
    Column("level", SmallInteger, nullable=False),
    Column("purpose", Text),
    Column("until", BigInteger, nullable=False),
    Column("denied", Boolean, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("revoked", BigInteger),
    Index("ix_grants_owner", "tenant", "owner"),
)

notices = _table(
    "notices",  # what owners published; the words are in `derived`
    Column("item", String(64), primary_key=True),
    Column("owner", Integer, nullable=False),
    Column("audience", Text, nullable=False),
    Column("purpose", Text),
    Column("until", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("vector", LargeBinary),  # float16
    Column("embedder", Text, nullable=False),
    Index("ix_notices_audience", "tenant", "audience", "at"),
    Index("ix_notices_until", "tenant", "until"),
)

bundles = _table(
    "bundles",  # that were issued; what each holds are derived items, told to its audience
    Column("id", String(64), primary_key=True),
    Column("audience", Integer, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("holds", Text, nullable=False),  # JSON list of derived ids
    Column("revoked", BigInteger),
    Index("ix_bundles_audience", "tenant", "audience", "sequence"),
)

foreign_bundles = _table(
    "foreign_bundles",  # that were taken, or are not to be
    Column("issuer", String(64), primary_key=True),
    Column("series", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("sequence", BigInteger, nullable=False),  # 0 of one that was never taken
    Column("trust", Float, nullable=False),
    Column("contributors", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("revoked", Boolean, nullable=False),
    Index("ix_foreign_bundles_id", "tenant", "id"),
)

foreign_facets = _table(
    "foreign_facets",
    Column("id", String(64), primary_key=True),
    Column("bundle", String(64), nullable=False),  # "" of one that was forgotten, and is not taken again
    Column("things", Text, nullable=False),  # JSON list of names
    Column("support", Float, nullable=False),
    Column("trust", Float, nullable=False),
    Column("contributors", Integer, nullable=False),
    Column("issuer", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Index("ix_foreign_facets_bundle", "tenant", "bundle"),
)

foreign_things = _table(
    "foreign_things",  # by name: they are no entities here, so that nothing is linked to them
    Column("thing", Text, primary_key=True),
    Column("facet", String(64), primary_key=True),
    Index("ix_foreign_things_facet", "tenant", "facet"),
)

aliases = _table(
    "aliases",
    Column("entity", Integer, primary_key=True, autoincrement=False),
    Column("principal", Integer, nullable=False),  # counts for both; never an alias itself
    Column("at", BigInteger, nullable=False),
    Index("ix_aliases_principal", "tenant", "principal"),
)

limits = _table(
    "limits",  # what the tenant ("") and its teams allow at most; NULL sets no limit
    Column("team", Text, primary_key=True),
    Column("minimum", Integer),
    Column("level", SmallInteger),
    Column("purposes", Text),  # JSON list
    Column("longest", BigInteger),  # microseconds
    Column("at", BigInteger, nullable=False),
)

audit = _table(
    "audit",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("principal", Integer),
    Column("action", String(32), nullable=False),
    Column("subject", Text, nullable=False),
)

receipts = _table(
    "receipts",
    Column("id", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", String(16), nullable=False),  # unsigned, pending, complete
    Index("ix_receipts_state", "tenant", "state"),
)

awaiting = _table(
    "awaiting",
    Column("receipt", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),  # retract: an item; erase: a record; owner: all of one; file: ours
    Column("backend", Text, primary_key=True),
    Column("ref", Text, primary_key=True),
)

released = _table(
    "released",
    Column("card", BigInteger, primary_key=True, autoincrement=False),  # somebody looked: it may be shown
    Column("at", BigInteger, nullable=False),
)

injections = _table(
    "injections",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("entity", Integer, nullable=False),  # whom the answer was made for
    Column("principal", Integer),  # who asked; NULL is the operator
    Column("purpose", Text),
    Column("use", String(16), nullable=False),  # context, rank, answer, delivery
    Index("ix_injections_at", "tenant", "at"),
    Index("ix_injections_entity", "tenant", "entity", "at"),
    Index("ix_injections_principal", "tenant", "principal"),
)

injected = _table(
    "injected",
    Column("item", String(64), primary_key=True),
    Column("injection", BigInteger, primary_key=True, autoincrement=False),
    Index("ix_injected_injection", "tenant", "injection"),
)

rankings = _table(
    "rankings",  # that were served where neighbours may count, to learn whether they should
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("entity", Integer, nullable=False),
    Column("arm", String(16), nullable=False),  # neighbours, holdout, muted
    Column("request", BigInteger, nullable=False),  # keyed hash of owner, day and what was asked: one unit
    Column("version", String(8), nullable=False),  # of the weights
    Index("ix_rankings_at", "tenant", "at"),
    Index("ix_rankings_entity", "tenant", "entity", "at"),
)

offered = _table(
    "offered",
    Column("ranking", BigInteger, primary_key=True, autoincrement=False),
    Column("thing", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, nullable=False),  # from 0
    Column("other", Integer),  # where it would have stood in the other arm; NULL where a model ordered
    Index("ix_offered_thing", "tenant", "thing"),
)

verdicts = _table(
    "verdicts",
    Column("entity", Integer, primary_key=True, autoincrement=False),  # 0: the tenant as a whole
    Column("muted", Boolean, nullable=False),
    Column("at", BigInteger, nullable=False),  # what was served before counts no more
)

cursors = _table(
    "cursors",
    Column("backend", Text, primary_key=True),
    Column("owner", Text, primary_key=True),  # "" is the backend's own feed
    Column("cursor", Text),
    Column("done", Boolean, nullable=False),
)

settings = _table(
    "settings",
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

spending = _table(
    "spending",
    Column("day", Integer, primary_key=True, autoincrement=False),  # days since 1970, UTC
    Column("role", String(16), primary_key=True),
    Column("stage", String(16), primary_key=True),
    Column("model", String(200), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
)

syntheses = _table(
    "syntheses",
    Column("key", String(64), primary_key=True),  # keyed hash of all that the model was shown
    Column("owner", Integer, nullable=False),  # the reader
    Column("made", Text, nullable=False),  # JSON list of derived ids, strongest first
    Column("at", BigInteger, nullable=False),
    Index("ix_syntheses_owner", "tenant", "owner"),
)

considered = _table(
    "considered",
    Column("card", BigInteger, primary_key=True, autoincrement=False),  # a model has read it once
    Column("at", BigInteger, nullable=False),
)

relations = _table(
    "relations",
    Column("item", String(64), primary_key=True),
    Column("other", String(64), primary_key=True),
    Column("weight", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_relations_other", "tenant", "other"),
)

related = _table(
    "related",  # which things go together: the edges into each, packed; made for the whole tenant
    Column("thing", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
)

rule_sets = _table(
    "rule_sets",
    Column("hash", String(64), primary_key=True),
    Column("tree", Text, nullable=False),  # canonical JSON
    Column("made_by", Text, nullable=False),  # model, or "file"
    Column("facts", Text, nullable=False),  # JSON: the statistics it was made from
    Column("at", BigInteger, nullable=False),
)

tokens = _table(
    "tokens",
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False),  # of the secret part; the secret is shown once
    Column("principal", Text, nullable=False),
    Column("purpose", Text),
    Column("created", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("revoked", BigInteger),
)
