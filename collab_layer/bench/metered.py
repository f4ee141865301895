"""What a contestant costs: the time of its reads and writes, the tokens it tells, the models it asks.

In:   a `Store`.
Out:  the same two calls, and rows of what they took.
Never: a figure that the contestant reports of its own speed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any

import numpy as np

from collab_layer.bench.report import Row
from collab_layer.bench.stores import Asks, Item, Opens, Settles, Store


class Costs:
    """Sums over all stores of one contestant.

    Attributes:
        added: Records.
        write_ms: Time to keep them and to make them ready, all together.
        read_ms: Of each question.
        tokens: Told by each answer.
        model_calls: Of language models.
    """

    def __init__(self) -> None:
        self.added, self.write_ms, self.model_calls = 0, 0.0, 0
        self.read_ms: list[float] = []
        self.tokens: list[int] = []

    def rows(self, prefix: str) -> list[Row]:
        """Of a read the median and the 95th percentile, of a write the mean; by the clock."""
        if not self.read_ms:
            return []
        middle, late = np.percentile(np.array(self.read_ms), (50, 95)).tolist()
        return [
            Row(f"{prefix}.read_p50_ms", middle, unit="ms"),
            Row(f"{prefix}.read_p95_ms", late, unit="ms"),
            Row(f"{prefix}.write_mean_ms", self.write_ms / max(self.added, 1), unit="ms"),
            Row(f"{prefix}.read_tokens", float(np.mean(self.tokens)), unit="tokens"),
            Row(f"{prefix}.model_calls", float(self.model_calls), unit="calls"),
        ]


class Metered:
    """A contestant whose calls are timed.

    What was added is made ready before the next question, where the contestant can do that
    (`Settles`), so that a question is not charged for it.
    """

    def __init__(self, store: Store, costs: Costs) -> None:
        self._store, self._costs = store, costs
        self._fresh = False

    async def add(self, entity: str, text: str, links: Sequence[str], t: datetime, scope: str) -> str:
        """See `Store.add`."""
        self._fresh = True
        self._costs.added += 1
        with self._writing():
            return await self._store.add(entity, text, links, t, scope)

    async def context(self, entity: str, query: str, t: datetime, budget: int) -> list[Item]:
        """See `Store.context`."""
        if self._fresh and isinstance(self._store, Settles):
            with self._writing():
                await self._store.settle()
        self._fresh = False
        began = time.perf_counter()
        items = await self._store.context(entity, query, t, budget)
        self._costs.read_ms.append(1e3 * (time.perf_counter() - began))
        self._costs.tokens.append(sum(item.tokens for item in items))
        return items

    @contextmanager
    def _writing(self) -> Generator[None]:
        began = time.perf_counter()
        yield
        self._costs.write_ms += 1e3 * (time.perf_counter() - began)


@asynccontextmanager
async def entered(opens: Opens, costs: Costs) -> AsyncGenerator[Metered]:
    """A fresh contestant, closed afterwards if it can be."""
    store: Any = opens()
    async with AsyncExitStack() as stack:
        if hasattr(store, "__aenter__"):
            store = await stack.enter_async_context(store)
        elif hasattr(store, "aclose"):
            store = await stack.enter_async_context(aclosing(store))
        yield Metered(store, costs)
    if isinstance(store, Asks):  # asked after it was closed, when nothing is under way
        costs.model_calls += store.model_calls


__all__ = ["Costs", "Metered", "entered"]
