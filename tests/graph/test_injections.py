"""Which items of a waiting answer are still there: found at the cost of those items, whatever else is stored."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from collab_layer.graph import injections
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.reader import holding_id
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import edges
from collab_layer.types.time import FOREVER

HELD = 20
"""Things of each owner."""


@pytest.fixture
def small(tmp_path):
    store = GraphStore.open(str(tmp_path / "small.db"), embedder="test", dim=8)
    yield store
    store.close()


def hold(store: GraphStore, owners: range) -> None:
    common = {"tenant": "acme", "kind": int(Kind.INTERACTED), "weight": 1.0, "at": 1, "valid_to": FOREVER}
    rows = [
        {**common, "id": owner * HELD + n, "src": owner, "dst": 10_000 + n, "recorded_at": 1, "interaction": 1,
         "folded": False}
        for owner in owners for n in range(HELD)
    ]  # fmt: skip
    with store.database.write() as connection:
        connection.execute(insert(edges), rows)


def steps(store: GraphStore, ids: list[str]) -> int:
    """Steps of SQLite's machine, in hundreds."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    with store.database.read() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(step, 100)
        injections.known(connection, "acme", ids)
        driver.set_progress_handler(None, 0)
    return count


def test_holdings_that_are_there_are_told_from_those_that_are_not(store):
    hold(store, range(1, 4))
    there = [holding_id(1, 10_000), holding_id(3, 10_000 + HELD - 1)]
    gone = [holding_id(1, 9_999), holding_id(4, 10_000), holding_id(10_000, 1), "h", "hx.y"]
    with store.database.read() as connection:
        assert injections.known(connection, "acme", [*there, *gone]) == set(there)
        assert injections.known(connection, "other", there) == set()


def test_looking_for_holdings_costs_what_their_owners_hold_and_not_what_everybody_does(small):
    ids = [holding_id(owner, 10_000 + n) for owner in range(1, 21) for n in range(HELD)]
    hold(small, range(1, 41))
    few = steps(small, ids)
    hold(small, range(41, 1_001))
    assert steps(small, ids) <= 2 * few, "25 times as many edges of others"
