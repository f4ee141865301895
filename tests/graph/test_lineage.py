"""The lineage graph: no cycles, trust never above its sources, cut with a count; on both databases."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from collab_layer.errors import LineageCycleError
from collab_layer.governance.lineage import maker, trust_of
from collab_layer.graph import derived
from collab_layer.graph import lineage as lineages
from collab_layer.graph.derived import Item
from collab_layer.graph.store import GraphStore
from collab_layer.graph.tables import lineage
from collab_layer.types.facet import FacetKind
from collab_layer.types.scope import Level


def _item(id_, sources, trust=1.0):
    rows = tuple((source, 1, 1 / len(sources)) for source in sources)
    return Item(id_, 7, FacetKind.UPDATE, id_, f"says {id_}", 0.2, Level.RECORDS, (), rows, "rules abc", trust=trust)


@pytest.fixture
def database(database_url):
    store = GraphStore.open(database_url, embedder="none", dim=1)
    yield store.database
    store.close()


def test_an_item_that_would_rest_on_itself_is_refused_and_nothing_of_its_batch_is_stored(database):
    with database.write() as connection:
        derived.put(connection, "acme", [_item("d1", ["c1"]), _item("d2", ["d1"]), _item("d3", ["d2", "c2"])])
    for batch in (
        [_item("d4", ["d4"])],
        [_item("d1", ["d3"])],  # what is stored already leads back to it
        [_item("d5", ["c5"]), _item("d6", ["d7"]), _item("d7", ["d6"])],
    ):
        with pytest.raises(LineageCycleError) as refused, database.write() as connection:
            derived.put(connection, "acme", batch)
        assert refused.value.item in {"d1", "d2", "d3", "d4", "d6", "d7"}
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(lineage)).scalar_one() == 4


def test_the_same_ids_in_another_tenant_are_no_cycle_and_lend_no_trust(database):
    with database.write() as connection:
        derived.put(connection, "other", [_item("d1", ["c1"], trust=0.1), _item("d2", ["d1"])])
        derived.put(connection, "acme", [_item("d1", ["d2"])])
    with database.read() as connection:
        assert derived.get(connection, "acme", ["d1"])["d1"].trust == 1.0
        assert derived.get(connection, "other", ["d2"])["d2"].trust == 0.1


def test_sources_come_strongest_first_and_cut_with_how_many_there_are(database):
    rows = (*((f"c{n}", n, n / 10) for n in range(1, 6)), ("d1", 1, 0.0))
    wide = Item("d9", 7, FacetKind.FACET, "k", "wide", 0.2, Level.RECORDS, (), rows, "")
    with database.write() as connection:
        derived.put(connection, "acme", [_item("d1", ["c1"]), wide])
    with database.read() as connection:
        found = lineages.sources(connection, "acme", ["d9", "d1", "d0"], 3)
    listed, total = found["d9"]
    assert [one.id for one in listed] == ["c5", "c4", "d1"], "an earlier item is never cut before a record"
    assert total == 6
    assert found["d1"][1] == 1
    assert "d0" not in found


_DAGS = st.lists(
    st.tuples(st.floats(0, 1), st.sets(st.integers(0, 11), max_size=4)), min_size=1, max_size=12
)  # each item rests on some of those before it


def _below(dag, item, seen=None):
    seen = set() if seen is None else seen
    seen.add(item)
    for source in dag[item][1]:
        if source < item and source not in seen:
            _below(dag, source, seen)
    return seen


@settings(max_examples=200)
@given(_DAGS)
def test_trust_is_the_minimum_over_all_generations(dag):
    rests_on = {f"d{n}": {f"d{s}" for s in of if s < n} for n, (_, of) in enumerate(dag)}
    trust = trust_of(rests_on, {f"d{n}": own for n, (own, _) in enumerate(dag)})
    for n in range(len(dag)):
        assert trust[f"d{n}"] == min(dag[below][0] for below in _below(dag, n))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_DAGS)
def test_what_is_stored_in_any_batches_is_trusted_no_more_than_what_it_rests_on(sqlite_url, dag):
    store = GraphStore.open(sqlite_url, embedder="none", dim=1)
    tenant = f"t{abs(hash(repr(dag)))}"
    for n, (own, of) in enumerate(dag):
        sources = sorted({f"d{s}" for s in of if s < n}) or [f"c{n}"]
        with store.database.write() as connection:
            derived.put(connection, tenant, [_item(f"d{n}", sources, trust=own)])
    with store.database.read() as connection:
        found = derived.get(connection, tenant, [f"d{n}" for n in range(len(dag))])
    store.close()
    for n in range(len(dag)):
        assert found[f"d{n}"].trust == min(dag[below][0] for below in _below(dag, n))


def test_who_worded_an_item_is_told_in_parts():
    assert maker("rules 0123abcd").rules == "0123abcd"
    model = maker("openai:gpt-4o-mini, prompt 3")
    assert (model.model, model.prompt) == ("openai:gpt-4o-mini", "3")
    assert maker("noted") is None
