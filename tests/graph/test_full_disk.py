"""A full disk: SQLite itself is told that no more pages may be added, which is the error it then gives."""

import pytest
from sqlalchemy import event, func, select

from collab_layer.errors import StoreFullError
from collab_layer.graph import writer
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import edges, interactions, outbox
from collab_layer.types.interaction import Interaction


def test_a_full_disk_is_said_to_be_full_and_leaves_nothing_half_written(sqlite_url):
    store = GraphStore.open(sqlite_url, embedder="test", dim=8)
    small = [Interaction(actor="user:a", target="item:1")]
    with store.database.write() as connection:
        writer.observe(connection, store.adjacency, "acme", small, 1)
    store.database.compact()

    def full(connection, record):
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    store.close()
    event.listen(store.database.engine, "connect", full)
    large = [Interaction(actor=f"user:{n}", target=f"item:{n}", text="long " * 500) for n in range(300)]
    with pytest.raises(StoreFullError, match="free some space"), store.database.write() as connection:
        writer.observe(connection, store.adjacency, "acme", large, 2)
    event.remove(store.database.engine, "connect", full)
    store.close()
    with store.database.write() as connection:
        counts = [
            connection.execute(select(func.count()).select_from(t)).scalar() for t in (interactions, edges, outbox)
        ]
        assert counts == [1, 2, 1]
        writer.observe(connection, store.adjacency, "acme", large, 3)
    store.close()
