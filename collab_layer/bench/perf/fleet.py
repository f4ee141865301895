"""Several worker processes on one database against one: how much sooner the same work is done.

In:   an empty database, how many workers.
Out:  rows `perf.fleet.<kind>.<n>_workers.<figure>`, and their ratio.

`waits`: each job waits for a stand-in of a model, 200 ms, while nothing is computed. `computes`: no job waits.
`computes_apart`: the same work in as many tenants as there are workers.

A worker lives for days, and is not measured by its first second: before the clock begins the processes have worked off
as many notes of the same owners, with a model that answers at once. So each knows the tenant's names, has met most
words and has run every statement. Then the other notes are told, and from there on the wall counts, since that is what
a second worker is for. CPU of all workers for each job stands beside it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.progress import Progress
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
_QUIET = Settings(worker=False)


class SlowModel:
    """Waits, and has nothing to add.

    Attributes:
        wait_s: How long.
    """

    name = "slow"

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s

    async def complete(self, prompt: Prompt, reply: type[Reply], /) -> Answered[Reply]:
        """An empty reply, after a while."""
        await asyncio.sleep(self.wait_s)
        value = reply.model_validate({"updates": []})
        return Answered(value, Usage(model=self.name, input_tokens=prompt.tokens, output_tokens=1))


@dataclass(frozen=True, slots=True)
class Kind:
    """What the workers do.

    Attributes:
        name: As in the rows.
        wait_s: How long each job waits for a model; 0 asks none.
        apart: Each worker begins with a tenant of its own.
        bar: For the ratio of `AT` workers on PostgreSQL.
        times: How often as many jobs there are, where each takes so much less.
    """

    name: str
    wait_s: float
    apart: bool = False
    bar: float | None = None
    times: int = 1


KINDS = (
    Kind("waits", WAIT_S, bar=WAITS_BAR),
    Kind("computes", 0.0, bar=COMPUTES_BAR, times=5),
    Kind("computes_apart", 0.0, apart=True, times=5),
)


@dataclass(frozen=True, slots=True)
class _Case:
    url: str
    tenants: tuple[str, ...]
    wait_s: float
    workers: int
    jobs: int


def measure(
    url: str, workers: int, seed: int, tell: Progress, *, jobs: int = JOBS, kinds: Sequence[Kind] = KINDS
) -> Iterator[Row]:
    """Rows for one worker and for `workers`, and the ratio; bars hold for 4 workers on PostgreSQL.

    Args:
        url: A database; tenants of its own are made there.
        workers: Processes, >= 2.
        seed: Of the notes.
        tell: Progress.
        jobs: How much there is to do each time, or `Kind.times` as much.
        kinds: What the workers do.
    """
    judged = workers == AT and "://" in url and not url.startswith("sqlite")
    for at, kind in enumerate(kinds):
        pace: list[float] = []
        for count in (1, workers):
            names = tuple(f"fleet-{kind.name}-{count}-{one}" for one in range(workers if kind.apart else 1))
            case = _Case(url, names, kind.wait_s, count, kind.times * jobs // len(names))
            done, (wall, cpu) = case.jobs * len(names), _run(case, Writer(seed))
            pace.append(done / wall)
            name = f"perf.fleet.{kind.name}.{count}_worker{'s' if count > 1 else ''}"
            yield Row(f"{name}.jobs_per_s", pace[-1], unit="1/s")
            yield Row(f"{name}.cpu_ms", 1000 * cpu / done, unit="ms")
        ratio = Row(f"perf.fleet.{kind.name}.{workers}_workers.ratio", pace[1] / pace[0], unit="x")
        yield ratio if kind.bar is None or not judged else ratio.against(">=", kind.bar)
        tell("fleet", at + 1, len(kinds))


async def _tell(case: _Case, writer: Writer) -> None:
    """A note of each owner, to be worked off."""
    sharing = Sharing.within_tenant("records")
    for tenant in case.tenants:
        async with await AsyncCollabLayer.open(case.url, tenant=tenant, settings=_QUIET, sharing=sharing) as layer:
            await layer.observe([_note(writer, at) for at in range(case.jobs)])


def _note(writer: Writer, at: int) -> Interaction:
    owner, thing = Entity("user", f"u{at}"), Entity("item", f"i{at % 20}")
    return Interaction(actor=owner, target=thing, verb="noted", text=writer.note())


def _run(case: _Case, writer: Writer) -> tuple[float, float]:
    """Seconds of wall until all is done that is told once every process has a past, and of CPU of them together."""
    asyncio.run(_tell(case, writer))
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(case.workers + 1)
    ended: Any = spawn.Queue()
    processes = [spawn.Process(target=_work, args=(case, at, ready, ended)) for at in range(case.workers)]
    for process in processes:
        process.start()
    try:
        for _ in ("begun", "have a past"):
            ready.wait(PATIENCE_S)
        asyncio.run(_tell(case, writer))
        ready.wait(PATIENCE_S)
        begun = time.perf_counter()
        cpu = sum(ended.get(timeout=PATIENCE_S) for _ in processes)
        return time.perf_counter() - begun, cpu
    finally:
        for process in processes:
            process.join(10)
            process.kill()


def _work(case: _Case, number: int, ready: Barrier, ended: Any) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # as under a supervisor: Linux may share the processors by session, and all would have one share
    ended.put(asyncio.run(_drain(case, number, ready)))


async def _drain(case: _Case, number: int, ready: Barrier) -> float:
    """Seconds of CPU for what was told when every process had a past."""
    settings = _QUIET.model_copy(update={"trigger": "eager"})
    model = SlowModel(0.0) if case.wait_s else None
    tenants = [case.tenants[(number + at) % len(case.tenants)] for at in range(len(case.tenants))]
    async with await AsyncCollabLayer.open(case.url, tenant=tenants[0], settings=settings, memory_model=model) as layer:
        await asyncio.to_thread(ready.wait, PATIENCE_S)
        for tenant in tenants:
            await layer.for_tenant(tenant).drain()
        if model:
            model.wait_s = case.wait_s
        for _ in ("has a past", "there is something to do"):
            await asyncio.to_thread(ready.wait, PATIENCE_S)
        begun = time.process_time()
        for tenant in tenants:
            await layer.for_tenant(tenant).drain()
        return time.process_time() - begun


__all__ = ["KINDS", "Kind", "SlowModel", "measure"]
