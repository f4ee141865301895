"""The worker looks at the stores by itself: what was done there past the layer is taken in without a hand."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager

import pytest

from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.backend import Can, Change
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import ABILITIES, InMemoryBackend

ASKED = "go modules conflict"
PINNED, VENDORED = "Go modules conflict: pinned version one", "Go modules conflict: vendored the module"
SOON_S = 60.0


@contextmanager
def working(url, store, **settings):
    """A layer with its worker, over a store whose one owner shares its records."""
    used = Settings(consolidate_hour_utc=None, **settings)
    with CollabLayer.open(url, tenant="acme", settings=used) as layer:
        store.add("agent:a", PINNED)
        layer.index(store)
        layer.grant("agent:a", "agent:b", "records")
        until(lambda: PINNED in said(layer))
        yield layer


def said(layer) -> list[str]:
    return [facet.text for facet in layer.context("agent:b", ASKED).facets]


def until(holds, within_s=SOON_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def swept() -> InMemoryBackend:
    """A store without a feed."""
    return InMemoryBackend(can=ABILITIES - {Can.WATCH})


@pytest.mark.parametrize("make", [InMemoryBackend, swept], ids=["feed", "sweep"])
def test_what_others_write_edit_and_delete_is_taken_in_by_itself(database_url, make):
    store = make()
    with working(database_url, store, watch_every_s=0.2, sweep_every_s=0.2) as layer:
        ref = store.add("agent:a", VENDORED)
        until(lambda: VENDORED in said(layer))
        ref = store.edit(ref, "Go modules conflict: removed the vendor folder")
        until(lambda: VENDORED not in said(layer) and any("removed" in text for text in said(layer)))
        store.delete(ref)
        until(lambda: said(layer) == [PINNED])


@pytest.mark.parametrize("make", [InMemoryBackend, swept], ids=["feed", "sweep"])
def test_a_store_that_was_down_is_looked_at_as_soon_as_it_is_back(sqlite_url, make):
    store = make()
    with working(sqlite_url, store, watch_every_s=3_600, sweep_every_s=3_600) as layer:
        store.down = True
        until(lambda: layer.context("agent:b", ASKED).degraded)
        store.add("agent:a", VENDORED)
        store.down = False
        until(lambda: VENDORED in said(layer))
        assert layer.context("agent:b", ASKED).degraded == ()


def test_an_outage_that_only_the_worker_meets_is_said_and_ends_by_itself(sqlite_url):
    store = swept()
    with working(sqlite_url, store, sweep_every_s=0.2) as layer:
        store.down = True
        looked = store.calls["records"]
        until(lambda: store.calls["records"] > looked)
        until(lambda: layer.context("agent:b", ASKED).degraded)
        store.down = False
        store.add("agent:a", VENDORED)
        until(lambda: VENDORED in said(layer))


def test_with_zero_it_never_looks(sqlite_url):
    store = InMemoryBackend()
    with working(sqlite_url, store, watch_every_s=0, sweep_every_s=0) as layer:
        asked = dict(store.calls)
        store.add("agent:a", VENDORED)
        time.sleep(1.5)
        assert {call: store.calls[call] for call in ("changes", "records")} == {
            call: asked.get(call, 0) for call in ("changes", "records")
        }
        assert layer.reconcile(store) == 1


def test_of_two_workers_over_one_database_one_looks(database_url):
    store, other = swept(), swept()
    with working(database_url, store, sweep_every_s=600):
        until(lambda: store.calls["records"] >= 2)  # brought in, and looked at once
        with CollabLayer.open(database_url, tenant="acme", settings=Settings(sweep_every_s=600)) as second:
            other.add("agent:a", PINNED)
            second.attach(other)
            second.observe("agent:z", text="starts the worker")
            time.sleep(2.0)
            assert other.calls["records"] == 0


def test_an_adapter_that_breaks_its_promise_stops_nothing(sqlite_url, caplog):
    class Broken(InMemoryBackend):
        async def changes(self, cursor, /, *, limit=500):
            if cursor is not None and self.calls["broken"] < 2:
                self.calls["broken"] += 1
                raise KeyError("cursor")
            return await super().changes(cursor, limit=limit)

    store = Broken()
    with working(sqlite_url, store, watch_every_s=0.2) as layer:
        until(lambda: "looking at `memory` stopped" in caplog.text)
        store.add("agent:a", VENDORED)
        until(lambda: VENDORED in said(layer))


def test_what_is_told_while_a_store_is_compared_is_not_taken_for_gone_or_older(tmp_path):
    class Slow(InMemoryBackend):
        meanwhile = None

        async def records(self, owner, /, *, after=None, limit=500):
            page = await super().records(owner, after=after, limit=limit)
            if self.meanwhile is not None:
                act, self.meanwhile = self.meanwhile, None
                await act()
            return page

    async def story() -> None:
        store = Slow(can=ABILITIES - {Can.WATCH})
        async with await AsyncCollabLayer.open(str(tmp_path / "c.db"), settings=Settings(worker=False)) as layer:
            old, gone = store.add("agent:a", PINNED), store.add("agent:a", "Delete me: go modules conflict")
            await layer.index(store)
            await layer.grant("agent:a", "agent:b", "records")
            await layer.drain()

            async def meanwhile() -> None:
                edited, fresh = store.edit(old, VENDORED), store.add("agent:a", "Go modules conflict: third way")
                store.delete(gone)
                for change in (
                    *[Change(one.ref, one) for one in await store.read([edited, fresh])],
                    Change(gone, None),
                ):
                    await layer.observe_changes("memory", [change])

            store.meanwhile = meanwhile
            await layer.reconcile(store)
            await layer.drain()
            facets = (await layer.context("agent:b", ASKED)).facets
            assert {facet.text for facet in facets} == {VENDORED, "Go modules conflict: third way"}
            changes = await layer.changes("agent:b", since=facets[0].evidence[0].at.replace(year=2000))
            assert [change.kind for change in changes].count("removed-unknown") == 1

    asyncio.run(story())


def test_a_feed_that_could_not_begin_misses_nothing(sqlite_url, clock):
    store = InMemoryBackend(clock=clock)
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False), clock=clock) as layer:
        layer.index(store, owners=["agent:a"])
        layer.observe("agent:a", "item:1")
    filled = InMemoryBackend("later", clock=clock)
    ref = filled.add("agent:a", PINNED)
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False), clock=clock) as layer:
        filled.down = True
        layer.attach(filled)
        filled.down = False
        layer.observe("agent:a", verb="remembered", key="k")
        layer.observe_changes("later", [Change(ref, asyncio.run(filled.read([ref]))[0])])
        filled.add("agent:a", VENDORED)
        assert layer.reconcile(filled) == 1
