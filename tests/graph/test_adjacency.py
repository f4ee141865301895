"""Packed arrays and deltas tell the same as the interactions they come from."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from collab_layer.graph import writer
from collab_layer.graph.adjacency import _NONE, Kind, _as_packed, _merge, _merge_each, pick
from collab_layer.graph.engine import insert
from collab_layer.graph.names import find
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import edges, interactions
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import FOREVER, micros

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 5), st.integers(0, 400), st.sampled_from([0.0, 1.0, 2.5]), st.booleans()
    ),
    min_size=1,
    max_size=40,
)


def _observe(store, batch, tenant="acme"):
    with store.database.write() as connection:
        return writer.observe(connection, store.adjacency, tenant, batch, micros(START))


def _edges(store, name, kind, as_of=None, tenant="acme"):
    with store.database.read() as connection:
        node = find(connection, tenant, [name])[name]
        return pick(store.adjacency.edges(connection, tenant, [node], as_of=as_of)[node], kind)


def _recomputed(store, name, as_of=None):
    """The same edges from the interactions alone; what has no weight in all is held by nobody."""
    with store.database.read() as connection:
        node = find(connection, "acme", [name])[name]
        rows = connection.execute(select(interactions).where(interactions.c.tenant == "acme")).all()
    found = {}
    for row in rows:
        if row.actor == node and row.target is not None and (as_of is None or row.at <= as_of):
            weight, count, last = found.get(row.target, (0.0, 0, 0))
            found[row.target] = (weight + row.weight, count + 1, max(last, row.at))
    return {target: edge for target, edge in found.items() if edge[0] > 0}


def _as_dict(edges):
    return {
        int(id_): (float(weight), int(count), int(last))
        for id_, weight, count, last in zip(edges.ids, edges.weight, edges.count, edges.last, strict=True)
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_every_weight_can_be_recomputed_from_the_interactions_whenever_it_was_folded(tmp_path_factory, steps):
    store = GraphStore.open(str(tmp_path_factory.mktemp("fold") / "g.db"), embedder="test", dim=8)
    try:
        for user, item, days, weight, fold in steps:
            event = Interaction(
                actor=f"user:{user}", target=f"item:{item}", at=START + timedelta(days=days), weight=weight
            )
            _observe(store, [event])
            if fold:
                with store.database.write() as connection:
                    nodes = list(find(connection, "acme", [f"user:{user}", f"item:{item}"]).values())
                    store.adjacency.fold(connection, "acme", nodes)
        for user in {f"user:{step[0]}" for step in steps}:
            assert _as_dict(_edges(store, user, Kind.INTERACTED)) == _recomputed(store, user)
            middle = micros(START + timedelta(days=200))
            assert _as_dict(_edges(store, user, Kind.INTERACTED, as_of=middle)) == _recomputed(store, user, middle)
    finally:
        store.close()


LINES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(5, 7), st.booleans(), st.sampled_from([0.5, 1.0])), max_size=30
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=LINES, told=LINES)
def test_rows_packed_before_they_are_stored_are_as_rows_packed_afterwards(tmp_path_factory, before, told):
    store = GraphStore.open(str(tmp_path_factory.mktemp("fold") / "g.db"), embedder="test", dim=8)
    nodes, ends = range(1, 8), 10**9

    def lines(tenant, steps, at):
        found = []
        for src, dst, over, weight in steps:
            how = {"weight": weight, "at": at, "now": at, "interaction": at, "valid_to": ends if over else FOREVER}
            found += writer.edge_rows(tenant, src, dst, Kind.MENTIONS, **how)
        return found

    def look(tenant, connection, now):
        packed = store.adjacency.edges(connection, tenant, nodes, now=now)
        rows = connection.execute(select(edges.c.src, edges.c.dst, edges.c.folded).where(edges.c.tenant == tenant))
        return {node: rows.tolist() for node, rows in packed.items()}, sorted(map(tuple, rows))

    try:
        with store.database.write() as connection:
            for tenant in ("one", "two"):
                insert(connection, edges, lines(tenant, before, 1))
            how = {"at_least": 4, "always": {1, 2}, "now": 2}
            new = lines("one", told, 2)
            store.adjacency.fold(connection, "one", nodes, **how, new=new)
            insert(connection, edges, new)
            insert(connection, edges, lines("two", told, 2))
            store.adjacency.fold(connection, "two", nodes, **how)
            for now in (3, ends + 1):
                assert look("one", connection, now) == look("two", connection, now)
    finally:
        store.close()


def test_both_directions_are_written(store):
    _observe(store, [Interaction(actor="user:a", target="item:x", links=["topic:t"])])
    assert len(_edges(store, "item:x", Kind.HELD_BY)) == 1
    assert len(_edges(store, "topic:t", Kind.MENTIONED_BY)) == 1


def test_newest_edges_come_first(store):
    batch = [Interaction(actor="user:a", target=f"item:{n}", at=START + timedelta(days=n)) for n in (3, 1, 2)]
    _observe(store, batch)
    last = _edges(store, "user:a", Kind.INTERACTED).last
    assert np.all(np.diff(last) < 0)


def test_leaving_a_team_ends_membership_but_not_its_past(store):
    at = [START + timedelta(days=days) for days in (0, 10)]
    _observe(store, [Interaction(actor="user:a", target="team:s", verb="joined", at=at[0])])
    with store.database.write() as connection:
        store.adjacency.fold(connection, "acme", list(find(connection, "acme", ["user:a", "team:s"]).values()))
    assert len(_edges(store, "user:a", Kind.MEMBER_OF)) == 1
    _observe(store, [Interaction(actor="user:a", target="team:s", verb="left", at=at[1])])
    assert len(_edges(store, "user:a", Kind.MEMBER_OF)) == 0
    assert len(_edges(store, "team:s", Kind.HAS_MEMBER)) == 0
    assert len(_edges(store, "user:a", Kind.MEMBER_OF, as_of=micros(START + timedelta(days=5)))) == 1


def test_no_edge_crosses_a_tenant(store):
    _observe(store, [Interaction(actor="user:a", target="item:x")], tenant="acme")
    _observe(store, [Interaction(actor="user:b", target="item:x")], tenant="other")
    assert len(_edges(store, "item:x", Kind.HELD_BY, tenant="acme")) == 1
    assert len(_edges(store, "item:x", Kind.HELD_BY, tenant="other")) == 1


def test_a_version_changes_with_every_change_of_a_node(store):
    seen = set()
    for n in range(3):
        _observe(store, [Interaction(actor="user:a", target=f"item:{n}")])
        with store.database.write() as connection:
            node = find(connection, "acme", ["user:a"])["user:a"]
            seen.add(store.adjacency.versions(connection, "acme", [node])[node])
            if n == 1:
                store.adjacency.fold(connection, "acme", [node])
                seen.add(store.adjacency.versions(connection, "acme", [node])[node])
    assert len(seen) == 4


def test_links_are_kept_with_their_interaction(store):
    _observe(store, [Interaction(actor="user:a", links=["topic:t", "topic:u"])])
    with store.database.read() as connection:
        ids = find(connection, "acme", ["topic:t", "topic:u"])
        links = connection.execute(select(interactions.c.links)).scalar()
    assert set(json.loads(links)) == set(ids.values())


def test_a_node_is_packed_the_same_few_or_many_events_at_once(tmp_path):
    """Sixty things, some met again, in one fold of all and in a fold after every few."""
    batch = [
        Interaction(actor="user:u", target=f"item:{at % 60}", at=START + timedelta(days=at % 7), weight=1 + at % 3)
        for at in range(150)
    ]
    packed = []
    for name, size in (("many.db", 150), ("few.db", 10)):
        store = GraphStore.open(str(tmp_path / name), embedder="test", dim=8)
        try:
            for start in range(0, len(batch), size):
                _observe(store, batch[start : start + size])
                with store.database.write() as connection:
                    store.adjacency.fold(connection, "acme", list(find(connection, "acme", ["user:u"]).values()))
            packed.append(_as_dict(_edges(store, "user:u", Kind.INTERACTED)))
            assert packed[-1] == _recomputed(store, "user:u")
        finally:
            store.close()
    assert packed[0] == packed[1]


def test_a_fold_that_is_taken_back_is_not_remembered(store):
    _observe(store, [Interaction(actor="user:u", target="item:a", at=START)])
    before = _as_dict(_edges(store, "user:u", Kind.INTERACTED))
    with store.database.engine.connect() as connection:
        node = find(connection, "acme", ["user:u"])["user:u"]
        assert store.adjacency.fold(connection, "acme", [node]) == 1
        connection.rollback()
    assert _as_dict(_edges(store, "user:u", Kind.INTERACTED)) == before


def test_the_teams_of_a_member_are_the_same_before_and_after_a_fold(store):
    _observe(store, [Interaction(actor="user:u", target="team:a", verb="joined", at=START)])
    _observe(store, [Interaction(actor="user:u", target="item:a", at=START)])
    seen = []
    for _ in range(2):
        with store.database.write() as connection:
            ids = find(connection, "acme", ["user:u", "team:a"])
            seen.append(store.adjacency.ends(connection, "acme", [ids["user:u"]], Kind.MEMBER_OF))
            store.adjacency.fold(connection, "acme", [ids["user:u"]])
    assert seen == [{ids["user:u"]: [ids["team:a"]]}] * 2


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.sampled_from([0.0, 0.1, 1.0, 2.5]), st.integers(0, 9)),
    max_size=9,
)


@given(st.lists(st.tuples(ROWS, ROWS), max_size=6))
def test_nodes_merged_together_are_merged_as_each_alone(nodes):
    bases = [_merge(_NONE, _as_packed(base)) for base, _ in nodes]
    fresh = [_as_packed(rows) for _, rows in nodes]
    together = _merge_each(bases, np.concatenate([_NONE, *fresh]), [len(rows) for rows in fresh])
    for merged, base, rows in zip(together, bases, fresh, strict=True):
        alone = {(dst, kind): values for dst, kind, *values in _merge(base, rows).tolist()}
        assert {(dst, kind): values for dst, kind, *values in merged.tolist()} == alone
        assert [(-last, dst) for dst, *_, last in merged.tolist()] == sorted(
            (-last, dst) for dst, *_, last in merged.tolist()
        )
