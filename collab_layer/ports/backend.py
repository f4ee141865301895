"""A memory store behind the layer: refs in, memories out; updates in, receipts out.

The base is small: read, list an owner's records, health, close. Everything else is an
ability that a store declares in `can` and has a method for; a store that promises what it
has no method for is refused when it is attached.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from collab_layer.errors import PluginError, UnsupportedError

if TYPE_CHECKING:
    from collab_layer.ports.models import Embedder
    from collab_layer.types.entity import Entity, MemoryRecord, MemoryRef
    from collab_layer.types.health import PartHealth
    from collab_layer.types.update import Receipt, Update


class Can(StrEnum):
    """What a store may promise. The value is what tables and JSON print."""

    SEARCH = "search"
    """Finds an owner's records by a query, with its own index."""
    AS_OF = "as_of"
    """Reads an owner's records as they were at a time."""
    LIST_OWNERS = "list_owners"
    """Names every owner it has records of."""
    WATCH = "watch"
    """A resumable feed of what changed, deletions included."""
    WRITE = "write"
    """Takes derived items under an idempotency key, into a reserved scope."""
    IF_MATCH = "if_match"
    """Refuses a write based on a version it has replaced."""
    DEDUPE = "dedupe"
    """Stores the same key once, however often and concurrently it is written."""
    ERASE = "erase"
    """Removes every copy it keeps, history included."""
    ERASE_OWNER = "erase_owner"
    """Removes what it keeps of an owner beside the records that it lists."""
    EMBED = "embed"
    """Brings an embedder of its own."""


METHODS: dict[Can, str] = {
    Can.SEARCH: "search",
    Can.AS_OF: "records_as_of",
    Can.LIST_OWNERS: "owners",
    Can.WATCH: "changes",
    Can.WRITE: "write",
    Can.IF_MATCH: "write_if_match",
    Can.DEDUPE: "write",
    Can.ERASE: "erase",
    Can.ERASE_OWNER: "erase_owner",
    Can.EMBED: "embedder",
}
"""The method each promise stands for."""


class Page(NamedTuple):
    """Some records of an owner, and where to go on; `after` is None at the end."""

    records: list[MemoryRecord]
    after: str | None


class Change(NamedTuple):
    """One change seen in a store: the record now, or its ref alone when it is gone."""

    ref: MemoryRef
    record: MemoryRecord | None


class Changes(NamedTuple):
    """Some changes in order, and the cursor to ask with next time."""

    items: list[Change]
    cursor: str


@runtime_checkable
class MemoryBackend(Protocol):
    """The base every store has. Refs a store does not know are left out, not raised."""

    @property
    def name(self) -> str:
        """Unique within a layer; part of every `MemoryRef`."""
        ...

    @property
    def can(self) -> frozenset[Can]:
        """Of this store as opened; settings may change it."""
        ...

    async def read(self, refs: Sequence[MemoryRef], /) -> list[MemoryRecord]:
        """The records that still exist, in any order."""
        ...

    async def records(self, owner: Entity, /, *, after: str | None = None, limit: int = 500) -> Page:
        """An owner's records, in a stable order, from `after` on."""
        ...

    async def health(self) -> PartHealth:
        """Ask the store itself; never raises."""
        ...

    async def aclose(self) -> None:
        """Release what this port opened, not what the caller opened."""
        ...


@runtime_checkable
class Searches(MemoryBackend, Protocol):
    """The extra call that `Can.SEARCH` stands for."""

    async def search(self, owner: Entity, query: str, /, *, k: int = 10) -> list[MemoryRecord]:
        """The owner's best records for a query, best first, with the store's score."""
        ...


@runtime_checkable
class ReadsAsOf(MemoryBackend, Protocol):
    """The extra call that `Can.AS_OF` stands for."""

    async def records_as_of(self, owner: Entity, at: datetime, /) -> list[MemoryRecord]:
        """The owner's records that held at a time."""
        ...


@runtime_checkable
class ListsOwners(MemoryBackend, Protocol):
    """The extra call that `Can.LIST_OWNERS` stands for."""

    async def owners(self) -> list[Entity]:
        """Every owner that has records."""
        ...


@runtime_checkable
class Watches(MemoryBackend, Protocol):
    """The extra call that `Can.WATCH` stands for."""

    async def changes(self, cursor: str | None, /, *, limit: int = 500) -> Changes:
        """What changed since the cursor; `None` starts at now and returns no items."""
        ...


@runtime_checkable
class Writes(MemoryBackend, Protocol):
    """The extra calls that `Can.WRITE` stands for."""

    async def write(self, updates: Sequence[Update], /) -> list[Receipt]:
        """Store each update under its id as key; a key it has is left alone."""
        ...

    async def retract(self, keys: Sequence[str], /) -> int:
        """Remove what was written under the keys; how many there were."""
        ...


@runtime_checkable
class Erases(MemoryBackend, Protocol):
    """The extra call that `Can.ERASE` stands for."""

    async def erase(self, refs: Sequence[MemoryRef], /) -> int:
        """Remove every copy, history included; how many there were."""
        ...


@runtime_checkable
class ErasesOwners(Erases, Protocol):
    """The extra call that `Can.ERASE_OWNER` stands for."""

    async def erase_owner(self, owner: Entity, /) -> None:
        """Remove what no record tells of: deleted memories, conversations that gave none.

        Called when every record of the owner was erased; again changes nothing.
        """
        ...


@runtime_checkable
class Embeds(MemoryBackend, Protocol):
    """The extra attribute that `Can.EMBED` stands for."""

    @property
    def embedder(self) -> Embedder:
        """The store's own embedder."""
        ...


def check_promises(backend: MemoryBackend) -> None:
    """Refuse a store that promises what it has no method for.

    Raises:
        PluginError: A promise without its method.
    """
    for ability in sorted(backend.can):
        if not hasattr(backend, METHODS[ability]):
            raise PluginError(backend.name, f"it promises `{ability}` but has no `{METHODS[ability]}`")


def require(backend: MemoryBackend, ability: Can) -> None:
    """Raise `UnsupportedError` where the store does not promise the ability."""
    if ability not in backend.can:
        raise UnsupportedError(backend.name, ability)
