"""What is derived of edges is compared with the edges, and put right where it is wrong."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import delete, insert, select, update

from collab_layer.config import Settings
from collab_layer.graph.adjacency import PACKED, Adjacency, Kind
from collab_layer.graph.names import find
from collab_layer.graph.tables import adjacency, cards, edges, entities
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.testing.memory import InMemoryBackend
from collab_layer.types.scope import Sharing
from collab_layer.types.time import micros


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def layer(database_url, clock):
    sharing = Sharing.within_tenant("records")
    settings = Settings(worker=False)
    with CollabLayer.open(database_url, tenant="acme", sharing=sharing, settings=settings, clock=clock) as layer:
        for who in ("user:a", "user:b", "user:c"):
            for n in range(5):
                layer.observe(who, f"item:{n}", verb="liked", text=f"{who} likes number {n}", links=["topic:books"])
        layer.drain()
        yield layer


def _tables(layer):
    return layer._layer._core.tools.store


def _node(layer, name):
    with _tables(layer).database.read() as connection:
        return find(connection, "acme", [name])[name]


def _edges(layer, name):
    """What a fresh process reads."""
    with _tables(layer).database.read() as connection:
        node = find(connection, "acme", [name])[name]
        found = Adjacency().edges(connection, "acme", [node])[node]
        return sorted((int(row["dst"]), int(row["kind"]), float(row["weight"]), int(row["count"])) for row in found)


def _write(layer, statement, *rows):
    with _tables(layer).database.write() as connection:
        connection.execute(statement, *rows)


def _one(layer, query):
    with _tables(layer).database.read() as connection:
        return connection.execute(query).scalar()


def _neighbors(layer):
    return [neighbor.model_dump_json() for neighbor in layer.neighbors("user:a")]


def test_normally_nothing_is_wrong(layer):
    report = layer.consolidate()
    assert (report.packs, report.degrees, report.edges) == (0, 0, 0)
    assert report.nodes >= 9


@pytest.mark.parametrize("harm", ["other", "short", "torn", "gone", "reordered"])
def test_a_packed_array_that_disagrees_with_the_edges_is_made_anew(layer, harm):
    before, node = _edges(layer, "user:b"), _node(layer, "user:b")
    seen = _neighbors(layer)
    row = (adjacency.c.tenant == "acme") & (adjacency.c.node == node)
    blob = bytes(_one(layer, select(adjacency.c.packed).where(row)))
    packed = np.frombuffer(blob, PACKED).copy()
    if harm == "other":
        packed["weight"][0] += 5
    elif harm == "short":
        packed = packed[1:]
    elif harm == "reordered":
        packed["last"][0] -= 10**12
    torn = packed.tobytes()[:-3] if harm == "torn" else packed.tobytes()
    _write(layer, delete(adjacency).where(row) if harm == "gone" else update(adjacency).where(row).values(packed=torn))
    if harm == "short":
        assert _edges(layer, "user:b") != before
    assert layer.consolidate(dry_run=True).packs == 1
    assert layer.consolidate().packs == 1
    assert _edges(layer, "user:b") == before
    assert _neighbors(layer) == seen
    assert layer.consolidate().changes == {}


def test_a_wrong_degree_is_counted_anew_and_other_processes_see_it(layer):
    node = _node(layer, "user:b")
    seen = _neighbors(layer)
    row = (entities.c.tenant == "acme") & (entities.c.id == node)
    right = _one(layer, select(entities.c.degree).where(row))
    _write(layer, update(entities).where(row).values(degree=99))
    assert layer.consolidate(dry_run=True).degrees == 1
    assert _one(layer, select(entities.c.degree).where(row)) == 99
    assert layer.consolidate().degrees == 1
    assert _one(layer, select(entities.c.degree).where(row)) == right > 5
    assert _neighbors(layer) == seen


def test_what_waits_for_the_worker_is_not_wrong(layer):
    layer.observe("user:a", "item:77")
    report = layer.consolidate()
    assert (report.degrees, report.packs) == (0, 0)
    layer.drain()
    assert layer.consolidate().degrees == 0


def test_edges_of_an_erased_record_go_on_both_sides(layer):
    before = {name: _edges(layer, name) for name in ("user:a", "item:1")}
    first = _one(layer, select(edges.c.id).where(edges.c.tenant == "acme").order_by(edges.c.id))
    rows = [
        {"tenant": "acme", "id": first - 1 - n, "src": src, "dst": dst, "kind": int(kind), "weight": 1.0, "at": 5,
         "valid_to": 2**62, "recorded_at": 5, "interaction": 4711, "folded": False}
        for n, (src, dst, kind) in enumerate([
            (_node(layer, "user:a"), _node(layer, "item:1"), Kind.INTERACTED),
            (_node(layer, "item:1"), _node(layer, "user:a"), Kind.HELD_BY),
        ])
    ]  # fmt: skip
    _write(layer, insert(edges), rows)
    assert _edges(layer, "user:a") != before["user:a"]
    assert layer.consolidate(dry_run=True).edges == 2
    assert layer.consolidate().edges == 2
    assert {name: _edges(layer, name) for name in before} == before
    assert layer.consolidate().changes == {}


def test_edges_to_an_entity_that_is_gone_go_too(layer):
    node = _node(layer, "item:4")
    _write(layer, delete(entities).where(entities.c.tenant == "acme", entities.c.id == node))
    report = layer.consolidate()
    assert report.edges == 6, "three owners, each with its side and the other"
    assert not [edge for edge in _edges(layer, "user:a") if edge[0] == node]
    assert report.degrees == 3
    assert layer.consolidate().changes == {}


def test_what_a_record_named_is_not_linked_any_more_once_the_record_has_run_out(layer, clock):
    store = InMemoryBackend(clock=clock)
    store.add("user:a", "The Okta certificate is on the shelf", links=["topic:okta"])
    layer.index(store)
    layer.drain()
    node = _node(layer, "topic:okta")
    assert [edge for edge in _edges(layer, "user:a") if edge[0] == node]
    then = clock()
    clock.advance(hours=1)
    _write(layer, update(cards).where(cards.c.backend == store.name).values(valid_to=micros(clock())))
    clock.advance(hours=1)
    dry, report = layer.consolidate(dry_run=True), layer.consolidate()
    assert dry.edges == report.edges > 0
    assert dry.degrees == report.degrees == 1
    assert not [edge for edge in _edges(layer, "user:a") if edge[0] == node]
    with _tables(layer).database.read() as connection:
        owner = find(connection, "acme", ["user:a"])["user:a"]
        past = _tables(layer).adjacency.edges(
            connection, "acme", [owner], as_of=micros(then + timedelta(minutes=30))
        )[owner]  # fmt: skip
    assert node in past["dst"].tolist(), "the past is as it was"
    assert layer.consolidate().changes == {}


def test_a_forgotten_record_leaves_no_count_behind(layer):
    row = (entities.c.tenant == "acme") & (entities.c.id == _node(layer, "user:a"))
    before = _one(layer, select(entities.c.degree).where(row))
    [id_] = layer.observe("user:a", "item:99", verb="liked")
    layer.drain()
    layer.forget(id_)
    assert layer.consolidate().degrees == 1, "an erasure leaves the count to the night"
    assert _one(layer, select(entities.c.degree).where(row)) == before


def test_many_entities_are_looked_at_in_pages(layer):
    named = [f"topic:t{n}" for n in range(640)]
    for start in range(0, len(named), 64):
        layer.observe("user:many", "item:last", links=named[start : start + 64])
    layer.drain()
    report = layer.consolidate()
    assert report.nodes > 640
    assert report.pages > 3
    assert (report.edges, report.packs, report.degrees) == (0, 0, 0)
