"""What a run took: CPU time by phase, how long single calls took, memory, what language models were asked.

In:   blocks of work, by name.
Out:  rows.
Never: a bar; a loaded machine stretches the clock, and CPU time a little.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from collab_layer.bench.report import Row, peak_rss_mb

if TYPE_CHECKING:
    from collab_layer.layer import AsyncCollabLayer

Clock = Callable[[str], AbstractContextManager[None]]
"""The name of a piece of work to a block that is timed."""


def unclocked(name: str) -> AbstractContextManager[None]:
    """A clock that does not look."""
    return nullcontext()


class Phases:
    """Sums up CPU time of this process, all threads, and keeps the times of single calls."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._spent: Counter[str] = Counter()
        self._cpu: dict[str, float] = {}
        self._calls: dict[str, list[tuple[float, float]]] = {}

    @contextmanager
    def of(self, name: str) -> Generator[None]:
        """Count what happens inside as one phase."""
        cpu = time.process_time()
        try:
            yield
        finally:
            self._cpu[name] = self._cpu.get(name, 0.0) + time.process_time() - cpu

    @contextmanager
    def call(self, name: str) -> Generator[None]:
        """The same, and keep how long it took as one call."""
        clock, cpu = time.perf_counter(), time.process_time()
        with self.of(name):
            yield
        took = (time.perf_counter() - clock, time.process_time() - cpu)
        self._calls.setdefault(name, []).append(took)

    async def account(self, layer: AsyncCollabLayer) -> None:
        """Add what a layer asked of language models so far, by its own account; before it is closed."""
        used = await layer.usage(2)
        self._spent["calls"] += sum(one.calls for one in used)
        self._spent["tokens"] += sum(one.input_tokens + one.output_tokens for one in used)

    def rows(self) -> list[Row]:
        """CPU seconds by phase; of calls the median and the 95th percentile, by the clock and in CPU time; totals."""
        out = [Row(f"run.cpu.{name}", seconds, unit="s") for name, seconds in self._cpu.items()]
        for name, taken in self._calls.items():
            for part, what in ((50, "p50"), (95, "p95")):
                clock, cpu = np.percentile(np.array(taken), part, axis=0).tolist()
                out.append(Row(f"run.{name}.{what}", 1e3 * clock, unit="ms"))
                out.append(Row(f"run.{name}.cpu_{what}", 1e3 * cpu, unit="ms"))
        return [
            *out,
            *(Row(f"run.model_{what}", float(spent), unit=what) for what, spent in self._spent.items()),
            Row("run.seconds", time.perf_counter() - self._began, unit="s"),
            Row("run.peak_rss_mb", peak_rss_mb(), unit="MB"),
        ]


__all__ = ["Clock", "Phases", "unclocked"]
