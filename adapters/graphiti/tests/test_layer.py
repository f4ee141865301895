"""Through the layer: what held then, what holds now, and derived items that come and go."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from collab_layer_graphiti import Fact, GraphitiBackend, derived_group
from collab_layer_graphiti.server import FalkorServer

from collab_layer import CollabLayer, Entity
from collab_layer.config import Settings
from collab_layer.testing import FixedClock, InMemoryBackend

ANN, BOB = Entity("user", "ann"), Entity("user", "bob")
JAN, MAR, JUN, AUG = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 6, 8))
POSTGRES = "Сервис заказов хранит данные в PostgreSQL"
SQLITE = "Сервис заказов хранит данные в SQLite"
TOPICS = ("orders", "stock", "mail")
QUESTION = "Где сервис заказов хранит данные?"


@pytest.fixture
def layer(tmp_path):
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as opened:
        yield opened


def told(layer, as_of=None):
    return [facet.text for facet in layer.context(BOB, query=QUESTION, as_of=as_of).facets]


def remember(store, owner, *facts):
    return asyncio.run(store.remember(owner, facts))


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
    facts = [Fact(text=SQLITE, valid_at=JUN), Fact(text=POSTGRES, valid_at=JAN, invalid_at=JUN)]
    remember(made, ANN, *facts)
    layer.grant(ANN, to=BOB, level="records")
    assert layer.index(made) == 2
    layer.drain()
    assert (told(layer, MAR), told(layer)) == ([POSTGRES], [SQLITE])
    assert layer.reconcile(made) == 0


def test_a_fact_with_an_end_stops_supporting_anything_by_itself(tmp_path, store):
    clock = FixedClock(MAR)
    made = store(clock=clock)
    remember(made, ANN, Fact(text=POSTGRES, valid_at=JAN, invalid_at=JUN))
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False), clock=clock) as layer:
        layer.index(made)
        layer.grant(ANN, to=BOB, level="records")
        layer.drain()
        assert told(layer) == [POSTGRES]
        clock.set(JUN)
        assert told(layer) == []


def test_derived_items_are_delivered_are_no_news_and_go_with_the_grant(layer, store):
    made = store()
    remember(made, ANN, Fact(text=POSTGRES, links=("topic:orders",)))
    remember(made, BOB, Fact(text="Мой сервис медленный", links=("topic:orders",)))
    layer.attach(made, deliver=True)
    layer.index(made)
    grant = layer.grant(ANN, to=BOB, level="records")
    layer.drain()
    assert delivered(made) != []
    assert layer.reconcile(made) == 0
    assert asyncio.run(made.owners()) == [ANN, BOB]
    layer.revoke(grant.id)
    layer.drain()
    assert delivered(made) == []


def delivered(made):
    query = "MATCH ()-[e:RELATES_TO {group_id: $group}]->() RETURN e.fact AS fact, e.valid_at AS valid_at, "
    return asyncio.run(made._graph.ask(query + "e.invalid_at AS invalid_at", group=derived_group(BOB)))


def at(stored):
    return datetime.fromisoformat(str(stored))


def test_what_is_delivered_begins_and_ends_with_what_it_rests_on(layer, store):
    made, now = store(), datetime.now(UTC).replace(microsecond=0)
    began, ends = now - timedelta(days=9), now + timedelta(days=9)
    layer.attach(made, deliver=True)
    told_in_time(layer, made, Fact(text=POSTGRES, valid_at=began, invalid_at=ends, links=("topic:orders",)))
    (row,) = [row for row in delivered(made) if "PostgreSQL" in row["fact"]]
    assert (at(row["valid_at"]), at(row["invalid_at"])) == (began, ends)


def test_what_has_ended_is_delivered_to_nobody_and_what_ends_is_taken_back(layer, store):
    made, now = store(), datetime.now(UTC).replace(microsecond=0)
    layer.attach(made, deliver=True)
    over = Fact(
        text=POSTGRES, valid_at=now - timedelta(days=9), invalid_at=now - timedelta(days=1), links=("topic:orders",)
    )
    told_in_time(layer, made, over)
    assert not [row for row in delivered(made) if "PostgreSQL" in row["fact"]]
    (ref,) = remember(made, ANN, Fact(text=SQLITE, valid_at=now - timedelta(days=1), links=("topic:orders",)))
    layer.reconcile(made)
    layer.drain()
    assert [row for row in delivered(made) if "SQLite" in row["fact"]]
    asyncio.run(made.end([ref], datetime.now(UTC)))
    layer.reconcile(made)
    layer.drain()
    assert not [row for row in delivered(made) if "SQLite" in row["fact"]]


def told_in_time(layer, made, fact):
    """Ann, who is near Bob by what both note, states a fact; Bob may read her."""
    for owner in (ANN, BOB):
        remember(made, owner, *(Fact(text=f"{topic} снова медленно", links=(f"topic:{topic}",)) for topic in TOPICS))
    layer.index(made)
    layer.grant(ANN, to=BOB, level="records")
    layer.drain()
    remember(made, ANN, fact)
    layer.reconcile(made)
    layer.drain()


def test_one_store_down_is_said_and_the_other_answers(layer):
    memory = InMemoryBackend("notes")
    with FalkorServer(durable=True) as server:
        made = GraphitiBackend(server.url)
        remember(made, ANN, Fact(text=SQLITE))
        memory.add(ANN, "Ann pins the parser version")
        for one in (made, memory):
            layer.index(one)
        layer.grant(ANN, to=BOB, level="records")
        layer.drain()
        server.kill()
        parts = {part.name: part.condition for part in layer.health().parts}
        assert (parts["graphiti"], parts["notes"]) == ("down", "ok")
        assert SQLITE in told(layer), "its cards are still there"
        assert "Ann pins the parser version" in [
            facet.text for facet in layer.context(BOB, query="pin the parser version").facets
        ]
        server.start()
        assert {part.name: part.condition for part in layer.health().parts}["graphiti"] == "ok"
