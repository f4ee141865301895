"""The blocking layer is the async one, word for word; neither gets in its caller's way."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress

import pytest

from collab_layer import AsyncCollabLayer, CollabLayer, Interaction
from collab_layer.config import Settings
from collab_layer.errors import LayerClosedError, LoopThreadError
from collab_layer.graph.store import GraphStore
from collab_layer.sync import LoopThread
from collab_layer.testing import InMemoryBackend

ALONE = Settings(worker=False)
BEATS: list[int] = []
"""One more for every turn that `beats` got from the loop."""


async def beats() -> None:
    """Count how often the loop comes round."""
    while True:
        await asyncio.sleep(0.005)
        BEATS.append(1)


def public(cls: type) -> dict[str, object]:
    own = [base for base in reversed(cls.__mro__) if base is not object]
    return {name: member for base in own for name, member in vars(base).items() if not name.startswith("_")}


def renamed(name: str) -> str:
    return "close" if name == "aclose" else name


def function(member: object) -> object:
    return member.fget if isinstance(member, property) else getattr(member, "__func__", member)


def test_both_layers_have_the_same_verbs():
    assert {renamed(name) for name in public(AsyncCollabLayer)} == set(public(CollabLayer))


@pytest.mark.parametrize("name", sorted(public(AsyncCollabLayer)))
def test_a_verb_has_one_signature_and_one_docstring(name):
    theirs, ours = public(AsyncCollabLayer)[name], public(CollabLayer)[renamed(name)]
    assert type(theirs) is type(ours)
    assert inspect.signature(function(ours)) == inspect.signature(function(theirs))
    assert inspect.getdoc(ours) == inspect.getdoc(theirs)
    assert inspect.getdoc(ours), "it says nothing"
    assert not inspect.iscoroutinefunction(function(ours))


def test_both_give_the_same_answers(tmp_path):
    def fill(url: str) -> None:
        with CollabLayer.open(url, settings=ALONE) as layer:
            for owner in ("user:bob", "user:eve", "user:zoe"):
                layer.observe(owner, "item:dune", verb="liked", text=f"Dune has worms, says {owner}")
                layer.observe(owner, "item:emma", verb="liked")
                layer.grant(owner, "tenant", level="records")
            layer.observe("user:ann", "item:dune", verb="liked")
            layer.drain()

    async def asked(url: str) -> list[object]:
        async with await AsyncCollabLayer.open(url, settings=ALONE) as layer:
            neighbors = await layer.neighbors("user:ann")
            ranking = await layer.rank("user:ann", ["item:emma", "item:other"])
            return [neighbors, ranking, (await layer.health()).condition]

    fill(url := str(tmp_path / "one.db"))
    with CollabLayer.open(url, settings=ALONE) as layer:
        blocking = [layer.neighbors("user:ann"), layer.rank("user:ann", ["item:emma", "item:other"])]
        blocking.append(layer.health().condition)
    assert [neighbor.entity.id for neighbor in blocking[0]] != []
    assert asyncio.run(asked(url)) == blocking


def test_the_blocking_layer_works_inside_a_running_loop(sqlite_url):
    async def story() -> list[str]:
        with CollabLayer.open(sqlite_url, settings=ALONE) as layer:
            return layer.observe("user:ann", "item:dune")

    assert len(asyncio.run(story())) == 1


def test_many_threads_share_one_layer(sqlite_url):
    with CollabLayer.open(sqlite_url) as layer, ThreadPoolExecutor(8) as pool:

        def observe(thread: int) -> list[str]:
            return [layer.observe(f"user:u{thread}", f"item:i{n}", key=f"{n}")[0] for n in range(25)]

        ids = [id_ for ids in pool.map(observe, range(8)) for id_ in ids]
        layer.drain()
        assert len(set(ids)) == 200
        assert layer.health().counts["interactions"] == 200


def test_many_tasks_share_one_layer(database_url):
    async def story() -> tuple[int, int]:
        async with await AsyncCollabLayer.open(database_url) as layer:
            calls = [layer.observe(f"user:u{n % 5}", f"item:i{n % 7}", text=f"Note {n}", key=f"{n}") for n in range(60)]
            ids = [id_ for (id_,) in await asyncio.gather(*calls)]
            await layer.drain()
            return len(set(ids)), (await layer.health()).counts["interactions"]

    assert asyncio.run(story()) == (60, 60)


def test_leaving_the_context_closes_every_view(sqlite_url):
    with CollabLayer.open(sqlite_url, settings=ALONE) as layer:
        views = [layer, layer.for_tenant("other"), layer.as_("user:ann")]
    for view in views:
        with pytest.raises(LayerClosedError):
            view.observe("user:ann", "item:dune")
        view.close()


def test_leaving_the_async_context_closes_every_view(sqlite_url):
    async def story() -> None:
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            view = layer.as_("user:ann")
        for one in (layer, view):
            with pytest.raises(LayerClosedError):
                await one.observe("user:ann", "item:dune")
            await one.aclose()

    asyncio.run(story())


def test_a_call_from_the_layers_own_thread_is_refused_rather_than_left_to_hang(sqlite_url):
    store = InMemoryBackend()
    store.add("user:ann", "Dune has worms")
    with CollabLayer.open(sqlite_url, settings=ALONE) as layer:
        with pytest.raises(LoopThreadError, match="AsyncCollabLayer"):
            layer.index(store, progress=lambda done, total: layer.health())
        assert layer.index(store) == 1


def for_ever(call: Callable[[CollabLayer, int], object]) -> Callable[[CollabLayer], object]:
    def repeat(layer: CollabLayer) -> None:
        for number in itertools.count():
            call(layer, number)

    return repeat


@pytest.mark.parametrize(
    "call",
    [
        CollabLayer.work,
        for_ever(lambda layer, number: layer.observe("user:ann", f"item:i{number % 9}")),
        for_ever(lambda layer, number: layer.drain()),
        for_ever(lambda layer, number: layer.health()),
    ],
    ids=["work", "observe", "drain", "health"],
)
def test_closing_ends_the_calls_of_other_threads(sqlite_url, call):
    layer = CollabLayer.open(sqlite_url, settings=ALONE)
    ended: list[Exception | None] = []

    def run() -> None:
        try:
            call(layer)
        except LayerClosedError as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, daemon=True)  # a daemon: if it hangs, the tests still end
    thread.start()
    for _ in range(20):
        layer.health()
    layer.close()
    thread.join(10)
    assert len(ended) == 1, "the call hangs" if thread.is_alive() else "the call raised something else"


def test_who_calls_while_a_layer_is_closed_is_told_so_at_last():
    """Between the last look for calls that wait and the end of the loop nobody may slip in."""
    loops = [LoopThread() for _ in range(30)]

    def call(loop: LoopThread) -> None:
        with suppress(LayerClosedError):
            while True:
                loop.run(asyncio.sleep(0))

    for loop in loops:
        callers = [threading.Thread(target=call, args=(loop,), daemon=True) for _ in range(4)]
        for caller in callers:
            caller.start()
        loop.stop()
        for caller in callers:
            caller.join(10)
        assert not any(caller.is_alive() for caller in callers), "a call hangs"


class SlowToClose(InMemoryBackend):
    """Closes when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = threading.Event(), threading.Event()

    async def aclose(self) -> None:
        self.asked.set()
        await asyncio.to_thread(self.may.wait, 10)


def test_whoever_closes_too_waits_for_the_same_end(sqlite_url, tmp_path):
    store = SlowToClose()
    layer = CollabLayer.open(sqlite_url, settings=ALONE, backends=[store])
    layer.observe("user:ann", "item:dune")
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(layer.close)
        assert store.asked.wait(10)
        others = [pool.submit(layer.close) for _ in range(2)]
        assert not wait([first, *others], timeout=0.1).done
        store.may.set()
        assert not wait([first, *others], timeout=10).not_done, "closing hangs"
    assert [path.name for path in tmp_path.iterdir()] == ["collab.db"], "the database is still open"


def test_who_gives_up_closing_leaves_nothing_half_open(sqlite_url, tmp_path):
    store = SlowToClose()

    async def story() -> None:
        layer = await AsyncCollabLayer.open(sqlite_url, settings=ALONE, backends=[store])
        await layer.observe("user:ann", "item:dune")
        closing = asyncio.ensure_future(layer.aclose())
        await asyncio.to_thread(store.asked.wait, 10)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        store.may.set()
        await layer.aclose()

    asyncio.run(story())
    assert [path.name for path in tmp_path.iterdir()] == ["collab.db"], "the database is still open"


class FailsToClose(InMemoryBackend):
    async def aclose(self) -> None:
        raise ConnectionError("its server is gone")


def test_a_store_that_cannot_be_closed_keeps_nothing_else_open(sqlite_url, tmp_path):
    others = set(threading.enumerate())
    layer = CollabLayer.open(sqlite_url, settings=ALONE, backends=[FailsToClose()])
    layer.observe("user:ann", "item:dune")
    running = set(threading.enumerate()) - others
    with pytest.raises(ConnectionError):
        layer.close()
    assert running
    assert not running & set(threading.enumerate())
    assert [path.name for path in tmp_path.iterdir()] == ["collab.db"], "the database is still open"


class Unreachable(InMemoryBackend):
    @property
    def can(self):
        raise ConnectionError("its server is gone")


def test_an_opening_that_fails_keeps_nothing_open(sqlite_url, tmp_path):
    store = SlowToClose()
    with pytest.raises(ConnectionError) as raised:  # which keeps all that it happened to
        CollabLayer.open(sqlite_url, settings=ALONE, backends=[store, Unreachable()])
    assert raised.value.__traceback__ is not None
    assert [path.name for path in tmp_path.iterdir()] == ["collab.db"], "the database is still open"
    assert not store.asked.is_set(), "a store of the caller's was closed"


def test_an_opening_that_is_cancelled_keeps_nothing_open(tmp_path, monkeypatch):
    file = tmp_path / "collab.db"
    opened, open_ = [], GraphStore.open
    monkeypatch.setattr(GraphStore, "open", lambda *args, **parts: opened.append(open_(*args, **parts)) or opened[-1])

    async def story() -> asyncio.Task[AsyncCollabLayer]:
        with closing(sqlite3.connect(file, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")  # so that its tables cannot be made yet
            opening = asyncio.create_task(AsyncCollabLayer.open(str(file), settings=ALONE))
            await asyncio.sleep(0.5)
            opening.cancel()
            holder.execute("ROLLBACK")
        await asyncio.wait({opening}, timeout=20)
        return opening

    task = asyncio.run(story())
    assert task.cancelled()
    assert opened, "it was cancelled before"
    assert [path.name for path in tmp_path.iterdir()] == ["collab.db"], "the database is still open"


def test_a_view_for_a_new_tenant_does_not_block_the_callers_loop(tmp_path):
    async def story() -> int:
        async with await AsyncCollabLayer.open(str(tmp_path / "collab.db"), settings=ALONE) as layer:
            holder = sqlite3.connect(tmp_path / "collab.db", isolation_level=None, check_same_thread=False)
            holder.execute("BEGIN IMMEDIATE")
            letting_go = threading.Timer(1.0, holder.execute, ["ROLLBACK"])
            letting_go.start()
            beating = asyncio.ensure_future(beats())
            await asyncio.sleep(0)
            await layer.for_tenant("new").observe("user:ann", "item:dune")
            letting_go.join()
            holder.close()
            beating.cancel()
            return len(BEATS)

    BEATS.clear()
    assert asyncio.run(story()) >= 5, "the loop stood still while another process was writing"


def test_a_long_call_does_not_block_the_callers_loop(sqlite_url):
    batch = [Interaction(actor=f"user:u{n % 500}", target=f"item:i{n % 900}", key=str(n)) for n in range(20_000)]

    async def story() -> int:
        async with await AsyncCollabLayer.open(sqlite_url, settings=ALONE) as layer:
            beating = asyncio.ensure_future(beats())
            await asyncio.sleep(0)
            await layer.observe(batch)
            beating.cancel()
            return len(BEATS)

    BEATS.clear()
    assert asyncio.run(story()) >= 5, "the loop stood still while the batch was written"
