"""A memory store in memory, with every ability a store may promise.

In:   an owner's memories through `add`, `edit`, `delete`; port calls.
Out:  what a real store would answer; call counts; failures on demand.

It keeps every version of a memory until that memory is erased. Nothing is written
to disk. All calls may come from several threads and event loops at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from collab_layer.errors import BackendDownError, InputError, UnsupportedError
from collab_layer.ports.backend import Can, Change, Changes, Page, require
from collab_layer.ports.clock import Clock, system_clock
from collab_layer.ports.models import Embedder
from collab_layer.testing.overlap import overlap
from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef, entities
from collab_layer.types.health import PartHealth
from collab_layer.types.time import utc
from collab_layer.types.update import Receipt, Update

ABILITIES = frozenset(
    {Can.SEARCH, Can.AS_OF, Can.LIST_OWNERS, Can.WATCH, Can.WRITE, Can.DEDUPE, Can.ERASE, Can.ERASE_OWNER},
)
"""What it promises by default. `EMBED` comes with an embedder; `IF_MATCH` has no call in the port."""


@dataclass(frozen=True, slots=True)
class _Version:
    number: int
    text: str
    links: tuple[Entity, ...]
    at: datetime


@dataclass(slots=True)
class _Memory:
    seq: int
    id: str
    owner: Entity
    versions: list[_Version]
    ended: datetime | None = None

    def version_at(self, at: datetime) -> _Version | None:
        """The version that held at a time, if any did."""
        if self.ended is not None and at >= self.ended:
            return None
        return next((version for version in reversed(self.versions) if version.at <= at), None)


class InMemoryBackend:
    """An honest store for tests, examples and demos.

    Args:
        name: Its name in refs.
        can: What to promise, at most what it has; all of it if left out.
        embedder: Makes it promise `EMBED`.
        clock: When memories are added, changed and deleted.

    Attributes:
        down: While true every call raises `BackendDownError`, and `health` says down.
        delay_s: Seconds every call waits first.
        calls: How often each port method was called, also while down.
    """

    def __init__(
        self,
        name: str = "memory",
        *,
        can: Iterable[Can] | None = None,
        embedder: Embedder | None = None,
        clock: Clock = system_clock,
    ) -> None:
        offered = ABILITIES if embedder is None else ABILITIES | {Can.EMBED}
        wanted: frozenset[Can] = offered if can is None else frozenset(can)
        if not wanted <= offered:
            raise InputError(f"the in-memory store cannot promise {sorted(wanted - offered)}")
        self.down = False
        self.delay_s = 0.0
        self.calls: Counter[str] = Counter()
        self._name, self._can, self._embedder, self._clock = name, wanted, embedder, clock
        self._lock = Lock()
        self._seq = 0
        self._memories: dict[str, _Memory] = {}
        self._log: list[str] = []
        self._derived: dict[str, tuple[str, Update]] = {}

    # -- what an owner does with the store, outside the port ----------------------------

    def add(
        self, owner: Entity | str, text: str, links: Iterable[Entity | str] = (), at: datetime | None = None
    ) -> MemoryRef:
        """Store a memory of an owner, which holds from `at` on (now if left out)."""
        when = self._clock() if at is None else utc(at)
        with self._lock:
            self._seq += 1
            first = _Version(1, text, entities(list(links)), when)
            memory = _Memory(self._seq, f"m{self._seq}", Entity.parse(owner), [first])
            self._memories[memory.id] = memory
            self._log.append(memory.id)
            return self._ref(memory)

    def edit(self, ref: MemoryRef, text: str, at: datetime | None = None) -> MemoryRef:
        """Replace a memory's text; the same text changes nothing.

        Raises:
            InputError: No such memory, or it was deleted.
        """
        when = self._clock() if at is None else utc(at)
        with self._lock:
            memory = self._live(ref)
            last = memory.versions[-1]
            if text != last.text:
                memory.versions.append(_Version(last.number + 1, text, last.links, when))
                self._log.append(memory.id)
            return self._ref(memory)

    def delete(self, ref: MemoryRef) -> None:
        """Delete a memory; reads of the past still find it, unlike after `erase`.

        Raises:
            InputError: No such memory, or it was deleted already.
        """
        with self._lock:
            memory = self._live(ref)
            memory.ended = self._clock()
            self._log.append(memory.id)

    def derived(self, owner: Entity | str | None = None) -> list[Update]:
        """What was written into the reserved scope, oldest first; for one owner or for all."""
        whose = None if owner is None else Entity.parse(owner)
        with self._lock:
            return [update for _, update in self._derived.values() if whose in (None, update.owner)]

    def texts(self) -> list[str]:
        """Every text it still holds anywhere: all versions, deleted ones, derived items."""
        with self._lock:
            own = [version.text for memory in self._memories.values() for version in memory.versions]
            return own + [update.text for _, update in self._derived.values()]

    # -- the port -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name in refs."""
        return self._name

    @property
    def can(self) -> frozenset[Can]:
        """What was asked for when it was made."""
        return self._can

    @property
    def embedder(self) -> Embedder:
        """The embedder it was made with.

        Raises:
            UnsupportedError: It was made without one.
        """
        if self._embedder is None:
            raise UnsupportedError(self._name, Can.EMBED)
        return self._embedder

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The records that still exist, in the order asked for."""
        await self._enter("read")
        with self._lock:
            found = [self._memories.get(ref.id) for ref in refs if ref.backend == self._name]
            return [self._record(memory) for memory in found if memory is not None and memory.ended is None]

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's records, oldest first."""
        await self._enter("records")
        start = _position(after)
        with self._lock:
            rest = [memory for memory in self._of(owner) if memory.seq > start]
            page = rest[:limit]
            more = str(page[-1].seq) if len(rest) > len(page) and page else None
            return Page([self._record(memory) for memory in page], more)

    async def search(self, owner: Entity, query: str, /, *, k: int = 10) -> list[MemoryRecord]:
        """The owner's records that share words with the query, best first, ties oldest first."""
        await self._enter("search", Can.SEARCH)
        with self._lock:
            held = self._of(owner)
            scores = overlap(query, [memory.versions[-1].text for memory in held])
            ranked = sorted(zip(scores, held, strict=True), key=lambda pair: (-pair[0], pair[1].seq))
            return [self._record(memory, score=score) for score, memory in ranked[:k] if score > 0]

    async def records_as_of(self, owner: Entity, at: datetime, /) -> list[MemoryRecord]:
        """The owner's records that held at a time, oldest first, as they read then."""
        await self._enter("records_as_of", Can.AS_OF)
        when = utc(at)
        with self._lock:
            mine = [memory for memory in self._memories.values() if memory.owner == owner]
            held = [(memory, memory.version_at(when)) for memory in mine]
            return [self._record(memory, version) for memory, version in held if version is not None]

    async def owners(self) -> list[Entity]:
        """Every owner that has records, in order."""
        await self._enter("owners", Can.LIST_OWNERS)
        with self._lock:
            return sorted({memory.owner for memory in self._memories.values() if memory.ended is None})

    async def changes(self, cursor: str | None, /, *, limit: int = 500) -> Changes:
        """What changed since the cursor, each as it is now; derived items are left out."""
        await self._enter("changes", Can.WATCH)
        with self._lock:
            start = len(self._log) if cursor is None else _position(cursor)
            ids = self._log[start : start + limit]
            return Changes([self._change(id) for id in ids], str(start + len(ids)))

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update under its id in the reserved scope; a key it has is left alone."""
        await self._enter("write", Can.WRITE)
        with self._lock:
            return [self._keep(update) for update in updates]

    async def retract(self, keys: Sequence[str], /) -> int:
        """Remove what was written under the keys; how many there were."""
        await self._enter("retract", Can.WRITE)
        with self._lock:
            return sum(self._derived.pop(key, None) is not None for key in keys)

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Remove memories with all their versions; the feed keeps their ids alone."""
        await self._enter("erase", Can.ERASE)
        with self._lock:
            gone = [ref.id for ref in refs if ref.backend == self._name and self._memories.pop(ref.id, None)]
            self._log.extend(gone)
            return len(gone)

    async def erase_owner(self, owner: Entity, /) -> None:
        """Remove an owner's deleted memories too; the feed keeps their ids alone."""
        await self._enter("erase_owner", Can.ERASE_OWNER)
        with self._lock:
            for memory in [one for one in self._memories.values() if one.owner == owner and one.ended is not None]:
                del self._memories[memory.id]

    async def health(self) -> PartHealth:
        """Down, empty, or ok with the number of records."""
        self.calls["health"] += 1
        await asyncio.sleep(self.delay_s)
        if self.down:
            return PartHealth(name=self._name, condition="down", detail="switched off")
        with self._lock:
            held = sum(memory.ended is None for memory in self._memories.values())
        return PartHealth(name=self._name, condition="ok" if held else "empty", detail=f"{held} records")

    async def aclose(self) -> None:
        """Nothing to release."""
        self.calls["aclose"] += 1

    # -- inside -------------------------------------------------------------------------

    async def _enter(self, call: str, ability: Can | None = None) -> None:
        self.calls[call] += 1
        if ability is not None:
            require(self, ability)
        await asyncio.sleep(self.delay_s)
        if self.down:
            raise BackendDownError(self._name, "switched off; set `down = False`")

    def _live(self, ref: MemoryRef) -> _Memory:
        memory = self._memories.get(ref.id) if ref.backend == self._name else None
        if memory is None or memory.ended is not None:
            raise InputError(f"`{self._name}` has no memory `{ref.id}`")
        return memory

    def _of(self, owner: Entity) -> list[_Memory]:
        return [memory for memory in self._memories.values() if memory.owner == owner and memory.ended is None]

    def _ref(self, memory: _Memory, version: _Version | None = None) -> MemoryRef:
        shown = version or memory.versions[-1]
        return MemoryRef(backend=self._name, id=memory.id, version=str(shown.number))

    def _record(self, memory: _Memory, version: _Version | None = None, score: float | None = None) -> MemoryRecord:
        shown = version or memory.versions[-1]
        return MemoryRecord(
            ref=self._ref(memory, shown),
            owner=memory.owner,
            text=shown.text,
            at=shown.at,
            valid_to=memory.ended,
            links=shown.links,
            score=score,
        )

    def _change(self, id: str) -> Change:
        memory = self._memories.get(id)
        if memory is None or memory.ended is not None:
            return Change(MemoryRef(backend=self._name, id=id), None)
        return Change(self._ref(memory), self._record(memory))

    def _keep(self, update: Update) -> Receipt:
        native, _ = self._derived.setdefault(update.id, (f"derived:{update.id}", update))
        return Receipt(key=update.id, native_id=native, backend=self._name)


def _position(cursor: str | None) -> int:
    """Read a cursor this store gave.

    Raises:
        InputError: It is not one of them.
    """
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InputError(f"`{cursor[:40]}` is no cursor of this store; start again with none")
    return int(cursor)


__all__ = ["ABILITIES", "InMemoryBackend"]
