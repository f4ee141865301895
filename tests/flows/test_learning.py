"""Learning runs beside propagation, under a lease of its own."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from sqlalchemy import select

from collab_layer.config import Settings
from collab_layer.flows import learning
from collab_layer.graph.tables import settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.sync import CollabLayer
from collab_layer.testing.clock import FixedClock
from collab_layer.types.interaction import Interaction
from collab_layer.types.time import SECOND

from .cut_off import cut_off_as_it_writes

TOLD = 250


def tell(layer, first=0):
    layer.observe([Interaction(actor=f"user:{n % 25}", target=f"item:{first + n % 10}") for n in range(TOLD)])


def turn_of(layer):
    with layer._layer._core.tools.store.database.read() as connection:
        query = select(settings.c.value).where(settings.c.name == learning.NAME)
        text = connection.execute(query).scalar()
    return learning.Turn() if text is None else learning._TURN.validate_json(text)


def until(true):
    patience = time.monotonic() + 60
    while not true():
        assert time.monotonic() < patience, "the worker did not get to it"
        time.sleep(0.02)


@pytest.fixture
def held(monkeypatch):
    """Learning that takes as long as the test wants."""
    begun, go_on, rebuild = threading.Event(), threading.Event(), learning.rebuild

    async def slow(tools, tenant):
        def wait():
            begun.set()
            assert go_on.wait(60)

        await tools.in_thread(wait)
        return await rebuild(tools, tenant)

    monkeypatch.setattr(learning, "rebuild", slow)
    yield begun, go_on
    go_on.set()


def test_propagation_goes_on_while_a_worker_learns(database_url, held):
    begun, go_on = held
    with CollabLayer.open(database_url, settings=Settings(worker=True)) as layer:
        tell(layer)
        assert begun.wait(60)
        [id_] = layer.observe("user:late", text="The settings lie in one file")
        until(lambda: layer.health().counts["waiting"] == 0)
        assert layer.explain(id_).text is not None
        assert turn_of(layer).until > 0, "it is still at it"
        go_on.set()
        until(lambda: turn_of(layer).until == 0)


def test_who_dies_over_it_is_followed_when_the_lease_has_ended(database_url, monkeypatch):
    monkeypatch.setattr(learning, "LEASE", SECOND // 2)
    with CollabLayer.open(database_url, settings=Settings(worker=False)) as layer:
        tools = layer._layer._core.tools
        tell(layer)
        first = learning.claim(tools, "default")
        assert first
        assert not learning.claim(tools, "default")
        time.sleep(0.6)
        second = learning.claim(tools, "default")
        assert second not in (0, first)
        learning._set_until(tools, "default", first, 0)
        assert turn_of(layer).until > 0, "the one that came back ends nobody else's lease"
        learning._set_until(tools, "default", second, 0)
        assert not learning.claim(tools, "default"), "it was just done"


def test_a_worker_that_is_stopped_lets_go_of_it(database_url, held):
    begun, go_on = held
    with CollabLayer.open(database_url, settings=Settings(worker=True)) as layer:
        tell(layer)
        assert begun.wait(60)
        threading.Timer(0.3, go_on.set).start()
    with CollabLayer.open(database_url, settings=Settings(worker=False)) as layer:
        assert learning.claim(layer._layer._core.tools, "default")


def test_a_small_tenant_is_learned_from_after_a_day(database_url):
    clock = FixedClock()
    with CollabLayer.open(database_url, settings=Settings(worker=False), clock=clock) as layer:
        tools = layer._layer._core.tools
        assert not learning.claim(tools, "default"), "nothing is there"
        layer.observe([Interaction(actor=f"user:{n}", target="item:1") for n in range(5)])
        assert not learning.claim(tools, "default")
        clock.advance(hours=25)
        assert learning.claim(tools, "default")


def test_a_turn_that_is_cut_off_as_it_is_claimed_is_the_next_ones_at_once(tmp_path):
    file = tmp_path / "collab.db"

    async def story():
        async with await AsyncCollabLayer.open(str(file), settings=Settings(worker=False)) as layer:
            await layer.observe([Interaction(actor=f"user:{n % 25}", target=f"item:{n % 10}") for n in range(TOLD)])
            tools = layer._core.tools
            await cut_off_as_it_writes(tools, file, learning.Learning()._look(tools, "default"))
            return await tools.in_thread(learning.claim, tools, "default")

    assert asyncio.run(story())
