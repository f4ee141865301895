"""Mem0 behind the layer's port: self-hosted over its vector store, or Mem0's service.

In:   refs, owners, queries.
Out:  records; derived items written under `agent_id="collab"` where that was asked for.
      Built on the object the user made, never on our wrapper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from collab_layer.errors import BackendError, InputError
from collab_layer.ports.backend import Can, Change, Changes, MemoryBackend, Page, require
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
from collab_layer.types.health import PartHealth
from collab_layer.types.update import Receipt, Update
from collab_layer_mem0 import mapping
from collab_layer_mem0.client import LISTS_ALL, OssStore, Platform, Row, kind_of
from collab_layer_mem0.embedder import Mem0Embedder, Recent
from collab_layer_mem0.locks import LoopLocks
from collab_layer_mem0.tap import Tap

NAME = "mem0"
_SPARE = 4
"""How many times k is fetched in a search: stores filter ids, we filter owners."""


class Mem0Backend:
    """A self-hosted `Memory` or `AsyncMemory`.

    Args:
        memory: The object, as made by the user.
        name: Unique within the layer; part of every ref.
        write: Promise `WRITE`: derived items go into the store, under `agent_id="collab"`.
        tap: The tap on its vector store, so that our own writes are not reported as news.
        recent: Vectors that Mem0 computed itself a moment ago.
    """

    def __init__(
        self,
        memory: Any,
        *,
        name: str = NAME,
        write: bool = False,
        tap: Tap | None = None,
        recent: Recent | None = None,
    ) -> None:
        self._name, self._store = name, OssStore(memory, name)
        self._tap, self._embedder = tap or Tap(name), Mem0Embedder(memory, name, recent or Recent())
        self._can = frozenset({Can.SEARCH, Can.WATCH, Can.EMBED})
        if self._store.provider in LISTS_ALL:
            self._can |= {Can.LIST_OWNERS}
        if self._store.erases:
            self._can |= {Can.ERASE, Can.ERASE_OWNER}
        if write:
            self._can |= {Can.WRITE}
        self._writing = LoopLocks()

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """Listing owners and erasing only over vector stores that are known to list, or to lose, everything."""
        return self._can

    @property
    def embedder(self) -> Mem0Embedder:
        """Mem0's own embedding model."""
        return self._embedder

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The records that still exist."""
        return self._records(await self._store.get([ref.id for ref in refs if ref.backend == self._name]))

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's records by id. Mem0 has no paging: each page lists the owner anew."""
        rows = {row.id: row for scope in mapping.native_scopes(owner) for row in await self._store.rows(scope)}
        held = self._records(list(rows.values()))
        mine = sorted((one for one in held if one.owner == owner), key=lambda one: one.ref.id)
        rest = [one for one in mine if after is None or one.ref.id > after]
        return Page(rest[:limit], rest[limit - 1].ref.id if len(rest) > limit else None)

    async def search(self, owner: Entity, query: str, /, *, k: int = 10) -> list[MemoryRecord]:
        """The owner's nearest records by vector; Mem0's keyword leg is not asked."""
        scopes = mapping.native_scopes(owner)
        if not scopes or not query.strip():
            return []
        vector = [float(value) for value in (await self._embedder.embed([query]))[0]]
        rows = [row for scope in scopes for row in await self._store.search(query, vector, scope, k * _SPARE)]
        found = {one.ref.id: one for one in self._records(rows) if one.owner == owner}.values()
        return sorted(found, key=lambda one: (-(one.score or 0.0), one.ref.id))[:k]

    async def owners(self) -> list[Entity]:
        """Every owner, from a list of all rows."""
        require(self, Can.LIST_OWNERS)
        return sorted({one.owner for one in self._records(await self._store.rows(None))})

    async def changes(self, cursor: str | None, /, *, limit: int = 500) -> Changes:
        """What Mem0's history has after the cursor, whichever process wrote it.

        Each memory comes as it is now. A history that was cleared by `reset` is followed
        from its new beginning. Writes that bypass the history are not seen.
        """
        ids, after = await self._store.tail(cursor, limit)
        now = {row.id: row for row in await self._store.get(list(dict.fromkeys(ids)))}
        items = [self._change(one, now.get(one)) for one in dict.fromkeys(ids)]
        return Changes([change for change in items if change is not None], after)

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update once under its id, its words not in the history; what its key has already is left alone."""
        require(self, Can.WRITE)
        async with self._writing.here():
            return [await self._keep(update) for update in updates]

    async def retract(self, keys: Sequence[str], /) -> int:
        """Delete what was written under the keys, and what Mem0's history says of it."""
        require(self, Can.WRITE)
        async with self._writing.here():
            return sum([await self._drop(key) for key in dict.fromkeys(keys)])

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Delete memories with history, last messages of their scopes, and what Chroma's files keep of them."""
        require(self, Can.ERASE)
        ids = list(dict.fromkeys(ref.id for ref in refs if ref.backend == self._name and ref.id))
        if not ids:
            return 0
        async with self._writing.here():
            with self._tap.muted():
                return await self._store.erase(ids)

    async def erase_owner(self, owner: Entity, /) -> None:
        """Remove what an owner said from the last messages, and what the history keeps of words it is named for."""
        require(self, Can.ERASE_OWNER)
        async with self._writing.here():
            await self._store.erase_said(partial(mapping.said_by, owner))

    async def health(self) -> PartHealth:
        """Ask the vector store for one row."""
        try:
            rows = await self._store.rows(None, top_k=1)
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        return PartHealth(name=self._name, condition="ok" if rows else "empty", detail=self._store.provider)

    async def aclose(self) -> None:
        """Nothing: the memory belongs to who made it."""

    def _records(self, rows: Sequence[Row]) -> list[MemoryRecord]:
        made = [self._tap.record(row.id, row.payload, row.score) for row in rows]
        return [one for one in made if one is not None]

    def _change(self, native_id: str, row: Row | None) -> Change | None:
        if row is None:
            return Change(MemoryRef(backend=self._name, id=native_id), None)
        if mapping.is_derived(row.payload):
            return None
        now = self._tap.record(row.id, row.payload)
        return Change(now.ref if now else MemoryRef(backend=self._name, id=native_id), now)

    async def _under(self, key: str) -> list[Row]:
        return await self._store.rows({"agent_id": mapping.RESERVED_AGENT, mapping.KEY: key})

    async def _keep(self, update: Update) -> Receipt:
        held = await self._under(update.id)
        if not held:
            with self._tap.muted():
                answer = await self._store.call(
                    "add", update.text, agent_id=mapping.RESERVED_AGENT, infer=False, **_described(update)
                )
            native = str(answer["results"][0]["id"])
        else:
            native = min(row.id for row in held)
        await self._store.hush([native])
        return Receipt(key=update.id, native_id=native, backend=self._name)

    async def _drop(self, key: str) -> int:
        held = await self._under(key)
        with self._tap.muted():
            await self._store.drop([row.id for row in held])
        return 1 if held else 0


class Mem0PlatformBackend:
    """Mem0's service through a `MemoryClient` or `AsyncMemoryClient`.

    It has no feed that shows deletions, so `WATCH` is not promised, and its `add` answers
    before anything is stored, so neither is `WRITE`.

    Args:
        client: The object, as made by the user.
        name: Unique within the layer; part of every ref.
    """

    can: frozenset[Can] = frozenset({Can.SEARCH, Can.LIST_OWNERS})

    def __init__(self, client: Any, *, name: str = NAME) -> None:
        self._name, self._platform = name, Platform(client, name)

    @property
    def name(self) -> str:
        """Part of every ref."""
        return self._name

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The records that still exist; one request each."""
        ids = [ref.id for ref in refs if ref.backend == self._name and ref.id]
        items = await asyncio.gather(*(self._platform.get(one) for one in ids))
        return self._records([one for one in items if one is not None])

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's records by id; the service pages by number, so each page lists the owner anew."""
        scope = mapping.native_scope(owner)
        mine = [] if scope is None else [one for one in self._records(await self._all(scope)) if one.owner == owner]
        rest = [one for one in sorted(mine, key=lambda one: one.ref.id) if after is None or one.ref.id > after]
        return Page(rest[:limit], rest[limit - 1].ref.id if len(rest) > limit else None)

    async def search(self, owner: Entity, query: str, /, *, k: int = 10) -> list[MemoryRecord]:
        """The owner's best records for a query, as the service ranks them."""
        scope = mapping.native_scope(owner)
        if scope is None or not query.strip():
            return []
        items = await self._platform.search(query, scope, k * _SPARE)
        found = [one for one in self._records(items, scored=True) if one.owner == owner]
        return sorted(found, key=lambda one: (-(one.score or 0.0), one.ref.id))[:k]

    async def owners(self) -> list[Entity]:
        """Every user, agent, app and run the service names."""
        fields = {"user": "user_id", "agent": "agent_id", "run": "run_id", "app": "app_id"}
        named: set[Entity] = set()
        for one in await self._platform.users():
            field, native = fields.get(str(one.get("type"))), one.get("name")
            owner = mapping.owner_of({field: native}) if field and native else None
            if owner is not None and owner != Entity("agent", mapping.RESERVED_AGENT):
                named.add(owner)
        return sorted(named)

    async def health(self) -> PartHealth:
        """Ask the service who has memories."""
        try:
            users = await self._platform.users()
        except BackendError as error:
            return PartHealth(name=self._name, condition="down", detail=error.why)
        return PartHealth(name=self._name, condition="ok" if users else "empty", detail=f"{len(users)} entities")

    async def aclose(self) -> None:
        """Nothing: the client belongs to who made it."""

    async def _all(self, scope: dict[str, str], size: int = 200) -> list[dict[str, Any]]:
        items, page, more = list[dict[str, Any]](), 1, True
        while more:
            found, more = await self._platform.page(scope, page, size)
            items += found
            page += 1
        return items

    def _records(self, items: Sequence[dict[str, Any]], *, scored: bool = False) -> list[MemoryRecord]:
        made = [
            mapping.record(self._name, str(one["id"]), mapping.payload_of(one), one.get("score") if scored else None)
            for one in items
            if one.get("id")
        ]
        return [one for one in made if one is not None]


def backend_for(
    memory: Any, *, name: str = NAME, write: bool = False, tap: Tap | None = None, recent: Recent | None = None
) -> MemoryBackend:
    """The backend for any of Mem0's four classes.

    Raises:
        InputError: Another class; or `write` for Mem0's service, which cannot keep its promise.
    """
    if kind_of(memory) in ("memory", "async_memory"):
        return Mem0Backend(memory, name=name, write=write, tap=tap, recent=recent)
    if write:
        raise InputError("Mem0's service stores additions later, under ids we are not told; leave `write` out")
    return Mem0PlatformBackend(memory, name=name)


def _described(update: Update) -> dict[str, Any]:
    metadata = {
        mapping.KEY: update.id,
        "collab_kind": update.kind.value,
        "collab_for": str(update.owner),
        "collab_confidence": update.confidence,
    }
    expires = {} if update.expires is None else {"expiration_date": update.expires.date().isoformat()}
    return {"metadata": metadata, **expires}


__all__ = ["NAME", "Mem0Backend", "Mem0PlatformBackend", "backend_for"]
