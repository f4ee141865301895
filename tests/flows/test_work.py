"""Closing, outages and two wordings: what the worker leaves behind."""

import asyncio

import pytest

from collab_layer.config import Settings
from collab_layer.flows import work
from collab_layer.layer import AsyncCollabLayer
from collab_layer.sync import CollabLayer
from collab_layer.testing.memory import InMemoryBackend

from .cut_off import cut_off_as_it_writes

ALONE = Settings(worker=False)


class _SlowEmbedder:
    id, dim = "slow", 4

    def __init__(self):
        self.started = asyncio.Event()

    async def embed(self, texts):
        self.started.set()
        await asyncio.sleep(60)


def test_a_layer_closed_in_the_middle_of_a_step_leaves_the_work_to_the_next_at_once(sqlite_url):
    async def first():
        embedder = _SlowEmbedder()
        async with await AsyncCollabLayer.open(sqlite_url, embedder=embedder) as layer:
            await layer.observe("user:a", text="something to embed")
            await asyncio.wait_for(embedder.started.wait(), 10)

    asyncio.run(first())
    with CollabLayer.open(sqlite_url, settings=Settings(worker=False)) as layer:
        assert layer.drain() == 1


def test_a_drain_broken_off_by_closing_leaves_the_work_to_the_next_at_once(database_url):
    async def first():
        embedder = _SlowEmbedder()
        async with await AsyncCollabLayer.open(database_url, embedder=embedder, settings=ALONE) as layer:
            await layer.observe("user:a", text="something to embed")
            draining = asyncio.create_task(layer.drain())
            await asyncio.wait_for(embedder.started.wait(), 10)
        draining.cancel()

    async def second():
        async with await AsyncCollabLayer.open(database_url, settings=ALONE) as layer:
            return await asyncio.wait_for(layer.drain(), 20)

    asyncio.run(first())
    assert asyncio.run(second()) == 1


def test_a_worker_stopped_while_it_takes_work_on_leaves_it_to_the_next_at_once(tmp_path):
    """The thread that takes it cannot be stopped, and does so after its worker has gone."""

    async def story():
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db"), settings=ALONE) as layer:
            await layer.observe("user:a", text="something to embed")
            tools = layer._core.tools
            await cut_off_as_it_writes(tools, tmp_path / "collab.db", work.step(tools, "default"))
            return await asyncio.wait_for(layer.drain(), 20)

    assert asyncio.run(story()) == 1


def test_a_worker_that_is_cancelled_does_not_work_on_unseen(sqlite_url):
    async def story():
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            working = asyncio.create_task(layer.work(asyncio.Event()))
            await asyncio.sleep(0)
            working.cancel()
            await asyncio.wait({working}, timeout=10)
            return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(story()) == set()


def test_a_worker_that_breaks_down_says_so(sqlite_url):
    async def story():
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            layer._core.tools.delivering = None  # whatever breaks it
            await layer.work(asyncio.Event())

    with pytest.raises(TypeError):
        asyncio.run(story())


def test_a_new_wording_takes_what_was_derived_from_the_old_along(layer):
    store = InMemoryBackend()
    ref = store.add("agent:a", "Fixed the Go modules conflict by pinning version one")
    layer.index(store)
    layer.grant("agent:a", "agent:b", "records")
    layer.drain()
    old = layer.context("agent:b", "go modules conflict").facets[0]
    store.edit(ref, "Fixed the Go modules conflict by deleting the vendor folder")
    layer.reconcile(store)
    layer.drain()
    new = layer.context("agent:b", "go modules conflict").facets
    assert [facet.id for facet in new] != [old.id]
    assert "vendor" in new[0].text
    assert all("version one" not in facet.text for facet in new)


def test_a_forgotten_lesson_is_not_made_again(layer):
    layer.observe("agent:a", text="Fixed the Go modules conflict by pinning version one")
    layer.grant("agent:a", "agent:b", "records")
    layer.drain()
    lesson = layer.context("agent:b", "go modules conflict").facets[0]
    layer.forget(lesson.id)
    assert layer.context("agent:b", "go modules conflict").facets == ()


def test_derived_items_are_delivered_once_and_retracted_with_their_source(layer):
    store = InMemoryBackend()
    layer.attach(store, deliver=True)
    for who in ("user:a", "user:b"):
        for n in range(6):
            layer.observe(who, f"item:{n}", verb="liked")
    layer.grant("user:a", "user:b", "records")
    layer.drain()
    [id_] = layer.observe("user:a", "item:dune", verb="loved", text="Dune is the best desert book I have read")
    layer.drain()
    layer.drain()
    written = [text for text in store.texts() if "Dune" in text]
    assert len(written) == 1
    layer.forget(id_)
    layer.drain()
    assert not [text for text in store.texts() if "Dune" in text]
    assert layer.health().condition == "ok"


async def _stopped_as_work_comes_in(url, turns):
    async with await AsyncCollabLayer.open(url, settings=Settings(worker=False)) as layer:
        wake = asyncio.Event()
        task = asyncio.create_task(work.run(layer._core.tools, None, wake))
        await asyncio.sleep(0.2)  # it has found nothing to do, and waits
        wake.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        return task.done()


@pytest.mark.parametrize("turns", range(6))
def test_a_worker_that_is_stopped_as_work_comes_in_does_stop(sqlite_url, turns):
    assert asyncio.run(_stopped_as_work_comes_in(sqlite_url, turns))
