"""Several worker processes on one database against one: how much sooner the same work is done.

In:   an empty database, how many workers.
Out:  rows `perf.fleet.<waits|computes>.<n>_workers.<figure>`, and their ratio.

Where a job waits, it waits for a stand-in of a model, 200 ms, while nothing is computed. Starting the processes is not
counted; from then on the wall is, since that is what a second worker is for.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.report import Row
from collab_layer.config import Settings
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Answered, Reply
from collab_layer.types.asking import Prompt, Usage
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

WAIT_S = 0.2
JOBS = 80
"""Owners with one note each."""
WAITS_BAR, COMPUTES_BAR, AT = 3.0, 1.5, 4
"""Of so many workers on PostgreSQL against one; SQLite has one writer, and no bar."""
PATIENCE_S = 900.0
Tell = Callable[[str, int, int], None]
_QUIET = Settings(worker=False)


class SlowModel:
    """Waits, and has nothing to add."""

    name = "slow"

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """An empty reply, after a while."""
        await asyncio.sleep(WAIT_S)
        value = reply.model_validate({"updates": []})
        return Answered(value, Usage(model=self.name, input_tokens=prompt.tokens, output_tokens=1))


@dataclass(frozen=True, slots=True)
class _Case:
    url: str
    tenant: str
    waits: bool
    workers: int


def measure(url: str, workers: int, seed: int, tell: Tell, *, jobs: int = JOBS) -> Iterator[Row]:
    """Rows for one worker and for `workers`, and the ratio; bars hold for 4 workers on PostgreSQL.

    Args:
        url: A database; tenants of its own are made there.
        workers: Processes, >= 2.
        seed: Of the notes.
        tell: Progress.
        jobs: How much there is to do each time.
    """
    done = 0
    for kind, waits, bar in (("waits", True, WAITS_BAR), ("computes", False, COMPUTES_BAR)):
        pace: list[float] = []
        for count in (1, workers):
            case = _Case(url, f"fleet-{kind}-{count}", waits, count)
            asyncio.run(_fill(case, seed, jobs))
            pace.append(jobs / _run(case))
            name = f"perf.fleet.{kind}.{count}_worker{'s' if count > 1 else ''}"
            yield Row(f"{name}.jobs_per_s", pace[-1], unit="1/s")
            done += 1
            tell("fleet", done, 4)
        ratio = Row(f"perf.fleet.{kind}.{workers}_workers.ratio", pace[1] / pace[0], unit="x")
        yield ratio.against(">=", bar) if workers == AT and "://" in url and not url.startswith("sqlite") else ratio


async def _fill(case: _Case, seed: int, jobs: int) -> None:
    """As many notes before, worked off, so that there is something to compute."""
    writer = Writer(seed)
    async with await AsyncCollabLayer.open(
        case.url, tenant=case.tenant, settings=_QUIET, sharing=Sharing.within_tenant("records")
    ) as layer:
        for told in range(2):
            await layer.observe([_note(writer, at) for at in range(jobs)])
            if not told:
                await layer.drain()


def _note(writer: Writer, at: int) -> Interaction:
    owner, thing = Entity("user", f"u{at}"), Entity("item", f"i{at % 20}")
    return Interaction(actor=owner, target=thing, verb="noted", text=writer.note())


def _run(case: _Case) -> float:
    """Seconds of wall until all is done, once every process stands ready."""
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(case.workers + 1)
    ended: Any = spawn.Queue()
    processes = [spawn.Process(target=_work, args=(case, ready, ended)) for _ in range(case.workers)]
    for process in processes:
        process.start()
    try:
        ready.wait(PATIENCE_S)
        begun = time.perf_counter()
        for _ in processes:
            ended.get(timeout=PATIENCE_S)
        return time.perf_counter() - begun
    finally:
        for process in processes:
            process.join(10)
            process.kill()


def _work(case: _Case, ready: Barrier, ended: Any) -> None:
    asyncio.run(_drain(case, ready))
    ended.put(True)


async def _drain(case: _Case, ready: Barrier) -> None:
    settings = _QUIET.model_copy(update={"trigger": "eager"})
    model = SlowModel() if case.waits else None
    async with await AsyncCollabLayer.open(
        case.url, tenant=case.tenant, settings=settings, memory_model=model
    ) as layer:
        await layer.health()  # connections are open, and what is known is read
        await asyncio.to_thread(ready.wait, PATIENCE_S)
        await layer.drain()


__all__ = ["SlowModel", "measure"]
