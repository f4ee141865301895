"""What the layer adds to a search in a real Mem0, over Chroma in the same process.

In:   a filled database whose owners have memories in Mem0 too.
Out:  rows `perf.mem0.search.<alone|with_layer|added>.<figure>`; none where Mem0 or its adapter is missing.

Each search is made twice, without the layer and with it, in turn; what is added is the difference of
the two. CPU is that of the whole process, since layer and store work in threads of their own.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from collab_layer.bench.mem0_offline import offline_memory
from collab_layer.bench.perf.graphs import Graph
from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.perf.timing import Sample, Watch, held_to
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Row
from collab_layer.config import Settings
from collab_layer.sync import CollabLayer

ADDED_MS = 25.0
OWNERS, MEMORIES = 20, 10
PATIENCE_S = 10.0
"""So long, since on a busy machine a search would else go on without the layer and seem quick."""
_NEEDED = ("mem0", "chromadb", "collab_layer_mem0")


async def measure(url: str, tenant: str, graph: Graph, seed: int, calls: int, tell: Progress) -> Sequence[Row]:
    """All rows; a quarter of the calls come before, so that what is measured is not the first read."""
    if any(find_spec(needed) is None for needed in _NEEDED):
        return ()
    return await asyncio.to_thread(lambda: list(_measured(url, tenant, graph, seed, calls, tell)))


def _measured(url: str, tenant: str, graph: Graph, seed: int, calls: int, tell: Progress) -> Iterator[Row]:
    writer = Writer(seed + 2)
    owners = np.random.default_rng(seed).choice(graph.owners, min(OWNERS, graph.owners), replace=False).tolist()
    with (
        tempfile.TemporaryDirectory(prefix="collab-mem0-", ignore_cleanup_errors=True) as folder,
        CollabLayer.open(url, tenant=tenant, settings=Settings(worker=False)) as layer,
    ):
        alone: Any = offline_memory(Path(folder), "perf")
        for owner in owners * MEMORIES:
            alone.add(writer.note(), user_id=f"u{owner}", infer=False)
        wrap: Any = import_module("collab_layer_mem0").collaborative
        both: Any = wrap(offline_memory(Path(folder), "perf"), layer, timeout_s=PATIENCE_S)
        watches = {"alone": Watch(time.process_time), "with_layer": Watch(time.process_time)}
        for at in range(-(calls // 4), calls):
            owner, question = owners[at % len(owners)], writer.question()
            for name, memory in (("alone", alone), ("with_layer", both)):
                watch = watches[name] if at >= 0 else Watch()
                watch.time(lambda memory=memory, owner=owner, question=question: _search(memory, owner, question))
            tell("search in Mem0", max(at + 1, 0), calls)
        both.close()
        alone.close()
    found = {name: watch.sample for name, watch in watches.items()}
    for name, sample in found.items():
        yield from sample.rows(f"perf.mem0.search.{name}")
    before, after = found["alone"], found["with_layer"]
    added = Sample(after.cpu - before.cpu, after.wall - before.wall)
    yield from held_to(added.rows("perf.mem0.search.added"), ".cpu_p95_ms", ADDED_MS)


def _search(memory: Any, owner: int, question: str) -> None:
    memory.search(question, filters={"user_id": f"u{owner}"}, top_k=10, threshold=0.0)


__all__ = ["measure"]
