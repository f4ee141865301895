"""Which stores are down, as far as this process knows.

In:   what came of calls to stores; now and then a store is asked itself.
Out:  one sentence for each store that does not answer.
Never: a read that waits long for a store. What the layer knows it has in its own index.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from collab_layer.ports.backend import MemoryBackend

PATIENCE_S = 0.05
"""How long a read waits for what a store says of itself."""
PAUSE = 20.0
"""A store is asked again after so many times as long as it took the last time: a twentieth of a read at most."""


class Standing:
    """By (tenant, store name)."""

    def __init__(self) -> None:
        self._down: set[tuple[str, str]] = set()
        self._due: dict[tuple[str, str], float] = {}
        self.missed: set[tuple[str, str]] = set()
        """Stores that were down since a worker last looked at them."""

    def down(self, tenant: str, name: str) -> None:
        """A call to it failed in a way that may pass."""
        self._down.add((tenant, name))
        self.missed.add((tenant, name))

    def up(self, tenant: str, name: str) -> None:
        """A call to it went well."""
        self._down.discard((tenant, name))

    def caught_up(self, tenant: str, name: str) -> bool:
        """Somebody looks at it now; whether it was down since the last time."""
        missed = (tenant, name) in self.missed
        self.missed.discard((tenant, name))
        return missed

    @asynccontextmanager
    async def watching(self, tenant: str, stores: Iterable[MemoryBackend]) -> AsyncGenerator[None]:
        """Ask stores how they are doing while an answer is being made."""
        asked = asyncio.ensure_future(self.ask(tenant, stores))
        try:
            yield
        finally:
            await asked

    async def ask(self, tenant: str, stores: Iterable[MemoryBackend]) -> None:
        """Ask each store how it is doing, unless it was asked a moment ago."""
        now = time.monotonic()
        due = [store for store in stores if self._due.get((tenant, store.name), 0.0) <= now]
        await asyncio.gather(*(self._ask(tenant, store) for store in due))

    async def _ask(self, tenant: str, store: MemoryBackend) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                part = await store.health()
        except TimeoutError:
            pass  # it may only be slow: what was known of it stays
        else:
            (self.down if part.condition == "down" else self.up)(tenant, store.name)
        took = time.monotonic() - began
        self._due[tenant, store.name] = began + took * (1 + PAUSE)

    def sentences(self, tenant: str) -> tuple[str, ...]:
        """What a reader is told."""
        return tuple(
            f"store `{name}` is down: what changed there since is not known"
            for whose, name in sorted(self._down)
            if whose == tenant
        )
