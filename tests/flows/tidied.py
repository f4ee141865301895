"""Scenes for upkeep: who tells whom what, and what the tables hold afterwards."""

from __future__ import annotations

from sqlalchemy import select

from collab_layer.graph.tables import metadata
from collab_layer.types.facet import FacetKind

SAID = "Dune is the best desert book"
OWN_CLOCK = {("adjacency", "version"), ("entities", "rev"), ("cards", "rev"), ("relations", "at"), ("tenants", "rev")}
"""Columns that differ between two runs to the same end."""


def around(layer, readers=("user:b",), tellers=("user:a", "user:c")):
    """Everybody holds the same things; the readers may read the tellers."""
    for who in (*readers, *tellers):
        for n in range(4):
            layer.observe(who, f"item:{n}", verb="held", key=f"{who}{n}")
    grants = {(teller, reader): layer.grant(teller, reader, "records") for teller in tellers for reader in readers}
    layer.drain()
    return grants


def say(layer, *tellers, text=SAID, links=("item:1",), **more):
    """Each says it once; the ids."""
    ids = [layer.observe(who, text=text, links=list(links), **more)[0] for who in tellers]
    layer.drain()
    return ids


def told(layer, reader="user:b", word="Dune"):
    """Updates shown to a reader that name a word."""
    facets = layer.context(reader, budget_tokens=8000).facets
    return [facet for facet in facets if facet.kind is FacetKind.UPDATE and word in facet.text]


def database(layer):
    return layer._layer._core.tools.store.database


def rows(layer, *tables):
    """Every row of some tables, or of all."""
    with database(layer).read() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
            if not tables or table.name in tables
        }


def end_state(layer):
    """What a run leaves behind, without what only tells when it ran."""
    out = {}
    with database(layer).read() as connection:
        for table in metadata.sorted_tables:
            if table.name in ("audit", "settings", "receipts"):
                continue
            kept = [column for column in table.c if (table.name, column.name) not in OWN_CLOCK]
            out[table.name] = sorted((tuple(row) for row in connection.execute(select(*kept))), key=repr)
    return out
