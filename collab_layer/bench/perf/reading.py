"""`context` through the public door, fresh and from the cache, with and without a question.

In:   an open layer over a filled graph.
Out:  rows `perf.context.<shape>.<fresh|cached>.<figure>`.

CPU is that of the whole process, since the layer reads in threads of its own.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import numpy as np

from collab_layer.bench.perf.graphs import Graph
from collab_layer.bench.perf.notes import Writer
from collab_layer.bench.perf.timing import Watch, held_to
from collab_layer.bench.progress import Progress
from collab_layer.bench.report import Row
from collab_layer.layer import AsyncCollabLayer

FRESH_MS, CACHED_MS = 25.0, 5.0


async def measure(layer: AsyncCollabLayer, graph: Graph, seed: int, calls: int, tell: Progress) -> AsyncIterator[Row]:
    """All rows; a quarter of the calls come before, so that what is measured is not the first read."""
    random, writer = np.random.default_rng(seed), Writer(seed + 1)
    for shape in ("taste", "text"):
        count = min(calls, graph.owners)
        owners = [f"user:u{owner}" for owner in random.choice(graph.owners, count, replace=False).tolist()]
        asked = [(owner, writer.question() if shape == "text" else None) for owner in owners]
        warm = count // 4
        for owner, question in asked[:warm]:
            await layer.context(owner, question)
        for kind, bar in (("fresh", FRESH_MS), ("cached", CACHED_MS)):
            watch = Watch(time.process_time)
            for at, (owner, question) in enumerate(asked[warm:]):
                await watch.wait(layer.context(owner, question))
                tell(f"context {shape} {kind}", at + 1, count - warm)
            for row in held_to(watch.sample.rows(f"perf.context.{shape}.{kind}"), ".cpu_p95_ms", bar):
                yield row


__all__ = ["measure"]
