"""How fast the machine is just now, by work that is the same everywhere: none of it is ours.

In:   a moment's name.
Out:  rows `perf.machine.<moment>.<python|memory>_ms`, CPU, the least of some tries.

Cores that are shared with others are half as fast in one minute as in the next, and memory more so than arithmetic. Two
runs can be compared where these agree; within one run they tell what a difference may be due to.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from collab_layer.bench.report import Row

TRIES = 5
_WORDS, _PLACES, _READS = 20_000, 1 << 23, 1 << 19


def measure(moment: str) -> Iterator[Row]:
    """Counting and sorting words in Python; reading numbers scattered over 64 MB, more than a core's caches hold."""
    words = [f"{number * number % 9_973:x}" for number in range(_WORDS)]
    table = np.arange(_PLACES, dtype=np.float64)
    places = np.random.default_rng(0).integers(0, _PLACES, _READS)
    for kind, work in (
        ("python", lambda: sorted(Counter(words).items())),
        ("memory", lambda: table.take(places).sum()),
    ):
        yield Row(f"perf.machine.{moment}.{kind}_ms", 1e3 * min(_cpu(work) for _ in range(TRIES)), unit="ms")


def _cpu(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before


__all__ = ["measure"]
