"""The whole measurement: fill, read, write, start.

In:   sizes, a seed, perhaps the URL of an empty database.
Out:  a `Report`.

Without a URL everything lies in SQLite files of a folder that is removed afterwards.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from collab_layer.bench import embedders
from collab_layer.bench.perf import added, curating, fleet, reading, starting, writing, yardstick
from collab_layer.bench.perf.curating import Bench
from collab_layer.bench.perf.fill import Notes, fill
from collab_layer.bench.perf.graphs import LEAST, Graph, generate
from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.perf.timing import size_name
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Report, Row
from collab_layer.config import Settings
from collab_layer.errors import InputError
from collab_layer.graph.store import GraphStore
from collab_layer.layer import AsyncCollabLayer
from collab_layer.ports.models import Embedder
from collab_layer.stages import rules
from collab_layer.types.scope import Sharing
from collab_layer.types.time import DAY

NOTES_PER_EDGE, MOST_NOTES = 0.05, 50_000
GROWTH = 3.0
SETTLED = 200
"""Owners whose neighbours are read before a process's memory is looked at."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        sizes: Edges of each graph, ascending.
        seed: Of everything drawn.
        writes: Interactions told one at a time; 0 leaves writing out.
        calls: Reads of each kind.
        tries: Starts of each kind, the least of which counts.
        url: An empty database; None makes SQLite files.
        workers: Worker processes against one; 0 leaves that out.
    """

    sizes: Sequence[int]
    seed: int = 0
    writes: int = 2_000
    calls: int = 300
    tries: int = 5
    url: str | None = None
    workers: int = 0


async def measure(plan: Plan, tell: Progress) -> Report:
    """Everything that is asked for.

    Raises:
        InputError: No sizes, or the database is not empty.
    """
    if plan.workers == 1:
        raise InputError("several workers are compared with one; name at least 2")
    if not plan.sizes or min(plan.sizes) < LEAST:
        raise InputError(f"name at least one size, of {LEAST} edges or more each")
    rows = list(yardstick.measure("first"))
    digest = hashlib.sha256()
    embedder = ""
    with TemporaryDirectory(prefix="collab-perf-") as folder:
        for edges in plan.sizes:
            graph = generate(edges, plan.seed)
            digest.update(graph.owner.tobytes() + graph.thing.tobytes() + graph.at.tobytes())
            url = plan.url or str(Path(folder) / f"{edges}.db")
            embedder = await _one(plan, graph, url, rows, tell)
        rows += growth(rows, plan.sizes)
        if plan.writes:
            rows += yardstick.measure("writing")
            url = plan.url or str(Path(folder) / "writes.db")
            rows += await writing.measure(url, plan.writes, plan.seed, tell)
        if plan.workers:
            url = plan.url or str(Path(folder) / "fleet.db")
            rows += await asyncio.to_thread(lambda: list(fleet.measure(url, plan.workers, plan.seed, tell)))
        rows += await asyncio.to_thread(lambda: list(starting.measure(plan.tries)))
    rows += yardstick.measure("last")
    sizes = " ".join(f"--edges {edges}" for edges in plan.sizes)
    command = f"collab bench perf {sizes} --seed {plan.seed} --writes {plan.writes}"
    command += f" --workers {plan.workers}" if plan.workers else ""
    return Report(command, digest.hexdigest(), plan.seed, embedder, rows)


async def _one(plan: Plan, graph: Graph, url: str, rows: list[Row], tell: Progress) -> str:
    """Fill and read one size; the embedder that was used."""
    tenant, largest = f"perf-{len(graph)}", len(graph) == max(plan.sizes)
    settings, embedder = Settings(worker=False), embedders.opened()
    async with await AsyncCollabLayer.open(
        url, tenant=tenant, settings=settings, sharing=Sharing.within_tenant("records"), embedder=embedder
    ) as layer:
        if any((await layer.health()).counts.values()):
            raise InputError("the database is not empty; name a fresh one")
        scorer = rules.load(layer.plugins.domains["overlap"].tree)
        store = GraphStore.open(url, embedder=embedder.id, dim=embedder.dim)
        try:
            notes = await _notes(embedder, graph, plan.seed, tell)
            await asyncio.to_thread(fill, store, tenant, graph, notes, tell)
            bench = Bench(store, tenant, graph, scorer, int(graph.at[-1]) + DAY, plan.calls)
            rows += await asyncio.to_thread(lambda: list(curating.measure(bench, plan.seed, tell)))
        finally:
            store.close()
        rows += _disk(url, len(graph))
        if largest:
            rows += yardstick.measure("reading")
            rows += [row async for row in reading.measure(layer, graph, plan.seed, plan.calls, tell)]
    if largest:
        rows += await added.measure(url, tenant, graph, plan.seed, plan.calls, tell)
        owners = np.random.default_rng(plan.seed).integers(0, graph.owners, SETTLED).tolist()
        rows.append(await asyncio.to_thread(starting.resident, url, tenant, owners, len(graph)))
    return embedder.id


async def _notes(embedder: Embedder, graph: Graph, seed: int, tell: Progress) -> Notes:
    writer = Writer(seed)
    texts = [writer.note() for _ in range(min(MOST_NOTES, int(len(graph) * NOTES_PER_EDGE)))]
    vectors: list[np.ndarray[tuple[int, int], np.dtype[np.float32]]] = []
    for start in range(0, len(texts), 1_000):
        vectors.append(np.asarray(await embedder.embed(texts[start : start + 1_000]), np.float32))
        tell("embed notes", min(start + 1_000, len(texts)), len(texts))
    return Notes(texts, np.concatenate(vectors))


def growth(rows: Sequence[Row], sizes: Sequence[int]) -> list[Row]:
    """How much dearer the largest graph is than the smallest, for owners drawn at random."""
    if len(sizes) < 2:
        return []
    at = {row.name: row.value for row in rows}
    first, last = (at[f"perf.curate.{size_name(edges)}.typical.cpu_p50_ms"] for edges in (min(sizes), max(sizes)))
    return [Row("perf.curate.growth.typical.ratio", last / first, unit="x").against("<=", GROWTH)]


def _disk(url: str, edges: int) -> list[Row]:
    if "://" in url:
        return []
    files = (Path(url), Path(f"{url}-wal"))
    return [
        Row(f"perf.disk.{size_name(edges)}.mb", sum(f.stat().st_size for f in files if f.exists()) / 2**20, unit="MB")
    ]


__all__ = ["Plan", "growth", "measure"]
