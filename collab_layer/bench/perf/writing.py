"""Telling and propagating: interactions per second.

In:   an empty database.
Out:  rows `perf.observe.<way>.<figure>` and `perf.propagate.<figure>`.

Per second of CPU first: what one core would do if it did nothing else. SQLite writes as it is set up;
`power_loss` waits for the disk at every commit.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Row
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.sync import CollabLayer
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

SINGLE_BAR, TOGETHER_BAR, PROPAGATED_BAR = 1_000.0, 10_000.0, 300.0
BATCH, THREADS, TASKS = 5_000, 8, 200
_QUIET = Settings(worker=False)


@dataclass(frozen=True, slots=True)
class Pace:
    """How many, in how many seconds."""

    count: int
    cpu: float
    wall: float

    def rows(self, name: str, bar: float | None = None) -> Iterator[Row]:
        """Per second of CPU and of wall."""
        row = Row(f"{name}.per_cpu_s", self.count / self.cpu, unit="1/s")
        yield row if bar is None else row.against(">=", bar)
        yield Row(f"{name}.per_s", self.count / self.wall, unit="1/s")


class _Clock:
    """Begins once what came before is collected: to look through all objects costs as much as hundreds of interactions.

    What is measured lasts some tenths of a second, and pays for what it leaves itself.
    """

    def __init__(self) -> None:
        gc.collect()
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def pace(self, count: int) -> Pace:
        return Pace(count, time.process_time() - self._cpu, time.perf_counter() - self._wall)


async def measure(url: str, count: int, seed: int, tell: Progress) -> list[Row]:
    """All rows; about `5 * count` interactions are told.

    Args:
        url: An empty database.
        count: Interactions told one at a time.
        seed: Of the notes that are propagated.
        tell: Progress.
    """
    rows: list[Row] = []
    ways: tuple[tuple[str, Callable[[AsyncCollabLayer, int], Awaitable[Pace]], float], ...] = (
        ("single", _single, SINGLE_BAR),
        ("batched", _batched, TOGETHER_BAR),
        ("concurrent", _concurrent, TOGETHER_BAR),
    )
    async with await AsyncCollabLayer.open(url, tenant="perf", settings=_QUIET) as layer:
        await _single(layer, min(count, 200), "warm")
        for at, (name, way, bar) in enumerate(ways):
            rows += (await way(layer, count)).rows(f"perf.observe.{name}", bar)
            tell("observe", at + 1, 5)
    rows += (await asyncio.to_thread(_threads, url, count)).rows("perf.observe.threads")
    tell("observe", 4, 5)
    durable = _QUIET.model_copy(update={"durable": True})
    async with await AsyncCollabLayer.open(url, tenant="perf", settings=durable) as layer:
        rows += (await _single(layer, max(count // 10, 20), "safe")).rows("perf.observe.power_loss")
        tell("observe", 5, 5)
    return rows + await _propagated(url, max(count // 4, 10), seed)


async def _single(layer: AsyncCollabLayer, count: int, key: str = "s") -> Pace:
    clock = _Clock()
    for at in range(count):
        await layer.observe(f"user:u{at % 500}", f"item:i{at % 1_000}", "liked", key=f"{key}{at}")
    return clock.pace(count)


async def _batched(layer: AsyncCollabLayer, count: int) -> Pace:
    told = [_told("b", at) for at in range(4 * count)]
    clock = _Clock()
    for start in range(0, len(told), BATCH):
        await layer.observe(told[start : start + BATCH])
    return clock.pace(len(told))


async def _concurrent(layer: AsyncCollabLayer, count: int) -> Pace:
    async def one(task: int) -> None:
        for at in range(task, 4 * count, TASKS):
            await layer.observe(_told("c", at))

    clock = _Clock()
    await asyncio.gather(*(one(task) for task in range(TASKS)))
    return clock.pace(4 * count)


def _told(key: str, at: int) -> Interaction:
    owner, thing = Entity("user", f"u{at % 500}"), Entity("item", f"i{at % 1_000}")
    return Interaction(actor=owner, target=thing, verb="liked", key=f"{key}{at}")


def _threads(url: str, count: int) -> Pace:
    """Eight threads of a program that blocks."""
    with CollabLayer.open(url, tenant="perf", settings=_QUIET) as layer:

        def one(thread: int) -> None:
            for at in range(thread, count, THREADS):
                layer.observe(f"user:u{at % 500}", f"item:i{at % 1_000}", "liked", key=f"t{at}")

        threads = [threading.Thread(target=one, args=(at,)) for at in range(THREADS)]
        clock = _Clock()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return clock.pace(count)


async def _propagated(url: str, count: int, seed: int) -> list[Row]:
    """Notes of a tenant whose owners read one another, worked off without a model, over as many from before."""
    writer = Writer(seed)
    async with await AsyncCollabLayer.open(
        url, tenant="spread", settings=_QUIET, sharing=Sharing.within_tenant("records")
    ) as layer:
        await layer.observe([_note(writer, at) for at in range(count)])
        await layer.drain()
        await layer.observe([_note(writer, at) for at in range(count)])
        clock = _Clock()
        return list(clock.pace(await layer.drain()).rows("perf.propagate", PROPAGATED_BAR))


def _note(writer: Writer, at: int) -> Interaction:
    owner, thing = Entity("user", f"u{at % 100}"), Entity("item", f"i{at % 50}")
    return Interaction(actor=owner, target=thing, verb="noted", text=writer.note())


__all__ = ["measure"]
