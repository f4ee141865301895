"""Which items of a waiting answer are still there: found at the cost of those items, whatever else is stored."""

from __future__ import annotations

import pytest
from sqlalchemy import event, insert

from collab_layer.graph import injections
from collab_layer.graph.adjacency import Kind
from collab_layer.graph.derived import ERASED, FORGOTTEN
from collab_layer.graph.engine import insert as write_rows
from collab_layer.graph.reader import holding_id
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import derived, edges, foreign_facets
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


def test_each_kind_of_item_is_looked_for_where_it_is_kept(store):
    common = {"tenant": "acme", "at": 1, "expires": FOREVER}
    told = {"things": "[]", "support": 1.0, "trust": 1.0, "contributors": 3, "issuer": "them", **common}
    texts, counts = dict.fromkeys(("kind", "key", "text", "made_by"), ""), dict.fromkeys(("hop", "level", "epoch"), 1)
    kept = {
        "owner": 1,
        "confidence": 1.0,
        "trust": 1.0,
        "links": "[]",
        "gone": 0,
        "cut": 0,
        **texts,
        **counts,
        **common,
    }
    said = list[str]()
    with store.database.write() as connection:
        facets = [("d1", None), ("d2", "d1"), ("d3", ERASED), ("d4", FORGOTTEN)]
        write_rows(connection, derived, [{**kept, "id": id_, "superseded": why} for id_, why in facets])
        write_rows(
            connection, foreign_facets, [{"id": "f1", "bundle": "b", **told}, {"id": "f2", "bundle": "", **told}]
        )
        event.listen(connection, "before_cursor_execute", lambda *given: said.append(given[2]))
        assert injections.known(connection, "acme", ["d1", "d2", "d3", "d4", "d5"]) == {"d1", "d2"}
        assert len(said) == 1
        wanted = ["f1", "f2", "f3", "d1", "c1", "i1", "h1.1", "czz", "x", ""]
        assert injections.known(connection, "acme", wanted) == {"f1", "d1"}
        assert injections.known(connection, "acme", []) == set()
        assert injections.known(connection, "other", ["d1", "f1"]) == set()


def test_looking_for_holdings_costs_what_their_owners_hold_and_not_what_everybody_does(small):
    ids = [holding_id(owner, 10_000 + n) for owner in range(1, 21) for n in range(HELD)]
    hold(small, range(1, 41))
    few = steps(small, ids)
    hold(small, range(41, 1_001))
    assert steps(small, ids) <= 2 * few, "25 times as many edges of others"
