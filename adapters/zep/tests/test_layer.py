"""Through the layer: what held then, what holds now, and derived items that come and go.

The same stories, with the same names, are told in `collab-layer-graphiti` over a real FalkorDB.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_zep import Fact

from collab_layer import CollabLayer, Entity
from collab_layer.config import Settings
from collab_layer.testing import FixedClock, InMemoryBackend

ANN, BOB = Entity("user", "ann"), Entity("user", "bob")
JAN, MAR, JUN, AUG = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 6, 8))
POSTGRES = "Сервис заказов хранит данные в PostgreSQL"
SQLITE = "Сервис заказов хранит данные в SQLite"
QUESTION = "Где сервис заказов хранит данные?"


@pytest.fixture(autouse=True)
def people(zep):
    for name in ("ann", "bob"):
        zep.user.create(user_id=name)


def told(layer, as_of=None):
    return [facet.text for facet in layer.context(BOB, query=QUESTION, as_of=as_of).facets]


def remember(store, owner, *facts):
    return asyncio.run(store.remember(owner, facts))


def texts(records):
    return {record.text for record in records}


def moved(layer, store):
    """Ann moves from one database to the other in June; Bob may read her."""
    (old,) = remember(store, ANN, Fact(text=POSTGRES, valid_at=JAN))
    layer.index(store)
    layer.grant(ANN, to=BOB, level="records")
    layer.drain()
    assert told(layer) == [POSTGRES]
    asyncio.run(store.end([old], JUN))
    remember(store, ANN, Fact(text=SQLITE, valid_at=JUN))


def test_a_change_reaches_a_neighbour_and_the_past_stays_as_it_was(layer, store):
    made = store()
    moved(layer, made)
    assert layer.reconcile(made) == 2
    layer.drain()
    assert told(layer) == told(layer, AUG) == [SQLITE]
    assert told(layer, MAR) == [POSTGRES]
    assert told(layer, JAN - timedelta(days=1)) == []


def test_a_store_that_is_brought_in_afterwards_gives_the_same_past(layer, store):
    made = store()
    remember(made, ANN, Fact(text=SQLITE, valid_at=JUN), Fact(text=POSTGRES, valid_at=JAN, invalid_at=JUN))
    layer.grant(ANN, to=BOB, level="records")
    assert layer.index(made) == 2
    layer.drain()
    assert (told(layer, MAR), told(layer)) == ([POSTGRES], [SQLITE])
    assert layer.reconcile(made) == 0


def test_a_fact_with_an_end_stops_supporting_anything_by_itself(tmp_path, store):
    clock = FixedClock(MAR)
    made = store(clock=clock)
    remember(made, ANN, Fact(text=POSTGRES, valid_at=JAN, invalid_at=JUN))
    with CollabLayer.open(str(tmp_path / "timed.db"), settings=Settings(worker=False), clock=clock) as layer:
        layer.index(made)
        layer.grant(ANN, to=BOB, level="records")
        layer.drain()
        assert told(layer) == [POSTGRES]
        clock.set(JUN)
        assert told(layer) == []


def test_every_moment_reads_as_a_replay_of_all_facts_does(store):
    made = store()
    stated = [
        Fact(
            text=f"Fact {n}",
            valid_at=JAN + timedelta(days=7 * n),
            invalid_at=JAN + timedelta(days=7 * n + 20 + n) if n % 3 else None,
        )
        for n in range(20)
    ]
    remember(made, ANN, *stated)
    for day in range(-1, 200, 9):
        at = JAN + timedelta(days=day)
        held = {one.text for one in stated if one.valid_at <= at and (one.invalid_at is None or at < one.invalid_at)}
        assert texts(asyncio.run(made.records_as_of(ANN, at))) == held, day
        assert texts(asyncio.run(made.search(ANN, "fact", k=50, at=at))) == held, day


def test_what_zep_retired_is_the_past_and_no_longer_found(server, store):
    made = store()
    refs = remember(made, ANN, Fact(text=POSTGRES, valid_at=JAN), Fact(text=SQLITE, valid_at=JUN))
    old = server.state.edges[refs[0].id.split("/")[1]]
    old |= {"invalid_at": JUN.isoformat(), "expired_at": AUG.isoformat()}
    assert texts(asyncio.run(made.records_as_of(ANN, MAR))) == {POSTGRES}
    assert texts(asyncio.run(made.records_as_of(ANN, AUG))) == {SQLITE}
    assert texts(asyncio.run(made.search(ANN, "данные"))) == {SQLITE}
    (read,) = asyncio.run(made.read([refs[0]]))
    assert read.valid_to == JUN


def test_derived_items_are_delivered_are_no_news_and_go_with_the_grant(layer, server, store):
    made = store()
    remember(made, ANN, Fact(text=POSTGRES))
    remember(made, BOB, Fact(text="Мой сервис заказов хранит слишком много"))
    layer.attach(made, deliver=True)
    layer.index(made)
    for owner in (ANN, BOB):
        layer.observe(owner, "topic:orders")
    grant = layer.grant(ANN, to=BOB, level="records")
    layer.drain()
    layer.deliver(BOB)
    assert delivered(server) != []
    assert layer.reconcile(made) == 0
    assert asyncio.run(made.owners()) == [ANN, BOB]
    layer.revoke(grant.id)
    layer.drain()
    assert delivered(server) == []
    assert [graph for graph in server.state.graphs.values() if graph["type"] == "standard"] == []


def delivered(server):
    graphs = {uuid for uuid, graph in server.state.graphs.items() if graph.get("name") == f"collab:for:{BOB}"}
    return [edge["fact"] for edge in server.state.edges.values() if edge["graph_uuid"] in graphs]


def test_an_agent_with_two_graphs_of_its_name_has_one_memory(zep, store):
    made, coder = store(), Entity("agent", "coder")
    for number in (1, 2):
        graph = zep.graph.create(name="agent:coder").uuid_
        made.places.forget(coder)
        edge = {
            "fact": f"Note {number}",
            "fact_name": "NOTED",
            "source_node": {"name": "a"},
            "target_node": {"name": "b"},
        }
        zep.graph.edge.add(graph, edges=[edge])
    page = asyncio.run(made.records(coder, limit=1))
    rest = asyncio.run(made.records(coder, after=page.after, limit=1))
    assert texts([*page.records, *rest.records]) == {"Note 1", "Note 2"}
    assert asyncio.run(made.owners()) == [coder]


def test_a_graph_whose_name_says_nothing_can_be_given_to_an_entity(zep, store):
    graph = zep.graph.create(name="Product docs").uuid_
    edge = {"fact": "Use SSO", "fact_name": "NOTED", "source_node": {"name": "a"}, "target_node": {"name": "b"}}
    zep.graph.edge.add(graph, edges=[edge])
    assert [str(one) for one in asyncio.run(store().owners())] == [f"app:uuid:{graph}"]
    made, docs = store(graphs={graph: "team:docs"}), Entity("team", "docs")
    assert asyncio.run(made.owners()) == [docs]
    (record,) = asyncio.run(made.records(docs)).records
    assert asyncio.run(made.read([record.ref])) == [record]


def test_a_user_who_was_deleted_and_made_again_is_read_anew_at_once(zep, store):
    made = store()
    remember(made, ANN, Fact(text=POSTGRES))
    assert texts(asyncio.run(made.records(ANN)).records) == {POSTGRES}
    zep.user.delete(zep.user.lookup(user_id="ann").uuid_)
    assert asyncio.run(made.records(ANN)).records == []
    graph = zep.user.create(user_id="ann").graph_uuid
    edge = {"fact": SQLITE, "fact_name": "NOTED", "source_node": {"name": "a"}, "target_node": {"name": "b"}}
    zep.graph.edge.add(graph, edges=[edge])
    assert texts(asyncio.run(made.records(ANN)).records) == {SQLITE}
    zep.user.delete(zep.user.lookup(user_id="ann").uuid_)
    other = zep.user.create(user_id="ann").graph_uuid
    zep.graph.edge.add(other, edges=[edge])
    assert texts(asyncio.run(made.search(ANN, "данные"))) == {SQLITE}


def test_one_store_down_is_said_and_the_other_answers(layer, server, store):
    memory, made = InMemoryBackend("notes"), store()
    remember(made, ANN, Fact(text=SQLITE))
    memory.add(ANN, "Ann pins the parser version")
    for one in (made, memory):
        layer.index(one)
    layer.grant(ANN, to=BOB, level="records")
    layer.drain()
    with server.down():
        parts = {part.name: part.condition for part in layer.health().parts}
        assert (parts["zep"], parts["notes"]) == ("down", "ok")
        assert SQLITE in told(layer), "its cards are still there"
    assert {part.name: part.condition for part in layer.health().parts}["zep"] == "ok"
