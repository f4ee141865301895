"""Copies on their way to a store while what they tell is taken back: whoever dies, none is left."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.errors import BackendDownError
from collab_layer.flows import deliver, work
from collab_layer.graph.tables import deliveries
from collab_layer.layer import AsyncCollabLayer
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend

from .cut_off import cut_off_as_it_writes

TOLD = "Dune is the best desert book I have read"


class _Dies(BaseException):
    """The end of a process that writes."""


class _Deadly(InMemoryBackend):
    """A store whose caller dies as it sends; what it sent arrives when it is let in."""

    def __init__(self, **more):
        super().__init__("store", **more)
        self.late = []
        self.deadly = True

    async def write(self, updates, /):
        if not self.deadly:
            return await super().write(updates)
        self.late = list(updates)
        raise _Dies

    async def arrive(self):
        return await super().write(self.late)


@pytest.fixture
def told(database_url, monkeypatch):
    """A layer that died over the delivery of what an owner told, and its store."""
    monkeypatch.setattr(deliver, "_let_go", lambda *given: None)  # the dead say nothing
    store = _Deadly()
    with CollabLayer.open(database_url, settings=Settings(worker=False, lease_s=1.5)) as layer:
        layer.attach(store, deliver=True)
        for who in ("user:a", "user:b"):
            for number in range(6):
                layer.observe(who, f"item:{number}", verb="liked")
        layer.grant("user:a", "user:b", "records")
        [id_] = layer.observe("user:a", "item:dune", verb="loved", text=TOLD)
        with pytest.raises(_Dies):
            layer.drain()
        store.deadly = False
        yield layer, store, id_


def test_a_copy_that_arrives_after_its_source_was_forgotten_is_taken_back(told):
    layer, store, id_ = told
    receipt = layer.forget(id_)
    assert receipt.status == "pending"
    layer._loop.run(store.arrive())
    assert [text for text in store.texts() if TOLD in text]
    layer.drain()
    assert not [text for text in store.texts() if TOLD in text]
    assert layer.receipt(receipt.id).status == "complete"
    assert layer.health().condition == "ok"


def test_a_copy_that_was_never_acknowledged_is_sent_again(told):
    layer, store, _ = told
    layer.drain()
    assert len([text for text in store.texts() if TOLD in text]) == 1


def test_a_store_that_refuses_holds_nothing_up(layer):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    for who in ("user:a", "user:b"):
        for number in range(6):
            layer.observe(who, f"item:{number}", verb="liked")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    [id_] = layer.observe("user:a", "item:dune", verb="loved", text=TOLD)
    store.down = True
    layer.drain()
    with pytest.raises(BackendDownError):
        layer.reconcile(store)
    receipt = layer.forget(id_)
    store.down = False
    layer.drain()
    assert layer.receipt(receipt.id).status == "complete"
    assert not [text for text in store.texts() if TOLD in text]


def test_a_delivery_that_is_stopped_as_it_takes_items_lets_go_of_them(tmp_path):
    """The thread that takes them cannot be stopped; held, they could not be taken back until the lease ends."""

    def held(tools):
        with tools.store.database.write() as connection:  # after whoever writes just now
            return list(connection.execute(select(deliveries.c.held)).scalars())

    async def story():
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
            await layer.attach(InMemoryBackend("store"), deliver=True)
            await layer.grant("user:a", "user:b", "records")
            for who in ("user:a", "user:b"):
                for number in range(6):
                    await layer.observe(who, f"item:{number}", verb="liked")
            await layer.observe("user:a", "item:dune", verb="loved", text=TOLD)
            tools = layer._core.tools
            while await work.step(tools, "default", ignore_due=True):
                pass

            await cut_off_as_it_writes(tools, tmp_path / "collab.db", deliver.deliver(tools, "default"))
            return await tools.in_thread(held, tools)

    found = asyncio.run(story())
    assert found
    assert not any(found)
