"""What tests and demos rely on in the in-memory store, beyond the contract."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from collab_layer.errors import BackendDownError, InputError, UnsupportedError
from collab_layer.ports.backend import Can
from collab_layer.testing import FixedClock, InMemoryBackend
from collab_layer.types.entity import Entity
from collab_layer.types.update import Source, Update

ANN = Entity("user", "ann")


def test_links_and_time_of_a_memory_come_back():
    store, at = InMemoryBackend(), datetime(2025, 5, 1, tzinfo=UTC)
    store.add("user:ann", "Loved the desert planet", links=["item:dune", "item:dune"], at=at)
    (record,) = asyncio.run(store.records(ANN)).records
    assert record.links == (Entity("item", "dune"),)
    assert record.at == at


def test_the_past_of_an_edited_and_deleted_memory_is_kept_until_it_is_erased():
    clock = FixedClock()
    store = InMemoryBackend(clock=clock)
    ref = store.add(ANN, "first wording")
    written = clock()
    store.edit(ref, "second wording", at=clock.advance(hours=1))
    edited = clock()
    clock.advance(hours=1)
    store.delete(ref)

    def texts(at: datetime) -> list[str]:
        return [record.text for record in asyncio.run(store.records_as_of(ANN, at))]

    assert [texts(at) for at in (written, edited, clock())] == [["first wording"], ["second wording"], []]
    assert asyncio.run(store.erase([ref])) == 1
    assert [texts(at) for at in (written, edited, clock())] == [[], [], []]
    assert store.texts() == []


def test_the_same_text_is_no_edit():
    store = InMemoryBackend()
    ref = store.add(ANN, "as it was")
    cursor = asyncio.run(store.changes(None)).cursor
    assert store.edit(ref, "as it was") == ref
    assert asyncio.run(store.changes(cursor)).items == []


def test_what_is_gone_can_be_neither_edited_nor_deleted():
    store = InMemoryBackend()
    ref = store.add(ANN, "short-lived")
    store.delete(ref)
    with pytest.raises(InputError, match=ref.id):
        store.edit(ref, "again")
    with pytest.raises(InputError, match=ref.id):
        store.delete(ref)


def test_while_down_every_call_fails_and_is_counted():
    store = InMemoryBackend()
    ref = store.add(ANN, "still here afterwards")
    store.down = True
    for call in (store.read([ref]), store.records(ANN), store.search(ANN, "here"), store.owners(), store.changes(None)):
        with pytest.raises(BackendDownError):
            asyncio.run(call)
    assert asyncio.run(store.health()).condition == "down"
    store.down = False
    assert asyncio.run(store.health()).condition == "ok"
    assert len(asyncio.run(store.read([ref]))) == 1
    assert store.calls == {"read": 2, "records": 1, "search": 1, "owners": 1, "changes": 1, "health": 2}


def test_a_slow_store_lets_other_tasks_run():
    store = InMemoryBackend()
    store.delay_s = 30.0

    async def story() -> bool:
        waiting = asyncio.ensure_future(store.records(ANN))
        await asyncio.sleep(0)
        still_waiting = store.calls["records"] == 1 and not waiting.done()
        waiting.cancel()
        return still_waiting

    assert asyncio.run(story())


def test_only_what_was_asked_for_is_promised():
    store = InMemoryBackend(can={Can.SEARCH})
    assert store.can == {Can.SEARCH}
    with pytest.raises(UnsupportedError, match="watch"):
        asyncio.run(store.changes(None))
    with pytest.raises(UnsupportedError, match="embed"):
        _ = store.embedder


@pytest.mark.parametrize("ability", [Can.IF_MATCH, Can.EMBED])
def test_it_cannot_promise_what_it_has_not(ability):
    with pytest.raises(InputError, match=ability):
        InMemoryBackend(can={ability})


@pytest.mark.parametrize("cursor", ["yesterday", "-1", "", "²", "1e3"])
def test_a_foreign_cursor_is_refused(cursor):
    store = InMemoryBackend()
    for call in (store.changes(cursor), store.records(ANN, after=cursor)):
        with pytest.raises(InputError, match="cursor"):
            asyncio.run(call)


def test_derived_items_are_kept_apart_for_each_owner():
    store = InMemoryBackend()
    source = Source(id="interaction:1", principal=Entity("user", "bob"), weight=1.0)
    for name in ("ann", "eve"):
        update = Update(id=f"u:{name}", owner=Entity("user", name), text=f"for {name}", confidence=1, sources=(source,))
        asyncio.run(store.write([update]))
    assert [update.text for update in store.derived(ANN)] == ["for ann"]
    assert [update.text for update in store.derived()] == ["for ann", "for eve"]
    assert asyncio.run(store.health()).condition == "empty"
