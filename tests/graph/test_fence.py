"""Whoever erases, makes edges or ties aliases takes the tenant's row first: nobody waits in a ring."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import text

from collab_layer.config import Settings
from collab_layer.graph import aliases, item_edges, names
from collab_layer.graph.engine import upsert
from collab_layer.graph.erasing import fence
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import settings
from collab_layer.sync import CollabLayer

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


@pytest.mark.parametrize("tie", [True, False], ids=["tied", "untied"])
def test_two_who_say_who_is_who_do_not_wait_in_a_ring(postgres_url, tie):
    with CollabLayer.open(postgres_url, settings=Settings(worker=False)) as layer, ThreadPoolExecutor(1) as pool:
        layer.observe("user:ann", "item:dune")
        layer.observe("user:anna", "item:dune")
        layer.alias("agent:ann", "user:ann")
        tools = layer._layer._core.tools
        with tools.store.database.write() as connection:
            names.lock(connection, layer.tenant)
            verb = (
                pool.submit(layer.alias, "agent:ann", "user:anna") if tie else pool.submit(layer.unalias, "agent:ann")
            )
            waited_for(tools.store.database)
            ids = names.find(connection, layer.tenant, ["agent:ann", "user:ann"])
            aliases.untie(connection, layer.tenant, ids["agent:ann"])
            aliases.tie(connection, layer.tenant, ids["agent:ann"], ids["user:ann"], 1)
        verb.result(10)
        assert [str(one.principal) for one in layer.aliases()] == (["user:anna"] if tie else [])
