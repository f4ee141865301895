"""Our layer behind the two calls of a contestant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

import pytest

from collab_layer.bench.layer_store import LayerStore
from collab_layer.bench.mem0_store import alone, shared, together
from collab_layer.bench.metered import Costs, entered
from collab_layer.bench.store_names import alone_of, named_stores
from collab_layer.bench.stores import ENDED, EVERYONE, PRIVATE, Item, Store
from collab_layer.builtin.embedder import HashingEmbedder
from collab_layer.errors import InputError

NOON = datetime(2025, 5, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=1)
FIX = "The VPN drops on macOS after sleep" + ENDED + "reset the network profile"


def story(told: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """A test that awaits."""

    def test() -> None:
        asyncio.run(told())

    return test


def sources(items: list) -> list[str]:
    return [one for item in items for one in item.sources]


@story
async def test_what_another_added_for_everyone_is_found_and_named() -> None:
    async with LayerStore() as store:
        assert isinstance(store, Store)
        id_ = await store.add("agent:a", FIX, ["decision:reset"], NOON, EVERYONE)
        items = await store.context("agent:b", "VPN drops on my macOS laptop", LATER, 400)
        assert sources(items) == [id_]
        assert "reset the network profile" in items[0].text
        assert sum(item.tokens for item in items) <= 400


@story
async def test_without_sharing_only_the_own_records_are_found() -> None:
    async with LayerStore("own") as store:
        theirs = await store.add("agent:a", FIX, [], NOON, EVERYONE)
        mine = await store.add("agent:b", "The VPN drops on macOS in trains" + ENDED + "wait", [], NOON, EVERYONE)
        found = sources(await store.context("agent:b", "VPN drops on macOS", LATER, 400))
        assert found == [mine]
        assert theirs not in found


@story
async def test_a_private_record_reaches_its_owner_and_nobody_else() -> None:
    async with LayerStore() as store:
        id_ = await store.add("agent:a", FIX, [], NOON, PRIVATE)
        assert sources(await store.context("agent:b", "VPN drops on macOS", LATER, 400)) == []
        assert sources(await store.context("agent:a", "VPN drops on macOS", LATER, 400)) == [id_]


@story
async def test_records_of_one_moment_are_told_apart() -> None:
    async with LayerStore() as store:
        texts = ("VPN drops on macOS", "VPN drops on Windows", "VPN drops on Linux")
        ids = [await store.add("agent:a", text, [], NOON, EVERYONE) for text in texts]
        found = sources(await store.context("agent:b", "VPN drops", LATER, 800))
        assert sorted(found) == sorted(ids)


@story
async def test_nothing_later_than_the_question_is_told() -> None:
    async with LayerStore() as store:
        early = await store.add("agent:a", "VPN drops on macOS", [], NOON, EVERYONE)
        await store.add("agent:a", "VPN drops on Windows", [], LATER + timedelta(days=1), EVERYONE)
        assert sources(await store.context("agent:b", "VPN drops", LATER, 400)) == [early]


@story
async def test_a_thread_is_told_once() -> None:
    async with LayerStore() as store:
        thread = ["thread:1"]
        await store.add("agent:a", "How do I tag a question about maps?", thread, NOON, EVERYONE)
        await store.add("agent:b", "Tag a question about maps with cartography", thread, NOON, EVERYONE)
        items = await store.context("agent:c", "tag a question about maps", LATER, 800)
        assert len([item for item in items if item.sources]) == 1


def test_a_store_is_named_and_found() -> None:
    found = named_stores(["mine=collab_layer.bench.layer_store:LayerStore"])
    assert isinstance(found["mine"](), LayerStore)


@pytest.mark.parametrize(
    "given",
    ["LayerStore", "x=nowhere:Store", "x=collab_layer.bench.stores:nothing", "x=collab_layer.bench.stores:ENDED",
     "ours=collab_layer.bench.layer_store:LayerStore", "a b=collab_layer.bench.layer_store:LayerStore", "x=:y", ""],
)  # fmt: skip
def test_a_store_that_cannot_be_made_is_refused(given: str) -> None:
    with pytest.raises(InputError):
        named_stores([given])


@pytest.mark.timeout(600)  # Mem0 and Chroma are slow to import
@story
async def test_mem0_by_itself_is_a_contestant() -> None:
    store = alone()
    assert isinstance(store, Store)
    try:
        mine = await store.add("agent:b", FIX, [], NOON, EVERYONE)
        await store.add("agent:a", FIX, [], NOON, EVERYONE)
        assert sources(await store.context("agent:b", "VPN drops on macOS", LATER, 400)) == [mine]
        assert await store.context("agent:b", "VPN drops on macOS", LATER, 5) == []
        assert await store.context("agent:b", "VPN drops on macOS", NOON - timedelta(days=1), 400) == []
    finally:
        await store.aclose()


@pytest.mark.timeout(600)
@story
async def test_a_shared_mem0_keeps_what_is_private() -> None:
    store = shared()
    try:
        theirs = await store.add("agent:a", FIX, [], NOON, EVERYONE)
        secret = await store.add("agent:a", FIX + " by hand", [], NOON, PRIVATE)
        assert sources(await store.context("agent:b", "VPN drops on macOS", LATER, 400)) == [theirs]
        assert set(sources(await store.context("agent:a", "VPN drops on macOS", LATER, 400))) == {theirs, secret}
    finally:
        await store.aclose()


@pytest.mark.timeout(600)
@story
async def test_mem0_with_neighbours_tells_own_memories_and_theirs_and_nothing_private() -> None:
    store = together()
    try:
        mine = await store.add("agent:b", "The VPN is slow on Mondays", [], NOON, EVERYONE)
        theirs = await store.add("agent:a", FIX, ["decision:reset"], NOON, EVERYONE)
        secret = await store.add("agent:a", FIX + " by hand", [], NOON, PRIVATE)
        await store.settle()
        items = await store.context("agent:b", "VPN drops on macOS", LATER, 400)
        assert sources(items) == [theirs, mine]
        assert "reset the network profile" in items[0].text
        assert secret in sources(await store.context("agent:a", "VPN drops on macOS by hand", LATER, 400))
        assert await store.context("agent:b", "VPN drops on macOS", NOON - timedelta(days=1), 400) == []
    finally:
        await store.aclose()


@story
async def test_what_a_contestant_costs_is_counted_and_writing_is_not_charged_to_a_question() -> None:
    costs, store = Costs(), Slow()
    async with entered(lambda: store, costs) as metered:
        for at in range(3):
            await metered.add("agent:a", f"{FIX} {at}", [], NOON, EVERYONE)
        for _ in range(2):
            await metered.context("agent:b", "VPN", LATER, 400)
    rows = {row.name.rpartition(".")[2]: row.value for row in costs.rows("tickets.slow")}
    assert store.settled == 1
    assert rows["write_mean_ms"] > rows["read_p95_ms"] >= rows["read_p50_ms"] > 0
    assert (rows["read_tokens"], rows["model_calls"]) == (7, 2)
    assert Costs().rows("tickets.never") == []


class Slow:
    """Writes in bulk and slowly, and asks a model for each answer."""

    def __init__(self) -> None:
        self.settled = self.model_calls = 0

    async def add(self, entity: str, text: str, links: object, t: datetime, scope: str) -> str:
        return text

    async def settle(self) -> None:
        self.settled += 1
        await asyncio.sleep(0.2)

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        self.model_calls += 1
        return [Item("seven", (), 7)]


def test_a_contestant_is_compared_with_memory_alone_in_the_same_store() -> None:
    arms = ("own", "pool", "ours", "mem0", "mem0-ours", "other-store")
    assert [alone_of(arm, arms) for arm in arms] == ["own", "own", "own", "own", "mem0", "own"]


def test_known_contestants_need_only_their_name_and_are_given_the_embedder_of_the_run() -> None:
    embedder = HashingEmbedder(64)
    found = named_stores(["mem0", "mine=collab_layer.bench.layer_store:LayerStore"], embedder)
    assert found["mem0"].keywords == found["mine"].keywords == {"embedder": embedder}
