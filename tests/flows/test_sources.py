"""Erasure at the owner's own store: at once, later, after a restart, or named as not promised."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from collab_layer import CollabLayer, Entity, MemoryRef
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, ErasedPartlyError, NotPermittedError, UnknownIdError
from collab_layer.ports.backend import Can
from collab_layer.receipts import verify_receipt
from collab_layer.testing.memory import ABILITIES, InMemoryBackend

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
BY_HAND = Settings(worker=False)


class Stuck(InMemoryBackend):
    """Erases nothing, and says so."""

    async def erase(self, refs, /):
        raise ErasedPartlyError(self.name, "all of it is under a legal hold")


class Breaks(InMemoryBackend):
    """Breaks off once, when it lists nothing any more and has not finished."""

    broken, asked = False, 0

    async def erase(self, refs, /):
        self.asked += 1
        count = await super().erase(refs)
        if not self.broken:
            self.broken = True
            raise BackendDownError(self.name, "its history is locked")
        return count


class Sticky(InMemoryBackend):
    """Says that it keeps something of what it erased."""

    async def erase(self, refs, /):
        count = await super().erase(refs)
        raise ErasedPartlyError(self.name, f"{count} are erased, but a summary retells them")


@pytest.fixture
def store(layer):
    store = InMemoryBackend()
    store.add("user:ann", "Ann keeps bees in Zanzibar")
    store.add("user:ann", "Ann sold her boat")
    store.add("user:bob", "Bob likes worms")
    layer.index(store)
    layer.drain()
    return store


def refs(store, owner="user:ann"):
    return [record.ref for record in asyncio.run(store.records(Entity.parse(owner))).records]


def test_without_source_the_owners_store_keeps_its_memories(layer, store):
    receipt = layer.forget("user:ann")
    assert receipt.stores == {}
    assert len(refs(store)) == 2


def test_with_source_an_owner_is_erased_in_the_store_too(layer, store):
    store.add("user:ann", "Never told to the layer")
    receipt = layer.forget("user:ann", source=True)
    assert (receipt.status, receipt.stores) == ("complete", {"memory": "erased"})
    assert store.texts() == ["Bob likes worms"]
    assert verify_receipt(receipt.model_dump_json(), layer.receipt_key()) == receipt


def test_with_source_a_memory_is_erased_alone(layer, store):
    boat = refs(store)[1]
    receipt = layer.forget(MemoryRef(backend=boat.backend, id=boat.id), source=True)
    assert receipt.stores == {"memory": "erased"}
    assert store.texts() == ["Ann keeps bees in Zanzibar", "Bob likes worms"]


def test_who_is_not_known_to_us_is_erased_in_the_store_for_the_operator_alone(layer, store):
    store.add("user:eve", "Never told to the layer")
    with pytest.raises(UnknownIdError):
        layer.forget("user:eve")
    with pytest.raises(UnknownIdError):
        layer.as_("user:eve").forget("user:eve", source=True)
    receipt = layer.forget("user:eve", source=True)
    assert (receipt.removed, receipt.stores) == ({}, {"memory": "erased"})
    assert not any("Never told" in text for text in store.texts())


def test_a_principal_erases_its_own_at_the_store_and_nobody_elses(layer, store):
    [bobs] = refs(store, "user:bob")
    with pytest.raises(NotPermittedError):
        layer.as_("user:ann").forget(MemoryRef(backend=bobs.backend, id=bobs.id), source=True)
    layer.as_("user:ann").forget("user:ann", source=True)
    assert store.texts() == ["Bob likes worms"]


def test_forgetting_what_others_hold_does_not_reach_into_their_stores(layer, store):
    [bobs] = refs(store, "user:bob")
    layer.observe("user:bob", "item:dune", verb="liked")
    layer.drain()
    layer.forget("item:dune", source=True)
    assert refs(store, "user:bob") == [bobs]


def test_a_store_that_is_down_is_erased_by_the_next_worker_also_after_a_restart(database_url):
    store = InMemoryBackend()
    store.add("user:ann", "Ann keeps bees in Zanzibar")
    with CollabLayer.open(database_url, settings=BY_HAND) as layer:
        layer.index(store)
        layer.drain()
        store.down = True
        first = layer.forget("user:ann", source=True)
        assert (first.status, first.pending, first.stores) == ("pending", 1, {"memory": "pending"})
        layer.drain()
        assert layer.receipt(first.id) == first
    store.down = False
    with CollabLayer.open(database_url, settings=BY_HAND) as layer:
        layer.drain()
        assert layer.receipt(first.id) == first, "the store is not attached yet"
        layer.attach(store)
        layer.drain()
        done = layer.receipt(first.id)
        assert (done.status, done.revision, done.stores) == ("complete", 2, {"memory": "erased"})
        assert store.texts() == []
        assert verify_receipt(done.model_dump_json(), layer.receipt_key()) == done


def test_what_was_read_again_before_the_store_erased_it_goes_too(layer, store):
    store.down = True
    receipt = layer.forget("user:ann", source=True)
    store.down = False
    assert layer.index(store) >= 2, "it cannot be told from a new memory"
    layer.drain()
    assert layer.receipt(receipt.id).status == "complete"
    assert layer.changes("user:ann", since=LONG_AGO) == []


def test_a_store_that_promises_no_erasure_is_named_as_such(layer):
    store = InMemoryBackend("plain", can=ABILITIES - {Can.ERASE})
    store.add("user:ann", "Ann keeps bees in Zanzibar")
    layer.index(store)
    layer.drain()
    receipt = layer.forget("user:ann", source=True)
    assert (receipt.status, receipt.stores) == ("complete", {"plain": "unable"})
    assert len(refs(store)) == 1


def test_a_store_that_keeps_something_is_named_as_such(layer):
    store = Sticky("sticky")
    store.add("user:ann", "Ann keeps bees in Zanzibar")
    layer.index(store)
    layer.drain()
    receipt = layer.forget("user:ann", source=True)
    assert (receipt.status, receipt.stores) == ("complete", {"sticky": "partly"})


def test_so_is_one_that_still_lists_what_it_keeps(layer):
    store = Stuck("stuck")
    store.add("user:ann", "Ann keeps bees in Zanzibar")
    layer.index(store)
    layer.drain()
    receipt = layer.forget("user:ann", source=True)
    assert (receipt.status, receipt.stores) == ("complete", {"stuck": "partly"})


def test_a_store_that_broke_off_is_asked_again_for_the_same_memories(layer):
    store = Breaks("breaks")
    store.add("user:ann", "Never told to the layer")
    layer.attach(store)
    first = layer.forget("user:ann", source=True)
    assert (first.status, store.texts()) == ("pending", [])
    layer.drain()
    assert store.asked == 2, "though it lists them no more"
    assert layer.receipt(first.id).stores == {"breaks": "erased"}


def test_a_receipt_waits_for_its_own_copies_and_for_no_others(layer, clock):
    ours, theirs = InMemoryBackend("ours"), InMemoryBackend("theirs")
    layer.attach(ours, deliver=True)
    layer.attach(theirs)
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked")
        layer.grant(who, "tenant", "records")
    layer.drain()
    [dune] = layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best desert book I have read")
    layer.drain()
    ours.down = True
    waiting = layer.forget(dune)
    assert waiting.status == "pending"
    layer.observe("user:z", text="Zoe knows nobody")
    assert layer.forget("user:z").status == "complete", "another's copies are not its business"
    later = layer.forget("user:a")
    assert later.pending >= waiting.pending, "a copy of hers that is still there is"
    ours.down = False
    clock.advance(hours=1)
    layer.drain()
    assert {layer.receipt(one.id).status for one in (waiting, later)} == {"complete"}


def test_a_revoked_grant_gives_a_receipt_of_what_left_the_index_and_was_taken_back(layer, clock):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked")
    given = layer.grant("user:a", "user:b", "records")
    layer.drain()
    layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best desert book I have read")
    layer.drain()
    quoted = [facet.id for facet in layer.context("user:b", "desert book").facets]
    assert quoted
    assert any("Dune" in text for text in store.texts())
    receipt = layer.revoke(given.id)
    assert receipt.action == "revoke"
    assert (receipt.removed["texts"], receipt.erased["cards"].count) == (1, 1)
    assert receipt.status == "pending"
    for id_ in quoted:
        with pytest.raises((UnknownIdError, NotPermittedError)):
            layer.explain(id_)
    clock.advance(hours=1)
    layer.drain()
    assert not any("Dune" in text for text in store.texts())
    assert layer.receipt(receipt.id).status == "complete"
