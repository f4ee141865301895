"""An erasure and whoever makes edges between things at the same moment take what they lock in one order."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from sqlalchemy import text

from collab_layer.graph import item_edges, names
from collab_layer.graph.engine import upsert
from collab_layer.graph.erasing import fence
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import settings

WAITS = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


def waited_for(database):
    """Until somebody waits for a row of another."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with database.read() as connection:
            if connection.execute(WAITS).scalar():
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_who_erases_and_who_makes_edges_do_not_wait_in_a_ring(postgres_url):
    with closing(GraphStore.open(postgres_url, embedder="test", dim=8)) as store, ThreadPoolExecutor(1) as pool:

        def erase():
            with store.database.write() as connection:
                return fence(connection, "acme")

        with store.database.write() as connection:
            names.ensure(connection, "acme")
            rows = [{"tenant": "acme", "name": name, "value": "{}"} for name in (item_edges.MADE, item_edges.BEHIND)]
            upsert(connection, settings, rows)
        with store.database.write() as connection:
            names.lock(connection, "acme")
            erasing = pool.submit(erase)
            waited_for(store.database)
            item_edges.drop(connection, "acme")
        assert erasing.result(10) == 1
