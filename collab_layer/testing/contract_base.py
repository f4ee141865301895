"""What the author of an adapter gives to the contract, and helpers for its checks.

In:   the hooks `put`, `remove`, and where the store can: `edit`, `outage`, `traces`.
Out:  new owners, one event loop per test, skips that name their reason.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Coroutine, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar, TypeVar, cast

import pytest

from collab_layer.ports.backend import Can, Change, ListsOwners, MemoryBackend, ReadsAsOf, Searches
from collab_layer.ports.clock import system_clock
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.update import Source, Update

T = TypeVar("T")


class ContractBase:
    """Hooks for an author; each may be a plain or an async method.

    Attributes:
        starts_empty: The fixture gives a store without any record.
        any_loop: The port may be called from several threads and event loops at once.
        tick_s: Seconds after which the store's clock has surely moved on.
    """

    starts_empty: ClassVar[bool] = True
    any_loop: ClassVar[bool] = False
    tick_s: ClassVar[float] = 0.01

    # -- given by the author ------------------------------------------------------------

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        """Open a store for one test. Override it; `self.run(...)` awaits on the test's loop."""
        raise NotImplementedError("override the `backend` fixture")

    def put(self, backend: Any, owner: Entity, text: str) -> MemoryRef | Awaitable[MemoryRef]:
        """Store a memory as the owner would, through the store's own interface."""
        raise NotImplementedError("override `put`")

    def remove(self, backend: Any, ref: MemoryRef) -> Awaitable[None] | None:
        """Delete a memory as the owner would, through the store's own interface."""
        raise NotImplementedError("override `remove`")

    def edit(self, backend: Any, ref: MemoryRef, text: str) -> Awaitable[None] | None:
        """Change a memory's text as the owner would. Leave it out if memories never change."""
        pytest.skip("the author gave no `edit`: memories of this store never change")

    def outage(self, backend: Any) -> AbstractContextManager[Any]:
        """Make the store unreachable while the returned context is open."""
        pytest.skip("the author gave no `outage`: the store cannot be made unreachable here")

    def traces(self, backend: Any, text: str) -> Iterable[str]:
        """Where a text still lies in the store's own files and tables, history included."""
        pytest.skip("the author gave no `traces`: the store cannot be searched for what is left")

    def now(self, backend: Any) -> datetime:
        """The store's time; the machine's unless the store has a clock of its own."""
        return system_clock()

    # -- for checks -----------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await on the loop of this test; fixtures and checks share it."""
        runner = self.__dict__.get("_runner")
        if runner is None:
            runner = self.__dict__["_runner"] = asyncio.Runner()
        return cast("asyncio.Runner", runner).run(work)

    def close_loop(self) -> None:
        """End the loop that `run` made, if it made one."""
        runner = self.__dict__.pop("_runner", None)
        if runner is not None:
            cast("asyncio.Runner", runner).close()

    def someone(self, name: str = "ann", kind: str = "user") -> Entity:
        """An owner nobody has used before in this store; same name, same owner within a test."""
        tag = self.__dict__.setdefault("_tag", uuid.uuid4().hex[:8])
        return Entity(kind, f"{tag}{name}")

    def needs(self, backend: MemoryBackend, ability: Can) -> Any:
        """The store, if it promises the ability; else skip by the ability's name."""
        if ability not in backend.can:
            pytest.skip(f"`{backend.name}` does not promise `{ability}`")
        return backend

    async def puts(self, backend: MemoryBackend, owner: Entity, *texts: str) -> list[MemoryRef]:
        """Put texts one after another."""
        return [await settled(self.put(backend, owner, text)) for text in texts]

    async def all_records(self, backend: MemoryBackend, owner: Entity, limit: int = 500) -> list[MemoryRecord]:
        """Follow every page; a page larger than asked for, or a cursor that stands still, fails."""
        found: list[MemoryRecord] = []
        seen: set[str | None] = {None}
        page = await backend.records(owner, limit=limit)
        while True:
            assert len(page.records) <= limit, "a page is larger than its limit"
            found += page.records
            if page.after is None:
                return found
            assert page.after not in seen, "paging goes round in circles"
            seen.add(page.after)
            page = await backend.records(owner, after=page.after, limit=limit)

    async def all_changes(self, backend: Any, cursor: str, limit: int = 500) -> tuple[list[Change], str]:
        """Follow the feed until it has nothing more; the changes and the last cursor."""
        found: list[Change] = []
        while True:
            items, after = await backend.changes(cursor, limit=limit)
            assert len(items) <= limit, "the feed gave more than its limit"
            if not items:
                return found, after
            assert after != cursor, "the feed stands still"
            found += items
            cursor = after

    async def owned_texts(self, backend: MemoryBackend, owner: Entity, query: str) -> set[str]:
        """Every text that any promised way of reading gives for an owner."""
        found = await self.all_records(backend, owner)
        if isinstance(backend, Searches) and Can.SEARCH in backend.can:
            found += await backend.search(owner, query, k=50)
        if isinstance(backend, ReadsAsOf) and Can.AS_OF in backend.can:
            found += await backend.records_as_of(owner, self.now(backend))
        return {record.text for record in found}

    async def owner_list(self, backend: MemoryBackend) -> set[Entity]:
        """The owners the store names; empty where it does not promise to."""
        if isinstance(backend, ListsOwners) and Can.LIST_OWNERS in backend.can:
            return set(await backend.owners())
        return set()


def derived(owner: Entity, text: str = "Peers pin the parser version", key: str | None = None) -> Update:
    """A derived item for an owner, under a key nobody has used before."""
    source = Source(id="interaction:1", principal=owner, weight=1.0)
    return Update(id=key or f"update:{uuid.uuid4().hex}", owner=owner, text=text, confidence=0.5, sources=(source,))


async def settled(value: T | Awaitable[T]) -> T:
    """The value, awaited if it is still to come."""
    return await cast("Awaitable[T]", value) if isinstance(value, Awaitable) else value
