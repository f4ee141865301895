"""An hour of mixed load in a few minutes: does anything grow, get lost, or happen twice?

In:   an empty database, a duration, a seed.
Out:  rows `perf.soak.<figure>`.

Owners come, tell forty things, are read about, and are forgotten as a whole, so that what is stored stays about as
large: whatever grows then is a leak. Two worker processes do the rest, and one after another is killed with SIGKILL
and replaced. Everything that was acknowledged is looked for at the end, in the tables.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sqlalchemy import Connection, false, func, select

from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.errors import CollabError, InputError, UnknownIdError
from collab_layer.graph.engine import Database
from collab_layer.graph.tables import cards, edges, entities, interactions, outbox
from collab_layer.layer import AsyncCollabLayer
from collab_layer.types.entity import Entity
from collab_layer.types.interaction import Interaction
from collab_layer.types.scope import Sharing

SHORTEST_S, STEADY_S = 10.0, 120.0
"""Seconds of the shortest run, and of the shortest one in which growth says anything: before, it only fills."""
TENANT = "soak"
EACH, OWNERS, THINGS = 40, 12, 60
"""Interactions of an owner, owners that are there at once, things."""
OBSERVERS, READERS, WORKERS = 3, 2, 2
PAUSE_S = 0.05
RESTARTS = 12
"""Workers killed in a run, one after another."""
LEASE_S = 5.0
WARM, LATE = (0.3, 0.5), (0.8, 1.0)
"""Parts of the run that are compared: after the start, and at the end."""
MEMORY_BAR, DESCRIPTORS_BAR, DELTAS_BAR = 1.2, 8.0, 2.0


@dataclass(slots=True)
class Load:
    """What was done so far, and what must be there at the end.

    Attributes:
        kept: Keys that were acknowledged, by owner; an owner that is forgotten goes.
        gone: Owners that were forgotten.
        refused: Errors, by code; every call is made again or given up as a user would.
        samples: (part of the run, MB of memory, descriptors, delta rows).
    """

    kept: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    gone: set[str] = field(default_factory=set[str])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    samples: list[tuple[float, float, int, int]] = field(default_factory=list[tuple[float, float, int, int]])
    observed: int = 0
    read: int = 0
    restarts: int = 0

    def note(self, error: CollabError) -> None:
        """One call was refused."""
        self.refused[error.code] = self.refused.get(error.code, 0) + 1


async def measure(url: str | None, duration_s: float, seed: int, tell: Progress) -> Report:
    """The whole run.

    Args:
        url: An empty database; None makes an SQLite file.
        duration_s: How long the load lasts, >= 10.
        seed: Of what is told and asked.
        tell: Progress.

    Raises:
        InputError: Too short, or the database is not empty.
    """
    if duration_s < SHORTEST_S:
        raise InputError(f"{duration_s:g} s are too short to see anything grow; at least {SHORTEST_S:g}")
    with TemporaryDirectory(prefix="collab-soak-") as folder:
        where = url or str(Path(folder) / "soak.db")
        load = Load()
        settings = Settings(worker=False, lease_s=LEASE_S)
        sharing = Sharing.within_tenant("records")
        async with await AsyncCollabLayer.open(where, tenant=TENANT, settings=settings, sharing=sharing) as layer:
            if any((await layer.health()).counts.values()):
                raise InputError("the database is not empty; name a fresh one")
            embedder = layer.embedder
            await _loaded(layer, where, load, duration_s, seed, tell)
            await layer.drain()
            health = await layer.health()
        left = health.counts["waiting"] + health.counts["parked"]
        rows = await asyncio.to_thread(_rows, where, load, left, duration_s >= STEADY_S)
    command = f"collab bench soak --duration {duration_s:g} --seed {seed}" + (" --url …" if url else "")
    return Report(command, "", seed, embedder, rows)


# -- load ------------------------------------------------------------------------------------


async def _loaded(layer: AsyncCollabLayer, url: str, load: Load, duration_s: float, seed: int, tell: Progress) -> None:
    begun = time.monotonic()

    def part() -> float:
        return (time.monotonic() - begun) / duration_s

    names = iter(range(1_000_000_000))
    turn: deque[str] = deque()
    parts: list[Callable[[], Any]] = [
        *(lambda at=at: _observe(layer, load, names, turn, part, seed + at) for at in range(OBSERVERS)),
        *(lambda at=at: _read(layer, load, part, seed + 100 + at) for at in range(READERS)),
        lambda: _forget(layer, load, turn, part),
        lambda: _restart(url, load, part, duration_s),
        lambda: _sample(url, load, part, duration_s, tell),
    ]
    async with asyncio.TaskGroup() as group:
        for one in parts:
            group.create_task(one())


async def _observe(
    layer: AsyncCollabLayer, load: Load, names: Any, turn: deque[str], part: Callable[[], float], seed: int
) -> None:
    """One owner after another tells forty things, each until it is acknowledged."""
    draw, writer = random.Random(seed), Writer(seed)
    while part() < 1:
        owner = f"user:s{next(names)}"
        load.kept[owner] = set()
        for at in range(EACH):
            thing = Entity("item", f"i{draw.randrange(THINGS)}")
            told = Interaction(
                actor=Entity.parse(owner), target=thing, verb="noted", text=writer.note(), key=f"{owner}/{at}"
            )
            while True:
                try:
                    await layer.observe(told)
                except CollabError as error:
                    load.note(error)
                    await asyncio.sleep(PAUSE_S)
                    continue
                break
            load.kept[owner].add(f"{owner}/{at}")
            load.observed += 1
            if part() >= 1:
                return
            await asyncio.sleep(PAUSE_S)
        turn.append(owner)


async def _read(layer: AsyncCollabLayer, load: Load, part: Callable[[], float], seed: int) -> None:
    draw, writer = random.Random(seed), Writer(seed)
    while part() < 1:
        owners = list(load.kept)
        if owners:
            try:
                await layer.context(draw.choice(owners), writer.question() if draw.random() < 0.5 else None)
                load.read += 1
            except CollabError as error:
                load.note(error)
        await asyncio.sleep(2 * PAUSE_S)


async def _forget(layer: AsyncCollabLayer, load: Load, turn: deque[str], part: Callable[[], float]) -> None:
    """Whoever has told everything goes, as soon as enough others are there."""
    while part() < 1:
        if len(turn) + OBSERVERS <= OWNERS:
            await asyncio.sleep(PAUSE_S)
            continue
        owner = turn.popleft()
        del load.kept[owner]
        load.gone.add(owner)
        while True:
            try:
                await layer.forget(owner)
            except UnknownIdError:
                break  # an answer that was lost: it is gone already
            except CollabError as error:
                load.note(error)
                await asyncio.sleep(PAUSE_S)
                continue
            break


async def _restart(url: str, load: Load, part: Callable[[], float], duration_s: float) -> None:
    """Worker processes, of which the oldest is killed wherever it is, and replaced."""
    spawn = multiprocessing.get_context("spawn")

    def start() -> Any:
        process = spawn.Process(target=_work, args=(url,), daemon=True)
        process.start()
        return process

    running = deque(await asyncio.gather(*(asyncio.to_thread(start) for _ in range(WORKERS))))
    try:
        while part() < 1:
            await asyncio.sleep(duration_s / RESTARTS)
            oldest = running.popleft()
            oldest.kill()
            await asyncio.to_thread(oldest.join)
            load.restarts += 1
            running.append(await asyncio.to_thread(start))
    finally:
        for process in running:
            process.kill()
            process.join()


def _work(url: str) -> None:
    asyncio.run(_worker(url))


async def _worker(url: str) -> None:
    settings = Settings(worker=False, lease_s=LEASE_S)
    async with await AsyncCollabLayer.open(url, tenant=TENANT, settings=settings) as layer:
        await layer.work()


# -- figures ---------------------------------------------------------------------------------


async def _sample(url: str, load: Load, part: Callable[[], float], duration_s: float, tell: Progress) -> None:
    database = Database(url)
    try:
        while (now := part()) < 1:
            deltas = await asyncio.to_thread(_deltas, database)
            if deltas is not None:
                load.samples.append((now, _resident_mb(), _descriptors(), deltas))
            tell("soak", round(now * duration_s), round(duration_s))
            await asyncio.sleep(min(1.0, duration_s / 50))
    finally:
        database.dispose()


def _deltas(database: Database) -> int | None:
    try:
        with database.read() as connection:
            query = select(func.count()).where(edges.c.tenant == TENANT, edges.c.folded == false())
            return connection.execute(query).scalar_one()
    except CollabError:
        return None


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _rows(url: str, load: Load, waiting: int, steady: bool) -> list[Row]:
    database = Database(url)
    try:
        with database.read() as connection:
            found = _found(connection, load)
    finally:
        database.dispose()
    early, late = _during(load.samples, WARM), _during(load.samples, LATE)
    at, last = (np.mean(part, axis=0) if len(part) else np.full(4, np.nan) for part in (early, late))
    grown = (
        ("memory", "MB", Row("perf.soak.memory.growth", float(last[1] / at[1]), unit="x"), MEMORY_BAR),
        ("descriptors", "files", Row("perf.soak.descriptors.growth", last[2] - at[2], unit="files"), DESCRIPTORS_BAR),
        ("delta_rows", "rows", Row("perf.soak.delta_rows.growth", last[3] / max(at[3], 1.0), unit="x"), DELTAS_BAR),
    )
    rows = [Row(f"perf.soak.{name}", float(count), unit="rows").against("<=", 0) for name, count in found.items()]
    rows.append(Row("perf.soak.left_waiting", float(waiting), unit="rows").against("<=", 0))
    for column, (name, unit, growth, bar) in enumerate(grown, 1):
        rows += [
            Row(f"perf.soak.{name}", float(last[column]), unit=unit),
            growth.against("<=", bar) if steady else growth,
        ]
    counted = {"observed": load.observed, "read": load.read, "forgotten_owners": len(load.gone)}
    counted |= {"killed_workers": load.restarts, **{f"refused.{code}": n for code, n in sorted(load.refused.items())}}
    return [*rows, *(Row(f"perf.soak.{name}", float(count), unit="calls") for name, count in counted.items())]


def _during(samples: Sequence[tuple[float, float, int, int]], part: tuple[float, float]) -> np.ndarray[Any, Any]:
    low, high = part
    return np.array([sample for sample in samples if low <= sample[0] < high])


def _found(connection: Connection, load: Load) -> dict[str, int]:
    """What is missing, what is there twice, and what came back."""
    i, e, c = interactions.c, edges.c, cards.c
    there = set(connection.execute(select(i.key).where(i.tenant == TENANT)).scalars())
    wanted = {key for keys in load.kept.values() for key in keys}
    names = set(connection.execute(select(entities.c.name).where(entities.c.tenant == TENANT)).scalars())
    twice = select(e.interaction).where(e.tenant == TENANT, e.interaction != 0)
    edge_pairs = twice.group_by(e.interaction, e.src, e.dst, e.kind).having(func.count() > 1).subquery()
    carded = select(c.interaction).where(c.tenant == TENANT).group_by(c.interaction)
    pending = select(func.count()).where(outbox.c.tenant == TENANT)
    return {
        "lost": len(wanted - there),
        "doubled": _count(connection, edge_pairs) + _count(connection, carded.having(func.count() > 1).subquery()),
        "not_propagated": len(there) - _count(connection, carded.subquery()) + connection.execute(pending).scalar_one(),
        "forgotten_and_there": len(load.gone & names) + len(there - wanted),
    }


def _count(connection: Connection, rows: Any) -> int:
    return connection.execute(select(func.count()).select_from(rows)).scalar_one()


__all__ = ["Load", "measure"]
