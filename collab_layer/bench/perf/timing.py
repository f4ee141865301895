"""What a call costs: CPU first, since a busy machine stretches the wall.

In:   a call, and what to call it with.
Out:  `Sample`s; percentiles of them as rows.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from collab_layer.bench.report import Row
from collab_layer.types.graph import Floats

T = TypeVar("T")
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Sample:
    """Costs of single calls, in ms, shape (n,) each."""

    cpu: Floats
    wall: Floats

    def of(self, percentile: float) -> float:
        """CPU at a percentile, in ms."""
        return float(np.percentile(self.cpu, percentile))

    def rows(self, name: str) -> list[Row]:
        """CPU and wall at each percentile."""
        columns = (("cpu", self.cpu), ("wall", self.wall))
        return [
            Row(f"{name}.{kind}_p{at}_ms", float(np.percentile(values, at)), unit="ms")
            for kind, values in columns
            for at in PERCENTILES
        ]


class Watch:
    """Collects a `Sample`.

    Args:
        clock: CPU seconds: of this thread, or of the process where others do the work.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._cpu: list[float] = []
        self._wall: list[float] = []

    def time(self, call: Callable[[], T]) -> T:
        """One call."""
        cpu, wall = self._clock(), time.perf_counter()
        found = call()
        self._note(cpu, wall)
        return found

    async def wait(self, call: Awaitable[T]) -> T:
        """One awaited call."""
        cpu, wall = self._clock(), time.perf_counter()
        found = await call
        self._note(cpu, wall)
        return found

    def _note(self, cpu: float, wall: float) -> None:
        self._cpu.append(1e3 * (self._clock() - cpu))
        self._wall.append(1e3 * (time.perf_counter() - wall))

    @property
    def sample(self) -> Sample:
        """All calls so far."""
        return Sample(np.array(self._cpu), np.array(self._wall))


def held_to(rows: Sequence[Row], metric: str, bar: float) -> list[Row]:
    """The same rows, those whose name ends with `metric` against a bar."""
    return [row.against("<=", bar) if row.name.endswith(metric) else row for row in rows]


def size_name(edges: int) -> str:
    """`1e6` for a million, `2500` for what is no power of ten."""
    power = len(str(edges)) - 1
    return f"1e{power}" if edges == 10**power else str(edges)


__all__ = ["PERCENTILES", "Sample", "Watch", "held_to", "size_name"]
