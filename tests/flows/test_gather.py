"""Callers at the same time share commits, and nothing else."""

import asyncio

import pytest
from sqlalchemy import event

from collab_layer import AsyncCollabLayer, Interaction
from collab_layer.config import Settings
from collab_layer.errors import LayerClosedError, StoreFullError, UnknownIdError
from collab_layer.flows.gather import WAITING, Gathering, Told


def commits_of(layer):
    counted = []
    event.listen(layer._core.tools.store.database.engine, "commit", lambda connection: counted.append(1))
    return counted


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_callers_at_the_same_time_share_commits_and_each_gets_its_own_ids(request, engine):
    url = request.getfixturevalue(f"{engine}_url")

    async def story():
        layer = await AsyncCollabLayer.open(url, tenant="acme", settings=Settings(worker=False))
        counted = commits_of(layer)
        told = [layer.observe(f"user:u{n % 7}", f"item:i{n}", "liked", key=f"k{n}") for n in range(60)]
        ids = [one for (one,) in await asyncio.gather(*told)]
        again = [await layer.observe(f"user:u{n % 7}", f"item:i{n}", "liked", key=f"k{n}") for n in range(60)]
        await layer.aclose()
        return counted, ids, [one for (one,) in again]

    counted, ids, again = asyncio.run(story())
    assert len(set(ids)) == 60
    assert ids == again
    assert len(counted) < 60 + 30  # sixty repeats one by one, and the first sixty in few commits


def test_a_refused_batch_is_refused_alone(sqlite_url):
    async def story():
        layer = await AsyncCollabLayer.open(sqlite_url, tenant="acme", settings=Settings(worker=False))
        first = layer.observe("user:anna", "item:a")  # runs alone; the others wait and go together
        bad = layer.observe("user:bob", text="no, it was blue", replaces="i1234")
        good = [layer.observe("user:carl", f"item:c{n}") for n in range(5)]
        told = await asyncio.gather(first, good[0], bad, *good[1:], return_exceptions=True)
        stored = await layer.health()
        await layer.aclose()
        return told, stored

    told, health = asyncio.run(story())
    assert [type(one) for one in told].count(UnknownIdError) == 1
    assert isinstance(told[2], UnknownIdError)
    assert health.counts["interactions"] == 6


def test_the_same_key_told_twice_at_once_is_stored_once(sqlite_url):
    async def story():
        layer = await AsyncCollabLayer.open(sqlite_url, tenant="acme", settings=Settings(worker=False))
        ids = await asyncio.gather(*(layer.observe("user:anna", "item:a", key="same") for _ in range(20)))
        health = await layer.health()
        await layer.aclose()
        return ids, health

    ids, health = asyncio.run(story())
    assert len({one for (one,) in ids}) == 1
    assert health.counts["interactions"] == 1


def _batch(size):
    return [Interaction(actor="user:anna", target="item:a")] * size


def test_who_comes_when_memory_is_full_waits_until_there_is_room():
    async def story():
        gathering, open_ = Gathering(), asyncio.Event()

        async def write(group: list[Told]) -> None:
            await open_.wait()
            for told in group:
                told.ids = ["i1"] * len(told.batch)

        running = asyncio.create_task(gathering.add("acme", _batch(1), write))
        await asyncio.sleep(0)
        full = asyncio.create_task(gathering.add("acme", _batch(WAITING), write))
        late = asyncio.create_task(gathering.add("acme", _batch(1), write))
        await asyncio.sleep(0.01)
        queued = len(gathering._queue)
        open_.set()
        return queued, [len(ids) for ids in await asyncio.gather(running, full, late)]

    queued, sizes = asyncio.run(story())
    assert queued == 1  # the late one is not in memory yet
    assert sizes == [1, WAITING, 1]


def test_tenants_do_not_share_a_commit_and_each_keeps_its_order():
    async def story():
        gathering, groups = Gathering(), []

        async def write(group: list[Told]) -> None:
            groups.append([(told.tenant, len(told.batch)) for told in group])
            await asyncio.sleep(0)
            for told in group:
                told.ids = ["i1"] * len(told.batch)

        adds = [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)]
        await asyncio.gather(*(gathering.add(tenant, _batch(size), write) for tenant, size in adds))
        return groups

    groups = asyncio.run(story())
    assert all(len({tenant for tenant, _ in group}) == 1 for group in groups)
    told = [one for group in groups for one in group]
    assert [size for tenant, size in told if tenant == "a"] == [1, 2, 4]
    assert [size for tenant, size in told if tenant == "b"] == [3, 5]


@pytest.mark.parametrize("error", [StoreFullError("collab.db", "the disk is full"), LayerClosedError()])
def test_when_the_store_refuses_everybody_is_told(error):
    async def story():
        gathering = Gathering()

        async def write(group: list[Told]) -> None:
            await asyncio.sleep(0)
            if isinstance(error, LayerClosedError):
                raise error
            for told in group:
                told.error = error

        adds = (gathering.add("acme", _batch(1), write) for _ in range(4))
        return await asyncio.gather(*adds, return_exceptions=True)

    assert [type(one) for one in asyncio.run(story())] == [type(error)] * 4
