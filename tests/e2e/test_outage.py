"""A store that cannot be reached: said at once, never mistaken for "nothing known", and made up for afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.testing import FixedClock, InMemoryBackend

LONG = 30
"""Tries during an outage; far more than any limit on tries."""


@pytest.fixture
def store() -> InMemoryBackend:
    return InMemoryBackend()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def layer(sqlite_url, clock) -> Iterator[CollabLayer]:
    sharing = Sharing.within_tenant("records")
    with CollabLayer.open(sqlite_url, sharing=sharing, settings=Settings(worker=False), clock=clock) as opened:
        yield opened


def outlast(layer: CollabLayer, clock: FixedClock) -> None:
    """Let the layer try for days while the store is away."""
    for _ in range(LONG):
        layer.drain()
        clock.advance(hours=2)


def test_an_outage_shows_in_health_and_an_empty_store_does_not(layer, store):
    layer.attach(store)
    assert layer.health().condition == "ok"
    store.down = True
    assert layer.health().condition == "down"
    assert [part.condition for part in layer.health().parts if part.name == "memory"] == ["down"]
    store.down = False
    assert layer.health().condition == "ok"


def test_memories_that_could_not_be_read_are_read_after_a_long_outage(layer, store, clock):
    store.add("user:ann", "Dune has giant worms")
    store.add("user:bob", "The worms of Dune are blind")
    layer.index(store)
    store.down = True
    outlast(layer, clock)
    assert layer.health().counts["cards"] == 0
    store.down = False
    layer.reconcile(store)
    layer.drain()
    counts = layer.health().counts
    assert (counts["cards"], counts["waiting"], counts["parked"]) == (2, 0, 0)
    assert "blind" in str(layer.context("user:ann", "worms of Dune"))


def test_derived_items_are_delivered_after_a_long_outage(layer, store, clock):
    layer.attach(store, deliver=True)
    store.down = True
    for owner in ("user:ann", "user:bob", "user:eve"):
        for item in ("item:dune", "item:emma"):
            layer.observe(owner, item, verb="liked", text=f"{owner} has read {item} twice")
    outlast(layer, clock)
    assert store.derived() == []
    store.down = False
    layer.drain()
    assert store.derived() != []
    assert len({update.id for update in store.derived()}) == len(store.derived())


def test_a_store_that_is_down_does_not_stop_what_the_layer_keeps_itself(layer, store):
    layer.attach(store)
    store.down = True
    layer.observe("user:ann", "item:dune", verb="liked", text="Dune has giant worms")
    layer.observe("user:bob", "item:dune", verb="liked")
    layer.drain()
    assert "giant worms" in str(layer.context("user:bob", "worms"))
