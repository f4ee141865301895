"""Letta behind the layer's port: agents' own blocks and what they archived.

In:   refs, owners, queries; derived items where that was asked for.
Out:  records; signal blocks that say what others know.

Letta has no feed of changes: `layer.reconcile` compares the SHA-256 of every memory with what
is known. It shows no version either, so that `IF_MATCH` cannot be promised.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from collab_layer.errors import BackendError, ErasedPartlyError
from collab_layer.ports.backend import Can, Page, require
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.update import Receipt, Update
from collab_layer_letta import mapping
from collab_layer_letta.client import Api
from collab_layer_letta.items import Items
from collab_layer_letta.locks import LoopLocks, gathered
from collab_layer_letta.records import Records
from collab_layer_letta.signal import Signals
from collab_layer_letta.text import LIMIT

NAME = "letta"
TENANT = "default"
DEBOUNCE_S = 2.0
"""How often the block of one entity is written at most: every write compiles prompts anew."""
_log = logging.getLogger("collab_layer_letta")


def mark_of(tenant: str) -> str:
    """The tag on everything that belongs to a tenant of the layer, and on its attached agents."""
    return f"collab:{tenant}"


class LettaBackend:
    """Agents of a Letta server, self-hosted or in the cloud.

    Args:
        client: A `Letta` or `AsyncLetta`, as made by the user; it stays the user's.
        name: Unique within the layer; part of every ref.
        write: Promise `WRITE`: derived items go to the server, and into signal blocks.
        tenant: Of the layer that writes; two tenants on one server do not see each other's items.
        limit: Characters of a new signal block, > 0.
        debounce_s: Seconds between two writes of one entity's block, >= 0; the first is at once.
        attached_only: Keep items only for entities with an attached agent, and let the others go:
            `layer.deliver(entity, again=True)` brings them once an agent is attached.
    """

    def __init__(
        self,
        client: Any,
        *,
        name: str = NAME,
        write: bool = False,
        tenant: str = TENANT,
        limit: int = LIMIT,
        debounce_s: float = DEBOUNCE_S,
        attached_only: bool = False,
    ) -> None:
        self.api, self.mark, self.limit = Api(client, name), mark_of(tenant), limit
        self._name, self._records = name, Records(self.api, name)
        self._items = Items(self.api, name, self.mark)
        self.signals = Signals(self.api, name, self.mark, self._items, limit)
        can = {Can.SEARCH, Can.LIST_OWNERS, Can.ERASE}
        self._can = frozenset(can | {Can.WRITE, Can.DEDUPE} if write else can)
        self._debounce_s, self._attached_only, self._keys = debounce_s, attached_only, LoopLocks()
        self._waiting: set[Entity] = set()
        self._last: dict[Entity, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """`WRITE` and `DEDUPE` if asked for."""
        return self._can

    # -- reading -----------------------------------------------------------------------

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The records that still exist."""
        return await self._records.read(ref.id for ref in refs if ref.backend == self._name)

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's blocks, then passages, then what it said to agents that several people use, oldest first."""
        return await self._records.page(owner, after, limit)

    async def search(self, owner: Entity, query: str, /, *, k: int = 10) -> list[MemoryRecord]:
        """The owner's best blocks and passages; the score is 1 / (1 + rank), as Letta gives none."""
        return await self._records.search(owner, query, k) if query.strip() else []

    async def owners(self) -> list[Entity]:
        """Every owner whose agents remember something."""
        return await self._records.owners()

    async def health(self) -> PartHealth:
        """Ask for the first agent that remembers something; tell of signals that wait."""
        try:
            any_ = await self._records.any()
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        if self._waiting:
            return PartHealth(name=self._name, condition="degraded", detail=f"{len(self._waiting)} signals wait")
        return PartHealth(name=self._name, condition="ok" if any_ else "empty")

    async def aclose(self) -> None:
        """Write the signals that wait, as far as the server can be reached; the client stays open."""
        try:
            await self.flush()
        except BackendError as error:
            _log.warning("%d signals are left to the next sync: %s", len(self._waiting), error)

    # -- derived items -----------------------------------------------------------------

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update once under its id, then bring the signal blocks of its entities up to date."""
        require(self, Can.WRITE)
        kept = updates
        if self._attached_only and updates:
            attached = {one.entity for one in await self.signals.attached()}
            kept = [update for update in updates if update.owner in attached]
        receipts = {one.key: one for one in await gathered(partial(self._keep, update) for update in kept)}
        await self._touch({update.owner for update in kept})
        return [receipts.get(update.id, self._let_go(update)) for update in updates]

    def _let_go(self, update: Update) -> Receipt:
        return Receipt(key=update.id, native_id=f"none:{update.id}", backend=self._name)

    async def retract(self, keys: Sequence[str], /) -> int:
        """Take items out of the signal blocks at once, then delete them.

        In this order an interrupted call can be repeated: what is still there says whose it is.
        """
        require(self, Can.WRITE)
        whose = set((await self._items.find(keys)).values())
        self._waiting |= whose
        for entity in sorted(whose):
            await self.signals.settle(entity, without=frozenset(keys))
        gone = await self._items.drop(keys)
        await self.flush()
        return gone

    async def clear(self, entity: Entity) -> None:
        """Delete the items of an entity that has no attached agent any more."""
        await self._items.clear(entity)
        self._waiting.discard(entity)

    async def flush(self) -> None:
        """Write every signal that waits.

        Raises:
            BackendError: The first that could not be written; it and the others still wait.
        """
        failed: BackendError | None = None
        for entity in sorted(self._waiting):
            try:
                await self._settle(entity)
            except BackendError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def _keep(self, update: Update) -> Receipt:
        async with self._keys.here(update.id):
            return await self._items.keep(update)

    async def _touch(self, entities: Iterable[Entity]) -> None:
        for entity in sorted(entities):
            wait = self._last.get(entity, -self._debounce_s) + self._debounce_s - time.monotonic()
            if wait <= 0:
                self._waiting.add(entity)
                await self._settle(entity)
            elif entity not in self._waiting:
                self._waiting.add(entity)
                asyncio.get_running_loop().call_later(wait, self._later, entity)

    async def _settle(self, entity: Entity) -> None:
        self._last[entity] = time.monotonic()
        await self.signals.settle(entity)
        self._waiting.discard(entity)

    def _later(self, entity: Entity) -> None:
        task = asyncio.get_running_loop().create_task(self._settle_later(entity))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle_later(self, entity: Entity) -> None:
        if entity not in self._waiting:
            return
        try:
            await self._settle(entity)
        except BackendError as error:
            _log.warning("the signal of `%s` waits for the next write or sync: %s", entity, error)

    # -- erasure -----------------------------------------------------------------------

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Delete memories and compile the prompts anew that held them; how many there were.

        What an agent said about them in its conversation is its transcript, not a memory, and stays.

        Raises:
            ErasedPartlyError: One of them is a message, which Letta lets nobody delete; all others are gone.
        """
        natives = list(dict.fromkeys(ref.id for ref in refs if ref.backend == self._name))
        done = [await self._erase(one) for one in natives]
        said = await self._records.speech.read([one for one in natives if mapping.is_id(one, "message")])
        if said:
            why = f"{len(said)} messages stay: Letta deletes them with the agent alone, or all its messages at once"
            raise ErasedPartlyError(self._name, why)
        return sum(done)

    async def _erase(self, native: str) -> bool:
        place = mapping.split_passage(native)
        if place is not None:
            return await self.api.delete(f"/v1/archives/{place[0]}/passages/{place[1]}")
        if not mapping.is_id(native, "block"):
            return False
        row = await self.api.find(f"/v1/blocks/{native}")
        if row is None or mapping.is_ours(row.get("label")):
            return False
        holding = [str(one["id"]) for one in await self.api.all(f"/v1/blocks/{native}/agents")]
        gone = await self.api.delete(f"/v1/blocks/{native}")
        await gathered(partial(self.api.post, f"/v1/agents/{one}/recompile") for one in holding)
        return gone


__all__ = ["DEBOUNCE_S", "NAME", "TENANT", "LettaBackend", "mark_of"]
